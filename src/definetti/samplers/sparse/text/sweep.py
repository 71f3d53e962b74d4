"""The sweep: its order, the classes of a new state, visits, and how many hard groundings a state violates."""

from __future__ import annotations

from definetti.samplers.sparse.normal_form import Unfit
from definetti.samplers.sparse.text.joins import Env, Writer, entry, lists, own_arguments, type_bit, type_of
from definetti.samplers.sparse.text.shapes import Shapes, write_calls
from definetti.samplers.sparse.work import END, counts_of


def write_begin(w: Writer) -> None:
    w.put(0, "\n\n@helper\ndef begin_sweep(d, c):")
    w.put(1, "c.clock[OPEN], c.clock[ENTRY], c.clock[POSITION] = 1, 0, 0")
    w.put(1, "for i in range(d.entries.shape[0]):")
    w.put(2, "c.turns[i] = d.entries[i]")
    w.put(1, "if d.shuffled[0] != 0:")
    w.put(2, "for i in range(d.families.shape[0]):")
    w.put(3, "shuffle(c.streams, c.turns, d.families[i, 0], d.families[i, 1])")
    w.put(2, "for sort in range(d.sizes.shape[0]):")
    w.put(3, "shuffle(c.streams, c.order, d.type_start[sort], d.sizes[sort])")
    for r, s in enumerate(w.plan.systems):
        w.put(1, f"for i in range(d.sizes[{s.sorts[1]}]):")
        w.put(2, f"c.systems[{r}].node[c.order[d.type_start[{s.sorts[1]}] + i], POS] = i")


def write_crowded(w: Writer) -> None:
    """Whether a state has so many true atoms, and pairs of them, that a dense sweep costs less."""
    w.put(0, "\n\n@helper\ndef crowded(d, c):")
    w.put(1, "pairs = I(0)")
    for s in w.plan.systems:
        for side, sort in enumerate(w.plan.sorts[s.predicate][: 1 if s.same else 2]):
            both = f" + c.head[{lists(s.predicate, 1)} + LIST * x + LENGTH]" * (s.same and not s.symmetric)
            w.put(1, f"for x in range(d.sizes[{sort}]):")
            w.put(2, f"degree = c.head[{lists(s.predicate, side)} + LIST * x + LENGTH]{both}")
            w.put(2, f"pairs += degree * {f'(degree + {END})' if counts_of(s) else END}")
    w.put(1, "return pairs > d.most_pairs[0]")


def write_set_up(w: Writer, shapes: Shapes) -> None:
    """After a state has been put into the lists: the classes."""
    w.put(0, "\n\n@entry\ndef make_classes(d, c):")
    for first, group in shapes.groups(range(len(w.plan.systems))):
        depth, r = 1, str(first)
        if len(group) > 1:
            w.put(1, f"for r in ({', '.join(f'I({r})' for r in group)}):")
            depth, r = 2, "r"
        w.put(depth, f"for b in range(c.systems[{r}].node.shape[0]):")
        key = f"class_key_{first}(d, lists_of(c), c.systems[{r}], b)"
        w.put(depth + 1, f"join_class(c.pool, c.blocks, c.systems[{r}], b, {key})")
    w.put(0, "\n\n@entry\ndef look_up(c, h, rows, columns, out):")
    w.put(1, "for i in range(rows.shape[0]):")
    w.put(2, "out[i] = linked(c.pool, c.head, h + LIST * rows[i], columns[i])")


def write_violations(w: Writer) -> None:
    """How many groundings of hard formulas a state violates."""
    plan = w.plan
    w.put(0, "\n\n@entry\ndef violations(d, c):")
    w.put(1, "broken = I(0)")
    for k, m in enumerate(plan.monomials):
        if not m.hard:
            continue

        def inside(depth: int, env: Env, k: int = k, sorts: tuple[int, ...] = m.sorts) -> None:
            if len(env) < len(sorts):
                raise Unfit("a formula ties atoms without a chain of atoms between them")
            read = type_bit(plan, {v: type_of(sorts[int(v)], e) for v, e in env.items()}, env)
            w.put(depth, f"broken -= I(d.coefs[{entry(plan, k, read)}])")

        if m.sorts:
            w.put(1, f"for a in range(d.sizes[{m.sorts[0]}]):")
            w.nest(2, {0: "a"}, m.pairs, dict(enumerate(m.sorts)), inside)
        else:
            inside(1, {})
    w.put(1, "return broken")


