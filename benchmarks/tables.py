"""5,000 variables of 2 to 4 values under 10,000 random tables over triples: updates per second beside thrml."""

from __future__ import annotations

from measuring import Row, best_of, in_process, more_time
from models import random_tables
from sampling import bare_and_folded, full_run, no_symmetries


def rows(quick: bool) -> list[Row]:
    rounds = 3 if quick else 8
    group = no_symmetries(random_tables())
    sweeps = 100 if quick else 2000  # the default, as for the grid; batches cost the same however long they are
    rivals = {"64": full_run(group, 64, sweeps), "1": full_run(group, 1, sweeps)}
    rate = {name: 1.0 / seconds for name, seconds in best_of(rivals, 2).items()}
    more = more_time(bare_and_folded(group, 64, 20), 2 * rounds + 1)
    return [
        Row("3-ary tables, 64 chains", rate["64"] / 1e6, "M updates/s", 25.0, note="CPU time; F, G and batches too"),
        Row("3-ary tables, one chain", rate["1"] / 1e6, "M updates/s"),
        *beside_thrml(rate["64"], quick),
        Row("folding F and G, 3-ary tables", more["F and G"], "% more time", 60.0, at_least=False),
        Row("folding F, 3-ary tables", more["F"], "% more time", 20.0, at_least=False),
    ]  # fmt: skip


def beside_thrml(ours: float, quick: bool) -> list[Row]:
    """thrml with the tables as they are, which has the target, and padded to one shape, which suits it better."""
    out = []
    for way, target in (("padded", None), ("direct", 30.0)):
        if quick and way == "direct":
            continue  # its set-up alone takes minutes
        peer, note = thrml(way, 3 if quick else 6)
        out.append(Row(f"3-ary tables, thrml, {way}", peer and peer / 1e6, "M updates/s", note=note))
        out.append(Row(f"3-ary tables, 64 chains / thrml, {way}", peer and ours / peer, "times", target))
    return out


def thrml(way: str, rounds: int) -> tuple[float | None, str]:
    """thrml's updates per CPU second once compiled, in a process of its own with one core; and a note."""
    try:
        found = in_process("thrml_tables.py", way, str(rounds), JAX_PLATFORMS="cpu")
    except Exception as error:  # a peer that does not run is no fault of ours, and is said
        return None, f"not measured: {error}"
    chains = "one chain" if found["chains"] == 1 else f"{found['chains']} chains at once"
    return found["rate"], f"{chains}; set-up {found['set_up']:.0f} s"
