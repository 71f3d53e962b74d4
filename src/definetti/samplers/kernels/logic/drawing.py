"""Draws of the never-grounded kernel: one site by its conditional, binary or of several values."""
# pyright: reportCallIssue=false

import math

from definetti.samplers.kernels.logic.intrinsics import part
from definetti.samplers.kernels.logic.relational import ON, PENALTY, SCALE, SHARE

# --- text ---

KEEP = 2  # a kind of greed: sites that violate nothing stay as they are
LOOK = 3  # nothing moves and nothing is drawn: conditionals at the present state
BARRED = 1e300  # violations of a value that the evidence excludes
HARD = 1e300  # a violation that costs at least this is impossible


@part
def logistic(h):
    e = math.exp(-abs(h))
    return 1.0 / (1.0 + e) if h >= 0.0 else e / (1.0 + e)


@part
def draw(uniform, chance):
    """The one line that draws a binary site."""
    return uniform < chance


@part
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


@part
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


@part
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
