"""The part of every relational kernel around its generated updates: what they call, and the loop that calls them.

Never imported: this text stands at the top of each generated file. Tests replace what stands above the line
`# --- text ---` to run the rest as plain Python.
`choose` picks a chunk of sites, `update_*` (generated) draws them, `gather` adds up (`kernels/logic/`).
"""
# ruff: noqa: E741, F401, F821
# pyright: reportUndefinedVariable=false, reportCallIssue=false

import math

import numpy as np

from definetti.samplers.kernels.compiling import njit
from definetti.samplers.kernels.logic.folding import end_sweep, fold, fold_blocks, fold_tied, occupy
from definetti.samplers.kernels.logic.intrinsics import BARE, lowest, peek, popcount, test, toggle
from definetti.samplers.kernels.logic.levels import exchange, measure, note_arrival, tilt_sites
from definetti.samplers.kernels.logic.relational import (
    BROKEN,
    COUNTS,
    ENTRY,
    FAILED,
    FIXED,
    FOLLOWED,
    NOW,
    ON,
    OPEN,
    OWN,
    PENALTY,
    POSITION,
    PREDICATE,
    RANDOM,
    SCALE,
    SHARE,
    SOFT,
    SQUARE,
    SUM,
    SWEEP,
    TILTED,
    UPDATES,
    VALUES,
    begin_sweep,
    fill,
    fill_random,
    uniforms,
)
from definetti.samplers.lowering.function import lowered

helper = njit(**BARE)
entry = njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True, _nrt=False)


# --- text ---

U, I = np.uint64, np.int64
ZERO, ONE, FULL = np.uint64(0), np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)
KEEP = 2  # a kind of greed: sites that violate nothing stay as they are
LOOK = 3  # nothing moves and nothing is drawn: conditionals at the present state
BARRED = 1e300  # violations of a value that the evidence excludes
HARD = 1e300  # a violation that costs at least this is impossible


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
def put_on_level(fields, count, level, tilt, at):
    """A block's fields on a level; where violations cost a penalty, only what the evidence excludes stays forbidden."""
    for k in range(count):
        if fields[1, k] < BARRED:
            fields[0, k] *= level[SCALE]
            if level[ON] != 0.0:
                fields[0, k] += level[SHARE] * tilt[at + k]
            if level[PENALTY] < HARD:
                fields[0, k] -= level[PENALTY] * fields[1, k]
                fields[1, k] = 0.0


@helper
def soften(fields, count, current, greedy, chances, i):
    """The conditionals of a block's values. Says whether the state was illegal, unless it is being repaired."""
    least = fields[1, current]
    for k in range(count):
        if fields[1, k] < least:
            if greedy == 0 or greedy == LOOK:
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


@entry
def advance(d, c, budget, sweeps, greedy):
    """Draws at most `budget` sites, or until `sweeps` sweeps have ended. Returns how many sites were drawn.

    Each site is drawn from the level's scale times its local field, plus the field of its orbit where there is one.
    With `greedy` = LOOK nothing moves: one pass over all sites, whose conditionals are folded and measured.
    `clock` says where the chain stands, so that the next call goes on inside the sweep; `clock[FAILED]` >= 0 is the
    place in `coords` of a site all of whose values have probability zero.
    `choose`, `update`, `gather` and `observe` are named in the generated part.
    """
    words, entries, sorts = d.words, d.entries, d.sorts
    bits, clock, streams = c.bits, c.clock, c.streams
    order, coords, uniform = c.order, c.coords, c.uniform
    value, chance = c.value, c.chance
    done, target, longest = 0, clock[SWEEP] + sweeps, uniform.shape[0]
    looking = greedy == LOOK
    while done < budget and clock[SWEEP] < target:
        room = budget - done
        if clock[OPEN] == 0:
            begin_sweep(FIXED if looking else d.scan, clock, streams, uniform, order, sorts, entries)
        if looking:
            m, e = fill(
                entries, words, sorts, order, coords, clock, streams, uniform, room, longest, d.free_sites, d.all_sites
            )
        else:
            m, e = choose(
                entries, words, sorts, order, coords, clock, streams, uniform, room, longest, d.free_sites, d.all_sites
            )
        if m == 0:
            end_sweep(clock, c.sum_f, c.sum_g)
            observe(d.numbers, d.indices, d.reals, words, bits, c.seen)
            continue
        p, values = entries[e, PREDICATE], entries[e, VALUES]
        if not looking:
            uniforms(streams, OWN, uniform, m)
        if looking or d.level[ON] != 0.0:
            tilt_sites(d.folds, p, d.lookup, coords, c.orbit, d.orbit_field, c.tilt, m, values)
        clock[FAILED] = update(
            d.numbers, d.indices, d.reals, words, bits, coords, uniform, value, chance, c.fields, d.level, c.tilt,
            c.tally, p, m, greedy,
        )  # fmt: skip
        if clock[FAILED] >= 0:
            break
        if looking:
            measure(value, chance, c.tilt, c.tally, m, values)
        gather(d.folds, p, d.lookup, coords, c.orbit, value, chance, c.sum_f, c.sum_g, m, values, d.scan == RANDOM)
        done += m
    clock[UPDATES] += done
    return done


