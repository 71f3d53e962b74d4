"""Boolean expressions over leaves, in negation normal form: what a generated kernel evaluates on machine words.

An expression is TRUE, FALSE, ("l", leaf, sign), ("&", parts), ("|", parts) or ("x", left, right) (exclusive or).
A leaf is any tuple; its meaning (a bit of the state, an equality, a quantifier) is `occurrences`'s business.
The constructors fold constants, so that a formula with the flipped atom put in loses what the atom decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

Expr = tuple
Leaf = tuple

TRUE: Expr = ("1",)
FALSE: Expr = ("0",)


def literal(leaf: Leaf, sign: bool = True) -> Expr:
    return ("l", leaf, sign)


def negate(e: Expr) -> Expr:
    kind = e[0]
    if kind == "1":
        return FALSE
    if kind == "0":
        return TRUE
    if kind == "l":
        return ("l", e[1], not e[2])
    if kind == "&":
        return either(negate(p) for p in e[1])
    if kind == "|":
        return both(negate(p) for p in e[1])
    return xor(e[1], negate(e[2]))


def _gather(kind: str, unit: Expr, zero: Expr, parts: Iterable[Expr]) -> Expr:
    found: list[Expr] = []
    for part in parts:
        for p in part[1] if part[0] == kind else (part,):
            if p == zero or negate(p) in found:
                return zero
            if p != unit and p not in found:
                found.append(p)
    if not found:
        return unit
    return found[0] if len(found) == 1 else (kind, tuple(found))


def both(parts: Iterable[Expr]) -> Expr:
    """The conjunction. A literal among the parts is put into the others: p & (p | q) is p, p & (!p | q) is p & q."""
    e = _gather("&", TRUE, FALSE, parts)
    return _absorb(e, both)


def either(parts: Iterable[Expr]) -> Expr:
    e = _gather("|", FALSE, TRUE, parts)
    return _absorb(e, either)


def _absorb(e: Expr, again: Callable[[Iterable[Expr]], Expr]) -> Expr:
    if e[0] not in "&|" or all(p[0] == "l" for p in e[1]):
        return e
    single = {p[1]: p[2] for p in e[1] if p[0] == "l"}
    if e[0] == "|":
        single = {leaf: not sign for leaf, sign in single.items()}
    new = [p if p[0] == "l" else assign(p, single) for p in e[1]]
    return e if tuple(new) == e[1] else again(new)


def xor(a: Expr, b: Expr) -> Expr:
    if a[0] in "01":
        return b if a == FALSE else negate(b)
    if b[0] in "01":
        return a if b == FALSE else negate(a)
    if a == b:
        return FALSE
    return TRUE if a == negate(b) else ("x", a, b)


def rebuild(e: Expr, put: Callable[[Leaf, bool], Expr]) -> Expr:
    """The expression with `put(leaf, sign)` in place of each literal."""
    kind = e[0]
    if kind == "l":
        return put(e[1], e[2])
    if kind == "&":
        return both(rebuild(p, put) for p in e[1])
    if kind == "|":
        return either(rebuild(p, put) for p in e[1])
    if kind == "x":
        return xor(rebuild(e[1], put), rebuild(e[2], put))
    return e


def assign(e: Expr, values: dict[Leaf, bool]) -> Expr:
    def put(leaf: Leaf, sign: bool) -> Expr:
        if leaf not in values:
            return ("l", leaf, sign)
        return TRUE if values[leaf] == sign else FALSE

    return rebuild(e, put)


def leaves(e: Expr) -> Iterator[Leaf]:
    kind = e[0]
    if kind == "l":
        yield e[1]
    elif kind in "&|":
        for p in e[1]:
            yield from leaves(p)
    elif kind == "x":
        yield from leaves(e[1])
        yield from leaves(e[2])


def possible(e: Expr, known: Callable[[Leaf], bool]) -> Expr:
    """An expression over known leaves that is true whenever `e` can be: unknown literals count as true.

    Sound because negation normal form is monotone in its literals; an exclusive or is kept only if wholly known.
    """
    kind = e[0]
    if kind == "l":
        return e if known(e[1]) else TRUE
    if kind == "&":
        return both(possible(p, known) for p in e[1])
    if kind == "|":
        return either(possible(p, known) for p in e[1])
    if kind == "x":
        return e if all(known(leaf) for leaf in leaves(e)) else TRUE
    return e


def conjuncts(e: Expr) -> tuple[Expr, ...]:
    return e[1] if e[0] == "&" else (e,)


def without(e: Expr, parts: frozenset[Expr]) -> Expr:
    """The expression given that the conjuncts `parts` are true."""
    return both(p for p in conjuncts(e) if p not in parts)
