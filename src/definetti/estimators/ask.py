"""What is to be estimated of a factor graph: rows or single variables, joint events, and the statistics that serve both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from definetti.errors import Notice
from definetti.estimators import ESTIMATORS
from definetti.estimators.assemble import assemble, judge, with_events
from definetti.estimators.certain import certain_statistics
from definetti.estimators.events import Event, build_event, observer
from definetti.model.factors import FREE
from definetti.model.marginals import Marginals
from definetti.model.queries import Query, parse_query
from definetti.samplers.blocks import Slots, slots_of
from definetti.samplers.chains import Plan, Sampling, Statistics
from definetti.samplers.draws import Draws
from definetti.samplers.gibbs import Gibbs
from definetti.symmetry.factors import Symmetries, none

CONDITIONALS_MEMORY = 1 << 30  # bytes: conditionals that nobody asked for may take so much


class Question(Protocol):
    """A model, what is asked of it and the group to average over."""

    def sampling(self, sampler: Gibbs, plan: Plan, method: str) -> Any:
        """A run ready to start, its kernels loaded or compiled."""
        ...

    def largest_error(self, draws: Draws, method: str) -> float | None:
        """The largest standard error of what is asked: the queries, or every row. None where one cannot be told yet."""
        ...

    def conclude(self, draws: Draws, method: str, run: Mapping[str, Any], interrupted: bool) -> Marginals:
        """Estimates, errors and notices from the draws."""
        ...


@dataclass(frozen=True, eq=False)
class GraphQuestion:
    """A `Question` about a factor graph. Its group is trivial for the standard estimator."""

    group: Symmetries
    queries: tuple[Query, ...]
    events: tuple[Event, ...]
    slots: Slots
    statistics: Statistics
    names: Mapping[str, Any]
    notices: tuple[Notice, ...]

    def sampling(self, sampler: Gibbs, plan: Plan, method: str) -> Sampling:
        engine = sampler.engine(self.group.model, self.slots)
        if method != "conditional" and engine.memory(plan.chains, True) > CONDITIONALS_MEMORY:
            plan = replace(plan, conditionals=False)
        made = Sampling(self.group.model, sampler, engine, self.statistics, plan)
        made.warm()
        return made

    def largest_error(self, draws: Draws, method: str) -> float | None:
        draws = with_events(draws, self.events, self.names["singles"])
        errors = judge(ESTIMATORS[method](draws), draws, self.names["certain"]).mcse[self._asked()]
        return None if np.isnan(errors).any() else float(errors.max(initial=0.0))

    def _asked(self) -> np.ndarray:
        """The statistics that the queries, or all rows, are made of."""
        model, singles = self.group.model, self.names["singles"]
        if not self.queries:
            return np.arange(singles)
        joint = singles + np.flatnonzero([bool(event.tuples) for event in self.events])
        single = [
            self.names["statistic_of"][model.literal_start[i] : model.literal_start[i + 1]]
            for query in self.queries
            if query.kind == "variable" and model.evidence[i := query.variables[0]] == FREE
        ]
        return np.concatenate([*single, joint]).astype(np.int64)

    def conclude(self, draws: Draws, method: str, run: Mapping[str, Any], interrupted: bool) -> Marginals:
        draws = with_events(draws, self.events, self.names["singles"])
        estimates = ESTIMATORS[method](draws)
        notices = [*self.notices, *fallback_notices(estimates.fallback, method)]
        found = judge(estimates, draws, self.names["certain"])
        return assemble(
            self.group.model, self.names, estimates, found, self.queries, self.events, run, notices, interrupted
        )


def fallback_notices(fallback: np.ndarray, method: str) -> list[Notice]:
    if not fallback.any():
        return []
    return [Notice("fallback", f"the estimator {method!r} does not apply to joint queries; 'orbit' was used for them")]


def ask(group: Symmetries, queries: Sequence[str | Query], method: str, seed: int) -> GraphQuestion:
    """Parse the queries and lay out the statistics for an estimator."""
    model = group.model
    parsed = tuple(query if isinstance(query, Query) else parse_query(query, model) for query in queries)
    over_orbit = method != "standard"
    used = group if over_orbit else none(model)
    events: list[Event] = []
    notices = list(group.notices)
    rng = np.random.default_rng([seed, 1])
    for query in parsed:
        if query.kind == "event" and all(query.text != event.query.text for event in events):
            event, more = build_event(query, group, over_orbit, rng)
            events.append(event)
            notices += more
    slots = slots_of(model, used.row_of)
    representative = used.row_representative
    first = model.literal_start[representative]
    literals = np.repeat(first - slots.start[:-1], slots.cards) + np.arange(slots.count)
    distinct, of_slot = np.unique(used.literal_orbit[literals], return_inverse=True)
    of_slot = of_slot.ravel().astype(np.int64)
    sizes = np.bincount(of_slot, weights=slots.size_of_slot, minlength=len(distinct)).astype(np.int64)
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
    statistics = Statistics(of_slot, sizes, watch, event_sizes)
    return GraphQuestion(used, parsed, tuple(events), slots, statistics, names, tuple(notices))
