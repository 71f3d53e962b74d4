"""`run.py --against COMMIT`: the sources of a commit and the present ones in alternating rounds, on the same work.

Every measurement is a process of its own that sees one of the two through PYTHONPATH, with a folder of compiled code of
its own, and uses the public interface alone: both may be laid out as they like. `python benchmarks/against.py FAMILY`
is such a process; it prints the user CPU seconds of each row as JSON (time inside the operating system is mostly first
touches of fresh memory, which on a virtual machine cost up to five times as much in one run as in the next). Of a
sampler's run they are those of its kept sweeps: what comes before (symmetries, a survey of modes, starts) is another
matter than the speed of a kernel. So are looks at the error on the way, two or three in a run as the clock has it: both
sides report the seconds of sampling alone, and in such a process their clock counts user CPU seconds.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from math import exp, log
from pathlib import Path
from typing import Any

from measuring import HERE

FAMILIES = ("grid", "tables", "relational", "hard")
MOST_OF_A_FAMILY, MOST_OF_A_ROW = 1.05, 1.10  # times as slow
TICK = 0.01  # CPU seconds: less is not told apart
ROUNDS, ROUNDS_QUICK = 4, 2
REPEATS = 2  # in a process, the best counts
OPTIONS: dict[str, Any] = {"workers": 1, "seed": 1, "burn_in": 1, "estimator": "conditional"}

Work = Callable[[], float]  # does it, and gives its CPU seconds


# --- what is measured ---------------------------------------------------------------------------------------------


def grid(quick: bool) -> Iterator[tuple[str, Work]]:
    from models import paper_grid

    import definetti as dft

    group = dft.symmetries(paper_grid(100))
    for chains, sweeps in ((512, 200), (64, 1000), (1, 4000)):
        yield f"grid, {chains} chains", sampled(group.model, sweeps // (4 if quick else 1), chains, symmetries=group)


def tables(quick: bool) -> Iterator[tuple[str, Work]]:
    from models import random_tables

    model = random_tables()
    for chains, sweeps in ((64, 200), (1, 1000)):
        yield f"3-ary tables, {chains} chains", sampled(model, sweeps // (4 if quick else 1), chains, symmetries="none")


SMOKERS = "smokes(person)\ncancer(person)\nfriends(person,person)\n1.4 !smokes(x)\n2.3 !cancer(x)\n4.6 !friends(x,y)\n"
SMOKERS += "1.5 smokes(x) => cancer(x)\n1.1 friends(x,y) ^ smokes(x) => smokes(y)\n"
TRANSITIVE = SMOKERS + "1.0 friends(x,y) ^ friends(y,z) => friends(x,z)\n"
TEN = TRANSITIVE + "0.2 friends(x,y) => friends(y,x)\n0.1 friends(x,y) ^ cancer(x) => cancer(y)\n"
TEN += "-0.1 friends(x,y) ^ friends(x,z) ^ smokes(y)\n0.1 friends(x,x)\n"
STARS = "e(person,person)\nt(person,person,person)\n-2 e(x,y)\n1 e(x,y) ^ e(y,x)\n-0.001 e(x,y) ^ e(x,z) ^ y != z\n"
STARS += "-1 t(x,y,z)\n0.5 t(x,y,z) => e(x,y) ^ e(y,z)\n"
PATHS = "e(person,person)\n%g e(x,y)\n0.001 e(x,y) ^ e(y,z) ^ e(z,u) => e(x,u)\n"
GRAPH = "e(person,person)\n!e(x,x).\ne(x,y) => e(y,x).\n-2.3 e(x,y)\n"
GRAPH += "0.02 e(x,y) ^ e(y,z) ^ e(x,z) ^ x != y ^ y != z ^ x != z\n"
THEORIES = {  # rules, people, sweeps of one chain: a second or more of sampling, beside which setting up is little
    "smokers-transitive-50": (TRANSITIVE, 50, 20_000),
    "smokers-transitive-100": (TRANSITIVE, 100, 5000),
    "smokers-transitive-1000": (TRANSITIVE, 1000, 40),
    "smokers-1000": (SMOKERS, 1000, 60),
    "stars-200": (STARS, 200, 4),
    "paths-sparse-100": (PATHS % -4, 100, 2000),
    "paths-dense-100": (PATHS % 0, 100, 300),
    "hard-graph-1000": (GRAPH, 1000, 40),
    "ten-shapes-50": (TEN, 50, 10_000),
}


def relational(quick: bool) -> Iterator[tuple[str, Work]]:
    for name, (rules, people, sweeps) in THEORIES.items():
        sweeps = max(1, sweeps // (4 if quick else 1))
        yield name, sampled(theory(rules, people), sweeps, 1, sampler="gibbs")


def hard(quick: bool) -> Iterator[tuple[str, Work]]:
    import definetti as dft

    examples = HERE.parent / "examples"
    for n in (50, 100):
        model = dft.read(examples / "smokers-transitive.mln", domain={"person": n})
        sweeps = (10_000 if quick else 20_000) // n
        yield f"MC-SAT, transitivity, n={n}", sampled(model, sweeps, 4, sampler="mcsat", estimator="orbit")
    model = dft.read(examples / "asthma-hard.mln", {"Smokes(Person1)": True}, domain={"person": 30})
    yield "asthma, 30 people, Gibbs", sampled(model, 500, 8, sampler="gibbs")
    from hard import CLASHES

    for what, text in CLASHES.items():
        yield f"clash: {what}", clash(text)


def sampled(model: Any, sweeps: int, chains: int, **options: Any) -> Work:
    import definetti as dft

    def work() -> float:
        seen: list[tuple[int, float]] = []  # kept sweeps that are done, CPU seconds that all sweeps took so far

        def follow(step: Any) -> None:
            if step.phase == "sampling":
                seen.append((step.done, step.seconds))

        dft.marginals(model, sweeps=sweeps, chains=chains, progress=follow, **{**OPTIONS, **options})
        (first, began), (last, ended) = seen[0], seen[-1]
        return (ended - began) * sweeps / (last - first)

    return work


def theory(rules: str, people: int) -> Any:
    import definetti as dft

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "theory.mln"
        path.write_text(f"person = {{1,...,{people}}}\n{rules}")
        return dft.read(path)


def clash(text: str) -> Work:
    import definetti as dft

    def refused() -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "clash.mln"
            path.write_text(text)
            try:
                dft.marginals(dft.read(path))
            except dft.Unsatisfiable:
                return
        raise RuntimeError("no clash was reported")

    def work() -> float:
        began = user_seconds()
        refused()
        return user_seconds() - began

    return work


def user_seconds() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def measure(family: str, quick: bool) -> dict[str, float]:
    """CPU seconds of each row; the first repetition compiles or loads what it needs before it samples."""
    return {name: min(work() for _ in range(REPEATS)) for name, work in globals()[family](quick)}


# --- two sides ----------------------------------------------------------------------------------------------------


def compare(commit: str, families: tuple[str, ...], quick: bool) -> int:
    """Print present time ÷ the commit's; 1 if a family is beyond 5 % or a row beyond 10 % slower."""
    late: list[str] = []
    with tempfile.TemporaryDirectory(prefix="definetti-against-") as folder:
        sides = {"old": export(commit, Path(folder)), "new": HERE.parent / "src"}
        for family in families:
            best: dict[str, dict[str, float]] = {"old": {}, "new": {}}
            for turn in range(ROUNDS_QUICK if quick else ROUNDS):
                for side in ("old", "new") if turn % 2 == 0 else ("new", "old"):
                    for name, seconds in in_side(sides[side], Path(folder) / side, family, quick).items():
                        best[side][name] = min(seconds, best[side].get(name, seconds))
            late += report(family, commit, best)
    print(f"\n{'nothing' if not late else ', '.join(late)} slower than allowed")
    return 1 if late else 0


