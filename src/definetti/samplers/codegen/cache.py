"""Generated kernels on disk: Numba caches only functions that stand in a file, so each kernel's text is written once.

The name of a file is the hash of its text, of the
structure it was made from and of Numba's version, and its content is compared before it is run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
from pathlib import Path
from types import ModuleType

from definetti.samplers.kernels import cache_folder, private, temporary_folder


def file_name(text: str, structure: str) -> str:
    import numba

    key = "\0".join((text, structure, numba.__version__))
    return f"relational_{hashlib.sha256(key.encode()).hexdigest()[:40]}.py"


def write_once(path: Path, text: str) -> None:
    """Puts the text there atomically, unless it is there already (a new date would make Numba compile again)."""
    try:
        if path.is_file() and not path.is_symlink() and path.read_text(encoding="utf-8") == text:
            return
    except (OSError, UnicodeDecodeError):
        pass
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".py")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def load_kernel(text: str, structure: str, folder: Path | None = None) -> ModuleType:
    """The kernel as a module, from the folder of kernels. Its functions compile, or load, when first called."""
    if folder is None:
        folder = cache_folder("kernels")
    elif not private(folder):
        folder = temporary_folder()
    path = folder / file_name(text, structure)
    name = f"definetti_{path.stem}_{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    write_once(path, text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def load_plain(text: str) -> ModuleType:
    """The kernel's text as plain Python: slow, and open to tests that put a chooser in place of the draw."""
    module = ModuleType("definetti_relational_plain")
    exec(compile(text, "<relational kernel>", "exec"), module.__dict__)
    return module
