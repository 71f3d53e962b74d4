"""Weighs the regions that a survey has found: brackets first, then annealing in both directions.

Regions whose upper end lies far below another's lower end are dropped, and what they may weigh goes into the error.
Where more than one is left and each one's weight is found, the answer is their mixture; otherwise it is divided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from definetti.errors import INTERRUPTED
from definetti.modes.annealing import Annealed, anneal, log_weights
from definetti.modes.brackets import Bracket, bracket, exit_rate, highest
from definetti.modes.copies import DOUBT, most_of_a_kind, with_copies
from definetti.modes.looking import MOST_REGIONS, Budget, Looked
from definetti.modes.partition import Partition, partition
from definetti.modes.survey import Region, Segment, drifts, is_new
from definetti.modes.walkers import COHERENT, NOT_WEIGHED, SHARES, Inside, Key, Product, States, Walk, Walkers

BLOCK = 20  # sweeps of a confined chain between looks at where it is
CONFINED = 8  # chains in a region
FITTED = 5  # blocks
FLEETING = 0.25  # share of blocks of four sweeps that end inside, below which a plateau is no region
OWN = 0.9  # share of a region's sweeps that the partition must give to it
FAR = 12.0  # nats below another's lower end: dropped; its share is at most exp(−FAR), which goes into the error
NEAR = 12.0  # nats: what annealing and bracket say of regions this far below the heaviest is not compared
LIGHT = 5.0  # nats below the heaviest: a region whose weight is not found goes into the error as a whole
MOST_GAP, MOST_ERROR = 4.0, 0.5  # of an annealed weight that is believed
FEWEST_INSIDE = 4  # of the upward paths must end in a region: one or two say little of how many might
WIDE = 2.0  # nats: a bracket beyond this may be that of a region that breaks the symmetry
FAR_BY_SITE = 14.0  # nats, where the number of copies is only bounded
BY_SITE, BY_SITE_SWEEPS = 4, 64
DOWN, DOWN_STEPS = 8, 64  # paths from a chain down to its product
BRIEF = 128  # sweeps: what all chains left sooner is bounded by how often a run's chains go there
HYBRIDS, HYBRID_SWEEPS, HYBRID_APART, MOST_PAIRS = len(SHARES), 96, 8.0, 3
MIXED_FURTHER = 4  # of what is left for weighing: as much at most goes into mixtures of further pairs
MOVED, IMAGES = 4, 24  # states of a region that are moved, by so many elements of the group each


@dataclass(frozen=True, eq=False)
class Weighed:
    """A region with what is known of its weight."""

    region: Region
    pool: States  # states in it
    pool_size: int
    chain_of: np.ndarray | None = field(default=None, repr=False)  # of each state of the pool
    bracket: Bracket | None = None
    annealed: Annealed | None = None
    product: Product = field(default=None, repr=False)
    means: np.ndarray | None = field(default=None, repr=False)  # of the question's statistics
    dropped: bool = False
    lasting: float = 1.0  # share of blocks after which a chain was still in it
    share: float = 0.0  # of the model's weight


@dataclass(frozen=True, eq=False)
class Weighing:
    regions: tuple[Weighed, ...]
    partition: Partition | None
    trusted: bool  # the shares can be used
    doubt: str = ""  # why not
    left_out: float = 0.0  # share that dropped regions may have, relative to the others
    life: int = 0  # sweeps that chains stayed in regions which all left, and whose weight was not found, at most
    sweeps: int = 0  # of single chains
    images: bool = False  # the group carries each of the regions that are left into the first of them

    @property
    def kept(self) -> list[int]:
        return [m for m, w in enumerate(self.regions) if not w.dropped]


@dataclass(frozen=True, eq=False)
class Confined:
    """Blocks of sweeps of chains that are put back where they leave a region."""

    walks: tuple[Walk, ...]
    stayed: tuple[np.ndarray, ...]  # bool[chains] of each block
    states: tuple[States, ...]  # after each block

    @property
    def ends(self) -> States:
        return self.states[-1]

    @property
    def share(self) -> float:
        return float(np.mean(self.stayed))


def confined(
    walkers: Walkers, states: States, inside: Inside, blocks: int, key: Key, product: Product | None = None,
    length: int = BLOCK,
) -> Confined:  # fmt: skip
    """Chains whose blocks are proposals: one that ends outside is rejected (a sweep and its reverse being equally
    likely, the restricted distribution is left alone)."""
    walks, stayed, after, count = [], [], [], walkers.count(states)
    for b in range(blocks):
        if INTERRUPTED.is_set():
            raise KeyboardInterrupt
        walk = walkers.walk(states, length, (*key, b), product)
        ok = inside(walk.features[-1])
        chosen = np.where(ok, count, 0) + np.arange(count)
        states = walkers.take(walkers.join([states, walk.ends]), chosen)
        walks.append(walk)
        stayed.append(ok)
        after.append(states)
    return Confined(tuple(walks), tuple(stayed), tuple(after))


def _again(
    walkers: Walkers, looked: Looked, regions: Sequence[Region], budget: Budget, key: Key, anneals: bool
) -> Weighing:
    """The same without regions that are none."""
    return weigh(walkers, replace(looked, survey=replace(looked.survey, regions=tuple(regions))), budget, key, anneals)


def weigh(walkers: Walkers, looked: Looked, budget: Budget, key: Key, anneals: bool = True) -> Weighing:
    """`anneals`: whether weights are to be found where brackets do not decide."""
    regions = looked.survey.regions[:MOST_REGIONS]
    many = len(looked.survey.regions) > MOST_REGIONS
    features = looked.trace[:, :, : looked.features]
    where = partition(
        np.stack([r.centre[: looked.features] for r in regions]),
        np.stack([r.within[: looked.features] for r in regions]),
    )
    found = [_with_pool(walkers, looked, where, m, region) for m, region in enumerate(regions)]
    used = 0
    unclear = [m for m, r in enumerate(regions) if _owned(features, where, m, r) < OWN or not found[m].pool_size]
    for m in range(len(found)):
        if found[m].pool_size:
            effort = _effort(budget.weighing // (2 * len(found)))
            found[m], spent = _bracketed(walkers, found[m], where, m, effort, (*key, 3, m))
            used += spent
    # what chains leave within a few sweeps they also enter often: a run sees it without help
    found = [w for w in found if w.region.settled or w.lasting >= FLEETING or not w.pool_size]
    if len(found) < len(regions):
        return _again(walkers, looked, [w.region for w in found], budget, (*key, 7), anneals)
    found, left_out, spent = _dropped(walkers, found, where, (*key, 6))
    used += spent
    kept = [m for m, w in enumerate(found) if not w.dropped]
    said = Weighing(tuple(found), where, False, "", left_out, sweeps=used)
    if many:
        return replace(said, doubt=f"{len(looked.survey.regions)} regions were found")
    if looked.survey.forgotten:
        return replace(said, doubt=f"{looked.survey.forgotten} more were found that chains left")
    alone = sum(len(r.segments) == 1 for r in regions if r.settled)
    if alone > looked.starts // 2:
        return replace(said, doubt="most chains stay in a region of their own")
    if any(m in kept for m in unclear) or any(found[m].product is None for m in kept):
        return replace(said, doubt="the states themselves do not distinguish the regions")
    if len(kept) > 1:
        left = budget.weighing - used
        doubt, more, spent = _hybrid_doubt(walkers, looked, [found[m] for m in kept], left, (*key, 4))
        used += spent
        said = replace(said, left_out=left_out + more, sweeps=used)
        if doubt:
            return replace(said, doubt=doubt)
    light, left = [w for w in found if w.dropped], budget.weighing - used
    together, spent = most_of_a_kind(walkers, looked, light, found[kept[0]], left, (*key, 11))
    used += spent
    if together > max(b.lower for m in kept if (b := found[m].bracket) is not None) - FAR:
        return replace(said, doubt=DOUBT, sweeps=used)
    if len(kept) == 1:
        found[kept[0]] = replace(found[kept[0]], share=1.0)
        return Weighing(tuple(found), where, True, "", left_out, sweeps=used)
    if not anneals:
        return replace(said, doubt=NOT_WEIGHED, images=_are_images(walkers, found, kept, where, (*key, 8)))
    left = budget.weighing - used
    most_steps = max(16, left // (32 * len(kept)))  # a search for look-alikes, which few models need, comes on top
    for m in kept:
        w = found[m]
        made = anneal(walkers, w.product, w.pool, _inside(where, m), most_steps, (*key, 5, m), w.chain_of)
        found[m] = replace(w, annealed=made)
    said = _decided(replace(said, regions=tuple(found), sweeps=used), kept)
    return with_copies(walkers, looked, said, LIGHT, left, (*key, 12)) if said.trusted else said


def _are_images(walkers: Walkers, found: list[Weighed], kept: list[int], where: Partition, key: Key) -> bool:
    """Whether states of each region are carried into the first one by elements of the group. What is averaged over the
    group is then the same in all of them, as sweeps commute with it."""
    if not walkers.mirrored:  # the regions differ in what the group leaves alone
        return False
    for m in kept[1:]:
        count = min(MOVED, found[m].pool_size)
        states = walkers.take(found[m].pool, np.repeat(np.arange(count), IMAGES))
        walk = walkers.walk(walkers.images(states, (*key, m)), 1, (*key, m, 1))
        if not (where.of(walk.features[-1]) == kept[0]).reshape(count, IMAGES).any(axis=1).all():
            return False
    return True


def unweighed(walkers: Walkers, looked: Looked, doubt: str) -> Weighing:
    """The regions as they were found."""
    found = []
    for region in looked.survey.regions:
        pool = walkers.take(looked.ends, region.chains)
        found.append(Weighed(region, pool, walkers.count(pool)))
    return Weighing(tuple(found), None, False, doubt)


def _inside(where: Partition, m: int) -> Inside:
    return lambda features: where.of(features) == m


def inside_of(weighing: Weighing, m: int) -> Inside:
    """Which states belong to a region."""
    assert weighing.partition is not None
    return _inside(weighing.partition, m)


def _owned(features: np.ndarray, where: Partition, m: int, region: Region) -> float:
    rows = np.concatenate([features[s.first : s.end, s.chain] for s in region.segments])
    return float((where.of(rows) == m).mean())


def _with_pool(walkers: Walkers, looked: Looked, where: Partition, m: int, region: Region) -> Weighed:
    """The region with the states of it that were kept."""
    states, places = [], []
    for segment in region.segments:
        marks = [s for s in sorted(looked.kept) if segment.first < s <= segment.end]
        places += [(s, segment.chain) for s in marks]
    for s, chain in places:
        if where.of(looked.trace[s - 1, chain, : looked.features]) == m:
            states.append((s, chain))
    if not states:
        return Weighed(region, None, 0)
    latest = sorted(states, key=lambda place: -place[0])
    spread = _spread_over_chains(latest)
    pool = walkers.join([walkers.take(looked.kept[s], [chain]) for s, chain in spread])
    return Weighed(region, pool, len(spread), np.array([chain for _, chain in spread]))


def _spread_over_chains(places: Sequence[tuple[int, int]], most: int = 2 * CONFINED) -> list[tuple[int, int]]:
    """Of each chain in turn."""
    by_chain: dict[int, list[tuple[int, int]]] = {}
    for place in places:
        by_chain.setdefault(place[1], []).append(place)
    out: list[tuple[int, int]] = []
    while len(out) < most and any(by_chain.values()):
        for some in by_chain.values():
            if some and len(out) < most:
                out.append(some.pop(0))
    return out


def _effort(sweeps: int) -> tuple[int, int, int]:
    """Chains, blocks and their length, of a look at one region that may take so many sweeps."""
    chains = int(np.clip(sweeps // (6 * BLOCK), 2, CONFINED))
    blocks = int(np.clip(sweeps // (2 * chains * BLOCK), 1, FITTED))
    return chains, blocks, int(np.clip(sweeps // (5 * chains * blocks), 8, BLOCK))


def _bracketed(
    walkers: Walkers, weighed: Weighed, where: Partition, m: int, effort: tuple[int, int, int], key: Key
) -> tuple[Weighed, int]:
    """The product of the region's own mean conditionals, and the bracket it gives; chains that last stay longer."""
    inside, (count, blocks, length) = _inside(where, m), effort
    states = walkers.take(weighed.pool, np.arange(count) % weighed.pool_size)
    spent = 0
    first = confined(walkers, states, inside, blocks, (*key, 1), length=length)
    spent += blocks * length * count
    if first.share < 0.5:
        length = 4
        first = confined(walkers, states, inside, blocks * 2, (*key, 2), length=length)
        spent += blocks * 2 * length * count
    if first.share < FLEETING:
        return replace(weighed, lasting=first.share), spent
    product = walkers.product([(w, ok) for w, ok in zip(first.walks, first.stayed, strict=True) if ok.any()])
    # chains that begin in other states of the pool, as far as there are any, know more of the region than the same ones
    chains = np.arange(min(count, weighed.pool_size), weighed.pool_size + count)[:count]
    states = walkers.take(walkers.join([weighed.pool, first.ends]), chains)
    second = confined(walkers, states, inside, blocks, (*key, 3), product, length)
    spent += blocks * length * count
    kept = np.array([ok.all() for ok in second.stayed])
    use = [w for w, ok in zip(second.walks, second.stayed, strict=True) if ok.mean() >= 0.5 or not kept.any()]
    oks = [ok for ok in second.stayed if ok.mean() >= 0.5 or not kept.any()]
    columns = np.stack(oks).all(axis=0)
    if not columns.any():
        columns = np.ones(count, dtype=bool)
    ratio = np.concatenate([w.log_ratio for w in use])[:, columns]
    divergence = np.concatenate([w.divergence for w in use])[:, columns]
    rate = exit_rate([inside(walk.features) for walk in (*first.walks, *second.walks)])
    means = np.nanmean(np.stack([w.f for w in use])[:, columns], axis=(0, 1))  # of walks of one length
    pool = walkers.join([weighed.pool, *first.states, *second.states])
    assert weighed.chain_of is not None
    begun = weighed.chain_of[np.arange(count) % weighed.pool_size]
    resumed = np.append(weighed.chain_of, begun)[chains]
    repeated = [np.tile(begun, len(first.states)), np.tile(resumed, len(second.states))]
    chain_of = np.concatenate([weighed.chain_of, *repeated])
    share = min(first.share, second.share)
    made = replace(
        weighed, product=product, bracket=bracket(ratio, divergence, rate), means=means, lasting=share, pool=pool,
        pool_size=walkers.count(pool), chain_of=chain_of,
    )  # fmt: skip
    return made, spent


