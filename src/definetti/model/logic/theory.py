"""MarkovLogic: sorts, constants, predicates, weighted formulas, evidence. It is never grounded to sample it.

p(x) is proportional to exp(sum over formulas and their groundings of weight · [the whole formula is true]), over the
states in which every grounding of every hard formula is true and that agree with the evidence.
Free variables of a formula are universal: each of their values is a grounding of its own, x = y included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from definetti.errors import ModelError, UnknownName, require_mapping, suggestion
from definetti.show import Shown

if TYPE_CHECKING:
    from definetti.model.logic.evidence import Knowledge

# --- formulas ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Variable:
    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """The `index`-th constant of a sort."""

    sort: str
    index: int


Term = Variable | Constant


@dataclass(frozen=True, slots=True)
class Truth:
    value: bool


@dataclass(frozen=True, slots=True)
class Atom:
    predicate: str
    args: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Equal:
    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Not:
    part: Formula


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Implies:
    left: Formula
    right: Formula


@dataclass(frozen=True, slots=True)
class Iff:
    left: Formula
    right: Formula


@dataclass(frozen=True, slots=True)
class Exist:
    variables: tuple[str, ...]  # names are unique within a formula: no shadowing, none is also free
    body: Formula


@dataclass(frozen=True, slots=True)
class Forall:
    variables: tuple[str, ...]
    body: Formula


Formula = Truth | Atom | Equal | Not | And | Or | Implies | Iff | Exist | Forall


# --- the model -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sort:
    """A named set of constants; the constants are numbered by their place."""

    name: str
    constants: tuple[str, ...]

    @property
    def size(self) -> int:
        return len(self.constants)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Constant → its place."""
        return {name: i for i, name in enumerate(self.constants)}

    def index(self, constant: str) -> int:
        try:
            return self.numbers[constant]
        except KeyError:
            first = f"; the first are {', '.join(self.constants[:5])}"
            close = suggestion(constant, self.constants, first)
            raise UnknownName(f"sort {self.name} has no constant {constant!r}{close}") from None


@dataclass(frozen=True)
class Predicate:
    """`exclusive` lists the places of `!` arguments: given the other arguments exactly one of their values is true."""

    name: str
    sorts: tuple[str, ...]
    exclusive: tuple[int, ...] = ()
    function: bool = False  # declared as a function: the last argument is its value


