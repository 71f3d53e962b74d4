"""Levels: other laws than the model's own from the same compiled kernel, and what is known of a state besides.

On a level each site is drawn from `scale` times its local field plus `share` times the field of its orbit, and a
violated grounding of a hard formula costs a finite `penalty`. So a chain at a level leaves

    exp(scale * log density - penalty * violations + share * fields of what is true)

unchanged: tempering is a smaller scale, annealing towards a product of independent sites trades scale for share. The
model itself is scale 1, share 0 and an infinite penalty, with the same draws as without a level.

On a level (`at_level`, that of the model included) the tally of a chain follows its state from flip to flip: `recount`
once, then `log_density`, `violated` and `log_product` cost nothing. `look` is a pass that draws
nothing and changes nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from definetti.errors import ModelError, Unsatisfiable
from definetti.samplers.codegen import layout
from definetti.samplers.logic.engine import FAILED, FOREVER, SCANS, Relational, frozen
from definetti.samplers.logic.tensors.data import Chain, Data, logistic, table_fields
from definetti.samplers.logic.tensors.state import counted_bits

SOFT, BROKEN, TILTED, NORMALISER, ENTROPY, DIVERGENCE, COUNTS = range(7)  # places of the tally
LOOK = 3  # a kind of greed of the kernel
STEEPNESS = 16.0  # what a violation costs on the path from a product to the model, by its level


@dataclass(frozen=True, eq=False)
class Level:
    """How sites are drawn: from scale · local field − penalty · violations + share · field of the orbit.

    Parameters
    ----------
    scale : float
        What the model's own local fields are multiplied by.
    penalty : float
        What a violated grounding of a hard formula costs; infinite: it is impossible.
    field : array, optional
        One number per orbit: for a binary atom the log odds, for a value of an exactly-one block a log weight. A tied
        class has the field of its leading atom; atoms that are tied within a predicate must have equal fields.
    share : float
        What these are multiplied by.
    """

    scale: float = 1.0
    penalty: float = math.inf
    field: np.ndarray | None = None
    share: float = 0.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.scale) or not math.isfinite(self.share) or not self.penalty >= 0:
            raise ModelError(f"a level needs finite scales and a penalty of at least 0, got {self}")


MODEL = Level()


def between(t: float, field: np.ndarray) -> Level:
    """The law at t on the path from a product of sites with these fields (t = 0) to the model (t = 1).

    log f_t = t (log f − 16 violations) + (1 − t) log q below 1; the model with its hard formulas at 1.
    """
    return Level(t, STEEPNESS * t if t < 1.0 else math.inf, field, 1.0 - t)


def at_level(r: Relational, level: Level) -> Relational:
    """The compiled model on a level: `advance` draws from it. Nothing is compiled; give it the model's own `r`."""
    field = np.zeros(r.orbit_count) if level.field is None else np.asarray(level.field, dtype=float)
    if field.shape != (r.orbit_count,) or not np.isfinite(field).all():
        raise ModelError(f"the fields of a level must be {r.orbit_count} finite numbers, one per orbit")
    numbers = (level.scale, level.penalty, level.share, float(level.field is not None), 1.0)
    data = r.data._replace(
        level=frozen(numbers, np.float64),
        orbit_field=frozen(np.append(0.0, field), np.float64),
        reals=r.data.reals if level.field is not None or level.scale == 1.0 else scaled_tables(r, level.scale),
    )
    return replace(r, data=data)


def scaled_tables(r: Relational, scale: float) -> np.ndarray:
    """The kernel's real numbers with its tables of conditionals at another scale; the weights stay."""
    reals = np.array(r.data.reals)
    sizes = [s.size for s in r.model.sorts.values()]
    for p, (field, _) in table_fields(r.written, sizes, single_weights(r)).items():
        place = r.written.layout.place.get(layout.table(p))  # None: of a predicate that has no table
        at = -1 if place is None else int(r.data.numbers[place])
        if field is not None and at >= 0:
            reals[at : at + field.size] = logistic(scale * field)
    return frozen(reals, np.float64)


def single_weights(r: Relational) -> dict[int, float]:
    """The weights of the shapes that have one."""
    return {s: float(g.weights[0]) for s, g in enumerate(r.instances) if r.theory.shapes[s].single}


