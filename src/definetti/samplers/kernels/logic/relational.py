"""The part of every relational kernel that does not depend on the model: random streams, scans, folding.

Compiled once for all models, and linked into every kernel. A chunk is up to CHUNK sites of one predicate: `fill`
chooses them, and `fold` adds up what was drawn. The scan has a stream of its own, equal in all chains, so all chains
share the order of sites. Tests run the text below the line `# --- text ---` as plain Python.
"""
# ruff: noqa: E741
# pyright: reportCallIssue=false

import math

import numpy as np
from numba import types
from numba.extending import intrinsic

from definetti.samplers.kernels.compiling import njit
from definetti.samplers.kernels.rng import next_word, unit

#: Without wrappers for Python and without reference counting, both of which would only cost compile time.
BARE = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}
helper = njit(**BARE)
part = njit(cache=True, **BARE)  # what kernels call


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


# array[index], table[row, column], a bit of words[index]: Numba takes twice as long to compile square brackets.


@intrinsic
def peek(typingctx, array, index):
    def codegen(context, builder, signature, args):
        return builder.load(place(context, builder, signature, args))

    return array.dtype(array, types.int64), codegen


@intrinsic
def cell(typingctx, table, row, column):
    def codegen(context, builder, signature, args):
        shape = context.data_model_manager[signature.args[0]].get(builder, args[0], "shape")
        index = builder.add(builder.mul(args[1], builder.extract_value(shape, 1)), args[2])
        return builder.load(place(context, builder, signature, (args[0], index)))

    return table.dtype(table, types.int64, types.int64), codegen


@intrinsic
def test(typingctx, words, index, bit):
    def codegen(context, builder, signature, args):
        word = builder.load(place(context, builder, signature, args))
        one = context.get_constant(types.uint64, 1)
        return builder.and_(builder.lshr(word, shift(context, builder, args)), one)

    return types.uint64(words, types.int64, types.int64), codegen


@intrinsic
def toggle(typingctx, words, index, bit):
    def codegen(context, builder, signature, args):
        where = place(context, builder, signature, args)
        one = context.get_constant(types.uint64, 1)
        builder.store(builder.xor(builder.load(where), builder.shl(one, shift(context, builder, args))), where)
        return context.get_dummy_value()

    return types.void(words, types.int64, types.int64), codegen


def place(context, builder, signature, args):
    data = context.data_model_manager[signature.args[0]].get(builder, args[0], "data")
    return builder.gep(data, [args[1]])


def shift(context, builder, args):
    return builder.and_(args[2], context.get_constant(types.int64, 63))


# --- text ---

U, I = np.uint64, np.int64
ZERO = np.uint64(0)
NOW, SUM, VISITS, SQUARE = 0, 1, 2, 2  # rows of the sums by orbit: this sweep, this batch
SYMMETRIC, RANDOM, FIXED = 0, 1, 2
OWN, SCAN = np.int64(0), np.int64(4)  # where the chain's own stream and the scan's start in `streams`
# clock: where the chain stands
SWEEP, ENTRY, POSITION, PENDING, FAILED, UPDATES, OPEN = 0, 1, 2, 3, 4, 5, 6
# a row of `entries`: predicate, sites, skip mask (offset or -1), list (offset or -1), values of a block, rank, then
# (argument, sort, size) for each axis of the sites; the last three columns are its turn in a sweep (rows with one turn
# are the same sites with their axes in another order), the set of turns that are shuffled (or -1), and half a square
PREDICATE, SITES, SKIP, LISTED, VALUES, RANK, AXES = 0, 1, 2, 3, 4, 5, 6
# a row of `folds`: offset of the lookup, rank, pairs, then (offset of the class array, classes) by argument, the pairs,
# for blocks the (argument, size) of the exclusive arguments after their number, for tied classes the (predicate, sign,
# arguments) of the images after theirs
LOOKUP, ARITY, PAIRS, CLASSES = 0, 1, 2, 3
# a level: what local fields are multiplied by, what a violation costs, what fields of orbits are multiplied by, whether
# there are any, whether the tally follows the state
SCALE, PENALTY, SHARE, ON, FOLLOWED = 0, 1, 2, 3, 4
# the tally of a state: weighted groundings of the shapes with several weights, violated groundings, the orbits' fields
# of what is true; of a look: normaliser of the product of these fields, entropies of the conditionals, their divergence
# from the product; then true groundings by shape
SOFT, BROKEN, TILTED, NORMALISER, ENTROPY, DIVERGENCE, COUNTS = 0, 1, 2, 3, 4, 5, 6


