"""Planted bugs: each is put into the source text, and the check that the real tests use must see it.

If a line that a mutant changes is rewritten, `uncompiled` says so: give the mutant its new place, never drop it.
"""

# ruff: noqa: E501 - the patched lines stand as they are in the sources

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import numpy as np
import pytest
from folding import fold_error, folded
from small_models import hard_pairs, hub, implications, ising_ring, mean_field, triples
from uncompiled import REAL, WHOLE, Sources, kernel_error, target, uncompiled, wide_probability

import definetti as dft
from definetti.errors import SymmetryError
from definetti.groups import PermutationGroup
from definetti.inference.graph.question import GraphQuestion, ask
from definetti.model.graph.factors import FactorGraph, factor_graph
from definetti.model.graph.simplify import simplify
from definetti.samplers.gibbs import Gibbs
from definetti.samplers.graph import fields, polynomial, tables
from definetti.samplers.graph.sampling import GraphSampling
from definetti.samplers.kernels.graph import fields as field_kernels
from definetti.samplers.kernels.graph import polynomial as polynomial_kernels
from definetti.samplers.kernels.graph import tables as table_kernels
from definetti.samplers.protocol import Plan
from definetti.symmetry.find import symmetries
from definetti.symmetry.graph.group import GraphSymmetries

TOLERANCE = 1e-12  # as in the real tests


@dataclass(frozen=True)
class Mutant:
    """Replace `old` by `new` in one of the sources; seen on this model by this kernel."""

    source: str  # an attribute of Sources
    old: str
    new: str
    kernel: str
    model: FactorGraph


def lopsided() -> FactorGraph:
    """Pair tables that are not symmetric, two kinds, fields."""
    kinds = [np.exp([[0.5, -0.9], [0.1, 0.4]]), np.exp([[-0.7, 0.3], [0.9, 0.0]])]
    pairs = [([0, 1], kinds[0]), ([0, 2], kinds[1]), ([1, 2], kinds[0]), ([3, 0], kinds[1])]
    return factor_graph([2] * 4, [*pairs, ([0], [1.0, 2.0]), ([2], [3.0, 1.0])])


def one_way() -> FactorGraph:
    """A hard pair table that simplification cannot make symmetric."""
    return factor_graph([2] * 3, [([0, 1], [[3.0, 0.0], [1.0, 2.0]]), ([1, 2], [[3.0, 0.0], [1.0, 2.0]])])


def square() -> FactorGraph:
    """Tables over three values each, not symmetric: an axis for another goes unnoticed by shapes."""
    rng = np.random.default_rng(6)
    return factor_graph([3] * 3, [([i, (i + 1) % 3], np.exp(rng.normal(size=(3, 3)))) for i in range(3)])


