"""The marginals of a Markov logic network by lifted counting: one row per orbit of atoms, queries over constants,
log Z.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from definetti.errors import TooLarge, Unsatisfiable
from definetti.model.logic.atom_names import atom_text, find_atom
from definetti.model.logic.formulas import atoms, terms
from definetti.model.logic.theory import Atom, Constant, Formula, MarkovLogic, WeightedFormula
from definetti.model.marginals import Estimate, Marginals, OrbitRow, known
from definetti.readers.logic.queries import parse_queries
from definetti.solvers.lifted.answers import Blurred, probability
from definetti.solvers.lifted.counting import MOST_PRECISION, Lifted, lift
from definetti.solvers.lifted.theory import NotLiftable
from definetti.symmetry.logic.members import AtomMembers
from definetti.symmetry.logic.renaming import RenamingSymmetries, renaming


@dataclass(frozen=True, eq=False)
class LiftedMembers(AtomMembers):
    """Atoms without an orbit are answered one by one."""

    lifted: Lifted

    def find(self, name: str) -> int | Estimate:
        predicate, constants = find_atom(self.symmetries.model, name)
        number = self.symmetries.orbit_number(predicate, constants)
        if number >= 0:
            return number
        value = self.value(predicate, constants)
        return known(value, 2) if value is not None else Estimate(atom_probability(self.lifted, predicate, constants))


def atom_probability(lifted: Lifted, predicate: str, constants: Sequence[int]) -> float:
    theory = lifted.known.theory
    if predicate in theory.idle:
        return 0.5
    sorts = theory.predicates[predicate].sorts
    return probability(lifted, Atom(predicate, tuple(Constant(s, i) for s, i in zip(sorts, constants, strict=True))))


def lifted_marginals(
    model: MarkovLogic, queries: Sequence[str] = (), grouped: Callable[[], RenamingSymmetries] | None = None
) -> Marginals:
    """Exact marginals of all atoms. `NotLiftable`, `TooLarge` or `Unsatisfiable` otherwise."""
    if any(p.exclusive for p in model.predicates.values()):
        raise NotLiftable("a predicate has an argument with !")
    asked = parse_queries(model, queries)
    bits: int | None = None
    lifted = lift(model)
    group = renaming(model) if grouped is None else grouped()
    while True:
        try:
            return _marginals(lifted, group, asked)
        except Blurred:
            bits = 2 * lifted.bits
            if bits > MOST_PRECISION:
                raise TooLarge("lifted counting with cancelling signs", bits, MOST_PRECISION,
                               "sample instead", unit="bits of precision") from None  # fmt: skip
            lifted = lift(model, bits)


def _marginals(lifted: Lifted, group: RenamingSymmetries, asked: Mapping[str, Formula]) -> Marginals:
    rows = []
    for orbit in group.orbits:
        p = atom_probability(lifted, *find_atom(group.model, orbit.representative))
        rows.append(OrbitRow(orbit.representative, orbit.size, p))
    members = LiftedMembers(group, lifted)
    shown = Marginals(tuple(rows), members, log_z=lifted.log_z, method=f"lifted counting ({lifted.cost})")
    answers: dict[str, Estimate] = {}
    for text, formula in asked.items():
        if isinstance(formula, Atom):
            constants = [t.index for t in formula.args if isinstance(t, Constant)]
            answers[text] = shown[atom_text(group.model, formula.predicate, constants)]
        else:
            answers[text] = Estimate(formula_probability(lifted, formula))
    return replace(shown, queries=answers, notices=tuple(group.notices))


def formula_probability(lifted: Lifted, formula: Formula) -> float:
    """At most two constants: from the joint distribution of their cells. More: by counting once more, with the
    formula as a hard one."""
    constants = {t for t in terms(formula) if isinstance(t, Constant)}
    idle = {atom.predicate for atom in atoms(formula)} & set(lifted.known.theory.idle)
    if len(constants) <= 2 and not idle:
        return probability(lifted, formula)
    model = lifted.known.theory.model
    held = replace(model, formulas=(*model.formulas, WeightedFormula(formula, None, {}, ())))
    try:
        return lift(held, lifted.bits).share_of(lifted)
    except Unsatisfiable:
        return 0.0
    except NotLiftable as reason:
        raise TooLarge(f"the number of constants of a query ({reason})", len(constants), 2,
                       "ask about two at a time") from None  # fmt: skip
