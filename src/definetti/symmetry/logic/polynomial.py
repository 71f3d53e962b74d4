"""The log density of a theory in a canonical form that two ways of writing it share: a polynomial in ±1 variables.

A formula is a Boolean function of its atoms. Its Walsh–Fourier expansion is a sum of products of spins, -1 for a true
atom and 1 for a false one, so that negating a predicate only changes signs: w F and -w !F differ by the constant term,
which is left out. Groundings are sorted by which of their variables are equal, so that the variables of a term stand
for *different* constants; a variable that does not occur in a term counts its constants. Coefficients are exact
fractions of the weights as they were written. Quantified parts are functions of their own (Forall is not-Exist-not)
that take part like atoms; `+` variables and constants keep their place. Hard formulas are canonical Boolean functions.

Equal forms mean equal densities, up to a constant. The reverse does not hold: hard formulas that imply each other only
together are not recognised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import factorial, prod
from typing import Any

import numpy as np

from definetti.model.logic import theory
from definetti.model.logic.formulas import atoms, parts, quantified
from definetti.model.logic.normal_forms import hard_parts
from definetti.model.logic.theory import Formula, MarkovLogic, WeightedFormula
from definetti.symmetry.logic.boolean_functions import (
    Function,
    Node,
    constants_in,
    existential,
    function_of,
    names_constants,
    numbers_in,
    orders,
    predicates_in,
    rank,
    reduced,
    renamed,
    truth_table,
)

MOST_ATOMS = 9  # of one formula, or of one quantified part
MOST_WEIGHTS = 10_000  # of one formula's `+` variables
MOST_WORK = 10_000  # relabelled terms of one formula: half a second
MOST_WORK_IN_ALL = 20_000

Key = tuple[Any, ...]
NamedRows = dict[Key, dict[tuple[tuple[str, int], ...], list[Fraction | float]]]


@dataclass(frozen=True)
class Relabelling:
    """What a symmetry does to atoms: P(a) becomes Q(a[places]), negated where `sign` is false; constants may move."""

    predicate: Mapping[str, tuple[str, tuple[int, ...], bool]]
    constant: Callable[[str, int], int] | None = None
    array: Callable[[tuple[str, ...], np.ndarray], np.ndarray] | None = (
        None  # of weights by `+` variables of these sorts
    )


@dataclass(frozen=True, eq=False)
class Polynomial:
    """`terms[key]` is the coefficient of a term; `hard` are the Boolean functions that must hold.

    A key is (sorts of the variables, weights by `+` variables or None, formal atoms).
    """

    terms: Mapping[Key, Fraction]
    hard: frozenset[Key]
    pinned: frozenset[str]  # predicates of formulas that are too large to expand: a symmetry must leave them alone

    def _image(self, key: Key, by: Relabelling) -> tuple[Key, Fraction | None]:
        """What a term, or a hard function (with None), becomes."""
        if key in self.hard:
            return _moved_function(key, by), None
        image, sign = _moved_term(key, by)
        return image, sign * self.terms[key]

    def _has(self, key: Key, coefficient: Fraction | None) -> bool:
        return key in self.hard if coefficient is None else self.terms.get(key) == coefficient

    def preserved(self, by: Relabelling) -> bool:
        """Whether a permutation of atoms maps the polynomial onto itself (it is injective, so into is onto)."""
        return all(self._has(*self._image(key, by)) for key in [*self.terms, *self.hard])

    @cached_property
    def blurred(self) -> Mapping[Key, tuple[Fraction, ...]]:
        """The coefficients of the terms that are alike but for their constants and the weights of `+` variables, and
        the hard functions, with nothing: what a relabelling preserves if it does so with some renaming (which may turn
        the sign of weights, so that of their coefficients is left out)."""
        found: dict[Key, list[Fraction]] = {key: [] for key in map(_blurred, self.hard)}
        for key, coefficient in self.terms.items():
            found.setdefault(_blurred(key), []).append(coefficient if key[1] is None else abs(coefficient))
        return {key: tuple(sorted(some)) for key, some in found.items()}

    def allows(self, key: Key, by: Relabelling) -> bool:
        """Whether a blurred term, or function, has an image with the same coefficients."""
        some = self.blurred[key]
        if not some:
            return self.blurred.get(_moved_function(key, by)) == ()
        image, sign = _moved_term(key, by)
        return self.blurred.get(image) == (some if key[1] is not None else tuple(sorted(sign * x for x in some)))

    def rows(self, by: Relabelling) -> NamedRows:
        """After a relabelling, for each blurred key the constants of its terms, those of `+` variables included, with
        the coefficients that they carry (infinity in hard functions)."""
        found: NamedRows = {}
        for key in [*self.terms, *self.hard]:
            weighted = key in self.terms and key[1] is not None
            even = not weighted or len(set(_weights_of(key).ravel().tolist())) == 1
            if even and not names_constants(key[2]):
                continue
            image, coefficient = self._image(key, by)
            rows = found.setdefault(_blurred(image), {})
            constants = tuple(constants_in(image[2]))
            if coefficient is None or not weighted:
                rows.setdefault(constants, []).append(np.inf if coefficient is None else coefficient)
                continue
            plus = image[0][1]
            for index, weight in np.ndenumerate(_weights_of(image)):
                rows.setdefault((*constants, *zip(plus, index, strict=True)), []).append(coefficient * Fraction(weight))
        return found

    @cached_property
    def predicates_of(self) -> Mapping[Key, frozenset[str]]:
        """Of the blurred terms and functions."""
        return {key: frozenset(predicates_in(key[2])) for key in self.blurred}

    @cached_property
    def predicates(self) -> frozenset[str]:
        return frozenset().union(*self.predicates_of.values())


def polynomial(model: MarkovLogic) -> Polynomial:
    """The canonical form of all formulas of a model."""
    found: dict[Key, Fraction] = {}
    hard: set[Key] = set()
    pinned: set[str] = set()
    left = MOST_WORK_IN_ALL
    for formula in model.formulas:
        for part in hard_parts(formula) if formula.hard else [formula]:
            work = _work(part)
            if work > min(MOST_WORK, left):
                pinned |= {atom.predicate for atom in atoms(part.body)}
                continue
            left -= work
            for cell in _cells(part, model):
                if formula.hard:
                    hard |= set(_hard_function(cell, part))
                else:
                    _add_terms(found, cell, part, model)
    kept = {key: value for key, value in found.items() if value}
    return Polynomial(kept, frozenset(hard), frozenset(pinned))


def _work(formula: WeightedFormula) -> int:
    """About how many terms are relabelled to bring a formula into its canonical form."""
    own, inside = _tops(formula.body)
    if own > MOST_ATOMS or inside > MOST_ATOMS or _weight_count(formula) > MOST_WEIGHTS:
        return MOST_WORK + 1
    sorts = [formula.sorts[v] for v in formula.free]
    orders = prod(factorial(sorts.count(s)) for s in set(sorts))
    bound = [formula.sorts[v] for v in quantified(formula.body)]
    return orders * 2**own * prod(factorial(bound.count(s)) for s in set(bound)) * max(1, len(sorts)) ** 2


def _weight_count(formula: WeightedFormula) -> int:
    return 1 if formula.weight is None else np.asarray(formula.weight).size


def _tops(formula: Formula) -> tuple[int, int]:
    """How many formal atoms a formula has: on the outside, and at most inside of one quantifier."""
    match formula:
        case theory.Exist(_, body) | theory.Forall(_, body):
            own, deeper = _tops(body)
            return 1, max(own, deeper)
        case theory.Atom() | theory.Equal():
            return 1, 0
    inner = [_tops(part) for part in parts(formula)]
    return sum(own for own, _ in inner), max((deep for _, deep in inner), default=0)


# --- groundings, sorted by which variables are equal -----------------------------------------------------------------


@dataclass(frozen=True)
class _Cell:
    """One way in which variables of a formula are equal: each stands for a number, different numbers for different
    constants; `+` variables have numbers of their own, after the others."""

    number: Mapping[str, int]
    sorts: tuple[str, ...]  # of the numbers


def _cells(formula: WeightedFormula, model: MarkovLogic) -> Iterator[_Cell]:
    plain = [v for v in formula.free if v not in formula.plus]
    for blocks in _partitions(plain, formula.sorts):
        sorts = [formula.sorts[block[0]] for block in blocks]
        if any(sorts.count(s) > model.sorts[s].size for s in sorts):
            continue
        number = {v: k for k, block in enumerate(blocks) for v in block}
        number |= {v: len(blocks) + k for k, v in enumerate(formula.plus)}
        yield _Cell(number, (*sorts, *(formula.sorts[v] for v in formula.plus)))


def _partitions(names: Sequence[str], sorts: Mapping[str, str]) -> Iterator[list[list[str]]]:
    if not names:
        yield []
        return
    *head, last = names
    for blocks in _partitions(head, sorts):
        yield [*blocks, [last]]
        for k, block in enumerate(blocks):
            if sorts[block[0]] == sorts[last]:
                yield [*blocks[:k], [*block, last], *blocks[k + 1 :]]


# --- Boolean functions of formal atoms -------------------------------------------------------------------------------


# --- terms -----------------------------------------------------------------------------------------------------------


def _add_terms(found: dict[Key, Fraction], cell: _Cell, formula: WeightedFormula, model: MarkovLogic) -> None:
    """Adds the expansion of the groundings of one cell."""
    nodes, table = function_of(formula.body, cell.number, len(cell.sorts) - len(formula.plus), formula.sorts)
    width, plus = len(nodes), len(formula.plus)
    spectrum = truth_table((nodes, table)).astype(np.int64)
    for axis in range(width):
        low, high = spectrum.take(0, axis=axis), spectrum.take(1, axis=axis)
        spectrum = np.stack([low + high, low - high], axis=axis)
    weight, weights = _weight(formula, cell)
    if not weight:
        return
    for size in range(1, width + 1):
        for chosen in combinations(range(width), size):
            value = int(spectrum[tuple(int(k in chosen) for k in range(width))])
            if value:
                some = tuple(nodes[k] for k in chosen)
                copies = _copies(some, cell.sorts, plus, model)
                key = _canonical(some, cell.sorts, plus, weights)
                found[key] = found.get(key, Fraction(0)) + weight * Fraction(value * copies, 2**width)


def _weight(formula: WeightedFormula, cell: _Cell) -> tuple[Fraction, Any]:
    """The weight as it was written; with `+` variables 1 or -1, and the weights of which the first is positive."""
    if not formula.plus:
        return Fraction(repr(float(formula.weight))), None  # pyright: ignore[reportArgumentType]
    weights = np.asarray(formula.weight, dtype=float)
    if not weights.any():
        return Fraction(0), None
    return _signed(weights)


def _signed(weights: np.ndarray) -> tuple[Fraction, Any]:
    flat = weights.ravel()
    sign = 1 if flat[np.flatnonzero(flat)[0]] > 0 else -1
    return Fraction(sign), (weights.shape, (sign * weights + 0.0).tobytes())


def _weights_of(key: Key) -> np.ndarray:
    """The weights by `+` variables in a term's key."""
    shape, octets = key[1]
    return np.frombuffer(octets).reshape(shape)


