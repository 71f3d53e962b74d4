"""What was drawn, added up by orbits: values and full conditionals of sites, of blocks, and of tied atoms."""
# pyright: reportCallIssue=false

from definetti.samplers.kernels.logic.intrinsics import cell, helper, part, peek
from definetti.samplers.kernels.logic.relational import (
    ARITY,
    CLASSES,
    LOOKUP,
    NOW,
    OPEN,
    PAIRS,
    SQUARE,
    SUM,
    SWEEP,
    VISITS,
    I,
    U,
)

# --- text ---


@helper
def orbits(folds, p, lookup, coords, out, m):
    """The orbit of each atom of the chunk, from the classes of its constants and which of them are equal."""
    arity, pairs = cell(folds, p, ARITY), cell(folds, p, PAIRS)
    for i in range(m):
        out[i] = 0
    for j in range(arity):
        start, count = cell(folds, p, CLASSES + 2 * j), cell(folds, p, CLASSES + 2 * j + 1)
        for i in range(m):
            out[i] = out[i] * count + peek(lookup, start + cell(coords, j, i))
    at = CLASSES + 2 * arity
    for t in range(pairs - 1, -1, -1):
        a, b = cell(folds, p, at + 2 * t), cell(folds, p, at + 2 * t + 1)
        for i in range(m):
            out[i] = out[i] * 2 + I(cell(coords, a, i) == cell(coords, b, i))
    for i in range(m):
        out[i] = peek(lookup, cell(folds, p, LOOKUP) + out[i]) + 1


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
def occupy(strides, first, held, since, total, time, p, coords, value, m):
    """Every update of a chunk is a sample: adds up for how many samples each atom was true (`every_update.py`)."""
    now = time[0]
    for i in range(m):
        now += 1
        atom = peek(first, p)
        for j in range(strides.shape[1]):
            atom += cell(strides, p, j) * cell(coords, j, i)
        if value[i] != held[atom]:
            if held[atom] != 0:
                total[atom] += now - since[atom]
            held[atom] = value[i]
            since[atom] = now
    time[0] = now


@helper
def put_block_values(folds, p, coords, m, k):
    """Puts the k-th value of a block into the exclusive arguments of every site of the chunk."""
    at = CLASSES + 2 * cell(folds, p, ARITY) + 2 * cell(folds, p, PAIRS)
    for j in range(cell(folds, p, at) - 1, -1, -1):
        argument, size = cell(folds, p, at + 1 + 2 * j), cell(folds, p, at + 2 + 2 * j)
        for i in range(m):
            coords[argument, i] = k % size
        k //= size


@part
def fold_blocks(folds, p, lookup, coords, orbit, value, chance, sum_f, sum_g, m, values, counting):
    """The same where some sites have several values: each value is an atom with its own orbit."""
    if values == 1:
        fold(folds, p, lookup, coords, orbit, value, chance, sum_f, sum_g, m, values, counting)
        return
    for k in range(values):
        put_block_values(folds, p, coords, m, k)
        orbits(folds, p, lookup, coords, orbit, m)
        for i in range(m):
            sum_f[NOW, orbit[i]] += I(value[i] == k)
            sum_g[NOW, orbit[i]] += chance[i * values + k]
            if counting:
                sum_f[VISITS, orbit[i]] += 1


@helper
def image_orbits(folds, p, here, lookup, coords, out, m):
    """The orbit of each site's image: `orbits` with the image's predicate and the site's constants in its order."""
    q, arity, places = cell(folds, p, here), cell(folds, p, ARITY), here + 2
    pairs, ends = cell(folds, q, PAIRS), CLASSES + 2 * arity
    for i in range(m):
        out[i] = 0
    for j in range(arity):
        a = cell(folds, p, places + j)
        start, count = cell(folds, q, CLASSES + 2 * j), cell(folds, q, CLASSES + 2 * j + 1)
        for i in range(m):
            out[i] = out[i] * count + peek(lookup, start + cell(coords, a, i))
    for t in range(pairs - 1, -1, -1):
        a = cell(folds, p, places + cell(folds, q, ends + 2 * t))
        b = cell(folds, p, places + cell(folds, q, ends + 2 * t + 1))
        for i in range(m):
            out[i] = out[i] * 2 + I(cell(coords, a, i) == cell(coords, b, i))
    for i in range(m):
        out[i] = peek(lookup, cell(folds, q, LOOKUP) + out[i]) + 1


@helper
def drop_repeated(folds, p, first, here, coords, out, m):
    """Sites whose image is the same atom as an earlier image get the orbit 0, which nobody reads."""
    arity = cell(folds, p, ARITY)
    for other in range(first, here, 2 + arity):
        if cell(folds, p, other) != cell(folds, p, here):
            continue
        for j in range(2, 2 + arity):
            a, b = cell(folds, p, other + j), cell(folds, p, here + j)
            for i in range(m):
                out[i] |= I(cell(coords, a, i) != cell(coords, b, i)) << I(62)
        for i in range(m):
            out[i] = (out[i] & I(0x3FFFFFFFFFFFFFFF)) * (out[i] >> I(62))


@helper
def fold_image(folds, p, first, here, lookup, coords, orbit, value, chance, sum_f, sum_g, m, counting):
    """Adds one image of each site to its orbit: another predicate's atom, or constants in another order."""
    image_orbits(folds, p, here, lookup, coords, orbit, m)
    drop_repeated(folds, p, first, here, coords, orbit, m)
    if cell(folds, p, here + 1) == 1:
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
    at = CLASSES + 2 * cell(folds, p, ARITY) + 2 * cell(folds, p, PAIRS)
    at += 1 + 2 * cell(folds, p, at)
    first, step = at + 1, 2 + cell(folds, p, ARITY)
    for here in range(first + step, first + step * cell(folds, p, at), step):
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
