"""Hard constraints: MC-SAT's rate, memory and bias, alarms on asthma, and how soon a clash is told.

`python benchmarks/hard.py rate N` measures MC-SAT on N people by itself and prints JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from error_models import people, truth
from measuring import Row, cpu_seconds, in_process, peak_megabytes

import definetti as dft

EXAMPLES = Path(__file__).parents[1] / "examples"
THE_FIELDS = {50: 38.0, 100: 4.5}  # samples per second of the field's C++ program, one core
CLASHES = {
    "an order without a last element": """n = {1,...,100}
Less(n,n)
Less(x,y) ^ Less(y,z) => Less(x,z).
!Less(x,x).
EXIST y Less(x,y).
""",
    "101 pigeons in 100 holes": """pigeon = {1,...,101}
hole = {1,...,100}
In(pigeon,hole)
EXIST h In(p,h).
In(p,h) ^ In(q,h) => p = q.
""",
    "both values of an atom, with transitivity": """n = {1,...,100}
P(n)
F(n,n)
P(x) v F(x,x).
!P(x).
!F(x,x).
F(x,y) ^ F(y,z) => F(x,z).
""",
}


TASKS = ("rates", "bias", "clashes", "asthma")


def rows(quick: bool, only: tuple[str, ...] = TASKS) -> list[Row]:
    work = {
        "rates": rates,
        "bias": lambda: [bias(n, 10**5 if quick else 10**6) for n in (10, 50)],
        "clashes": clashes,
        "asthma": lambda: asthma(3 if quick else 20),
    }
    return [row for task in only for row in work[task]()]


def rates() -> list[Row]:
    out = []
    for n, peer in THE_FIELDS.items():
        found = in_process("hard.py", "rate", str(n))
        note = f"{found['rate']:.0f} samples per CPU second; the field's C++ program makes {peer:g}"
        out.append(Row(f"MC-SAT, transitivity, n={n} / the field's", found["rate"] / peer, "times", 20.0, note=note))
        out.append(Row(f"MC-SAT, transitivity, n={n}, memory", found["mb"], "MB", 500.0, at_least=False))
    return out


def rate(n: int) -> dict[str, float]:
    """Samples of all chains per CPU second, warm-up included."""
    model = dft.read(EXAMPLES / "smokers-transitive.mln", domain={"person": n})
    dft.marginals(model, sampler="mcsat", chains=1, sweeps=2, burn_in=0)  # compiles, or loads
    found: list[dft.Marginals] = []
    options = {"sampler": "mcsat", "chains": 4, "sweeps": 200_000 // n, "burn_in": 10, "workers": 1, "seed": 1}
    spent = cpu_seconds(lambda: found.append(dft.marginals(model, **options)))
    run = found[0].run
    spent -= run["seconds"]["symmetries"] + run["seconds"]["compile"]
    return {"rate": run["chains"] * (run["sweeps"] + run["burn_in"]) / spent, "mb": peak_megabytes()}


def bias(n: int, samples: int) -> Row:
    """Error of P(smokes), orbit mean, of friends and smokers."""
    found: Any = dft.marginals(people(n), ["smokes(P0)"], sampler="mcsat", chains=8, sweeps=samples // 8, seed=3)[
        "smokes(P0)"
    ]
    error = found.probability - truth(n)["smokes"]
    note = f"{samples} samples; {error:+.5f} ± {found.mcse:.5f}"
    return Row(
        f"MC-SAT, bias of P(smokes), n={n}",
        abs(error),
        "",
        5e-4,
        at_least=False,
        note=note,
        more={"error": error, "mcse": found.mcse},
    )


def clashes() -> list[Row]:
    out = []
    for what, text in CLASHES.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "clash.mln"
            path.write_text(text)
            began = time.process_time()
            try:
                dft.marginals(dft.read(path))
                raise RuntimeError(f"{what}: no contradiction was found")
            except dft.Unsatisfiable:
                spent = time.process_time() - began
        out.append(Row(f"contradiction found: {what}", spent, "CPU s", 10.0, at_least=False))
    return out


def asthma(seeds: int) -> list[Row]:
    """Plain Gibbs with one known smoker: flagged at 30 and 50 people, flagged or right at 10."""
    out = []
    for n in (10, 30, 50):
        model = dft.read(EXAMPLES / "asthma-hard.mln", {"Smokes(Person1)": True}, domain={"person": n})
        exact, good = dft.exact(model), 0
        for seed in range(seeds):
            found = dft.marginals(model, sampler="gibbs", seed=seed)
            right = n == 10 and largest_z(found, exact) <= 3.0
            good += right or not found.trusted
        what = "flagged or right" if n == 10 else "flagged"
        out.append(Row(f"asthma, {n} people, Gibbs {what}", good, f"of {seeds}", seeds))
    return out


def largest_z(found: Any, exact: Any) -> float:
    """Of the orbits; one without error must agree to rounding."""
    pairs = [(row.probability - exact[row.representative].probability, row.mcse) for row in found.orbits]
    return float(np.max([abs(d) / max(e or 0.0, 1e-9) for d, e in pairs], initial=0.0))


if __name__ == "__main__":
    print(json.dumps(rate(int(sys.argv[2]))))
