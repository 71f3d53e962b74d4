"""Assembles the source text of a kernel from a theory: an update function per predicate, queries, and the fixed text.

The text depends on the structure alone; every size, weight and constant is looked up in arrays whose places the
`Layout` counts. Equal theories give equal text.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from definetti.samplers.codegen.expressions import FALSE, TRUE, negate
from definetti.samplers.codegen.occurrences import Matching, Place, express, places_of
from definetti.samplers.codegen.plan import plan
from definetti.samplers.codegen.shapes import Shape, Theory
from definetti.samplers.codegen.statements import Source
from definetti.samplers.codegen.text import Count, Layout, Scope, Text, Word
from definetti.samplers.codegen.ties import classes_of

SWEEP_TEMPLATE = Path(__file__).parent / "templates" / "sweep.py"
RUNTIME = Path(__file__).parents[1] / "kernels" / "relational.py"
MARK = "# --- text ---\n"
PLAIN = '''"""A relational kernel as plain Python: the same text, uncompiled."""
import math

import numpy as np

from definetti.samplers.kernels import rng

next_word, unit = rng.next_word.py_func, rng.unit.py_func


def helper(function):
    return function


entry = part = helper


def popcount(x):
    return int(x).bit_count()


def lowest(x):
    return (int(x) & -int(x)).bit_length() - 1


def peek(array, index):
    return array[index]


def cell(table, row, column):
    return table[row, column]


def test(words, index, bit):
    return words[index] >> np.uint64(bit & 63) & np.uint64(1)


def toggle(words, index, bit):
    words[index] ^= np.uint64(1) << np.uint64(bit & 63)


'''
ARRAYS = "numbers, indices, reals, words, bits, coords, uniform, values, chance, fields"
COUNTED = "numbers, indices, reals, words, bits, seen"


@dataclass(frozen=True)
class Counted:
    """Bounds of an integer counter: at one place, groundings over variables of these sorts add or subtract one each."""

    shape: int
    sorts: tuple[int, ...]
    gains: bool
    loses: bool
    certain: bool  # every grounding counts, whatever the state
    times: int = 1


@dataclass(frozen=True)
class Written:
    """A kernel's text with what is needed to lay out its data."""

    text: str
    layout: Layout
    places: dict[int, list[Place]]
    counters: dict[int, list[Counted]]  # by predicate; only of shapes that are counted in integers


def instance_loop(src: Source, shape: Shape, number: int, place: Place | None, predicate: int) -> None:
    """Opens the loop over the instances of a shape, found by the constants that the atom must share with them."""
    if not shape.slots:
        src.text.add("j = 0")
        return
    key = (number, predicate, place.occurrence if place else -1)
    if place and place.slot_arguments:
        terms = [f"a{j} * {src.number('key', *key, j)}" for j in place.slot_arguments]
        src.text.add(f"x = {src.number('pointer', *key)} + {' + '.join(terms)}")
        src.text.add("for e in range(I(peek(indices, x)), I(peek(indices, x + 1))):")
        src.text.depth += 1
        src.text.add(f"j = I(peek(indices, {src.number('list', *key)} + e))")
    else:
        src.text.add(f"for j in range({src.number('instances', number)}):")
        src.text.depth += 1
    for j in range(len(shape.slots)):
        at = f"{src.number('constants', number)} + j * {len(shape.slots)} + {j}"
        src.text.add(f"k{j} = I(peek(indices, {at}))")


def weight(src: Source, shape: Shape, number: int, bound: dict[int, str]) -> str:
    index = "j"
    for v in shape.plus:
        index = f"({index} * {src.size(shape.sorts[v])} + {bound.get(v, f'v{v}')})"
    return f"peek(reals, {src.number('weight', number)} + {index})"


def write_place(src: Source, shape: Shape, place: Place, predicate: int) -> None:
    s = place.shape
    with src.text.inside():
        if not shape.single:
            instance_loop(src, shape, s, place, predicate)
        for left, right in place.guards:
            src.text.add(f"if {src.value(left)} == {src.value(right)}:")
            src.text.depth += 1
        goals = list(place.goals)
        if shape.single and not shape.hard:
            goals = [(f"c{s}{name[-1]}", e) for name, e in goals]
        plus = frozenset(shape.plus) & frozenset(place.rest)
        gather = "" if shape.single or shape.hard else f"h += {weight(src, shape, s, dict_of(place))} * z"
        todo, axis = plan([e for _, e in goals], place.rest, shape.plus, src.theory, shape.sorts)
        scope = Scope(frozenset(), {}, shape.sorts)
        sink = Count(plus if gather else frozenset(), "z = 0", gather, place.times)
        if gather and not plus:
            src.text.add("z = 0")
        src.descend(goals, todo, None if axis is None else Word(axis), scope, sink)
        if gather and not plus:
            src.text.add(gather)


