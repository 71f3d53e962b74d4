"""From estimates of a factor graph's statistics to Marginals: rows, queries, and the alarms of chains that cannot get
everywhere.

Variables that never could move, and chains that each see another part: a number from such chains may look perfect,
because symmetry averages it. The alarm comes from the variables, not from the number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from definetti.diagnose import Diagnosis
from definetti.errors import Notice
from definetti.estimators.values import Estimates
from definetti.inference.assemble import answer, doubts
from definetti.model.graph.factors import FactorGraph
from definetti.model.marginals import Estimate, Marginals, OrbitRow, Variables
from definetti.samplers.draws import Draws, with_more

if TYPE_CHECKING:
    from definetti.inference.graph.events import Event
    from definetti.model.queries import Query

SHOWN = 5
APART = 2.0  # an R-hat beyond this says that chains do not look at the same states, not that they are slow


@dataclass(frozen=True, eq=False)
class Columns:
    """Where the answers stand among the statistics: a row is a set of variables with equal marginals."""

    row_of: np.ndarray  # int32[n], -1 for observed variables
    row_size: np.ndarray  # int64[rows]
    row_representative: np.ndarray  # int64[rows]: a variable of the row
    statistic_of: np.ndarray  # int64[literals]
    singles: int  # statistics of single literals; those of joint events follow
    certain: np.ndarray  # float64[statistics]: what is known beforehand, NaN elsewhere
    bounds: np.ndarray  # float64[statistics]: how far off that may be

    def of(self, model: FactorGraph, variable: int) -> np.ndarray:
        """The statistics of a free variable's values."""
        i = self.row_representative[self.row_of[variable]]
        return self.statistic_of[model.literal_start[i] : model.literal_start[i + 1]]


def with_events(draws: Draws, events: Sequence[Event], singles: int) -> Draws:
    """The draws with one column per event (the sum of its conjunctions) after the single-literal columns; those of
    formulas follow as they are."""
    if not events:
        return draws
    first = singles + sum(len(event.tuples) for event in events)  # of the formulas
    joint = len(events) + draws.f.shape[2] - first

    def join(batches: np.ndarray, unknown: float | None = None) -> np.ndarray:
        columns, at = [], singles
        for event in events:
            part = event.certain + event.sign * batches[:, :, at : at + len(event.tuples)].sum(axis=2)
            columns.append(np.full_like(part, unknown) if unknown is not None else part)
            at += len(event.tuples)
        return np.concatenate([batches[:, :, :singles], np.stack(columns, axis=2), batches[:, :, first:]], axis=2)

    g = None if draws.g is None else join(draws.g, np.nan)
    assert draws.last is not None
    sizes = [*draws.sizes[:singles], *(event.orbit_size for event in events), *draws.sizes[first:]]
    groups = None
    if draws.groups is not None:
        single = draws.groups[:singles]
        groups = np.append(single, np.arange(joint) + single.max(initial=-1) + 1)
    return replace(
        draws,
        f=join(draws.f),
        last=join(draws.last),
        left_out=None if draws.left_out is None else with_more(draws.left_out[:singles], singles + joint),
        g=g,
        drawn=None if draws.drawn is None else join(draws.drawn, np.nan),
        sizes=np.array(sizes, dtype=np.int64),
        groups=groups,
        warm=None if draws.warm is None else (draws.warm[0], draws.warm[1][:, :singles]),
    )


