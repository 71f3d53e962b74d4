"""`marginals`: symmetries, sampling and estimation in one call; or estimation alone, of samples that another program drew."""

from __future__ import annotations

import math
import os
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from definetti.errors import ModelError
from definetti.estimators import choose
from definetti.estimators.ask import Question, ask
from definetti.estimators.logic_ask import logic_question
from definetti.model.entail import entailed
from definetti.model.factors import FactorGraph
from definetti.model.logic import MarkovLogic
from definetti.model.marginals import Marginals
from definetti.model.simplify import simplify
from definetti.readers.logic_queries import ground_queries
from definetti.samplers.chains import Plan, Progress, Sampling
from definetti.samplers.gibbs import Gibbs
from definetti.samplers.relational_sampling import RelationalSampling
from definetti.symmetry.factors import Symmetries
from definetti.symmetry.factors import symmetries as find_symmetries
from definetti.symmetry.logic import RenamingSymmetries

CHAINS = 64
LOGIC_CHAINS = 8
SWEEPS = 2000
OPEN_WARM_UP = 200  # sweeps of warm-up where the length of the run is not known beforehand
FEWEST_SWEEPS = 160  # before a run that waits for its error may stop
HALF_WIDTH = 1.959963984540054  # standard errors in half a 95 % interval


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
    if not isinstance(source, FactorGraph | MarkovLogic):
        from definetti.estimators.samples import from_samples

        return from_samples(source, queries, model, symmetries, estimator, burn_in or 0, time_limit, seed)
    method = choose(estimator)
    kernel = _sampler(sampler, scan)
    _check_counts(chains=chains, sweeps=sweeps, workers=workers)
    _check_length(sweeps, seconds, until, burn_in)
    seed = _seed(seed)
    began = time.perf_counter()
    group = resolve(source, symmetries, time_limit)
    relational = isinstance(group, RenamingSymmetries)
    plan = _plan(chains or (LOGIC_CHAINS if relational else CHAINS), sweeps, seconds, until, burn_in, seed, workers)
    question: Question
    if relational:
        question = logic_question(group, queries, method)
    else:
        asked = ground_queries(source, queries) if isinstance(source, MarkovLogic) else queries
        question = ask(group, asked, method, seed)
    found = time.perf_counter()
    sampling = question.sampling(kernel, plan, method)
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
        "world": world(source),
        "chains": plan.chains,
        "sweeps": int(sampling.batch_count and draws.sweeps),
        "burn_in": draws.burn_in,
        "updates": sampling.updates,
        "seconds": {"symmetries": found - began, "compile": compiled - found, "sample": sampling.seconds},
        "workers": plan.workers,
        "seed": seed,
    }
    return question.conclude(draws, method, run, interrupted)


def world(model: FactorGraph | MarkovLogic) -> str:
    """What is taken for false without being said."""
    closed = sorted(model.closed) if isinstance(model, MarkovLogic) else []
    return f"closed: {','.join(closed)}" if closed else "open"


def resolve(model: FactorGraph | MarkovLogic, wanted: Any, time_limit: float) -> Symmetries | RenamingSymmetries:
    """The group to average over: found, given, or none."""
    if isinstance(wanted, RenamingSymmetries):
        if not isinstance(model, MarkovLogic) or not _same_logic(entailed(model), wanted.model):
            raise ModelError("these symmetries belong to another model, or to other evidence; find them for this one")
        return wanted
    if isinstance(wanted, Symmetries):
        if isinstance(model, FactorGraph) and not _same(simplify(model), wanted.model):
            raise ModelError("these symmetries belong to another model, or to other evidence; find them for this one")
        return wanted
    return find_symmetries(model, "none" if wanted is None else wanted, None, time_limit)


def _same_logic(a: MarkovLogic, b: MarkovLogic) -> bool:
    """The same theory with the same evidence."""
    if a.formulas != b.formulas or a.sorts != b.sorts or a.closed != b.closed or a.evidence.keys() != b.evidence.keys():
        return False
    pairs = [(a.evidence[name], b.evidence[name]) for name in a.evidence]
    return all(np.array_equal(x.tuples, y.tuples) and np.array_equal(x.values, y.values) for x, y in pairs)


def _same(a: FactorGraph, b: FactorGraph) -> bool:
    """Two simplified models with the same variables, evidence and factors: the group's own model is the one sampled."""
    parts = ("cards", "evidence", "scope_start", "scope", "table_of", "table_start", "tables")
    return a.names == b.names and all(np.array_equal(getattr(a, part), getattr(b, part)) for part in parts)


def _follow(
    sampling: Sampling | RelationalSampling,
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
                worst = question.largest_error(draws, method)
                if draws.sweeps >= FEWEST_SWEEPS and worst is not None and worst * HALF_WIDTH <= until:
                    break
            if progress is not None:
                progress(Progress(step.phase, step.done, step.total, step.rate, worst, step.seconds))
            if seconds is not None and time.perf_counter() - began >= seconds and sampling.can_stop:
                break
    except KeyboardInterrupt:
        return True
    return False


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
    chains: int, sweeps: int | None, seconds: float | None, until: float | None, burn_in: int | None, seed: int,
    workers: int | None,
) -> Plan:  # fmt: skip
    open_ended = seconds is not None or until is not None
    kept = None if open_ended else (SWEEPS if sweeps is None else sweeps)
    warm = OPEN_WARM_UP if kept is None else max(1, kept // 4)
    return Plan(
        chains=chains,
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
