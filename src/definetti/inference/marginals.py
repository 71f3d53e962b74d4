"""`marginals`: symmetries, sampling and estimation in one call; or estimation alone, of samples that another program
drew."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from definetti import show
from definetti.errors import INTERRUPTED, ModelError, Notice, NotSaved, query_list
from definetti.estimators import choose
from definetti.inference.advice import with_advice
from definetti.inference.modes import CROSSING, Exploration, explore, started, unsurveyed, with_doubts
from definetti.inference.progress import check_progress, reports
from definetti.inference.question import Options, Question, Ready, Request, fallen_back, is_stuck, ready_for, usable
from definetti.inference.stopping import MOST_SECONDS, Stopping, follow
from definetti.inference.survey_time import in_time
from definetti.journal import Journal
from definetti.memory import available_cores
from definetti.model.checked_input import check_length, whole
from definetti.model.marginals import Marginals
from definetti.readers.reading import language, with_world
from definetti.samplers.draws import Draws
from definetti.samplers.protocol import Plan, Progress, Sampler, Sampling, refuse_chains
from definetti.samplers.registry import named
from definetti.symmetry.find import is_group, require_fit

if TYPE_CHECKING:
    from definetti.model.graph.factors import FactorGraph
    from definetti.model.logic.theory import MarkovLogic
    from definetti.symmetry.protocol import Symmetries

KINDS = ("graph", "logic")


def marginals(
    source: object,
    queries: str | Sequence[str] = (),
    *,
    model: FactorGraph | None = None,
    symmetries: str | Symmetries | None = "auto",
    sampler: str | Sampler = "auto",
    estimator: str | None = None,
    scan: str | None = None,
    chains: int | None = None,
    sweeps: int | None = None,
    seconds: float | None = None,
    until: float | None = None,
    burn_in: int | None = None,
    seed: int | None = None,
    workers: int | None = None,
    time_limit: float = 10.0,
    progress: bool | Callable[[Progress], None] | None = None,
    world: str = "open",
    formulas: bool = False,
    checkpoint: str | PathLike[str] | None = None,
    label: Mapping[str, str] | None = None,
    executor: Executor | None = None,
) -> Marginals:
    """Marginals of a model: exact where that is about a second's work, else by sampling, each sample averaged over its
    orbit; or of samples drawn elsewhere.

    Naming a sampler, or giving `estimator`, `scan`, `chains`, `sweeps` or `burn_in` (whatever their values), asks for
    sampling. Whether an exact answer is cheap is decided by a count of operations, alike on every machine.

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
    symmetries : {"auto", "none", "variables", "literals", "theory", "renaming"}, group or None
        What to average over: found, given, or nothing.
    sampler : str or sampler
        "auto", a name, or a value such as `Gibbs(scan="random")`.
    estimator : {"auto", "standard", "orbit", "conditional", "control"}, optional
        What to make of the draws; "auto" where it is left out.
    scan : {"symmetric", "random", "fixed"}, optional
        The order of a sweep; "symmetric" where it is left out.
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
    world : {"open", "alchemy"}
        Of Markov logic: "alchemy" closes what Alchemy would, the predicates with evidence that no query names.
    formulas : bool
        Of Markov logic: add the expected number of true groundings of every formula (`Marginals.formulas`).
    checkpoint : path, optional
        A new .dft file that keeps the run: model, options, and now and then the state of the chains. `resume` continues
        it after whatever ended the process; `load`, `compare` and `report` read it as a result.
    label : mapping, optional
        Texts that are kept in the checkpoint for the caller.
    executor : concurrent.futures.Executor, optional
        Where groups of chains are advanced instead of in threads of this process: a Dask client's `get_executor()`,
        loky's, mpi4py's, or a `ProcessPoolExecutor`. The numbers are the same, bit by bit.

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

    Notes
    -----
    Draws of samplers other than Gibbs sampling, and samples of other programs, are put to a test that all draws of the
    model pass: frequencies and full conditionals at the same states agree, orbit by orbit. Those that fail carry the
    notice `biased` (`run["bias"]` has the score). The test does not see wrong weights of modes: draws that pass may
    all come from one of several.

    Examples
    --------
    >>> import definetti as dft
    >>> ring = dft.factor_graph([2] * 4, [([i, (i + 1) % 4], [[3, 1], [1, 2]]) for i in range(4)])
    >>> p = dft.marginals(ring, ["X0", "X0=1 ^ X1=1"], sweeps=200, seed=7)
    >>> abs(p["X0"].probability - dft.exact(ring)["X0"].probability) < 5 * p["X0"].mcse
    True
    """
    queries = query_list(queries)
    chains, sweeps, workers = (whole(chains, "chains"), whole(sweeps, "sweeps"), whole(workers, "workers"))
    burn_in, seed = whole(burn_in, "burn_in", 0), whole(seed, "seed", 0)
    if isinstance(source, type) or getattr(source, "kind", None) not in KINDS:
        from definetti.inference.draws.samples import from_samples

        if checkpoint is not None:
            raise ModelError("samples are drawn already: there is nothing to resume, and no checkpoint is written")
        found = from_samples(source, queries, model, symmetries, estimator or "auto", burn_in or 0, time_limit, seed)
        return with_advice(found, False, False, None)
    check_length(sweeps, seconds, until)
    check_progress(progress)
    seed = secrets.randbits(32) if seed is None else seed
    asked: Any  # a model of either kind
    asked, said = with_world(source, queries, world)
    options = Options(
        symmetries, sampler, estimator, scan, chains, sweeps, seconds, until, burn_in, seed,
        workers or available_cores(), time_limit, said, formulas,
    )  # fmt: skip
    if executor is not None and (isinstance(executor, type) or not callable(getattr(executor, "submit", None))):
        raise ModelError(f"an executor has a method submit (concurrent.futures.Executor), got {show.brief(executor)}")
    if checkpoint is None and executor is None:
        return answered(asked, queries, options, progress, Journal())
    from definetti.inference.saving.checkpoint import kept_in

    with kept_in(checkpoint, asked, queries, options, dict(label or {})) as (journal, options):
        return answered(asked, queries, options, progress, journal, executor)


def answered(
    asked: Any, queries: Sequence[str], options: Options, progress: bool | Callable[[Progress], None] | None,
    journal: Journal, executor: Executor | None = None,
) -> Marginals:  # fmt: skip
    """The answer, for a run that begins or goes on."""
    if executor is not None:
        from definetti.inference.remote import spread_chains

        journal.spread = spread_chains(executor, asked, queries, options, journal.record)
    try:
        if options.formulas:
            from definetti.solvers.formula_counts import formula_queries, with_formulas

            counted: Any = [*queries, *formula_queries(asked)]
            result = with_formulas(asked, _answered(asked, counted, options, progress, journal))
        else:
            result = _answered(asked, queries, options, progress, journal)
    except KeyboardInterrupt:
        if journal.unwritten:  # all was sampled; of large models the answer takes seconds more
            journal.write(time.perf_counter())
        raise
    result = replace(result, notices=(*journal.notices, *result.notices))
    try:
        journal.finish(lambda: show.above("store.writing").document(result), result.interrupted)
    except ModelError as error:
        raise NotSaved(str(error), result) from None
    return result


def _answered(
    asked: Any, queries: Sequence[str], options: Options, progress: bool | Callable[[Progress], None] | None,
    journal: Journal,
) -> Marginals:  # fmt: skip
    began = time.perf_counter()
    symmetries, seed, time_limit = options.symmetries, options.seed, options.time_limit
    sweeps, seconds, until, burn_in = options.sweeps, options.seconds, options.until, options.burn_in
    method = choose("auto" if options.estimator is None else options.estimator)
    scan = "symmetric" if options.scan is None else options.scan
    wanted = named(options.sampler, scan)
    request = Request(check(asked, symmetries), wanted, scan, queries, method, seed, time_limit)
    said_first = options.said
    if wanted is None and not options.ask_to_sample:
        from definetti.inference.exact_first import exact_first

        first = exact_first(asked, queries, symmetries, time_limit)
        if isinstance(first, Marginals):
            notices = (*said_first, *first.notices)
            return replace(first, run={**first.run, **language(asked)}, notices=notices)
        said_first = said_first if first is None else (*said_first, first)
    ready = ready_for(asked, request)
    if not ready.sampler.warms_up:
        burn_in = 0
    chains = options.chains or ready.chains
    refuse_chains(chains, asked.n if asked.kind == "graph" else 0)
    kept = ready.sweeps(chains) if sweeps is None else sweeps
    plan = _plan(chains, kept, seconds, until, burn_in, seed, options.workers)
    prepared = time.perf_counter() - began
    journal.begin()
    with reports(progress) as report:
        run = _Run(asked, options, method, wanted is None, ready, said_first, journal, report, began, prepared)
        if ready.strategy is not None:
            result = ready.strategy(run.answer, ready.sampler, plan, sweeps is None, seconds)
        else:
            result = run.answer(ready.sampler, plan, seconds)[0]
    return with_advice(result, wanted is None, len(said_first) > len(options.said), seconds)


@dataclass(frozen=True, eq=False)
class _Run:
    """A question under way: what the samplers that answer it, one after the other, share."""

    asked: Any
    options: Options
    method: str
    by_choice: bool  # the caller left the choice of the sampler
    ready: Ready
    said_first: tuple[Notice, ...]
    journal: Journal
    report: Callable[[Progress], None] | None
    began: float
    prepared: float  # seconds
    known: list[Exploration] = field(default_factory=list)  # of the sampler before

    def answer(
        self, kernel: Sampler, plan: Plan, seconds: float | None, watched: bool = False
    ) -> tuple[Marginals, float]:
        """The answer of a sampler, and the seconds that are left."""
        how, ready, start = usable(self.method, kernel), self.ready, self._start(seconds)

        def survey(question: Any) -> Exploration | Notice | None:
            if self.known and kernel.name in CROSSING:  # tried after another
                return self.known[0].crossed_by(question, kernel, plan.seed)
            return explore(question, kernel, ready.chains * ready.sweeps(ready.chains), plan, self.by_choice)

        explored, unseen = in_time(survey, ready.question, self.report, start, seconds, self.journal.remembered)
        self.known[:] = [] if explored is None else [explored]
        if explored is not None and explored.weighed and kernel.single_site:
            return self.mix(kernel, plan, how, explored, seconds), math.inf if seconds is None else 0.0
        # A sampler that was named has its own starts, unless one of several regions counts: they may be elsewhere.
        if self.by_choice or (explored is not None and (explored.one_of_several or not explored.walkers.weighs)):
            plan = plan if kernel.name == "tempering" else started(plan, explored)
        until, report = self.options.until, self.report
        taken = _take(ready.question, kernel, plan, how, seconds, until, report, watched, start, self.journal)
        run = {**self._head(kernel, how), **taken.run}
        run["seconds"] = {"symmetries": self.prepared, **taken.run["seconds"]}
        if explored is not None and explored.weighing is not None:
            explored = explored.after(kernel, taken.sampling, taken.draws)
            run["regions"] = explored.report(ready.question)
        draws = taken.draws
        if explored is not None and (explored.rare or (not explored.several and kernel.single_site)):
            unseen_share = explored.left_out(draws.sweeps * draws.chains, draws.f.shape[2])
            draws = replace(draws, left_out=unseen_share) if unseen_share.any() else draws
        result = ready.in_names_of_source(ready.question.conclude(draws, how, run, taken.interrupted))
        if explored is not None:
            seen = with_doubts(plan, explored.notices(ready.question), explored)
        else:
            seen = [] if unseen else unsurveyed(ready.question, kernel, plan)
        if kernel.single_site:
            seen = [*seen, *ready.question.beyond(draws)]
        fallen, own = fallen_back(self.method, how, kernel), list(taken.notices)
        own = own if explored is None else explored.explained(own, kernel)
        said = [*self.said_first, *unseen, *result.notices, *own, *seen, *fallen]
        return replace(result, notices=tuple(said)), taken.left

    def mix(self, kernel: Sampler, plan: Plan, how: str, explored: Exploration, seconds: float | None) -> Marginals:
        """The mixture of chains that are confined to the regions."""
        from definetti.inference.mixture import Goal, Mixture

        ready, part, start = self.ready, self.journal.part("mixture"), self._start(seconds)
        made = Mixture(ready.question, explored, plan, how, self.report)
        told = {**self._head(kernel, how), "regions": explored.report(ready.question)}
        seen = [*self.said_first, *with_doubts(plan, explored.notices(ready.question), explored)]

        def present() -> Marginals:
            estimated, own = made.result()
            run = {**told, **own, "seconds": {"symmetries": self.prepared, "compile": 0.0, **own["seconds"]}}
            return ready.question.present(estimated, how, run, [*seen, *made.doubts], INTERRUPTED.is_set())

        goal = Goal.of(made, part, plan.sweeps or ready.sweeps(plan.chains), seconds, self.options.until, start)
        result, said = goal.follow(made, part, present)
        return ready.in_names_of_source(replace(result, notices=(*result.notices, *said), trace=made.trace))

    def _start(self, seconds: float | None) -> float:
        """When the time began to run: of a second sampler, what is left is its own."""
        return self.began if seconds is self.options.seconds else time.perf_counter()

    def _head(self, kernel: Sampler, how: str) -> dict[str, Any]:
        head = {"sampler": kernel.name, "estimator": how, "scan": kernel.scan, "symmetries": self.ready.symmetries}
        return {**head, **language(self.asked)}


@dataclass(frozen=True)
class Taken:
    """What one sampler left behind."""

    draws: Draws
    run: dict[str, Any]
    notices: tuple[Notice, ...]
    interrupted: bool
    left: float  # seconds
    sampling: Sampling


def _take(
    question: Question,
    kernel: Sampler,
    plan: Plan,
    method: str,
    seconds: float | None,
    until: float | None,
    progress: Callable[[Progress], None] | None,
    watched: bool,
    start: float,
    journal: Journal,
) -> Taken:
    """Compile and run one sampler; `watched`: a run that is limited by time ends early if it is seen to be stuck.

    The time that limits it is counted from `start` on. What the journal has of it is taken from there.
    """
    began = time.perf_counter()
    if progress is not None:
        progress(Progress(f"compiling {kernel.name}", 0, None, 0.0, None, began - start))
    sampling = question.sampling(kernel, plan, method)
    if journal.spread is not None:
        journal.spread(sampling, kernel, plan, method)
    compiled = time.perf_counter()

    def stuck() -> bool:
        return is_stuck([*question.conclude(sampling.draws(), method, {}, False).notices, *sampling.notices()])

    if INTERRUPTED.is_set():  # Numba may have swallowed it
        raise KeyboardInterrupt
    part = journal.part(kernel.name)
    follows = stuck if watched else None
    if part.goal:
        sampling.goal, seconds, until = part.goal.sweeps, part.goal.seconds, part.goal.until
        start = time.perf_counter()
    stopping = Stopping(question, method, seconds, until, progress is not None, follows, start, plan.chains)
    interrupted = follow(sampling, stopping, progress, part)
    if interrupted and not sampling.batch_count:  # states of the warm-up are no answer
        raise KeyboardInterrupt
    draws = sampling.draws()
    if draws.sweeps == 0:
        raise KeyboardInterrupt
    if not interrupted:
        stopping.finish(draws)
    left = float(part.state["left"]) if part.finished and part.state is not None else stopping.remaining
    run = {
        "chains": plan.chains,
        "sweeps": int(sampling.batch_count and draws.sweeps),
        "burn_in": draws.burn_in,
        "updates": sampling.updates,
        "seconds": {"compile": compiled - began, "sample": sampling.seconds, "sample_cpu": sampling.cpu_seconds},
        "workers": plan.workers,
        "seed": plan.seed,
        **stopping.run(),
        **sampling.report(),
    }
    notices = [*([] if interrupted else stopping.notices()), *sampling.notices()]
    return Taken(draws, run, tuple(notices), interrupted, left, sampling)


def check(model: FactorGraph | MarkovLogic, wanted: Any) -> Any:
    """A group that was given must belong to the model."""
    if is_group(wanted):
        require_fit(model, wanted)
    return wanted


def resolve(model: FactorGraph | MarkovLogic, wanted: Any, time_limit: float) -> Any:
    """The group to average over: found, given, or none."""
    if is_group(check(model, wanted)):
        return wanted
    from definetti.symmetry.find import symmetries

    return symmetries(model, "none" if wanted is None else wanted, None, time_limit)


def _plan(
    chains: int, sweeps: int, seconds: float | None, until: float | None, burn_in: int | None, seed: int,
    workers: int,
) -> Plan:  # fmt: skip
    kept = None if seconds is not None or until is not None else sweeps
    return Plan(
        chains=chains,
        burn_in=burn_in,
        sweeps=kept,
        seed=seed,
        workers=workers,
        warm_seconds=_warm_seconds(seconds, until, burn_in),
    )


def _warm_seconds(seconds: float | None, until: float | None, burn_in: int | None) -> float:
    """A warm-up that nobody asked for takes a quarter of the time at most."""
    most = MOST_SECONDS if until is not None and seconds is None else seconds
    return math.inf if most is None or burn_in is not None else most / 4