def write_advance(w: Writer, shapes: Shapes) -> None:
    plan = w.plan
    w.put(0, "\n\n@helper\ndef visit_bit(d, c, p, sort, position, a, chance):")
    w.put(1, "o = d.bit_orbits[d.bit_start[p] + a]")
    w.put(1, "at = d.type_start[sort] + a")
    w.put(1, "c.sum_g[NOW, o] += chance")
    if plan.held_bits:
        w.put(1, "if chance > 0.0 and chance < 1.0:")
        w.put(2, "c.live[at] |= I(1) << position")
    w.put(1, "old, new = (c.types[at] >> position) & 1, I(draw(c.streams, chance))")
    w.put(1, "if old != new:")
    w.put(2, "c.types[at] ^= I(1) << position")
    w.put(2, "c.true_atoms[o] += new - old")
    w.put(1, "return old != new")
    for p in plan.unary:
        write_site(w, p)
    w.put(0, "\n\n@helper\ndef visit(d, c, kind, a):")
    for p in plan.unary:
        w.put(1, f"if kind == {p}:")
        w.put(2, f"return site_{p}(d, c, a, I(0))")
    kinds = [s.predicate for s in plan.systems]
    write_calls(w, shapes, kinds, range(len(kinds)), lambda r, system: f"return row_{r}(d, {system}, a)")
    for p in plan.unary:
        w.put(1, f"if kind == {len(plan.sorts) + p}:")
        w.put(2, f"return site_{p}(d, c, a, I(1))")
    late, loops = [len(plan.sorts) + p for p in kinds], [r for r, p in enumerate(kinds) if p in plan.position]
    write_calls(w, shapes, late, loops, lambda r, system: f"return site_{kinds[r]}(d, {system}, a, I(1))")
    w.put(1, "return I(0)")
    w.put(0, ADVANCE)


def write_site(w: Writer, p: int) -> None:
    """The visit of a bit: of a unary atom, or of R(x,x) that is drawn after all others."""
    sort, position, arguments = w.plan.sorts[p][0], w.plan.position[p], own_arguments(w.plan, p)
    w.put(0, f"\n\n@helper\ndef site_{p}({arguments}, a, late):")
    w.put(1, f"if (d.fixed[late, d.type_start[{sort}] + a] >> {position}) & 1:")
    w.put(2, "return I(0)")
    w.put(1, f"if visit_bit(d, c, I({p}), I({sort}), I({position}), a, chance_{p}({arguments}, a)):")
    for side in range(len(w.plan.sorts[p])):
        w.put(2, f"reclass_{p}_{side}({arguments}, a)")
    w.put(1, "return I(1)")


ADVANCE = '''

@entry
def advance(d, c, budget, sweeps):
    """Draws about `budget` sites in whole rows, or until `sweeps` sweeps have ended; returns how many. Where the pool
    might not hold another row, `clock[ROOM]` is set: the caller makes it larger and goes on. So is `clock[CROWDED]`
    where a dense sweep would cost less, if the caller wants to know (`clock[LOOKS]`)."""
    clock, done = c.clock, I(0)
    target = clock[SWEEP] + sweeps
    while done < budget and clock[SWEEP] < target:
        if clock[OPEN] == 0:
            if clock[LOOKS] != 0 and crowded(d, c):
                clock[CROWDED] = 1
                break
            begin_sweep(d, c)
        if clock[ENTRY] == d.entries.shape[0]:
            end_sweep(clock, c.true_atoms, c.sum_f, c.sum_g)
            continue
        sort = d.entry_sorts[clock[ENTRY]]
        if clock[POSITION] == d.sizes[sort]:
            clock[ENTRY] += 1
            clock[POSITION] = 0
            continue
        if c.pool.shape[0] < 3 * c.blocks[TOP] + d.reserve[0]:
            clock[ROOM] = 1
            break
        if d.sizes[sort] >= LARGE:
            look_ahead(d, c, c.turns[clock[ENTRY]], clock[POSITION])
        done += visit(d, c, c.turns[clock[ENTRY]], c.order[d.type_start[sort] + clock[POSITION]])
        clock[POSITION] += 1
    clock[UPDATES] += done
    return done
'''