def backwards(r: Relational) -> Relational:
    """The compiled model with sweeps in reversed order.

    Averaged over the orders of constants, such a sweep is the time reversal of a sweep of `r`: reversing a raster over
    all axes is a raster over reversed orders, which have the same law, so that reversing the entries of the schedule is
    enough (and going over the other half of a symmetric relation).
    """
    if SCANS[r.data.scan] == "random":
        return r
    if SCANS[r.data.scan] == "fixed":
        raise ModelError("a fixed scan cannot be run backwards; use the symmetric or the random one")
    entries = np.array(r.data.entries[::-1])
    entries[:, -3] = entries[:, -3].max(initial=0) - entries[:, -3]  # turns; sets of them are shuffled as before
    entries[:, -1] = np.array([0, 2, 1])[entries[:, -1]]
    return replace(r, data=r.data._replace(entries=frozen(entries, np.int64)))


# --- what is known of a state ----------------------------------------------------------------------------------------


def recount(r: Relational, chain: Chain) -> None:
    """Makes the chain's tally anew from its state, in absolute terms; from then on it follows every flip.

    The fields of a level are followed by sweeps on levels with these fields, also where their share is 0.
    """
    d = r.data
    bits = counted_bits(r.written, d, chain, [r.model.shape(name) for name in r.model.predicates])
    chain.tally[:] = 0.0
    with np.errstate(over="ignore"):
        r.kernel.tallied(d, bits, chain.tally)
    if d.level[3] != 0.0:
        seen = _looked(r, chain, d.orbit_field)
        chain.tally[TILTED], chain.tally[NORMALISER] = seen.tally[TILTED], seen.tally[NORMALISER]


def log_density(r: Relational, chain: Chain) -> float:
    """Σ weight · true groundings over the soft formulas: the model's log density where nothing is violated."""
    counts = chain.tally[COUNTS:]
    return float(chain.tally[SOFT] + sum(w * counts[s] for s, w in single_weights(r).items()))


def violated(chain: Chain) -> int:
    """Violated groundings of hard formulas."""
    return int(chain.tally[BROKEN])


def log_product(chain: Chain) -> float:
    """log q of the state, q the product of sites with the fields of the level that the tally was made on."""
    return float(chain.tally[TILTED] - chain.tally[NORMALISER])


@dataclass(frozen=True, eq=False)
class Look:
    """The full conditionals at a state. `f` and `g` are sums over the atoms of an orbit, not means."""

    f: np.ndarray  # int64[orbits]: true atoms
    g: np.ndarray  # float64[orbits]: conditionals
    entropy: float  # Σ over sites of the entropy of the conditional
    divergence: float  # Σ over sites of KL(conditional ‖ product)
    log_product: float  # log q of the state


def look(r: Relational, chain: Chain, field: np.ndarray | None = None) -> Look:
    """One pass over all sites that draws nothing and changes nothing.

    The conditionals are the model's; `field` are the fields of the product q. Without it q is uniform.
    """
    if r.data.level[0] != 1.0 or r.data.level[3] != 0.0:
        raise ModelError("a look is at the conditionals of the model: give the compiled model itself, on no level")
    field = np.zeros(r.orbit_count) if field is None else np.asarray(field, dtype=float)
    seen = _looked(r, chain, frozen(np.append(0.0, field), np.float64))
    product = float(seen.tally[TILTED] - seen.tally[NORMALISER])
    f, g = seen.sum_f[1, 1:], seen.sum_g[1, 1:]
    return Look(f, g, float(seen.tally[ENTROPY]), float(seen.tally[DIVERGENCE]), product)


def _looked(r: Relational, chain: Chain, orbit_field: np.ndarray) -> Chain:
    """What a look leaves in sums and tally of its own; the chain's state is shared, and left as it is."""
    data: Data = r.data._replace(
        level=frozen((r.data.level[0], r.data.level[1], 0.0, 0.0, 0.0), np.float64), orbit_field=orbit_field
    )
    own = {name: np.zeros_like(getattr(chain, name)) for name in ("clock", "sum_f", "sum_g", "seen", "tally")}
    own["clock"][3:5] = -1
    scratch = chain._replace(**own)
    with np.errstate(over="ignore"):
        r.kernel.advance(data, scratch, FOREVER, 1, LOOK)
    if scratch.clock[FAILED] >= 0:
        raise Unsatisfiable("a site has no possible value at this state: look at legal states, or on a softer level")
    return scratch
