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
from itertools import combinations, groupby, permutations, product
from math import factorial, prod
from typing import Any

import numpy as np

from definetti.model.logic import theory
from definetti.model.logic.formulas import atoms, parts, quantified
from definetti.model.logic.normal_forms import hard_parts
from definetti.model.logic.theory import Formula, MarkovLogic, Not, Term, Variable, WeightedFormula

MOST_ATOMS = 9  # of one formula, or of one quantified part
MOST_WEIGHTS = 10_000  # of one formula's `+` variables
MOST_WORK = 10_000  # relabelled terms of one formula: half a second
MOST_WORK_IN_ALL = 20_000

Node = tuple[Any, ...]  # ("atom", P, terms), ("equal", terms), ("exist", sorts, atoms, table); terms: see `_term`
Function = tuple[tuple[Node, ...], int]  # formal atoms in order, and the truth table as a number
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
            if even and not _named(key[2]):
                continue
            image, coefficient = self._image(key, by)
            rows = found.setdefault(_blurred(image), {})
            constants = tuple(_constants(image[2]))
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
        return {key: frozenset(_predicates(key[2])) for key in self.blurred}

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


def _term(term: Term, number: Mapping[str, int | str]) -> Any:
    """A variable is its number (text, if a quantifier binds it), a constant its sort and index."""
    return number[term.name] if isinstance(term, Variable) else (term.sort, term.index)


def _function(
    formula: Formula, number: Mapping[str, int | str], plain: int, sorts: Mapping[str, str], depth: int = 0
) -> Function:
    """A body as a function of its formal atoms. Numbers below `plain` are different constants."""
    nodes: dict[Node, int] = {}
    tree = _tree(formula, number, plain, sorts, depth, nodes)
    table = np.broadcast_to(_evaluate(tree, len(nodes)), (2,) * len(nodes))
    return _reduced(tuple(nodes), table)


def _tree(
    formula: Formula,
    number: Mapping[str, int | str],
    plain: int,
    sorts: Mapping[str, str],
    depth: int,
    nodes: dict[Node, int],
) -> Any:
    """The connectives over numbers of formal atoms; a truth value where it is known."""

    def inner(part: Formula) -> Any:
        return _tree(part, number, plain, sorts, depth, nodes)

    match formula:
        case theory.Truth(value):
            return value
        case theory.Atom(predicate, args):
            return nodes.setdefault(("atom", predicate, tuple(_term(t, number) for t in args)), len(nodes)) + 2
        case theory.Equal(left, right):
            a, b = sorted((_term(left, number), _term(right, number)), key=_order)
            if a == b or (isinstance(a, tuple) and isinstance(b, tuple)):
                return a == b
            if isinstance(a, int) and isinstance(b, int) and max(a, b) < plain:
                return False
            return nodes.setdefault(("equal", (a, b)), len(nodes)) + 2
        case Not(part):
            return ("not", inner(part))
        case theory.Forall(names, body):
            return ("not", inner(theory.Exist(names, Not(body))))
        case theory.Exist(names, body):
            bound = {name: f"{depth}.{k}" for k, name in enumerate(names)}
            function = _function(body, {**number, **bound}, plain, sorts, depth + 1)
            return nodes.setdefault(_exist(depth, tuple(sorts[name] for name in names), function), len(nodes)) + 2
        case theory.And(some):
            return ("and", *(inner(part) for part in some))
        case theory.Or(some):
            return ("or", *(inner(part) for part in some))
        case theory.Implies(left, right):
            return ("or", ("not", inner(left)), inner(right))
        case theory.Iff(left, right):
            return ("iff", inner(left), inner(right))
    raise AssertionError(formula)


def _evaluate(tree: Any, width: int) -> Any:
    if isinstance(tree, bool):
        return np.bool_(tree)
    if isinstance(tree, int):
        return np.array([False, True]).reshape([2 if k == tree - 2 else 1 for k in range(width)])
    what, *inner = tree
    values = [_evaluate(part, width) for part in inner]
    if what == "not":
        return ~values[0]
    if what == "iff":
        return values[0] == values[1]
    total: Any = np.bool_(what == "and")
    for value in values:
        total = total & value if what == "and" else total | value
    return total


def _reduced(nodes: tuple[Node, ...], table: np.ndarray) -> Function:
    """Without the atoms that change nothing, in order."""
    kept = list(nodes)
    for axis in reversed(range(len(nodes))):
        first = table.take(0, axis=axis)
        if np.array_equal(first, table.take(1, axis=axis)):
            table = first
            del kept[axis]
    order = sorted(range(len(kept)), key=lambda k: _order(kept[k]))
    return tuple(kept[k] for k in order), _number(table.transpose(order))


def _number(table: np.ndarray) -> int:
    return int.from_bytes(np.packbits(table.ravel(), bitorder="little").tobytes(), "little")


