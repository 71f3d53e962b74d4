"""The part of every relational kernel that does not depend on the model: random streams, scans, folding, sweeps.

Never imported: its text below the line `# --- text ---` is copied into each generated file, because a kernel that
Numba caches must stand in one file with all its helpers. What stands above is replaced when the same text is to run as
plain Python (see `relational_module`).
A chunk is up to CHUNK sites of one predicate: `fill` chooses them, `update_*` (generated) draws them, `fold` adds
up. The scan has a stream of its own, equal in all chains, so all chains share the order of sites.
"""

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
BARRED = 1 << 62  # violations of a value that the evidence excludes
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
def soften(fields, violations, count, current, greedy, chances, i):
    """The conditionals of a block's values. Says whether the state was illegal, unless it is being repaired."""
    least = violations[current]
    for k in range(count):
        if violations[k] < least:
            if greedy == 0:
                return True
            least = violations[k]
    top, total = -math.inf, 0.0
    for k in range(count):
        if violations[k] == least:
            top = max(top, fields[k])
    for k in range(count):
        e = math.exp(fields[k] - top) if violations[k] == least else 0.0
        chances[i * count + k] = e
        total += e
    for k in range(count):
        chances[i * count + k] /= total
    return False


@helper
def rotate(x, k):
    return (x << U(k)) | (x >> U(64 - k))


@helper
def next_word(s):
    """xoshiro256++ (Blackman and Vigna): period 2^256 - 1."""
    s0, s1, s2, s3 = s[0], s[1], s[2], s[3]
    result = rotate(s0 + s3, 23) + s0
    s[0] = s0 ^ s3 ^ s1
    s[1] = s1 ^ s2 ^ s0
    s[2] = s2 ^ s0 ^ (s1 << U(17))
    s[3] = rotate(s3 ^ s1, 45)
    return result


@helper
def uniforms(s, out, m):
    """m numbers in [0, 1) of 53 bits. The stream's words stay in registers for the whole chunk."""
    s0, s1, s2, s3 = s[0], s[1], s[2], s[3]
    for i in range(m):
        x = rotate(s0 + s3, 23) + s0
        t = s1 << U(17)
        s2 ^= s0
        s3 ^= s1
        s1 ^= s2
        s0 ^= s3
        s2 ^= t
        s3 = rotate(s3, 45)
        out[i] = float(x >> U(11)) * 1.1102230246251565e-16
    s[0], s[1], s[2], s[3] = s0, s1, s2, s3


@helper
def below(s, n):
    """A uniform integer in [0, n): the bias is under n / 2^53."""
    return I(float(next_word(s) >> U(11)) * 1.1102230246251565e-16 * n)


@helper
def shuffle(s, items, start, n):
    for i in range(n - 1, 0, -1):
        j = below(s, i + 1)
        items[start + i], items[start + j] = items[start + j], items[start + i]


@helper
def begin_sweep(scan, clock, stream, order, listed, sorts, entries):
    """Fresh orders: of every sort's constants, and of the sites of predicates with few free atoms."""
    clock[OPEN] = 1
    clock[ENTRY] = 0
    clock[POSITION] = 0
    if scan == SYMMETRIC:
        for s in range(sorts.shape[0]):
            shuffle(stream, order, sorts[s, 0], sorts[s, 1])
        for e in range(entries.shape[0]):
            if entries[e, LISTED] >= 0:
                shuffle(stream, listed, entries[e, LISTED], entries[e, SITES])


@helper
def fill_row(entries, e, skips, sorts, order, coords, position, room):
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
        if (skips[base + (value >> 6)] >> U(value & 63)) & ONE == ZERO:
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
def fill(entries, skips, sorts, order, listed, coords, clock, stream, room, longest, free, every):
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
                decode(entries, e, coords, listed[entries[e, LISTED] + position + i], i)
            position += m
        else:
            m, position = fill_row(entries, e, skips, sorts, order, coords, position, here)
        clock[POSITION] = position
        if m > 0:
            return m, e
    return 0, 0


@helper
def skipped(entries, e, skips, flat):
    if entries[e, SKIP] < 0 or entries[e, LISTED] >= 0:
        return False
    size = entries[e, AXES + 3 * (entries[e, RANK] - 1) + 2] if entries[e, RANK] > 0 else 1
    word = entries[e, SKIP] + flat // size * ((size + 63) >> 6) + (flat % size >> 6)
    return (skips[word] >> U(flat % size & 63)) & ONE != ZERO


