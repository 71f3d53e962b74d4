"""Ground atoms as text: `Friends(Anna,Bob)`, without spaces, names that need it in quotes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from definetti.errors import UnknownName, suggestion
from definetti.model.logic.text import atom_name, unescaped
from definetti.model.logic.theory import MarkovLogic

_ARGUMENT = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|([^",()\s]+))\s*(,|$)""")


def atom_text(model: MarkovLogic, predicate: str, constants: Sequence[int]) -> str:
    sorts = model.predicates[predicate].sorts
    return atom_name(predicate, (model.sorts[s].constants[c] for s, c in zip(sorts, constants, strict=True)))


def find_atom(model: MarkovLogic, text: str) -> tuple[str, tuple[int, ...]]:
    """The predicate and the constants of a ground atom given as text."""
    name, _, rest = text.strip().partition("(")
    name = name.strip()
    if name not in model.predicates:
        raise UnknownName(f"the model has no predicate {name!r}{suggestion(name, model.predicates)}")
    sorts = model.predicates[name].sorts
    names = _arguments(rest.rstrip().removesuffix(")"))
    if len(names) != len(sorts):
        raise UnknownName(f"{name} has {len(sorts)} arguments ({', '.join(sorts)}); {text!r} gives {len(names)}")
    return name, tuple(model.sorts[s].index(n) for s, n in zip(sorts, names, strict=True))


def _arguments(text: str) -> list[str]:
    found, at = [], 0
    while at < len(text):
        match = _ARGUMENT.match(text, at)
        if match is None:
            raise UnknownName(f"cannot read the arguments {text!r}: names are separated by commas")
        quoted, plain, _ = match.groups()
        found.append(plain if plain is not None else unescaped(quoted))
        at = match.end()
    return found
