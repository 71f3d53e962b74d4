"""Starts of relational chains: legal from the first state on, and spread over what is possible.

Each free site is drawn from the formulas that speak of it alone. Where hard formulas couple atoms, chain after chain
prefers one predicate true, then false: its sites are set so (unless a formula on the atom alone is clearly against
it), and the others give way in the repair, which moves sites to the value that violates less. What repair cannot mend
goes to a satisfiability solver, hard formulas alone being grounded; it starts from the same wishes. The solver learns
on the way, so it is asked chain after chain: the same seed gives the same starts, whatever the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from weakref import WeakKeyDictionary

import numpy as np

from definetti.constraints.logic.legal_states import Legal, legal
from definetti.constraints.logic.unsat_core import explain
from definetti.errors import ModelError, TooLarge, Unsatisfiable
from definetti.samplers.codegen.module import is_held
from definetti.samplers.logic import state
from definetti.samplers.logic.data import Chain, Data, logistic
from definetti.samplers.logic.engine import Relational, blank, repair, violations
from definetti.samplers.logic.known_bits import pack, unpack
from definetti.samplers.logic.tied_sites import spread
from definetti.samplers.logic.unary_fields import draw_atoms, own_field, whole_field

Wish = tuple[str, bool]
Try = tuple[Chain, Mapping[str, np.ndarray] | None]  # a start; where it is not legal, the atoms that it should have

#: A wish gives way where the formulas on the atom alone leave its value less than this.
UNLIKELY = 0.05

_SOLVERS: WeakKeyDictionary[Relational, Legal] = WeakKeyDictionary()


def wishes(r: Relational) -> list[Wish]:
    """The predicates that hard formulas hold, each preferred true, then each preferred false."""
    names = []
    for p, name in enumerate(r.model.predicates):
        free = r.known[name].free and not r.model.predicates[name].exclusive
        if free and is_held(r.theory, r.written.places.get(p, [])):
            names.append(name)
    return [(name, value) for value in (True, False) for name in names]


def first_states(r: Relational, seed: int, count: int, run: Callable[..., Iterable[Try]] = map) -> list[Chain]:
    """The starts of so many chains; `run` may try them in threads."""
    tries = list(run(lambda k: tried_start(r, seed, k), range(count)))
    return [mended(r, seed, k, *tried) for k, tried in enumerate(tries)]


def first_state(r: Relational, seed: int, number: int, atoms: Mapping[str, np.ndarray] | None = None) -> Chain:
    """The start of chain `number`; given atoms must be legal as they are."""
    return mended(r, seed, number, *tried_start(r, seed, number, atoms))


def tried_start(r: Relational, seed: int, number: int, atoms: Mapping[str, np.ndarray] | None = None) -> Try:
    """A start without the solver's help."""
    rng = np.random.default_rng([seed, number + 1])
    wished = wishes(r) if atoms is None else []
    attempts: list[Wish | bool | None] = [None, False, True] if not wished else [wished[number % len(wished)], None]
    made, words = blank(r), {}
    for attempt in attempts:
        made = blank(r)
        state.seed_chain(made, seed, number)
        words = drawn(r, rng, attempt, atoms)
        tied = spread(r.model, r.tied, words)
        if atoms is not None and any((tied[name] != words[name]).any() for name in words):
            raise Unsatisfiable("the given start violates a hard formula; start from a state that satisfies them all")
        words = tied
        put(r, made, words)
        if violations(r, made) == 0 or (atoms is None and repair(r, made, last(r, attempt))):
            return made, None
        if atoms is not None:
            raise Unsatisfiable("the given start violates a hard formula; start from a state that satisfies them all")
    return made, words


def mended(r: Relational, seed: int, number: int, made: Chain, wish: Mapping[str, np.ndarray] | None) -> Chain:
    """The chain at a start that was tried, made legal by the solver where it is not."""
    if wish is not None:
        put(r, made, solved(r, wish))
        if violations(r, made):
            raise AssertionError("the solver's state violates a hard formula")
    return fresh(r, seed, number, made)


def drawn(
    r: Relational, rng: np.random.Generator, attempt: Wish | bool | None, atoms: Mapping[str, np.ndarray] | None
) -> dict[str, np.ndarray]:
    """Every predicate's atoms as words at home: given, wished for, all alike, or drawn."""
    sizes = [s.size for s in r.model.sorts.values()]
    found = {}
    for p, name in enumerate(r.model.predicates):
        if atoms is not None and name in atoms:
            found[name] = pack(np.asarray(atoms[name], dtype=bool))
            continue
        own = own_field(r.theory.shapes, r.instances, r.written.places.get(p, []), sizes)
        preferred = attempt if isinstance(attempt, bool) else None
        found[name] = draw_atoms(r.model, name, r.known[name], own, rng, preferred)
        if isinstance(attempt, tuple) and attempt[0] == name:
            chance = logistic(whole_field(own, r.model.shape(name)))
            likely = (chance if attempt[1] else 1 - chance) >= UNLIKELY
            found[name] = _preferred(r, name, found[name], np.broadcast_to(likely, r.model.shape(name)), attempt[1])
    return found


def _preferred(r: Relational, name: str, words: np.ndarray, where: np.ndarray, value: bool) -> np.ndarray:
    """The wished value where it is likely enough and nothing is known."""
    mask = pack(where)
    known = r.known[name].mask
    if known is not None:
        mask &= ~known
    return words | mask if value else words & ~mask


def last(r: Relational, attempt: Wish | bool | None) -> Data | None:
    """The schedule with the preferred predicate at its end, so that the others give way to it."""
    if not isinstance(attempt, tuple):
        return None
    p = list(r.model.predicates).index(attempt[0])
    order = np.argsort(r.data.entries[:, 0] == p, kind="stable")
    return r.data._replace(entries=np.ascontiguousarray(r.data.entries[order]))


def put(r: Relational, chain: Chain, words: Mapping[str, np.ndarray]) -> None:
    for p, name in enumerate(r.model.predicates):
        state.put_atoms(r.written, r.data, chain, p, r.model.shape(name), words[name])


def fresh(r: Relational, seed: int, number: int, made: Chain) -> Chain:
    """A chain at the state of another, its streams and sums unused."""
    return at_state(r, seed, number, made.bits)


def at_state(r: Relational, seed: int, number: int, bits: np.ndarray) -> Chain:
    """A chain at a state, its streams and sums unused."""
    chain = blank(r)
    state.seed_chain(chain, seed, number)
    chain.bits[:] = bits
    clear_live(r, chain)
    return chain


def clear_live(r: Relational, chain: Chain) -> None:
    for p, name in enumerate(r.model.predicates):
        region = state.live_region(r.written, r.data, chain, p, r.model.shape(name))
        if region is not None:
            region[:] = 0


def solver_of(r: Relational) -> Legal:
    """The solver loaded with a model's hard formulas, made once."""
    if r not in _SOLVERS:
        _SOLVERS[r] = legal(r.model, r.source)
    return _SOLVERS[r]


def solved(r: Relational, words: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A legal state near a given one, by the solver; `Unsatisfiable` if there is none."""
    try:
        found = solver_of(r).solve({name: unpack(w, r.model.shape(name)) for name, w in words.items()})
    except TooLarge as large:
        raise ModelError(
            "no state that satisfies the hard formulas was found by repairing random and preferred states, and "
            f"a solver does not decide whether there is one; {large.cure}"
        ) from None
    if found is None:
        raise explain(r.source)
    return {name: pack(tensor) for name, tensor in found.items()}
