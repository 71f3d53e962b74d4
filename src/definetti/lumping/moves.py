"""What one move of a sampler does to every state, as sparse matrices: single sites by the full conditionals that the
compiled kernel computes (those of Markov logic: `logic_sites.py`), joint blocks by the distribution given the rest,
clusters by all sets of bonds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from definetti.errors import TooLarge
from definetti.lumping.state_space import StateSpace
from definetti.samplers.gibbs import Gibbs
from definetti.samplers.graph.lanes import slots_of
from definetti.symmetry.graph.group import none

if TYPE_CHECKING:
    from scipy.sparse import csr_array

LANES = 4096  # states that a block of the kernel holds at once
MOST_BONDS = 14  # pairs: the sets of bonds of Swendsen–Wang are listed


def conditionals(space: StateSpace) -> Iterator[tuple[int, np.ndarray]]:
    """(site, float64[S, values]): the full conditional of each free site in every state, by the compiled kernel.

    The states are lanes of its blocks. One update of the site folds its conditional; then the states are put back.
    """
    model = space.model
    slots = slots_of(model, none(model).row_of)
    engine = Gibbs().engine(model, slots)
    width = engine.width if engine.together == 1 else engine.width * max(1, LANES // engine.width)
    seed = np.random.SeedSequence(0)
    parts = [space.states[lo : lo + width].astype(np.int32) for lo in range(0, len(space), width)]
    blocks = [engine.block(part, [seed] * -(-len(part) // engine.width), False) for part in parts]
    for site in model.free.tolist():
        first = int(slots.start[slots.row_of[site]])
        order = np.array([[site]], dtype=np.int32)
        found = []
        for block in blocks:
            state = block.arrays()["state"]
            before = state.copy()
            block.run(order, 2)
            given = block.harvest().conditional
            assert given is not None
            found.append(given[first : first + int(model.cards[site])].T)
            state[...] = before
        yield site, np.concatenate(found)


class SiteMove(NamedTuple):
    """What an update of one site does: in every state the chance of each value, and the state that it leads to."""

    variables: tuple[int, ...]  # drawn as one; the first names the site
    given: np.ndarray  # float64[S, values]
    target: np.ndarray  # int64[S, values]: -1 where the state is impossible

    def matrix(self) -> csr_array:
        from scipy.sparse import csr_array

        size, possible = len(self.target), self.target >= 0
        row = np.broadcast_to(np.arange(size)[:, None], self.target.shape)
        return csr_array((self.given[possible], (row[possible], self.target[possible])), shape=(size, size))


def one_site(space: StateSpace, variables: tuple[int, ...], given: np.ndarray) -> SiteMove:
    """Values are those of the first variable; binary ones that are drawn with it are flipped with it."""
    first, *others = variables
    now = space.states[:, first, None].astype(np.int64)
    values = np.arange(given.shape[1])
    code = space.codes[:, None] + (values - now) * space.stride[first]
    for other in others:
        flip = (1 - 2 * space.states[:, other].astype(np.int64)) * space.stride[other]
        code = code + np.where(values == now, 0, flip[:, None])
    target = space.place[code].astype(np.int64)
    assert not given[target < 0].any(), "the kernel gives an impossible value a positive probability"
    return SiteMove(variables, given, target)


def graph_site_moves(space: StateSpace) -> Iterator[SiteMove]:
    """Of a factor graph every free variable is a site."""
    for site, given in conditionals(space):
        yield one_site(space, (site,), given)


def random_scan(space: StateSpace, moves: Iterable[SiteMove]) -> csr_array:
    """One update of a site drawn uniformly: the mean of all moves, made at once."""
    from scipy.sparse import coo_array

    rows, columns, values, count = [], [], [], 0
    for move in moves:
        row, value = np.nonzero(move.target >= 0)
        rows.append(row.astype(np.int32))
        columns.append(move.target[row, value].astype(np.int32))
        values.append(move.given[row, value])
        count += 1
    if not rows:
        return coo_array(np.ones((1, 1))).tocsr()
    entries = np.concatenate(values) / count
    size = (len(space), len(space))
    matrix = coo_array((entries, (np.concatenate(rows), np.concatenate(columns))), shape=size).tocsr()
    matrix.eliminate_zeros()
    return matrix


def block_move(space: StateSpace, variables: list[int]) -> csr_array:
    """Drawing some variables together from their distribution given all others."""
    from scipy.sparse import csr_array

    outside = space.stride.copy()
    outside[variables] = 0
    rest = np.unique(space.states @ outside, return_inverse=True)[1].ravel()  # equal where only the block differs
    order = np.argsort(rest, kind="stable")
    sizes = np.bincount(rest)
    mass = np.bincount(rest, weights=space.probability)
    starts = np.cumsum(sizes) - sizes
    row = np.repeat(np.arange(len(space)), sizes[rest])
    within = np.arange(len(row)) - np.repeat(np.cumsum(sizes[rest]) - sizes[rest], sizes[rest])
    column = order[np.repeat(starts[rest], sizes[rest]) + within]
    return csr_array((space.probability[column] / mass[rest[column]], (row, column)), shape=(len(space), len(space)))


def cluster_move(space: StateSpace) -> np.ndarray:
    """One Swendsen–Wang update: the sum over all sets of bonds.

    Given a set of bonds the clusters' states are those that satisfy every bond, weighed by their fields alone: the
    next state does not depend on the present one.
    """
    from definetti.samplers.graph.swendsen_wang import build

    model: Any = build(space.model, slots_of(space.model, none(space.model).row_of)).model
    if len(model.bond) > MOST_BONDS:
        cure = "use the Gibbs sampler, or a smaller model"
        raise TooLarge("the number of pairs that can be bonded", len(model.bond), MOST_BONDS, cure)
    values = space.states[:, model.site].astype(np.int64)
    satisfied = (values[:, model.left] ^ values[:, model.right]) == model.differ  # [S, pairs]
    pull = values @ model.field
    weight = np.exp(pull - pull.max())
    out = np.zeros((len(space), len(space)))
    for chosen in range(1 << len(model.bond)):
        bonds = (chosen >> np.arange(len(model.bond)) & 1).astype(bool)
        allowed = satisfied[:, bonds].all(axis=1)
        missed = np.where(satisfied[:, ~bonds], 1.0 - model.bond[~bonds], 1.0).prod(axis=1)
        chance = np.where(allowed, model.bond[bonds].prod() * missed, 0.0)
        if chance.any():
            out += np.outer(chance, np.where(allowed, weight, 0.0) / weight[allowed].sum())
    return out
