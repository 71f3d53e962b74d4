"""The folding of every relational kernel: values and conditionals of a chunk are added to their orbits. Compiled once
for all models.

The text below the line `# --- text ---` also runs as plain Python (see `relational_module`).
"""
# ruff: noqa: E741

import numpy as np
from numba import njit

helper = njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # wrappers cost compile time
part = njit(cache=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # called by kernels


# --- text ---

U, I = np.uint64, np.int64
NOW, SUM, VISITS, SQUARE = 0, 1, 2, 2  # rows of the sums by orbit: this sweep, this batch
SWEEP, OPEN = 0, 6  # places of the clock
# a row of `folds`: offset of the lookup, rank, pairs, then (offset of the class array, classes) by argument, the pairs,
# for blocks the (argument, size) of the exclusive arguments after their number, for tied classes the (predicate, sign,
# arguments) of the images after theirs
LOOKUP, ARITY, PAIRS, CLASSES = 0, 1, 2, 3


@helper
def orbits(folds, p, lookup, coords, out, m):
    """The orbit of each atom of the chunk, from the classes of its constants and which of them are equal."""
    arity, pairs = folds[p, ARITY], folds[p, PAIRS]
    for i in range(m):
        out[i] = 0
    for j in range(arity):
        start, count = folds[p, CLASSES + 2 * j], folds[p, CLASSES + 2 * j + 1]
        for i in range(m):
            out[i] = out[i] * count + lookup[U(start + coords[j, i])]
    at = CLASSES + 2 * arity
    for i in range(m):
        out[i] <<= pairs
    for t in range(pairs):
        a, b = folds[p, at + 2 * t], folds[p, at + 2 * t + 1]
        for i in range(m):
            out[i] += I(coords[a, i] == coords[b, i]) << t
    for i in range(m):
        out[i] = lookup[U(folds[p, LOOKUP] + out[i])] + 1


@part
def fold(folds, p, lookup, coords, orbit, value, chance, sum_f, sum_g, m, values, counting):
    """Adds values and conditionals of a chunk to their orbits; orbit -1 has the place 0, which nobody reads."""
    orbits(folds, p, lookup, coords, orbit, m)
    for i in range(m):
        o = U(orbit[i])
        sum_f[U(NOW), o] += value[i]
        sum_g[U(NOW), o] += chance[i]
    if counting:
        for i in range(m):
            sum_f[VISITS, orbit[i]] += 1


@part
def fold_blocks(folds, p, lookup, coords, orbit, value, chance, sum_f, sum_g, m, values, counting):
    """The same where some sites have several values: each value is an atom with its own orbit."""
    if values == 1:
        fold(folds, p, lookup, coords, orbit, value, chance, sum_f, sum_g, m, values, counting)
        return
    at = CLASSES + 2 * folds[p, ARITY] + 2 * folds[p, PAIRS]
    for k in range(values):
        rest = k
        for j in range(folds[p, at] - 1, -1, -1):
            argument, size = folds[p, at + 1 + 2 * j], folds[p, at + 2 + 2 * j]
            for i in range(m):
                coords[argument, i] = rest % size
            rest //= size
        orbits(folds, p, lookup, coords, orbit, m)
        for i in range(m):
            sum_f[NOW, orbit[i]] += I(value[i] == k)
            sum_g[NOW, orbit[i]] += chance[i * values + k]
            if counting:
                sum_f[VISITS, orbit[i]] += 1


@helper
def image_orbits(folds, p, here, lookup, coords, out, m):
    """The orbit of each site's image: `orbits` with the image's predicate and the site's constants in its order."""
    q, arity, places = folds[p, here], folds[p, ARITY], here + 2
    pairs, ends = folds[q, PAIRS], CLASSES + 2 * arity
    for i in range(m):
        out[i] = 0
    for j in range(arity):
        start, count, a = folds[q, CLASSES + 2 * j], folds[q, CLASSES + 2 * j + 1], folds[p, places + j]
        for i in range(m):
            out[i] = out[i] * count + lookup[U(start + coords[a, i])]
    for i in range(m):
        out[i] <<= pairs
    for t in range(pairs):
        a, b = folds[p, places + folds[q, ends + 2 * t]], folds[p, places + folds[q, ends + 2 * t + 1]]
        for i in range(m):
            out[i] += I(coords[a, i] == coords[b, i]) << t
    for i in range(m):
        out[i] = lookup[U(folds[q, LOOKUP] + out[i])] + 1


@helper
def drop_repeated(folds, p, first, here, coords, out, m):
    """Sites whose image is the same atom as an earlier image get the orbit 0, which nobody reads."""
    arity = folds[p, ARITY]
    for other in range(first, here, 2 + arity):
        if folds[p, other] != folds[p, here]:
            continue
        for j in range(2, 2 + arity):
            a, b = folds[p, other + j], folds[p, here + j]
            for i in range(m):
                out[i] |= I(coords[a, i] != coords[b, i]) << I(62)
        for i in range(m):
            out[i] = (out[i] & I(0x3FFFFFFFFFFFFFFF)) * (out[i] >> I(62))


@helper
def fold_image(folds, p, first, here, lookup, coords, orbit, value, chance, sum_f, sum_g, m, counting):
    """Adds one image of each site to its orbit: another predicate's atom, or constants in another order."""
    image_orbits(folds, p, here, lookup, coords, orbit, m)
    drop_repeated(folds, p, first, here, coords, orbit, m)
    if folds[p, here + 1] == 1:
        for i in range(m):
            o = U(orbit[i])
            sum_f[U(NOW), o] += value[i]
            sum_g[U(NOW), o] += chance[i]
    else:
        for i in range(m):
            o = U(orbit[i])
            sum_f[U(NOW), o] += 1 - value[i]
            sum_g[U(NOW), o] += 1.0 - chance[i]
    if counting:
        for i in range(m):
            sum_f[VISITS, orbit[i]] += 1


@part
def fold_tied(folds, p, lookup, coords, orbit, value, chance, sum_f, sum_g, m, values, counting):
    """The same where atoms are tied: a site's value is that of all its images."""
    fold_blocks(folds, p, lookup, coords, orbit, value, chance, sum_f, sum_g, m, values, counting)
    at = CLASSES + 2 * folds[p, ARITY] + 2 * folds[p, PAIRS]
    at += 1 + 2 * folds[p, at]
    first, step = at + 1, 2 + folds[p, ARITY]
    for here in range(first + step, first + step * folds[p, at], step):
        fold_image(folds, p, first, here, lookup, coords, orbit, value, chance, sum_f, sum_g, m, counting)


@part
def end_sweep(clock, sum_f, sum_g):
    """Adds the sweep to the sums of the batch."""
    for o in range(sum_f.shape[1]):
        f = sum_f[NOW, o]
        sum_f[SUM, o] += f
        sum_g[SUM, o] += sum_g[NOW, o]
        sum_g[SQUARE, o] += float(f) * float(f)
        sum_f[NOW, o] = 0
        sum_g[NOW, o] = 0.0
    clock[OPEN] = 0
    clock[SWEEP] += 1
