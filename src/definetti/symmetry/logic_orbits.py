"""AtomOrbits: which orbit each ground atom of a predicate lies in, without listing the atoms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class AtomOrbits:
    """The orbits of one predicate's atoms; numbers are global over predicates, -1 marks an atom not to be folded.

    The orbit of R(c_0, ..., c_k) is `lookup[classes[0][c_0], ..., classes[k][c_k], pattern]`, where bit t of `pattern`
    says whether the t-th pair of arguments of equal sort, in the order (0,1), (0,2), ..., (1,2), ..., holds equal
    constants. `explicit`, a tensor of the predicate's shape, replaces both where the group is no product.
    """

    classes: tuple[np.ndarray, ...]  # int32[size of the argument's sort], one per argument
    lookup: np.ndarray  # int32[c_0, c_1, ..., 2 ** pairs]
    explicit: np.ndarray | None = None
