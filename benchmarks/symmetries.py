"""Finding symmetries over literals: the paper's grid, one nine times as large, and a sparse graph with twin leaves."""

from __future__ import annotations

from measuring import Row, best_of, cpu_seconds_with_children, in_process
from models import paper_grid

import definetti as dft

GRID_ORDER = 16  # eight isometries of the square, with and without the flip of all values


def rows(quick: bool) -> list[Row]:
    out = []
    for side, most, rounds in ((100, 1.0, 3), (300, 10.0, 1 if quick else 2)):
        model, orders = paper_grid(side), []

        def search(model: dft.FactorGraph = model, orders: list[int | None] = orders) -> None:
            orders.append(dft.symmetries(model, "literals", time_limit=120.0).order)

        took = best_of({"search": lambda search=search: cpu_seconds_with_children(search)}, rounds)["search"]
        right = set(orders) == {GRID_ORDER}
        note = f"order {orders[0]}" + ("" if right else f", but it is {GRID_ORDER}")
        name = f"symmetries of the {side}×{side} grid"
        out.append(Row(name, took if right else None, "CPU s", most, at_least=False, note=note))
    found = in_process("twin_leaves.py")
    note = f"order 10^{found['digits']}, {found['seconds']:.1f} s; {found['notices'] or 'complete'}"
    out.append(
        Row("symmetries of 10^5 nodes with twin leaves", found["gigabytes"], "GB", 2.0, at_least=False, note=note)
    )
    return out
