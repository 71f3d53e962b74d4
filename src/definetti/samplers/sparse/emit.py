"""The text of a sparse kernel: joins, delta rules, class keys and fields, around the fixed row loop.

Only numbers of our making stand in it: predicates, sorts and variables are counted, and weights, sizes and evidence are
data. A join is a nest of loops over lists of true atoms (`nest`): each atom with one constant known is a loop, each
with both known a test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.sparse.normal_form import Monomial, Symmetric, Unfit, monomials, symmetric_predicates
from definetti.samplers.sparse.row_text import Row, row_candidates, row_events, row_start
from definetti.samplers.sparse.terms import A, B, System, Term, Z, depends, groups, positions, system_of

TEMPLATES = Path(__file__).parents[1] / "codegen" / "templates"
Env = dict[str | int, str]  # role or variable → the expression of its constant


@dataclass(frozen=True, eq=False)
class Plan:
    """The structure of a theory's sparse sampler."""

    monomials: tuple[Monomial, ...]
    systems: tuple[System, ...]
    sorts: tuple[tuple[int, ...], ...]  # of each predicate's arguments
    position: Mapping[int, int]  # of each predicate's bit in the types
    offsets: tuple[int, ...]  # of each monomial's table among all tables
    size: int  # of all tables
    ties: Symmetric  # predicates whose sites are unordered pairs

    @property
    def unary(self) -> tuple[int, ...]:
        return tuple(p for p in self.position if len(self.sorts[p]) == 1)


def plan_of(model: MarkovLogic) -> Plan:
    """Raises `Unfit`, with the reason, for theories that the generator does not cover."""
    sort_number = {name: s for s, name in enumerate(model.sorts)}
    for name, predicate in model.predicates.items():
        if predicate.exclusive:
            raise Unfit(f"{name} has exactly-one (`!`) arguments")
        if not 1 <= len(predicate.sorts) <= 2:
            raise Unfit(f"{name} has {len(predicate.sorts)} arguments")
    binary = [p for p, predicate in enumerate(model.predicates.values()) if len(predicate.sorts) == 2]
    if not binary:
        raise Unfit("no predicate has two arguments")
    ties = symmetric_predicates(model)
    found = monomials(model, ties)
    systems = tuple(system_of(model, found, p, ties) for p in binary)
    sorts = tuple(tuple(sort_number[s] for s in p.sorts) for p in model.predicates.values())
    offsets, size = [], 0
    for m in found:
        offsets.append(size)
        size += m.table.size
    made = Plan(found, systems, sorts, positions(model), tuple(offsets), size, ties)
    kernel_text(made)  # joins that cannot be made are found here
    return made


# --- joins -----------------------------------------------------------------------------------------------------------


@dataclass
class Writer:
    """Lines of text, with a counter for names."""

    plan: Plan
    lines: list[str]
    names: int = 0

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def nest(
        self, depth: int, env: Env, pairs: Sequence[tuple[int, str | int, str | int]],
        sorts: Mapping[str | int, int], inside: Callable[[int, Env], None],
    ) -> None:  # fmt: skip
        """Loops over all ways to make the pairs true; constants of one sort are different."""
        left = []
        for p, x, y in pairs:
            if x in env and y in env:
                self.put(depth, f"if linked(c.pool, c.head, {lists(p, 0)} + LIST * {env[x]}, {env[y]}):")
                depth += 1
            else:
                left.append((p, x, y))
        if not left:
            inside(depth, env)
            return
        here = next((pair for pair in left if pair[1] in env or pair[2] in env), None)
        if here is None:
            raise Unfit("a formula ties atoms without a chain of atoms between them")
        p, x, y = here
        side = 0 if x in env else 1
        known, new = (x, y) if side == 0 else (y, x)
        h, i, v = self.name(), self.name(), self.name()
        self.put(depth, f"{h} = {lists(p, side)} + LIST * {env[known]}")
        self.put(depth, f"for {i} in range(c.head[{h}], c.head[{h}] + c.head[{h} + LENGTH]):")
        self.put(depth + 1, f"{v} = I(c.pool[{i}])")
        differ = [e for u, e in env.items() if u != known and sorts[u] == sorts[new]]
        if differ:
            self.put(depth + 1, f"if {' and '.join(f'{v} != {e}' for e in sorted(differ))}:")
            depth += 1
        left.remove(here)
        self.nest(depth + 1, {**env, new: v}, left, sorts, inside)


