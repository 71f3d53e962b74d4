"""What is to be estimated of a factor graph: rows or single variables, joint events, and what serves both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from definetti.constraints.graph.contract import Untied
from definetti.diagnose import Diagnosis
from definetti.errors import Notice
from definetti.estimators import ESTIMATORS
from definetti.estimators.gain import report, within_orbits
from definetti.estimators.values import Estimates
from definetti.groups import components
from definetti.inference.assemble import ROUNDING, assemble, judge, with_events
from definetti.inference.graph.alarms import alarms, once, with_forced
from definetti.inference.graph.certain import certain_statistics
from definetti.inference.graph.events import Event, build_event, observer, settled
from definetti.inference.graph.lift import Lift, lift
from definetti.inference.stopping import Look, worst
from definetti.model.graph.factors import FREE, FactorGraph
from definetti.model.marginals import Marginals
from definetti.model.queries import Query, parse_query
from definetti.samplers.draws import Draws
from definetti.samplers.graph.lanes import Slots, slots_of
from definetti.samplers.graph.mcsat import MCSat
from definetti.samplers.graph.sampling import Plan, Sampling, Statistics
from definetti.samplers.registry import Sampler
from definetti.samplers.tracking import Members, pick
from definetti.symmetry.graph.group import GraphSymmetries, none

CONDITIONALS_MEMORY = 1 << 30  # bytes: conditionals that nobody asked for may take so much


class Question(Protocol):
    """A model, what is asked of it and the group to average over."""

    def sampling(self, sampler: Any, plan: Plan, method: str) -> Any:
        """A run ready to start, its kernels loaded or compiled."""
        ...

    def conclude(self, draws: Draws, method: str, run: Mapping[str, Any], interrupted: bool) -> Marginals:
        """Estimates, errors and notices from the draws."""
        ...

    def measure(self, draws: Draws, method: str) -> Look:
        """The worst error of what is asked: the queries, or every row."""
        ...


@dataclass(frozen=True, eq=False)
class GraphQuestion:
    """A `Question` about a factor graph. Its group is trivial for the standard estimator."""

    group: GraphSymmetries
    queries: tuple[Query, ...]
    events: tuple[Event, ...]
    slots: Slots
    statistics: Statistics
    names: Mapping[str, Any]
    notices: tuple[Notice, ...]
    shown: FactorGraph  # the model whose variables are answered for: the sampled one, or the one it is the core of
    lift: Lift | None = None

    def sampling(self, sampler: Sampler, plan: Plan, method: str) -> Sampling:
        engine = sampler.engine(self.group.model, self.slots)
        costly = method not in ("conditional", "control") and engine.memory(plan.chains, True) > CONDITIONALS_MEMORY
        if costly or isinstance(getattr(sampler, "over", sampler), MCSat):  # a slice has no full conditionals
            plan = replace(plan, conditionals=False)
        made = Sampling(self.group.model, sampler, engine, self.statistics, plan)
        made.warm()
        return made

    def measure(self, draws: Draws, method: str) -> Look:
        _, found, _, names = self._estimated(draws, method)
        return worst(found, self._asked(names))

    def _estimated(self, draws: Draws, method: str) -> tuple[Estimates, Diagnosis, Draws, Mapping[str, Any]]:
        """Estimates and their errors, in terms of the model that is asked about."""
        draws = with_events(draws, self.events, self.names["singles"])
        estimates, names = ESTIMATORS[method](draws), self.names
        certain = with_forced(names["certain"], names["statistic_of"], self.group.model, draws.forced)
        if self.lift is not None:
            estimates, draws, names = self.lift.estimates(estimates), self.lift.draws(draws), self.lift.names
            certain = self.lift.columns(certain)
        return estimates, judge(estimates, draws, certain), draws, names

    def _asked(self, names: Mapping[str, Any]) -> np.ndarray:
        """The statistics that the queries, or all rows, are made of."""
        model, singles = self.shown, names["singles"]
        if not self.queries:
            return np.arange(singles)
        joint = singles + np.flatnonzero([bool(event.tuples) for event in self.events])
        single = [
            names["statistic_of"][self._literals(names, i)]
            for query in self.queries
            if query.kind == "variable" and model.evidence[i := query.variables[0]] == FREE
        ]
        return np.concatenate([*single, joint]).astype(np.int64)

    def _literals(self, names: Mapping[str, Any], variable: int) -> slice:
        """The literals of the variable that stands for this one's row."""
        i = names["row_representative"][names["row_of"][variable]]
        return slice(int(self.shown.literal_start[i]), int(self.shown.literal_start[i + 1]))

    def conclude(self, draws: Draws, method: str, run: Mapping[str, Any], interrupted: bool) -> Marginals:
        moved = within_orbits(draws, lambda k: self.group.model.names[self._variable(k)])
        estimates, found, draws, names = self._estimated(draws, method)
        notices = [*self.notices, *fallback_notices(estimates.fallback, method), *cut_notices(estimates.value), *moved]
        notices += alarms(self.group.model, draws.frozen, found)
        run = dict(run) | report(draws, estimates, found, method)
        made = assemble(self.shown, names, estimates, found, self.queries, self.events, run, notices, interrupted)
        return once(made, "frozen")

    def _variable(self, statistic: int) -> int:
        """A free variable of a statistic."""
        model = self.group.model
        free = np.repeat(model.evidence == FREE, model.cards)
        literal = np.flatnonzero(free & (self.names["statistic_of"] == statistic))[0]
        return int(np.searchsorted(model.literal_start, literal, side="right")) - 1