def _dropped(walkers: Walkers, found: list[Weighed], where: Partition, key: Key) -> tuple[list[Weighed], float, int]:
    """Regions that cannot weigh anything beside another, the share that they may have together, and sweeps spent."""
    known = [w.bracket for w in found if w.bracket is not None]
    if not known:
        return found, 0.0, 0
    best = max(b.lower for b in known)
    out, left_out, spent = [], 0.0, 0
    for m, w in enumerate(found):
        upper = np.inf if w.bracket is None else w.bracket.upper
        far = upper < best - FAR
        if not far and w.bracket is not None and w.bracket.width > WIDE and w.bracket.lower < best:
            by_site, sweeps = _upper_by_site(walkers, w.pool, _inside(where, m), (*key, m))
            spent += sweeps
            far = by_site < best - FAR_BY_SITE
            upper = min(upper, by_site)
        out.append(replace(w, dropped=far))
        left_out += float(np.exp(upper - best)) if far else 0.0
    return out, left_out, spent


def _upper_by_site(walkers: Walkers, pool: States, inside: Inside | None, key: Key) -> tuple[float, int]:
    """An upper end for a region that breaks the symmetry: each chain has a product of its own, of single sites, and the
    region is at most as many copies of what it sees as the group has elements. (A chain that leaves the region, even
    where it is followed for a short time only, says nothing.)"""
    upper, spent = -np.inf, 0
    if not np.isfinite(walkers.log_copies):
        return np.inf, 0
    for c in range(min(BY_SITE, walkers.count(pool))):
        for k, sweeps in enumerate((BY_SITE_SWEEPS, BY_SITE_SWEEPS // 4)):
            found = _end_by_site(walkers, walkers.take(pool, [c]), inside, sweeps, (*key, c) if not k else (*key, c, k))
            if found is None:
                return np.inf, spent
            spent += 2 * sweeps + DOWN * DOWN_STEPS
            if not np.isneginf(found):
                upper = max(upper, found)
                break
    return (np.inf if np.isneginf(upper) else upper + walkers.log_copies), spent


def _end_by_site(walkers: Walkers, state: States, inside: Inside | None, sweeps: int, key: Key) -> float | None:
    """The upper end of the weight of what one chain sees: that of paths from the chain down to its product (the bracket
    is the case of one step). Minus infinity where it left the region, None where a product would be too large."""
    fitted = walkers.site_product(state, sweeps, (*key, 1))
    if fitted is None:
        return None
    marks = [sweeps * (k + 1) // DOWN for k in range(DOWN)]
    walk = walkers.walk(fitted[1], sweeps, (*key, 2), fitted[0], marks)
    if inside is not None and not inside(walk.features[-1])[0]:
        return -np.inf
    levels = np.linspace(0.0, 1.0, DOWN_STEPS + 1)
    states = walkers.join([walk.kept[s] for s in marks])
    down = log_weights(walkers.paths(states, fitted[0], levels, False, (*key, 3)), levels)
    return min(highest(down), bracket(walk.log_ratio, walk.divergence).upper)


def _mixed(walkers: Walkers, kept: list[Weighed], budget: int, key: Key) -> States:
    """States made of parts of two regions' states: all kinds of mixtures of a few pairs, and those by parts that cohere
    of the other pairs. (Of the eight modes of three groups six may be known; pairs with the first of them alone need
    not lead to the others.)"""
    pairs = [(a, b) for a in range(len(kept)) for b in range(a + 1, len(kept))]
    parts = []
    for number, (a, b) in enumerate(pairs[:MOST_PAIRS]):
        first, second = (walkers.take(kept[k].pool, np.arange(HYBRIDS) % kept[k].pool_size) for k in (a, b))
        parts.append(walkers.hybrids(first, second, (*key, number)))
    further = np.random.default_rng([*key, MOST_PAIRS]).permutation(np.array(pairs[MOST_PAIRS:]).reshape(-1, 2))
    for number, (a, b) in enumerate(further[: budget // (MIXED_FURTHER * len(COHERENT) * HYBRID_SWEEPS)].tolist()):
        first, second = (walkers.take(kept[k].pool, np.arange(len(COHERENT)) % kept[k].pool_size) for k in (a, b))
        parts.append(walkers.hybrids(first, second, (*key, MOST_PAIRS, number), COHERENT))
    return walkers.join(parts)


def _hybrid_doubt(
    walkers: Walkers, looked: Looked, kept: list[Weighed], budget: int, key: Key
) -> tuple[str, float, int]:
    """States made of parts of two regions' states should end in a region that is known; where they settle elsewhere,
    there are as many modes as there are combinations."""
    states = _mixed(walkers, kept, budget, key)
    walk = walkers.walk(states, HYBRID_SWEEPS, (*key, 9))
    trace, spent = walk.statistics, HYBRID_SWEEPS * walkers.count(states)
    best, left_out = max(w.bracket.lower for w in kept if w.bracket is not None), 0.0
    for chain in range(trace.shape[1]):
        end = Segment(chain, HYBRID_SWEEPS // 2, HYBRID_SWEEPS, True)
        if drifts(trace, end):
            continue
        if is_new(trace[end.first :, chain], looked.trace, looked.survey.regions, HYBRID_APART):
            upper, more = _most_weight(walkers, walkers.take(walk.ends, [chain]), (*key, 10, chain))
            spent += more
            if not upper < best - LIGHT:
                return "states mixed from two regions settle in others: there are many more", 0.0, spent
            left_out += float(np.exp(upper - best))
    return "", left_out, spent


def _most_weight(walkers: Walkers, state: States, key: Key) -> tuple[float, int]:
    """An upper end of the weight of what a chain sees, by the bracket, by paths down to the product of orbits, and by
    those down to the product of single sites."""
    first = walkers.walk(state, BY_SITE_SWEEPS, (*key, 1))
    product = walkers.product([(first, np.ones(1, dtype=bool))])
    marks = [BY_SITE_SWEEPS * (k + 1) // DOWN for k in range(DOWN)]
    walk = walkers.walk(first.ends, BY_SITE_SWEEPS, (*key, 2), product, marks)
    levels = np.linspace(0.0, 1.0, DOWN_STEPS + 1)
    states = walkers.join([walk.kept[s] for s in marks])
    down = log_weights(walkers.paths(states, product, levels, False, (*key, 4)), levels)
    by_site, spent = _upper_by_site(walkers, walk.ends, None, (*key, 3))
    upper = min(bracket(walk.log_ratio, walk.divergence).upper, highest(down), by_site)
    return upper, spent + 2 * BY_SITE_SWEEPS + DOWN * DOWN_STEPS


def _decided(said: Weighing, kept: list[int]) -> Weighing:
    """Shares where every region that may count has a weight; lighter ones go into the error as a whole."""
    found = list(said.regions)
    known = [m for m in kept if _is_known(found[m].annealed)]
    if not known:
        return replace(said, doubt="the weights of the regions were not found by annealing")
    top = max(a.log_z for m in known if (a := found[m].annealed) is not None)
    left_out, life = said.left_out, 0
    for m in set(kept) - set(known):
        a, b = found[m].annealed, found[m].bracket
        upper = min(np.inf if a is None else a.upper, np.inf if b is None else b.upper)
        if upper < top - LIGHT:
            left_out += float(np.exp(upper - top))
        elif _is_brief(found[m]):
            life = max(life, _longest(found[m].region))  # how often the others' chains go there will say more
        else:
            text = "annealing leaves the weight of a region open"
            return replace(
                said, doubt=text if a is None or not np.isfinite(a.gap) else f"{text} (gap {a.gap:.2g} nats)"
            )
        found[m] = replace(found[m], dropped=True)
    weights = np.array([a.log_z for m in known if (a := found[m].annealed) is not None])
    shares = np.exp(weights - top)
    for m, share in zip(known, (shares / shares.sum()).tolist(), strict=True):
        found[m] = replace(found[m], share=share)
    said = replace(said, regions=tuple(found), left_out=left_out, life=life)
    for m in known:
        a, b = found[m].annealed, found[m].bracket
        if a is None or b is None or max(a.upper, b.lower) < top - NEAR:
            continue  # light by all accounts
        if not b.lower - 4 * a.error - 1.0 <= a.log_z <= b.upper + 4 * a.error + 1.0:
            return replace(said, doubt="annealing contradicts the bounds on the weight of a region")
    return replace(said, trusted=True)


def _is_brief(w: Weighed) -> bool:
    """All chains left it soon, and so did those that were put back into it."""
    return not w.region.settled and w.lasting < 1.0 and _longest(w.region) <= BRIEF


def _longest(region: Region) -> int:
    """Sweeps that a chain stayed in a region."""
    return max(s.end - s.first for s in region.segments)


def _is_known(annealed: Annealed | None) -> bool:
    if annealed is None or not np.isfinite(annealed.log_z):
        return False
    return annealed.ended >= FEWEST_INSIDE and annealed.gap <= MOST_GAP and annealed.error <= MOST_ERROR
