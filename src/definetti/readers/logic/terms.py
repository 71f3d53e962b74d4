"""Terms that are computed: arithmetic and comparisons of integers, by Alchemy's rules, as relations of constants.

`State(s, i+1)` becomes `State(s, z)` for the z with `i + 1 = z`, a relation with one true atom per pair of
neighbours; a grounding whose successor is outside the sort does not count. The relation is a predicate like
any other whose atoms are all known, so that nothing after the reader has to know arithmetic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from zlib import crc32

import numpy as np

from definetti.errors import TooLarge
from definetti.model.logic.theory import Predicate, Sort
from definetti.readers.logic.raw import RawTerm

MOST_ROWS = 4_000_000  # combinations of constants that are looked at for one relation

#: Alchemy's names for operators: functions, then predicates.
FUNCTIONS = {"succ": "succ", "plus": "+", "minus": "-", "times": "*", "dividedBy": "/", "mod": "%"}
PREDICATES = {"greaterThan": ">", "lessThan": "<", "greaterThanEq": ">=", "lessThanEq": "<=", "substr": "substr"}
OPERATORS = frozenset({"+", "-", "*", "/", "%"})

_ARITHMETIC: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": lambda a, b: np.trunc(a / b), "%": np.fmod,
}  # fmt: skip
COMPARED: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "<": np.less, ">": np.greater, "<=": np.less_equal, ">=": np.greater_equal, "equal": np.equal,
    "unequal": lambda a, b: (a != b) & ~np.isnan(a) & ~np.isnan(b),
}  # fmt: skip
_WORDS = {
    "+": " plus ", "-": " minus ", "*": " times ", "/": " over ", "%": " mod ", "<": " less ", ">": " more ",
    "<=": " at most ", ">=": " at least ", "equal": " is ", "unequal": " is not ", "substr": " in ",
}  # fmt: skip
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def number_of(name: str) -> float:
    """The number that a constant's name is; NaN, which no comparison accepts, for other names."""
    return float(name) if _NUMBER.fullmatch(name) else np.nan


def is_computed(term: RawTerm) -> bool:
    """Whether a term's outermost function is an operator."""
    return term.function in OPERATORS


def variables_of(terms: Sequence[RawTerm]) -> list[RawTerm]:
    """The variables inside terms, each binder once, in order; those of inner function values included."""
    found: dict[int, RawTerm] = {}
    waiting = list(terms)
    while waiting:
        term = waiting.pop(0)
        if term.binder is not None:
            found.setdefault(id(term.binder), term)
        else:
            waiting[:0] = term.parts
    return list(found.values())


