"""What tests of the relational kernel share: a formula interpreter that shares nothing with it, worlds put into chains,
and one site's conditionals.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping

import numpy as np

from definetti.lumping.atom_generators import GroundAtom
from definetti.model.logic.theory import (
    And,
    Atom,
    Equal,
    Exist,
    Forall,
    Formula,
    Iff,
    Implies,
    MarkovLogic,
    Not,
    Or,
    Term,
    Truth,
    Variable,
    WeightedFormula,
)
from definetti.samplers.logic.engine import Relational, blank
from definetti.samplers.logic.tensors.data import Chain
from definetti.samplers.logic.tensors.known_bits import pack
from definetti.samplers.logic.tensors.state import put_atoms
from definetti.symmetry.logic.renaming import RenamingSymmetries

World = dict[tuple, bool]


# --- the interpreter --------------------------------------------------------------------------------------------------


def truth(f: Formula, env: Mapping[str, int], world: World, sizes: Mapping[str, int]) -> bool:
    def value(t: Term) -> int:
        return env[t.name] if isinstance(t, Variable) else t.index

    match f:
        case Truth(v):
            return v
        case Atom(p, args):
            return world[(p, *map(value, args))]
        case Equal(a, b):
            return value(a) == value(b)
        case Not(a):
            return not truth(a, env, world, sizes)
        case And(parts):
            return all(truth(p, env, world, sizes) for p in parts)
        case Or(parts):
            return any(truth(p, env, world, sizes) for p in parts)
        case Implies(a, b):
            return not truth(a, env, world, sizes) or truth(b, env, world, sizes)
        case Iff(a, b):
            return truth(a, env, world, sizes) == truth(b, env, world, sizes)
        case Exist(names, body) | Forall(names, body):
            boxes = itertools.product(*(range(sizes[n]) for n in names))
            results = (truth(body, {**env, **dict(zip(names, b, strict=True))}, world, sizes) for b in boxes)
            return any(results) if isinstance(f, Exist) else all(results)
    raise AssertionError(f)


def groundings(model: MarkovLogic, f: WeightedFormula) -> Iterator[dict[str, int]]:
    for values in itertools.product(*(range(model.sorts[f.sorts[v]].size) for v in f.free)):
        yield dict(zip(f.free, values, strict=True))


def mentions(f: Formula, env: Mapping[str, int], target: tuple) -> bool:
    """Whether some atom of the grounding can be the target, quantified variables taking any value."""
    match f:
        case Atom(p, args):
            values = [env.get(t.name) if isinstance(t, Variable) else t.index for t in args]
            return p == target[0] and all(v in (None, c) for v, c in zip(values, target[1:], strict=True))
        case Not(a):
            return mentions(a, env, target)
        case And(parts) | Or(parts):
            return any(mentions(p, env, target) for p in parts)
        case Implies(a, b) | Iff(a, b):
            return mentions(a, env, target) or mentions(b, env, target)
        case Exist(_, body) | Forall(_, body):
            return mentions(body, env, target)
    return False


def weight_of(f: WeightedFormula, env: Mapping[str, int]) -> float:
    assert f.weight is not None
    return float(np.asarray(f.weight)[tuple(env[v] for v in f.plus)])


def log_density(model: MarkovLogic, world: World) -> float:
    """The unnormalised log-density: -inf where a hard grounding is violated."""
    total = 0.0
    for f in model.formulas:
        sizes = {v: model.sorts[s].size for v, s in f.sorts.items()}
        for env in groundings(model, f):
            true = truth(f.body, env, world, sizes)
            if f.hard and not true:
                return -math.inf
            total += weight_of(f, env) if true and not f.hard else 0.0
    return total


def energies(model: MarkovLogic, world: World) -> tuple[float, int]:
    """(weighted true groundings, violated hard ones) by the independent interpreter."""
    soft, broken = 0.0, 0
    for f in model.formulas:
        sizes = {v: model.sorts[s].size for v, s in f.sorts.items()}
        for env in groundings(model, f):
            true = truth(f.body, env, world, sizes)
            broken += f.hard and not true
            soft += weight_of(f, env) if true and not f.hard else 0.0
    return soft, broken


def local(model: MarkovLogic, world: World, target: tuple) -> tuple[float, int]:
    """(log-density, violated hard groundings) from the groundings that mention an atom."""
    total, violated = 0.0, 0
    for f in model.formulas:
        sizes = {v: model.sorts[s].size for v, s in f.sorts.items()}
        for env in groundings(model, f):
            if mentions(f.body, env, target):
                true = truth(f.body, env, world, sizes)
                violated += f.hard and not true
                total += weight_of(f, env) if true and not f.hard else 0.0
    return total, violated


def conditional(model: MarkovLogic, world: World, target: tuple) -> float | None:
    """P(target | rest); None if both values violate a hard grounding that mentions it."""
    high, y1 = local(model, {**world, target: True}, target)
    low, y0 = local(model, {**world, target: False}, target)
    if y1 or y0:
        return None if y1 and y0 else float(bool(y0))
    return 1 / (1 + math.exp(low - high))


def atoms_of(model: MarkovLogic) -> list[tuple]:
    return [(p, *c) for p in model.predicates for c in itertools.product(*map(range, model.shape(p)))]


def dense(f: Formula, axes: list[str], sizes: Mapping[str, int], tensors: Mapping[str, np.ndarray]) -> np.ndarray:
    """A formula's truth over the box of all variables in `axes`, by broadcasting: fast, and nothing like the kernel."""

    def index(t: Term) -> np.ndarray | int:
        if not isinstance(t, Variable):
            return t.index
        shape = [1] * len(axes)
        shape[axes.index(t.name)] = sizes[t.name]
        return np.arange(sizes[t.name]).reshape(shape)

    match f:
        case Atom(p, args):
            return np.asarray(tensors[p][tuple(index(t) for t in args)])
        case Equal(a, b):
            return np.asarray(index(a) == index(b))
        case Not(a):
            return ~dense(a, axes, sizes, tensors)
        case And(parts) | Or(parts):
            out = dense(parts[0], axes, sizes, tensors)
            for part in parts[1:]:
                more = dense(part, axes, sizes, tensors)
                out = out & more if isinstance(f, And) else out | more
            return out
        case Implies(a, b):
            return ~dense(a, axes, sizes, tensors) | dense(b, axes, sizes, tensors)
        case Iff(a, b):
            return dense(a, axes, sizes, tensors) == dense(b, axes, sizes, tensors)
        case Exist(names, body) | Forall(names, body):
            out = dense(body, axes, sizes, tensors)
            for name in names:
                axis = axes.index(name)
                out = out.any(axis, keepdims=True) if isinstance(f, Exist) else out.all(axis, keepdims=True)
            return out
    raise AssertionError(f)


