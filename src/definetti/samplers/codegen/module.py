"""Assembles the source text of a kernel from a theory: an update function per predicate, counts, and the fixed text.

The passes, each a function of what the earlier ones return: places of every predicate (`occurrences`), the statements
of their effects and of the counts (`statements`), the orientations that these read, the update functions around the
effects (a flip writes every orientation), the layout of all numbers (`layout`), the text. It depends on the structure
alone: every size, weight and constant is looked up in arrays. Equal theories give equal text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from definetti.samplers.codegen import layout
from definetti.samplers.codegen.effects import (
    Flips,
    counted_as,
    field_text,
    single_shapes,
    write_effect,
    write_observe,
    write_tallied,
    write_violated,
)
from definetti.samplers.codegen.expressions import TRUE, Term
from definetti.samplers.codegen.layout import Bits, Layout, layout_of
from definetti.samplers.codegen.occurrences import Place, places_of
from definetti.samplers.codegen.shapes import Image, Theory
from definetti.samplers.codegen.text import Text, arguments, site
from definetti.samplers.codegen.ties import classes_of

TEMPLATE = Path(__file__).parent / "templates" / "sweep.py"
ARRAYS = "numbers, indices, reals, words, bits, coords, uniform, values, chance, fields, level, tilt, tally"
COUNTED = "numbers, indices, reals, words, bits, seen"
TALLIED = "numbers, indices, reals, words, bits, tally"


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


def write_kernel(theory: Theory) -> Written:
    """The text of a kernel below its header; `module_text` puts the fixed text in front."""
    tied = classes_of(theory.signatures)
    free = [p for p, signature in enumerate(theory.signatures) if signature.free]
    places = {p: places_of(theory.shapes, p, tied) for p in free}
    effects = {p: write_effect(theory, p, places[p]) for p in free}
    counts = {"observe": write_observe(theory)}
    if any(s.hard for s in theory.shapes):
        counts["violated"] = write_violated(theory)
    bits = orientations(theory, effects, places, counts.values())
    counts["tallied"] = write_tallied(theory)  # seldom called: what it alone reads is made when it is
    flips = {p: [x for x in bits if x.predicate == p and not x.live] for p in range(len(theory.signatures))}
    updates = {p: write_update(theory, p, places[p], effects[p], flips) for p in free}
    found = layout_of(bits, (x for part in (*updates.values(), *counts.values()) for x in part.used))
    text = [
        *(update_text(p, update, found) for p, update in updates.items()),
        *(count_text(name, count, found) for name, count in counts.items()),
        choice_text(free, tied=bool(tied.images), hard="violated" in counts),
    ]
    return Written("\n\n".join(text), found, places, counters(theory, places))


def orientations(
    theory: Theory, effects: Mapping[int, Text], places: Mapping[int, list[Place]], counts: Iterable[Text]
) -> list[Bits]:
    """Every orientation that is kept: each predicate's home, and what effects and counts read.

    Where hard formulas speak of a predicate, also which of its sites could have moved.
    """
    found: list[Bits] = []
    for p, signature in enumerate(theory.signatures):
        found.append(layout.orientation(p, signature.home))
        if p in effects:
            found += [x for x in effects[p].used if isinstance(x, Bits)]
            found += [layout.live(p, signature.home)] if is_held(theory, places[p]) else []
    found += [x for count in counts for x in count.used if isinstance(x, Bits)]
    return list(dict.fromkeys(found))


def is_held(theory: Theory, places: list[Place]) -> bool:
    """Whether hard formulas speak of a predicate."""
    return any(theory.shapes[p.shape].hard for p in places)


def is_counted(theory: Theory, places: list[Place]) -> bool:
    """Whether integer counters say all about a site's conditional, so that it can be looked up in a table."""
    return all(theory.shapes[p.shape].single for p in places)


def counters(theory: Theory, places: Mapping[int, list[Place]]) -> dict[int, list[Counted]]:
    """The bounds of the counters of every predicate whose conditionals can be looked up."""

    def bounds(place: Place) -> Counted:
        gains, loses = (any(g.sign == sign for g in place.goals) for sign in (1, -1))
        certain = not place.guards and gains != loses and place.goals[0].expression == TRUE
        sorts = tuple(theory.shapes[place.shape].sorts[v] for v in place.rest)
        return Counted(place.shape, sorts, gains, loses, certain, place.times)

    return {
        p: [bounds(x) for x in found if not theory.shapes[x.shape].hard]
        for p, found in places.items()
        if is_counted(theory, found)
    }


# --- effects: the deterministic part of an update ---


# --- counts ---


# --- updates: an effect with the draw and the flip around it ---


