"""Places: where an atom can stand in a formula, and what its truth changes there, as Boolean expressions.

For a place (occurrence p of predicate R in a shape) and the atom R(a_0, ..., a_k), the formula is written twice over
leaves, with the atom true and with it false. Another occurrence q of R reads (bit or same) with the atom true and
(bit and not same) with it false, `same` being the conjunction of equalities that make q the same atom. A grounding
that also matches an earlier occurrence is excluded here, so each grounding counts once.
Leaves: ("r", predicate, terms) a bit of the state, ("=", term, term), ("E", variables, expression). Terms are those of
`shapes` and ("a", j), the atom's j-th constant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from definetti.samplers.codegen.expressions import (
    FALSE,
    TRUE,
    Expr,
    Leaf,
    assign,
    both,
    either,
    leaves,
    literal,
    negate,
    xor,
)
from definetti.samplers.codegen.shapes import Node, Shape, Term
from definetti.samplers.codegen.ties import Classes, merged

NOTHING_TIED = Classes()


@dataclass(frozen=True)
class Place:
    """Occurrence number `occurrence` of its predicate in shape number `shape`, with what the atom's truth changes.

    `guards`: pairs of terms that must be equal for the atom to match; `rest`: the free variables left to sum over.
    A soft formula has the goals "z+" (gained) and "z-" (lost); a hard one "y1" and "y0" (violated if true, if false).
    """

    shape: int
    occurrence: int
    guards: tuple[tuple[Term, Term], ...]
    rest: tuple[int, ...]
    goals: tuple[tuple[str, Expr], ...]
    bound: tuple[tuple[int, int], ...]  # (variable, argument) pairs
    slot_arguments: tuple[int, ...]  # arguments that are slots: instances are found by them
    times: int = 1  # places that are equal to this one by the formula's own symmetry, itself included


@dataclass
class Matching:
    """The substitution that makes an occurrence the atom: terms to the atom's constants, and guards for the rest."""

    binding: dict[Term, Term] = field(default_factory=dict)
    alias: dict[Term, Term] = field(default_factory=dict)
    guards: list[tuple[Term, Term]] = field(default_factory=list)

    def resolve(self, term: Term) -> Term:
        term = self.binding.get(term, term)
        return self.alias.get(term, term)


def occurrences(node: Node) -> Iterator[tuple[int, tuple[Term, ...]]]:
    """All (predicate, terms) of a body, in the order in which places are counted."""
    match node:
        case ("a", predicate, terms):
            yield predicate, terms
        case ("!", part) | ("E", _, part):
            yield from occurrences(part)
        case ("&" | "|", parts):
            for part in parts:
                yield from occurrences(part)
        case ("x", left, right):
            yield from occurrences(left)
            yield from occurrences(right)


def _match(terms: tuple[Term, ...], free: int, places: tuple[int, ...] | None = None) -> Matching:
    """`places`: which of the site's constants each argument of the occurrence must be (tied atoms: an image's)."""
    m = Matching()
    for j, term in enumerate(terms) if places is None else zip(places, terms, strict=True):
        if term[0] == "v" and term[1] >= free:
            continue  # a quantified argument matches any constant
        if term in m.binding:
            m.guards.append((("a", j), m.binding[term]))
            m.alias[("a", j)] = m.binding[term]
            continue
        m.binding[term] = ("a", j)
        if term[0] == "k":
            m.guards.append((term, ("a", j)))
    return m


def equal(a: Term, b: Term) -> Expr:
    return TRUE if a == b else literal(("=", min(a, b), max(a, b)))


def _same(
    terms: tuple[Term, ...], m: Matching, free: int, quantified: bool, places: tuple[int, ...] | None = None
) -> Expr:
    """The condition under which an occurrence is the atom; without `quantified`, for some value of what is bound."""
    wanted = [(m.resolve(t), m.resolve(("a", j if places is None else places[j]))) for j, t in enumerate(terms)]
    return both(equal(t, a) for t, a in wanted if quantified or not (t[0] == "v" and t[1] >= free))


