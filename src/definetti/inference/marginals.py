"""`marginals`: symmetries, sampling and estimation in one call; or estimation alone, of samples that another program
drew."""

from __future__ import annotations

import math
import operator
import os
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from definetti.constraints.logic.forced_atoms import told_in_formulas
from definetti.errors import INTERRUPTED, ModelError, Notice
from definetti.estimators import choose
from definetti.inference.graph.prepare import prepare
from definetti.inference.graph.question import Question, ask
from definetti.inference.logic.mcsat_fallback import crossing_plan, may_cross, prefer, stuck
from definetti.inference.logic.prepare import prepare_logic
from definetti.inference.logic.question import logic_question
from definetti.inference.progress import reports
from definetti.inference.stopping import MOST_SECONDS, Stopping
from definetti.model.graph.factors import FactorGraph
from definetti.model.graph.simplify import simplify
from definetti.model.logic.theory import MarkovLogic
from definetti.model.marginals import Marginals
from definetti.readers.logic.queries import ground_queries
from definetti.samplers.draws import Draws
from definetti.samplers.graph.gibbs import Gibbs
from definetti.samplers.graph.mcsat import MCSat
from definetti.samplers.graph.sampling import Plan, Progress, Sampling
from definetti.samplers.logic.lifted import LiftedSampler, LiftedSampling
from definetti.samplers.logic.sampling import RelationalSampling
from definetti.samplers.registry import Sampler, named
from definetti.symmetry.graph.group import Symmetries
from definetti.symmetry.graph.group import symmetries as find_symmetries
from definetti.symmetry.logic.ground_members import by_atoms
from definetti.symmetry.logic.renaming import RenamingSymmetries

CHAINS = 64
LOGIC_CHAINS = 8
SWEEPS = 2000
REAL = (int, float, np.number)


def marginals(
    source: object,
    queries: str | Sequence[str] = (),
    *,
    model: FactorGraph | None = None,
    symmetries: str | Symmetries | RenamingSymmetries | None = "auto",
    sampler: str | Sampler | LiftedSampler = "auto",
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
    progress: bool | Callable[[Progress], None] | None = None,
) -> Marginals:
    """Marginals of a model by sampling, each sample averaged over its orbit; or of samples drawn elsewhere.

    Parameters
    ----------
    source : FactorGraph, MarkovLogic or samples
        A model; or samples that another program drew, with `model` beside them: an array chains × draws × variables
        (or draws × variables), a dimod SampleSet, an ArviZ object, an xarray DataArray, a DataFrame, or a mapping from
        names to arrays. Names are used where there are names.
    queries : str or sequence of str
        Variables (`X3`), atoms, predicates or formulas (`X1=0 ^ X7=2`); none means all variables. A value is meant by
        its name where values have names, else by its number from 0 on.
    model : FactorGraph, optional
        The model of the samples.
    symmetries : {"auto", "none", "variables", "literals", "renaming"}, group or None
        What to average over: found, given, or nothing.
    sampler : str or sampler
        "auto", a name, or a value such as `Gibbs(scan="random")`.
    estimator : {"auto", "standard", "orbit", "conditional", "control"}
        What to make of the draws.
    scan : {"symmetric", "random", "fixed"}
        The order of a sweep.
    chains : int, optional
        Independent chains; 64 on factor graphs, 8 on Markov logic.
    sweeps, seconds, until : optional
        How long to run, one of them: kept sweeps of each chain (2,000 by default), seconds, or the largest half-width
        of a 95 % interval (`seconds` beside `until` is the most it may take, 600 by default).
    burn_in : int, optional
        Sweeps dropped at the start; detected where it is left out.
    seed : int, optional
        The same seed gives the same numbers.
    workers : int, optional
        Threads; all cores by default.
    time_limit : float
        Seconds for the search for symmetries.
    progress : bool or callable, optional
        True draws a bar; a function is called with a `Progress`.

    Returns
    -------
    Marginals
        Name or query → `Estimate`, with warnings in `notices`.

    Raises
    ------
    ModelError, UnknownName, ParseError
        For what does not fit the model.
    Unsatisfiable
        Where no state is possible.

    Examples
    --------
    >>> import definetti as dft
    >>> ring = dft.factor_graph([2] * 4, [([i, (i + 1) % 4], [[3, 1], [1, 2]]) for i in range(4)])
    >>> p = dft.marginals(ring, ["X0", "X0=1 ^ X1=1"], sweeps=200, seed=7)
    >>> abs(p["X0"].probability - dft.exact(ring)["X0"].probability) < 5 * p["X0"].mcse
    True
    """
    queries = [queries] if isinstance(queries, str) else queries
    chains, sweeps, workers = (_whole(chains, "chains"), _whole(sweeps, "sweeps"), _whole(workers, "workers"))
    burn_in, seed = _whole(burn_in, "burn_in", 0), _whole(seed, "seed", 0)
    if not isinstance(source, FactorGraph | MarkovLogic):
        from definetti.inference.samples import from_samples

        return from_samples(source, queries, model, symmetries, estimator, burn_in or 0, time_limit, seed)
    method = choose(estimator)
    wanted = named(sampler, scan)
    _check_length(sweeps, seconds, until)
    seed = secrets.randbits(32) if seed is None else seed
    began = time.perf_counter()
    ready = _ready(source, check(source, symmetries), wanted, scan, queries, method, seed, time_limit)
    if isinstance(ready.sampler, LiftedSampler):
        burn_in = 0  # every draw of a lifted sampler is exact
    chains = chains or (CHAINS if ready.logic is None else LOGIC_CHAINS)
    plan = _plan(chains, sweeps, seconds, until, burn_in, seed, workers)
    prepared = time.perf_counter() - began

    def answer(kernel: Any, plan: Plan, seconds: float | None, watched: bool = False) -> tuple[Marginals, float]:
        how = method if isinstance(kernel, Gibbs) else without_conditionals(method, kernel)
        taken = _take(ready.question, kernel, plan, how, seconds, until, report, watched)
        head = {"sampler": kernel.name, "estimator": how, "scan": kernel.scan, "symmetries": ready.symmetries}
        run = {**head, "world": world(source), **taken.run}
        run["seconds"] = {"symmetries": prepared, **taken.run["seconds"]}
        result = ready.question.conclude(taken.draws, how, run, taken.interrupted)
        if ready.logic is None and isinstance(source, MarkovLogic):
            result = by_atoms(source, result)
        said = (*result.notices, *taken.notices, *_fallen_back(method, how, kernel))
        return replace(result, notices=said), taken.left

    with reports(progress) as report:
        if wanted is None and ready.logic is not None:
            return _by_choice(answer, ready.sampler, ready.logic, plan, sweeps is None, seconds)
        return answer(ready.sampler, plan, seconds)[0]