def dict_of(place: Place) -> dict[int, str]:
    return {v: f"a{j}" for v, j in place.bound}


def counted(shape: Shape, place: Place) -> Counted:
    goals = dict(place.goals)
    gains, loses = goals.get("z+", FALSE), goals.get("z-", FALSE)
    certain = not place.guards and (gains, loses) in ((TRUE, FALSE), (FALSE, TRUE))
    sorts = tuple(shape.sorts[v] for v in place.rest)
    return Counted(place.shape, sorts, gains != FALSE, loses != FALSE, certain, place.times)


def write_effect(src: Source, theory: Theory, predicate: int, places: list[Place]) -> list[int]:
    """The counts, the violations and the rest of the local field of the atom a0, a1, ...: the deterministic part."""
    single = sorted({p.shape for p in places if theory.shapes[p.shape].single and not theory.shapes[p.shape].hard})
    for name in ("h = 0.0", "y1 = 0", "y0 = 0"):
        src.text.add(name)
    for s in single:
        src.text.add(f"c{s} = 0")
    for place in places:
        write_place(src, theory.shapes[place.shape], place, predicate)
    return single


def field_text(src: Source, single: list[int]) -> str:
    return " + ".join(["h", *(f"peek(reals, {src.number('weight', s)}) * c{s}" for s in single)])


def write_chance(src: Source, theory: Theory, predicate: int, places: list[Place], single: list[int]) -> None:
    """P(true | rest) from the effect: looked up by the counts where the table is small, else computed."""
    text = src.text
    if all(theory.shapes[p.shape].single for p in places):
        index = [f"(c{s} - {src.number('low', predicate, s)}) * {src.number('step', predicate, s)}" for s in single]
        table = src.number("table", predicate)
        text.add(f"if {table} >= 0:")
        text.add(f"    p = peek(reals, {' + '.join([table, *index])})")
        text.add("else:")
        text.add(f"    p = logistic({field_text(src, single)})")
    else:
        text.add(f"p = logistic({field_text(src, single)})")
    if is_held(theory, places):
        text.add("if y1 > 0 or y0 > 0:")
        text.add("    if greedy == 0 and y1 > 0 and y0 > 0: return i")
        text.add("    if y1 != y0: p = 0.0 if y1 > y0 else 1.0")
        atom = ("r", predicate, tuple(("a", j) for j in range(len(theory.signatures[predicate].sorts))))
        text.add(f"if greedy == KEEP and y1 == y0: p = float({src.read(atom, Scope(frozenset(), {}, ()))})")


def write_live(src: Source, theory: Theory, predicate: int, chance: str) -> None:
    """Remembers that the atom could have moved: an atom that hard formulas hold at every update is frozen."""
    arity = len(theory.signatures[predicate].sorts)
    terms = tuple(("a", j) for j in range(arity))
    src.text.add(f"if {chance} > 0.0 and {chance} < 1.0:")
    with src.text.inside():
        src.text.depth += 1
        axis = (arity - 1,) if arity else ()
        last = f"a{arity - 1}"
        index, bit = (f"({last} >> 6)", f"ONE << U({last} & 63)") if arity else ("0", "ONE")
        src.text.add(f"bits[U({src.address(predicate, terms, axis, index, 'live')})] |= {bit}")


def is_held(theory: Theory, places: list[Place]) -> bool:
    """Whether hard formulas speak of a predicate."""
    return any(theory.shapes[p.shape].hard for p in places)


def write_flip(src: Source, theory: Theory, predicate: int) -> None:
    """The atom's bit changes in every orientation, and so do those tied to it, each once."""
    arity = len(theory.signatures[predicate].sorts)
    itself = (predicate, tuple(range(arity)), True)
    images = theory.signatures[predicate].images or (itself,)
    for k, (q, places, _) in enumerate(images):
        earlier = [other for p, other, _ in images[:k] if p == q]
        apart = [
            " or ".join(f"a{i} != a{j}" for i, j in zip(places, other, strict=True) if i != j) for other in earlier
        ]
        test = " and ".join(f"({x})" for x in apart)
        with src.text.inside(f"if {test}:" if test else ""):
            flip_bits(src, q, tuple(("a", j) for j in places))