@part
def uniforms(streams, first, out, m):
    """m numbers in [0, 1) from the stream whose state starts at `first` and stays in registers for the whole chunk."""
    s0, s1, s2, s3 = streams[first], streams[first + 1], streams[first + 2], streams[first + 3]
    for i in range(m):
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        out[i] = unit(word)
    streams[first], streams[first + 1] = s0, s1
    streams[first + 2], streams[first + 3] = s2, s3


@helper
def shuffle(streams, scratch, items, start, n):
    """A uniformly random order (the bias of one choice among i is under i / 2^53)."""
    for i in range(n - 1, 0, -1):
        uniforms(streams, SCAN, scratch, I(1))
        j = I(scratch[0] * (i + 1))
        items[start + i], items[start + j] = items[start + j], items[start + i]


@part
def begin_sweep(scan, clock, streams, scratch, order, sorts, entries):
    """Fresh orders: of every sort's constants, and of the sites of predicates with few free atoms."""
    clock[OPEN] = 1
    clock[ENTRY] = 0
    clock[POSITION] = 0
    if scan == SYMMETRIC:
        for s in range(sorts.shape[0]):
            shuffle(streams, scratch, order, cell(sorts, s, 0), cell(sorts, s, 1))
        for e in range(entries.shape[0]):
            if cell(entries, e, LISTED) >= 0:
                shuffle(streams, scratch, order, cell(entries, e, LISTED), cell(entries, e, SITES))
        take_turns(streams, scratch, order, entries, order.shape[0] - entries.shape[0])


@helper
def take_turns(streams, scratch, order, entries, start):
    """The entries of the sweep in order, at the end of `order` (-1: none): for each turn one of its entries at random,
    then those of a set exchanged with an earlier one of the set, or with itself. Without choices it stays as it is."""
    turn, total, width = entries.shape[1] - 3, entries.shape[0], entries.shape[1]
    choices = False
    for e in range(total):
        choices |= cell(entries, e, turn) != e or cell(entries, e, width - 2) >= 0
    for t in range(total if choices else 0):
        found = 0
        for e in range(total):
            if cell(entries, e, turn) == t:
                found += 1
                if found == 1 or pick(streams, scratch, found) == 0:
                    order[start + t] = e
        if found == 0:
            order[start + t] = -1
            continue
        group, found, chosen = cell(entries, order[start + t], width - 2), 1, t
        for s in range(t if group >= 0 else 0):
            if cell(entries, order[start + s], width - 2) == group:
                found += 1
                if pick(streams, scratch, found) == 0:
                    chosen = s
        order[start + t], order[start + chosen] = order[start + chosen], order[start + t]


@helper
def pick(streams, scratch, n):
    """A uniform choice among n."""
    uniforms(streams, SCAN, scratch, I(1))
    return I(scratch[0] * n)


@helper
def fill_row(entries, e, words, sorts, order, coords, position, room):
    """Free sites of one row (all axes but the last fixed) from `position` on. Returns (how many, next position)."""
    rank, half = cell(entries, e, RANK), cell(entries, e, entries.shape[1] - 1)
    if rank == 0:
        return 1, 1
    last = AXES + 3 * (rank - 1)
    size, start = cell(entries, e, last + 2), cell(sorts, cell(entries, e, last + 1), 0)
    r, row, stride = position // size, 0, 1
    column = position - r * size
    end = size
    if half == 1 and column < r:  # tied to (column, r), which has had its turn
        position += r - column
        column = r
    if half == 2:  # the same backwards: tied to (column, r), whose turn comes later
        end = r + 1
        if column >= end:
            return 0, (r + 1) * size
    for j in range(rank - 2, -1, -1):
        axis = AXES + 3 * j
        n = cell(entries, e, axis + 2)
        value = peek(order, cell(sorts, cell(entries, e, axis + 1), 0) + r % n)
        r //= n
        row += value * stride
        stride *= n
        for i in range(min(room, end - column)):
            coords[cell(entries, e, axis), i] = value
    m, target, skip = 0, cell(entries, e, last), cell(entries, e, SKIP)
    if skip < 0:
        m = min(room, end - column)
        for i in range(m):
            coords[target, i] = peek(order, start + column + i)
        return m, position + m
    base = skip + row * ((size + 63) >> 6)
    while m < room and column < end:
        value = peek(order, start + column)
        if test(words, base + (value >> 6), value) == ZERO:
            coords[target, m] = value
            m += 1
        column += 1
        position += 1
    return m, position