@dataclass(frozen=True, eq=False)
class Ready:
    """What a run asks, of which sampler; `logic` is the model where it is sampled without grounding."""

    question: Question
    sampler: Any
    symmetries: str
    logic: MarkovLogic | None


def _ready(
    source: FactorGraph | MarkovLogic,
    group: Any,
    wanted: Sampler | LiftedSampler | None,
    scan: str,
    queries: Sequence[str],
    method: str,
    seed: int,
    time_limit: float,
) -> Ready:
    """Find the group, choose the sampler and lay out what is to be counted."""
    sampler, notices, asked = wanted, (), queries
    if isinstance(source, MarkovLogic):
        logic = prepare_logic(source, group, wanted, scan, time_limit)
        group, sampler, notices = logic.group, logic.sampler, logic.notices
        if isinstance(group, RenamingSymmetries):
            return Ready(logic_question(group, queries, method, notices), sampler, group.kind, group.model)
        asked = ground_queries(source, queries)
    if isinstance(sampler, LiftedSampler):
        raise ModelError(f"the sampler {sampler.name!r} is for Markov logic with symmetries by renaming, or none")
    with told_in_formulas(source) if isinstance(source, MarkovLogic) else nullcontext():
        core = prepare(source, group, sampler, scan, time_limit)  # type: ignore[arg-type]
    question = ask(core.group, asked, method, seed, core.untied, (*notices, *core.notices))
    return Ready(question, core.sampler, core.group.kind, None)


def _by_choice(
    answer: Callable[..., tuple[Marginals, float]],
    kernel: Any,
    model: MarkovLogic,
    plan: Plan,
    by_default: bool,
    seconds: float | None,
) -> Marginals:
    """The answer of the sampler that `auto` took for a Markov logic network; MC-SAT's, where Gibbs sampling is
    stuck."""
    if isinstance(kernel, MCSat):
        return answer(kernel, crossing_plan(model, plan, by_default), seconds)[0]
    crossable = may_cross(model)
    result, left = answer(kernel, plan, seconds, crossable)
    if not crossable or not stuck(result.notices) or result.interrupted or left <= 0:
        return result
    try:
        other = crossing_plan(model, plan, by_default, left)
        return prefer(result, answer(MCSat(), other, None if math.isinf(left) else left)[0])
    except KeyboardInterrupt:
        return replace(result, interrupted=True)


def without_conditionals(method: str, kernel: Any) -> str:
    """For samplers that are not single-site Gibbs sampling alone: they have no full conditionals, or such that differ
    from the states by moves of another kind, which the choice of `auto` is not made for."""
    within = getattr(kernel, "over", kernel)  # of tempering
    if method == "standard" or (method != "auto" and not isinstance(within, LiftedSampler | MCSat)):
        return method
    return "orbit"


def _fallen_back(method: str, used: str, kernel: Any) -> list[Notice]:
    """For those who asked for an estimator by name and get another."""
    if method in ("auto", used):
        return []
    text = f"{kernel.name} has no full conditionals for the estimator {method!r}; {used!r} was used"
    return [Notice("fallback", text)]


