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


def kernel_text(plan: Plan) -> str:
    """The whole text."""
    parts = [template("sparse.py")]
    generated = Writer(plan, [])
    for p in plan.position:
        fields.write_field(generated, p)
    for r, s in enumerate(plan.systems):
        fields.write_class_key(generated, r, s)
    for p in range(len(plan.sorts)):
        fields.write_reclass(generated, p)
    for r, s in enumerate(plan.systems):
        fields.write_row_keys(generated, r, s)
        fields.write_support(generated, r, s)
        row = row_of(plan, r, s)
        generated.put(0, row_start(row))
        generated.put(0, row_candidates(row))
        fields.write_delta(generated, r, s)
        fields.write_loop_delta(generated, r, s)
        generated.put(0, row_watch(row) if row.held else "")
        generated.put(0, row_flips(row))
        generated.put(0, row_events(row))
    sweep.write_begin(generated)
    sweep.write_crowded(generated)
    sweep.write_set_up(generated)
    if plan.hard:
        sweep.write_violations(generated)
    ahead.write_look_ahead(generated)
    sweep.write_advance(generated)
    return "\n".join([*parts, *generated.lines, ""])


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
