"""Compiled kernels do, bit for bit, what their source does; and a seed gives one result, however the work is cut up."""

from __future__ import annotations

import numpy as np
import pytest
from small_models import hard_pairs, hub, implications, ising_ring, many_at_once, mean_field, potts_ring, triples
from uncompiled import uncompiled

from definetti.inference.graph.question import ask
from definetti.model.graph.factors import FactorGraph, factor_graph
from definetti.samplers.gibbs import Gibbs
from definetti.samplers.graph import polynomial
from definetti.samplers.graph import sampling as running
from definetti.samplers.graph.lanes import BitFollower, Follower, Members
from definetti.samplers.graph.sampling import GraphSampling
from definetti.samplers.kernels import bit_counters as plane_kernels
from definetti.samplers.kernels import orbit_counts as tuple_kernels
from definetti.samplers.kernels import orders as order_kernels
from definetti.samplers.kernels.graph import fields as field_kernels
from definetti.samplers.kernels.graph import polynomial as polynomial_kernels
from definetti.samplers.kernels.graph import tables as table_kernels
from definetti.samplers.protocol import Plan
from definetti.symmetry.find import symmetries

PLAIN_PLANES = uncompiled(plane_kernels)
PLAIN = {
    "fields": uncompiled(field_kernels),
    "polynomial": uncompiled(polynomial_kernels),
    "tables": uncompiled(table_kernels),
}


def deep() -> FactorGraph:
    """Log weights that need the tables kernel's second way."""
    strong = np.array([[0.0, -900.0, -900.0], [-900.0, 0.0, 0.0]])
    return factor_graph([2, 3, 2], [([0, 1], strong), ([2, 1], -strong), ([0], [0.0, 0.4])], log=True)


def sampling(
    model: FactorGraph, scan: str, chains: int, queries: tuple[str, ...] = (), sweeps: int | None = 7, workers: int = 1
) -> GraphSampling:
    question = ask(symmetries(model), queries, "orbit", 5)
    gibbs = Gibbs(scan)
    engine = gibbs.engine(question.group.model, question.slots)
    plan = Plan(chains, 2, sweeps, 5, workers)
    return GraphSampling(question.group.model, gibbs, engine, question.statistics, plan)


CASES = [
    (mean_field(6, -0.2, 0.1), 20, "fields"),
    (mean_field(6, -0.2, 0.1), 3, "fields"),
    (hard_pairs(), 20, "fields"),
    (potts_ring(3, 3).condition({0: 1}), 5, "tables"),
    (triples(), 3, "tables"),
    (deep(), 4, "tables"),
    (hub(), 9, "polynomial"),
    (implications(), 40, "polynomial"),
    (implications().condition({2: 1}), 3, "polynomial"),
    (many_at_once(), 9, "tables"),
]


@pytest.mark.parametrize("scan", ["symmetric", "random"])
@pytest.mark.parametrize("model, chains, engine", CASES)
def test_compiled_equals_source(model: FactorGraph, chains: int, engine: str, scan: str) -> None:
    compiled, plain = (sampling(model, scan, chains) for _ in range(2))
    orders = compiled._orders.next(5)
    for run, kernels in ((compiled, None), (plain, PLAIN[engine])):
        (block,) = run.blocks
        if kernels is not None:
            block._kernels = kernels  # type: ignore[attr-defined]
            block._counting = PLAIN_PLANES  # type: ignore[attr-defined]
        block.run(orders[:2], 0)
        block.run(orders[2:4], 2)
        block.run(orders[4:], 1)
    (a,), (b,) = compiled.blocks, plain.blocks
    np.testing.assert_array_equal(a.state, b.state)
    first, second = a.harvest(), b.harvest()
    np.testing.assert_array_equal(first.final, second.final)
    np.testing.assert_array_equal(first.conditional, second.conditional)
    np.testing.assert_array_equal(first.visits, second.visits)
    np.testing.assert_array_equal(a.present(), b.present())
    if scan == "random":
        np.testing.assert_array_equal(first.drawn, second.drawn)


@pytest.mark.parametrize("scan", ["symmetric", "random"])
@pytest.mark.parametrize("model", [triples(), implications()])
def test_full_counters_are_carried_over(model: FactorGraph, scan: str) -> None:
    """The small counters of blocks with a byte per lane hold 255 visits."""
    run, one_by_one = (sampling(model, scan, 3) for _ in range(2))
    orders = run._orders.next(600)
    (block,), (other,) = run.blocks, one_by_one.blocks
    block.run(orders, 2)
    whole = block.harvest()
    parts = []
    for s in range(len(orders)):
        other.run(orders[s : s + 1], 2)
        parts.append(other.harvest())
    np.testing.assert_array_equal(block.state, other.state)
    np.testing.assert_array_equal(whole.final, sum(part.final for part in parts))
    np.testing.assert_array_equal(whole.visits, sum(part.visits for part in parts))
    np.testing.assert_allclose(whole.conditional, sum(part.conditional for part in parts), rtol=1e-12)  # type: ignore[arg-type]
    if scan == "random":
        np.testing.assert_array_equal(whole.drawn, sum(part.drawn for part in parts))


def test_polynomials_and_tables_draw_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two engines share streams and the border between the values: their chains are one another's."""
    for model in (hub(), implications()):
        one = sampling(model, "symmetric", 70, sweeps=40)
        with monkeypatch.context() as patch:
            patch.setattr(polynomial, "build", lambda model, slots: None)
            other = sampling(model, "symmetric", 70, sweeps=40)
        assert [one._engine.name, other._engine.name] == ["polynomial", "tables"]
        (f, last, g, *_, states), (f2, last2, g2, *_, states2) = finished(one), finished(other)
        for a, b in ((f, f2), (last, last2), (states[:, :70], states2)):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(g, g2, atol=1e-12)


