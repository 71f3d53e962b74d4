"""Queries as statistics of a state: formulas averaged over the orbit of their constants, and the answers made of them.

A *cell* is here one choice of classes for a query's constants: the tuples of a cell are alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from definetti.errors import Notice
from definetti.inference.derived import Derived
from definetti.inference.logic.claims import Claim, claim_of, ratio_proofs
from definetti.model.logic.formulas import atoms, replace_constants, terms
from definetti.model.logic.theory import And, Atom, Constant, Formula
from definetti.readers.logic.queries import LogicQuery
from definetti.samplers.logic.queries import Query, QueryCells
from definetti.symmetry.logic.renaming import RenamingSymmetries

MOST_IMAGES = 8  #: of a query under symmetries of the theory: each is compiled


def lay_out(
    group: RenamingSymmetries, queries: Mapping[str, LogicQuery], notices: Sequence[Notice], atoms_too: bool = False
) -> Cells:
    """The statistics of queries; atoms that have an orbit need none, unless they are asked for too."""
    made = Cells(group, list(notices))
    for text, query in queries.items():
        formula = query.formula
        if query.plain and isinstance(formula, Atom) and formula.predicate in group.atom_orbits and not atoms_too:
            continue
        first, proved = len(made.cells), None
        if query.plain:
            size = made.add_plain(text, formula)
        elif query.count:
            size = made.add_count(text, query)
        elif query.condition is not None:
            both = And((formula, query.condition))
            size = made.add(text, query, both, both)
            made.add(f"{text} (the condition)", query, query.condition, both)
            proved = ratio_proofs(group.model, query)
        else:
            size = made.add(text, query, formula, formula)
        columns = tuple(range(first, len(made.cells)))
        made.derived[text] = Derived(text, columns, size, len(made.series) - 1 if query.count else -1, proved)
    return made


@dataclass
class Cells:
    """The statistics of queries while they are laid out."""

    group: RenamingSymmetries
    notices: list[Notice]
    counted: list[Query] = field(default_factory=list)
    cells: dict[str, QueryCells] = field(default_factory=dict)
    series: list[int] = field(default_factory=list)  # of `counted`: those whose values are kept
    derived: dict[str, Derived] = field(default_factory=dict)  # columns are numbered like `cells`
    claims: list[Claim] = field(default_factory=list)  # of `cells`

    def add_plain(self, key: str, formula: Formula) -> int:
        """A formula over constants, with its images under symmetries of the theory."""
        first, size = len(self.counted), 0
        theory = self.group.theory
        for image in [formula] if theory is None else theory.images(formula, MOST_IMAGES):
            size += self._let_loose(image, image, {}, {})
        self.cells[key] = QueryCells(tuple(range(first, len(self.counted))), size)
        self.claims.append(Claim(formula))
        return size

    def add(self, key: str, query: LogicQuery, body: Formula, both: Formula) -> int:
        """A formula with variables, averaged over their values and over the orbit of the constants of `both`."""
        first = len(self.counted)
        size = self._let_loose(body, both, dict(query.free), query.sorts)
        self.cells[key] = QueryCells(tuple(range(first, len(self.counted))), size)
        self.claims.append(claim_of(self.group.model, query, body))
        return size

    def add_count(self, key: str, query: LogicQuery) -> int:
        """A count is one number in each state: its constants stay."""
        model = self.group.model
        self.series.append(len(self.counted))
        self.claims.append(claim_of(model, query, query.formula))
        self.cells[key] = QueryCells((len(self.counted),), query.tuples(model))
        free = dict(query.free)
        inner = {name: (sort, model.sorts[sort].size) for name, sort in query.sorts.items()}
        members = {name: np.ones(model.sorts[sort].size, bool) for name, sort in free.items()}
        self.counted.append(Query(query.formula, free, members, frozenset(free), inner))
        return query.tuples(model)

    def _let_loose(self, body: Formula, both: Formula, free: dict[str, str], sorts: Mapping[str, str]) -> int:
        """Constants become variables over their orbit; how many tuples of constants and values there are."""
        model = self.group.model
        constants = _constants(both)
        ground = None if free or sorts else [(a.predicate, numbers_of(a)) for a in atoms(both)]
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


def numbers_of(atom: Atom) -> list[int]:
    return [term.index for term in atom.args if isinstance(term, Constant)]


def _constants(formula: Formula) -> list[tuple[str, int]]:
    """The constants of a formula over constants, each once."""
    return list({(term.sort, term.index): None for term in terms(formula) if isinstance(term, Constant)})
