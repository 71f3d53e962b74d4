"""What is to be estimated of a factor graph: rows or single variables, joint events, and what serves both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from definetti.diagnose import Diagnosis, weighted_mean
from definetti.errors import Notice
from definetti.estimators import ESTIMATORS
from definetti.estimators.gain import report, within_orbits
from definetti.estimators.values import Estimates
from definetti.groups import components
from definetti.inference.assemble import Estimated, concentrated_notices, cut_notices, fallback_notices, judge
from definetti.inference.graph.assemble import Columns, alarms, assemble, with_events, with_forced, with_notice_once
from definetti.inference.graph.certain import certain_statistics
from definetti.inference.graph.rare_neighbours import least_variance
from definetti.inference.stopping import Look, worst
from definetti.inference.trace import Trace, trace
from definetti.model.graph.factors import FREE, FactorGraph
from definetti.model.marginals import Marginals
from definetti.samplers.draws import Draws, pick_members
from definetti.samplers.graph.lanes import Members, Slots, slots_of
from definetti.samplers.graph.sampling import GraphSampling, Statistics
from definetti.samplers.protocol import GraphSampler, Plan
from definetti.symmetry.graph.group import GraphSymmetries, none

if TYPE_CHECKING:
    from definetti.constraints.graph.contract import Contracted
    from definetti.inference.derived import Derived
    from definetti.inference.graph.events import Event
    from definetti.inference.graph.lift import Lift
    from definetti.inference.question import Formulas
    from definetti.model.queries import Query
    from definetti.modes.graph.walkers import GraphWalkers

MOST_ROWS = 100  # of a region that are shown
CONDITIONALS_MEMORY = 1 << 30  # bytes: conditionals that nobody asked for may take so much


@dataclass(frozen=True, eq=False)
class GraphQuestion:
    """A `Question` about a factor graph. Its group is trivial for the standard estimator."""

    group: GraphSymmetries
    queries: tuple[Query, ...]
    events: tuple[Event, ...]
    slots: Slots
    statistics: Statistics
    columns: Columns
    notices: tuple[Notice, ...]
    shown: FactorGraph  # the model whose variables are answered for: the sampled one, or the one it is the core of
    lift: Lift | None = None
    formulas: Formulas | None = None
    derived: tuple[Derived, ...] = ()  # answers made of several statistics; columns from the first joint one on
    given: np.ndarray | None = None  # float64[literals]: what the model as given says of single variables

    def sampling(self, sampler: GraphSampler, plan: Plan, method: str) -> GraphSampling:
        engine = sampler.engine(self.group.model, self.slots)
        costly = not ESTIMATORS[method].conditionals and engine.memory(plan.chains, True) > CONDITIONALS_MEMORY
        if costly or not sampler.conditionals:
            plan = replace(plan, conditionals=False)
        made = GraphSampling(self.group.model, sampler, engine, self.statistics, plan)
        made.warm()
        return made

    def measure(self, draws: Draws, method: str) -> Look:
        made = self.estimated(draws, method)
        look = worst(made.found, self._asked(), made.estimates.batches)
        if not self.derived:
            return look
        from definetti.inference.derived import with_ratios

        return with_ratios(look, made, self._derived)

    @property
    def _derived(self) -> list[Derived]:
        return [query.after(self._shown_columns.singles) for query in self.derived]

    @property
    def sites(self) -> int:
        return len(self.group.model.free)

    def walkers(self, sampler: GraphSampler) -> GraphWalkers | None:
        """Chains that look for modes; None where the model is too large, or the sampler cannot be watched."""
        from definetti.modes.graph.walkers import MOST_SEEN, MOST_SITES, EngineWalkers, GraphWalkers

        if not 0 < len(self.group.model.free) <= MOST_SITES or len(self.statistics.sizes) > MOST_SEEN:
            return None
        parts = (self.group, self.statistics, self.columns.statistic_of, self.slots, self.given)
        if sampler.single_site:
            return GraphWalkers(*parts)
        return EngineWalkers(*parts, sampler) if sampler.name in ("blocks", "swendsen-wang") else None

    def beyond(self, draws: Draws) -> list[Notice]:
        return []

    @property
    def _shown_columns(self) -> Columns:
        """Of the model that is asked about."""
        return self.columns if self.lift is None else self.lift.shown

    def estimated(self, draws: Draws, method: str) -> Estimated:
        """Estimates and their errors, in terms of the model that is asked about."""
        draws = with_events(draws, self.events, self.columns.singles)
        estimates = ESTIMATORS[method](draws)
        certain = with_forced(self.columns.certain, self.columns.statistic_of, self.group.model, draws.forced)
        if self.formulas is not None:
            certain = self.formulas.with_proofs(certain, draws.f)
        least = least_variance(self.group.model, self.columns.statistic_of, estimates.value, draws)
        bounds = self.columns.bounds
        if self.lift is not None:
            estimates, draws = self.lift.estimates(estimates), self.lift.draws(draws)
            certain, bounds, least = (self.lift.columns(column) for column in (certain, bounds, least))
        return Estimated(estimates, judge(estimates, draws, certain, bounds, least), draws)

    def _asked(self) -> np.ndarray:
        """The statistics that the queries, or all rows, are made of."""
        model, columns = self.shown, self._shown_columns
        formulas = 0 if self.formulas is None else len(self.formulas.sizes)
        if not self.queries and not formulas:
            return np.arange(columns.singles)
        joint = np.flatnonzero([bool(event.tuples) for event in self.events])
        joint = columns.singles + np.append(joint, len(self.events) + np.arange(formulas))
        single = [
            columns.of(model, i)
            for query in self.queries
            if query.kind == "variable" and model.evidence[i := query.variables[0]] == FREE
        ]
        return np.concatenate([*single, joint]).astype(np.int64)

    def _biased(self, draws: Draws, run: Mapping[str, Any]) -> tuple[dict[str, Any], list[Notice]]:
        """Draws against full conditionals, in terms of the model that was sampled."""
        if draws.balance is None:
            return {}, []
        from definetti.inference.bias import CURES, bias_findings

        frequency = weighted_mean(draws.f[:, :, : self.columns.singles], draws.lengths)
        cure = CURES["samples" if run.get("sampler") == "samples" else "run"]
        return bias_findings(draws.balance, frequency, lambda k: self.group.model.names[self._variable(k)], cure)

    def conclude(self, draws: Draws, method: str, run: Mapping[str, Any], interrupted: bool) -> Marginals:
        moved = within_orbits(draws, lambda k: self.group.model.names[self._variable(k)])
        moved += concentrated_notices(draws, lambda k: self.group.model.names[self._variable(k)])
        tested, biased = self._biased(draws, run)
        return self.present(self.estimated(draws, method), method, dict(run) | tested, [*moved, *biased], interrupted)

    def present(
        self, made: Estimated, method: str, run: Mapping[str, Any], more: Sequence[Notice], interrupted: bool
    ) -> Marginals:
        """The answer that estimates and their errors make."""
        estimates, found, draws = made.estimates, made.found, made.draws
        notices = [*self.notices, *fallback_notices(estimates.fallback, method), *cut_notices(estimates.value), *more]
        notices += alarms(self.group.model, draws.frozen, found)
        run = dict(run) | report(draws, estimates, found, method)
        shown = (self.shown, self._shown_columns)
        derived: dict[str, Any] = {}
        if self.derived:
            from definetti.inference.derived import answers

            derived, said = answers(made, self._derived)
            notices += said
        order = () if self.formulas is None else self.formulas.order
        answer = assemble(
            *shown, estimates, found, self.queries, self.events, run, notices, interrupted, derived, order
        )  # fmt: skip
        return replace(with_notice_once(answer, "frozen"), trace=self.traced(draws, estimates, found))

    def traced(self, draws: Draws, estimates: Estimates, found: Diagnosis) -> Trace | None:
        """Of every row: value 1 of two, all values of more; joint events under their text."""
        model, columns = self.shown, self._shown_columns
        names: dict[int, str] = {}
        sizes = np.zeros(len(found.mcse), dtype=np.int64)
        for i, size in zip(columns.row_representative.tolist(), columns.row_size.tolist(), strict=True):
            values = columns.statistic_of[model.literal_start[i] : model.literal_start[i + 1]].tolist()
            several = len(values) > 2
            for v, k in enumerate(values if several else values[1:]):
                names.setdefault(k, f"{model.names[i]}={v}" if several else model.names[i])
                sizes[k] = max(sizes[k], size)
        asked = np.array([k for k in self._asked().tolist() if k >= columns.singles or k in names], dtype=np.int64)
        joint = [event.query.text for event in self.events]
        joint += [] if self.formulas is None else self.formulas.texts
        names |= {columns.singles + k: text for k, text in enumerate(joint)}
        rows = np.array([k for k in names if k < columns.singles], dtype=np.int64)
        return trace(
            draws,
            estimates,
            found,
            asked if self.queries or self.formulas else rows[:0],
            rows,
            sizes,
            names.__getitem__,
        )

    def rows(self, means: np.ndarray) -> dict[str, Any]:
        """What the means of the statistics say of each row: P(value 1), or of all values."""
        means = means[: self.columns.singles]
        if self.lift is not None:
            means = self.lift.columns(means)
        model, columns, out = self.shown, self._shown_columns, {}
        for i in columns.row_representative[:MOST_ROWS].tolist():
            values = means[columns.statistic_of[model.literal_start[i] : model.literal_start[i + 1]]]
            out[model.names[i]] = float(values[1]) if len(values) == 2 else [float(v) for v in values]
        return out

    def _variable(self, statistic: int) -> int:
        """A free variable of a statistic."""
        model = self.group.model
        free = np.repeat(model.evidence == FREE, model.cards)
        literal = np.flatnonzero(free & (self.columns.statistic_of == statistic))[0]
        return int(np.searchsorted(model.literal_start, literal, side="right")) - 1


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
    literals = pick_members(statistic, np.random.default_rng([seed, 2]))
    variable = literal_variable[literals]
    value = (literals - model.literal_start[variable]).astype(np.uint8)
    return Members(variable.astype(np.int32), value, statistic[literals]) if len(literals) else None


def _free_statistics(model: FactorGraph, statistic_of: np.ndarray) -> np.ndarray:
    """int64[literals]: the statistic of each literal, -1 for those of observed variables."""
    return np.where(model.evidence[model.variable_of] == FREE, statistic_of, -1)


def _tied(of_slot: np.ndarray, row: np.ndarray) -> np.ndarray:
    """int64[K]: one number for the statistics that the values of a variable, or of a row, link (a value flip may link
    several rows)."""
    count = int(of_slot.max(initial=-1)) + 1
    return components(count + int(row.max(initial=-1)) + 1, of_slot, count + row)[:count].astype(np.int64)


def variable_orbits(group: GraphSymmetries) -> np.ndarray:
    """int64[n]: variables that some element of the group carries into each other, with whatever values."""
    model = group.model
    linked = _tied(group.literal_orbit, np.repeat(np.arange(model.n), model.cards))
    return linked[group.literal_orbit[model.literal_start[:-1]]]


def ask(
    group: GraphSymmetries,
    queries: Sequence[str | Query],
    method: str,
    seed: int,
    untied: Contracted | None = None,
    more_notices: Sequence[Notice] = (),
    formulas: Formulas | None = None,
) -> GraphQuestion:
    """Parse the queries and lay out the statistics for an estimator; `untied` if the group is of a model's core."""
    model = group.model
    shown = model if untied is None else untied.model
    used = none(model) if method == "standard" else group
    parsed, events, watch, event_sizes = (), (), None, np.zeros(0, dtype=np.int64)
    notices = [*group.notices, *more_notices]
    if queries or formulas is not None:
        from definetti.inference.graph.events import events_of, observer, parse

        parsed = parse(queries, shown)
        carried = [query if untied is None else untied.query(query) for query in parsed]
        events, more = events_of(parsed, carried, group, method != "standard", np.random.default_rng([seed, 1]))
        watch, event_sizes = observer(events, model, formulas, untied)
        notices += more
    slots = slots_of(model, used.row_of)
    representative = used.row_representative
    first = model.literal_start[representative]
    literals = np.repeat(first - slots.start[:-1], slots.cards) + np.arange(slots.count)
    distinct, of_slot = np.unique(used.literal_orbit[literals], return_inverse=True)
    of_slot = of_slot.ravel().astype(np.int64)
    sizes = np.bincount(of_slot, weights=slots.size_of_slot, minlength=len(distinct)).astype(np.int64)
    tied = _tied(of_slot, np.repeat(np.arange(len(slots.cards)), slots.cards))
    statistic_of = np.searchsorted(distinct, used.literal_orbit)
    certain, bounds = certain_statistics(model, slots, of_slot, statistic_of, events)
    if formulas is not None:
        certain = np.append(certain, formulas.certain(shown.evidence))
        bounds = np.append(bounds, np.zeros(len(formulas.sizes)))
        notices += formulas.notices
    columns = Columns(
        row_of=used.row_of,
        row_size=used.row_size,
        row_representative=representative,
        statistic_of=statistic_of,
        singles=len(distinct),
        certain=certain,
        bounds=bounds,
    )
    members = _members(used, statistic_of, sizes, tied, seed)
    free = _free_statistics(model, statistic_of)
    kept = () if formulas is None else tuple(len(event_sizes) - len(formulas.sizes) + k for k in formulas.kept)
    statistics = Statistics(of_slot, sizes, watch, event_sizes, tied, members, variable_orbits(group), free, kept)
    lifted = None
    if untied is not None:
        from definetti.inference.graph.lift import lift

        lifted = lift(untied, columns)
    derived = _derived(parsed, events, formulas)
    return GraphQuestion(
        used, parsed, events, slots, statistics, columns, tuple(notices), shown, lifted, formulas, derived
    )  # fmt: skip


def _derived(queries: Sequence[Query], events: Sequence[Event], formulas: Formulas | None) -> tuple[Derived, ...]:
    """Conditional probabilities, from two events each, and what is made of formulas."""
    conditional = [query for query in queries if query.given is not None]
    found = [] if formulas is None else [query.after(len(events)) for query in formulas.derived]
    if conditional:
        from definetti.inference.derived import Derived

        place = {event.query.text: k for k, event in enumerate(events)}
        for query in conditional:
            assert query.given is not None
            both, given = place[query.text], place[query.given.text]
            found.append(Derived(query.text, (both, given), events[both].orbit_size))
    return tuple(found)
