"""Boolean functions of formal atoms, in a canonical form: a truth table over the atoms that matter, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, permutations, product
from typing import Any

import numpy as np

from definetti.model.logic import theory
from definetti.model.logic.theory import Formula, Not, Term, Variable

Node = tuple[Any, ...]  # ("atom", P, terms), ("equal", terms), ("exist", sorts, atoms, table); terms: see `_term`
Function = tuple[tuple[Node, ...], int]  # formal atoms in order, and the truth table as a number


def _term(term: Term, number: Mapping[str, int | str]) -> Any:
    """A variable is its number (text, if a quantifier binds it), a constant its sort and index."""
    return number[term.name] if isinstance(term, Variable) else (term.sort, term.index)


def function_of(
    formula: Formula, number: Mapping[str, int | str], plain: int, sorts: Mapping[str, str], depth: int = 0
) -> Function:
    """A body as a function of its formal atoms. Numbers below `plain` are different constants."""
    nodes: dict[Node, int] = {}
    tree = _tree(formula, number, plain, sorts, depth, nodes)
    table = np.broadcast_to(_evaluate(tree, len(nodes)), (2,) * len(nodes))
    return reduced(tuple(nodes), table)


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
            a, b = sorted((_term(left, number), _term(right, number)), key=rank)
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
            function = function_of(body, {**number, **bound}, plain, sorts, depth + 1)
            return nodes.setdefault(existential(depth, tuple(sorts[name] for name in names), function), len(nodes)) + 2
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


def reduced(nodes: tuple[Node, ...], table: np.ndarray) -> Function:
    """Without the atoms that change nothing, in order."""
    kept = list(nodes)
    for axis in reversed(range(len(nodes))):
        first = table.take(0, axis=axis)
        if np.array_equal(first, table.take(1, axis=axis)):
            table = first
            del kept[axis]
    order = sorted(range(len(kept)), key=lambda k: rank(kept[k]))
    return tuple(kept[k] for k in order), _number(table.transpose(order))


def _number(table: np.ndarray) -> int:
    return int.from_bytes(np.packbits(table.ravel(), bitorder="little").tobytes(), "little")


def truth_table(function: Function) -> np.ndarray:
    width = len(function[0])
    octets = np.frombuffer(function[1].to_bytes(max(1, 2**width // 8), "little"), np.uint8)
    return np.unpackbits(octets, count=2**width, bitorder="little").astype(bool).reshape((2,) * width)


def existential(depth: int, sorts: tuple[str, ...], function: Function) -> Node:
    """A quantified part, its variables in the order that makes it least."""
    best: Node | None = None
    for order in orders(sorts):
        names = {f"{depth}.{k}": f"{depth}.{order[k]}" for k in range(len(sorts))}
        nodes = tuple(
            renamed(node, lambda t, names=names: names.get(t, t) if isinstance(t, str) else t) for node in function[0]
        )
        found = ("exist", depth, tuple(sorts[k] for k in np.argsort(order)), *reduced(nodes, truth_table(function)))
        if best is None or rank(found) < rank(best):
            best = found
    assert best is not None
    return best


def orders(sorts: Sequence[str]) -> Iterator[tuple[int, ...]]:
    """New numbers for variables: those of one sort stay together, the sorts in order of their names."""
    by_sort = sorted(range(len(sorts)), key=lambda k: sorts[k])
    groups = [list(group) for _, group in groupby(by_sort, key=lambda k: sorts[k])]
    for choice in product(*(permutations(group) for group in groups)):
        new = [0] * len(sorts)
        for place, k in enumerate(k for part in choice for k in part):
            new[k] = place
        yield tuple(new)


def rank(value: Any) -> str:
    """A total order of keys of mixed kinds."""
    return repr(value)


def renamed(node: Node, term: Callable[[Any], Any]) -> Node:
    """A formal atom with its terms replaced."""
    match node:
        case ("atom", predicate, args):
            return ("atom", predicate, tuple(term(t) for t in args))
        case ("equal", args):
            return ("equal", tuple(sorted((term(t) for t in args), key=rank)))
        case ("exist", depth, sorts, nodes, table):
            inner = tuple(renamed(n, term) for n in nodes)
            return existential(depth, sorts, reduced(inner, truth_table((nodes, table))))
    raise AssertionError(node)


def predicates_in(nodes: tuple[Node, ...]) -> Iterator[str]:
    for node in nodes:
        if node[0] == "atom":
            yield node[1]
        elif node[0] == "exist":
            yield from predicates_in(node[3])


def numbers_in(nodes: tuple[Node, ...]) -> Iterator[int]:
    """The numbers of free variables, as they occur."""
    for node in nodes:
        if node[0] == "exist":
            yield from numbers_in(node[3])
        else:
            yield from (t for t in node[-1] if isinstance(t, int))


def names_constants(nodes: tuple[Node, ...]) -> bool:
    """Whether constants occur."""
    return next(constants_in(nodes), None) is not None


def constants_in(nodes: tuple[Node, ...]) -> Iterator[tuple[str, int]]:
    """The constants, as they occur."""
    for node in nodes:
        if node[0] == "exist":
            yield from constants_in(node[3])
        else:
            yield from (t for t in node[-1] if isinstance(t, tuple))
