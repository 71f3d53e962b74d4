"""`marginals`: symmetries, sampling and estimation in one call; or estimation alone, of samples that another program drew."""

from __future__ import annotations

import math
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from definetti.errors import ModelError, Notice
from definetti.estimators import ESTIMATORS, choose
from definetti.estimators.assemble import assemble, judge, with_events
from definetti.estimators.certain import certain_statistics
from definetti.estimators.events import Event, build_event, observer
from definetti.model.factors import FREE, FactorGraph
from definetti.model.marginals import Marginals
from definetti.model.queries import Query, parse_query
from definetti.model.simplify import simplify
from definetti.samplers.blocks import Slots, slots_of
from definetti.samplers.chains import Plan, Progress, Sampling, Statistics
from definetti.samplers.draws import Draws
from definetti.samplers.gibbs import Gibbs
from definetti.symmetry.factors import Symmetries, none, symmetries as find_symmetries

CHAINS = 64
SWEEPS = 2000
OPEN_WARM_UP = 200  # sweeps of warm-up where the length of the run is not known beforehand
FEWEST_SWEEPS = 160  # before a run that waits for its error may stop
CONDITIONALS_MEMORY = 1 << 30  # bytes: conditionals that nobody asked for may take so much
HALF_WIDTH = 1.959963984540054  # standard errors in half a 95 % interval


@dataclass(frozen=True, eq=False)
class Question:
    """What is to be estimated: rows or single variables, joint events, and the statistics that serve both."""

    group: Symmetries
    queries: tuple[Query, ...]
    events: tuple[Event, ...]
    slots: Slots
    statistics: Statistics
    names: Mapping[str, Any]
    notices: tuple[Notice, ...]


def marginals(
    source: Any,
    queries: Sequence[str] = (),
    *,
    model: FactorGraph | None = None,
    symmetries: Any = "auto",
    sampler: str | Gibbs = "auto",
    estimator: str = "auto",
    scan: str = "symmetric",
    chains: int | None = None,
    sweeps: int | None = None,
    seconds: float | None = None,
    until: float | None = None,
    burn_in: int | None = None,
    seed: int | None = None,
    workers: int | None = None,
    time_limit: float = 10.0,
    progress: Callable[[Progress], None] | None = None,
) -> Marginals:
    """Marginals of a model by sampling, each sample averaged over its orbit; or of samples drawn elsewhere.

    `source` is a model, or an array chains × draws × variables (or draws × variables) with `model=` beside it.
    One of `sweeps` (kept, default 2000), `seconds` and `until` (largest half-width of a 95 % interval) says how long to run.
    """
    if not isinstance(source, FactorGraph):
        from definetti.estimators.samples import from_samples

        return from_samples(source, queries, model, symmetries, estimator, burn_in or 0, time_limit, seed)
    method = choose(estimator)
    kernel = _sampler(sampler, scan)
    _check_counts(chains=chains, sweeps=sweeps, workers=workers)
    _check_length(sweeps, seconds, until, burn_in)
    seed = _seed(seed)
    began = time.perf_counter()
    group = resolve(source, symmetries, time_limit)
    question = ask(group, queries, method, seed)
    found = time.perf_counter()
    plan = _plan(chains, sweeps, seconds, until, burn_in, seed, workers)
    engine = kernel.engine(group.model, question.slots)
    if method != "conditional" and engine.memory(plan.chains, True) > CONDITIONALS_MEMORY:
        plan = replace(plan, conditionals=False)
    sampling = Sampling(group.model, kernel, engine, question.statistics, plan)
    sampling.warm()
    compiled = time.perf_counter()
    interrupted = _follow(sampling, question, method, seconds, until, progress)
    draws = sampling.draws()
    if draws.sweeps == 0:
        raise KeyboardInterrupt
    run = {
        "sampler": kernel.name,
        "estimator": method,
        "scan": kernel.scan,
        "symmetries": group.kind,
        "chains": plan.chains,
        "sweeps": draws.sweeps,
        "burn_in": draws.burn_in,
        "updates": sampling.updates,
        "seconds": {"symmetries": found - began, "compile": compiled - found, "sample": sampling.seconds},
        "workers": plan.workers,
        "seed": seed,
    }
    return conclude(question, draws, method, run, interrupted)


def resolve(model: FactorGraph, wanted: Any, time_limit: float) -> Symmetries:
    """The group to average over: found, given, or none."""
    if isinstance(wanted, Symmetries):
        if not _same(simplify(model), wanted.model):
            raise ModelError("these symmetries belong to another model, or to other evidence; find them for this one")
        return wanted
    if wanted is None:
        wanted = "none"
    return find_symmetries(model, wanted, None, time_limit)


def _same(a: FactorGraph, b: FactorGraph) -> bool:
    """Two simplified models with the same variables, evidence and factors: it is the group's own model that is sampled."""
    parts = ("cards", "evidence", "scope_start", "scope", "table_of", "table_start", "tables")
    return a.names == b.names and all(np.array_equal(getattr(a, part), getattr(b, part)) for part in parts)


