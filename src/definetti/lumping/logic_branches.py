"""The never-grounded kernel as plain Python: the text of the template, of the runtime and of the generator, uncompiled,
with every branch of a site's draw followed. What `logic_sites.py` is verified with, and the judge in tests.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from definetti.lumping.logic_sites import put_state, sites_of, worlds
from definetti.lumping.state_space import StateSpace
from definetti.model.logic.atom_literals import layout
from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.kernels import rng
from definetti.samplers.kernels.logic import drawing, folding, levels, relational, sweeping
from definetti.samplers.logic.engine import advance, blank, compile_model

MARK = "# --- text ---\n"  # what stands above is for the compiled kernel alone
HEADER = """
import math

import numpy as np


def helper(function):
    return function


def located(kinds, *functions):
    return lambda: (0,) * len(functions)


def call_update(at, *arguments):
    return update(*arguments)


def call_observe(at, *arguments):
    return count_observe(*arguments)


def call_tallied(at, *arguments):
    return count_tallied(*arguments)


def call_violated(at, *arguments):
    return count_violated(*arguments)


entry = inlined = part = lowered = helper


def popcount(x):
    return int(x).bit_count()


def lowest(x):
    return (int(x) & -int(x)).bit_length() - 1


def peek(array, index):
    return array[index]


def cell(table, row, column):
    return table[row, column]


def test(words, index, bit):
    return words[index] >> np.uint64(bit & 63) & np.uint64(1)


def toggle(words, index, bit):
    words[index] ^= np.uint64(1) << np.uint64(bit & 63)


"""


def plain_kernel(text: str) -> ModuleType:
    """What `load_kernel` makes of a kernel's text, uncompiled. The text has been written by us: no name of a model is
    in it."""
    modules = (relational, folding, levels, drawing, sweeping)
    runtime = [Path(str(module.__file__)).read_text(encoding="utf-8") for module in modules]
    whole = "\n\n".join([HEADER, *(part.split(MARK)[1] for part in (*runtime, text))])
    module = ModuleType("definetti_relational_plain")
    names = {"Code": sweeping.Code, "KINDS": sweeping.KINDS}
    module.__dict__.update(next_word=rng.next_word.py_func, unit=rng.unit.py_func, **names)
    exec(compile(whole, "<relational kernel>", "exec"), module.__dict__)
    return module


def followed_sites(space: StateSpace, model: MarkovLogic) -> dict[int, np.ndarray]:
    """First variable of each site → float64[S, S]: what its update does, by the kernel's own text."""
    r = compile_model(model, {}, scan="fixed", load=plain_kernel)
    kernel: Any = r.kernel
    some, chain, boxes = worlds(space, model), blank(r), layout(model)
    names, sites, found = list(model.predicates), sites_of(r), {}
    for _ in range(r.free_sites):
        clock, order, out = chain.clock.copy(), chain.order.copy(), np.zeros((len(space), len(space)))
        for s in range(len(space)):
            branch, count = 0, 2
            while branch < count:
                put_state(r, chain, some, s)
                chain.clock[:], chain.order[:] = clock, order
                seen: list[Any] = []
                kernel.draw = lambda uniform, chance, b=branch, seen=seen: seen.append([1.0 - chance, chance]) or b == 1
                kernel.draw_value = lambda uniform, chances, start, values, b=branch, seen=seen: (
                    seen.append(chances[start : start + values].tolist()) or b
                )
                advance(r, chain, 1)
                count = len(seen[0])
                if seen[0][branch] > 0:
                    out[s, _number(space, r, chain)] += seen[0][branch]
                branch += 1
        name = names[int(r.data.entries[chain.clock[relational.ENTRY], relational.PREDICATE])]
        first = boxes[name].literal(chain.coords[: len(model.shape(name)), 0].tolist())[0]
        assert first in sites
        found[first] = out
    return found


def _number(space: StateSpace, r: Any, chain: Any) -> int:
    """The state that a chain is in."""
    code = 0
    for name, box in layout(r.model).items():
        rows = np.argwhere(r.atoms(chain, name))
        if not len(rows):
            continue
        variable, value = box.literals(list(rows.T))
        code += int((np.broadcast_to(value, np.shape(variable)) * space.stride[variable]).sum())
    return int(space.place[code])