def flip_bits(src: Source, predicate: int, terms: tuple[tuple[str, int], ...]) -> None:
    """One atom's bit in every orientation; a diagonal holds only atoms with equal constants there."""
    for axis in src.layout.orientations(predicate):
        if not axis:
            src.text.add(f"toggle(bits, {src.address(predicate, terms, axis, '0')}, 0)")
            continue
        first, others = src.value(terms[axis[0]]), [src.value(terms[j]) for j in axis[1:]]
        with src.text.inside(f"if {' and '.join(f'{first} == {x}' for x in others)}:" if others else ""):
            src.text.add(f"toggle(bits, {src.address(predicate, terms, axis, f'({first} >> 6)')}, {first})")


def write_update(theory: Theory, layout: Layout, predicate: int, places: list[Place]) -> Source:
    """The loop over a chunk of sites of an ordinary predicate, up to the flip (which needs all orientations)."""
    src = Source(theory, layout, Text(depth=2))
    arity = len(theory.signatures[predicate].sorts)
    for j in range(arity):
        src.text.add(f"a{j} = I(coords[{j}, i])")
    single = write_effect(src, theory, predicate, places)
    write_chance(src, theory, predicate, places, single)
    if is_held(theory, places):
        write_live(src, theory, predicate, "p")
    src.text.add("new = U(draw(uniform[i], p))")
    src.text.add("chance[i] = p")
    src.text.add("values[i] = I(new)")
    atom = ("r", predicate, tuple(("a", j) for j in range(arity)))
    src.text.add(f"if new != {src.read(atom, Scope(frozenset(), {}, ()))}:")
    src.text.depth += 1
    return src


def write_block(theory: Theory, layout: Layout, predicate: int, places: list[Place]) -> Source:
    """The loop over sites of a `!` predicate: each value's effect against the cleared block, then one draw.

    Values are as legal as the current one or they are out; if one is *more* legal, the state was illegal.
    """
    signature = theory.signatures[predicate]
    src = Source(theory, layout, Text(depth=2))
    terms = tuple(("a", j) for j in range(len(signature.sorts)))
    for j in range(len(signature.sorts)):
        if j not in signature.exclusive:
            src.text.add(f"a{j} = I(coords[{j}, i])")
    src.text.add("current = I(-1)")
    value_loops(src, signature.exclusive, signature.sorts)
    src.text.add(f"if {src.read(('r', predicate, terms), Scope(frozenset(), {}, ()))} != ZERO:")
    src.text.add("    current = value")
    src.text.add("    FLIP")
    src.text.depth = 2
    src.text.add("if current < 0: return i")
    value_loops(src, signature.exclusive, signature.sorts)
    src.text.add(f"g = {src.number('barred', predicate)}")
    src.text.add(f"if g >= 0 and {home_bit(src, theory, predicate)} != ZERO:")
    src.text.add("    fields[1, value] = BARRED")
    src.text.add("    continue")
    single = write_effect(src, theory, predicate, places)
    src.text.add(f"fields[0, value] = {field_text(src, single)}")
    src.text.add("fields[1, value] = y1 - y0")
    src.text.depth = 2
    count = " * ".join(src.size(signature.sorts[j]) for j in signature.exclusive)
    src.text.add(f"if soften(fields, {count}, current, greedy, chance, i): return i")
    src.text.add(f"new = draw_value(uniform[i], chance, i * {count}, {count})")
    src.text.add("values[i] = new")
    value_loops(src, signature.exclusive, signature.sorts)
    if is_held(theory, places):
        write_live(src, theory, predicate, f"chance[i * {count} + value]")
    src.text.add("if value == new:")
    src.text.depth += 1
    return src


def value_loops(src: Source, exclusive: tuple[int, ...], sorts: tuple[int, ...]) -> None:
    """Nested loops over a block's values, counted by `value`."""
    src.text.add("value = -1")
    for j in exclusive:
        src.text.add(f"for a{j} in range({src.size(sorts[j])}):")
        src.text.depth += 1
    src.text.add("value += 1")


def home_bit(src: Source, theory: Theory, predicate: int) -> str:
    """The bit of the current atom in a mask laid out like the predicate itself, at offset `g` of `words`."""
    sorts = theory.signatures[predicate].sorts
    row = "0"
    for j in range(len(sorts) - 1):
        row = f"({row} * {src.size(sorts[j])} + a{j})"
    last = len(sorts) - 1
    return f"test(words, g + {row} * {src.words(sorts[last])} + (a{last} >> 6), a{last})"


