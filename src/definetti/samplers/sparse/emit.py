"""The text of a sparse kernel: joins, delta rules, class keys and fields, around the fixed row loop.

Only numbers of our making stand in it: predicates, sorts and variables are counted, and weights, sizes and evidence are
data.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from definetti.model.logic.evidence import UNKNOWN
from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.sparse.normal_form import Unfit, monomials, symmetric_predicates
from definetti.samplers.sparse.terms import System, positions, system_of
from definetti.samplers.sparse.text import ahead, fields, sweep
from definetti.samplers.sparse.text.joins import Plan, Writer, lists
from definetti.samplers.sparse.text.rows import Row, row_candidates, row_events, row_flips, row_start, row_watch
from definetti.samplers.sparse.text.shapes import Shapes, shared

TEMPLATES = Path(__file__).parents[1] / "codegen" / "templates"


def plan_of(model: MarkovLogic) -> Plan:
    """Raises `Unfit`, with the reason, for theories that the generator does not cover."""
    sort_number = {name: s for s, name in enumerate(model.sorts)}
    for name, predicate in model.predicates.items():
        if predicate.exclusive:
            raise Unfit(f"{name} has exactly-one (`!`) arguments")
        if not 1 <= len(predicate.sorts) <= 2:
            raise Unfit(f"{name} has {len(predicate.sorts)} arguments")
        known = model.knowledge.relation(name).default != UNKNOWN
        if len(predicate.sorts) == 2 and known and model.knowledge.free_count(name):
            raise Unfit(f"{name} is known but for some of its atoms")
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


def kernel_text(plan: Plan) -> tuple[str, Shapes]:
    """The whole text, and which predicates share functions in it."""
    texts = [system_text(plan, r, s) for r, s in enumerate(plan.systems)]
    shapes = shared(texts, [s.predicate for s in plan.systems])
    generated = Writer(plan, [])
    for p in plan.unary:
        fields.write_field(generated, p)
        fields.write_reclass(generated, p)
    sweep.write_begin(generated)
    sweep.write_crowded(generated)
    sweep.write_set_up(generated, shapes)
    if plan.hard:
        sweep.write_violations(generated)
    ahead.write_look_ahead(generated, shapes)
    sweep.write_advance(generated, shapes)
    others = shapes.renamed("\n".join(generated.lines))
    return "\n".join([template("sparse.py"), *shapes.texts, others, ""]), shapes


def system_text(plan: Plan, r: int, s: System) -> str:
    """All functions of one binary predicate."""
    w, row = Writer(plan, []), row_of(plan, r, s)
    if s.predicate in plan.position:
        fields.write_field(w, s.predicate)
        sweep.write_site(w, s.predicate)
    fields.write_class_key(w, r, s)
    fields.write_reclass(w, s.predicate)
    fields.write_row_keys(w, r, s)
    fields.write_support(w, r, s)
    w.put(0, row_start(row))
    w.put(0, row_candidates(row))
    fields.write_delta(w, r, s)
    fields.write_loop_delta(w, r, s)
    w.put(0, row_watch(row) if row.held else "")
    w.put(0, row_flips(row))
    w.put(0, row_events(row))
    ahead.write_ahead(w, r, s)
    return "\n".join(w.lines)


@cache
def template(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def row_of(plan: Plan, r: int, s: System) -> Row:
    p, (a, b) = s.predicate, s.sorts
    return Row(
        number=r, types=f"d.type_start[{a}]", lists=lists(p, s.side), back=lists(p, 1 - s.side), size=f"d.sizes[{b}]",
        same=s.same, symmetric=s.symmetric, held=p in plan.held_pairs, mask=(1 << len(s.bits_b)) - 1,
        loop=plan.position.get(p, 0), held_loop=p in plan.held_bits,
        chance=f"chance_{p}" if s.same else "no_chance", near=f"reclass_{p}_{s.side}", far=f"reclass_{p}_{1 - s.side}",
        delta=tuple(lists(*found) for found in ahead.delta_lists(s)),
    )  # fmt: skip
