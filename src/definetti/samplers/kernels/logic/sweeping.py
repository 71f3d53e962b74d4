"""Sweeps of the never-grounded kernel: a chunk of sites is chosen, drawn and added up, again and again.

Compiled once for all theories: what the generator writes for one, the update of its sites and the counts of its
queries, is called where its machine code stands (`Code`). `fill` and `fill_random` choose a chunk, `gather` adds up.
"""
# pyright: reportCallIssue=false

from typing import NamedTuple

from numba import float64, int32, int64, uint64

from definetti.samplers.kernels.compiling import njit
from definetti.samplers.kernels.linking import Whole
from definetti.samplers.kernels.logic.drawing import LOOK
from definetti.samplers.kernels.logic.folding import end_sweep, fold, fold_blocks, fold_tied, occupy
from definetti.samplers.kernels.logic.intrinsics import BARE
from definetti.samplers.kernels.logic.levels import exchange, measure, note_arrival, tilt_sites
from definetti.samplers.kernels.logic.relational import (
    ENTRY,
    FAILED,
    FIXED,
    ON,
    OPEN,
    OWN,
    POSITION,
    PREDICATE,
    RANDOM,
    SWEEP,
    UPDATES,
    VALUES,
    begin_sweep,
    fill,
    fill_random,
    uniforms,
)
from definetti.samplers.lowering.function import caller


class Code(NamedTuple):
    """What is different in the kernel of each theory: where its machine code stands."""

    tied: int  # whether sites have images, atoms tied to them
    update: int
    observe: int
    tallied: int
    violated: int = 0


entry = njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True, _nrt=False, pipeline_class=Whole)
inlined = njit(**BARE, forceinline=True)
#: The arrays that generated functions take; their other arguments are integers.
INTS, SHORT, REALS, WORDS, TABLE = int64[::1], int32[::1], float64[::1], uint64[::1], float64[:, ::1]
KINDS = {
    "numbers": INTS, "indices": SHORT, "reals": REALS, "words": WORDS, "bits": WORDS, "coords": int64[:, ::1],
    "uniform": REALS, "values": INTS, "chance": REALS, "fields": TABLE, "level": REALS, "tilt": REALS, "tally": REALS,
    "seen": TABLE,
}  # fmt: skip
STATE = ("numbers", "indices", "reals", "words", "bits")
DRAWN = ("coords", "uniform", "values", "chance", "fields", "level", "tilt", "tally")
call_update = caller(KINDS, *STATE, *DRAWN, "p", "m", "greedy")
call_observe = call_violated = caller(KINDS, *STATE, "seen")
call_tallied = caller(KINDS, *STATE, "tally")


# --- text ---


@inlined
def gather(tied, folds, p, lookup, coords, orbit, value, chance, sum_f, sum_g, m, values, counting):
    """Adds what was drawn to the orbits."""
    if tied != 0:
        fold_tied(folds, p, lookup, coords, orbit, value, chance, sum_f, sum_g, m, values, counting)
    elif values > 1:
        fold_blocks(folds, p, lookup, coords, orbit, value, chance, sum_f, sum_g, m, values, counting)
    else:
        fold(folds, p, lookup, coords, orbit, value, chance, sum_f, sum_g, m, values, counting)


@inlined
def choose(scan, entries, words, sorts, order, coords, clock, streams, scratch, room, longest, free, every):
    """The next chunk of a sweep: (how many sites, of which entry); 0 sites mean that the sweep is over."""
    if scan == RANDOM:
        return fill_random(entries, words, sorts, order, coords, clock, streams, scratch, room, longest, free, every)
    return fill(entries, words, sorts, order, coords, clock, streams, scratch, room, longest, free, every)


