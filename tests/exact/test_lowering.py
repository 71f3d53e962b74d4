"""The small language of generated kernels: compiled straight to LLVM it does what Python does, and refuses the rest."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numba
import numpy as np
import plain_kernels
import pytest
import small_theories as th

import definetti as dft
from definetti.lumping.logic_branches import HEADER
from definetti.samplers.kernels.compiling import njit
from definetti.samplers.logic import engine
from definetti.samplers.logic.starts import first_state
from definetti.samplers.lowering.function import Source, caller, located, lowered

U, I = np.uint64, np.int64  # noqa: E741
ZERO, ONE, FULL = U(0), U(1), U(0xFFFFFFFFFFFFFFFF)
PLAIN: dict[str, object] = {}
exec(compile(HEADER, "<header>", "exec"), PLAIN)
popcount, lowest, peek, test, toggle = (PLAIN[x] for x in ("popcount", "lowest", "peek", "test", "toggle"))
test.__test__ = False  # type: ignore[attr-defined]


def mask(i, word):
    return ONE << U(i & 63) if i >> 6 == word else ZERO


@njit(error_model="numpy")
def halved(x):
    return x / 2.0


# --- programs: arrays of integers, words and reals, a table, and two numbers ---


def arithmetic(ints, words, reals, table, n, k):
    a, b = n * 3 - k, -n
    c = (a >> 2) + (b << 3) ^ (n & 6) | 1
    w = words[0] ^ ~(words[1] >> U(n)) & FULL
    reals[0] = 2.5 * a - reals[1] + c * reals[2]
    reals[1] += I(popcount(w)) - 0.5
    ints[0] = c
    words[0] = (w - ONE) | (ONE << U(k & 63)) | U(a == b)
    table[1, k] -= float(words[1]) * 1e-3
    return lowest(words[1]) + 7 * a


def branches(ints, words, reals, table, n, k):
    total = 0
    for i in range(n):
        if i == k:
            continue
        for j in range(i, n + 1):
            if j > 4 and i != 2:
                break
            total += i * j if table[0, 1] > 0.0 else 0 - j
        else_ = total > 50 or not total < 3
        if else_:
            total -= 1
        else:
            total += 2
    rest = words[2]
    while rest != ZERO:
        ints[1] += lowest(rest)
        rest &= rest - ONE
        if ints[1] > 400:
            return -5
    return total


def memory(ints, words, reals, table, n, k):
    start = -1
    if k >= 0 or peek(reals, start) > 0.0:
        ints[2] = I(peek(ints, k))
    if start >= 0 and test(words, start, 3) != ZERO:
        ints[2] = 99
    toggle(words, 1, n + 64)
    s = test(words, 1, n)
    x = halved(reals[2])
    if x < 1e300:
        x += k
    table[0, 0] = x
    for q in range(table.shape[1]):
        table[1, q] += reals.shape[0]
    ints[3] = popcount(mask(n, 0) | mask(n, I(1)) | words[0]) + I(s)
    return n


PROGRAMS = [arithmetic, branches, memory]


def data(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 1 << 63, 3, dtype=np.uint64) << U(1)
    return [rng.integers(0, 9, 4), words, rng.normal(size=3), rng.normal(size=(2, 8))]


def calling(program):
    inner = lowered(program)

    @njit(error_model="numpy")
    def call(ints, words, reals, table, n, k):
        return inner(ints, words, reals, table, n, k)

    return call


@pytest.mark.parametrize("program", PROGRAMS)
def test_compiled_programs_do_what_python_does(program) -> None:
    call = calling(program)
    for seed in range(20):
        plain, compiled = data(seed), data(seed)
        with np.errstate(over="ignore"):
            expected = program(*plain, seed % 7 + 1, seed % 3)
        assert call(*compiled, seed % 7 + 1, seed % 3) == expected
        for a, b in zip(plain, compiled, strict=True):
            np.testing.assert_array_equal(a, b)


KINDS = {
    "ints": numba.int64[::1], "words": numba.uint64[::1], "reals": numba.float64[::1], "table": numba.float64[:, ::1],
}  # fmt: skip


def test_programs_are_called_where_their_machine_code_stands() -> None:
    addresses, call = located(KINDS, *map(lowered, PROGRAMS)), caller(KINDS, *KINDS, "n", "k")

    @njit()
    def places():
        return addresses()

    @njit()
    def call_at(at, ints, words, reals, table, n, k):
        return call(at, ints, words, reals, table, n, k)

    for program, at in zip(PROGRAMS, places(), strict=True):
        plain, compiled = data(3), data(3)
        with np.errstate(over="ignore"):
            expected = program(*plain, 4, 2)
        assert call_at(at, *compiled, 4, 2) == expected
        for a, b in zip(plain, compiled, strict=True):
            np.testing.assert_array_equal(a, b)
    ints, _, reals, table = data(3)
    with pytest.raises(Exception, match="`words` is array"):
        call_at(at, ints, ints, reals, table, 4, 2)


def two_types(ints, words, reals, table, n, k):
    x = 1
    x = 2.0 * n
    return x


def word_and_integer(ints, words, reals, table, n, k):
    return I(words[0] + n)


def division(ints, words, reals, table, n, k):
    return n // k


def a_list(ints, words, reals, table, n, k):
    x = [n]
    return x[0]


def unknown_call(ints, words, reals, table, n, k):
    return max(n, k)


@pytest.mark.parametrize("program", [two_types, word_and_integer, division, a_list, unknown_call])
def test_what_is_not_in_the_language_is_refused(program) -> None:
    with pytest.raises(Exception, match=program.__name__):
        calling(program)(*data(0), 2, 1)


def test_strided_arrays_are_refused() -> None:
    ints, words, reals, table = data(0)
    with pytest.raises(Exception, match="C-contiguous"):
        calling(arithmetic)(ints[::2], words, reals, table, 2, 1)


# --- kernels ---


def university(examples: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_university", examples / "make_university.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def theory(examples: Path, tmp_path: Path, shapes: int, **domain: int):
    made = university(examples)
    made.SHAPES, made.FORMULAS = shapes, shapes * 5 // 3
    (tmp_path / "university.mln").write_text(made.university(3))
    return dft.read(tmp_path / "university.mln", domain=domain)


def test_a_theory_of_many_shapes_is_drawn_bit_by_bit_as_by_its_text(examples: Path, tmp_path: Path) -> None:
    model = theory(examples, tmp_path, 20, person=4, course=3, paper=3, project=2)
    states = []
    for ready in (engine.compile_model, plain_kernels.plain_model):
        r = ready(model, {})
        chain = first_state(r, 5, 0, None)
        engine.advance(r, chain, engine.FOREVER, 3)
        states.append((chain.bits, chain.streams, chain.sum_g))
    for compiled, plain in zip(*states, strict=True):
        np.testing.assert_array_equal(compiled, plain)


def test_numba_infers_no_types_of_generated_text() -> None:
    """That was what took minutes: whatever the number of shapes, only the fixed text goes through it."""
    r = engine.compile_model(th.zoo(9), {})
    generated = {name: f for name, f in vars(r.kernel).items() if name.startswith(("update", "count_"))}
    assert {"update", "update_0", "count_observe", "count_tallied"} <= set(generated)
    assert all(isinstance(f.lowered, Source) for f in generated.values())


@pytest.mark.slow
def test_the_university_is_compiled_within_ten_seconds(examples: Path, tmp_path: Path, cpu_limit) -> None:
    (tmp_path / "university.mln").write_text(university(examples).university(1))
    program = (
        "import definetti as dft; from definetti.samplers.logic.engine import compile_model\n"
        f"compile_model(dft.read({str(tmp_path / 'university.mln')!r}, domain=dict(person=60, course=30, paper=60, "
        "project=10)), {})"
    )
    with cpu_limit(10):
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "DEFINETTI_CACHE_DIR": str(tmp_path)}, check=True
        )