def lists(p: int, side: int) -> str:
    return f"d.lists[{2 * p + side}]"


def type_of(sort: int, constant: str) -> str:
    return f"c.types[d.type_start[{sort}] + {constant}]"


def entry(plan: Plan, k: int, bit: Callable[[int, int], str]) -> str:
    """The index of a monomial's coefficient; `bit(predicate, variable)` is the text of one bit."""
    m, width = plan.monomials[k], len(plan.monomials[k].bits)
    parts = [f"({bit(p, v)} << {width - 1 - i})" for i, (p, v) in enumerate(m.bits)]
    return " + ".join([str(plan.offsets[k]), *parts])


def type_bit(plan: Plan, types: Mapping[str | int, str]) -> Callable[[int, str | int], str]:
    return lambda p, role: f"(({types[role]} >> {plan.position[p]}) & 1)"


def term_entry(plan: Plan, term: Term, types: Mapping[str | int, str], compact: Sequence[int] | None = None) -> str:
    """The same for a term in roles; with `compact` the bits of b are those of a class."""
    read = type_bit(plan, types)

    def bit(p: int, v: int) -> str:
        role = term.roles[v]
        return f"((tb >> {compact.index(p)}) & 1)" if role == B and compact is not None else read(p, role)

    return entry(plan, term.monomial, bit)


# --- what differs from theory to theory ------------------------------------------------------------------------------


def kernel_text(plan: Plan) -> str:
    """The whole text."""
    parts = [template("sparse.py")]
    generated = Writer(plan, [])
    for p in plan.position:
        write_field(generated, p)
    for r, s in enumerate(plan.systems):
        write_class_key(generated, r, s)
    for p in range(len(plan.sorts)):
        write_reclass(generated, p)
    for r, s in enumerate(plan.systems):
        write_row_keys(generated, r, s)
        write_support(generated, r, s)
        row = row_of(plan, r, s)
        generated.put(0, row_start(row))
        generated.put(0, row_candidates(row))
        write_delta(generated, r, s)
        write_loop_delta(generated, r, s)
        generated.put(0, row_events(row))
    write_begin(generated)
    write_set_up(generated)
    write_advance(generated)
    return "\n".join([*parts, *generated.lines, ""])


