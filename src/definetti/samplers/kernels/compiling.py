"""`njit` for the kernels, with compiled code kept in a folder of our own.

The folder is named by a hash of all kernel sources: with Numba's own caching, editing a helper in another file leaves a
cached caller running the old code. Only functions decorated here are kept there; Numba's settings are left alone.
The folder is private to the user: created with mode 0700, and used only if the user owns it and nobody else may write
there. Otherwise a temporary folder serves for this process.
"""

# pyright: reportIncompatibleMethodOverride=false, reportAttributeAccessIssue=false

from __future__ import annotations

import hashlib
import inspect
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache as once
from pathlib import Path
from typing import Any

import llvmlite
import numba
import platformdirs
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, _CacheLocator
from numba.core.dispatcher import Dispatcher

SAMPLERS = Path(__file__).parents[1]
SOURCES = (Path(__file__).parent, SAMPLERS / "codegen" / "templates", SAMPLERS / "lowering")


def private(folder: Path) -> bool:
    """Makes the folder if it is not there; whether it is ours alone to write in."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = os.lstat(folder)
    except OSError:
        return False
    if not stat.S_ISDIR(info.st_mode) or not os.access(folder, os.W_OK | os.X_OK):
        return False
    if hasattr(os, "getuid"):
        return info.st_uid == os.getuid() and not info.st_mode & 0o022
    return True


@once
def sources_hash() -> str:
    """A hash of all kernel sources and templates, and of what compiles them."""
    found = hashlib.sha256(f"{numba.__version__} {llvmlite.__version__} {sys.version}".encode())
    for folder in SOURCES:
        for path in sorted(folder.rglob("*.py")):
            content = path.read_bytes()
            found.update(f"\0{path.name} {len(content)}\0".encode() + content)
    return found.hexdigest()[:24]


@once
def code_folder() -> Path:
    """Where compiled code is kept between runs: in `DEFINETTI_CACHE_DIR`, or in the user's cache folder."""
    named = os.environ.get("DEFINETTI_CACHE_DIR") or platformdirs.user_cache_dir("definetti", appauthor=False)
    folder = Path(named) / f"kernels-{sources_hash()}"
    return folder if private(folder.parent) and private(folder) else Path(tempfile.mkdtemp(prefix="definetti-"))


class _Locator(_CacheLocator):
    """Numba's question where a function's compiled code is kept, and whether it is fresh: the folder's name says it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._py_file = inspect.getfile(function)
        self._lineno = function.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        return str(code_folder())

    def get_source_stamp(self) -> str:
        return sources_hash()

    def get_disambiguator(self) -> str:
        return str(self._lineno)


class _Files(CompileResultCacheImpl):
    """Numba's cache files with our locator, whatever locators the environment names for other functions."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = _Locator(function)
        name = f"{Path(inspect.getfile(function)).stem}.{function.__qualname__}"
        self._filename_base = self.get_filename_base(name, getattr(sys, "abiflags", ""))


class _NamedByKey(IndexDataCacheFile):
    """Numba numbers the files of a function's compiled versions: two processes that compile different ones at the same
    time choose one number, and the version of one is then run with the arguments of the other. Here a file is named by
    what is in it. A disk that is full costs the next run some time, and this one nothing."""

    def save(self, key: Any, data: Any) -> None:
        name = self._data_name_pattern.format(number=int(hashlib.sha256(repr(key).encode()).hexdigest()[:15], 16))
        with suppress(OSError):
            overloads = self._load_index()
            self._save_data(name, data)
            self._save_index({**overloads, key: name})


class _KernelCache(FunctionCache):
    _impl_class = _Files

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _NamedByKey(self._cache_path, self._impl.filename_base, stamp)


def njit(*, cache: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit`; with `cache`, compiled code is kept in `code_folder` and nowhere else."""

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(**options)(function)
        if cache and isinstance(dispatcher, Dispatcher):  # a plain function where Numba is switched off
            dispatcher._cache = _KernelCache(function)
        return dispatcher

    return decorate
