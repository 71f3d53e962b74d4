"""Files: read as UTF-8 text with errors that name the place; written whole or not at all."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from definetti import show
from definetti.errors import ModelError, ParseError, suggestion

#: Of answers: our own formats, then Alchemy's result files and the UAI competition's marginals.
ANSWER_SUFFIXES = (".json", ".csv", ".parquet", ".result", ".results", ".MAR", ".mar")


def as_path(path: object, what: str) -> Path:
    """The path that a user gave; `ModelError` for what is none."""
    text = os.fspath(path) if isinstance(path, str | PathLike) else None
    if not isinstance(text, str):
        raise ModelError(f"{what} is the path of a file, got {show.brief(path)}")
    return Path(text)


def require_file(path: str | PathLike[str]) -> None:
    """`ParseError` unless there is a file that can be opened."""
    path = Path(path)
    try:
        path.open("rb").close()
    except FileNotFoundError:
        raise ParseError(f"there is no such file{_nearest(path)}", path=path) from None
    except IsADirectoryError:
        raise ParseError("this is a directory; give the file in it", path=path) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise ParseError(f"the file cannot be read: {getattr(error, 'strerror', None) or error}", path=path) from None


def read_bytes(path: str | PathLike[str]) -> bytes:
    """The bytes of a UTF-8 text file, without a byte order mark."""
    require_file(path)
    path = Path(path)
    text = path.read_bytes()
    text = text.removeprefix(b"\xef\xbb\xbf")
    try:
        if not text.isascii():
            text.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column, _ = place(text, error.start)
        cure = "save it as UTF-8, and decompress it if it is compressed"
        message = f"the file is not UTF-8 text (byte 0x{text[error.start]:02x}); {cure}"
        raise ParseError(message, path=path, line=line, column=column) from None
    return text


def read_text(path: str | PathLike[str]) -> str:
    """A UTF-8 text file, every line ended by \\n."""
    return re.sub("\r\n?", "\n", read_bytes(path).decode("utf-8"))


def _nearest(path: Path) -> str:
    """The file of this folder whose name is closest."""
    try:
        every = sorted(entry.name for entry in path.parent.iterdir() if not entry.name.startswith("."))
    except OSError:
        return ""
    names = [name for name in every if Path(name).suffix == path.suffix] or every
    return suggestion(path.name, names, "")


def place(text: bytes, offset: int) -> tuple[int, int, str]:
    """Line and column (from 1, in characters) of a byte, and the line it is on."""
    newline = b"\n" if b"\n" in text else b"\r"
    start = text.rfind(newline, 0, offset) + 1
    end = text.find(newline, offset)
    source = text[start : end if end >= 0 else len(text)].decode("utf-8", "replace")
    column = len(text[start:offset].decode("utf-8", "replace")) + 1
    return text.count(newline, 0, offset) + 1, column, re.sub(r"[\x00-\x1f\x7f]", " ", source)


def cannot_write(path: Path, error: OSError | ValueError) -> ModelError:
    """The error for a file that cannot be made; a ValueError is a NUL in its name."""
    return ModelError(f"cannot write {path}: {getattr(error, 'strerror', None) or error}")


def write_atomically(path: str | PathLike[str], content: str | bytes) -> None:
    """Write a file beside the place, then rename it: nobody ever sees half of it."""
    with replacement(Path(path)) as beside:
        beside.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacement(path: Path) -> Iterator[Path]:
    """A new file beside the place, which takes the place when the body ends and goes away when it fails."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
        os.close(handle)
    except (OSError, ValueError) as error:
        raise cannot_write(path, error) from None
    try:
        yield Path(name)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)  # mkstemp makes private files
        os.replace(name, path)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise cannot_write(path, error) from None
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
