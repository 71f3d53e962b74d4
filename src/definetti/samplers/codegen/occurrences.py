"""Places: where an atom can stand in a formula, and what its truth changes there, as Boolean expressions.

For a place (occurrence p of predicate R in a shape) and the atom R(a_0, ..., a_k), the formula is written twice over
leaves, with the atom true and with it false. Another occurrence q of R reads (bit or same) with the atom true and
(bit and not same) with it false, `same` being the conjunction of equalities that make q the same atom. A grounding
that also matches an earlier occurrence is excluded here, so each grounding counts once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import permutations

from definetti.samplers.codegen.expressions import (
    FALSE,
    And,
    Argument,
    Equal,
    Exists,
    Expr,
    Leaf,
    Literal,
    Or,
    Read,
    Slot,
    Term,
    Variable,
    Xor,
    assign,
    both,
    either,
    equality,
    leaves,
    negate,
    rebuild,
)
from definetti.samplers.codegen.shapes import Image, Shape
from definetti.samplers.codegen.ties import Classes

NOTHING_TIED = Classes()
MOST_RENAMED = 3  # free variables whose renamings are tried


@dataclass(frozen=True)
class Goal:
    """A count to be made: `sign` times the number of groundings in which the expression is true, into a counter."""

    counter: str
    sign: int
    expression: Expr

    def with_expression(self, expression: Expr) -> Goal:
        return replace(self, expression=expression)


@dataclass(frozen=True)
class Place:
    """Occurrence number `occurrence` of its predicate in shape number `shape`, with what the atom's truth changes.

    A soft formula has goals for `z`, what is gained (+) and lost (-) by the atom's truth; a hard one has goals for `y1`
    and `y0`, what is violated if the atom is true and if it is false.
    """

    shape: int
    occurrence: int
    guards: tuple[tuple[Term, Term], ...]  # pairs of terms that must be equal for the atom to match
    rest: tuple[int, ...]  # the free variables left to sum over
    goals: tuple[Goal, ...]
    bound: tuple[tuple[int, int], ...]  # (variable, argument) pairs
    slot_arguments: tuple[int, ...]  # arguments that are slots: instances are found by them
    times: int = 1  # places that are equal to this one by the formula's own symmetry, itself included

    @property
    def slot_of(self) -> dict[int, int]:
        """The slot that must hold the atom's constant, by argument."""
        return {right.number: left.number for left, right in self.guards if isinstance(left, Slot)}


@dataclass
class Matching:
    """The substitution that makes an occurrence the atom: terms to the atom's constants, and guards for the rest."""

    binding: dict[Term, Argument] = field(default_factory=dict)
    alias: dict[Term, Argument] = field(default_factory=dict)
    guards: list[tuple[Term, Term]] = field(default_factory=list)

    def resolve(self, term: Term) -> Term:
        term = self.binding.get(term, term)
        return self.alias.get(term, term)


def occurrences(body: Expr) -> Iterator[Read]:
    """All atoms of a body, in the order in which places are counted."""
    for leaf in leaves(body):
        match leaf:
            case Read():
                yield leaf
            case Exists(_, inner):
                yield from occurrences(inner)


def _quantified(term: Term, free: int) -> bool:
    return isinstance(term, Variable) and term.number >= free


def _match(terms: tuple[Term, ...], free: int, places: tuple[int, ...]) -> Matching:
    """`places`: which of the site's constants each argument of the occurrence must be."""
    m = Matching()
    for j, term in zip(places, terms, strict=True):
        if _quantified(term, free):
            continue  # a quantified argument matches any constant
        if term in m.binding:
            m.guards.append((Argument(j), m.binding[term]))
            m.alias[Argument(j)] = m.binding[term]
            continue
        m.binding[term] = Argument(j)
        if isinstance(term, Slot):
            m.guards.append((term, Argument(j)))
    return m


def _same(terms: tuple[Term, ...], m: Matching, places: tuple[int, ...]) -> Expr:
    """The condition under which an occurrence is the atom."""
    return both(equality(m.resolve(t), m.resolve(Argument(j))) for j, t in zip(places, terms, strict=True))


def _same_for_some(terms: tuple[Term, ...], m: Matching, places: tuple[int, ...], free: int) -> Expr:
    """The same for some value of the quantified variables."""
    bare = [(t, j) for t, j in zip(terms, places, strict=True) if not _quantified(m.resolve(t), free)]
    return _same(tuple(t for t, _ in bare), m, tuple(j for _, j in bare))


def express(
    body: Expr, m: Matching, images: tuple[Image, ...] = (), value: bool = False, tied: Classes = NOTHING_TIED
) -> Expr:
    """A body over leaves, with the atom that `m` describes, and all its images, put to `value` (no image: as it is)."""

    def read(p: int, terms: tuple[Term, ...]) -> Expr:
        e = tied.read(p, tuple(m.resolve(t) for t in terms))
        for sign in (True, False):
            same = either(_same(terms, m, i.places) for i in images if i.predicate == p and i.sign == sign)
            e = either((e, same)) if value == sign else both((e, negate(same)))
        return e

    def put(leaf: Leaf, sign: bool) -> Expr:
        match leaf:
            case Read(p, terms):
                e = read(p, terms)
            case Equal(left, right):
                e = equality(m.resolve(left), m.resolve(right))
            case Exists(variables, inner):
                e = _quantifier(variables, rebuild(inner, put))
        return e if sign else negate(e)

    return rebuild(body, put)


