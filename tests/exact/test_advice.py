"""What a reader is told to try: it applies to the model, and it is not what just ran."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from small_models import mean_field

import definetti as dft
from definetti.errors import FAILURES
from definetti.inference.advice import advice
from definetti.model.verdict import WORDS
from definetti.samplers.registry import SAMPLERS, names

SOURCE = Path(dft.__file__).parent
EQUAL = [[1.0, np.exp(-40.0)], [np.exp(-40.0), 1.0]]
PAIRS = dft.factor_graph(
    [2] * 16, [([i, i + 1], EQUAL) for i in range(0, 16, 2)] + [([i], [1.0, 1.0 + i / 9]) for i in range(0, 16, 2)]
)
TIGHT = "P(thing)\nQ(thing)\n40 P(x) <=> Q(x)\n-6 P(x)\n6 Q(x)\n"


@pytest.mark.parametrize(
    ("kind", "ran", "by_choice"), list(itertools.product(sorted(FAILURES), [*SAMPLERS, "samples"], [False, True]))
)
def test_advice_is_not_what_just_ran(kind: str, ran: str, by_choice: bool) -> None:
    for exact, seconds in itertools.product((False, True), (None, 2.0)):
        text = advice(kind, {"sampler": ran, "sweeps": 500}, by_choice, exact, seconds)
        named = re.findall(r"--sampler (\S+?)(?:,|$| )", text)
        assert set(named) <= set(names()) - {ran}
        assert not (by_choice and "auto" in named)
        assert ("definetti exact" in text) == (exact and ran != "samples")
        assert "--sweeps 2000" not in text or seconds is None
        assert "--seconds 8" not in text or seconds is not None
        if ran == "samples":
            assert "--" not in text
        if kind == "few-samples" and ran != "samples":
            assert "--sweeps 2000" in text or "--seconds 8" in text
        if kind in ("divided", "frozen") and ran != "tempering":  # more of the same leaves chains where they are
            assert "--sweeps" not in text and "--seconds" not in text


def test_modes_that_a_named_sampler_does_not_weigh_are_for_auto() -> None:
    run = {"sampler": "tempering", "sweeps": 500, "regions": [{}, {}]}
    assert advice("divided", run, False, False) == "try --sampler auto"
    assert advice("divided", run, True, False) == "try --sweeps 2000"


@pytest.mark.parametrize(
    ("asked", "spent", "said"), [(2.0, {}, "8"), (0.001, {"symmetries": 0.5, "sample": 0.01}, "3"), (33.0, {}, "200")]
)
def test_seconds_to_try_are_more_than_set_up_took(asked: float, spent: dict[str, float], said: str) -> None:
    run = {"sampler": "gibbs", "seconds": {**spent, "sample_cpu": 99.0}}
    assert advice("few-samples", run, True, False, asked) == f"try --seconds {said}"


def test_every_kind_that_fails_has_words() -> None:
    assert set(WORDS) == FAILURES


def test_warnings_name_no_sampler_of_their_own() -> None:
    """Only `advice` knows what ran."""
    said = [
        (path.name, line)
        for path in SOURCE.rglob("*.py")
        if path.name != "advice.py"
        for line in re.findall(r"Notice\([^)]*\)", path.read_text())
    ]
    assert len(said) > 40
    assert not [(name, line) for name, line in said if "--sampler" in line or "--sweeps" in line]


@pytest.mark.parametrize("sampler", ["auto", "gibbs"])
@pytest.mark.parametrize("kind", ["graph", "logic"])
def test_the_advice_of_a_run_can_be_followed(kind: str, sampler: str) -> None:
    """The sampler that is named takes the model, and is another one."""
    model: object = PAIRS if kind == "graph" else dft.markov_logic(TIGHT, domain={"thing": 18})
    found = dft.marginals(model, sampler=sampler, chains=4, sweeps=8, seed=1)
    assert not found.trusted and found.verdict.cure == found.run["advice"]
    assert any(n.message.endswith(found.run["advice"]) for n in found.notices if n.fails)
    for other in re.findall(r"--sampler ([a-z-]+)", found.run["advice"]):
        assert other != sampler
        dft.marginals(model, sampler=other, chains=4, sweeps=8, seed=1)


def test_samples_of_other_programs_are_not_told_to_run_a_sampler() -> None:
    rng = np.random.default_rng(1)
    model = mean_field(5, 0.5, 0.1)
    found = dft.marginals(np.repeat(rng.integers(2, size=(4, 2, 1)), 5, axis=2), model=model)
    assert not found.trusted and "--" not in (found.verdict.cure or "")