def dense_log_density(model: MarkovLogic, tensors: Mapping[str, np.ndarray]) -> float:
    """The log-density of a model without hard formulas."""
    total = 0.0
    for f in model.formulas:
        axes = list(f.sorts)
        axes = [*f.free, *(v for v in axes if v not in f.free)]
        sizes = {v: model.sorts[s].size for v, s in f.sorts.items()}
        true = dense(f.body, axes, sizes, tensors)
        box = tuple(sizes[v] for v in f.free) + (1,) * (len(axes) - len(f.free))
        true = np.broadcast_to(true, np.broadcast_shapes(true.shape, box)) if axes else true
        if f.plus:
            shape = [sizes[v] if v in f.plus else 1 for v in axes]
            total += float((true * np.asarray(f.weight).reshape(shape)).sum())
        else:
            total += float(np.asarray(f.weight)) * int(true.sum())
    return total


# --- worlds in chains -------------------------------------------------------------------------------------------------


def world_of(r: Relational, chain: Chain) -> World:
    return {(p, *at): bool(v) for p in r.model.predicates for at, v in np.ndenumerate(r.atoms(chain, p))}


def put_world(r: Relational, chain: Chain, world: World) -> None:
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
            d.numbers, d.indices, d.reals, d.words, c.bits, c.coords, c.uniform, c.value, c.chance, c.fields, d.level,
            c.tilt, c.tally, p, 1, 0,
        )  # fmt: skip
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
            fields.append(dense_log_density(model, {**tensors, name: changed}))
        e = np.exp(np.array(fields) - max(fields))
        return e / e.sum()
    fields = []
    for v in (False, True):
        changed = tensors[name].copy()
        changed[at] = v
        fields.append(dense_log_density(model, {**tensors, name: changed}))
    return np.array([1 / (1 + np.exp(fields[0] - fields[1]))])


def literal_image(symmetries: RenamingSymmetries, element: np.ndarray, atom: GroundAtom) -> tuple[GroundAtom, bool]:
    """Where an element sends a core atom, and whether the image has its value (else the opposite one)."""
    model, nodes, (name, row) = symmetries.model, symmetries.constants.nodes, atom
    starts = [nodes.start[s] for s in model.predicates[name].sorts]
    moved = [int(element[a + c]) - a for a, c in zip(starts, row, strict=True)]
    if symmetries.theory is None:
        return (name, tuple(moved)), True
    image = symmetries.theory.symmetry(element).moves.get(name)
    if image is None:
        return (name, tuple(moved)), True
    return (image.predicate, tuple(moved[k] for k in image.places)), image.sign
