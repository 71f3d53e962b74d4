"""Chains on levels: fields of orbits, what is measured at a state, and exchanges between the levels of a ladder."""
# pyright: reportCallIssue=false

import math

from definetti.samplers.kernels.logic.folding import orbits, put_block_values
from definetti.samplers.kernels.logic.intrinsics import helper, part
from definetti.samplers.kernels.logic.relational import (
    BROKEN,
    COUNTS,
    DIVERGENCE,
    ENTROPY,
    NORMALISER,
    NOW,
    OWN,
    PENALTY,
    SCALE,
    SOFT,
    TILTED,
    I,
    uniforms,
)

# --- text ---


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