def _copies(nodes: tuple[Node, ...], sorts: tuple[str, ...], plus: int, model: MarkovLogic) -> int:
    """In how many ways the variables that do not occur can be chosen, different from the others and each other."""
    used, total = set(numbers_in(nodes)), 1
    plain = range(len(sorts) - plus)
    taken = {s: sum(sorts[k] == s for k in plain if k in used) for s in set(sorts)}
    for k in plain:
        if k not in used:
            total *= model.sorts[sorts[k]].size - taken[sorts[k]]
            taken[sorts[k]] += 1
    return total


def _canonical(nodes: tuple[Node, ...], sorts: tuple[str, ...], plus: int, weights: Any) -> Key:
    """The variables renumbered so that the key is least; `+` variables, of which none is dropped, keep their order."""
    first = len(sorts) - plus
    used = sorted(k for k in set(numbers_in(nodes)) if k < first)
    own = [sorts[k] for k in used]
    best: tuple[Node, ...] | None = None
    for order in orders(own):
        number = {k: order[j] for j, k in enumerate(used)} | {first + k: len(used) + k for k in range(plus)}
        found = tuple(
            sorted((renamed(n, lambda t, at=number: at[t] if isinstance(t, int) else t) for n in nodes), key=rank)
        )
        if best is None or rank(found) < rank(best):
            best = found
    assert best is not None
    return ((tuple(sorted(own)), sorts[first:]), weights, best)


