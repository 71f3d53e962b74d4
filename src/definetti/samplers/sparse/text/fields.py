"""What differs from theory to theory: fields of bits, class keys, keys of rows, supports and delta rules."""

from __future__ import annotations

from collections.abc import Sequence

from definetti.samplers.sparse.normal_form import Unfit
from definetti.samplers.sparse.terms import A, B, System, Term, Z, depends, groups
from definetti.samplers.sparse.text import joins
from definetti.samplers.sparse.text.joins import (
    Env,
    Plan,
    Writer,
    entry,
    lists,
    own_arguments,
    term_entry,
    type_bit,
    type_of,
)


def role_sorts(plan: Plan, term: Term) -> dict[str | int, int]:
    return {role: plan.monomials[term.monomial].sorts[v] for v, role in enumerate(term.roles)}


def write_field(w: Writer, p: int) -> None:
    """The chance of a bit: of a unary atom or of R(x,x)."""
    plan, sort = w.plan, w.plan.sorts[p][0]
    w.put(0, f"\n\n@helper\ndef chance_{p}({own_arguments(plan, p)}, a):")
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
    read = type_bit(w.plan, {u: "ta" if u == v else type_of(m.sorts[int(u)], e) for u, e in env.items()}, env)
    high, low = (
        entry(w.plan, k, lambda q, u, value=value: value if (q, u) == (p, v) else read(q, u)) for value in ("1", "0")
    )
    if m.hard:
        w.put(depth, f"hard += I(d.coefs[{high}] - d.coefs[{low}])")
    else:
        w.put(depth, f"h += d.coefs[{high}] - d.coefs[{low}]")


def write_class_key(w: Writer, r: int, s: System) -> None:
    """The bits of b that matter, and its degrees."""
    w.put(0, f"\n\n@helper\ndef class_key_{r}(d, c, s, b):")
    w.put(1, f"t = {type_of(s.sorts[1], 'b')}")
    bits = [f"(((t >> {w.plan.position[p]}) & 1) << {k})" for k, p in enumerate(s.bits_b)]
    w.put(1, f"key = {' + '.join(bits) or 'I(0)'}")
    for term in s.degree:
        (p, x, _) = term.pairs[0]
        index = term_entry(w.plan, term, {B: "t"})
        length = f"c.head[{lists(p, 0 if x == B else 1)} + LIST * b + LENGTH]"
        w.put(1, f"key += d.steps[{r}, {index}] * {length}")
    for k, bit in s.some:
        w.put(1, f"if {joins.length(w.plan, bit, 'b')} == 0:")
        w.put(2, f"key += {first_atom(w, r, k, bit, 'b', 't')}")
    w.put(1, "return key")


def first_atom(w: Writer, r: int, k: int, bit: int, constant: str, t: str) -> str:
    """What a key gains where a constant of type t would get its first atom."""
    read = type_bit(w.plan, {0: t}, {0: constant})
    high, low = (entry(w.plan, k, lambda q, u, value=value: value if q == bit else read(q, u)) for value in ("1", "0"))
    return f"d.steps[{r}, {high}] - d.steps[{r}, {low}]"


def write_reclass(w: Writer, p: int) -> None:
    """After a change of a list of predicate p, or of its bit: what it does to the classes of a constant."""
    plan = w.plan
    for side in range(2):
        w.put(0, f"\n\n@helper\ndef reclass_{p}_{side}({own_arguments(plan, p)}, x):")
        sort = plan.sorts[p][min(side, len(plan.sorts[p]) - 1)]
        lines = 0
        for r, s in sorted(enumerate(plan.systems), key=lambda found: found[1].predicate != p):  # its own comes first
            counted = any(
                q == p and B in ((u, v) if p in plan.ties else ((u, v)[side],)) for t in s.degree for q, u, v in t.pairs
            )
            bits = {q for k, _ in s.some for q, _ in plan.monomials[k].bits if q >= len(plan.sorts)}
            counted = counted or any(plan.some(q) == (p, side) for q in bits)
            bit = p in s.bits_b and len(set(plan.sorts[p])) == 1
            if s.sorts[1] == sort and (counted or bit):
                system = "s" if s.predicate == p else f"c.systems[{r}]"
                w.put(1, f"change_class(c.pool, c.blocks, {system}, x, class_key_{r}(d, c, {system}, x))")
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
    for k, bit in s.some:  # R(a,b) is the only one: without it there would be none

        def only(depth: int, env: Env, k: int = k, bit: int = bit) -> None:
            w.put(depth, f"if {joins.length(plan, bit, env[B])} == 1:")
            step = first_atom(w, r, k, bit, env[B], type_of(s.sorts[1], env[B]))
            w.put(depth + 1, f"touch(s, {env[B]}, {step})")

        w.nest(1, {A: "a"}, [s.own(B)], {A: s.sorts[0], B: s.sorts[1]}, only)
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