KERNEL_MUTANTS = {
    "wrong neighbour, narrow": Mutant(
        "field_kernels", "state[near[i, 2]] + state[near[i, 3]]", "state[near[i, 2]] + state[near[i, 2]]", "narrow", mean_field(5, 0.2)
    ),
    "wrong neighbour, wide": Mutant("field_kernels", "shift_codes(state, neighbour[e],", "shift_codes(state, neighbour[near[i, 5]],", "wide", lopsided()),
    "a neighbour twice, wide": Mutant("field_kernels", "state[c, w] & state[d, w]", "state[c, w] & state[c, w]", "wide", mean_field(6, 0.2)),
    "stale threshold, wide": Mutant(
        "field_kernels", "range(1, max(codes, 2), 4)", "range(1, codes, 4)", "wide", factor_graph([2, 2], [([0], [1, 2]), ([1], [3, 1])])
    ),
    "another code's threshold, wide": Mutant("field_kernels", "(m3 & flip[t, k + 2, b])", "(m3 & flip[t, k + 1, b])", "wide", mean_field(5, 0.2)),
    "neighbour list": Mutant("fields", "near[site[first], position[first]] = other[first]", "near[site[first], position[first]] = site[first]", "narrow", lopsided()),
    "wrong temperature": Mutant("fields", "small = 1.0 / (1.0 + np.exp(np.minimum(np.abs(odds), 700.0)))", "small = 1.0 / (1.0 + np.exp(np.minimum(np.abs(1.01 * odds), 700.0)))", "wide", lopsided()),
    "wrong direction of a pair": Mutant("fields", "entries[:, [0, 2, 1, 3]]", "entries[:, [0, 1, 2, 3]]", "narrow", one_way()),
    "wrong temperature, tables": Mutant("tables", "weights=np.exp(pairs.logs)", "weights=np.exp(0.99 * pairs.logs)", "tables", triples()),
    "wrong table axis": Mutant("tables", "np.moveaxis(model.tables[entries].reshape(-1, *shape), a + 1, -1)", "np.moveaxis(model.tables[entries].reshape(-1, *shape), 1, -1)", "tables", square()),
    "wrong stride": Mutant("tables", "range(len(rest) - 1, -1, -1)", "range(len(rest))", "tables", triples()),
    "wrong other variable": Mutant("table_kernels", "stride_b * np.int32(state[b, lane])", "stride_b * np.int32(state[b - 1, lane])", "tables", triples()),
    "a factor left out": Mutant("table_kernels", "for lo in range(pair_start[i], pair_start[i + 1], PAIRS):", "for lo in range(pair_start[i] + 1, pair_start[i + 1], PAIRS):", "tables", triples()),
    "another neighbour, polynomial": Mutant("polynomial_kernels", "state[b & PLACE]", "state[a & PLACE]", "polynomial", implications()),
    "another lane, polynomial": Mutant("polynomial_kernels", "count += (state[a & PLACE]", "count += (np.roll(state[a & PLACE], 1)", "polynomial", implications()),
    "minus signs not counted, polynomial": Mutant("polynomial_kernels", " ^ np.uint8(a >> SIGN)", "", "polynomial", implications()),
    "a product left out, polynomial": Mutant("polynomial_kernels", "for e in range(first, end):", "for e in range(first + 1, end):", "polynomial", implications()),
    "another size's powers, polynomial": Mutant("polynomial_kernels", "base = np.uint64(group[g, 2])", "base = np.uint64(group[start[i], 2])", "polynomial", implications()),
    "counts of another lane, polynomial": Mutant("polynomial_kernels", "np.uint64(count[lane])", "np.uint64(count[0])", "polynomial", implications()),
    "high for low, polynomial": Mutant("polynomial", "np.stack([low, high - low], axis)", "np.stack([low, high], axis)", "polynomial", implications()),
    "never negated, polynomial": Mutant("polynomial_kernels", " ^ np.uint8(b >> SIGN)", "", "polynomial", implications()),
    "one for two without need, polynomial": Mutant("polynomial", "np.abs(both + first) < 1 / GRID", "np.abs(both + first) < 9", "polynomial", hub()),
    "the other one negated, polynomial": Mutant("polynomial", "others[:, ::-1] | NEGATED", "others | NEGATED", "polynomial", implications()),
    "both kept, polynomial": Mutant("polynomial", "yield others, np.where(one | two, 0.0, both)", "yield others, np.where(one, 0.0, both)", "polynomial", implications()),
    "powers from another place, polynomial": Mutant("polynomial", "table[of] + least[of] - below", "table[of] - below", "polynomial", implications()),
    "signs lost, polynomial": Mutant("polynomial", "minus = coefficient < 0", "minus = coefficient < -9", "polynomial", implications()),
    "values mixed up": Mutant("table_kernels", "p1 *= weights[at + U1]", "p1 *= weights[at + U2]", "tables", triples()),
}  # fmt: skip

MODULES = {
    "fields": fields, "polynomial": polynomial, "tables": tables,
    "field_kernels": field_kernels, "polynomial_kernels": polynomial_kernels, "table_kernels": table_kernels,
}  # fmt: skip


@pytest.mark.parametrize("name", KERNEL_MUTANTS)
def test_transition_matrices_see_it(name: str) -> None:
    mutant = KERNEL_MUTANTS[name]
    assert kernel_error(mutant.model, mutant.kernel) < TOLERANCE
    broken = {mutant.source: uncompiled(MODULES[mutant.source], (mutant.old, mutant.new))}
    try:
        error = kernel_error(mutant.model, mutant.kernel, Sources(**broken))
    except (AssertionError, IndexError, KeyError, OverflowError):  # an impossible state, or a place outside its array
        error = 1.0
    assert error > 1e-4


@pytest.mark.parametrize(
    "change",
    [
        ("further < rest[t, k]", "further < np.uint64(0)"),  # ties always lose
        ("further < rest[t, k]", "further <= rest[t, k]"),
    ],
)
def test_draw_check_sees_lost_ties(change: tuple[str, str]) -> None:
    threshold = 3 * 2**46 + 12345
    assert wide_probability(uncompiled(field_kernels), threshold) == threshold
    with pytest.raises(AssertionError):
        wide_probability(uncompiled(field_kernels, change), threshold)


