"""The part of every relational kernel around its generated updates: what they call, and how they are called.

Never imported: this text stands at the top of each generated file. Tests replace what stands above the line
`# --- text ---` to run the rest as plain Python.
The loop over sweeps is compiled once for all theories (`kernels/logic/sweeping.py`): only updates and counts are
generated, and a theory says where their machine code stands.
"""
# ruff: noqa: F401, F821
# pyright: reportUndefinedVariable=false, reportCallIssue=false

import math

import numpy as np

from definetti.samplers.kernels.compiling import njit
from definetti.samplers.kernels.logic.drawing import (
    BARRED,
    HARD,
    KEEP,
    LOOK,
    draw,
    draw_value,
    logistic,
    put_on_level,
    soften,
)
from definetti.samplers.kernels.logic.intrinsics import helper, lowest, peek, popcount, test, toggle
from definetti.samplers.kernels.logic.relational import (
    BROKEN,
    COUNTS,
    FOLLOWED,
    NOW,
    ON,
    PENALTY,
    SCALE,
    SHARE,
    SOFT,
    SQUARE,
    SUM,
    TILTED,
    I,
    U,
)
from definetti.samplers.kernels.logic.sweeping import (
    KINDS,
    Code,
    advance_by,
    follow_by,
    tally_by,
    temper_by,
    violated_by,
)
from definetti.samplers.lowering.function import located, lowered

entry = njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True, _nrt=False)


# --- text ---

ZERO, ONE, FULL = np.uint64(0), np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)


@helper
def mask(i, word):
    return ONE << U(i & 63) if i >> 6 == word else ZERO


@entry
def machine_code():
    """Where the machine code of the update and of the counts stands."""
    return addresses()


CODE = []  # once it is compiled


def code():
    if not CODE:
        CODE.append(Code(TIED, *machine_code()))
    return CODE[0]


def advance(d, c, budget, sweeps, greedy):
    return advance_by(code(), d, c, budget, sweeps, greedy)


def temper(d, c, ladder, sweeps):
    return temper_by(code(), d, c, ladder, sweeps)


def follow(d, c, watch, budget):
    return follow_by(code(), d, c, watch, budget)


def tallied(d, bits, tally):
    return tally_by(code(), d, bits, tally)


def violated(d, c):
    return violated_by(code(), d, c)
