"""What is to be estimated of a Markov logic network: orbits of atoms, and formulas over constants averaged over the
orbit of their constants (Lemma 1 with tuples of constants in place of tuples of variables)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from definetti.diagnose import Diagnosis, weighted_mean
from definetti.errors import Notice
from definetti.estimators import ESTIMATORS
from definetti.estimators.gain import report, within_orbits
from definetti.estimators.values import Estimates
from definetti.inference.assemble import (
    Estimated,
    answer,
    concentrated_notices,
    cut_notices,
    doubts,
    fallback_notices,
    judge,
)
from definetti.inference.derived import Derived, answers, with_ratios
from definetti.inference.logic.cells import lay_out, numbers_of
from definetti.inference.logic.certain import Certain, block_orbits
from definetti.inference.logic.claims import Claim
from definetti.inference.stopping import Look, worst
from definetti.inference.trace import Trace, trace
from definetti.model.logic.text import atom_text
from definetti.model.logic.theory import Atom
from definetti.model.marginals import Marginals, OrbitRow
from definetti.readers.logic.queries import LogicQuery, parse_all
from definetti.samplers.draws import Draws
from definetti.samplers.logic.queries import Asked, Query, QueryCells
from definetti.samplers.logic.tensors.known_bits import Turns
from definetti.samplers.protocol import LogicSampler, Plan, Sampling
from definetti.symmetry.logic.members import AtomMembers
from definetti.symmetry.logic.renaming import RenamingSymmetries, trivial

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
    derived: Mapping[str, Derived]  # how answers are made of the cells, by query
    turns: Turns = ()  # like `late`
    series: tuple[int, ...] = ()  # of `counted`: counts that are kept after every sweep
    claims: tuple[Claim, ...] = ()  # of `cells`

    def sampling(self, sampler: LogicSampler, plan: Plan, method: str) -> Sampling:
        return sampler.logic_sampling(self._asked, plan)

    def conclude(self, draws: Draws, method: str, run: Mapping[str, Any], interrupted: bool) -> Marginals:
        if draws.g is None and ESTIMATORS[method].conditionals:
            method = "orbit"
        said = within_orbits(draws, lambda k: self.group.orbits[k].representative)
        said += concentrated_notices(draws, lambda k: self.group.orbits[k].representative)
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
        given, said = answers(made, self._derived)
        more = [*more, *said]
        for text, query in self.queries.items():
            if text not in given:
                formula = query.formula
                assert isinstance(formula, Atom)
                given[text] = shown[atom_text(self.group.model, formula.predicate, numbers_of(formula))]
        asked = {text: given[text] for text in self.queries}
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

    @property
    def sites(self) -> int:
        return self.group.model.knowledge.free_total

    def walkers(self, sampler: LogicSampler) -> Any:
        """Chains that look for modes; None where the model is too large, or the sampler cannot be watched."""
        from definetti.modes.logic.walkers import logic_walkers

        return logic_walkers(self._asked, sampler.scan or "") if sampler.single_site else None

    def beyond(self, draws: Draws) -> list[Notice]:
        """What is to be said of states that are much denser than those that were sampled, where no chain looked."""
        from definetti.modes.logic.walkers import MOST_SITES

        if self.sites <= MOST_SITES:
            return []
        from definetti.inference.logic.denser_states import denser_states

        return denser_states(self.group, weighted_mean(draws.f, draws.lengths)[: len(self.group.sizes)])

    def rows(self, means: np.ndarray) -> dict[str, Any]:
        """What the means of the statistics say of each orbit."""
        return {orbit.representative: float(p) for orbit, p in zip(self.group.orbits[:MOST_ROWS], means, strict=False)}

    @cached_property
    def certain(self) -> Certain:
        return Certain(self.group, self.claims)

    def measure(self, draws: Draws, method: str) -> Look:
        made = self.estimated(draws, method)
        look = worst(made.found, np.array(self._columns(), dtype=np.int64), made.estimates.batches)
        return with_ratios(look, made, self._derived)

    @property
    def _derived(self) -> list[Derived]:
        return [query.after(len(self.group.sizes)) for query in self.derived.values()]

    def _columns(self) -> list[int]:
        """The statistics that the queries, or all rows, are made of."""
        columns = [] if self.queries else [*range(len(self.group.sizes))]
        derived = {query.text: query.columns for query in self._derived}
        for text, query in self.queries.items():
            formula = query.formula
            if text in derived:
                columns += derived[text]
            elif isinstance(formula, Atom):
                number = self.group.orbit_number(formula.predicate, numbers_of(formula))
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
    made = lay_out(used, queries, [*used.notices, *more_notices])
    return LogicQuestion(
        used, group.late, queries, tuple(made.counted), made.cells, tuple(made.notices), made.derived, group.turns,
        tuple(made.series), tuple(made.claims),
    )  # fmt: skip


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
