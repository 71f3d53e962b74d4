"""Many repetitions of a run of four chains, for measuring what estimators and their error bars do.

A repetition is a group of four chains. Many are run at once: chains have random streams of their own, and lanes that
share scan orders are independent given those. Warm-up is fixed at 100 sweeps, the least that a run of 1,000 takes by
itself. The chains are folded variable by variable, which is what `standard` needs; the statistics of the other
estimators are means of these over orbits, and `check` compares them with a run that folds orbits in its kernel. So
all estimators see the same draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import definetti as dft
from definetti.inference.graph.question import GraphQuestion, ask
from definetti.inference.logic.question import LogicQuestion, logic_question, tied_orbits
from definetti.inference.marginals import resolve
from definetti.memory import available_cores
from definetti.model.graph.factors import FREE
from definetti.model.logic.text import find_atom
from definetti.samplers.draws import Draws
from definetti.samplers.gibbs import Gibbs
from definetti.samplers.protocol import Plan
from definetti.symmetry.logic.renaming import RenamingSymmetries

CHAINS, WARM = 4, 100
Question = LogicQuestion | GraphQuestion


@dataclass(frozen=True, eq=False)
class Case:
    name: str
    model: Any
    symmetries: str = "auto"
    truth: Callable[[Any], Mapping[str, Any]] = dft.exact
    queries: tuple[str, ...] = ()


# --- what is estimated ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Statistics:
    """Those of a question that are answers: their columns, types and true values."""

    question: Question
    columns: np.ndarray
    names: list[str]
    kinds: np.ndarray
    truth: np.ndarray

    @property
    def groups(self) -> np.ndarray | None:
        """Statistics of the values of one variable have one number."""
        if isinstance(self.question, LogicQuestion):
            return tied_orbits(self.question.group, len(self.question.group.sizes))
        return self.question.statistics.groups


def statistics(case: Case, method: str) -> Statistics:
    """For `standard` of single variables, else of orbits. Of two values only the second is an answer."""
    group = resolve(case.model, case.symmetries, 20.0)
    question: Question
    if isinstance(group, RenamingSymmetries):
        question = logic_question(group, (), method)
        columns = list(range(len(question.group.sizes)))
        names = [question.group.orbits[k].representative for k in columns]
        values = [0] * len(names)
    else:
        question = ask(group, (), method, 1)
        columns, names, values = _literals(question)
    known = case.truth(case.model)
    truth = np.array([_probability(known[name], value) for name, value in zip(names, values, strict=True)])
    return Statistics(question, np.array(columns), names, np.array([kind(name) for name in names]), truth)


def _literals(question: GraphQuestion) -> tuple[list[int], list[str], list[int]]:
    """Statistics of the variables that stand for the rows, their names, and the places of their values."""
    model, of = question.group.model, question.columns.statistic_of
    columns, names, values = [], [], []
    for i in question.columns.row_representative.tolist():
        found = of[model.literal_start[i] : model.literal_start[i + 1]].tolist()
        found = found[1:] if len(found) == 2 else found
        columns += found
        names += [model.names[i]] * len(found)
        values += range(len(found))
    return columns, names, values


def _probability(known: Any, value: int) -> float:
    found = known if isinstance(known, float) else known.probability
    return found[value] if isinstance(found, list) else found


def kind(name: str) -> str:
    """Atoms by predicate, friends(x,x) by itself; the variables of other models are one type."""
    predicate, _, rest = name.partition("(")
    if not rest:
        return "all"
    a, _, b = rest.rstrip(")").partition(",")
    return "self" if a == b else predicate


def orbits_of(single: Statistics, orbit: Statistics) -> np.ndarray:
    """The orbit statistic that each statistic of single variables belongs to."""
    one, many = single.question, orbit.question
    if isinstance(one, LogicQuestion):
        assert isinstance(many, LogicQuestion)
        atoms = [find_atom(one.group.model, name) for name in single.names]
        return np.array([many.group.orbit_number(predicate, constants) for predicate, constants in atoms])
    assert isinstance(many, GraphQuestion)
    model = one.group.model
    free = np.repeat(model.evidence == FREE, model.cards)
    of = np.zeros(one.columns.singles, dtype=np.int64)
    of[one.columns.statistic_of[free]] = many.columns.statistic_of[free]
    return of


# --- draws ----------------------------------------------------------------------------------------------


def run(question: GraphQuestion, method: str, chains: int, sweeps: int, seed: int) -> Draws:
    plan = Plan(chains, WARM, sweeps, seed, available_cores())
    sampling = question.sampling(Gibbs(), plan, method)
    for _ in sampling.steps():
        pass
    return replace(sampling.draws(), tracked=None)


def folded(draws: Draws, of: np.ndarray, orbit: Statistics) -> Draws:
    """Statistics of single variables as those of their orbits. `last` is for R-hat, which nobody looks at here."""
    order = np.argsort(of, kind="stable")
    sizes = np.bincount(of)
    first = np.cumsum(sizes) - sizes

    def mean(x: np.ndarray) -> np.ndarray:
        return np.add.reduceat(x[:, :, order], first, axis=2) / sizes

    assert draws.g is not None
    f = mean(draws.f)
    return replace(draws, f=f, g=mean(draws.g), last=f, square=None, sizes=sizes, groups=orbit.groups)


def fours(draws: Draws, each: int = CHAINS) -> Iterator[Draws]:
    """Repetitions of four chains each, or of so many."""
    parts = [name for name in ("f", "g", "last", "square") if getattr(draws, name) is not None]
    for at in range(0, draws.chains, each):
        yield replace(draws, **{name: getattr(draws, name)[:, at : at + each] for name in parts})


def check(single: Statistics, orbit: Statistics, of: np.ndarray) -> None:
    """A run with single variables and one with orbits have the same draws: their means over orbits agree."""
    made = folded(run(single.question, "standard", CHAINS, 100, 1), of, orbit)
    whole = run(orbit.question, "orbit", CHAINS, 100, 1)
    assert whole.g is not None and made.g is not None
    np.testing.assert_allclose(made.f, whole.f, atol=1e-12)
    np.testing.assert_allclose(made.g, whole.g, atol=1e-12)
