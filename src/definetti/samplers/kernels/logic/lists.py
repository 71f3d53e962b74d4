"""Lists of true atoms of a new chain: millions of pairs are put where they belong, not sorted."""

from __future__ import annotations

from definetti.samplers.kernels.compiling import njit


@njit(nogil=True, cache=True)
def put_behind(at, x, y, pool):
    """Each y into the list of its x, behind those before it; `at`: the next place of each list."""
    for i in range(x.shape[0]):
        pool[at[x[i]]] = y[i]
        at[x[i]] += 1