def finish(src: Source, theory: Theory, predicate: int) -> str:
    """A whole update function: the flips go in, now that all orientations are known."""
    write_flip(src, theory, predicate)
    lines = []
    for line in src.text.lines:
        if line.strip() != "FLIP":
            lines.append(line)
            continue
        inner = Source(theory, src.layout, Text(depth=(len(line) - len(line.lstrip())) // 4))
        write_flip(inner, theory, predicate)
        src.locals.update(inner.locals)
        lines += inner.text.lines
    head = ["@helper", f"def update_{predicate}({ARRAYS}, m, greedy):"]
    names = [f"    {name} = {where}" for name, where in src.locals.items()]
    return "\n".join([*head, *names, "    for i in range(m):", *lines, "    return -1"]) + "\n"


def write_counts(theory: Theory, layout: Layout, shapes: tuple[Shape, ...], name: str, violated: bool) -> str:
    """A function that counts true (or violated) groundings of shapes, instance by instance."""
    src = Source(theory, layout, Text(depth=1))
    for number, shape in enumerate(shapes):
        if violated and not shape.hard:
            continue
        key = number if violated else -1 - number
        with src.text.inside():
            src.text.add(f"start = {'0' if violated else src.number('seen', key)}")
            instance_loop(src, shape, key, None, -1)
            e = express(shape.body, Matching(), shape.free, tied=classes_of(theory.signatures))
            todo, axis = plan([e], tuple(range(shape.free)), (), theory, shape.sorts)
            src.text.add("z0 = 0")
            goals = [("z0", negate(e) if violated else e)]
            scope = Scope(frozenset(), {}, shape.sorts)
            src.descend(goals, todo, None if axis is None else Word(axis), scope, Count())
            src.text.add("total += z0" if violated else "seen[NOW, start + j] = z0")
    lines = [f"def {name}({COUNTED}):", "    total = 0"]
    lines += [f"    {local} = {where}" for local, where in src.locals.items()]
    if not violated and shapes:
        src.text.add("for q in range(seen.shape[1]):")
        src.text.add("    seen[SUM, q] += seen[NOW, q]")
        src.text.add("    seen[SQUARE, q] += seen[NOW, q] * seen[NOW, q]")
    decorator = "@entry" if violated else "@helper"
    return "\n".join([decorator, *lines, *src.text.lines, "    return total"]) + "\n"


@cache
def fixed_text(path: Path) -> tuple[str, str]:
    """A file of fixed text in two: what only the compiled kernel needs, and what also runs as plain Python."""
    compiled, shared = path.read_text(encoding="utf-8").split(MARK)
    return compiled, shared


def write_kernel(theory: Theory) -> Written:
    """The text of a kernel below its header; `module_text` puts a header in front."""
    layout = Layout()
    tied = classes_of(theory.signatures)
    places: dict[int, list[Place]] = {}
    drafts = {}
    for p, signature in enumerate(theory.signatures):
        if signature.sorts:
            layout.number(("o", p, (len(signature.sorts) - 1,)))
        else:
            layout.number(("o", p, ()))
        if signature.free:
            places[p] = places_of(theory.shapes, p, tied)
            write = write_block if signature.exclusive else write_update
            drafts[p] = write(theory, layout, p, places[p])
    counts = [write_counts(theory, layout, theory.observed, "observe", False)]
    if any(s.hard for s in theory.shapes):
        counts.append(write_counts(theory, layout, theory.shapes, "violated", True))
    updates = [finish(src, theory, p) for p, src in drafts.items()]
    choice = ["@helper", f"def update({ARRAYS}, p, m, greedy):"]
    choice += [f"    if p == {p}: return update_{p}({ARRAYS}, m, greedy)" for p in drafts]
    blocks = any(s.exclusive for s in theory.signatures)
    gather = "fold_tied" if tied.images else f"fold{'_blocks' * blocks}"
    aliases = [f"choose = fill{'_random' * theory.random}", f"gather = {gather}"]
    counters = {
        p: [counted(theory.shapes[x.shape], x) for x in found if not theory.shapes[x.shape].hard]
        for p, found in places.items()
        if all(theory.shapes[x.shape].single for x in found)
    }
    text = "\n\n".join([*updates, *counts, "\n".join([*choice, "    return -1", "", "", *aliases]) + "\n"])
    return Written(text, layout, places, counters)


def module_text(written: Written, plain: bool = False) -> str:
    """The text of a whole module."""
    compiled, sweep = fixed_text(SWEEP_TEMPLATE)
    _, runtime = fixed_text(RUNTIME)
    if plain:
        return "\n\n".join([PLAIN, runtime, sweep, written.text])
    return "\n\n".join([compiled + sweep, written.text])
