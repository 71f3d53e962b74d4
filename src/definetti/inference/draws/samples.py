"""Post-processing: samples that another program drew, as an array or an object, folded into the same `Draws`.

This is what the paper does with other people's samplers: the same samples, averaged over orbits. Where hard factors
hold, they are watched as our own chains are: impossible states are an error, and variables that could not move are
frozen, whatever symmetry makes of their numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, cast

import numpy as np

from definetti.constraints.graph.legal_states import factor_groups
from definetti.errors import ModelError, TooLarge, suggestion
from definetti.estimators import ESTIMATORS, choose
from definetti.inference.draws.sample import Samples
from definetti.inference.graph.events import flat_tuples
from definetti.inference.graph.question import GraphQuestion, ask
from definetti.inference.marginals import resolve
from definetti.model.checked_input import require_model
from definetti.model.graph.factors import FREE, FactorGraph
from definetti.model.marginals import Marginals
from definetti.readers.samples import from_labels
from definetti.samplers.conditionals import Balance, balance_of_states, conditional_pass
from definetti.samplers.draws import Draws
from definetti.samplers.graph.frozen_watch import hard_parts, truly_frozen

BATCHES = 32
MOST_LOOKED_UP = 1 << 22  # literals of joint events looked up at once: orbits of tuples may be large


def from_samples(
    source: Any,
    queries: Sequence[str],
    model: FactorGraph | None,
    symmetries: Any,
    estimator: str,
    burn_in: int,
    time_limit: float,
    seed: int | None,
) -> Marginals:
    """Marginals from samples; `burn_in` draws of each chain are left out."""
    if isinstance(source, str | PathLike):
        cure = f"dft.marginals(dft.read({str(source)!r})) for a model, arrays or tables for samples"
        raise ModelError(f"marginals takes a model or samples, not the path of a file: {cure}")
    if isinstance(source, type):
        raise ModelError(f"marginals takes a model or samples, got the class {source.__name__}")
    if model is not None:
        require_model(model, "samples need a model")
    if isinstance(source, Samples):
        model = source.model if model is None else model
        if getattr(model, "kind", None) == "logic":
            from definetti.inference.logic.samples import from_atoms

            return from_atoms(source, queries, cast("Any", model), symmetries, estimator, burn_in, time_limit)
        source = source.array()
    if model is None:
        raise ModelError(f"samples need their model: marginals(samples, model=…); got a {type(source).__name__} alone")
    method = choose(estimator)
    if ESTIMATORS[method].conditionals:
        raise ModelError("samples carry no full conditionals; use the estimator 'orbit'")
    if getattr(model, "kind", None) == "logic":
        from definetti.inference.logic.samples import TableOfAtoms, from_atoms
        from definetti.readers.samples import atoms_of

        known = atoms_of(model)
        drawn = as_array(source, known)
        _check_possible(drawn, known)
        table: Any = TableOfAtoms(model, drawn.astype(np.uint8))
        return from_atoms(table, queries, cast("Any", model), symmetries, estimator, burn_in, time_limit)
    samples = as_array(source, model)
    if not 0 <= burn_in < samples.shape[1]:
        raise ModelError(f"burn_in is {burn_in}, but a chain has {samples.shape[1]} draws")
    samples = samples[:, burn_in:]
    group = resolve(model, symmetries, time_limit)
    question = ask(group, queries, method, 0 if seed is None else seed)
    _check_possible(samples, model)
    frozen, forced = _stuck(samples, group.model)
    balance = _balance(samples, question)
    draws = replace(fold(samples, question, burn_in), frozen=frozen, forced=forced, balance=balance)
    run = {
        "sampler": "samples",
        "estimator": method,
        "scan": None,
        "symmetries": group.kind,
        "chains": samples.shape[0],
        "sweeps": samples.shape[1],
        "burn_in": burn_in,
        "updates": 0,
        "seconds": {"symmetries": group.seconds, "compile": 0.0, "sample": 0.0},
        "workers": 1,
        "seed": seed,
    }
    return question.conclude(draws, method, run, False)


def as_array(source: Any, model: FactorGraph) -> np.ndarray:
    """int64[chains, draws, n], checked: from an array, a dimod SampleSet, or an object that names its variables."""
    if hasattr(source, "record") and hasattr(source, "vartype"):
        array = _from_dimod(source, model)
    else:
        array = from_labels(source, model)
        array = _as_numbers(source) if array is None else array
    if array.ndim == 2:
        array = array[None]
    if array.ndim != 3 or array.shape[2] != model.n or 0 in array.shape[:2]:
        raise ModelError(
            f"samples must be an array chains × draws × variables with {model.n} variables, got shape {array.shape}"
        )
    if not (np.issubdtype(array.dtype, np.integer) or array.dtype == bool):
        if array.dtype.kind != "f" or not (np.isfinite(array) & (array == np.trunc(array))).all():
            raise ModelError("samples must be whole numbers (values of the variables, counted from 0)")
        array = np.clip(array, -1, np.iinfo(np.int32).max).astype(np.int64)
    wrong = (array < 0) | (array >= model.cards)
    if wrong.any():
        c, d, i = np.argwhere(wrong)[0]
        raise ModelError(
            f"chain {c}, draw {d}: {model.names[i]} is {array[c, d, i]}, but its values are 0 to {model.cards[i] - 1}"
        )
    off = (model.evidence != FREE) & (array != model.evidence)
    if off.any():
        c, d, i = np.argwhere(off)[0]
        raise ModelError(
            f"chain {c}, draw {d}: {model.names[i]} is {array[c, d, i]}, but the evidence says {model.evidence[i]}"
        )
    return array.astype(np.int64)


def _as_numbers(source: Any) -> np.ndarray:
    if np.ma.is_masked(source):
        raise ModelError("some samples are masked; every draw needs a value of every variable")
    try:
        return np.asarray(source)
    except (ValueError, TypeError) as error:
        raise ModelError(f"samples must be an array of whole numbers, chains × draws × variables: {error}") from None


def _from_dimod(samples: Any, model: FactorGraph) -> np.ndarray:
    """One chain; a sample with several occurrences counts as often. Spins -1 and +1 are the values 0 and 1."""
    record = samples.record
    rows = np.repeat(np.asarray(record.sample), np.asarray(record.num_occurrences), axis=0)
    if samples.vartype.name == "SPIN":
        rows = (rows + 1) // 2
    place = {str(v): k for k, v in enumerate(samples.variables)}
    known = set(model.names)
    unknown = next((name for name in place if name not in known), None)
    if unknown is not None:
        raise ModelError(f"the samples name {unknown!r}, which is no variable{suggestion(unknown, model.names)}")
    return rows[:, [_place(place, name) for name in model.names]]


def _place(place: dict[str, int], name: str) -> int:
    if name not in place:
        raise ModelError(f"the samples have no variable {name!r}; they have {', '.join(list(place)[:5])}")
    return place[name]


def _check_possible(samples: np.ndarray, model: FactorGraph) -> None:
    """`ModelError` for the first state that hard factors forbid."""
    for factors, scopes in factor_groups(model, model.hard_factors):
        never = np.isneginf(model.table(int(factors[0])))
        for over in scopes:
            wrong = never[tuple(np.moveaxis(samples[:, :, over], 2, 0))]
            if wrong.any():
                c, d = np.argwhere(wrong)[0]
                state = ", ".join(f"{model.names[i]}={samples[c, d, i]}" for i in over.tolist())
                why = f"the model gives {state} probability 0"
                raise ModelError(f"chain {c}, draw {d}: {why}; are these samples of this model?")


def _stuck(samples: np.ndarray, model: FactorGraph) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Variables that never moved in any chain and had no second possible value in any draw: frozen, or forced (beside
    their values)."""
    chains, draws, n = samples.shape
    if draws < 2 or not len(model.hard_factors):
        return None, None
    from definetti.samplers.kernels.graph import frozen_watch as kernels

    parts, starts = hard_parts(model), samples[:, 0]
    states = np.ascontiguousarray(samples.reshape(chains * draws, n).T)
    began = np.repeat(starts.T, draws, axis=1)
    waiting = np.unique(parts.scope).astype(np.int64)
    left = kernels.still_stuck(parts, states, np.int64(-1), began, chains * draws, waiting, len(waiting))
    frozen = truly_frozen(model, waiting[:left], starts)
    forced = np.setdiff1d(waiting[:left], frozen)
    return frozen, np.stack([forced, starts[0, forced]])


