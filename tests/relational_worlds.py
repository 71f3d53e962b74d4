"""What tests of the relational kernel share: worlds put into chains, and one site's conditionals."""

from __future__ import annotations

import numpy as np
import relational_theories as th

from definetti.samplers.logic.data import Chain
from definetti.samplers.logic.engine import Relational, blank
from definetti.samplers.logic.known_bits import pack
from definetti.samplers.logic.state import put_atoms


def world_of(r: Relational, chain: Chain) -> th.World:
    return {(p, *at): bool(v) for p in r.model.predicates for at, v in np.ndenumerate(r.atoms(chain, p))}


def put_world(r: Relational, chain: Chain, world: th.World) -> None:
    for p, name in enumerate(r.model.predicates):
        tensor = np.zeros(r.model.shape(name), dtype=bool)
        for at in np.ndindex(tensor.shape):
            tensor[at] = world[(name, *at)]
        put_atoms(r.written, r.data, chain, p, tensor.shape, pack(tensor))


def random_state(model, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    tensors = {p: np.asarray(rng.random(model.shape(p)) < 0.3) for p in model.predicates}
    for p, predicate in model.predicates.items():
        if predicate.exclusive == (1,):
            chosen = rng.integers(model.shape(p)[1], size=model.shape(p)[0])
            tensors[p] = np.arange(model.shape(p)[1])[None, :] == chosen[:, None]
    return tensors


def chances(r: Relational, tensors: dict[str, np.ndarray], name: str, at: tuple[int, ...]) -> np.ndarray:
    """What the kernel says of one site: P(true), or the conditionals of a block's values."""
    chain = blank(r)
    for p, q in enumerate(r.model.predicates):
        put_atoms(r.written, r.data, chain, p, r.model.shape(q), pack(tensors[q]))
    chain.coords[: len(at), 0] = at
    d, c, p = r.data, chain, list(r.model.predicates).index(name)
    with np.errstate(over="ignore"):
        failed = r.kernel.update(
            d.numbers, d.indices, d.reals, d.words, c.bits, c.coords, c.uniform, c.value, c.chance, c.fields, p, 1, 0
        )
    assert failed < 0
    predicate = r.model.predicates[name]
    values = int(np.prod([r.model.shape(name)[j] for j in predicate.exclusive]))
    return c.chance[: values if predicate.exclusive else 1].copy()


def expected_chances(model, tensors: dict[str, np.ndarray], name: str, at: tuple[int, ...]) -> np.ndarray:
    if model.predicates[name].exclusive:
        fields = []
        for v in range(model.shape(name)[1]):
            changed = tensors[name].copy()
            changed[at[0]] = np.arange(changed.shape[1]) == v
            fields.append(th.dense_log_density(model, {**tensors, name: changed}))
        e = np.exp(np.array(fields) - max(fields))
        return e / e.sum()
    fields = []
    for v in (False, True):
        changed = tensors[name].copy()
        changed[at] = v
        fields.append(th.dense_log_density(model, {**tensors, name: changed}))
    return np.array([1 / (1 + np.exp(fields[0] - fields[1]))])