def write_update(theory: Theory, predicate: int, places: list[Place], effect: Text, flips: Flips) -> Text:
    """The body of the loop over a chunk of sites."""
    if theory.signatures[predicate].exclusive:
        return write_block(theory, predicate, places, effect, flips)
    out = Text(theory)
    out.add(*(f"a{j} = I(coords[{j}, i])" for j in range(len(theory.signatures[predicate].sorts))))
    out.include(effect)
    write_chance(out, predicate, places)
    if is_held(theory, places):
        write_live(out, predicate, "p")
    out.add(f"old = {out.read(site(theory, predicate))}")
    out.add("new = old if greedy == LOOK else U(draw(uniform[i], p))", "chance[i] = p", "values[i] = I(new)")
    out.open("if new != old:")
    write_flip(out, predicate, flips)
    with out.inside("if followed:"):
        out.add("turn = 2 * I(new) - 1")
        out.add(*(f"tally[{at}] += turn * {c}" for c, at in tallied_as(theory, places).items()))
        out.add("if tilted: tally[TILTED] += turn * tilt[i]")
    return out


def tallied_as(theory: Theory, places: list[Place]) -> dict[str, str]:
    """What the tally adds up at every flip of a site, and where."""
    shapes = [theory.shapes[p.shape] for p in places]
    found = {c: f"COUNTS + {s}" for s, c in counted_as(theory, places).items()}
    found |= {"h": "SOFT"} if any(not s.hard and not s.single for s in shapes) else {}
    return found | ({"y": "BROKEN"} if any(s.hard for s in shapes) else {})


def write_chance(out: Text, predicate: int, places: list[Place]) -> None:
    """P(true | rest) from the effect: looked up by the counts where the table is small, else computed."""
    single = single_shapes(out.theory, places)
    held = is_held(out.theory, places)
    if held:
        out.add("y = y1 - y0")
    if is_counted(out.theory, places):
        index = [
            f"(c{s} - {out.name(layout.lowest_count(predicate, s))}) * {out.name(layout.table_step(predicate, s))}"
            for s in single
        ]
        table = out.name(layout.table(predicate))
        plain = f"not tilted and {table} >= 0" + " and (y == 0 or not soft)" * held
        out.add(f"if {plain}:", f"    p = peek(reals, {' + '.join([table, *index])})", "else:")
        out.depth += 1
    out.add(f"x = scale * ({field_text(out, single)})", "if tilted: x += share * tilt[i]")
    out.add(*["if soft: x -= penalty * y"] * held, "p = logistic(x)")
    out.depth -= is_counted(out.theory, places)
    if held:
        out.add("if not soft and (y1 > 0 or y0 > 0):")
        out.add("    if greedy == 0 and y1 > 0 and y0 > 0: return i")
        out.add("    if y1 != y0: p = 0.0 if y1 > y0 else 1.0")
        out.add(f"if greedy == KEEP and y1 == y0: p = float({out.read(site(out.theory, predicate))})")


def write_live(out: Text, predicate: int, moves: str) -> None:
    """Remembers that the atom could have moved: an atom that hard formulas hold at every update is frozen."""
    atom = site(out.theory, predicate)
    bits = layout.live(predicate, out.theory.signatures[predicate].home)
    index, bit = (f"({atom.terms[-1]} >> 6)", f"ONE << U({atom.terms[-1]} & 63)") if atom.terms else ("0", "ONE")
    with out.inside(f"if {moves} > 0.0 and {moves} < 1.0 and greedy != LOOK:"):
        out.add(f"bits[U({out.address(bits, atom.terms, index)})] |= {bit}")


def write_flip(out: Text, predicate: int, flips: Flips) -> None:
    """The atom's bit changes in every orientation, and so do those tied to it, each once."""
    signature = out.theory.signatures[predicate]
    images = signature.images or (Image(predicate, tuple(range(len(signature.sorts)))),)
    for k, image in enumerate(images):
        earlier = [other.places for other in images[:k] if other.predicate == image.predicate]
        apart = [
            " or ".join(f"a{i} != a{j}" for i, j in zip(image.places, other, strict=True) if i != j)
            for other in earlier
        ]
        test = " and ".join(f"({x})" for x in apart)
        with out.inside(f"if {test}:" if test else ""):
            flip_bits(out, flips[image.predicate], arguments(image.places))


def flip_bits(out: Text, orientations: list[Bits], terms: tuple[Term, ...]) -> None:
    """One atom's bit in every orientation; a diagonal holds only atoms with equal constants there."""
    for bits in orientations:
        if not bits.axis:
            out.add(f"toggle(bits, {out.address(bits, terms, '0')}, 0)")
            continue
        first, others = terms[bits.axis[0]], [terms[j] for j in bits.axis[1:]]
        with out.inside(f"if {' and '.join(f'{first} == {x}' for x in others)}:" if others else ""):
            out.add(f"toggle(bits, {out.address(bits, terms, f'({first} >> 6)')}, {first})")