@cache
def template(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def row_of(plan: Plan, r: int, s: System) -> Row:
    p, (a, b) = s.predicate, s.sorts
    return Row(
        number=r, types=f"d.type_start[{a}]", lists=lists(p, s.side), back=lists(p, 1 - s.side), size=f"d.sizes[{b}]",
        same=s.same, symmetric=s.symmetric, mask=(1 << len(s.bits_b)) - 1, loop=plan.position.get(p, 0),
        chance=f"chance_{p}" if s.same else "no_chance", near=f"reclass_{p}_{s.side}", far=f"reclass_{p}_{1 - s.side}",
    )  # fmt: skip


def role_sorts(plan: Plan, term: Term) -> dict[str | int, int]:
    return {role: plan.monomials[term.monomial].sorts[v] for v, role in enumerate(term.roles)}


def write_field(w: Writer, p: int) -> None:
    """The chance of a bit: of a unary atom or of R(x,x)."""
    plan, sort = w.plan, w.plan.sorts[p][0]
    w.put(0, f"\n\n@helper\ndef chance_{p}(d, c, a):")
    w.put(1, f"h, hard, ta = 0.0, I(0), {type_of(sort, 'a')}")
    for k, m in enumerate(plan.monomials):
        for v in range(len(m.sorts)):
            if (p, v) in m.bits:
                sorts: dict[str | int, int] = dict(enumerate(m.sorts))
                w.nest(1, {v: "a"}, m.pairs, sorts, lambda depth, env, k=k, v=v: difference(w, depth, env, k, v, p))
    w.put(1, "return chance_of(h, hard)")


def difference(w: Writer, depth: int, env: Env, k: int, v: int, p: int) -> None:
    """Adds what a monomial gains when the bit is set."""
    m = w.plan.monomials[k]
    if len(env) < len(m.sorts):
        raise Unfit("a formula ties atoms without a chain of atoms between them")
    read = type_bit(w.plan, {u: "ta" if u == v else type_of(m.sorts[int(u)], e) for u, e in env.items()})
    high, low = (
        entry(w.plan, k, lambda q, u, value=value: value if (q, u) == (p, v) else read(q, u)) for value in ("1", "0")
    )
    if m.hard:
        w.put(depth, f"hard += I(d.coefs[{high}] - d.coefs[{low}])")
    else:
        w.put(depth, f"h += d.coefs[{high}] - d.coefs[{low}]")


def write_class_key(w: Writer, r: int, s: System) -> None:
    """The bits of b that matter, and its degrees."""
    w.put(0, f"\n\n@helper\ndef class_key_{r}(d, c, b):")
    w.put(1, f"t = {type_of(s.sorts[1], 'b')}")
    bits = [f"(((t >> {w.plan.position[p]}) & 1) << {k})" for k, p in enumerate(s.bits_b)]
    w.put(1, f"key = {' + '.join(bits) or 'I(0)'}")
    for term in s.degree:
        (p, x, _) = term.pairs[0]
        index = term_entry(w.plan, term, {B: "t"})
        length = f"c.head[{lists(p, 0 if x == B else 1)} + LIST * b + LENGTH]"
        w.put(1, f"key += d.steps[{r}, {index}] * {length}")
    w.put(1, "return key")


def write_reclass(w: Writer, p: int) -> None:
    """After a change of a list of predicate p, or of its bit: what it does to the classes of a constant."""
    plan = w.plan
    for side in range(2):
        w.put(0, f"\n\n@helper\ndef reclass_{p}_{side}(d, c, x):")
        sort = plan.sorts[p][min(side, len(plan.sorts[p]) - 1)]
        lines = 0
        for r, s in enumerate(plan.systems):
            counted = any(
                q == p and B in ((u, v) if p in plan.ties else ((u, v)[side],)) for t in s.degree for q, u, v in t.pairs
            )
            bit = p in s.bits_b and len(set(plan.sorts[p])) == 1
            if s.sorts[1] == sort and (counted or bit):
                w.put(1, f"change_class(c.pool, c.blocks, c.systems[{r}], x, class_key_{r}(d, c, x))")
                lines += 1
        if not lines:
            w.put(1, "pass")


def write_row_keys(w: Writer, r: int, s: System) -> None:
    """The part of the keys that a row's sites share, by the bits of b."""
    plan = w.plan
    w.put(0, f"\n\n@helper\ndef row_keys_{r}(d, c, s, a, ta):")
    bits = [f"(((ta >> {plan.position[p]}) & 1) << {k})" for k, p in enumerate(s.bits_a)]
    width, both = len(s.bits_b), len(s.bits_a) + len(s.bits_b)
    w.put(1, f"base = ({' + '.join(bits) or 'I(0)'}) << {width}")
    w.put(1, f"for tb in range({1 << width}):")
    w.put(2, "s.small[ROW_KEYS + tb] = s.small[NOTHING] + base + s.hard_base[base + tb]")
    assert both < 20
    for pairs, terms in groups(s.row):
        if len(pairs) == 1 and not any(t.bits(plan.monomials[t.monomial], Z) for t in terms):
            p, x, _ = pairs[0]
            w.put(1, f"count = c.head[{lists(p, 0 if x == A else 1)} + LIST * a + LENGTH]")
            w.put(1, f"for tb in range({1 << width}):")
            for t in terms:
                w.put(2, f"s.small[ROW_KEYS + tb] += d.steps[{r}, {term_entry(plan, t, {A: 'ta'}, s.bits_b)}] * count")
            continue

        def inside(depth: int, env: Env, terms: Sequence[Term] = terms) -> None:
            m = plan.monomials[terms[0].monomial]
            z = m.sorts[terms[0].roles.index(Z)]
            w.put(depth, f"tz = {type_of(z, env[Z])}")
            w.put(depth, f"for tb in range({1 << width}):")
            for t in terms:
                index = term_entry(plan, t, {A: "ta", Z: "tz"}, s.bits_b)
                w.put(depth + 1, f"s.small[ROW_KEYS + tb] += d.steps[{r}, {index}]")

        w.nest(1, {A: "a"}, pairs, role_sorts(plan, terms[0]), inside)


def steps_text(w: Writer, r: int, terms: Sequence[Term], env: Env, ta: str) -> str:
    """The sum of the terms' changes of a key."""
    parts = []
    for t in terms:
        m = w.plan.monomials[t.monomial]
        types: dict[str | int, str] = {A: ta}
        for v, role in enumerate(t.roles):
            if role != A:
                types[role] = type_of(m.sorts[v], env[role])
        parts.append(f"{'-' if t.sign < 0 else '+'} d.steps[{r}, {term_entry(w.plan, t, types)}]")
    return " ".join(parts)


def write_support(w: Writer, r: int, s: System) -> None:
    """The joins from a to the sites of its row."""
    plan = w.plan
    w.put(0, f"\n\n@helper\ndef support_{r}(d, c, s, a, ta, sign):")
    for pairs, terms in groups(s.support):

        def inside(depth: int, env: Env, terms: Sequence[Term] = terms) -> None:
            w.put(depth, f"step = {steps_text(w, r, terms, env, 'ta')}")
            w.put(depth, "if step != 0:")
            w.put(depth + 1, f"touch(s, {env[B]}, step)")

        w.nest(1, {A: "a"}, pairs, role_sorts(plan, terms[0]), inside)
    w.put(1, "return")


def write_delta(w: Writer, r: int, s: System) -> None:
    """A flip of the row's site (a,y): what it adds to later sites of the row."""
    plan = w.plan
    w.put(0, f"\n\n@helper\ndef delta_{r}(d, c, s, a, y, ta, sign):")
    for pairs, terms in groups(s.support):
        if s.own(Z) in pairs:

            def inside(depth: int, env: Env, terms: Sequence[Term] = terms) -> None:
                w.put(depth, f"step = {steps_text(w, r, terms, env, 'ta')}")
                w.put(depth, "if step != 0:")
                w.put(depth + 1, f"bump_{r}(c, s, y, {env[B]}, sign * step)")

            w.nest(1, {A: "a", Z: "y"}, [p for p in pairs if p != s.own(Z)], role_sorts(plan, terms[0]), inside)
    w.put(1, "return")


def write_loop_delta(w: Writer, r: int, s: System) -> None:
    """A flip of R(a,a): what it adds to later sites of the row."""
    plan = w.plan
    w.put(0, f"\n\n@helper\ndef loop_delta_{r}(d, c, s, a, before, after):")
    for pairs, terms in groups([t for t in s.support if s.same and depends(t, w.plan.monomials, s.predicate)]):

        def inside(depth: int, env: Env, terms: Sequence[Term] = terms) -> None:
            w.put(depth, f"step = {steps_text(w, r, terms, env, 'after')}")
            w.put(depth, f"step -= {steps_text(w, r, terms, env, 'before').removeprefix('+ ')}"
                  if len(terms) == 1 and terms[0].sign > 0
                  else f"step -= ({steps_text(w, r, terms, env, 'before')})")  # fmt: skip
            w.put(depth, "if step != 0:")
            w.put(depth + 1, f"bump_{r}(c, s, a, {env[B]}, step)")

        w.nest(1, {A: "a"}, pairs, role_sorts(plan, terms[0]), inside)
    w.put(1, "return")


# --- the sweep -------------------------------------------------------------------------------------------------------


def write_begin(w: Writer) -> None:
    w.put(0, "\n\n@helper\ndef begin_sweep(d, c):")
    w.put(1, "c.clock[OPEN], c.clock[ENTRY], c.clock[POSITION] = 1, 0, 0")
    w.put(1, "if d.shuffled[0] != 0:")
    w.put(2, "for sort in range(d.sizes.shape[0]):")
    w.put(3, "shuffle(c.streams, c.order, d.type_start[sort], d.sizes[sort])")
    for r, s in enumerate(w.plan.systems):
        w.put(1, f"for i in range(d.sizes[{s.sorts[1]}]):")
        w.put(2, f"c.systems[{r}].node[c.order[d.type_start[{s.sorts[1]}] + i], POS] = i")


def write_set_up(w: Writer) -> None:
    """After a state has been put into the lists: the classes."""
    w.put(0, "\n\n@entry\ndef make_classes(d, c):")
    for r, s in enumerate(w.plan.systems):
        w.put(1, f"for b in range(d.sizes[{s.sorts[1]}]):")
        w.put(2, f"join_class(c.pool, c.blocks, c.systems[{r}], b, class_key_{r}(d, c, b))")
    w.put(0, "\n\n@entry\ndef put_atoms(c, h, g, rows, columns):")
    w.put(1, "for i in range(rows.shape[0]):")
    w.put(2, "append(c.pool, c.blocks, c.head, h + LIST * rows[i], columns[i])")
    w.put(2, "append(c.pool, c.blocks, c.head, g + LIST * columns[i], rows[i])")
    w.put(0, "\n\n@entry\ndef look_up(c, h, rows, columns, out):")
    w.put(1, "for i in range(rows.shape[0]):")
    w.put(2, "out[i] = linked(c.pool, c.head, h + LIST * rows[i], columns[i])")


def write_advance(w: Writer) -> None:
    plan = w.plan
    w.put(0, "\n\n@helper\ndef visit_bit(d, c, p, sort, position, a, chance):")
    w.put(1, "o = d.bit_orbits[d.bit_start[p] + a]")
    w.put(1, "at = d.type_start[sort] + a")
    w.put(1, "c.sum_g[NOW, o] += chance")
    w.put(1, "old, new = (c.types[at] >> position) & 1, I(draw(c.streams, chance))")
    w.put(1, "if old != new:")
    w.put(2, "c.types[at] ^= I(1) << position")
    w.put(2, "c.true_atoms[o] += new - old")
    w.put(1, "return old != new")
    for p in plan.position:
        sort, position = plan.sorts[p][0], plan.position[p]
        w.put(0, f"\n\n@helper\ndef site_{p}(d, c, a, late):")
        w.put(1, f"if (d.fixed[late, d.type_start[{sort}] + a] >> {position}) & 1:")
        w.put(2, "return I(0)")
        w.put(1, f"if visit_bit(d, c, I({p}), I({sort}), I({position}), a, chance_{p}(d, c, a)):")
        for side in range(len(plan.sorts[p])):
            w.put(2, f"reclass_{p}_{side}(d, c, a)")
        w.put(1, "return I(1)")
    w.put(0, "\n\n@helper\ndef visit(d, c, kind, a):")
    for p in plan.unary:
        w.put(1, f"if kind == {p}:")
        w.put(2, f"return site_{p}(d, c, a, I(0))")
    for r, s in enumerate(plan.systems):
        w.put(1, f"if kind == {s.predicate}:")
        w.put(2, f"return row_{r}(d, c, c.systems[{r}], a)")
    for p in plan.position:
        w.put(1, f"if kind == {len(plan.sorts) + p}:")
        w.put(2, f"return site_{p}(d, c, a, I(1))")
    w.put(1, "return I(0)")
    w.put(0, ADVANCE)


ADVANCE = '''

@entry
def advance(d, c, budget, sweeps):
    """Draws about `budget` sites in whole rows, or until `sweeps` sweeps have ended; returns how many. Where the pool
    might not hold another row, `clock[ROOM]` is set: the caller makes it larger and goes on."""
    clock, done = c.clock, I(0)
    target = clock[SWEEP] + sweeps
    while done < budget and clock[SWEEP] < target:
        if clock[OPEN] == 0:
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
        done += visit(d, c, d.entries[clock[ENTRY]], c.order[d.type_start[sort] + clock[POSITION]])
        clock[POSITION] += 1
    clock[UPDATES] += done
    return done
'''