@entry
def advance_by(code, d, c, budget, sweeps, greedy):
    """Draws at most `budget` sites, or until `sweeps` sweeps have ended. Returns how many sites were drawn.

    Each site is drawn from the level's scale times its local field, plus the field of its orbit where there is one.
    With `greedy` = LOOK nothing moves: one pass over all sites, whose conditionals are folded and measured.
    `clock` says where the chain stands, so that the next call goes on inside the sweep; `clock[FAILED]` >= 0 is the
    place in `coords` of a site all of whose values have probability zero.
    """
    words, entries, sorts = d.words, d.entries, d.sorts
    bits, clock, streams = c.bits, c.clock, c.streams
    order, coords, uniform = c.order, c.coords, c.uniform
    value, chance = c.value, c.chance
    done, target, longest = 0, clock[SWEEP] + sweeps, uniform.shape[0]
    looking = greedy == LOOK
    scan = FIXED if looking else d.scan
    while done < budget and clock[SWEEP] < target:
        room = budget - done
        if clock[OPEN] == 0:
            begin_sweep(scan, clock, streams, uniform, order, sorts, entries)
        m, e = choose(
            scan, entries, words, sorts, order, coords, clock, streams, uniform, room, longest, d.free_sites,
            d.all_sites,
        )  # fmt: skip
        if m == 0:
            end_sweep(clock, c.sum_f, c.sum_g)
            call_observe(code.observe, d.numbers, d.indices, d.reals, words, bits, c.seen)
            continue
        p, values = entries[e, PREDICATE], entries[e, VALUES]
        if not looking:
            uniforms(streams, OWN, uniform, m)
        if looking or d.level[ON] != 0.0:
            tilt_sites(d.folds, p, d.lookup, coords, c.orbit, d.orbit_field, c.tilt, m, values)
        clock[FAILED] = call_update(
            code.update, d.numbers, d.indices, d.reals, words, bits, coords, uniform, value, chance, c.fields,
            d.level, c.tilt, c.tally, p, m, greedy,
        )  # fmt: skip
        if clock[FAILED] >= 0:
            break
        if looking:
            measure(value, chance, c.tilt, c.tally, m, values)
        gather(
            code.tied, d.folds, p, d.lookup, coords, c.orbit, value, chance, c.sum_f, c.sum_g, m, values,
            d.scan == RANDOM,
        )  # fmt: skip
        done += m
    clock[UPDATES] += done
    return done


@entry
def temper_by(code, d, c, ladder, sweeps):
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
                    d.scan, entries, words, sorts, c.order, c.coords, clock, streams, c.uniform, longest, longest,
                    d.free_sites, d.all_sites,
                )  # fmt: skip
                if m == 0:
                    break
                p, values = entries[e, PREDICATE], entries[e, VALUES]
                uniforms(streams, OWN, c.uniform, m)
                clock[FAILED] = call_update(
                    code.update, d.numbers, d.indices, ladder.reals[k], words, bits, c.coords, c.uniform, c.value,
                    c.chance, c.fields, ladder.levels[k], c.tilt, tally, p, m, 0,
                )  # fmt: skip
                if clock[FAILED] >= 0:
                    return done
                if k == count - 1:
                    gather(
                        code.tied, d.folds, p, d.lookup, c.coords, c.orbit, c.value, c.chance, c.sum_f, c.sum_g, m,
                        values, d.scan == RANDOM,
                    )  # fmt: skip
                done += m
        top = ladder.replica[count - 1]
        note_arrival(ladder.counters, ladder.arrivals, ladder.weights, ladder.tally[top], c.sum_f)
        end_sweep(clock, c.sum_f, c.sum_g)
        call_observe(code.observe, d.numbers, d.indices, d.reals, words, ladder.bits[top], c.seen)
        exchange(ladder.levels, ladder.weights, ladder.tally, ladder.soft, ladder.replica, ladder.heading,
                 ladder.counters, ladder.rejected, streams, c.uniform)  # fmt: skip
    clock[UPDATES] += done
    return done


@entry
def follow_by(code, d, c, watch, budget):
    """Draws `budget` sites, each a sample: `watch` keeps how long every atom was true. Nothing is folded."""
    done, longest = 0, c.uniform.shape[0]
    while done < budget:
        if c.clock[OPEN] == 0:
            begin_sweep(d.scan, c.clock, c.streams, c.uniform, c.order, d.sorts, d.entries)
        m, e = choose(
            d.scan, d.entries, d.words, d.sorts, c.order, c.coords, c.clock, c.streams, c.uniform, budget - done,
            longest, d.free_sites, d.all_sites,
        )  # fmt: skip
        if m == 0:
            end_sweep(c.clock, c.sum_f, c.sum_g)
            continue
        p = d.entries[e, PREDICATE]
        uniforms(c.streams, OWN, c.uniform, m)
        c.clock[FAILED] = call_update(
            code.update, d.numbers, d.indices, d.reals, d.words, c.bits, c.coords, c.uniform, c.value, c.chance,
            c.fields, d.level, c.tilt, c.tally, p, m, 0,
        )  # fmt: skip
        if c.clock[FAILED] >= 0:
            break
        occupy(watch.strides, watch.first, watch.held, watch.since, watch.total, watch.time, p, c.coords, c.value, m)
        done += m
    c.clock[UPDATES] += done
    return done


@entry
def tally_by(code, d, bits, tally):
    """Writes what a state's tally is, counted afresh."""
    return call_tallied(code.tallied, d.numbers, d.indices, d.reals, d.words, bits, tally)


@entry
def violated_by(code, d, c):
    """The number of violated groundings of hard formulas."""
    return call_violated(code.violated, d.numbers, d.indices, d.reals, d.words, c.bits, c.seen)