@helper
def fill_random(entries, skips, sorts, order, listed, coords, clock, stream, room, longest, free, every):
    """Sites drawn uniformly with replacement, as many as stay in one predicate. `PENDING` keeps a draw not yet used."""
    m, e = 0, 0
    room = min(room, free - clock[POSITION])
    while m < room:
        pick = clock[PENDING]
        if pick < 0:
            pick = below(stream, every)
        at, flat = 0, pick
        while flat >= entries[at, SITES]:
            flat -= entries[at, SITES]
            at += 1
        clock[PENDING] = -1
        if skipped(entries, at, skips, flat):
            continue
        if m > 0 and (at != e or m >= longest // entries[e, VALUES]):
            clock[PENDING] = pick
            break
        e = at
        decode(entries, e, coords, listed[entries[e, LISTED] + flat] if entries[e, LISTED] >= 0 else flat, m)
        m += 1
    clock[POSITION] += m
    return m, e


@helper
def orbits(folds, p, classes, lookup, coords, out, m):
    """The orbit of each atom of the chunk, from the classes of its constants and which of them are equal."""
    arity, pairs = folds[p, ARITY], folds[p, PAIRS]
    for i in range(m):
        out[i] = 0
    for j in range(arity):
        start, count = folds[p, CLASSES + 2 * j], folds[p, CLASSES + 2 * j + 1]
        for i in range(m):
            out[i] = out[i] * count + classes[U(start + coords[j, i])]
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
def fold(folds, p, classes, lookup, coords, orbit, value, chance, now_f, now_g, visits, m, values, counting):
    """Adds values and conditionals of a chunk to their orbits; orbit -1 has the place 0, which nobody reads."""
    orbits(folds, p, classes, lookup, coords, orbit, m)
    for i in range(m):
        o = U(orbit[i])
        now_f[o] += value[i]
        now_g[o] += chance[i]
    if counting:
        for i in range(m):
            visits[orbit[i]] += 1


@helper
def fold_blocks(folds, p, classes, lookup, coords, orbit, value, chance, now_f, now_g, visits, m, values, counting):
    """The same where some sites have several values: each value is an atom with its own orbit."""
    if values == 1:
        fold(folds, p, classes, lookup, coords, orbit, value, chance, now_f, now_g, visits, m, values, counting)
        return
    at = CLASSES + 2 * folds[p, ARITY] + 2 * folds[p, PAIRS]
    for k in range(values):
        rest = k
        for j in range(folds[p, at] - 1, -1, -1):
            argument, size = folds[p, at + 1 + 2 * j], folds[p, at + 2 + 2 * j]
            for i in range(m):
                coords[argument, i] = rest % size
            rest //= size
        orbits(folds, p, classes, lookup, coords, orbit, m)
        for i in range(m):
            now_f[orbit[i]] += I(value[i] == k)
            now_g[orbit[i]] += chance[i * values + k]
            if counting:
                visits[orbit[i]] += 1


@helper
def end_sweep(clock, now_f, now_g, sum_f, sum_g, square_f):
    """Adds the sweep to the sums of the batch."""
    for o in range(now_f.shape[0]):
        sum_f[o] += now_f[o]
        sum_g[o] += now_g[o]
        square_f[o] += float(now_f[o]) * float(now_f[o])
        now_f[o] = 0
        now_g[o] = 0.0
    clock[OPEN] = 0
    clock[SWEEP] += 1


@entry
def advance(d, c, budget, sweeps, greedy):
    """Draws at most `budget` sites, or until `sweeps` sweeps have ended. Returns how many sites were drawn.

    `clock` says where the chain stands, so that the next call goes on inside the sweep; `clock[FAILED]` >= 0 is the
    place in `coords` of a site all of whose values have probability zero.
    `choose`, `update`, `gather` and `observe` are named in the generated part.
    """
    clock, coords, chance, longest = c.clock, c.coords, c.chance, min(c.chance.shape[0], c.uniform.shape[0])
    done, target = 0, clock[SWEEP] + sweeps
    while done < budget and clock[SWEEP] < target:
        if clock[OPEN] == 0:
            begin_sweep(d.scan, clock, c.scan, c.order, c.listed, d.sorts, d.entries)
        m, e = choose(
            d.entries, d.skips, d.sorts, c.order, c.listed, coords, clock, c.scan,
            budget - done, longest, d.free_sites, d.all_sites,
        )  # fmt: skip
        if m == 0:
            end_sweep(clock, c.now_f, c.now_g, c.sum_f, c.sum_g, c.square_f)
            observe(d.numbers, d.indices, d.reals, d.words, c.bits, c.seen, c.sum_seen, c.square_seen)
            continue
        uniforms(c.stream, c.uniform, m)
        p, values = d.entries[e, PREDICATE], d.entries[e, VALUES]
        clock[FAILED] = update(
            d.numbers, d.indices, d.reals, d.words, d.skips, c.bits, coords, c.uniform, c.value, chance,
            c.fields, c.violations, p, m, greedy,
        )  # fmt: skip
        if clock[FAILED] >= 0:
            break
        gather(
            d.folds, p, d.classes, d.lookup, coords, c.orbit, c.value, chance, c.now_f, c.now_g, c.visits,
            m, values, d.scan == RANDOM,
        )  # fmt: skip
        done += m
    clock[UPDATES] += done
    return done