def assemble(
    model: FactorGraph,
    columns: Columns,
    estimates: Estimates,
    found: Diagnosis,
    queries: Sequence[Query],
    events: Sequence[Event],
    run: Mapping[str, Any],
    notices: Sequence[Notice],
    interrupted: bool = False,
    derived: Mapping[str, Estimate] | None = None,
    order: Sequence[str] = (),
) -> Marginals:
    """`derived`: answers that are made of several statistics; `order` of the queries, if not their own."""
    rows, half_width = [], found.half_width
    for i, size in zip(columns.row_representative.tolist(), columns.row_size.tolist(), strict=True):
        values = columns.statistic_of[model.literal_start[i] : model.literal_start[i + 1]]
        one_value: dict[str, Any] = {"probability": 0.0, "mcse": 0.0}  # never value 1
        fields = answer(estimates, found, half_width, values) if len(values) > 1 else one_value
        rows.append(OrbitRow(model.names[i], size, **fields))
    members = Variables(model.names, columns.row_of, model.evidence, model.cards, model.index)
    marginals = Marginals(tuple(rows), members, run=run, interrupted=interrupted)
    place = {event.query.text: columns.singles + k for k, event in enumerate(events)}
    asked: dict[str, Estimate] = {}
    for query in queries:
        if query.text in place:
            event = events[place[query.text] - columns.singles]
            fields = answer(estimates, found, half_width, np.array([place[query.text]]))
            asked[query.text] = Estimate(**fields, orbit_size=event.orbit_size)
            if not event.tuples:
                asked[query.text] = Estimate(float(event.certain > 0), 0.0, None, None, 1)
        else:
            asked[query.text] = marginals[model.names[query.variables[0]]]
    for query in queries:
        if query.given is not None:
            asked.pop(query.given.text, None)
    asked |= derived or {}
    asked = {text: asked[text] for text in order} if order else asked
    doubt = doubts(rows, asked) + _frozen(columns, found, model)
    return Marginals(tuple(rows), members, asked, run, (*notices, *doubt), interrupted=interrupted)


def _frozen(columns: Columns, found: Diagnosis, model: FactorGraph) -> list[Notice]:
    """Variables that no update could move, though hard factors do not fix them by themselves."""
    first = model.literal_start[columns.row_representative]
    stuck = np.flatnonzero(found.frozen[columns.statistic_of[first]]) if len(first) else first
    if not len(stuck):
        return []
    name, count = model.names[columns.row_representative[stuck[0]]], int(columns.row_size[stuck].sum())
    text = (
        f"{count} variables never moved, {name} among them: at every update one value was certain. "
        "Either the model forces them, or single-site moves cannot reach the other values"
    )
    return [Notice("frozen", text)]


def alarms(model: FactorGraph, frozen: np.ndarray | None, found: Diagnosis) -> list[Notice]:
    out = []
    if frozen is not None and len(frozen):
        names = ", ".join(model.names[i] for i in frozen[:SHOWN].tolist())
        more = ", …" if len(frozen) > SHOWN else ""
        text = (
            f"{len(frozen)} of {len(model.free)} variables never had a second possible value given all others, "
            f"in any chain ({names}{more}): the chains stay where they started, whatever the numbers look like"
        )
        out.append(Notice("frozen", text))
    with np.errstate(invalid="ignore"):
        apart = int((found.rhat > APART).sum())
    if apart:
        text = f"the chains see different parts of what is possible in {apart} numbers"
        out.append(Notice("divided", text))
    return out


def with_forced(
    certain: np.ndarray, statistic_of: np.ndarray, model: FactorGraph, forced: np.ndarray | None
) -> np.ndarray:
    """What is certain, with the variables that the solver found to have one value only (rows: variables, values)."""
    if forced is None or not forced.size:
        return certain
    certain = certain.copy()
    for i, value in forced.T.tolist():
        literals = statistic_of[model.literal_start[i] : model.literal_start[i + 1]]
        certain[np.delete(literals, value)] = 0.0
        certain[literals[value]] = 1.0
    return certain


def with_notice_once(made: Marginals, kind: str) -> Marginals:
    """With the first notice of a kind only: variables and statistics may both have raised the same alarm."""
    first = next((k for k, notice in enumerate(made.notices) if notice.kind == kind), None)
    kept = tuple(notice for k, notice in enumerate(made.notices) if notice.kind != kind or k == first)
    return replace(made, notices=kept)
