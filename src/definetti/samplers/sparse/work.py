"""What sweeps cost, by counts: never from a clock, so that the seed decides everything.

A dense row visits every site and counts on machine words; a sparse one pays for the classes, for each true atom, and
for the pairs of true atoms that joins meet.
"""

from __future__ import annotations

from collections.abc import Sequence

from definetti.samplers.sparse.terms import System

# nanoseconds on one machine, as relative prices: a row, an atom in it, a pair of atoms that a join meets
ROW, ATOM, PAIR = 300.0, 120.0, 24.0
END = 3  # pairs: the price of an atom at each of its two ends
SITE, WORD = 10.0, 2.0  # a dense site, and a word of each of its counts
CROWDED = 2.0  # how many times dearer than a dense sweep the atoms of a state make a sparse one that is not made
MOST_BITS = 1 << 32  # atoms of a model that has dense sweeps
NEVER = 1 << 62


def counts_of(s: System) -> int:
    """Terms over a third constant: counts of a dense site, joins of a sparse row."""
    return sum("z" in t.roles for t in (*s.row, *s.degree, *s.support))


def dense_work(s: System, sizes: Sequence[int]) -> float:
    rows, columns = sizes[s.sorts[0]] * (0.5 if s.symmetric else 1.0), sizes[s.sorts[1]]
    return rows * columns * (SITE + WORD * counts_of(s) * (columns // 64 + 1))


def sparse_work(s: System, sizes: Sequence[int], degree: float) -> float:
    rows = sizes[s.sorts[0]] * (0.5 if s.symmetric else 1.0)
    return rows * (ROW + ATOM * degree + PAIR * degree**2 * bool(counts_of(s)))


def most_pairs(systems: Sequence[System], sizes: Sequence[int]) -> int:
    """Pairs that joins meet (squares of degrees), and `END` for each end of an atom, from which on a dense sweep is
    cheaper."""
    sites = sum(float(sizes[s.sorts[0]]) * sizes[s.sorts[1]] for s in systems)
    if sites > MOST_BITS:
        return NEVER
    return int(CROWDED * sum(dense_work(s, sizes) for s in systems) / PAIR)