@dataclass
class Relations:
    """The computed relations of a model, by name."""

    sorts: Mapping[str, Sort]
    taken: Mapping[str, Predicate]
    fixed: bool = False  # in a query: only relations that the model has
    predicates: dict[str, Predicate] = field(default_factory=dict)
    rows: dict[str, np.ndarray] = field(default_factory=dict)

    def of(self, kind: str, left: RawTerm, right: RawTerm) -> tuple[str, list[RawTerm]] | None:
        """The predicate that says `left kind right` of the variables in both; None where the query's model lacks it."""
        variables = variables_of([left, right])
        sorts = tuple(term.binder.sort or "" for term in variables)
        name = self._name(kind, left, right, variables, sorts)
        if name not in self.predicates:
            if self.fixed:
                return (name, variables) if name in self.taken else None
            self.predicates[name] = Predicate(name, sorts)
            self.rows[name] = self._true(kind, left, right, variables, sorts)
        return name, variables

    def _name(self, kind: str, left: RawTerm, right: RawTerm, variables: list[RawTerm], sorts: Sequence[str]) -> str:
        letters = {id(term.binder): chr(ord("a") + k % 26) * (1 + k // 26) for k, term in enumerate(variables)}

        def text(term: RawTerm) -> str:
            if term.binder is not None:
                return letters[id(term.binder)]
            if term.function is None:
                return term.text
            return (
                f" of {term.function} {' and '.join(map(text, term.parts))} end "
                if len(term.parts) != 2
                else (f" {text(term.parts[0])}{_WORDS[term.function]}{text(term.parts[1])} ")
            )

        words = f"{' '.join(dict.fromkeys(sorts))} {text(left)}{_WORDS[kind]}{text(right)}"
        name = "_".join(re.sub(r"[^A-Za-z0-9]+", " ", words).split())
        if re.search(r"[^\w ]", words) or _nested([left, right]):
            name += f"_{crc32(words.encode()):x}"
        while name in self.taken and not self.fixed:
            name += "_"
        return name

    def _true(
        self, kind: str, left: RawTerm, right: RawTerm, variables: list[RawTerm], sorts: Sequence[str]
    ) -> np.ndarray:
        """int32[m, arity]: the combinations of constants for which it holds, in order."""
        last = variables[-1]
        if kind == "equal" and right.binder is last.binder and right.function is None and len(variables) > 1:
            inner = variables_of([left])
            if all(term.binder is not last.binder for term in inner):
                return self._values(left, inner, sorts)
        shape = self._shape(sorts)
        places = np.indices(shape, dtype=np.int32).reshape(len(shape), -1)
        known = {
            id(term.binder): (sort, places[k]) for k, (term, sort) in enumerate(zip(variables, sorts, strict=True))
        }
        if kind == "substr":
            names = [self._texts(term, known, places.shape[1]) for term in (left, right)]
            holds = np.fromiter((a in b for a, b in zip(*names, strict=True)), bool, places.shape[1])
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                holds = COMPARED[kind](self._numbers(left, known), self._numbers(right, known))
        return np.ascontiguousarray(places[:, np.broadcast_to(holds, places.shape[1:])].T)

    def _values(self, left: RawTerm, variables: list[RawTerm], sorts: Sequence[str]) -> np.ndarray:
        """Of `left = z`: compute, then look the value up; far fewer combinations than with z."""
        shape = self._shape(sorts[:-1])
        places = np.indices(shape, dtype=np.int32).reshape(len(shape), -1)
        known = {id(t.binder): (sort, places[k]) for k, (t, sort) in enumerate(zip(variables, sorts, strict=False))}
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.broadcast_to(self._numbers(left, known), places.shape[1:])
        numbers = np.array([number_of(name) for name in self.sorts[sorts[-1]].constants])
        order = np.argsort(numbers, kind="stable")
        at = np.minimum(np.searchsorted(numbers[order], value), len(order) - 1)
        found = numbers[order][at] == value
        return np.ascontiguousarray(np.vstack([places, order[at].astype(np.int32)])[:, found].T)

    def _shape(self, sorts: Sequence[str]) -> tuple[int, ...]:
        shape = tuple(self.sorts[sort].size for sort in sorts)
        if prod(shape) > MOST_ROWS:
            raise TooLarge(
                "a relation of computed terms", prod(shape), MOST_ROWS, "use fewer variables in it", unit="rows"
            )
        return shape

    def _numbers(self, term: RawTerm, known: Mapping[int, tuple[str, np.ndarray]]) -> np.ndarray:
        if term.binder is not None:
            sort, places = known[id(term.binder)]
            return np.array([number_of(name) for name in self.sorts[sort].constants])[places]
        if term.function is None:
            return np.array(number_of(term.text))
        return _ARITHMETIC[term.function](*(self._numbers(part, known) for part in term.parts))

    def _texts(self, term: RawTerm, known: Mapping[int, tuple[str, np.ndarray]], count: int) -> list[str]:
        if term.binder is None:
            return [term.text] * count
        sort, places = known[id(term.binder)]
        names = self.sorts[sort].constants
        return [names[i] for i in places.tolist()]


def _nested(terms: Sequence[RawTerm]) -> bool:
    return any(part.parts for term in terms for part in term.parts)


def constant_value(term: RawTerm) -> str | None:
    """The name of the number that arithmetic without variables gives; None where it has no value."""
    if term.function is None:
        return term.text
    numbers = [constant_value(part) for part in term.parts]
    if any(name is None for name in numbers):
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(_ARITHMETIC[term.function](*(np.array(number_of(name or "")) for name in numbers)))
    return None if not np.isfinite(value) else str(int(value)) if value == int(value) else repr(value)
