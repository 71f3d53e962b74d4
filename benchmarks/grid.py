"""The paper's 100×100 grid: updates per second beside dwave-samplers, and what folding costs."""

from __future__ import annotations

from collections.abc import Callable

from measuring import Row, best_of, cpu_seconds, more_time
from models import paper_grid
from sampling import bare_and_folded, full_run

import definetti as dft
from definetti.symmetry.graph.group import GraphSymmetries

SIDE = 100


def rows(quick: bool) -> list[Row]:
    rounds = 2 if quick else 5
    group = dft.symmetries(paper_grid(SIDE))
    sweeps = 500 if quick else 2000  # the default; batches cost the same however long they are
    note = "CPU time, best round; scan orders, F, G and batches included"
    rivals = {
        "512": full_run(group, 512, sweeps),
        "1": full_run(group, 1, 3 * sweeps),
        "64": full_run(group, 64, sweeps),
    }
    peer_note = ""
    try:
        rivals["peer"] = dwave_gibbs(8 if quick else 32, 100)
    except ImportError as error:
        peer_note = f"not measured: {error}"
    took = best_of(rivals, rounds)
    rate = {name: 1.0 / seconds for name, seconds in took.items()}
    peer = rate.get("peer")
    return [
        Row("grid, 512 chains", rate["512"] / 1e9, "G updates/s", 1.5, note=note),
        Row("grid, 64 chains (the default)", rate["64"] / 1e9, "G updates/s", note=note),
        Row("grid, one chain", rate["1"] / 1e6, "M updates/s", 80.0, note=note),
        Row("grid, dwave-samplers Gibbs", peer and peer / 1e6, "M updates/s", note=peer_note or "no statistics"),
        Row("grid, 512 chains / dwave-samplers", peer and rate["512"] / peer, "times", 20.0, note=peer_note),
        Row("grid, one chain / dwave-samplers", peer and rate["1"] / peer, "times", note=peer_note),
        *folding(group, rounds, quick),
    ]  # fmt: skip


def folding(group: GraphSymmetries, rounds: int, quick: bool) -> list[Row]:
    out = []
    for chains, sweeps, judged in ((512, 50, True), (64, 200, False), (1, 2000, False)):
        more = more_time(bare_and_folded(group, chains, sweeps // (4 if quick else 1)), 4 * rounds + 1)
        for what, most in (("F and G", 60.0), ("F", 20.0)):
            name = f"folding {what}, grid, {chains} chain{'s' * (chains > 1)}"
            out.append(Row(name, more[what], "% more time", most if judged else None, at_least=False))
    return out


def dwave_gibbs(reads: int, sweeps: int) -> Callable[[], float]:
    """CPU seconds per update of dwave-samplers' Gibbs at a fixed temperature: E = 0.1 Σ s s', β = 1."""
    import dimod
    from dwave.samplers import SimulatedAnnealingSampler

    model = paper_grid(SIDE)
    bqm = dimod.BinaryQuadraticModel.from_ising({}, {(int(a), int(b)): 0.1 for a, b in model.scope.reshape(-1, 2)})
    sampler = SimulatedAnnealingSampler()

    def run(reads: int = reads, sweeps: int = sweeps) -> float:
        return cpu_seconds(
            lambda: sampler.sample(
                bqm, num_reads=reads, beta_schedule_type="custom", beta_schedule=[1.0], num_sweeps_per_beta=sweeps,
                proposal_acceptance_criteria="Gibbs", seed=1,
            )
        )  # fmt: skip

    set_up = min(run(reads, 1) for _ in range(3))  # translating the model is not sampling
    return lambda: (run() - set_up) / ((sweeps - 1) * reads * SIDE**2)
