"""The part of every relational kernel that does not depend on the model: random streams, scans, folding, sweeps.

Never imported: its text below the line `# --- text ---` is copied into each generated file, because a kernel that
Numba caches must stand in one file with all its helpers. What stands above is replaced when the same text is to run as
plain Python (see `relational_module`).
A chunk is up to CHUNK sites of one predicate: `fill` chooses them, `update_*` (generated) draws them, `fold` adds
up. The scan has a stream of its own, equal in all chains, so all chains share the order of sites.
"""
# ruff: noqa: F821, E741
# pyright: reportUndefinedVariable=false, reportCallIssue=false

import math

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

helper = njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # wrappers cost compile time
entry = njit(cache=True, nogil=True, error_model="numpy")


@intrinsic
def popcount(typingctx, x):
    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


@intrinsic
def lowest(typingctx, x):
    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], context.get_constant(types.boolean, 0))

    return types.int64(types.uint64), codegen


# --- text ---

U, I = np.uint64, np.int64
ZERO, ONE, FULL = np.uint64(0), np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)
SYMMETRIC, RANDOM, FIXED = 0, 1, 2
OWN, SCAN = 0, 4  # where the chain's own stream and the scan's start in `streams`
NOW, SUM, VISITS, SQUARE = 0, 1, 2, 2  # rows of the sums by orbit: this sweep, this batch
BARRED = 1e300  # violations of a value that the evidence excludes
# clock: where the chain stands
SWEEP, ENTRY, POSITION, PENDING, FAILED, UPDATES, OPEN = 0, 1, 2, 3, 4, 5, 6
# a row of `entries`: predicate, sites, skip mask (offset or -1), list (offset or -1), values of a block, rank, then
# (argument, sort, size) for each axis of the sites
PREDICATE, SITES, SKIP, LISTED, VALUES, RANK, AXES = 0, 1, 2, 3, 4, 5, 6
# a row of `folds`: offset of the lookup, rank, pairs, then (offset of the class array, classes) by argument, the pairs,
# and for blocks the (argument, size) of the exclusive arguments after their number
LOOKUP, ARITY, PAIRS, CLASSES = 0, 1, 2, 3


@helper
def mask(i, word):
    return ONE << U(i & 63) if i >> 6 == word else ZERO


@helper
def logistic(h):
    e = math.exp(-abs(h))
    return 1.0 / (1.0 + e) if h >= 0.0 else e / (1.0 + e)


@helper
def draw(uniform, chance):
    """The one line that draws a binary site."""
    return uniform < chance


@helper
def draw_value(uniform, chances, start, count):
    """The one place that draws a site of several values: the first whose cumulated chance exceeds the uniform."""
    total, last = 0.0, 0
    for k in range(count):
        if chances[start + k] > 0.0:
            total += chances[start + k]
            last = k
            if uniform < total:
                return k
    return last


@helper
def soften(fields, count, current, greedy, chances, i):
    """The conditionals of a block's values. Says whether the state was illegal, unless it is being repaired."""
    least = fields[1, current]
    for k in range(count):
        if fields[1, k] < least:
            if greedy == 0:
                return True
            least = fields[1, k]
    top, total = -math.inf, 0.0
    for k in range(count):
        if fields[1, k] == least:
            top = max(top, fields[0, k])
    for k in range(count):
        e = math.exp(fields[0, k] - top) if fields[1, k] == least else 0.0
        chances[i * count + k] = e
        total += e
    for k in range(count):
        chances[i * count + k] /= total
    return False


@helper
def uniforms(streams, first, out, m):
    """m numbers in [0, 1) of 53 bits from xoshiro256++ (Blackman and Vigna; period 2^256 - 1), whose four words of
    state start at `first` and stay in registers for the whole chunk."""
    s0, s1 = streams[first], streams[first + 1]
    s2, s3 = streams[first + 2], streams[first + 3]
    for i in range(m):
        x = s0 + s3
        x = ((x << U(23)) | (x >> U(41))) + s0
        t = s1 << U(17)
        s2 ^= s0
        s3 ^= s1
        s1 ^= s2
        s0 ^= s3
        s2 ^= t
        s3 = (s3 << U(45)) | (s3 >> U(19))
        out[i] = float(x >> U(11)) * 1.1102230246251565e-16
    streams[first], streams[first + 1] = s0, s1
    streams[first + 2], streams[first + 3] = s2, s3


@helper
def shuffle(streams, scratch, items, start, n):
    """A uniformly random order (the bias of one choice among i is under i / 2^53)."""
    for i in range(n - 1, 0, -1):
        uniforms(streams, SCAN, scratch, 1)
        j = I(scratch[0] * (i + 1))
        items[start + i], items[start + j] = items[start + j], items[start + i]


@helper
def begin_sweep(scan, clock, streams, scratch, order, sorts, entries):
    """Fresh orders: of every sort's constants, and of the sites of predicates with few free atoms."""
    clock[OPEN] = 1
    clock[ENTRY] = 0
    clock[POSITION] = 0
    if scan == SYMMETRIC:
        for s in range(sorts.shape[0]):
            shuffle(streams, scratch, order, sorts[s, 0], sorts[s, 1])
        for e in range(entries.shape[0]):
            if entries[e, LISTED] >= 0:
                shuffle(streams, scratch, order, entries[e, LISTED], entries[e, SITES])