def _balance(samples: np.ndarray, question: GraphQuestion) -> Balance | None:
    """Samples against the full conditionals at the same states; None for models that no table kernel takes."""
    statistics = question.statistics
    if statistics.of_literal is None or not len(question.group.model.free):
        return None
    try:
        check = conditional_pass(question.group.model, statistics.of_literal, statistics.sizes)
    except TooLarge:
        return None
    return balance_of_states(check, samples)


def fold(samples: np.ndarray, question: GraphQuestion, burn_in: int) -> Draws:
    """Batch means of F."""
    batches = np.array_split(samples, min(BATCHES, samples.shape[1]), axis=1)
    return Draws(
        f=np.stack([_mean(part, question) for part in batches]),
        g=None,
        lengths=np.array([part.shape[1] for part in batches], dtype=np.int64),
        sizes=np.concatenate([question.statistics.sizes, question.statistics.event_sizes]),
        last=np.stack([_mean(part[:, -1:], question) for part in batches]),
        burn_in=burn_in,
    )


def _mean(part: np.ndarray, question: GraphQuestion) -> np.ndarray:
    """float64[chains, statistics]: F averaged over the draws of a batch."""
    slots, statistics, model = question.slots, question.statistics, question.group.model
    free = model.free
    chains, draws, _ = part.shape
    statistic = statistics.of_slot[slots.start[slots.row_of[free]] + part[:, :, free]]
    place = statistic + np.arange(chains)[:, None, None] * len(statistics.sizes)
    counts = np.bincount(place.ravel(), minlength=chains * len(statistics.sizes)).reshape(chains, -1)
    singles = counts / (statistics.sizes * draws)
    orbits = [members for event in question.events for members in event.tuples]
    if not orbits:
        return singles
    return np.concatenate([singles, _hits(part, orbits, model) / (statistics.event_sizes * draws)], axis=1)


def _hits(part: np.ndarray, orbits: Sequence[np.ndarray], model: FactorGraph) -> np.ndarray:
    """int64[chains, events]: how many tuples of each orbit hold, summed over the draws of part[chains, draws, n]."""
    event_start, start, variable, value = flat_tuples(orbits, model)
    step = max(1, MOST_LOOKED_UP // (len(variable) * part.shape[0]))
    total = np.zeros((part.shape[0], len(orbits)), dtype=np.int64)
    for lo in range(0, part.shape[1], step):
        holds = np.logical_and.reduceat(part[:, lo : lo + step, variable] == value, start[:-1], axis=2)
        total += np.add.reduceat(holds, event_start[:-1], axis=2, dtype=np.int64).sum(axis=1)
    return total