def cut_notices(values: np.ndarray) -> list[Notice]:
    """Fitted estimates can leave [0, 1]; they are cut to it."""
    outside = int(((values < -ROUNDING) | (values > 1 + ROUNDING)).sum())
    if not outside:
        return []
    return [Notice("note", f"{outside} estimates outside [0, 1] were cut to it; their errors are as they were")]


def fallback_notices(fallback: np.ndarray, method: str) -> list[Notice]:
    if not fallback.any():
        return []
    if method == "control":
        why = "too few batches to fit control variates, or none that vary,"
        text = f"{why} for {int(fallback.sum())} numbers; 'orbit' was used for them"
        return [Notice("fallback", text)]
    return [Notice("fallback", f"the estimator {method!r} does not apply to joint queries; 'orbit' was used for them")]


def _members(
    group: GraphSymmetries, statistic_of: np.ndarray, sizes: np.ndarray, tied: np.ndarray, seed: int
) -> Members | None:
    """The literals to track. Of a binary variable one value is tracked: the other has the same spread."""
    model = group.model
    literal_variable = np.repeat(np.arange(model.n), model.cards)
    statistic = np.where(model.evidence[literal_variable] == FREE, statistic_of, -1)
    if not len(sizes):
        return None
    statistic[(statistic >= 0) & (sizes[statistic] == 1)] = -1
    _, first = np.unique(tied, return_index=True)
    pairs = np.isin(tied, np.flatnonzero(np.bincount(tied) == 2))
    other = pairs & ~np.isin(np.arange(len(tied)), first)
    statistic[(statistic >= 0) & other[statistic]] = -1
    literals = pick(statistic, np.random.default_rng([seed, 2]))
    variable = literal_variable[literals]
    value = (literals - model.literal_start[variable]).astype(np.uint8)
    return Members(variable.astype(np.int32), value, statistic[literals]) if len(literals) else None


def _tied(of_slot: np.ndarray, row: np.ndarray) -> np.ndarray:
    """int64[K]: one number for the statistics that the values of a variable, or of a row, link (a value flip may link
    several rows)."""
    count = int(of_slot.max(initial=-1)) + 1
    return components(count + int(row.max(initial=-1)) + 1, of_slot, count + row)[:count].astype(np.int64)


def _variable_orbits(group: GraphSymmetries) -> np.ndarray:
    """int64[n]: variables that some element of the group carries into each other, with whatever values."""
    model = group.model
    linked = _tied(group.literal_orbit, np.repeat(np.arange(model.n), model.cards))
    return linked[group.literal_orbit[model.literal_start[:-1]]]


def ask(
    group: GraphSymmetries,
    queries: Sequence[str | Query],
    method: str,
    seed: int,
    untied: Untied | None = None,
    more_notices: Sequence[Notice] = (),
) -> GraphQuestion:
    """Parse the queries and lay out the statistics for an estimator; `untied` if the group is of a model's core."""
    model = group.model
    shown = model if untied is None else untied.model
    parsed = tuple(query if isinstance(query, Query) else parse_query(query, shown) for query in queries)
    over_orbit = method != "standard"
    used = group if over_orbit else none(model)
    events: list[Event] = []
    notices = [*group.notices, *more_notices]
    rng = np.random.default_rng([seed, 1])
    carried = [query if untied is None else untied.query(query) for query in parsed]
    for query, event_query in zip(parsed, settled(model, carried), strict=True):
        if query.kind != "event" or any(query.text == event.query.text for event in events):
            continue
        if isinstance(event_query, bool):
            events.append(Event(query, (), int(event_query), 1))
            continue
        event, more = build_event(event_query, group, over_orbit, rng)
        events.append(event)
        notices += more
    slots = slots_of(model, used.row_of)
    representative = used.row_representative
    first = model.literal_start[representative]
    literals = np.repeat(first - slots.start[:-1], slots.cards) + np.arange(slots.count)
    distinct, of_slot = np.unique(used.literal_orbit[literals], return_inverse=True)
    of_slot = of_slot.ravel().astype(np.int64)
    sizes = np.bincount(of_slot, weights=slots.size_of_slot, minlength=len(distinct)).astype(np.int64)
    tied = _tied(of_slot, np.repeat(np.arange(len(slots.cards)), slots.cards))
    watch, event_sizes = observer(events, model)
    statistic_of = np.searchsorted(distinct, used.literal_orbit)
    names = {
        "row_of": used.row_of,
        "row_size": used.row_size,
        "row_representative": representative,
        "statistic_of": statistic_of,
        "singles": len(distinct),
        "certain": certain_statistics(model, slots, of_slot, statistic_of, events),
    }
    members = _members(used, names["statistic_of"], sizes, tied, seed)
    statistics = Statistics(of_slot, sizes, watch, event_sizes, tied, members, _variable_orbits(group))
    lifted = None if untied is None else lift(untied, names)
    return GraphQuestion(used, parsed, tuple(events), slots, statistics, names, tuple(notices), shown, lifted)