@entry
def temper(d, c, ladder, sweeps):
    """So many sweeps of parallel tempering: one on every level, then exchanges. Returns how many sites were drawn.

    Level k holds the state of replica `ladder.replica[k]`; the last level is the model, which alone is folded.
    """
    words, entries, sorts, clock, streams = d.words, d.entries, d.sorts, c.clock, c.streams
    count, longest, done = ladder.levels.shape[0], c.uniform.shape[0], 0
    for _ in range(sweeps):
        begin_sweep(d.scan, clock, streams, c.uniform, c.order, sorts, entries)
        for k in range(count):
            clock[ENTRY] = clock[POSITION] = 0
            bits, tally = ladder.bits[ladder.replica[k]], ladder.tally[ladder.replica[k]]
            while True:
                m, e = choose(
                    entries, words, sorts, c.order, c.coords, clock, streams, c.uniform, longest, longest,
                    d.free_sites, d.all_sites,
                )  # fmt: skip
                if m == 0:
                    break
                p, values = entries[e, PREDICATE], entries[e, VALUES]
                uniforms(streams, OWN, c.uniform, m)
                clock[FAILED] = update(
                    d.numbers, d.indices, ladder.reals[k], words, bits, c.coords, c.uniform, c.value, c.chance,
                    c.fields, ladder.levels[k], c.tilt, tally, p, m, 0,
                )  # fmt: skip
                if clock[FAILED] >= 0:
                    return done
                if k == count - 1:
                    gather(
                        d.folds, p, d.lookup, c.coords, c.orbit, c.value, c.chance, c.sum_f, c.sum_g, m, values,
                        d.scan == RANDOM,
                    )  # fmt: skip
                done += m
        top = ladder.replica[count - 1]
        note_arrival(ladder.counters, ladder.arrivals, ladder.weights, ladder.tally[top], c.sum_f)
        end_sweep(clock, c.sum_f, c.sum_g)
        observe(d.numbers, d.indices, d.reals, words, ladder.bits[top], c.seen)
        exchange(ladder.levels, ladder.weights, ladder.tally, ladder.soft, ladder.replica, ladder.heading,
                 ladder.counters, ladder.rejected, streams, c.uniform)  # fmt: skip
    clock[UPDATES] += done
    return done


@entry
def follow(d, c, watch, budget):
    """Draws `budget` sites, each a sample: `watch` keeps how long every atom was true. Nothing is folded."""
    done, longest = 0, c.uniform.shape[0]
    while done < budget:
        if c.clock[OPEN] == 0:
            begin_sweep(d.scan, c.clock, c.streams, c.uniform, c.order, d.sorts, d.entries)
        m, e = choose(
            d.entries, d.words, d.sorts, c.order, c.coords, c.clock, c.streams, c.uniform, budget - done, longest,
            d.free_sites, d.all_sites,
        )  # fmt: skip
        if m == 0:
            end_sweep(c.clock, c.sum_f, c.sum_g)
            continue
        p = d.entries[e, PREDICATE]
        uniforms(c.streams, OWN, c.uniform, m)
        c.clock[FAILED] = update(
            d.numbers, d.indices, d.reals, d.words, c.bits, c.coords, c.uniform, c.value, c.chance, c.fields, d.level,
            c.tilt, c.tally, p, m, 0,
        )  # fmt: skip
        if c.clock[FAILED] >= 0:
            break
        occupy(watch.strides, watch.first, watch.held, watch.since, watch.total, watch.time, p, c.coords, c.value, m)
        done += m
    c.clock[UPDATES] += done
    return done
