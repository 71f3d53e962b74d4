"""Bugs planted into pure Python modules that are in use: other modules keep the functions that they imported.

The module's source is run again with the bug in it, and every function that comes out different gets the other code
for the time of a `with`. Generated and compiled kernels are changed as text instead (`uncompiled.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType, ModuleType


@contextmanager
def planted(module: ModuleType, old: str, new: str) -> Iterator[None]:
    """`new` in place of every `old` in the source of a module."""
    assert module.__file__ is not None
    text = Path(module.__file__).read_text(encoding="utf-8")
    assert old in text, f"the source of {module.__name__} no longer contains {old!r}"
    names = {"__name__": module.__name__, "__file__": module.__file__}
    exec(compile(text.replace(old, new), module.__file__, "exec"), names)
    changed = {
        function: other.__code__
        for place, function in _functions(vars(module), module.__name__).items()
        if (other := _functions(names, module.__name__).get(place)) and other.__code__ != function.__code__
    }
    assert changed, f"{old!r} stands in no function of {module.__name__}"
    real = {function: function.__code__ for function in changed}
    try:
        for function, code in changed.items():
            function.__code__ = code
        yield
    finally:
        for function, code in real.items():
            function.__code__ = code


def _functions(names: dict, module: str) -> dict[str, FunctionType]:
    """By name, those in classes too; what was imported from elsewhere is left out."""
    out = {}
    for name, value in names.items():
        inner = getattr(value, "fget", None) or getattr(value, "func", None) or getattr(value, "__wrapped__", value)
        if isinstance(inner, FunctionType) and inner.__module__ == module:
            out[name] = inner
        elif isinstance(value, type) and value.__module__ == module:
            out |= {f"{name}.{inside}": found for inside, found in _functions(dict(vars(value)), module).items()}
    return out
