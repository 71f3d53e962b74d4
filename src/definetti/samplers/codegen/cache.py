"""Generated kernels on disk: Numba caches only functions that stand in a file, so each kernel's text is written once.

A file is named by the hash of its text and stands beside the compiled code, in the folder that is named by the hash of
the fixed sources (`kernels/compiling.py`). Its content is compared before it is run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
from pathlib import Path
from types import ModuleType

from definetti.samplers.kernels.compiling import code_folder


def kernel_name(text: str) -> str:
    """The name of a kernel's module, and of its file."""
    return f"relational_{hashlib.sha256(text.encode()).hexdigest()[:40]}"


def write_once(path: Path, text: str) -> None:
    """Puts the text there atomically, unless it is there already."""
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


def load_kernel(text: str) -> ModuleType:
    """The kernel as a module. Its functions are compiled, or loaded from the cache, when first called."""
    name = f"definetti_{kernel_name(text)}"
    if name in sys.modules:
        return sys.modules[name]
    path = code_folder() / f"{kernel_name(text)}.py"
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
