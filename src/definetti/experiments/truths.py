"""Truths that no exact engine gives: long runs with their standard errors, kept in `data/` with the command that made
them; and the exact disagreement of neighbours on the grid, by the Kac–Ward formula.

    python -m definetti.experiments.truths NAME [--sweeps N] [--chains N]     makes data/NAME.json anew
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from definetti.errors import DefinettiError
from definetti.experiments import models

EVIDENCE_SEED = 1
TRANSITIVE = (10, 20, 30, 50, 70, 100, 200, 500, 1000)
CROWDS = (100, 2000, 10_000, 100_000)


@dataclass(frozen=True)
class Truth:
    """Numbers by the name of an orbit's member, with their standard errors, and how they were made."""

    values: Mapping[str, float]
    errors: Mapping[str, float]
    made: Mapping[str, Any]


def _sources() -> dict[str, Callable[[], Any]]:
    """The models whose long runs are kept."""
    found: dict[str, Callable[[], Any]] = {
        "smokers-50-transitive-evidence": lambda: models.smokers(50, True, models.known_people(50, EVIDENCE_SEED)),
        "grid-fields": lambda: models.grid(fields=models.symmetric_fields()),
    }
    for n in TRANSITIVE:
        found[f"smokers-{n}-transitive"] = lambda n=n: models.smokers(n, True)
    for n in CROWDS:
        found[f"crowd-{n}-transitive"] = lambda n=n: models.crowd(n, True)
    return found


@cache
def truth(name: str) -> Truth:
    """A truth that is kept; `DefinettiError` where there is none of this name."""
    place = files("definetti.experiments") / "data" / f"{name}.json"
    if not place.is_file():
        raise DefinettiError(f"no truth is kept for {name!r}: python -m definetti.experiments.truths {name}")
    kept = json.loads(place.read_text(encoding="utf-8"))
    names, values, errors = zip(*kept["rows"], strict=True)
    return Truth(dict(zip(names, values, strict=True)), dict(zip(names, errors, strict=True)), kept["made"])


def long_run(name: str, sweeps: int, chains: int | None = None, seed: int = 2013) -> dict[str, Any]:
    """A run of Gibbs sampling with orbits and control variates."""
    from definetti.inference.marginals import marginals

    answer = marginals(_sources()[name](), sampler="gibbs", estimator="auto", sweeps=sweeps, chains=chains, seed=seed)
    rows = [[row.representative, float(np.ravel(row.probability)[-1]), _last(row.mcse)] for row in answer.orbits]
    run = {key: answer.run[key] for key in ("sampler", "estimator", "chains", "sweeps", "burn_in", "updates", "seed")}
    command = f"python -m definetti.experiments.truths {name} --sweeps {sweeps}"
    command += "" if chains is None else f" --chains {chains}"
    warnings = [f"{notice.kind}: {notice.message}" for notice in answer.notices]
    return {"made": {"command": command, **run, "warnings": warnings}, "rows": rows}


def _last(error: Any) -> float | None:
    return None if error is None else float(np.ravel(error)[-1])


# --- the grid, exactly ------------------------------------------------------------------------------------------------


def disagreement(side: int = models.SIDE, weight: float = models.WEIGHT) -> np.ndarray:
    """float64[edges]: P(neighbours differ) on the grid without fields, in the order of `models.grid_edges`.

    Kac and Ward: Z is 2^n Π cosh J times the root of det(I − T), T over directed edges that follow each other without
    turning back, tanh J times exp(i/2 · turn). Its derivative by one edge's coupling needs one entry of the inverse.
    """
    from scipy.sparse import csc_array, eye_array
    from scipy.sparse.linalg import splu

    edges = models.grid_edges(side)
    t = np.tanh(-weight / 2)  # exp(w [x ≠ y]) = const · exp(−w/2 · s s')
    tail, head = np.concatenate([edges, edges[:, ::-1]]).T
    angle = np.angle((head % side - tail % side) + 1j * (head // side - tail // side))
    row, column = _follow(tail, head, side)
    turn = np.angle(np.exp(1j * (angle[column] - angle[row])))
    size = len(tail)
    matrix = csc_array((t * np.exp(0.5j * turn), (row, column)), shape=(size, size))
    solver = splu((eye_array(size, format="csc") - matrix).tocsc())
    orbit = edge_orbits(side)
    entry = np.empty(orbit.max() + 1)
    for k, e in enumerate(np.unique(orbit, return_index=True)[1].tolist()):
        unit = np.zeros(size, complex)
        unit[e] = 1.0
        entry[k] = solver.solve(unit)[e].real
    correlation = t - (1 - t**2) * (entry - 1) / t
    return ((1 - correlation) / 2)[orbit]


def _follow(tail: np.ndarray, head: np.ndarray, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of directed edges that follow each other without turning back."""
    order = np.argsort(tail, kind="stable")
    first = np.searchsorted(tail[order], np.arange(side * side + 1))
    rows, columns = [], []
    for k in range(4):
        at = first[head] + k
        inside = at < first[head + 1]
        after = order[at[inside]]
        before = np.flatnonzero(inside)
        onward = head[after] != tail[before]
        rows.append(before[onward])
        columns.append(after[onward])
    return np.concatenate(rows), np.concatenate(columns)


def edge_orbits(side: int) -> np.ndarray:
    """int64[edges]: the orbit of each edge under the eight symmetries of the square, numbered by first edges."""
    edges = models.grid_edges(side)
    row, column = edges // side, edges % side
    last = side - 1
    keys = []
    for a, b in ((row, column), (column, row)):
        for x in (a, last - a):
            for y in (b, last - b):
                keys.append(np.sort(x * side + y, axis=1) @ np.array([side * side, 1]))
    _, first, which = np.unique(np.min(keys, axis=0), return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[which.ravel()]


def grid_truth() -> dict[str, Any]:
    values, edges, orbit = disagreement(), models.grid_edges(), edge_orbits(models.SIDE)
    first = np.unique(orbit, return_index=True)[1]
    rows = [[f"X{edges[e, 0]}!=X{edges[e, 1]}", round(float(values[e]), 12), 0.0] for e in first.tolist()]
    return {"made": {"command": "python -m definetti.experiments.truths grid-edges", "method": "Kac-Ward"},
            "rows": rows}  # fmt: skip


def main() -> None:
    names = ["grid-edges", *_sources()]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=names)
    parser.add_argument("--sweeps", type=int, default=20_000)
    parser.add_argument("--chains", type=int, help="how many chains; by default as many as `marginals` takes")
    options = parser.parse_args()
    grid = options.name == "grid-edges"
    made = grid_truth() if grid else long_run(options.name, options.sweeps, options.chains)
    head = json.dumps(made["made"], ensure_ascii=False)
    rows = ",\n".join(json.dumps(row) for row in made["rows"])
    place = Path(__file__).parent / "data" / f"{options.name}.json"
    place.write_text(f'{{"made": {head},\n"rows": [\n{rows}\n]}}\n', encoding="utf-8")
    print(f"{place.name}: {len(made['rows'])} rows")


if __name__ == "__main__":
    main()
