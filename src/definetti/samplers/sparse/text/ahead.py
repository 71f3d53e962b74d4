"""What later rows will read is asked for early: at a million constants nearly every place is far from the processor,
and a row would wait for its lists, then for those of its neighbours, then for the nodes in them.

The order of the rows is known, so each step of that walk is made some rows ahead of the next one. Nothing is changed,
and lists that change meanwhile only make a request useless.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from definetti.samplers.sparse.terms import A, System, Z, groups
from definetti.samplers.sparse.text.joins import Plan, Writer, lists, type_place
from definetti.samplers.sparse.text.shapes import Shapes, write_calls

List = tuple[int, int]  # predicate, argument whose constant has it
Hop = tuple[List, str | int, str | int]  # a list, the constant that has it, the one found in it


def hops(pairs: Iterable[tuple[int, str | int, str | int]], known: Iterable[str | int]) -> list[Hop]:
    """The lists that a join walks through, as `Writer.nest` does."""
    found, left, out = set(known), list(pairs), []
    while True:
        left = [(p, x, y) for p, x, y in left if not {x, y} <= found]
        here = next(((p, x, y) for p, x, y in left if x in found or y in found), None)
        if here is None:
            return out
        p, x, y = here
        side = 0 if x in found else 1
        old, new = (x, y) if side == 0 else (y, x)
        out.append(((p, side), old, new))
        found.add(new)


def delta_lists(s: System) -> list[List]:
    """The lists of y that a flip of (a,y) walks through."""
    walks = [hops([p for p in pairs if p != s.own(Z)], (A, Z)) for pairs, _ in groups(s.support) if s.own(Z) in pairs]
    return list(dict.fromkeys(found for walk in walks for found, old, _ in walk if old == Z))


def row_lists(s: System) -> dict[List, list[List]]:
    """The lists of a that a row walks through, and for each those of the constants in it."""
    own: List = (s.predicate, s.side)
    out: dict[List, dict[List, None]] = {own: dict.fromkeys(delta_lists(s))}
    for pairs, _ in groups(s.support):
        walk = hops(pairs, (A,))
        for k, (found, old, new) in enumerate(walk):
            if old == A:
                out.setdefault(found, {}).update(dict.fromkeys(f for f, o, _ in walk[k + 1 :] if o == new))
    return {found: list(then) for found, then in out.items()}


def heads(plan: Plan, found: Iterable[List], constant: str) -> list[str]:
    """The heads of lists of a constant; the two of a predicate of one sort are neighbours."""
    first = {(p, 0 if len(set(plan.sorts[p])) == 1 else side): None for p, side in found}
    return [f"prefetch(c.head, {lists(p, side)} + LIST * {constant})" for p, side in first]


def write_ahead(w: Writer, r: int, s: System) -> None:
    """For the rows of a predicate."""
    near, (a, b) = row_lists(s), s.sorts
    w.put(0, f"\n\n@helper\ndef ahead_{r}(d, c, s, at):")
    w.put(1, f"x = later(c, d.type_start[{a}], at + HEADS, d.sizes[{a}])")
    own = [
        "s.known_start, x",
        "s.orbit_rows, x",
        *(["s.loop_orbits, x", "s.loop_free, x", "s.node, LIST * x"] * s.same),
    ]
    step(w, [*heads(w.plan, near, "x"), *(f"prefetch({text})" for text in own), far_type(a, "x")])
    w.put(1, f"x = later(c, d.type_start[{a}], at + LISTS, d.sizes[{a}])")
    step(w, [f"prefetch(c.pool, c.head[{lists(*found)} + LIST * x])" for found in near])
    for stage in ("NEIGHBOURS", "THEIR_LISTS", "NODES"):
        w.put(1, f"x = later(c, d.type_start[{a}], at + {stage}, d.sizes[{a}])")
        w.put(1, "if x >= 0:")
        for found, then in near.items():
            sort = w.plan.sorts[found[0]][1 - found[1]]
            node = ["prefetch(s.node, LIST * z)"] * (sort == b)
            if stage == "NEIGHBOURS":
                walk(w, 2, found, "x", "z", [*heads(w.plan, then, "z"), *node, far_type(sort, "z")])
            elif stage == "THEIR_LISTS" and then:
                walk(w, 2, found, "x", "z", [f"prefetch(c.pool, c.head[{lists(*g)} + LIST * z])" for g in then])
            elif stage == "NODES" and then:
                walk(w, 2, found, "x", "z", [])
                for g in then:
                    if w.plan.sorts[g[0]][1 - g[1]] == b:
                        walk(w, 3, g, "z", "y", ["prefetch(s.node, LIST * y)"])
                w.put(3, "pass")
        w.put(2, "pass")


def write_bit_ahead(w: Writer, p: int) -> None:
    """For the visits of a unary predicate: the types of neighbours."""
    plan, sort = w.plan, w.plan.sorts[p][0]
    near: dict[List, None] = {}
    for m in plan.monomials:
        for v in range(len(m.sorts)):
            if (p, v) in m.bits:
                near.update(dict.fromkeys(found for found, old, _ in hops(m.pairs, (v,)) if old == v))
    w.put(0, f"\n\n@helper\ndef bit_ahead_{p}(d, c, at):")
    w.put(1, f"x = later(c, d.type_start[{sort}], at + HEADS, d.sizes[{sort}])")
    step(w, [*heads(plan, near, "x"), far_type(sort, "x"), f"prefetch(d.bit_orbits, d.bit_start[{p}] + x)",
             f"prefetch(d.fixed, {type_place(sort, 'x')})"])  # fmt: skip
    for found in near:
        w.put(1, f"x = later(c, d.type_start[{sort}], at + LISTS, d.sizes[{sort}])")
        step(w, [f"prefetch(c.pool, c.head[{lists(*found)} + LIST * x])"])
        w.put(1, f"x = later(c, d.type_start[{sort}], at + NEIGHBOURS, d.sizes[{sort}])")
        w.put(1, "if x >= 0:")
        walk(w, 2, found, "x", "z", [far_type(plan.sorts[found[0]][1 - found[1]], "z")])


def write_look_ahead(w: Writer, shapes: Shapes) -> None:
    for p in w.plan.unary:
        write_bit_ahead(w, p)
    w.put(0, "\n\n@helper\ndef look_ahead(d, c, kind, at):")
    for p in w.plan.unary:
        w.put(1, f"if kind == {p}:")
        w.put(2, f"bit_ahead_{p}(d, c, at)")
    kinds = [s.predicate for s in w.plan.systems]
    write_calls(w, shapes, kinds, range(len(kinds)), lambda r, system: f"ahead_{r}(d, {system}, at)")
    w.put(1, "return")


def step(w: Writer, lines: Sequence[str]) -> None:
    w.put(1, "if x >= 0:")
    for line in lines:
        w.put(2, line)


def walk(w: Writer, depth: int, found: List, of: str, each: str, lines: Sequence[str]) -> None:
    """A loop over a list of a constant."""
    w.put(depth, f"h_{each} = {lists(*found)} + LIST * {of}")
    w.put(depth, f"for i_{each} in range(c.head[h_{each}], c.head[h_{each}] + c.head[h_{each} + LENGTH]):")
    w.put(depth + 1, f"{each} = I(c.pool[i_{each}])")
    for line in lines:
        w.put(depth + 1, line)


def far_type(sort: int, constant: str) -> str:
    return f"prefetch(c.types, {type_place(sort, constant)})"