def _blurred(key: Key) -> Key:
    """Constants of one sort alike, weights of one shape."""

    def blur(node: Node) -> Node:
        return renamed(node, lambda t: (t[0], -1) if isinstance(t, tuple) else t)

    kind, other, nodes = key
    if isinstance(other, int):  # the table of a hard function
        return _canonical_function((tuple(map(blur, nodes)), other), kind) if names_constants(nodes) else key
    weights = None if other is None else (other[0], np.zeros(other[0]).tobytes())
    own, plus = kind
    return _canonical(tuple(map(blur, nodes)), (*own, *plus), len(plus), weights)


def _moved_term(key: Key, by: Relabelling) -> tuple[Key, int]:
    (own, plus), weights, nodes = key
    sign, moved = 1, []
    for node in nodes:
        image, same = _image(node, by)
        moved.append(image)
        sign = sign if same else -sign
    if weights is not None and by.array is not None:
        turn, weights = _signed(by.array(plus, _weights_of(key)))
        sign *= int(turn)
    return _canonical(tuple(moved), (*own, *plus), len(plus), weights), sign


def _image(node: Node, by: Relabelling) -> tuple[Node, bool]:
    """The image of a formal atom, and whether it keeps its sign."""

    def term(t: Any) -> Any:
        return (t[0], by.constant(*t)) if isinstance(t, tuple) and by.constant is not None else t

    match node:
        case ("atom", predicate, args):
            name, places, sign = by.predicate.get(predicate, (predicate, tuple(range(len(args))), True))
            return ("atom", name, tuple(term(args[k]) for k in places)), sign
        case ("equal", args):
            return ("equal", tuple(sorted((term(t) for t in args), key=rank))), True
        case ("exist", depth, sorts, nodes, table):
            return existential(depth, sorts, _moved((nodes, table), by)), True
    raise AssertionError(node)


