"""Write a rows × columns grid as .uai: neighbours that differ weigh exp(weight), the value 1 weighs exp(field).

With weight 0.2 and field 0 this is the two-colouring grid of the paper; grid.uai beside this file has 12 rows, 12
columns, weight 0.4 and field 0.5.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator


def edges(rows: int, columns: int) -> Iterator[tuple[int, int]]:
    for i in range(rows):
        for j in range(columns):
            if j + 1 < columns:
                yield i * columns + j, i * columns + j + 1
            if i + 1 < rows:
                yield i * columns + j, (i + 1) * columns + j


def grid(rows: int, columns: int, weight: float, field: float) -> str:
    n = rows * columns
    pairs = list(edges(rows, columns))
    sites = range(n) if field else range(0)
    lines = ["MARKOV", str(n), " ".join(["2"] * n), str(len(pairs) + len(sites))]
    lines += [f"2 {a} {b}" for a, b in pairs] + [f"1 {a}" for a in sites]
    differ, one = f"{math.exp(weight):.17g}", f"{math.exp(field):.17g}"
    lines += [f"4 1 {differ} {differ} 1" for _ in pairs] + [f"2 1 {one}" for _ in sites]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit("usage: make_grid.py ROWS COLUMNS WEIGHT FIELD > grid.uai")
    sys.stdout.write(grid(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])))
