"""What is to be estimated of a Markov logic network: orbits of atoms, and formulas over constants averaged over the
orbit of their constants (Lemma 1 with tuples of constants in place of tuples of variables)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from definetti.diagnose import Diagnosis, weighted_mean
from definetti.errors import Notice
from definetti.estimators import ESTIMATORS
from definetti.estimators.gain import report, within_orbits
from definetti.estimators.values import Estimates
from definetti.inference.assemble import Estimated, answer, concentrated, cut_notices, doubts, fallback_notices, judge
from definetti.inference.logic.certain import Certain, block_orbits
from definetti.inference.logic.derived import count, ratio
from definetti.inference.stopping import Look, worst
from definetti.inference.trace import Trace, trace
from definetti.model.logic.formulas import atoms, replace_constants, terms
from definetti.model.logic.text import atom_text
from definetti.model.logic.theory import And, Atom, Constant, Formula
from definetti.model.marginals import Estimate, Marginals, OrbitRow
from definetti.readers.logic.queries import LogicQuery, parse_all
from definetti.samplers.draws import Draws
from definetti.samplers.logic.queries import Asked, Query, QueryCells
from definetti.samplers.logic.tensors.known_bits import Turns
from definetti.samplers.protocol import LogicSampler, Plan, Sampling
from definetti.symmetry.logic.members import AtomMembers
from definetti.symmetry.logic.renaming import RenamingSymmetries, trivial

if TYPE_CHECKING:
    from definetti.modes.logic.walkers import LogicWalkers

MOST_IMAGES = 8  #: of a query under symmetries of the theory: each is compiled
RATIO = ("\0both", "\0condition")  # ends of the keys under which the statistics of `A | B` stand
COUNT = "\0count"
MOST_ROWS = 100  # of a region that are shown


@dataclass(frozen=True, eq=False)
class LogicQuestion:
    """A `Question` about a Markov logic network. `group` is trivial for the standard estimator; `late` is not its
    own, so that all estimators see the same draws."""

    group: RenamingSymmetries
    late: Callable[[], Mapping[str, np.ndarray]]  # hanging and loose atoms: tensors as large as the model
    queries: Mapping[str, LogicQuery]
    counted: tuple[Query, ...]  # formulas with their constants let loose, one per cell of an orbit
    cells: Mapping[str, QueryCells]  # which of `counted` make up a query
    notices: tuple[Notice, ...]
    turns: Turns = ()  # like `late`
    series: tuple[int, ...] = ()  # of `counted`: counts that are kept after every sweep

    def sampling(self, sampler: LogicSampler, plan: Plan, method: str) -> Sampling:
        return sampler.logic_sampling(self._asked, plan)

    def conclude(self, draws: Draws, method: str, run: Mapping[str, Any], interrupted: bool) -> Marginals:
        if draws.g is None and ESTIMATORS[method].conditionals:
            method = "orbit"
        said = within_orbits(draws, lambda k: self.group.orbits[k].representative)
        said += concentrated(draws, lambda k: self.group.orbits[k].representative)
        tested, biased = self._biased(draws)
        return self.present(self.estimated(draws, method), method, dict(run) | tested, [*said, *biased], interrupted)

    def present(
        self, made: Estimated, method: str, run: Mapping[str, Any], more: Sequence[Notice], interrupted: bool
    ) -> Marginals:
        """The answer that estimates and their errors make."""
        estimates, found, draws = made.estimates, made.found, made.draws
        members = AtomMembers(self.group)
        rows = OrbitRows(self.group, estimates, found, found.half_width)
        shown = Marginals(rows, members, run=dict(run) | report(draws, estimates, found, method))
        places = {text: len(self.group.sizes) + k for k, text in enumerate(self.cells)}
        asked = {}
        more = list(more)
        for text, query in self.queries.items():
            if query.condition is not None:
                top, bottom = (places[text + end] for end in RATIO)
                asked[text], said = ratio(made, top, bottom, self.cells[text + RATIO[0]].size, text)
                more += said
            elif query.count:
                place = places[text + COUNT]
                column = self.series.index(self.cells[text + COUNT].places[0])
                asked[text] = count(made, place, column, query.tuples(self.group.model), rows.answer(place))
            elif text in places:
                asked[text] = Estimate(**rows.answer(places[text]), orbit_size=self.cells[text].size)
            else:
                formula = query.formula
                assert isinstance(formula, Atom)
                asked[text] = shown[atom_text(self.group.model, formula.predicate, _numbers(formula))]
        said = [*fallback_notices(estimates.fallback, method), *cut_notices(estimates.value), *more]
        notices = [*self.notices, *said, *doubts(tuple(rows), asked), *self._frozen(found)]
        kept = self.traced(draws, estimates, found)
        return replace(shown, queries=asked, notices=tuple(notices), interrupted=interrupted, trace=kept)

    def traced(self, draws: Draws, estimates: Estimates, found: Diagnosis) -> Trace | None:
        """Of every orbit and of joint queries under their text."""
        count, texts = len(self.group.sizes), list(self.cells)
        return trace(
            draws, estimates, found, np.array(self._columns() if self.queries else [], dtype=np.int64),
            np.arange(count), np.append(self.group.sizes, [c.size for c in self.cells.values()]),
            lambda k: texts[k - count] if k >= count else self.group.orbits[k].representative,
        )  # fmt: skip

    def _frozen(self, found: Diagnosis) -> list[Notice]:
        """Orbits whose conditionals were 0 or 1 in all draws, though nothing proves that they are so in all states."""
        stuck = np.flatnonzero(found.frozen[: len(self.group.sizes)])
        if not len(stuck):
            return []
        count, name = int(self.group.sizes[stuck].sum()), self.group.orbits[int(stuck[0])].representative
        text = f"{count} atoms never moved, {name} among them: at every update one value was next to certain"
        return [
            Notice("frozen", f"{text}. Either the model makes them so, or single moves cannot reach the other values")
        ]

    def _biased(self, draws: Draws) -> tuple[dict[str, Any], list[Notice]]:
        """Draws against full conditionals, where their sampler looked at these."""
        if draws.balance is None:
            return {}, []
        from definetti.inference.bias import CURES, bias_findings

        frequency = weighted_mean(draws.f, draws.lengths)
        return bias_findings(draws.balance, frequency, lambda k: self.group.orbits[k].representative, CURES["run"])

    def estimated(self, draws: Draws, method: str) -> Estimated:
        draws = replace(draws, groups=tied_orbits(self.group, draws.f.shape[2]))
        estimates = ESTIMATORS[method](draws)
        certain = self.certain.values(draws)
        return Estimated(estimates, judge(estimates, draws, certain, self.certain.errors(certain)), draws)

    @cached_property
    def _asked(self) -> Asked:
        return Asked(self.group, self.late, self.counted, tuple(self.cells.values()), self.turns, self.series)

    def walkers(self, sampler: LogicSampler) -> LogicWalkers | None:
        """Chains that look for modes; None where the model is too large, or the sampler cannot be watched."""
        from definetti.modes.logic.walkers import logic_walkers

        return logic_walkers(self._asked) if sampler.single_site else None

    def rows(self, means: np.ndarray) -> dict[str, Any]:
        """What the means of the statistics say of each orbit."""
        return {orbit.representative: float(p) for orbit, p in zip(self.group.orbits[:MOST_ROWS], means, strict=False)}

    @cached_property
    def certain(self) -> Certain:
        plain = {text: query.formula for text, query in self.queries.items() if query.plain}
        return Certain(self.group, [plain.get(text) for text in self.cells])

    def measure(self, draws: Draws, method: str) -> Look:
        made = self.estimated(draws, method)
        return worst(made.found, np.array(self._columns(), dtype=np.int64), made.estimates.batches)

    def _columns(self) -> list[int]:
        """The statistics that the queries, or all rows, are made of."""
        orbits = len(self.group.sizes)
        places = {text: orbits + k for k, text in enumerate(self.cells)}
        columns = [] if self.queries else [*range(orbits)]
        for text, query in self.queries.items():
            formula, found = query.formula, [places[key] for key in _keys(text) if key in places]
            if found:
                columns += found
            elif isinstance(formula, Atom):
                number = self.group.orbit_number(formula.predicate, _numbers(formula))
                columns += [number] if number >= 0 else []
        return columns


def tied_orbits(group: RenamingSymmetries, count: int) -> np.ndarray:
    """int64[count]: one number for the orbits that the values of a `!` block link, and for mirror images; every other
    statistic is by itself."""
    tied = np.arange(count)
    mirror = group.mirror
    tied[: len(mirror)] = np.where(mirror >= 0, np.minimum(mirror, tied[: len(mirror)]), tied[: len(mirror)])
    for numbers in block_orbits(group):
        linked = tied[numbers]
        tied[np.isin(tied, linked)] = linked.min()
    return tied


def logic_question(
    group: RenamingSymmetries, texts: Sequence[str], method: str, more_notices: Sequence[Notice] = ()
) -> LogicQuestion:
    """Parse the queries and find the orbits of the constants they name."""
    used = trivial(group.model) if method == "standard" and group.kind != "none" else group
    queries = parse_all(group.model, texts)
    made = _Cells(used, [*used.notices, *more_notices])
    for text, query in queries.items():
        formula = query.formula
        if query.plain and isinstance(formula, Atom) and formula.predicate in used.atom_orbits:
            continue
        if query.plain:
            made.add_plain(text, formula)
        elif query.count:
            made.add_count(text + COUNT, query)
        elif query.condition is not None:
            both = And((formula, query.condition))
            made.add(text + RATIO[0], query, both, both)
            made.add(text + RATIO[1], query, query.condition, both)
        else:
            made.add(text, query, formula, formula)
    return LogicQuestion(
        used, group.late, queries, tuple(made.counted), made.cells, tuple(made.notices), group.turns, tuple(made.series)
    )


def _keys(text: str) -> tuple[str, ...]:
    """Under which a query's statistics may stand."""
    return (text, text + COUNT, *(text + end for end in RATIO))