def write_block(theory: Theory, predicate: int, places: list[Place], effect: Text, flips: Flips) -> Text:
    """The same for a `!` predicate: each value's effect with no value true, then one draw.

    Values are as legal as the current one or they are out; if one is *more* legal, the state was illegal.
    """
    signature = theory.signatures[predicate]
    exclusive = signature.exclusive
    out = Text(theory)
    count = " * ".join(out.size(signature.sorts[j]) for j in exclusive)
    stored = tallied_as(theory, places)
    out.add(*(f"a{j} = I(coords[{j}, i])" for j in range(len(signature.sorts)) if j not in exclusive))
    out.add("current = I(-1)")
    with out.inside():
        value_loops(out, predicate)
        out.open(f"if {out.read(site(theory, predicate))} != ZERO:")
        out.add("current = value")
        write_flip(out, predicate, flips)
    out.add("if current < 0: return i")
    with out.inside():
        value_loops(out, predicate)
        out.add(f"g = {out.name(layout.barred(predicate))}")
        with out.inside(f"if g >= 0 and {home_bit(out, predicate)} != ZERO:"):
            out.add("fields[1, value] = BARRED", f"tilt[i * {count} + value] = -math.inf", "continue")
        out.include(effect)
        out.add(f"fields[0, value] = {field_text(out, single_shapes(theory, places))}")
        out.add("fields[1, value] = y1 - y0")
        with out.inside("if followed:"):
            out.add("y = y1 - y0", *(f"fields[{2 + k}, value] = {c}" for k, c in enumerate(stored)))
    out.add(f"if soft or tilted or scale != 1.0: put_on_level(fields, {count}, level, tilt, i * {count})")
    out.add(f"if soften(fields, {count}, current, greedy, chance, i): return i")
    out.add(f"new = current if greedy == LOOK else draw_value(uniform[i], chance, i * {count}, {count})")
    out.add("values[i] = new")
    with out.inside("if followed and new != current:"):
        for k, at in enumerate(stored.values()):
            out.add(f"tally[{at}] += fields[{2 + k}, new] - fields[{2 + k}, current]")
        out.add(f"if tilted: tally[TILTED] += tilt[i * {count} + new] - tilt[i * {count} + current]")
    value_loops(out, predicate)
    if is_held(theory, places):
        write_live(out, predicate, f"chance[i * {count} + value]")
    out.open("if value == new:")
    write_flip(out, predicate, flips)
    return out


def value_loops(out: Text, predicate: int) -> None:
    """Nested loops over the values of a `!` predicate's site, counted by `value`."""
    signature = out.theory.signatures[predicate]
    out.add("value = -1")
    for j in signature.exclusive:
        out.open(f"for a{j} in range({out.size(signature.sorts[j])}):")
    out.add("value += 1")


def home_bit(out: Text, predicate: int) -> str:
    """The bit of the current atom in a mask laid out like the predicate itself, at offset `g` of `words`."""
    sorts = out.theory.signatures[predicate].sorts
    row = "0"
    for j in range(len(sorts) - 1):
        row = f"({row} * {out.size(sorts[j])} + a{j})"
    last = len(sorts) - 1
    return f"test(words, g + {row} * {out.width(sorts[last])} + (a{last} >> 6), a{last})"


# --- text ---


def function_text(header: list[str], body: Text, found: Layout, lines: list[str]) -> str:
    names = [f"    {found.look_up(x)}" for x in body.used]
    return "\n".join([*header, *names, *lines]) + "\n"


def update_text(predicate: int, body: Text, found: Layout) -> str:
    header = ["@lowered", f"def update_{predicate}({ARRAYS}, m, greedy):"]
    header.append("    scale, penalty = peek(level, SCALE), peek(level, PENALTY)")
    header.append("    share, tilted = peek(level, SHARE), peek(level, ON) != 0.0")
    header.append("    soft, followed = penalty < HARD, peek(level, FOLLOWED) != 0.0")
    lines = ["    for i in range(m):", *("        " + line for line in body.lines), "    return -1"]
    return function_text(header, body, found, lines)


def count_text(name: str, body: Text, found: Layout) -> str:
    given = TALLIED if name == "tallied" else COUNTED
    header = ["@lowered", f"def count_{name}({given}):", "    total = 0"]
    return function_text(header, body, found, [*("    " + line for line in body.lines), "    return total"])


def choice_text(free: list[int], tied: bool, hard: bool) -> str:
    """The update of predicate p, and what the loop over sweeps is told of this kernel."""
    lines = ["@lowered", f"def update({ARRAYS}, p, m, greedy):"]
    lines += [f"    if p == {p}: return update_{p}({ARRAYS}, m, greedy)" for p in free]
    lines += ["    return -1", "", "", f"TIED = {int(tied)}"]
    counts = ", ".join(f"count_{x}" for x in ("observe", "tallied", *(["violated"] if hard else [])))
    return "\n".join([*lines, f"addresses = located(KINDS, update, {counts})"]) + "\n"


@cache
def template() -> str:
    return TEMPLATE.read_text(encoding="utf-8")


def module_text(written: Written) -> str:
    """The text of a whole module."""
    return template() + "\n\n" + written.text
