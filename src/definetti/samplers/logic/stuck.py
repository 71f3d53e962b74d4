"""Atoms that a run could never have moved: their conditional was 0 or 1 at every update of every chain.

Where all chains hold such an atom at one value it is *frozen*, unless the theory forces that value (then the answer
is exact, and a solver says so); where they hold it at different values the chains are *divided*. Neither is seen in a
number that symmetry makes look perfect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from definetti.constraints.logic.legal_states import Legal
from definetti.errors import Notice, TooLarge
from definetti.model.logic.text import atom_text
from definetti.samplers.logic.engine import Relational
from definetti.samplers.logic.tensors import state
from definetti.samplers.logic.tensors.data import Chain
from definetti.samplers.logic.tensors.known_bits import unpack
from definetti.symmetry.logic.renaming import RenamingSymmetries

FEWEST_BATCHES = 10
MOST_ALIKE = 0.6  #: correlation of neighbouring batches
MOST_ASKED = 200  #: orbits whose representative a solver is asked about
CURE = "single-site moves cannot reach every state; the answer stands for the part they can reach"


def held(r: Relational, chains: Sequence[Chain]) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """(predicate, rows of atoms that no chain could have moved, their values by chain), where there are any."""
    for p, name in enumerate(r.model.predicates):
        shape = r.model.shape(name)
        regions = [state.live_region(r.written, r.data, chain, p, shape) for chain in chains]
        if not regions or regions[0] is None:
            continue
        live = np.bitwise_or.reduce([region for region in regions if region is not None])
        mask = r.known[name].mask
        still = ~unpack(live if mask is None else live | mask, shape)
        for image in r.tied.get(name, ()):  # a class could move if one of its atoms was seen to
            still &= still.transpose(image.places) if image.predicate == name else True
        if still.any():
            values = np.stack([r.atoms(chain, name)[still] for chain in chains])
            yield name, np.argwhere(still), values


def stuck_notices(
    group: RenamingSymmetries,
    found: Iterable[tuple[str, np.ndarray, np.ndarray]],
    solver: Callable[[], Legal],
) -> list[Notice]:
    """What is frozen or divided among what is `held`; nothing where every such atom is forced."""
    frozen: list[tuple[int, str]] = []
    divided: list[tuple[int, str]] = []
    unsure = False
    for name, rows, values in found:
        agree = (values == values[:1]).all(axis=0)
        if not agree.all():
            divided.append((int((~agree).sum()), atom_text(group.model, name, rows[~agree][0].tolist())))
        if agree.any():
            try:
                left = unforced(solver(), group, name, rows[agree], values[0, agree])
            except TooLarge:
                left, unsure = rows[agree], True
            if len(left):
                frozen.append((len(left), atom_text(group.model, name, left[0].tolist())))
    out = []
    if frozen:
        some = ", ".join(text for _, text in frozen[:3])
        rest = "; whether the hard formulas force them is too large a question" if unsure else ""
        text = f"{sum(n for n, _ in frozen)} atoms could not move at any update ({some}){rest}; {CURE}"
        out.append(Notice("frozen", text))
    if divided:
        some = ", ".join(text for _, text in divided[:3])
        text = (
            f"chains hold {sum(n for n, _ in divided)} atoms at different values and cannot move them ({some}); {CURE}"
        )
        out.append(Notice("divided", text))
    return out


def slow_notices(group: RenamingSymmetries, f: np.ndarray) -> list[Notice]:
    """Batches of a chain that resemble the one before: it crosses between regions too rarely for its error to be known.

    `f`: batch means [batch, chain, orbit]. Asked only where hard formulas hold atoms, which make such regions.
    """
    batches, chains, _ = f.shape
    if batches < FEWEST_BATCHES or chains < 2:
        return []
    apart = f - f.mean(axis=(0, 1))
    spread = (apart**2).mean(axis=(0, 1))
    next_ = (apart[1:] * apart[:-1]).mean(axis=(0, 1))
    alike = np.where(spread > 1e-12, next_ / np.maximum(spread, 1e-300), 0.0)
    worst = int(alike.argmax()) if alike.size else 0
    if not alike.size or alike[worst] < MOST_ALIKE:
        return []
    name = group.orbits[worst].representative
    text = f"neighbouring batches of a chain are alike (correlation {alike[worst]:.2f} for {name})"
    return [Notice("not-mixed", f"{text}: the chains cross between regions of the states too rarely; {CURE}")]


def unforced(solver: Legal, group: RenamingSymmetries, name: str, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The rows whose other value some legal state has. One atom speaks for its orbit: the theory is the same there."""
    orbit = group.orbit_numbers(name, rows)
    key = np.where(orbit >= 0, orbit, orbit.max(initial=0) + 1 + np.arange(len(orbit)))
    found, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    if len(found) > MOST_ASKED:
        raise TooLarge("the number of orbits of atoms that did not move", len(found), MOST_ASKED, "use symmetries")
    free = [solver.possible(name, rows[i].tolist(), not bool(values[i])) for i in first]
    return rows[np.array(free, dtype=bool)[inverse.ravel()]]
