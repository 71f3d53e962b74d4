"""The worked examples of CONTRIBUTING.md: the files are written, the lines registered, and both have to pass."""

from __future__ import annotations

import importlib.util
import itertools
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from saved_runs import check
from small_models import hard_pairs, potts_ring, triples

import definetti as dft
from definetti.inference.graph.question import ask
from definetti.samplers import registry
from definetti.samplers.protocol import Plan
from definetti.symmetry.find import symmetries

TEXT = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")


def blocks(heading: str) -> list[str]:
    """The Python blocks below a heading."""
    part = TEXT.split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", part, re.DOTALL)


@pytest.fixture
def metropolised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The sampler's module, registered."""
    source, line = blocks("A sampler")
    path = tmp_path / "metropolised.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("definetti.samplers.graph.metropolised", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    ((name, entry),) = eval("{" + line + "}", vars(registry)).items()
    monkeypatch.setitem(registry.SAMPLERS, name, entry)
    return module


def test_the_sampler_leaves_the_distribution_alone(metropolised: ModuleType) -> None:
    """Site by site, by the chances that its draw is made from."""
    for model in (triples(), potts_ring(4, 3).condition({0: 1}), hard_pairs()):
        states = np.array(list(itertools.product(*(range(c) for c in model.cards.tolist()))))
        states = states[((model.evidence < 0) | (states == model.evidence)).all(axis=1)]
        logs = model.log_density(states)
        states, logs = states[np.isfinite(logs)], logs[np.isfinite(logs)]
        pi = np.exp(logs - logs.max())
        pi /= pi.sum()
        place = {tuple(state): k for k, state in enumerate(states.tolist())}
        for site in model.free.tolist():
            after = np.zeros_like(pi)
            for k, state in enumerate(states):
                chance = metropolised.moves(metropolised.conditional(model, state, site), int(state[site]))
                assert chance.min() >= -1e-12
                for value in np.flatnonzero(chance > 1e-15).tolist():
                    after[place[(*state[:site].tolist(), value, *state[site + 1 :].tolist())]] += pi[k] * chance[value]
            np.testing.assert_allclose(after, pi, atol=1e-12)


def test_the_sampler_keeps_the_protocol(metropolised: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = registry.named("metropolised", "symmetric")
    assert sampler is not None and sampler.kinds == registry.SAMPLERS["metropolised"].kinds
    assert dft.Metropolised is metropolised.Metropolised
    del dft.Metropolised  # a public name is kept when it was used
    assert "metropolised" in registry.names() and "metropolised" in registry.help_text()
    question = ask(symmetries(triples()), (), "orbit", 5)
    check(lambda: question.sampling(sampler, Plan(3, 4, 40, 5, 1), "orbit"), None, monkeypatch)


def test_the_sampler_answers(metropolised: ModuleType) -> None:
    model = triples()
    truth = dft.exact(model)
    answer = dft.marginals(model, sampler="metropolised", chains=4, sweeps=300, burn_in=20, seed=3)
    assert answer.run["sampler"] == "metropolised"
    for row in answer.orbits:
        error = np.abs(np.subtract(row.probability, truth[row.representative].probability))
        assert (error <= 5 * np.asarray(row.mcse)).all()


ESTIMATOR = """
import sys, types
import definetti.estimators as table

module = types.ModuleType("definetti.estimators.mixed")
sys.modules[module.__name__] = module
table.ESTIMATORS |= eval("{" + sys.argv[2] + "}", vars(table))
exec(sys.argv[1], vars(module))

import numpy as np
import definetti as dft
sys.path.append(sys.argv[3])
from small_models import triples
from definetti.cli.main import run

model = triples()
truth = dft.exact(model)
answer = dft.marginals(model, ["X0=1 ^ X1=1"], estimator="mixed", chains=20, sweeps=400, seed=3)
assert answer.run["estimator"] == "mixed" and answer.run["choices"]["mixed"], answer.run
assert [notice.kind for notice in answer.notices] == ["fallback"], answer.notices
for row in answer.orbits:
    error = np.abs(np.subtract(row.probability, truth[row.representative].probability))
    assert row.estimator == "mixed" and (error <= 5 * np.asarray(row.mcse)).all(), row
run(["marginals", "--help"])
"""


def test_the_estimator_answers() -> None:
    """In a process of its own: the table is read when modules are loaded."""
    source, line = blocks("An estimator")
    words = [sys.executable, "-c", ESTIMATOR, source, line, str(Path(__file__).parents[1])]
    made = subprocess.run(words, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert "mixed" in made.stdout
