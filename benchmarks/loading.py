"""Compiling the kernels the first time, and loading them from the cache in a fresh process."""

from __future__ import annotations

import tempfile

from measuring import Row, in_process


def rows(quick: bool) -> list[Row]:
    out = []
    for engine in ("fields", "tables"):
        with tempfile.TemporaryDirectory() as folder:
            first = in_process("load_kernels.py", engine, DEFINETTI_CACHE_DIR=folder)
            again = [
                in_process("load_kernels.py", engine, DEFINETTI_CACHE_DIR=folder) for _ in range(2 if quick else 5)
            ]
        out += [
            Row(f"compiling the {engine} kernels", first["kernels"], "CPU s", note="the first time only"),
            Row(f"loading the {engine} kernels", min(a["kernels"] for a in again), "CPU s", 0.7, at_least=False,
                note=f"from the cache; import numba takes {min(a['numba'] for a in again):.2f} s more"),
        ]  # fmt: skip
    return out
