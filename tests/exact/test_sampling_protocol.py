"""Every sampler of the registry keeps the protocol, and a run that is saved and restored goes on bit by bit.

Checkpoints are written from `state()`: it must hold all that the future of a run depends on, in arrays and numbers.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from every_sampler import GRAPHS, LOGIC, theory
from saved_runs import check
from small_models import hard_pairs

import definetti as dft
from definetti.errors import ModelError
from definetti.estimators import ESTIMATORS
from definetti.inference.graph.question import ask
from definetti.inference.logic.prepare import ready
from definetti.inference.logic.question import logic_question
from definetti.inference.question import Request
from definetti.samplers.draws import longest, tracked
from definetti.samplers.protocol import Plan
from definetti.samplers.registry import SAMPLERS, named, names, wrapped
from definetti.symmetry.find import symmetries


def test_every_entry_is_tried_here() -> None:
    for name, entry in SAMPLERS.items():
        assert ("graph" in entry.kinds) == (name in GRAPHS), name
        assert ("logic" in entry.kinds) == (name in LOGIC), name


@pytest.mark.parametrize("name", SAMPLERS)
def test_an_entry_says_what_its_class_says(name: str) -> None:
    entry = SAMPLERS[name]
    sampler = entry.make("symmetric")
    assert sampler.name == name and sampler.kinds == entry.kinds and entry.help
    assert {type(flag) for flag in (sampler.single_site, sampler.conditionals, sampler.warms_up)} == {bool}
    assert hash(sampler) == hash(entry.make("symmetric")) and sampler == entry.make("symmetric")
    if "graph" in entry.kinds:
        assert isinstance(sampler.visits_once, bool) and all(
            callable(getattr(sampler, verb)) for verb in ("alone", "engine", "orders")
        )
    if "logic" in entry.kinds:
        assert callable(sampler.logic_sampling)
    assert getattr(dft, entry.class_name) is type(sampler) and entry.class_name in dft.__all__


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(
        ModelError, match="auto, gibbs, blocks, swendsen-wang, tempering, mcsat, orbital, orbital-metropolis, lifted"
    ):
        named("slice", "symmetric")
    assert named("auto", "symmetric") is None and names()[0] == "auto"


@pytest.mark.parametrize("name", wrapped())
def test_any_chain_is_wrapped_by_name(name: str) -> None:
    outer, _, inner = name.partition(":")
    sampler = named(name, "symmetric")
    assert sampler is not None and sampler.kinds == SAMPLERS[inner].kinds and sampler.warms_up
    assert sampler.name == (outer if inner == "gibbs" else name)
    assert sampler == SAMPLERS[outer].sampler_class(named(inner, "symmetric"))
    assert SAMPLERS[inner].independent is False and SAMPLERS["lifted"].make("symmetric").warms_up is False


def test_estimators_are_loaded_by_the_table() -> None:
    for name, entry in ESTIMATORS.items():
        assert callable(import_module(entry.home).estimate) and entry.help, name


# --- saving and restoring --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GRAPHS)
def test_a_restored_run_of_a_factor_graph_goes_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sampler, model, chains = GRAPHS[name]
    question = ask(symmetries(model), ("X0=1 ^ X1=0",), "orbit", 5)
    plan = Plan(chains, None, 70, 5, 1)
    check(lambda: question.sampling(sampler, plan, "orbit"), None, monkeypatch)


@pytest.mark.parametrize("name", LOGIC)
def test_a_restored_run_of_markov_logic_goes_on(name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    group = symmetries(theory(tmp_path))
    question = logic_question(group, ("P(Thing1) ^ R(Thing1,Thing2)", "#P", "P(x) | EXIST y R(x,y)"), "orbit")
    sampler = LOGIC[name][0]
    plan = Plan(4, None if sampler.warms_up and "mcsat" not in name else 20 * sampler.warms_up, 70, 5, 1)
    check(lambda: question.sampling(sampler, plan, "orbit"), None, monkeypatch)


def test_a_restored_run_of_a_ground_model_goes_on(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    request = Request("literals", dft.Gibbs(), "symmetric", ("#P", "P(x) | EXIST y R(x,y)"), "orbit", 5, 10.0)
    question = ready(theory(tmp_path), request).question
    check(lambda: question.sampling(dft.Gibbs(), Plan(6, None, 70, 5, 1), "orbit"), None, monkeypatch)


@pytest.mark.parametrize("kind", ["graph", "logic"])
def test_a_restored_open_ended_run_goes_on(kind: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the merging of its batches."""
    sampler, plan = dft.Gibbs(), Plan(4, None, None, 5, 1)
    if kind == "graph":
        question: Any = ask(symmetries(hard_pairs()), (), "orbit", 5)
    else:
        question = logic_question(symmetries(theory(tmp_path)), ("#R",), "orbit")
    check(lambda: question.sampling(sampler, plan, "orbit"), 560 if kind == "graph" else 70, monkeypatch)


def test_a_state_of_another_run_is_refused() -> None:
    question = ask(symmetries(hard_pairs()), (), "orbit", 5)
    states = [question.sampling(dft.Gibbs(), Plan(chains, 0, 4, 5, 1), "orbit") for chains in (4, 5)]
    with pytest.raises(ModelError, match="belongs to another run"):
        states[0].restore(states[1].state())


def test_tracked_batches_of_a_long_run_are_few() -> None:
    """An open run doubles its batches again and again: those that are too short to be looked at are not kept, and what
    is looked at is the same."""
    rng, kept, every = np.random.default_rng(1), [], []
    statistic = np.arange(3)
    for k in range(60):
        batch = 1 << k // 3, rng.random((2, 3))
        every, kept = [*every, batch], longest([*kept, batch])
        ours, theirs = (tracked(statistic, [m for _, m in some], [n for n, _ in some]) for some in (kept, every))
        assert ours is not None and theirs is not None
        assert (ours.lengths == theirs.lengths).all() and (ours.means == theirs.means).all()
        assert len(kept) <= 6
