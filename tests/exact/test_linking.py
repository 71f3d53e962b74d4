"""The fixed text of generated kernels becomes machine code with its callers, and nowhere else."""

from __future__ import annotations

import small_theories as th
from numba import types
from numba.core.dispatcher import Dispatcher

from definetti.samplers.kernels.compiling import njit
from definetti.samplers.kernels.logic import drawing, folding, levels, relational, sweeping
from definetti.samplers.kernels.logic.intrinsics import helper
from definetti.samplers.logic import engine


def test_helpers_are_compiled_once_and_with_their_callers() -> None:
    """A helper alone becomes no machine code, and none is compiled anew for a number that is written out."""
    engine.compile_model(th.zoo(9), {})
    parts = [f for m in (relational, folding, levels, drawing) for f in vars(m).values() if isinstance(f, Dispatcher)]
    given = [kinds for f in parts for kinds in f.overloads]
    libraries = [compiled.library for f in parts for compiled in f.overloads.values()]
    assert not [t for kinds in given for t in kinds if isinstance(t, types.Literal)]
    assert not [fn.name for lib in libraries for fn in lib._final_module.functions if not fn.is_declaration]


def test_the_loop_over_sweeps_is_compiled_once_for_all_theories() -> None:
    """What is compiled for another theory, with other counts and another scan, is what was generated for it."""
    engine.compile_model(th.smokers(3), {}, scan="random")
    before = [*sweeping.advance_by.overloads]
    kernel = engine.compile_model(th.zoo(9), {}).kernel
    assert [*sweeping.advance_by.overloads] == before
    (own,) = (f for f in vars(kernel).values() if isinstance(f, Dispatcher) and f.py_func.__module__ == kernel.__name__
              and f.overloads and f.py_func.__name__ != "mask")  # fmt: skip
    assert own is kernel.machine_code


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
