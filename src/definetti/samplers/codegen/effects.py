"""Text of the loops over groundings: what a flip of one atom changes, formula by formula, and what a state counts."""

from __future__ import annotations

from collections.abc import Mapping

from definetti.samplers.codegen import layout
from definetti.samplers.codegen.expressions import negate
from definetti.samplers.codegen.layout import Bits
from definetti.samplers.codegen.occurrences import Goal, Matching, Place, express
from definetti.samplers.codegen.plan import chance, plan
from definetti.samplers.codegen.shapes import Shape, Theory
from definetti.samplers.codegen.statements import Count, Scope, Statements, Word
from definetti.samplers.codegen.text import Text
from definetti.samplers.codegen.ties import classes_of

Flips = Mapping[int, list[Bits]]  # every orientation of a predicate


def single_shapes(theory: Theory, places: list[Place]) -> list[int]:
    """The shapes whose groundings have one integer counter each."""
    return sorted({p.shape for p in places if theory.shapes[p.shape].single and not theory.shapes[p.shape].hard})


def counted_as(theory: Theory, places: list[Place]) -> dict[int, str]:
    """What counts the groundings that an atom's truth wins, by shape of the soft formulas that speak of it."""
    found = sorted({p.shape for p in places if not theory.shapes[p.shape].hard})
    return {s: f"c{s}" if theory.shapes[s].single else f"u{s}" for s in found}


def write_effect(theory: Theory, predicate: int, places: list[Place]) -> Statements:
    """The counts, the violations and the rest of the local field of the atom a0, a1, ..."""
    out = Statements(theory)
    out.add("h = 0.0", "y1 = 0", "y0 = 0", *(f"{c} = 0" for c in counted_as(theory, places).values()))
    for place in places:
        write_place(out, theory.shapes[place.shape], place, predicate)
    return out


def write_place(out: Statements, shape: Shape, place: Place, predicate: int) -> None:
    s = place.shape
    with out.inside():
        if not shape.single:
            instance_loop(out, shape, s, place, predicate)
        for left, right in place.guards:
            out.open(f"if {left} == {right}:")
        goals, scope = place.goals, Scope(frozenset(), {}, shape.sorts)
        if shape.hard:
            out.evaluate(goals, place.rest, shape.plus, scope, Count(times=place.times))
        elif shape.single:
            goals = [Goal(f"c{s}", g.sign, g.expression) for g in goals]
            out.evaluate(goals, place.rest, shape.plus, scope, Count(times=place.times))
        else:
            plus = frozenset(shape.plus) & frozenset(place.rest)
            gather = f"h += {weight(out, shape, s, dict(place.bound))} * z; u{s} += z"
            out.add(*["z = 0"] * (not plus))
            out.evaluate(goals, place.rest, shape.plus, scope, Count(plus, "z = 0", gather, place.times))
            out.add(*[gather] * (not plus))


def instance_loop(out: Text, shape: Shape, number: int, place: Place | None = None, predicate: int = -1) -> None:
    """Opens the loop over the instances of a shape, found by the constants that the atom must share with them."""
    if not shape.slots:
        out.add("j = 0")
        return
    if place and place.slot_arguments:
        key = (number, predicate, place.occurrence)
        terms = [f"a{j} * {out.name(layout.key_step(key, j))}" for j in place.slot_arguments]
        out.add(f"at = {out.name(layout.pointer(key))} + {' + '.join(terms)}")
        out.open("for e in range(I(peek(indices, at)), I(peek(indices, at + 1))):")
        out.add(f"j = I(peek(indices, {out.name(layout.listed(key))} + e))")
    else:
        out.open(f"for j in range({out.name(layout.instances(number))}):")
    for j in range(len(shape.slots)):
        at = f"{out.name(layout.constants(number))} + j * {len(shape.slots)} + {j}"
        out.add(f"k{j} = I(peek(indices, {at}))")


def weight(out: Text, shape: Shape, number: int, argument: Mapping[int, int]) -> str:
    """The weight of instance j, at the values of the `+` variables; some of them are arguments of the atom."""
    index = "j"
    for v in shape.plus:
        index = f"({index} * {out.size(shape.sorts[v])} + {f'a{argument[v]}' if v in argument else f'v{v}'})"
    return f"peek(reals, {out.name(layout.weight(number))} + {index})"


def field_text(out: Text, single: list[int]) -> str:
    return " + ".join(["h", *(f"peek(reals, {out.name(layout.weight(s))}) * c{s}" for s in single)])


def write_observe(theory: Theory) -> Statements:
    """Counts the true groundings of every query, instance by instance."""
    out = Statements(theory)
    for q, shape in enumerate(theory.observed):
        with out.inside():
            out.add(f"start = {out.name(layout.seen(-1 - q))}")
            count_instances(out, shape, -1 - q, True)
            out.add("seen[NOW, start + j] = z0")
    if theory.observed:
        with out.inside("for q in range(seen.shape[1]):"):
            out.add("seen[SUM, q] += seen[NOW, q]", "seen[SQUARE, q] += seen[NOW, q] * seen[NOW, q]")
    return out


def write_violated(theory: Theory) -> Statements:
    """Counts the violated groundings of hard formulas."""
    out = Statements(theory)
    for s, shape in enumerate(theory.shapes):
        if shape.hard:
            with out.inside():
                count_instances(out, shape, s, False)
                out.add("total += z0")
    return out


def write_tallied(theory: Theory) -> Statements:
    """Counts the true groundings of every soft formula and the violated ones of hard formulas, from nothing."""
    out = Statements(theory)
    for s, shape in enumerate(theory.shapes):
        with out.inside():
            if shape.hard:
                count_instances(out, shape, s, False)
                out.add("tally[BROKEN] += z0")
            else:
                tally_instances(out, shape, s)
    return out


def tally_instances(out: Statements, shape: Shape, number: int) -> None:
    """Adds a soft shape to the tally; what is seldom is counted, true groundings or the others."""
    instance_loop(out, shape, number)
    e = express(shape.body, Matching(), tied=classes_of(out.theory.signatures))
    seldom = chance(e) <= 0.5
    box = [out.size(shape.sorts[v]) for v in range(shape.free) if v not in shape.plus]
    before = "z = 0" if seldom else f"z = {' * '.join(box or ['1'])}"
    after = f"tally[COUNTS + {number}] += z"
    if not shape.single:
        after += f"; tally[SOFT] += {weight(out, shape, number, {})} * z"
    plus = frozenset(shape.plus)
    goals = [Goal("z", 1, e) if seldom else Goal("z", -1, negate(e))]
    out.add(*[before] * (not plus))
    scope = Scope(frozenset(), {}, shape.sorts)
    out.evaluate(goals, tuple(range(shape.free)), shape.plus, scope, Count(plus, before, after))
    out.add(*[after] * (not plus))


def count_instances(out: Statements, shape: Shape, number: int, true: bool) -> None:
    """Opens the loop over a shape's instances and counts the groundings that are true (or false) in z0."""
    instance_loop(out, shape, number)
    e = express(shape.body, Matching(), tied=classes_of(out.theory.signatures))
    out.add("z0 = 0")
    goals = [Goal("z0", 1, e if true else negate(e))]
    todo, axis = plan([e], tuple(range(shape.free)), (), out.theory, shape.sorts)
    word = None if axis is None else Word(axis)
    out.descend(goals, todo, word, Scope(frozenset(), {}, shape.sorts), Count())