def _table(function: Function) -> np.ndarray:
    width = len(function[0])
    octets = np.frombuffer(function[1].to_bytes(max(1, 2**width // 8), "little"), np.uint8)
    return np.unpackbits(octets, count=2**width, bitorder="little").astype(bool).reshape((2,) * width)


def _exist(depth: int, sorts: tuple[str, ...], function: Function) -> Node:
    """A quantified part, its variables in the order that makes it least."""
    best: Node | None = None
    for order in _orders(sorts):
        names = {f"{depth}.{k}": f"{depth}.{order[k]}" for k in range(len(sorts))}
        nodes = tuple(
            _renamed(node, lambda t, names=names: names.get(t, t) if isinstance(t, str) else t) for node in function[0]
        )
        found = ("exist", depth, tuple(sorts[k] for k in np.argsort(order)), *_reduced(nodes, _table(function)))
        if best is None or _order(found) < _order(best):
            best = found
    assert best is not None
    return best


def _orders(sorts: Sequence[str]) -> Iterator[tuple[int, ...]]:
    """New numbers for variables: those of one sort stay together, the sorts in order of their names."""
    ranked = sorted(range(len(sorts)), key=lambda k: sorts[k])
    groups = [list(group) for _, group in groupby(ranked, key=lambda k: sorts[k])]
    for choice in product(*(permutations(group) for group in groups)):
        new = [0] * len(sorts)
        for place, k in enumerate(k for part in choice for k in part):
            new[k] = place
        yield tuple(new)


def _order(value: Any) -> str:
    """A total order of keys of mixed kinds."""
    return repr(value)


def _renamed(node: Node, term: Callable[[Any], Any]) -> Node:
    """A formal atom with its terms replaced."""
    match node:
        case ("atom", predicate, args):
            return ("atom", predicate, tuple(term(t) for t in args))
        case ("equal", args):
            return ("equal", tuple(sorted((term(t) for t in args), key=_order)))
        case ("exist", depth, sorts, nodes, table):
            return _exist(depth, sorts, _reduced(tuple(_renamed(n, term) for n in nodes), _table((nodes, table))))
    raise AssertionError(node)


def _predicates(nodes: tuple[Node, ...]) -> Iterator[str]:
    for node in nodes:
        if node[0] == "atom":
            yield node[1]
        elif node[0] == "exist":
            yield from _predicates(node[3])


def _numbers(nodes: tuple[Node, ...]) -> Iterator[int]:
    """The numbers of free variables, as they occur."""
    for node in nodes:
        if node[0] == "exist":
            yield from _numbers(node[3])
        else:
            yield from (t for t in node[-1] if isinstance(t, int))


# --- terms -----------------------------------------------------------------------------------------------------------


def _add_terms(found: dict[Key, Fraction], cell: _Cell, formula: WeightedFormula, model: MarkovLogic) -> None:
    """Adds the expansion of the groundings of one cell."""
    nodes, table = _function(formula.body, cell.number, len(cell.sorts) - len(formula.plus), formula.sorts)
    width, plus = len(nodes), len(formula.plus)
    spectrum = _table((nodes, table)).astype(np.int64)
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
    used, total = set(_numbers(nodes)), 1
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
    used = sorted(k for k in set(_numbers(nodes)) if k < first)
    own = [sorts[k] for k in used]
    best: tuple[Node, ...] | None = None
    for order in _orders(own):
        number = {k: order[j] for j, k in enumerate(used)} | {first + k: len(used) + k for k in range(plus)}
        found = tuple(
            sorted((_renamed(n, lambda t, at=number: at[t] if isinstance(t, int) else t) for n in nodes), key=_order)
        )
        if best is None or _order(found) < _order(best):
            best = found
    assert best is not None
    return ((tuple(sorted(own)), sorts[first:]), weights, best)


def _blurred(key: Key) -> Key:
    """Constants of one sort alike, weights of one shape."""

    def blur(node: Node) -> Node:
        return _renamed(node, lambda t: (t[0], -1) if isinstance(t, tuple) else t)

    kind, other, nodes = key
    if isinstance(other, int):  # the table of a hard function
        return _canonical_function((tuple(map(blur, nodes)), other), kind) if _named(nodes) else key
    weights = None if other is None else (other[0], np.zeros(other[0]).tobytes())
    own, plus = kind
    return _canonical(tuple(map(blur, nodes)), (*own, *plus), len(plus), weights)


def _named(nodes: tuple[Node, ...]) -> bool:
    """Whether constants occur."""
    return next(_constants(nodes), None) is not None


def _constants(nodes: tuple[Node, ...]) -> Iterator[tuple[str, int]]:
    """The constants, as they occur."""
    for node in nodes:
        if node[0] == "exist":
            yield from _constants(node[3])
        else:
            yield from (t for t in node[-1] if isinstance(t, tuple))


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
            return ("equal", tuple(sorted((term(t) for t in args), key=_order))), True
        case ("exist", depth, sorts, nodes, table):
            return _exist(depth, sorts, _moved((nodes, table), by)), True
    raise AssertionError(node)


def _moved(function: Function, by: Relabelling) -> Function:
    images = [_image(node, by) for node in function[0]]
    table = _table(function)
    turned = [axis for axis, (_, same) in enumerate(images) if not same]
    return _reduced(tuple(node for node, _ in images), np.flip(table, tuple(turned)) if turned else table)


# --- hard functions --------------------------------------------------------------------------------------------------


def _hard_function(cell: _Cell, formula: WeightedFormula) -> Iterator[Key]:
    nodes, table = _function(formula.body, cell.number, len(cell.sorts), formula.sorts)
    if nodes or not table:  # what is always true says nothing
        yield _canonical_function((nodes, table), cell.sorts)


def _canonical_function(function: Function, sorts: tuple[str, ...]) -> Key:
    used = sorted(set(_numbers(function[0])))
    own, table = [sorts[k] for k in used], _table(function)
    best: Function | None = None
    for order in _orders(own):
        number = {k: order[j] for j, k in enumerate(used)}
        nodes = tuple(_renamed(n, lambda t, at=number: at[t] if isinstance(t, int) else t) for n in function[0])
        found = _reduced(nodes, table)
        if best is None or _order(found) < _order(best):
            best = found
    assert best is not None
    return (tuple(sorted(own)), best[1], best[0])


def _moved_function(key: Key, by: Relabelling) -> Key:
    own, table, nodes = key
    return _canonical_function(_moved((nodes, table), by), own)
