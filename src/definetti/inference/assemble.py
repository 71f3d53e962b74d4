"""From estimates of statistics to Marginals: rows, queries, and the notices that say which numbers cannot be
trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from definetti.diagnose import Diagnosis, diagnose, weighted_mean
from definetti.errors import Notice
from definetti.estimators.values import METHODS, ORBIT, Estimates
from definetti.inference.graph.events import Event
from definetti.model.graph.factors import FactorGraph
from definetti.model.marginals import Estimate, Marginals, OrbitRow, Variables
from definetti.model.queries import Query
from definetti.samplers.draws import Draws

MOST_RHAT = 1.05
FEWEST_ESS = 100.0
ROUNDING = 1e-14


def with_events(draws: Draws, events: Sequence[Event], singles: int) -> Draws:
    """The draws with one column per event (the sum of its conjunctions) after the single-literal columns."""
    if not events:
        return draws

    def join(batches: np.ndarray, unknown: float | None = None) -> np.ndarray:
        columns, at = [], singles
        for event in events:
            part = event.certain + event.sign * batches[:, :, at : at + len(event.tuples)].sum(axis=2)
            columns.append(np.full_like(part, unknown) if unknown is not None else part)
            at += len(event.tuples)
        return np.concatenate([batches[:, :, :singles], np.stack(columns, axis=2)], axis=2)

    g = None if draws.g is None else join(draws.g, np.nan)
    assert draws.last is not None
    sizes = [*draws.sizes[:singles], *(event.orbit_size for event in events)]
    groups = None
    if draws.groups is not None:
        single = draws.groups[:singles]
        groups = np.append(single, np.arange(len(events)) + single.max(initial=-1) + 1)
    return replace(
        draws,
        f=join(draws.f),
        last=join(draws.last),
        g=g,
        drawn=None if draws.drawn is None else join(draws.drawn, np.nan),
        sizes=np.array(sizes, dtype=np.int64),
        groups=groups,
    )


def judge(estimates: Estimates, draws: Draws, certain: np.ndarray) -> Diagnosis:
    """Errors of the estimates. `certain`: what the model alone makes known (see `certain_statistics`), NaN elsewhere.

    A statistic that never moved is exact only where it is certain. Otherwise it is rare, and its conditionals say how
    rare; or no update could have moved it, and it is frozen; or nothing can be told.
    """
    found = diagnose(estimates.batches, draws.lengths, draws.f, draws.squares, draws.sizes)
    if not draws.f.shape[0]:
        return found
    if draws.unfinished:
        unknown = np.full_like(found.mcse, np.nan)
        return replace(found, mcse=unknown, rhat=unknown, ess=unknown)
    still = draws.f[0, 0]
    g = np.full_like(still, np.nan) if draws.g is None else weighted_mean(draws.g, draws.lengths)
    exact = found.constant & (np.abs(still - certain) < 1e-12)
    frozen = found.constant & ~exact & (np.abs(g - still) < 1e-12)
    rare = np.where(np.isnan(found.mcse), np.nan, np.sqrt(g * (1 - g) / (draws.sweeps * draws.chains)))
    rare = np.where(estimates.method <= ORBIT, rare, found.mcse)  # the conditionals have an error of their own
    mcse = np.where(found.constant, np.where(frozen, np.nan, rare), found.mcse)
    known = exact | (np.abs(estimates.value - certain) < 1e-12)  # a conditional that depends on nothing is the answer
    # conditionals that were the same in all states met: those not met have a probability of about one in the draws
    unmet = ~known & (mcse < ROUNDING)
    mcse = np.where(known, 0.0, np.where(unmet, 1.0 / (draws.sweeps * draws.chains), mcse))
    ess = np.where(known | unmet | found.constant, np.nan, found.ess)  # no spread to compare the error with
    return replace(found, mcse=mcse, ess=ess, frozen=frozen)


def assemble(
    model: FactorGraph,
    names: Mapping[str, Any],
    estimates: Estimates,
    found: Diagnosis,
    queries: Sequence[Query],
    events: Sequence[Event],
    run: Mapping[str, Any],
    notices: Sequence[Notice],
    interrupted: bool = False,
) -> Marginals:
    """`names`: row_of, row_size, row_representative, and statistic_of (literal → statistic)."""
    statistic_of, singles, half_width = names["statistic_of"], names["singles"], found.half_width

    def answer(columns: np.ndarray) -> dict[str, Any]:
        if len(columns) == 2:
            columns = columns[1:]
        fields = {
            "probability": np.clip(estimates.value[columns], 0.0, 1.0),
            "mcse": found.mcse[columns],
            "rhat": found.rhat[columns],
            "ess": found.ess[columns],
            "half_width": half_width[columns],
        }
        made: dict[str, Any] = {"estimator": METHODS[estimates.method[columns[0]]]} if len(columns) else {}
        if len(columns) == 1:
            made["constant"] = bool(found.constant[columns[0]])
            return made | {key: number(value[0]) for key, value in fields.items()}
        made["constant"] = found.constant[columns].tolist()
        return made | {key: [number(v) for v in value] for key, value in fields.items()}

    rows = []
    for i, size in zip(names["row_representative"].tolist(), names["row_size"].tolist(), strict=True):
        columns = statistic_of[model.literal_start[i] : model.literal_start[i + 1]]
        one_value: dict[str, Any] = {"probability": 0.0, "mcse": 0.0}  # never value 1
        fields = answer(columns) if len(columns) > 1 else one_value
        rows.append(OrbitRow(model.names[i], size, **fields))
    members = Variables(model.names, names["row_of"], model.evidence, model.cards, model.index)
    marginals = Marginals(tuple(rows), members, run=run, interrupted=interrupted)
    place = {event.query.text: singles + k for k, event in enumerate(events)}
    asked: dict[str, Estimate] = {}
    for query in queries:
        if query.text in place:
            event = events[place[query.text] - singles]
            fields = answer(np.array([place[query.text]]))
            asked[query.text] = Estimate(**fields, orbit_size=event.orbit_size)
            if not event.tuples:
                asked[query.text] = Estimate(float(event.certain > 0), 0.0, None, None, 1)
        else:
            asked[query.text] = marginals[model.names[query.variables[0]]]
    doubt = doubts(rows, asked) + _frozen(names, found, model)
    return Marginals(tuple(rows), members, asked, run, (*notices, *doubt), interrupted=interrupted)


def number(value: float) -> float | None:
    """None for what cannot be told; an infinite R-hat stays, since it tells much."""
    return None if np.isnan(value) else float(value)


def _frozen(names: Mapping[str, Any], found: Diagnosis, model: FactorGraph) -> list[Notice]:
    """Variables that no update could move, though hard factors do not fix them by themselves."""
    first = model.literal_start[names["row_representative"]]
    stuck = np.flatnonzero(found.frozen[names["statistic_of"][first]]) if len(first) else first
    if not len(stuck):
        return []
    name, count = model.names[names["row_representative"][stuck[0]]], int(names["row_size"][stuck].sum())
    return [frozen_notice(name, count)]


def frozen_notice(name: str, count: int) -> Notice:
    text = (
        f"{count} variables never moved, {name} among them: at every update one value was certain. "
        "Either the model forces them, or single-site moves cannot reach the other values"
    )
    return Notice("frozen", text)


def doubts(rows: Sequence[OrbitRow], asked: Mapping[str, Estimate]) -> list[Notice]:
    """What fails: R-hat above 1.05, effective size below 100, or no standard error or no R-hat at all (for want of
    sweeps, or of any draw that differs)."""
    printed = [(row.representative, row) for row in rows] + list(asked.items())
    loose, few, unknown, unsure, still = [], [], [], [], []
    total = sum(len(_list(row.mcse)) for _, row in printed)
    for name, row in printed:
        constant = np.broadcast_to(row.constant, len(_list(row.mcse))).tolist()
        for mcse, rhat, ess, same in zip(_list(row.mcse), _list(row.rhat), _list(row.ess), constant, strict=True):
            if mcse == 0.0:
                continue
            if mcse is None:
                unknown.append(name)
            elif rhat is None:
                (still if same else unsure).append(name)
            elif rhat > MOST_RHAT:
                loose.append((rhat, name))
            elif ess is not None and ess < FEWEST_ESS:
                few.append((ess, name))

    def many(doubtful: Sequence[object]) -> str:
        return f"{len(doubtful)} of {total} numbers"

    out = []
    if loose:
        worst, name = max(loose)
        text = f"R-hat is above {MOST_RHAT} for {many(loose)}, the worst {worst:.3g} for {name}"
        out.append(Notice("not-mixed", text))
    if few:
        worst, name = min(few)
        text = f"the effective size is below {FEWEST_ESS:.0f} for {many(few)}, the smallest {worst:.3g} for {name}"
        out.append(Notice("few-samples", text + "; run more sweeps"))
    if unknown:
        text = f"too few draws to tell an error for {many(unknown)}, {unknown[0]} among them; run more sweeps"
        out.append(Notice("few-samples", text))
    if unsure:
        text = f"too few sweeps to tell whether the chains have mixed for {many(unsure)}, {unsure[0]} among them"
        out.append(Notice("few-samples", text + "; run more sweeps"))
    if still:
        text = f"constant in all draws: {many(still)}, {still[0]} among them. What was not met is rare, or out of reach"
        out.append(Notice("few-samples", text + "; R-hat cannot tell which"))
    return out


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