@helper
def fill_row(entries, e, words, sorts, order, coords, position, room):
    """Free sites of one row (all axes but the last fixed) from `position` on. Returns (how many, next position)."""
    rank = entries[e, RANK]
    if rank == 0:
        return 1, 1
    last = AXES + 3 * (rank - 1)
    size, start = entries[e, last + 2], sorts[entries[e, last + 1], 0]
    r, row, stride = position // size, 0, 1
    column = position - r * size
    for j in range(rank - 2, -1, -1):
        axis = AXES + 3 * j
        n = entries[e, axis + 2]
        value = order[sorts[entries[e, axis + 1], 0] + r % n]
        r //= n
        row += value * stride
        stride *= n
        for i in range(min(room, size - column)):
            coords[entries[e, axis], i] = value
    m, target, skip = 0, entries[e, last], entries[e, SKIP]
    if skip < 0:
        m = min(room, size - column)
        for i in range(m):
            coords[target, i] = order[start + column + i]
        return m, position + m
    base = skip + row * ((size + 63) >> 6)
    while m < room and column < size:
        value = order[start + column]
        if (words[base + (value >> 6)] >> U(value & 63)) & ONE == ZERO:
            coords[target, m] = value
            m += 1
        column += 1
        position += 1
    return m, position


@helper
def decode(entries, e, coords, flat, i):
    """Puts a site, given by its place in the box of its axes, at place i of the chunk."""
    for j in range(entries[e, RANK] - 1, -1, -1):
        n = entries[e, AXES + 3 * j + 2]
        coords[entries[e, AXES + 3 * j], i] = flat % n
        flat //= n


@helper
def fill(entries, words, sorts, order, coords, clock, streams, scratch, room, longest, free, every):
    """The next chunk of a sweep over all sites: (how many, of which entry); 0 sites mean that the sweep is over."""
    while clock[ENTRY] < entries.shape[0]:
        e, position = clock[ENTRY], clock[POSITION]
        if position >= entries[e, SITES]:
            clock[ENTRY] += 1
            clock[POSITION] = 0
            continue
        here = min(room, max(1, longest // entries[e, VALUES]))
        if entries[e, LISTED] >= 0:
            m = min(here, entries[e, SITES] - position)
            for i in range(m):
                decode(entries, e, coords, order[entries[e, LISTED] + position + i], i)
            position += m
        else:
            m, position = fill_row(entries, e, words, sorts, order, coords, position, here)
        clock[POSITION] = position
        if m > 0:
            return m, e
    return 0, 0


@helper
def skipped(entries, e, words, flat):
    if entries[e, SKIP] < 0 or entries[e, LISTED] >= 0:
        return False
    size = entries[e, AXES + 3 * (entries[e, RANK] - 1) + 2] if entries[e, RANK] > 0 else 1
    word = entries[e, SKIP] + flat // size * ((size + 63) >> 6) + (flat % size >> 6)
    return (words[word] >> U(flat % size & 63)) & ONE != ZERO


@helper
def fill_random(entries, words, sorts, order, coords, clock, streams, scratch, room, longest, free, every):
    """Sites drawn uniformly with replacement, as many as stay in one predicate. `PENDING` keeps a draw not yet used."""
    m, e = 0, 0
    room = min(room, free - clock[POSITION])
    while m < room:
        pick = clock[PENDING]
        if pick < 0:
            uniforms(streams, SCAN, scratch, 1)
            pick = I(scratch[0] * every)
        at, flat = 0, pick
        while flat >= entries[at, SITES]:
            flat -= entries[at, SITES]
            at += 1
        clock[PENDING] = -1
        if skipped(entries, at, words, flat):
            continue
        if m > 0 and (at != e or m >= longest // entries[e, VALUES]):
            clock[PENDING] = pick
            break
        e = at
        decode(entries, e, coords, order[entries[e, LISTED] + flat] if entries[e, LISTED] >= 0 else flat, m)
        m += 1
    clock[POSITION] += m
    return m, e


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


@helper
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


@helper
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


@entry
def advance(d, c, budget, sweeps, greedy):
    """Draws at most `budget` sites, or until `sweeps` sweeps have ended. Returns how many sites were drawn.

    `clock` says where the chain stands, so that the next call goes on inside the sweep; `clock[FAILED]` >= 0 is the
    place in `coords` of a site all of whose values have probability zero.
    `choose`, `update`, `gather` and `observe` are named in the generated part.
    """
    words, entries, sorts = d.words, d.entries, d.sorts
    bits, clock, streams = c.bits, c.clock, c.streams
    order, coords, uniform = c.order, c.coords, c.uniform
    value, chance = c.value, c.chance
    done, target, longest = 0, clock[SWEEP] + sweeps, uniform.shape[0]
    while done < budget and clock[SWEEP] < target:
        room = budget - done
        if clock[OPEN] == 0:
            begin_sweep(d.scan, clock, streams, uniform, order, sorts, entries)
        m, e = choose(
            entries, words, sorts, order, coords, clock, streams, uniform, room, longest, d.free_sites, d.all_sites
        )
        if m == 0:
            end_sweep(clock, c.sum_f, c.sum_g)
            observe(d.numbers, d.indices, d.reals, words, bits, c.seen)
            continue
        uniforms(streams, OWN, uniform, m)
        p, values = entries[e, PREDICATE], entries[e, VALUES]
        clock[FAILED] = update(
            d.numbers, d.indices, d.reals, words, bits, coords, uniform, value, chance, c.fields, p, m, greedy
        )
        if clock[FAILED] >= 0:
            break
        gather(d.folds, p, d.lookup, coords, c.orbit, value, chance, c.sum_f, c.sum_g, m, values, d.scan == RANDOM)
        done += m
    clock[UPDATES] += done
    return done