def _quantifier(variables: tuple[int, ...], body: Expr) -> Expr:
    match body:
        case Literal(Exists(more, inner), True):  # exist x exist y: one loop nest
            return Literal(Exists(variables + more, inner))
    return FALSE if body == FALSE else Literal(Exists(variables, body))


def places_of(shapes: tuple[Shape, ...], predicate: int, tied: Classes = NOTHING_TIED) -> list[Place]:
    """Every place of a predicate in which its truth can change something and that no earlier place covers.

    A tied class is one site: its images are matched with each occurrence of their predicates.
    """
    found = []
    for s, shape in enumerate(shapes):
        reads = list(occurrences(shape.body))
        itself = [Image(predicate, tuple(range(len(x.terms)))) for x in reads if x.predicate == predicate]
        images = tied.of(predicate) or tuple(itself[:1])
        here = [(x.terms, i.places) for x in reads for i in images if i.predicate == x.predicate]
        for i in range(len(here)):
            place = _place(s, shape, predicate, images, here[: i + 1], tied)
            if place is not None:
                found.append(place)
    return merged(found, shapes) if tied.of(predicate) else found


def _place(
    s: int,
    shape: Shape,
    predicate: int,
    images: tuple[Image, ...],
    here: list[tuple[tuple[Term, ...], tuple[int, ...]]],
    tied: Classes,
) -> Place | None:
    """The place of the last of the occurrences `here`, (terms, which of the site's constants they must be) each."""
    terms, places = here[-1]
    m = _match(terms, shape.free, places)
    pairs = [(m.resolve(Argument(j)), m.resolve(Argument(k))) for j, k in tied.apart.get(predicate, ())]
    if any(a == b for a, b in pairs):  # the occurrence asks for equal constants that never are
        return None
    apart: dict[Leaf, bool] = {Equal(*sorted(pair)): False for pair in pairs}
    first = both(negate(_same_for_some(q, m, other, shape.free)) for q, other in here[:-1])
    true = express(shape.body, m, images, True, tied)
    false = express(shape.body, m, images, False, tied)
    if shape.hard:
        goals = [Goal("y1", 1, negate(true)), Goal("y0", 1, negate(false))]
    else:
        goals = [Goal("z", 1, both((true, negate(false)))), Goal("z", -1, both((false, negate(true))))]
    goals = [g.with_expression(both((g.expression, first))) for g in goals]
    if tied.of(predicate):
        goals = [g.with_expression(tied.prune(assign(g.expression, apart), apart)) for g in goals]
    kept = tuple(g for g in goals if g.expression != FALSE)
    if not kept:
        return None
    rest = tuple(v for v in range(shape.free) if Variable(v) not in m.binding)
    bound = tuple((t.number, a.number) for t, a in m.binding.items() if isinstance(t, Variable))
    slots = tuple(j for j, t in zip(places, terms, strict=True) if isinstance(t, Slot))
    return Place(s, len(here) - 1, tuple(m.guards), rest, kept, bound, slots)


# --- places that are equal by a formula's own symmetry ---


def merged(places: list[Place], shapes: tuple[Shape, ...]) -> list[Place]:
    """Places of soft formulas whose effect is the same, as one that counts several times."""
    found: dict[object, int] = {}
    out: list[Place] = []
    for place in places:
        shape = shapes[place.shape]
        if shape.hard or shape.slots or shape.plus or len(place.rest) > MOST_RENAMED:
            out.append(place)
            continue
        key = min(_key(place, shape, order) for order in permutations(place.rest))
        if key in found:
            at = found[key]
            out[at] = replace(out[at], times=out[at].times + 1)
        else:
            found[key] = len(out)
            out.append(place)
    return out


def _key(place: Place, shape: Shape, order: tuple[int, ...]) -> tuple[str, tuple[str, ...]]:
    """What a place does, with its variables counted in this order."""
    new: dict[Term, Term] = {Variable(v): Variable(-1 - k) for k, v in enumerate(order)}
    goals = sorted(repr((g.counter, g.sign, _in_order(_renamed(g.expression, new)))) for g in place.goals)
    sorts = tuple(shape.sorts[v] for v in order)
    return repr((place.shape, place.guards, sorts)), tuple(goals)


def _renamed(e: Expr, new: Mapping[Term, Term]) -> Expr:
    def put(leaf: Leaf, sign: bool) -> Expr:
        match leaf:
            case Read(p, terms):
                return Literal(Read(p, tuple(new.get(t, t) for t in terms)), sign)
            case Equal(left, right):
                return Literal(Equal(*sorted((new.get(left, left), new.get(right, right)))), sign)
            case Exists(variables, body):
                return Literal(Exists(variables, _renamed(body, new)), sign)

    return rebuild(e, put)


def _in_order(e: Expr) -> Expr:
    """Parts in a fixed order, so that equal expressions are equal."""
    match e:
        case And(parts) | Or(parts):
            return type(e)(tuple(sorted(map(_in_order, parts), key=repr)))
        case Xor(left, right):
            return Xor(*sorted(map(_in_order, (left, right)), key=repr))
    return e
