"""Draws of a Markov logic network's ground atoms, folded into the same `Draws` as those of a run, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from definetti.errors import ModelError
from definetti.estimators import ESTIMATORS, choose
from definetti.inference.draws.sample import Samples
from definetti.inference.logic.question import LogicQuestion, logic_question
from definetti.inference.marginals import resolve
from definetti.model.logic.theory import MarkovLogic
from definetti.model.marginals import Marginals
from definetti.readers.reading import language
from definetti.samplers.draws import BATCHES, Batch, Draws, draws_of, tally
from definetti.samplers.logic.queries import Asked, satisfied


@dataclass(frozen=True, eq=False)
class TableOfAtoms:
    """Draws of all ground atoms that another program made, in the form of `Samples`."""

    model: Any
    values: np.ndarray  # uint8[chains, draws, atoms]
    seed: int | None = None

    @property
    def chains(self) -> int:
        return self.values.shape[0]

    @property
    def draws(self) -> int:
        return self.values.shape[1]

    @property
    def variables(self) -> int:
        return self.values.shape[2]

    def __iter__(self) -> Iterator[np.ndarray]:
        yield np.ascontiguousarray(self.values.transpose(1, 0, 2))


def from_atoms(
    samples: Samples,
    queries: Sequence[str],
    model: MarkovLogic,
    symmetries: Any,
    estimator: str,
    burn_in: int,
    time_limit: float,
) -> Marginals:
    """Marginals from draws of all ground atoms; `burn_in` draws of each chain are left out."""
    method = choose(estimator)
    if ESTIMATORS[method].conditionals and method != "auto":
        raise ModelError("samples carry no full conditionals; use the estimator 'orbit'")
    if not 0 <= burn_in < samples.draws:
        raise ModelError(f"burn_in is {burn_in}, but a chain has {samples.draws} draws")
    if samples.model.kind != "logic" or samples.variables != model.atom_count:
        raise ModelError("these draws are not of all ground atoms of this model; sample the model itself")
    group = resolve(model, symmetries, time_limit)
    if group.model.kind != "logic":
        raise ModelError("draws of Markov logic are averaged over renamings; use symmetries 'auto' or 'none'")
    method = "orbit" if method == "auto" else method
    question = logic_question(group, queries, method)
    draws = fold(samples, question, burn_in)
    run = {
        "sampler": "samples",
        "estimator": method,
        "scan": None,
        "symmetries": group.kind,
        **language(model),
        "chains": samples.chains,
        "sweeps": draws.sweeps,
        "burn_in": burn_in,
        "updates": 0,
        "seconds": {"symmetries": group.seconds, "compile": 0.0, "sample": 0.0},
        "workers": 1,
        "seed": samples.seed,
    }
    return question.conclude(draws, method, run, False)


def fold(samples: Samples, question: LogicQuestion, burn_in: int) -> Draws:
    """Batch means of F and F², never more than one batch of draws in memory."""
    asked = Asked(
        question.group, question.late, question.counted, tuple(question.cells.values()), series=question.series
    )
    statistics = _statistics(question, asked)
    kept = samples.draws - burn_in
    count = min(BATCHES, kept)
    ends = [kept * (b + 1) // count for b in range(count)]
    batches: list[Batch] = []
    counts: list[list[np.ndarray]] = []  # of the batch under way
    sums, taken, at = np.zeros((2, samples.chains, len(asked.sizes))), 0, -burn_in
    for part in samples:
        for draw in part:
            at += 1
            if at <= 0:
                continue
            looked = [statistics(state.view(bool)) for state in draw]
            rows = np.stack([row for row, _ in looked])
            counts.append([seen for _, seen in looked])
            sums += [rows, rows**2]
            taken += 1
            if at == ends[len(batches)]:
                f, square = sums / taken
                batches.append(Batch(taken, f, None, square=square, tally=tally(np.array(counts, float))))
                sums, taken, counts = np.zeros_like(sums), 0, []
    return draws_of(batches, asked.sizes, samples.chains, burn_in)


def _statistics(question: LogicQuestion, asked: Asked) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """F of one state, given as the truth values of all atoms, and the counts that are kept."""
    group = question.group
    model = group.model
    shapes = {name: model.shape(name) for name in model.predicates}
    ends = np.cumsum([int(np.prod(shape, dtype=np.int64)) for shape in shapes.values()])
    orbit = np.concatenate([np.zeros(0, np.int32), *(group.orbit_grid(name).ravel() for name in shapes)])
    count = len(group.sizes)

    def statistics(state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        true = orbit[state]
        counts = np.bincount(true[true >= 0], minlength=count)
        seen: list[int] = []
        if asked.counted:
            parts = np.split(state, ends[:-1])
            atoms = {name: part.reshape(shapes[name]) for name, part in zip(shapes, parts, strict=True)}
            seen = [satisfied(query, lambda atom, at: atoms[atom.predicate][at]) for query in asked.counted]
        numbers = np.array(seen, dtype=float)
        return np.append(counts / group.sizes, asked.joint(numbers)), numbers[list(asked.series)]

    return statistics
