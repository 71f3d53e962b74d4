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
from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.codegen.expressions import TRUE, Argument
from definetti.samplers.codegen.module import is_held
from definetti.samplers.codegen.occurrences import Place, occurrences
from definetti.samplers.codegen.shapes import Instances, Shape
from definetti.samplers.logic.engine import Relational, blank, repair, violations
from definetti.samplers.logic.tensors import state
from definetti.samplers.logic.tensors.data import Chain, Data, logistic
from definetti.samplers.logic.tensors.known_bits import Known, home_words, pack, unpack, words_of
from definetti.samplers.logic.tensors.tied_sites import spread

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
    entries = r.data.entries[np.argsort(r.data.entries[:, 0] == p, kind="stable")]
    _, first, turn = np.unique(entries[:, -3], return_index=True, return_inverse=True)
    entries[:, -3], entries[:, -2] = np.argsort(np.argsort(first))[turn.ravel()], -1  # in this order, whatever the sets
    return r.data._replace(entries=np.ascontiguousarray(entries))


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


# --- each free site from the formulas that speak of it alone ----------------------------------------------------------

Field = tuple[float, list[tuple[dict[int, int], np.ndarray]]]

#: A field that differs from atom to atom is worked out only for predicates up to this many atoms.
LARGEST_FIELD = 20_000_000
ROWS_AT_ONCE = 1 << 22


def own_field(
    shapes: tuple[Shape, ...], instances: tuple[Instances, ...], places: list[Place], sizes: list[int]
) -> Field:
    """The local field of a predicate's atoms from formulas in which nothing else occurs.

    (what all atoms share, [(constants by argument, field)] for the others)
    """
    shared, special = 0.0, []
    for place in places:
        s = shapes[place.shape]
        alone = len(list(occurrences(s.body))) == 1 and len(place.goals) == 1 and place.goals[0].expression == TRUE
        if (
            not alone
            or s.hard
            or any(isinstance(left, Argument) for left, _ in place.guards)
            or set(s.plus) & set(place.rest)
        ):
            continue
        ground = place.times * place.goals[0].sign * np.prod([sizes[s.sorts[v]] for v in place.rest], dtype=float)
        if s.single:
            shared += ground * float(instances[place.shape].weights[0])
        else:
            special += varying(s, place, instances[place.shape], ground)
    return shared, special


def varying(s: Shape, place: Place, group: Instances, ground: float) -> list[tuple[dict[int, int], np.ndarray]]:
    """The fields from formulas with constants or `+` variables: axes of a field are arguments in rising order."""
    argument = dict(place.bound)
    order = np.argsort([argument[v] for v in s.plus])
    found = []
    for constants, weights in zip(group.constants, group.weights, strict=True):
        at = {j: int(constants[slot]) for j, slot in place.slot_of.items()}
        at |= {argument[v]: -1 for v in s.plus}
        found.append((at, ground * np.asarray(weights).transpose(order)))
    return found


def whole_field(field: Field, shape: tuple[int, ...]) -> np.ndarray:
    """The field as a tensor; 0-d if all atoms share it, or if a tensor would be too large for a mere start."""
    shared, special = field
    if not special or np.prod(shape, dtype=float) > LARGEST_FIELD:
        return np.asarray(shared)
    tensor = np.full(shape, shared)
    for at, values in special:
        index = tuple(at[j] if at.get(j, -1) >= 0 else slice(None) for j in range(len(shape)))
        wide = tuple(slice(None) if j in at else None for j in range(len(shape)) if at.get(j, -1) < 0)
        tensor[index] += values[wide]
    return tensor


def draw_atoms(
    model: MarkovLogic,
    name: str,
    known: Known,
    field: Field,
    rng: np.random.Generator,
    preferred: bool | None,
) -> np.ndarray:
    """A predicate's atoms as words at home: known ones as known, the others drawn (or all `preferred`)."""
    shape = model.shape(name)
    if not known.free:
        return np.zeros(home_words(shape), np.uint64) if known.truth is None else known.truth.copy()
    tensor = whole_field(field, shape)
    if model.predicates[name].exclusive:
        drawn = draw_blocks(np.broadcast_to(tensor, shape), model.predicates[name].exclusive, known, rng)
    elif preferred is not None:
        drawn = pack(np.broadcast_to(np.array(preferred), shape))
    else:
        drawn = bernoulli(logistic(tensor), shape, rng)
    if known.mask is not None and known.truth is not None:
        drawn = (drawn & ~known.mask) | known.truth
    return drawn


def bernoulli(chance: np.ndarray, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Independent bits, some rows at a time: a tensor of floats would be 64 times the size of the state."""
    if not shape:
        return pack(np.asarray(rng.random() < chance))
    rows, last = int(np.prod(shape[:-1], dtype=np.int64)), shape[-1]
    table = np.broadcast_to(chance, shape).reshape(rows, last) if chance.ndim else np.broadcast_to(chance, (rows, last))
    words = np.zeros((rows, words_of(last)), dtype=np.uint64)
    step = max(1, ROWS_AT_ONCE // max(last, 1))
    for r in range(0, rows, step):
        part = table[r : r + step]
        words[r : r + step] = pack(rng.random(part.shape) < part).reshape(len(part), -1)
    return words.ravel()


def draw_blocks(field: np.ndarray, exclusive: tuple[int, ...], known: Known, rng: np.random.Generator) -> np.ndarray:
    """One true value per block, by Gumbel's trick; values that are known false are left out."""
    shape = field.shape
    score = field + rng.gumbel(size=shape)
    if known.mask is not None and known.truth is not None:
        barred = unpack(known.mask, shape) & ~unpack(known.truth, shape)
        score = np.where(barred, -np.inf, score)
    order = tuple(j for j in range(len(shape)) if j not in exclusive) + tuple(exclusive)
    values = int(np.prod([shape[j] for j in exclusive]))
    table = score.transpose(order).reshape(-1, values)
    chosen = np.zeros(table.shape, dtype=bool)
    chosen[np.arange(len(table)), table.argmax(axis=1)] = True
    back = tuple(int(i) for i in np.argsort(order))
    return pack(chosen.reshape(tuple(shape[j] for j in order)).transpose(back))