def _moved(function: Function, by: Relabelling) -> Function:
    images = [_image(node, by) for node in function[0]]
    table = truth_table(function)
    turned = [axis for axis, (_, same) in enumerate(images) if not same]
    return reduced(tuple(node for node, _ in images), np.flip(table, tuple(turned)) if turned else table)


# --- hard functions --------------------------------------------------------------------------------------------------


def _hard_function(cell: _Cell, formula: WeightedFormula) -> Iterator[Key]:
    nodes, table = function_of(formula.body, cell.number, len(cell.sorts), formula.sorts)
    if nodes or not table:  # what is always true says nothing
        yield _canonical_function((nodes, table), cell.sorts)


def _canonical_function(function: Function, sorts: tuple[str, ...]) -> Key:
    used = sorted(set(numbers_in(function[0])))
    own, table = [sorts[k] for k in used], truth_table(function)
    best: Function | None = None
    for order in orders(own):
        number = {k: order[j] for j, k in enumerate(used)}
        nodes = tuple(renamed(n, lambda t, at=number: at[t] if isinstance(t, int) else t) for n in function[0])
        found = reduced(nodes, table)
        if best is None or rank(found) < rank(best):
            best = found
    assert best is not None
    return (tuple(sorted(own)), best[1], best[0])


def _moved_function(key: Key, by: Relabelling) -> Key:
    own, table, nodes = key
    return _canonical_function(_moved((nodes, table), by), own)