@dataclass
class _Cells:
    """The statistics of queries while they are laid out."""

    group: RenamingSymmetries
    notices: list[Notice]
    counted: list[Query] = field(default_factory=list)
    cells: dict[str, QueryCells] = field(default_factory=dict)
    series: list[int] = field(default_factory=list)

    def add_plain(self, key: str, formula: Formula) -> None:
        """A formula over constants, with its images under symmetries of the theory."""
        first, size = len(self.counted), 0
        theory = self.group.theory
        for image in [formula] if theory is None else theory.images(formula, MOST_IMAGES):
            size += self._let_loose(image, image, {}, {})
        self.cells[key] = QueryCells(tuple(range(first, len(self.counted))), size)

    def add(self, key: str, query: LogicQuery, body: Formula, both: Formula) -> None:
        """A formula with variables, averaged over their values and over the orbit of the constants of `both`."""
        first = len(self.counted)
        size = self._let_loose(body, both, dict(query.free), query.sorts)
        self.cells[key] = QueryCells(tuple(range(first, len(self.counted))), size)

    def add_count(self, key: str, query: LogicQuery) -> None:
        """A count is one number in each state: its constants stay."""
        model = self.group.model
        self.series.append(len(self.counted))
        self.cells[key] = QueryCells((len(self.counted),), query.tuples(model))
        free = dict(query.free)
        inner = {name: (sort, model.sorts[sort].size) for name, sort in query.sorts.items()}
        members = {name: np.ones(model.sorts[sort].size, bool) for name, sort in free.items()}
        self.counted.append(Query(query.formula, free, members, frozenset(free), inner))

    def _let_loose(self, body: Formula, both: Formula, free: dict[str, str], sorts: Mapping[str, str]) -> int:
        """Constants become variables over their orbit; how many tuples of constants and values there are."""
        model = self.group.model
        constants = _constants(both)
        ground = None if free or sorts else [(a.predicate, _numbers(a)) for a in atoms(body)]
        orbit = self.group.tuple_orbit(constants, atoms=ground)
        self.notices += orbit.notices
        names = {Constant(s, i): f"c {k}" for k, (s, i) in enumerate(constants)}  # a space: no variable has one
        body = replace_constants(body, names)
        inner = {name: (sort, model.sorts[sort].size) for name, sort in sorts.items()}
        whole = {name: np.ones(model.sorts[sort].size, bool) for name, sort in free.items()}
        for cell in orbit.cells:
            members = {f"c {k}": mask for k, mask in orbit.members(cell).items()}
            own = {f"c {k}": s for k, (s, _) in enumerate(constants)}
            self.counted.append(Query(body, own | free, members | whole, frozenset(free), inner))
        return orbit.size * prod(model.sorts[sort].size for sort in free.values())


def _numbers(atom: Atom) -> list[int]:
    return [term.index for term in atom.args if isinstance(term, Constant)]


def _constants(formula: Formula) -> list[tuple[str, int]]:
    """The constants of a formula over constants, each once."""
    return list({(term.sort, term.index): None for term in terms(formula) if isinstance(term, Constant)})


@dataclass(frozen=True, eq=False)
class OrbitRows(Sequence[OrbitRow]):
    """The rows of all orbits, made when looked at."""

    group: RenamingSymmetries
    estimates: Estimates
    found: Diagnosis
    half_width: np.ndarray

    def __len__(self) -> int:
        return len(self.group.sizes)

    def answer(self, statistic: int) -> dict[str, Any]:
        return answer(self.estimates, self.found, self.half_width, np.array([statistic]))

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            return [self[i] for i in range(len(self))[k]]
        if not -len(self) <= k < len(self):
            raise IndexError(k)
        orbit = self.group.orbits[k]
        return OrbitRow(orbit.representative, orbit.size, **self.answer(k % len(self)))