def sampling(question: GraphQuestion, scan: str, source: ModuleType | None = None) -> GraphSampling:
    gibbs, model = Gibbs(scan), question.group.model
    run = GraphSampling(model, gibbs, gibbs.engine(model, question.slots), question.statistics, Plan(20, 0, 1, 7, 1))
    if source is not None:
        for block in run.blocks:
            block._kernels = source  # type: ignore[attr-defined]
    return run


FOLD_MUTANTS = [
    (ising_ring(5, 0.4, 0.2), "symmetric", field_kernels, "= code[WORDS * k + w]", "= code[WORDS + w]"),
    (ising_ring(5, 0.4, 0.2), "symmetric", field_kernels, "bits[j, x]", "bits[i, x]"),
    (ising_ring(5, 0.4, 0.2), "symmetric", field_kernels, "held[at, w] = state[i, w]", "held[at, w] = state[0, w]"),
    (ising_ring(9, 0.4, 0.2), "random", field_kernels, "return site[m], second", "return site[0], second"),
    (ising_ring(9, 0.4, 0.2), "random", field_kernels, "min(8, end - m)", "min(8, end)"),
    (ising_ring(8, 0.4, 0.2), "random", field_kernels, "site[m + 7] if", "site[m + 6] if"),
    (ising_ring(8, 0.4, 0.2), "symmetric", field_kernels, "add(bits[p, x], bits[q, x],", "add(bits[p, x], bits[p, x],"),
    (implications(), "symmetric", polynomial_kernels, "conditional[row, lane] += chance[lane]", "conditional[row, lane] += chance[0]"),
    (implications(), "symmetric", polynomial_kernels, "chance[lane] = ratio[lane] / total", "chance[lane] = 1.0 / total"),
    (implications(), "symmetric", polynomial_kernels, "low_words[first + 1, w] += words[i, w]", "low_words[first + 1, w] += words[0, w]"),
    (triples(), "symmetric", table_kernels, "+= product[v, lane] * scale[lane]", "+= product[0, lane] * scale[lane]"),
    (triples(), "symmetric", table_kernels, "low[first + v, lane] += np.uint8(state[i, lane] == np.uint8(v))", "low[first + v, lane] += np.uint8(state[i, lane] == np.uint8(0))"),
]  # fmt: skip


@pytest.mark.parametrize("model, scan, module, old, new", FOLD_MUTANTS)
def test_folding_check_sees_it(model: FactorGraph, scan: str, module: ModuleType, old: str, new: str) -> None:
    question = ask(symmetries(model), (), "orbit", 0)
    real = fold_error(question, sampling(question, scan, uncompiled(module)), sampling(question, scan), 1)
    broken = uncompiled(module, (old, new))
    error = fold_error(question, sampling(question, scan, broken), sampling(question, scan), 1)
    assert real < TOLERANCE
    assert error > 1e-3


# --- a group that is too large -----------------------------------------------------------------------------------


def too_large(model: FactorGraph) -> GraphSymmetries:
    """All four variables of the path may be exchanged, the test claims; in truth it may only be reversed."""
    swaps = [(np.arange(2 * i, 2 * i + 4), np.arange(2 * i, 2 * i + 4)[[2, 3, 0, 1]]) for i in range(3)]
    return GraphSymmetries(simplify(model), PermutationGroup(8, tuple(swaps)), 24, "given")


def test_given_generators_of_a_larger_group_are_refused() -> None:
    model = hard_pairs()
    assert symmetries(model).order == 2
    with pytest.raises(SymmetryError, match="generator 1 of 1"):
        symmetries(model, generators="(X0 X1)")
    with pytest.raises(SymmetryError):
        symmetries(model, generators=too_large(model).group)


def bias(model: FactorGraph, group: GraphSymmetries) -> float:
    """The largest |E[orbit estimate] − marginal| over the free variables: as in the algebra of estimators."""
    aim = target(model)
    assert aim is not None
    question = ask(group, (), "orbit", 0)
    means = aim.probability @ folded(question, aim.states)
    truth = dft.exact(model)
    ones = {i: means[question.columns.statistic_of[model.literal_start[i] + 1]] for i in model.free.tolist()}
    return max(abs(ones[i] - truth[model.names[i]].probability) for i in ones)  # type: ignore[operator]


def test_estimates_under_a_larger_group_are_biased() -> None:
    model = hard_pairs()
    assert bias(model, symmetries(model)) < TOLERANCE
    assert bias(model, too_large(model)) > 0.05


def test_real_sources_are_what_mutants_are_made_of() -> None:
    assert uncompiled(field_kernels).__dict__.keys() == REAL.field_kernels.__dict__.keys()
    assert WHOLE == fields.WHOLE
