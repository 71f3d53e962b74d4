"""Tied atoms of the relational engine: what the sites of their classes are, and states that respect them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from math import prod

import numpy as np

from definetti.constraints.logic.ties import Image, Tied
from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.logic.tensors.known_bits import Known, Turns, pack, unpack


def repeats(model: MarkovLogic, name: str, images: tuple[Image, ...]) -> np.ndarray | None:
    """Which atoms of a leading predicate are tied to one that comes before them in its box."""
    own = [image.places for image in images if image.predicate == name]
    if len(own) == 1:
        return None
    shape = model.shape(name)
    if own[1:] == [(1, 0)]:
        return np.tri(shape[0], dtype=bool, k=-1)
    flat = np.arange(prod(shape), dtype=np.int64).reshape(shape)
    least = np.minimum.reduce([flat.transpose(places) for places in own])
    return least < flat


def with_ties(
    model: MarkovLogic, known: Mapping[str, Known], classes: Tied
) -> tuple[dict[str, Known], dict[str, np.ndarray]]:
    """What is known with sites counted by classes (followers have none of their own), and the repeated atoms."""
    found, again = dict(known), {}
    for name, images in classes.items():
        for image in images:
            if image.predicate != name:
                found[image.predicate] = replace(known[image.predicate], free=0)
        repeated = repeats(model, name, images)
        if repeated is not None:
            mask = known[name].mask
            barred = repeated if mask is None else repeated | unpack(mask, model.shape(name))
            found[name] = replace(known[name], free=int((~barred).sum()))
            again[name] = repeated
    return found, again


def with_tied_turns(turns: Turns, classes: Tied) -> Turns:
    """Sets of predicates that change places, joined where classes of tied atoms lead from one to another: a symmetry
    may map the site of a class to an atom that does not lead."""
    found = [(set(names), turned) for names, turned in turns]
    for name, images in classes.items():
        members = {name, *(image.predicate for image in images)}
        met = [part for part in found if part[0] & members]
        if met:
            turned = any(part[1] for part in met) or any(i.places != tuple(sorted(i.places)) for i in images)
            found = [part for part in found if part not in met]
            found.append((members.union(*(part[0] for part in met)), turned))
    return tuple((frozenset(names), turned) for names, turned in found)


def apart(model: MarkovLogic, known: Mapping[str, Known], name: str) -> tuple[tuple[int, int], ...]:
    """Pairs of arguments such that atoms with equal constants there are all known to be false."""
    sorts, here = model.predicates[name].sorts, known[name]
    if here.mask is None or here.truth is None:
        return ()
    found = []
    false = unpack(here.mask, model.shape(name)) & ~unpack(here.truth, model.shape(name))
    for i, j in combinations(range(len(sorts)), 2):
        if sorts[i] == sorts[j] and np.diagonal(false, axis1=i, axis2=j).all():
            found.append((i, j))
    return tuple(found)


def spread(model: MarkovLogic, classes: Tied, words: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The state in which every tied atom has the value that its class's first atom has."""
    out = dict(words)
    for name, images in classes.items():
        tensor = unpack(words[name], model.shape(name))
        repeated = repeats(model, name, images)
        if repeated is not None:
            first = tensor & ~repeated
            tensor = np.logical_or.reduce([first.transpose(i.places) for i in images if i.predicate == name])
        for image in images:
            value = tensor if image.sign else ~tensor
            out[image.predicate] = pack(np.ascontiguousarray(value.transpose(image.places)))
    return out