def export(commit: str, folder: Path) -> Path:
    """The sources of a commit, without touching the working tree."""
    archive = subprocess.run(["git", "archive", commit, "src"], cwd=HERE.parent, capture_output=True, check=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder / "src"


def in_side(sources: Path, compiled: Path, family: str, quick: bool) -> dict[str, float]:
    environment = {**os.environ, "PYTHONPATH": str(sources), "DEFINETTI_CACHE_DIR": str(compiled)}
    words = [sys.executable, str(HERE / "against.py"), family, *(["--quick"] if quick else [])]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise RuntimeError(f"{family} with {sources}:\n{done.stderr}")
    found = json.loads(done.stdout.strip().splitlines()[-1])
    if not Path(found["sources"]).is_relative_to(sources):
        raise RuntimeError(f"{found['sources']} was measured in place of {sources}")
    return found["seconds"]


def report(family: str, commit: str, best: dict[str, dict[str, float]]) -> list[str]:
    """The lines of a family; what of it is too slow."""
    rows = [name for name in best["new"] if name in best["old"]]
    ratios = {name: max(best["new"][name], TICK) / max(best["old"][name], TICK) for name in rows}
    mean = exp(sum(map(log, ratios.values())) / len(ratios))
    print(f"\n{family}: {mean:.3f} of the time of {commit} (geometric mean; {MOST_OF_A_FAMILY:g} at most)")
    for name, ratio in ratios.items():
        mark = "SLOWER" if ratio > MOST_OF_A_ROW else ""
        print(f"  {name:48} {best['old'][name]:8.3f} → {best['new'][name]:8.3f} user s {ratio:7.3f} {mark}".rstrip())
    sys.stdout.flush()
    late = [f"{family}, {name}" for name, ratio in ratios.items() if ratio > MOST_OF_A_ROW]
    return ([family] if mean > MOST_OF_A_FAMILY else []) + late


if __name__ == "__main__":
    time.perf_counter = user_seconds  # before anything of either side is imported
    seconds = measure(sys.argv[1], "--quick" in sys.argv)
    import definetti

    print(json.dumps({"sources": definetti.__file__, "seconds": seconds}))