@dataclass(frozen=True)
class Taken:
    """What one sampler left behind."""

    draws: Draws
    run: dict[str, Any]
    notices: tuple[Notice, ...]
    interrupted: bool
    left: float  # seconds


def _take(
    question: Question,
    kernel: Any,
    plan: Plan,
    method: str,
    seconds: float | None,
    until: float | None,
    progress: Callable[[Progress], None] | None,
    watched: bool,
) -> Taken:
    """Compile and run one sampler; `watched`: a run that is limited by time ends early if it is seen to be stuck."""
    began = time.perf_counter()
    sampling = question.sampling(kernel, plan, method)
    compiled = time.perf_counter()

    def is_stuck() -> bool:
        return stuck([*question.conclude(sampling.draws(), method, {}, False).notices, *sampling.notices()])

    stopping = Stopping(question, method, seconds, until, progress is not None, is_stuck if watched else None)
    interrupted = _follow(sampling, stopping, progress)
    draws = sampling.draws()
    if draws.sweeps == 0:
        raise KeyboardInterrupt
    if not interrupted:
        stopping.finish(draws)
    run = {
        "chains": plan.chains,
        "sweeps": int(sampling.batch_count and draws.sweeps),
        "burn_in": draws.burn_in,
        "updates": sampling.updates,
        "seconds": {"compile": compiled - began, "sample": sampling.seconds},
        "workers": plan.workers,
        "seed": plan.seed,
        **stopping.run(),
    }
    if ladder := getattr(sampling, "ladder", None):  # of parallel tempering
        run["tempering"] = ladder.report()
    notices = [] if interrupted else stopping.notices()
    notices += sampling.notices() if hasattr(sampling, "notices") else []
    return Taken(draws, run, tuple(notices), interrupted, stopping.remaining)


def world(model: FactorGraph | MarkovLogic) -> str:
    """What is taken for false without being said."""
    closed = sorted(model.closed) if isinstance(model, MarkovLogic) else []
    return f"closed: {','.join(closed)}" if closed else "open"


def check(model: FactorGraph | MarkovLogic, wanted: Any) -> Any:
    """A group that was given must belong to the model."""
    if isinstance(wanted, RenamingSymmetries):
        fits = isinstance(model, MarkovLogic) and _same_logic(model, wanted.source or wanted.model)
    else:
        fits = not (isinstance(wanted, Symmetries) and isinstance(model, FactorGraph)) or _same(
            simplify(model), wanted.model
        )
    if not fits:
        raise ModelError("these symmetries belong to another model, or to other evidence; find them for this one")
    return wanted


def resolve(model: FactorGraph | MarkovLogic, wanted: Any, time_limit: float) -> Symmetries | RenamingSymmetries:
    """The group to average over: found, given, or none."""
    if isinstance(check(model, wanted), RenamingSymmetries | Symmetries):
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
    sampling: Sampling | RelationalSampling | LiftedSampling,
    stopping: Stopping,
    progress: Callable[[Progress], None] | None,
) -> bool:
    """Run to the end, to the time limit, or to the wanted error; true if interrupted."""
    try:
        for step in sampling.steps():
            end = stopping.step(sampling, step)
            if progress is not None:
                progress(replace(step, worst=stopping.look.half_width, left=stopping.left))
            if INTERRUPTED.is_set():
                return True
            if end:
                break
    except KeyboardInterrupt:
        return True
    return False


def _whole(value: Any, name: str, least: int = 1) -> int | None:
    """A count, of whatever integer type; 1.5 sweeps of warm-up would never end."""
    if value is None:
        return None
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise ModelError(f"{name} is a whole number from {least} on, got {value!r}")
    return number


def _check_length(sweeps: int | None, seconds: Any, until: Any) -> None:
    if sweeps is not None and (seconds is not None or until is not None):
        raise ModelError("sweeps excludes seconds and until: give one (seconds beside until is the most it may take)")
    if seconds is not None and not (isinstance(seconds, REAL) and seconds > 0):
        raise ModelError(f"seconds must be a positive number, got {seconds!r}")
    if until is not None and not (isinstance(until, REAL) and 0 < until < 1):
        raise ModelError(f"until is a half-width between 0 and 1, got {until!r}")


def _plan(
    chains: int, sweeps: int | None, seconds: float | None, until: float | None, burn_in: int | None, seed: int,
    workers: int | None,
) -> Plan:  # fmt: skip
    open_ended = seconds is not None or until is not None
    kept = None if open_ended else (SWEEPS if sweeps is None else sweeps)
    return Plan(
        chains=chains,
        burn_in=burn_in,
        sweeps=kept,
        seed=seed,
        workers=workers or available_cores(),
        warm_seconds=_warm_seconds(seconds, until, burn_in),
    )


def _warm_seconds(seconds: float | None, until: float | None, burn_in: int | None) -> float:
    """A warm-up that nobody asked for takes a quarter of the time at most."""
    most = MOST_SECONDS if until is not None and seconds is None else seconds
    return math.inf if most is None or burn_in is not None else most / 4


def available_cores() -> int:
    """Cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1