@dataclass(frozen=True, eq=False)
class WeightedFormula:
    """`weight` is None for a hard formula. With `+` variables it is an array, one axis per variable of `plus`."""

    body: Formula
    weight: float | np.ndarray | None
    sorts: Mapping[str, str]  # of every variable, free and quantified, in order of first occurrence
    free: tuple[str, ...]  # the free (universal) variables, in order of first occurrence
    plus: tuple[str, ...] = ()
    source: str = ""  # as the user wrote it
    line: int | None = None

    @property
    def hard(self) -> bool:
        return self.weight is None


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of one predicate: rows of constants with the value 0 or 1, sorted, without repetition."""

    tuples: np.ndarray  # int32[m, arity]
    values: np.ndarray  # int8[m]


@dataclass(frozen=True, eq=False)
class MarkovLogic(Shown):
    """A Markov logic network. `read` and `markov_logic` make one.

    Attributes
    ----------
    sorts, predicates : mapping
        By name.
    formulas : tuple of WeightedFormula
        Soft and hard ones.
    evidence : mapping
        What is known of each predicate.
    closed : frozenset of str
        Predicates that are false wherever the evidence does not speak of them.
    unknown : mapping
        Atoms of closed predicates that are left open.
    dialect : str
        Of the language that was read: alchemy, tuffy or pracmln.
    unweighted : tuple of int
        Formulas without a weight: `info`, `symmetries` and `ground` accept them (with stand-in weights that no other
        formula has), inference does not.

    Examples
    --------
    >>> import definetti as dft
    >>> model = dft.markov_logic("Smokes(person)\\n1.5 Smokes(Anna)", domain={"person": 2})
    >>> model.atom_count, model.sorts["person"].constants
    (2, ('Anna', 'Person1'))
    """

    kind: ClassVar[str] = "logic"  # which of the two kinds of model this is

    sorts: Mapping[str, Sort]
    predicates: Mapping[str, Predicate]
    formulas: tuple[WeightedFormula, ...]
    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    closed: frozenset[str] = frozenset()
    unknown: Mapping[str, np.ndarray] = field(default_factory=dict)  # int32[m, arity]: `?P(A)` in a closed predicate
    sized: frozenset[str] = frozenset()  # sorts whose size the formulas depend on: split weights, arithmetic
    dialect: str = "alchemy"  # of the language that was read
    unweighted: tuple[int, ...] = ()  # formulas without a weight: their weights are stand-ins
    computed: frozenset[str] = frozenset()  # predicates that the reader made: relations of arithmetic

    def condition(self, evidence: Mapping[str, bool | None]) -> MarkovLogic:
        """The same model with more atoms observed.

        Parameters
        ----------
        evidence : mapping
            Ground atoms to True, False or None (left open, in a closed predicate).

        Returns
        -------
        MarkovLogic
            A new model; this one is unchanged.

        Raises
        ------
        UnknownName
            For an atom that the model does not have.
        ModelError
            Where the evidence contradicts what is observed already.

        Examples
        --------
        >>> import definetti as dft
        >>> text = "Smokes(person)\\nCancer(person)\\n1.5 Smokes(x) => Cancer(x)"
        >>> model = dft.markov_logic(text, domain={"person": 2})
        >>> round(dft.exact(model.condition({"Smokes(Person1)": True}))["Cancer(Person1)"].probability, 4)
        0.8176
        """
        from definetti.model.logic.change import with_evidence

        return with_evidence(self, require_mapping(evidence))

    def with_domain(self, **sizes: int) -> MarkovLogic:
        """The same model with other numbers of constants.

        Parameters
        ----------
        **sizes : int
            The number of constants of each sort that changes. New constants are called Person1, Person2, … after
            their sort; of fewer constants those stay that formulas and evidence name.

        Returns
        -------
        MarkovLogic
            A new model; this one is unchanged.

        Raises
        ------
        UnknownName
            For a sort that the model does not have.
        ModelError
            Where formulas and evidence name more constants, or depend on their number.

        Examples
        --------
        >>> import definetti as dft
        >>> model = dft.markov_logic("Smokes(person)\\n1.5 Smokes(Anna)")
        >>> model.with_domain(person=1000)
        MarkovLogic(person=1000; 1000 atoms, 1 formulas, 1 groundings)
        """
        from definetti.model.logic.change import with_domain

        return with_domain(self, sizes)

    def require_weights(self) -> None:
        """An error if formulas have no weight: their probabilities would mean nothing."""
        if self.unweighted:
            first = self.formulas[self.unweighted[0]]
            line = f", the first in line {first.line}" if first.line else ""
            raise ModelError(
                f"{len(self.unweighted)} formulas have no weight ({first.source}{line}): give them one, or all of them "
                "the same by --default-weight W (default_weight=W)"
            )

    def shape(self, predicate: str) -> tuple[int, ...]:
        """The sizes of a predicate's arguments: it has one atom per element of this box."""
        return tuple(self.sorts[s].size for s in self.predicates[predicate].sorts)

    @cached_property
    def knowledge(self) -> Knowledge:
        """What evidence, closed worlds and `!` blocks say of each atom."""
        from definetti.model.logic.evidence import Knowledge

        return Knowledge(self)

    @property
    def atom_count(self) -> int:
        """All ground atoms, observed ones included (an exact integer, whatever its size)."""
        total = 0
        for name in self.predicates:
            size = 1
            for k in self.shape(name):
                size *= k
            total += size
        return total

    @property
    def ground_count(self) -> int:
        """All groundings of all formulas."""
        total = 0
        for formula in self.formulas:
            size = 1
            for variable in formula.free:
                size *= self.sorts[formula.sorts[variable]].size
            total += size
        return total

    def __repr__(self) -> str:
        sorts = ", ".join(f"{s.name}={s.size}" for s in self.sorts.values())
        counts = f"{self.atom_count} atoms, {len(self.formulas)} formulas, {self.ground_count} groundings"
        return f"MarkovLogic({sorts}; {counts})"