def ask(group: Symmetries, queries: Sequence[str], method: str, seed: int) -> Question:
    """Parse the queries and lay out the statistics for an estimator."""
    parsed = tuple(parse_query(text, group.model) for text in queries)
    over_orbit = method != "standard"
    used = group if over_orbit else none(group.model)
    events, notices = [], list(group.notices)
    rng = np.random.default_rng([seed, 1])
    for query in parsed:
        if query.kind == "event" and all(query.text != event.query.text for event in events):
            event, more = build_event(query, group, over_orbit, rng)
            events.append(event)
            notices += more
    slots = slots_of(group.model, used.row_of)
    representative = used.row_representative
    of_slot = np.concatenate(
        [used.literal_orbit[group.model.literal_start[i] : group.model.literal_start[i + 1]] for i in representative]
        or [np.zeros(0, dtype=np.int64)]
    )
    distinct, of_slot = np.unique(of_slot, return_inverse=True)
    sizes = np.bincount(of_slot.ravel(), weights=slots.size_of_slot, minlength=len(distinct)).astype(np.int64)
    watch, event_sizes = observer(events, group.model)
    statistic_of = np.searchsorted(distinct, used.literal_orbit)
    names = {
        "row_of": used.row_of,
        "row_size": used.row_size,
        "row_representative": representative,
        "statistic_of": statistic_of,
        "singles": len(distinct),
        "certain": certain_statistics(group.model, slots, of_slot.ravel(), statistic_of, events),
    }
    statistics = Statistics(of_slot.ravel().astype(np.int64), sizes, watch, event_sizes)
    return Question(used, parsed, tuple(events), slots, statistics, names, tuple(notices))


def conclude(question: Question, draws: Draws, method: str, run: Mapping[str, Any], interrupted: bool) -> Marginals:
    """Estimates, errors and notices from the draws."""
    draws = with_events(draws, question.events, question.names["singles"])
    estimates = ESTIMATORS[method](draws)
    notices = list(question.notices)
    if estimates.fallback.any():
        notices.append(
            Notice("fallback", f"the estimator {method!r} does not apply to joint queries; 'orbit' was used for them")
        )
    found = judge(estimates, draws, question.names["certain"])
    return assemble(
        question.group.model,
        question.names,
        estimates,
        found,
        question.queries,
        question.events,
        run,
        notices,
        interrupted,
    )


def _follow(
    sampling: Sampling,
    question: Question,
    method: str,
    seconds: float | None,
    until: float | None,
    progress: Callable[[Progress], None] | None,
) -> bool:
    """Run to the end, to the time limit, or to the wanted error; true if interrupted."""
    batches, worst = 0, None
    began = time.perf_counter()
    try:
        for step in sampling.steps():
            if until is not None and sampling.batch_count != batches:
                batches, draws = sampling.batch_count, sampling.draws()
                worst = _worst(question, draws, method)
                if draws.sweeps >= FEWEST_SWEEPS and worst is not None and worst * HALF_WIDTH <= until:
                    break
            if progress is not None:
                progress(Progress(step.phase, step.done, step.total, step.rate, worst, step.seconds))
            if seconds is not None and time.perf_counter() - began >= seconds and sampling.batch_count:
                break
    except KeyboardInterrupt:
        return True
    return False


def _worst(question: Question, draws: Draws, method: str) -> float | None:
    """The largest standard error of what is asked: the queries, or every row. None where one cannot be told yet."""
    draws = with_events(draws, question.events, question.names["singles"])
    errors = judge(ESTIMATORS[method](draws), draws, question.names["certain"]).mcse[_asked(question)]
    return None if np.isnan(errors).any() else float(errors.max(initial=0.0))


def _asked(question: Question) -> np.ndarray:
    """The statistics that the queries, or all rows, are made of."""
    model, singles = question.group.model, question.names["singles"]
    if not question.queries:
        return np.arange(singles)
    joint = singles + np.flatnonzero([bool(event.tuples) for event in question.events])
    single = [
        question.names["statistic_of"][model.literal_start[i] : model.literal_start[i + 1]]
        for query in question.queries
        if query.kind == "variable" and model.evidence[i := query.variables[0]] == FREE
    ]
    return np.concatenate([*single, joint]).astype(np.int64)


def _sampler(sampler: str | Gibbs, scan: str) -> Gibbs:
    if isinstance(sampler, Gibbs):
        return sampler
    if sampler not in ("auto", "gibbs"):
        raise ModelError(f"sampler {sampler!r} is not known; choose one of auto, gibbs")
    return Gibbs(scan)


def _seed(seed: int | None) -> int:
    if seed is not None and seed < 0:
        raise ModelError(f"a seed is a whole number from 0 on, got {seed}")
    return secrets.randbits(32) if seed is None else int(seed)


def _check_counts(**counts: int | None) -> None:
    for name, value in counts.items():
        if value is not None and value < 1:
            raise ModelError(f"{name} must be at least 1, got {value}")


def _check_length(sweeps: int | None, seconds: float | None, until: float | None, burn_in: int | None) -> None:
    if sum(x is not None for x in (sweeps, seconds, until)) > 1:
        raise ModelError("give one of sweeps, seconds and until, not several")
    if seconds is not None and not seconds > 0:
        raise ModelError(f"seconds must be positive, got {seconds}")
    if until is not None and not 0 < until < 1:
        raise ModelError(f"until is a half-width between 0 and 1, got {until}")
    if burn_in is not None and burn_in < 0:
        raise ModelError(f"burn_in must not be negative, got {burn_in}")


def _plan(
    chains: int | None, sweeps: int | None, seconds: float | None, until: float | None, burn_in: int | None, seed: int,
    workers: int | None,
) -> Plan:  # fmt: skip
    open_ended = seconds is not None or until is not None
    kept = None if open_ended else (SWEEPS if sweeps is None else sweeps)
    warm = OPEN_WARM_UP if kept is None else max(1, kept // 4)
    return Plan(
        chains=CHAINS if chains is None else chains,
        burn_in=warm if burn_in is None else burn_in,
        sweeps=kept,
        seed=seed,
        workers=workers or available_cores(),
        warm_seconds=math.inf if seconds is None or burn_in is not None else seconds / 4,
    )


def available_cores() -> int:
    """Cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1
