"""Reading .uai files: the paper's grid, and one with ten times as many factors in ten times the time."""

from __future__ import annotations

import tempfile
from pathlib import Path

from measuring import Row, best_of, cpu_seconds
from models import paper_grid

import definetti as dft
from definetti.readers.writing import write

LARGE = 316  # 10 times the variables of 100×100


def rows(quick: bool) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        paths = {side: Path(folder) / f"grid{side}.uai" for side in (100, LARGE)}
        for side, path in paths.items():
            write(paper_grid(side), path)
        dft.read(paths[100])  # imports are not reading
        rivals = {str(side): (lambda path=path: cpu_seconds(lambda: dft.read(path))) for side, path in paths.items()}
        took = best_of(rivals, 3 if quick else 5)
        factors = {side: 2 * side * (side - 1) for side in paths}
    growth = (took[str(LARGE)] / took["100"]) / (factors[LARGE] / factors[100])
    return [
        Row("reading the 100×100 grid", took["100"], "CPU s", 1.0, at_least=False, note=f"{factors[100]:,} factors"),
        Row(f"reading the {LARGE}×{LARGE} grid", took[str(LARGE)], "CPU s", note=f"{factors[LARGE]:,} factors"),
        Row("time per factor, ten times larger", growth, "times", 1.5, at_least=False, note="1 is linear"),
    ]
