"""Which regions of the states chains from dispersed starts have found: arithmetic on traces, no model.

A trace is [sweeps, chains, statistics]. Each chain is cut into *segments*, where neighbouring windows of it are apart;
its last segment, as far as it lies in the late half, says where it stays, an earlier one without drift is a plateau
that it left. Two segments are *apart* if some statistic's means differ beyond their errors (multiplicity corrected) and
its ranges leave a gap of half their widths: errors alone would split slow chains of one mode, ranges alone short ones.
A further statistic is made for each pair: the projection on the difference of their means, found on one half of the
segments and looked at on the other; it sees modes that no single statistic separates. Regions are the components of
"alike", joined where no two segments are apart. A segment that reaches from one region to another without crossing six
times is a transition, and links nothing; so is one that may belong to two regions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from definetti.groups import components

BATCHES = 8  # of a segment, for its error
WINDOW = 16  # sweeps: the shortest segment, and the step at which states are kept
FIRST = 8  # sweeps that are never looked at
FALSE_ALARM = 0.01  # chance that some pair of segments of one mode has means that differ
DEGREES = 10  # of freedom of an error from BATCHES batches, with the correction for their correlation
CUT = 6.0  # errors between neighbouring windows of a chain, to cut it
DRIFT = 5.0  # errors between the halves of a plateau
GAP = 0.5  # of the widths of two ranges, between them
CROSSINGS = 6  # of a segment from one region to another and back that count as mixing
MOST_LEFT = 8  # regions of plateaus that chains have left
LONG, MOST_LONG = 32, 16  # sweeps of plateaus for which projections are looked at, and how many of them
RELATIVE, TINY = 1e-6, 1e-9  # differences of means that no error explains, and that mean nothing


class Segment(NamedTuple):
    chain: int
    first: int  # sweep
    end: int
    last: bool  # the chain ended in it


@dataclass(frozen=True, eq=False)
class Summary:
    """Of segments, [segments, statistics]."""

    mean: np.ndarray
    error: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def of(self, rows: np.ndarray | list[int]) -> Summary:
        return Summary(self.mean[rows], self.error[rows], self.low[rows], self.high[rows])


@dataclass(frozen=True, eq=False)
class Region:
    """Segments that belong together. `settled`: some chain ended in it."""

    segments: tuple[Segment, ...]
    settled: bool
    centre: np.ndarray = field(repr=False)  # float64[statistics]
    within: np.ndarray = field(repr=False)  # float64[statistics]: standard deviation of single sweeps

    @property
    def chains(self) -> list[int]:
        """Those that ended in it, or if none did, those that were in it."""
        return sorted({s.chain for s in self.segments if s.last or not self.settled})


@dataclass(frozen=True, eq=False)
class Survey:
    regions: tuple[Region, ...]  # most chains first
    undecided: bool  # some pairs of segments are neither alike nor apart
    transitions: int  # segments that link regions without mixing; they belong to none
    forgotten: int  # plateaus beyond MOST_LEFT

    @property
    def settled(self) -> bool:
        """Nothing more to see by running longer."""
        return len(self.regions) == 1 and not self.undecided and not self.transitions


def summarise(trace: np.ndarray, segments: list[Segment]) -> Summary:
    rows = [summary_of(piece) for piece in _pieces(trace, segments)]
    return Summary(*(np.stack(part) for part in zip(*rows, strict=True)))


def summary_of(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean, standard error, least and largest of a piece of chains, [sweeps, …]."""
    count = min(BATCHES, len(values))
    cuts = np.arange(count) * len(values) // count
    lengths = np.diff(cuts, append=len(values)).reshape(-1, *[1] * (values.ndim - 1))
    batches = np.add.reduceat(values, cuts, axis=0) / lengths
    centred = batches - batches.mean(axis=0)
    variance = (centred**2).sum(axis=0) / max(count - 1, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        alike = (centred[1:] * centred[:-1]).sum(axis=0) / (centred**2).sum(axis=0)
    alike = np.clip(np.nan_to_num(alike), 0.0, 0.8)
    error = np.sqrt(variance / count * (1 + alike) / (1 - alike))
    return values.mean(axis=0), error, values.min(axis=0), values.max(axis=0)


def differ(a: Summary, b: Summary, scale: np.ndarray, most: float) -> tuple[np.ndarray, np.ndarray]:
    """(apart, alike) of all pairs of rows; `most`: errors between means."""
    difference = np.abs(a.mean[:, None] - b.mean[None])
    floor = RELATIVE * scale + TINY
    error = np.sqrt(a.error[:, None] ** 2 + b.error[None] ** 2 + floor**2)
    beyond = difference > most * error
    gap = np.maximum(a.low[:, None] - b.high[None], b.low[None] - a.high[:, None])
    wide = (a.high - a.low)[:, None] + (b.high - b.low)[None]
    disjoint = gap > GAP * wide + floor
    return np.asarray(np.any(beyond & disjoint, axis=2)), np.asarray(~np.any(beyond | disjoint, axis=2))


def cut_chains(trace: np.ndarray, scale: np.ndarray) -> list[list[Segment]]:
    """The segments of each chain: neighbouring windows that are not apart are one. Where a window is not apart from its
    neighbours but these are from each other, the jump is inside it, and it belongs to no segment."""
    sweeps, chains, _ = trace.shape
    step = WINDOW * max(1, 2 ** int(np.log2(max(sweeps / (8 * WINDOW), 1))))
    cuts = [min(FIRST, sweeps - 1), *range(WINDOW, min(2 * step, sweeps), WINDOW)]
    cuts = sorted({*cuts, *range(2 * step, sweeps - step + 1, step), sweeps})
    windows = list(pairwise(cuts))
    parts = [Summary(*summary_of(trace[a:b])) for a, b in windows]
    near = [_apart(x, y, scale) for x, y in pairwise(parts)]
    far = [_apart(x, y, scale) for x, y in zip(parts, parts[2:], strict=False)]
    found: list[list[Segment]] = []
    for chain in range(chains):
        first, out = 0, []  # the first window of the segment under way
        for k in range(1, len(windows)):
            if near[k - 1][chain]:
                out.append(Segment(chain, windows[first][0], windows[k - 1][1], False))
                first = k
            elif k - first > 1 and far[k - 2][chain]:
                out.append(Segment(chain, windows[first][0], windows[k - 2][1], False))
                first = k
        found.append([*out, Segment(chain, windows[first][0], sweeps, True)])
    return found


def _apart(a: Summary, b: Summary, scale: np.ndarray, most: float = CUT) -> np.ndarray:
    """bool[...]: whether each row of one is apart from the same row of the other; `most`: errors between means."""
    floor = RELATIVE * scale + TINY
    beyond = np.abs(a.mean - b.mean) > most * np.sqrt(a.error**2 + b.error**2 + floor**2)
    gap = np.maximum(a.low - b.high, b.low - a.high)
    return np.asarray(np.any(beyond & (gap > GAP * (a.high - a.low + b.high - b.low) + floor), axis=-1))


def drifts(trace: np.ndarray, segment: Segment) -> bool:
    middle = (segment.first + segment.end) // 2
    halves = summarise(trace, [segment._replace(end=middle), segment._replace(first=middle)])
    error = np.sqrt((halves.error**2).sum(axis=0)) + TINY
    return bool((np.abs(halves.mean[0] - halves.mean[1]) > DRIFT * error).any())


def take_stock(trace: np.ndarray) -> Survey:
    """The regions that chains have found."""
    from scipy.special import stdtrit

    sweeps, chains, statistics = trace.shape
    scale = trace.std(axis=(0, 1))
    late, left = [], []
    for segments in cut_chains(trace, scale):
        end = segments[-1]
        late.append(end._replace(first=max(end.first, min(sweeps // 2, end.end - WINDOW))))
        left += [s for s in segments[:-1] if s.end - s.first >= WINDOW // 2 and not drifts(trace, s)]
    pairs = max(chains * (chains - 1) // 2, 1)
    most = float(stdtrit(DEGREES, 1.0 - FALSE_ALARM / (2 * pairs * statistics)))
    apart, alike = _compare(trace, late, scale, most)
    linking = _transitions(trace, late, apart, alike)
    for row in np.flatnonzero(linking):  # what its end alone says
        segment = late[row]
        late[row] = segment._replace(first=max(segment.first, segment.end - max(WINDOW, (sweeps // 8))))
    if linking.any():
        apart, alike = _compare(trace, late, scale, most)
        linking = _transitions(trace, late, apart, alike)
    kept = np.flatnonzero(~linking)
    if not len(kept):
        kept, linking = np.arange(len(late)), np.zeros(len(late), dtype=bool)
    number = _grouped(apart[np.ix_(kept, kept)], alike[np.ix_(kept, kept)])
    groups = [[late[kept[i]] for i in np.flatnonzero(number == m)] for m in range(number.max() + 1)]
    left += [late[kept[i]] for i in np.flatnonzero(number < 0) if not drifts(trace, late[kept[i]])]
    linking[kept[number < 0]] = True
    undecided = ~apart & ~alike
    extra, forgotten = _left_behind(trace, groups, left, scale, most)
    ordered = sorted(groups, key=lambda group: -len(group))
    regions = [_region(trace, group, True) for group in ordered] + [_region(trace, group, False) for group in extra]
    return Survey(tuple(regions), bool(undecided[np.ix_(kept, kept)].any()), int(linking.sum()), forgotten)


def is_new(piece: np.ndarray, trace: np.ndarray, regions: Sequence[Region], most: float) -> bool:
    """Whether a piece of another chain, [sweeps, statistics], is apart from every region of a survey."""
    mine, scale = Summary(*(part[None] for part in summary_of(piece))), trace.std(axis=(0, 1))
    for region in regions:
        segments = list(region.segments)
        if differ(mine, whole(summarise(trace, segments)), scale, most)[0][0, 0]:
            continue
        if trace.shape[2] == 1 or not _projected([piece], _pieces(trace, segments), scale**2, most).all():
            return False
    return True


def whole(parts: Summary) -> Summary:
    """Of segments that belong together, as one row."""
    return Summary(
        parts.mean.mean(axis=0, keepdims=True),
        np.sqrt((parts.error**2).mean(axis=0, keepdims=True)),
        parts.low.min(axis=0, keepdims=True),
        parts.high.max(axis=0, keepdims=True),
    )


def _compare(
    trace: np.ndarray, segments: list[Segment], scale: np.ndarray, most: float
) -> tuple[np.ndarray, np.ndarray]:
    """(apart, alike) of all pairs of segments, by each statistic and by the projections."""
    summary = summarise(trace, segments)
    apart, alike = differ(summary, summary, scale, most)
    if trace.shape[2] > 1:
        apart |= _projected(_pieces(trace, segments), None, trace.var(axis=(0, 1)), most)
    np.fill_diagonal(apart, False)
    np.fill_diagonal(alike, True)
    return apart, alike & ~apart


def _pieces(trace: np.ndarray, segments: Sequence[Segment]) -> list[np.ndarray]:
    return [trace[s.first : s.end, s.chain] for s in segments]


def _projected(
    pieces: Sequence[np.ndarray], others: Sequence[np.ndarray] | None, total: np.ndarray, most: float
) -> np.ndarray:
    """bool[pieces, others]: pairs of pieces of chains that the projection on the difference of their means separates;
    `others`: None for the same pieces; `total`: variances of the statistics."""
    one = _looks(pieces, pieces if others is None else others, total)
    two = one if others is None else _looks(others, pieces, total)
    mean, error, low, high = (part.swapaxes(0, 1) for part in (two.mean, two.error, two.low, two.high))
    return _apart(one, Summary(-mean, error, -high, -low), np.ones(1), most)  # the other looks back


def _looks(pieces: Sequence[np.ndarray], others: Sequence[np.ndarray], total: np.ndarray) -> Summary:
    """[pieces, others, 1]: the second half of each piece along its directions to others, from first halves."""
    begun = [piece[: len(piece) // 2] for piece in others]
    means, spread = np.stack([part.mean(axis=0) for part in begun]), np.stack([part.var(axis=0) for part in begun])
    rows = []
    for piece in pieces:
        first, second = piece[: len(piece) // 2], piece[len(piece) // 2 :]
        noise = (first.var(axis=0) + spread) / 2 + 1e-3 * total
        direction = np.where(noise > 0, (first.mean(axis=0) - means) / np.maximum(noise, 1e-300), 0.0)
        size = np.sqrt((direction**2 * noise).sum(axis=1, keepdims=True))
        direction /= np.where(size > 0.0, size, 1.0)
        rows.append(summary_of(second @ direction.T))
    return Summary(*(np.stack(part)[:, :, None] for part in zip(*rows, strict=True)))


def _transitions(trace: np.ndarray, segments: list[Segment], apart: np.ndarray, alike: np.ndarray) -> np.ndarray:
    """Segments that reach into two others which are apart, or are like both, without crossing between them often."""
    summary = summarise(trace, segments)
    out = np.zeros(len(segments), dtype=bool)
    for row, segment in enumerate(segments):
        near = np.flatnonzero(~apart[row])
        rows, columns = np.nonzero(np.triu(apart[np.ix_(near, near)]))
        for a, b in zip(near[rows], near[columns], strict=True):
            inside = (summary.low[row] <= np.minimum(summary.mean[a], summary.mean[b])) & (
                summary.high[row] >= np.maximum(summary.mean[a], summary.mean[b])
            )
            gap = np.maximum(summary.low[a] - summary.high[b], summary.low[b] - summary.high[a])
            wide = (summary.high - summary.low)[[a, b]].sum(axis=0)
            between = np.flatnonzero(inside & (gap > GAP * wide))
            if not len(between):
                continue
            k = int(between[(gap / (wide + TINY))[between].argmax()])
            if crossings(trace[segment.first : segment.end, segment.chain, k], summary.mean[[a, b], k]) < CROSSINGS:
                out[row] = True
                break
    return out | _between(trace, segments, apart, alike & ~out & ~out[:, None], summary)


def _between(
    trace: np.ndarray, segments: list[Segment], apart: np.ndarray, alike: np.ndarray, summary: Summary
) -> np.ndarray:
    """Segments that are like two others which are apart: their means are so uncertain. Those that are like most such
    pairs first; what is like them as well is then like one kind only."""
    out, linked = np.zeros(len(segments), dtype=bool), alike & ~np.eye(len(segments), dtype=bool)
    while True:
        pairs = ((linked.astype(float) @ apart) * linked).sum(axis=1)
        if not pairs.any():
            return out
        row = int(pairs.argmax())
        near = np.flatnonzero(linked[row])
        a, b = (near[ends] for ends in np.nonzero(np.triu(apart[np.ix_(near, near)])))
        distance = np.abs(summary.mean[a] - summary.mean[b]) / (np.ptp(summary.mean, axis=0) + TINY)
        first, k = np.unravel_index(int(distance.argmax()), distance.shape)
        ends = summary.mean[[a[first], b[first]], k]
        values = trace[segments[row].first : segments[row].end, segments[row].chain, k]
        out[row] = crossings(values, ends) < CROSSINGS
        linked[row] = linked[:, row] = False


def crossings(values: np.ndarray, ends: np.ndarray) -> int:
    """How often a trace goes from near one of two values to near the other, with a quarter of hysteresis."""
    low, high = ends.min(), ends.max()
    place = (values - low) / max(high - low, 1e-300)
    side = np.where(place < 0.25, 0, np.where(place > 0.75, 1, -1))
    side = side[side >= 0]
    return int((np.diff(side) != 0).sum())


def _joined(linked: np.ndarray) -> np.ndarray:
    rows, columns = np.nonzero(linked)
    _, number = np.unique(components(len(linked), rows, columns), return_inverse=True)
    return number.ravel()


def _grouped(apart: np.ndarray, alike: np.ndarray) -> np.ndarray:
    """int64[segments]: the group of each; −1 for single ones that may belong to two groups which are apart.

    Segments that are alike are together. Groups of which no two segments are apart are joined, unless that would join
    two that are.
    """
    number = _joined(alike)
    count = int(number.max()) + 1
    member = np.eye(count)[number]
    separate = member.T @ apart @ member > 0
    near = member.T @ ~apart @ member > 0
    near &= ~separate & ~np.eye(count, dtype=bool)
    lost = np.zeros(count, dtype=bool)
    for m in range(count):
        around = np.flatnonzero(near[m])
        if separate[np.ix_(around, around)].any():
            lost[m] = member[:, m].sum() == 1
            near[m] = near[:, m] = False
    joined = _joined(near | np.eye(count, dtype=bool))
    group = np.where(lost, -1, joined)[number]
    kept, place = np.unique(group[group >= 0], return_inverse=True)
    out = np.full(len(number), -1)
    out[group >= 0] = place.ravel()
    return out if len(kept) else number


def _left_behind(
    trace: np.ndarray, groups: list[list[Segment]], left: list[Segment], scale: np.ndarray, most: float
) -> tuple[list[list[Segment]], int]:
    """Plateaus that chains have left and that are apart from every region: the longest of them, in groups."""
    if not left:
        return [], 0
    plateaus, total = summarise(trace, left), trace.var(axis=(0, 1))
    known = np.zeros(len(left), dtype=bool)
    for group in groups:
        parts = summarise(trace, group)
        near = ~differ(plateaus, whole(parts), scale, most)[0][:, 0]
        near |= ~differ(plateaus, parts, scale, most)[0].all(axis=1)
        if trace.shape[2] > 1 and len(long := _longest(left, near)):
            pieces = _pieces(trace, [left[i] for i in long])
            near[long] = ~_projected(pieces, _pieces(trace, group), total, most).all(axis=1)
        known |= near
    rest = [s for s, inside in zip(left, known, strict=True) if not inside]
    if not rest:
        return [], 0
    summary = summarise(trace, rest)
    apart = differ(summary, summary, scale, most)[0]
    if trace.shape[2] > 1 and len(long := _longest(rest, np.ones(len(rest), dtype=bool))):
        apart[np.ix_(long, long)] |= _projected(_pieces(trace, [rest[i] for i in long]), None, total, most)
    number = _joined(~apart)
    found = [[rest[i] for i in np.flatnonzero(number == m)] for m in range(number.max() + 1)]
    found.sort(key=lambda group: -sum(s.end - s.first for s in group))
    return found[:MOST_LEFT], max(0, len(found) - MOST_LEFT)


def _longest(segments: list[Segment], some: np.ndarray) -> np.ndarray:
    """Places of those among some (bool[segments]) for which projections are looked at."""
    length = np.array([s.end - s.first for s in segments])
    found = np.flatnonzero(some & (length >= LONG))
    return found[np.argsort(-length[found], kind="stable")[:MOST_LONG]]


def _region(trace: np.ndarray, segments: list[Segment], settled: bool) -> Region:
    values = np.concatenate(_pieces(trace, segments))
    return Region(tuple(segments), settled, values.mean(axis=0), values.std(axis=0))
