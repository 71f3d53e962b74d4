"""The fixed text of generated kernels becomes machine code with its callers, and nowhere else."""

from __future__ import annotations

import small_theories as th
from numba import types
from numba.core.dispatcher import Dispatcher

from definetti.samplers.kernels.compiling import njit
from definetti.samplers.kernels.logic import folding, levels, relational
from definetti.samplers.kernels.logic.intrinsics import helper
from definetti.samplers.logic import engine


def test_helpers_are_compiled_once_and_with_their_callers() -> None:
    """A helper alone becomes no machine code, and none is compiled anew for a number that is written out."""
    engine.compile_model(th.zoo(9), {})
    parts = [f for m in (relational, folding, levels) for f in vars(m).values() if isinstance(f, Dispatcher)]
    given = [kinds for f in parts for kinds in f.overloads]
    libraries = [compiled.library for f in parts for compiled in f.overloads.values()]
    assert not [t for kinds in given for t in kinds if isinstance(t, types.Literal)]
    assert not [fn.name for lib in libraries for fn in lib._final_module.functions if not fn.is_declaration]


def test_a_helper_is_linked_into_its_callers() -> None:
    @helper
    def squared(x):
        return x * x

    @njit()
    def twice(x):
        return squared(x) + squared(x + 1)

    assert twice(3) == 25
    assert twice(1.5) == 8.5
    (library,) = {
        compiled.library for compiled in squared.overloads.values() if compiled.signature.args == (types.int64,)
    }
    assert [fn.name for fn in library._get_module_for_linking().functions if not fn.is_declaration]