@helper
def decode(entries, e, coords, flat, i):
    """Puts a site, given by its place in the box of its axes, at place i of the chunk."""
    for j in range(cell(entries, e, RANK) - 1, -1, -1):
        n = cell(entries, e, AXES + 3 * j + 2)
        coords[cell(entries, e, AXES + 3 * j), i] = flat % n
        flat //= n


@part
def fill(entries, words, sorts, order, coords, clock, streams, scratch, room, longest, free, every):
    """The next chunk of a sweep over all sites: (how many, of which entry); 0 sites mean that the sweep is over."""
    while clock[ENTRY] < entries.shape[0]:
        e, position = peek(order, order.shape[0] - entries.shape[0] + clock[ENTRY]), clock[POSITION]
        if e < 0 or position >= cell(entries, e, SITES):
            clock[ENTRY] += 1
            clock[POSITION] = 0
            continue
        here = min(room, max(1, longest // cell(entries, e, VALUES)))
        if cell(entries, e, LISTED) >= 0:
            m = min(here, cell(entries, e, SITES) - position)
            for i in range(m):
                decode(entries, e, coords, peek(order, cell(entries, e, LISTED) + position + i), i)
            position += m
        else:
            m, position = fill_row(entries, e, words, sorts, order, coords, position, here)
        clock[POSITION] = position
        if m > 0:
            return m, e
    return 0, 0


@helper
def skipped(entries, e, words, flat):
    rank, skip = cell(entries, e, RANK), cell(entries, e, SKIP)
    size = cell(entries, e, AXES + 3 * rank - 1) if rank > 0 else 1
    row, column = flat // size, flat % size
    if cell(entries, e, entries.shape[1] - 1) != 0 and column < row:
        return True
    if skip < 0 or cell(entries, e, LISTED) >= 0:
        return False
    return test(words, skip + row * ((size + 63) >> 6) + (column >> 6), column) != ZERO


@part
def fill_random(entries, words, sorts, order, coords, clock, streams, scratch, room, longest, free, every):
    """Sites drawn uniformly with replacement, as many as stay in one predicate. `PENDING` keeps a draw not yet used."""
    m, e = 0, 0
    room = min(room, free - clock[POSITION])
    while m < room:
        pick = clock[PENDING]
        if pick < 0:
            uniforms(streams, SCAN, scratch, I(1))
            pick = I(scratch[0] * every)
        at, flat = 0, pick
        while flat >= cell(entries, at, SITES):
            flat -= cell(entries, at, SITES)
            at += 1
        clock[PENDING] = -1
        if skipped(entries, at, words, flat):
            continue
        if m > 0 and (at != e or m >= longest // cell(entries, e, VALUES)):
            clock[PENDING] = pick
            break
        e = at
        listed = cell(entries, e, LISTED)
        decode(entries, e, coords, peek(order, listed + flat) if listed >= 0 else flat, m)
        m += 1
    clock[POSITION] += m
    return m, e


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


# --- levels ---


@part
def tilt_sites(folds, p, lookup, coords, orbit, orbit_field, tilt, m, values):
    """The field of each site, or of each value of a block: that of the orbit of its (leading) atom."""
    for k in range(values):
        if values > 1:
            put_block_values(folds, p, coords, m, k)
        orbits(folds, p, lookup, coords, orbit, m)
        for i in range(m):
            tilt[i * values + k] = orbit_field[orbit[i]]


@helper
def log_sum(tilt, at, values):
    """The logarithm of the sum of the exponentials; of a binary site 0 is the other exponent."""
    top = 0.0 if values == 1 else -math.inf
    for k in range(values):
        top = max(top, tilt[at + k])
    total = math.exp(-top) if values == 1 else 0.0
    for k in range(values):
        total += math.exp(tilt[at + k] - top)
    return top + math.log(total)


@helper
def term(p, log_q):
    """(entropy, divergence from q) of one value with probability p."""
    if p <= 0.0:
        return 0.0, 0.0
    return -p * math.log(p), p * (math.log(p) - log_q)


@part
def measure(value, chance, tilt, tally, m, values):
    """Adds entropies of the conditionals, their divergence from the product of fields, and the state's own field."""
    for i in range(m):
        normaliser = log_sum(tilt, i * values, values)
        tally[NORMALISER] += normaliser
        for k in range(values):
            h, d = term(chance[i * values + k], tilt[i * values + k] - normaliser)
            tally[ENTROPY] += h
            tally[DIVERGENCE] += d
        if values == 1:
            h, d = term(1.0 - chance[i], -normaliser)
            tally[ENTROPY] += h
            tally[DIVERGENCE] += d
            tally[TILTED] += value[i] * tilt[i]
        else:
            tally[TILTED] += tilt[i * values + value[i]]


# --- parallel tempering ---

# counters of a ladder: which pairs are exchanged next, round trips, whether one has just ended, round trips noted
PARITY, TRIPS, ARRIVED, NOTED = 0, 1, 2, 3
# where a replica comes from: neither end so far, the top, the bottom after the top, the bottom
NOWHERE, FROM_TOP, RETURNING, FROM_BOTTOM = 0, 1, 2, 3


@helper
def soft_density(weights, tally):
    """The log density of a state, violations apart."""
    total = tally[SOFT]
    for s in range(weights.shape[0]):
        total += weights[s] * tally[COUNTS + s]
    return total


@helper
def density_at(level, soft, broken):
    """The log density on a level; nothing violated costs nothing, also where the penalty is infinite."""
    return level[SCALE] * soft - (level[PENALTY] * broken if broken > 0.5 else 0.0)


@helper
def exchange_chance(low, high, soft, broken, a, b):
    """The probability to exchange replica a on the level `low` with replica b on the level `high` (Metropolis)."""
    stay = density_at(low, soft[a], broken[a]) + density_at(high, soft[b], broken[b])
    swap = density_at(low, soft[b], broken[b]) + density_at(high, soft[a], broken[a])
    return 1.0 if swap >= stay else math.exp(swap - stay)


@helper
def happens(uniform, chance):
    """The one line that draws an exchange."""
    return uniform < chance


@helper
def note_heading(replica, heading, counters):
    """Who has reached an end of the ladder; a replica that comes back to the top from the bottom ends a round trip."""
    top, bottom = replica[replica.shape[0] - 1], replica[0]
    counters[ARRIVED] = 0
    if heading[top] == RETURNING:
        counters[TRIPS] += 1
        counters[ARRIVED] = 1
    heading[top] = FROM_TOP
    if heading[bottom] == FROM_TOP:
        heading[bottom] = RETURNING
    elif heading[bottom] == NOWHERE:
        heading[bottom] = FROM_BOTTOM


@part
def exchange(levels, weights, tally, soft, replica, heading, counters, rejected, streams, scratch):
    """Exchanges between every other pair of neighbours, the even and the odd ones in turn (not reversible)."""
    for r in range(replica.shape[0]):
        soft[0, r] = soft_density(weights, tally[r])
        soft[1, r] = tally[r, BROKEN]
    for k in range(counters[PARITY], replica.shape[0] - 1, 2):
        a, b = replica[k], replica[k + 1]
        chance = exchange_chance(levels[k], levels[k + 1], soft[0], soft[1], a, b)
        rejected[0, k] += 1.0 - chance
        rejected[1, k] += 1.0
        uniforms(streams, OWN, scratch, I(1))
        if happens(scratch[0], chance):
            replica[k], replica[k + 1] = b, a
    counters[PARITY] = 1 - counters[PARITY]
    note_heading(replica, heading, counters)


@part
def note_arrival(counters, arrivals, weights, tally, sum_f):
    """The first sweep on the top level after a round trip: its log density and F, the newest over the oldest."""
    if counters[ARRIVED] != 0:
        row = counters[NOTED] % arrivals.shape[0]
        arrivals[row, 0] = soft_density(weights, tally)
        for o in range(1, sum_f.shape[1]):
            arrivals[row, o] = sum_f[NOW, o]
        counters[NOTED] += 1