def express(
    node: Node, m: Matching, free: int, predicate: int = -1, value: bool = False, tied: Classes = NOTHING_TIED
) -> Expr:
    """A body over leaves, with the atom of `predicate` that `m` describes put to `value` (-1: no atom is put in)."""

    def again(part: Node) -> Expr:
        return express(part, m, free, predicate, value, tied)

    match node:
        case ("1" | "0",):
            return node
        case ("a", p, terms):
            read = tied.read(p, tuple(m.resolve(t) for t in terms))
            for sign in (True, False):
                same = either(
                    _same(terms, m, free, True, places)
                    for q, places, s in tied.of(predicate) or ((predicate, None, True),)
                    if q == p and s == sign
                )
                read = either((read, same)) if value == sign else both((read, negate(same)))
            return read
        case ("=", left, right):
            return equal(m.resolve(left), m.resolve(right))
        case ("!", part):
            return negate(again(part))
        case ("&", parts):
            return both(again(p) for p in parts)
        case ("|", parts):
            return either(again(p) for p in parts)
        case ("x", left, right):
            return xor(again(left), again(right))
    return _quantifier(node[1], again(node[2]))


def _quantifier(variables: tuple[int, ...], body: Expr) -> Expr:
    if body == FALSE:
        return FALSE
    if body[0] == "l" and body[1][0] == "E" and body[2]:  # exist x exist y: one loop nest
        return literal(("E", variables + body[1][1], body[1][2]))
    return literal(("E", variables, body))


def places_of(shapes: tuple[Shape, ...], predicate: int, tied: Classes = NOTHING_TIED) -> list[Place]:
    """Every place of a predicate in which its truth can change something and that no earlier place covers.

    A tied class is one site: its images are matched with each occurrence of their predicates.
    """
    images = tied.of(predicate) or ((predicate, None, True),)
    found = []
    for s, shape in enumerate(shapes):
        here = [(terms, image[1]) for p, terms in occurrences(shape.body) for image in images if image[0] == p]
        for i in range(len(here)):
            place = _place(s, shape, predicate, here, i, tied)
            if place is not None:
                found.append(place)
    return merged(found, shapes) if tied.of(predicate) else found


def _place(
    s: int,
    shape: Shape,
    predicate: int,
    here: list[tuple[tuple[Term, ...], tuple[int, ...] | None]],
    i: int,
    tied: Classes,
) -> Place | None:
    terms, places = here[i]
    m = _match(terms, shape.free, places)
    apart = {
        ("=", *sorted((m.resolve(("a", j)), m.resolve(("a", k))))): False for j, k in tied.apart.get(predicate, ())
    }
    if any(leaf[1] == leaf[2] for leaf in apart):  # the occurrence asks for equal constants that never are
        return None
    first = both(negate(_same(q, m, shape.free, False, other)) for q, other in here[:i])
    true = express(shape.body, m, shape.free, predicate, True, tied)
    false = express(shape.body, m, shape.free, predicate, False, tied)
    if shape.hard:
        goals = [("y1", negate(true)), ("y0", negate(false))]
    else:
        goals = [("z+", both((true, negate(false)))), ("z-", both((false, negate(true))))]
    goals = [(name, both((e, first))) for name, e in goals]
    if tied.of(predicate):
        goals = [(name, tied.prune(assign(e, apart), apart)) for name, e in goals]
    kept = tuple((name, e) for name, e in goals if e != FALSE)
    if not kept:
        return None
    rest = tuple(v for v in range(shape.free) if ("v", v) not in m.binding)
    bound = tuple((t[1], a[1]) for t, a in m.binding.items() if t[0] == "v")
    slots = tuple(j if places is None else places[j] for j, t in enumerate(terms) if t[0] == "k")
    return Place(s, i, tuple(m.guards), rest, kept, bound, slots)


def variables_of(leaf: Leaf) -> frozenset[int]:
    """The variables a leaf depends on, those bound inside it apart."""
    if leaf[0] == "r":
        return frozenset(t[1] for t in leaf[2] if t[0] == "v")
    if leaf[0] == "=":
        return frozenset(t[1] for t in leaf[1:] if t[0] == "v")
    inner = frozenset().union(*(variables_of(x) for x in leaves(leaf[2]))) if leaf[2] != TRUE else frozenset()
    return inner - set(leaf[1])