def test_tracked_members_are_counted_alike() -> None:
    """In bit planes, compiled and not, as byte by byte."""
    run = sampling(mean_field(6, -0.2, 0.1), "symmetric", 70)
    (block,) = run.blocks
    members = Members(np.array([0, 5, 2], np.int32), np.array([1, 0, 1], np.uint8), np.zeros(3, np.int64))
    compiled, plain, bytewise = BitFollower(block, members), BitFollower(block, members), Follower(block, members)  # type: ignore[arg-type]
    plain._kernels = PLAIN_PLANES
    for _ in range(2):  # the counts are cleared when they are taken
        for _ in range(5):
            block.run(run._orders.next(1), 2)
            for one in (compiled, plain, bytewise):
                one.look()
        taken = bytewise.take()
        assert taken.shape == (3, 70) and taken.min() < taken.max() <= 5
        np.testing.assert_array_equal(compiled.take(), taken)
        np.testing.assert_array_equal(plain.take(), taken)


def test_compiled_orders_equal_source() -> None:
    plain = uncompiled(order_kernels)
    sites = np.arange(11, dtype=np.int32)
    for name in ("shuffled", "with_replacement"):
        streams = [np.arange(1, 5, dtype=np.uint64) << np.uint64(40) for _ in range(2)]
        rows = [np.empty((9, 11), dtype=np.int32) for _ in range(2)]
        more = (np.array([0, 4, 5, 11]),) if name == "shuffled" else ()
        getattr(order_kernels, name)(streams[0], sites, *more, rows[0])
        getattr(plain, name)(streams[1], sites, *more, rows[1])
        np.testing.assert_array_equal(rows[0], rows[1])
        np.testing.assert_array_equal(streams[0], streams[1])


def test_compiled_tuples_equal_source() -> None:
    rng = np.random.default_rng(0)
    state = rng.integers(0, 8, size=(4, 10), dtype=np.uint8)
    tuples = tuple_kernels.Tuples(
        np.array([0, 2, 3]),
        np.array([0, 2, 4, 5]),
        np.array([0, 1, 1, 2, 3], np.int32),
        np.array([0, 1, 1, 1, 0], np.uint8),
    )
    hits = [np.zeros((2, 10), dtype=np.int64) for _ in range(2)]
    tuple_kernels.count_tuples(tuples, state, np.uint8(1), hits[0])
    uncompiled(tuple_kernels).count_tuples(tuples, state, np.uint8(1), hits[1])
    np.testing.assert_array_equal(hits[0], hits[1])
    value = state & 1
    np.testing.assert_array_equal(hits[0][1], value[3] == 0)
    wanted = ((value[0] == 0) & (value[1] == 1)).astype(int) + ((value[1] == 1) & (value[2] == 1))
    np.testing.assert_array_equal(hits[0][0], wanted)


def finished(run: GraphSampling) -> list[np.ndarray]:
    for _ in run.steps():
        pass
    draws = run.draws()
    assert draws.g is not None
    states = np.concatenate([block.state for block in run.blocks], axis=1)
    return [draws.f, draws.last, draws.g, draws.lengths, states]  # type: ignore[return-value]


@pytest.mark.parametrize("scan", ["symmetric", "random", "fixed"])
@pytest.mark.parametrize(
    "model, chains, blocks",
    [(ising_ring(6, 0.5, 0.2), 1100, [3, 3, 3]), (triples(), 110, [1, 2, 4]), (implications(), 110, [1, 2, 4])],
)
def test_one_seed_one_result(
    model: FactorGraph, chains: int, blocks: list[int], scan: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the number of threads, and however chains are cut into blocks and sweeps into chunks."""
    queries = ("X0=1 ^ X1=1",)
    one, two, three = (sampling(model, scan, chains, queries, sweeps=45, workers=k) for k in (1, 2, 3))
    assert [len(run.blocks) for run in (one, two, three)] == blocks
    results = [finished(one), finished(two)]
    monkeypatch.setattr(running, "ORDER_ENTRIES", 1)  # one sweep a chunk
    results.append(finished(three))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_open_ended_run_merges_batches() -> None:
    """Sixty-four batches become thirty-two of twice the length, with the same total."""
    run = sampling(ising_ring(4, 0.5, 0.3), "symmetric", 4, sweeps=None)
    kept = []
    for step in run.steps():
        kept.append(run.draws())
        if step.done >= 700 and step.phase == "sampling":
            break
    longest = max(len(draws.lengths) for draws in kept)
    assert longest == 63 and len(kept[-1].lengths) < 63
    assert set(kept[-1].lengths.tolist()) == {16}
    fixed = sampling(ising_ring(4, 0.5, 0.3), "symmetric", 4, sweeps=kept[-1].sweeps)
    f, _, g, lengths, *_ = finished(fixed)
    np.testing.assert_allclose(
        np.average(kept[-1].f, axis=0, weights=kept[-1].lengths), np.average(f, axis=0, weights=lengths), atol=1e-12
    )
    assert kept[-1].g is not None
    np.testing.assert_allclose(kept[-1].g.mean(axis=0), np.average(g, axis=0, weights=lengths), atol=1e-12)
