"""What a run was asked, apart from model and queries, as a tree that a checkpoint keeps; and back, checked."""

from __future__ import annotations

from dataclasses import asdict, fields, is_dataclass, replace
from typing import Any

import numpy as np

from definetti.errors import ModelError, Notice
from definetti.inference.question import Options
from definetti.samplers.registry import SAMPLERS
from definetti.symmetry.find import is_group


def replayable(options: Options) -> Options:
    """The same, with a group of Markov logic given by its kind: its search is repeated and its decisions are kept."""
    group = options.symmetries
    if not is_group(group) or group.model.kind == "graph":
        return options
    return replace(options, symmetries=group.kind, time_limit=group.time_limit)


def encoded(options: Options) -> dict[str, Any]:
    plain = {field.name: getattr(options, field.name) for field in fields(options)}
    group = options.symmetries
    plain["sampler"] = encoded_sampler(options.sampler)
    plain["symmetries"] = _group(group) if is_group(group) else group
    plain["said"] = [asdict(notice) for notice in options.said]
    return plain


def decoded(tree: Any, model: Any) -> Options:
    parts = dict(tree)
    parts["sampler"] = sampler_of(parts["sampler"])
    if isinstance(parts["symmetries"], dict):
        parts["symmetries"] = _group_of(parts["symmetries"], model)
    parts["said"] = tuple(Notice(**notice) for notice in parts["said"])
    return Options(**parts)


# --- samplers: by their names in the registry -------------------------------------------------------------------------


def encoded_sampler(value: Any) -> Any:
    if isinstance(value, str):
        return value
    name = {entry.class_name: name for name, entry in SAMPLERS.items()}.get(type(value).__name__)
    if name is None or SAMPLERS[name].sampler_class is not type(value):
        raise ModelError(f"a checkpoint cannot keep the sampler {value!r}: it is not one of {', '.join(SAMPLERS)}")
    settings = [field.name for field in fields(value) if field.init] if is_dataclass(value) else []
    parts = {setting: getattr(value, setting) for setting in settings}
    inner = {setting: encoded_sampler(part) if hasattr(part, "kinds") else part for setting, part in parts.items()}
    return {"sampler": name, "settings": inner}


def sampler_of(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    if "sampler" not in tree:
        raise ValueError
    settings = {
        name: sampler_of(part) if isinstance(part, dict) else tuple(part) if isinstance(part, list) else part
        for name, part in tree["settings"].items()
    }
    return SAMPLERS[tree["sampler"]].sampler_class(**settings)


# --- groups of factor graphs: by their generators, which are checked --------------------------------------------------


def _group(group: Any) -> dict[str, Any]:
    nothing, moved = np.zeros(0, np.int64), group.generators
    return {
        "sizes": np.array([len(points) for points, _ in moved], dtype=np.int64),
        "points": np.concatenate([nothing, *(points for points, _ in moved)]),
        "images": np.concatenate([nothing, *(images for _, images in moved)]),
        "order": None if group.order is None else f"{group.order:x}",
        "kind": group.kind,
        "notices": [asdict(notice) for notice in group.notices],
    }


def _group_of(tree: Any, model: Any) -> Any:
    from definetti.groups import PermutationGroup
    from definetti.model.graph.simplify import simplify
    from definetti.symmetry.graph.check import scope_index, violation
    from definetti.symmetry.graph.group import GraphSymmetries

    if model.kind == "logic":
        from definetti.model.logic.ground import ground

        model = ground(model)
    simple = simplify(model)
    literals = int(simple.literal_start[-1])
    points, images, bounds = tree["points"], tree["images"], np.cumsum(tree["sizes"])[:-1]
    generators = (
        list(zip(np.split(points, bounds), np.split(images, bounds), strict=True)) if len(tree["sizes"]) else []
    )
    for at, to in generators:
        if len(at) != len(to) or not np.array_equal(np.unique(at), np.unique(to)) or len(np.unique(at)) != len(at):
            raise ValueError
        if len(at) and not (at.min() >= 0 and at.max() < literals):
            raise ValueError
    if violation(scope_index(simple), generators) is not None:
        raise ValueError
    order = None if tree["order"] is None else int(tree["order"], 16)
    notices = tuple(Notice(**notice) for notice in tree["notices"])
    return GraphSymmetries(simple, PermutationGroup(literals, tuple(generators)), order, tree["kind"], notices)
