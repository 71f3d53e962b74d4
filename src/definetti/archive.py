"""Leaf: `.dft` files. Named sections with a checksum each, written so that a good file is there at every moment.

    8 bytes   \\x89DFT\\r\\n\\x1a\\n (as in PNG: a transfer as text breaks it)
    u32       format, the version of what follows;   u32  length of the head
    head      JSON: {"version": of definetti, "sections": [[name, length, CRC-32], …], …}
    16 bytes  BLAKE2 checksum of everything so far
    payloads  of the sections, one after the other

A section is a tree of dicts, lists, numbers, texts and arrays: JSON in which an array is a reference into the bytes
that follow. Nothing is pickled. Integers, and floats that are small ones, are stored in the smallest type that holds
them; an array that is nearly all zeros is deflated, within limits: arrays follow each other without overlap, and
what a file takes in memory is bounded by its size. Numbers are little-endian. In format 1 the checksums of sections
were BLAKE2's too, and nothing was deflated.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from definetti.errors import ModelError, ParseError
from definetti.files import cannot_write, require_file

SUFFIX = ".dft"
MAGIC, FORMAT = b"\x89DFT\r\n\x1a\n", 2
LIMITS = struct.Struct("<II")
DIGEST = 16
KINDS = "biuf"  # of numbers in arrays
MOST_AXES = 8
SPARSE = 8  # an array of at least so many zero bytes for every other one is deflated,
FEWEST_BYTES = 1 << 12  # if it has so many
INFLATED, TIMES = 1 << 25, 64  # all such arrays have at most so many bytes, and so many times those that are stored
LOOKED_AT = 64  # numbers of an array of floats that say whether the others are worth a look

Tree = Any  # dicts with text keys, lists, numbers, texts, None and arrays
Buffer = bytes | memoryview


class Damaged(ParseError):
    """The file is a `.dft` file, and part of it is missing or changed."""


@dataclass(frozen=True)
class Archive:
    """A file that was read and found whole."""

    path: Path
    version: str
    head: Mapping[str, Any]
    sections: Mapping[str, Buffer] = field(repr=False)  # parts of one content: whoever keeps one keeps a copy

    def tree(self, name: str) -> Tree:
        try:
            return unpack(self.sections[name])
        except (KeyError, ValueError, TypeError, IndexError, RecursionError, OverflowError):
            raise Damaged(f"the section {name!r} cannot be understood", path=self.path) from None


def checksum(*parts: Buffer) -> str:
    made = blake2b(digest_size=DIGEST)
    for part in parts:
        made.update(part)
    return made.hexdigest()


def crc(parts: Sequence[Buffer]) -> str:
    """Of a section: four times as fast as BLAKE2, and made for what it has to find, accidents."""
    number = 0
    for part in parts:
        number = zlib.crc32(part, number)
    return f"{number:08x}"


# --- trees as bytes --------------------------------------------------------------------------------------------------


def pack(tree: Tree) -> bytes:
    return b"".join(buffers(tree))


def buffers(tree: Tree, once: bool = False) -> list[Buffer]:
    """u32 length of the JSON, the JSON, the bytes of the arrays, which are not copied where they are stored as they
    are: they may not change before the buffers are written. `once`: what is written many times may take longer to pack;
    integers are deflated wherever that helps."""
    arrays: list[Buffer] = []
    room = Room()

    def stored(part: np.ndarray) -> dict[str, Any]:
        if part.dtype.kind not in KINDS:
            raise TypeError(f"an array of {part.dtype} cannot be stored")
        # sums depend on the order in memory, also that of a slice
        turned = not part.flags.c_contiguous and list(part.strides) == sorted(part.strides)
        rows = part.T if turned else part
        kind = _narrow(rows).newbyteorder("<")
        content = np.ascontiguousarray(rows, dtype=kind).reshape(-1).view(np.uint8)
        reference = [kind.str, list(rows.shape), room.place, turned, part.dtype.newbyteorder("<").str]
        if _is_sparse(content) or (once and kind.kind in "biu" and len(content) >= FEWEST_BYTES):
            deflated = zlib.compress(content.data, 1)
            if 2 * len(deflated) < len(content) and room.inflate(len(deflated), len(content)):
                arrays.append(deflated)
                return {"!": [*reference, len(deflated)]}
        arrays.append(content.data)
        room.place += len(content)
        return {"!": reference}

    def flat(part: Tree) -> Any:
        if isinstance(part, np.ndarray):
            return stored(part)
        if isinstance(part, Mapping):
            return {"": {str(key): flat(value) for key, value in part.items()}}
        if isinstance(part, list | tuple):
            return [flat(value) for value in part]
        if isinstance(part, np.generic):
            return part.item()
        return part

    text = json.dumps(flat(tree), separators=(",", ":")).encode()
    return [struct.pack("<I", len(text)), text, *arrays]


class Room:
    """Where the next array begins, and how many bytes those before it had before they were deflated: the writer keeps
    within the limits that the reader checks."""

    def __init__(self) -> None:
        self.place, self._inflated = 0, 0

    def inflate(self, length: int, size: int) -> bool:
        """Whether there is room for an array of so many bytes, deflated and not; if so, it is taken."""
        if self._inflated + size > INFLATED + TIMES * (self.place + length):
            return False
        self.place, self._inflated = self.place + length, self._inflated + size
        return True


def _is_sparse(content: np.ndarray) -> bool:
    return len(content) >= FEWEST_BYTES and int(np.count_nonzero(content)) * (SPARSE + 1) <= len(content)


def _narrow(array: np.ndarray) -> np.dtype[Any]:
    """The smallest type that holds the numbers of an array; of floats only the smallest integers are looked for."""
    if array.dtype == np.float64:
        return np.dtype(np.int8) if _is_small(array) else array.dtype
    if array.dtype.kind not in "iu" or not array.size:
        return array.dtype
    low, high = int(array.min()), int(array.max())
    fits = (t for t in (np.int8, np.int16, np.int32) if np.iinfo(t).min <= low and high <= np.iinfo(t).max)
    found = np.dtype(next(fits, array.dtype))
    return found if found.itemsize < array.dtype.itemsize else array.dtype


def _is_small(floats: np.ndarray) -> bool:
    """Whether these are integers from 0 to 127 (draws of single variables are), to the last bit: -0.0 is none."""
    some = np.array(floats.flat[:LOOKED_AT])
    if not len(some) or not ((some >= 0) & (some < 128) & (np.floor(some) == some)).all():
        return False
    if not (floats.min() >= 0 and floats.max() < 128):  # false for NaN
        return False
    exactly = np.ascontiguousarray(floats)
    return bool((exactly.astype(np.int8).astype(np.float64).view(np.int64) == exactly.view(np.int64)).all())


def unpack(content: Buffer) -> Tree:
    """The reverse of `pack`; `ValueError` and its like for what `pack` does not write."""
    length = int.from_bytes(content[:4], "little")
    if 4 + length > len(content):
        raise ValueError
    arrays, room = memoryview(content)[4 + length :], Room()

    def whole(part: Any) -> Tree:
        if isinstance(part, list):
            return [whole(value) for value in part]
        if not isinstance(part, dict):
            return part
        if "!" in part:
            return _array(arrays, room, *part["!"])
        return {key: whole(value) for key, value in part[""].items()}

    return whole(json.loads(bytes(content[4 : 4 + length])))


def _array(
    content: memoryview, room: Room, kind: str, shape: list[int], start: int, turned: bool, wide: str, length: int = -1
) -> np.ndarray:
    """`length`: of a deflated one."""
    dtype, own = np.dtype(kind), np.dtype(wide)
    sizes_are_fine = len(shape) <= MOST_AXES and all(type(k) is int and k >= 0 for k in [*shape, start])
    if not all(t.kind in KINDS and t.fields is None and t.subdtype is None for t in (dtype, own)) or not sizes_are_fine:
        raise ValueError
    if dtype.kind == "f" != own.kind:  # `pack` does not keep integers as reals, and some reals are none
        raise ValueError
    count = prod(shape)
    size = count * dtype.itemsize
    if start != room.place or type(length) is not int or start + (size if length < 0 else length) > len(content):
        raise ValueError
    if length < 0:
        room.place += size
        part = content[start : room.place]
    elif room.inflate(length, size):
        part = _inflated(content[start : room.place], size)
    else:
        raise ValueError
    found = np.frombuffer(part, dtype, count) if count else np.zeros(0, dtype)
    made = found.reshape(shape).astype(own.newbyteorder("="))  # a copy: it may be written to
    return made.T if turned else made


def _inflated(content: memoryview, size: int) -> memoryview:
    stream = zlib.decompressobj()
    try:
        made = stream.decompress(content, size + 1)
    except zlib.error:
        raise ValueError from None
    if len(made) != size or not stream.eof:
        raise ValueError
    return memoryview(made)


# --- reading ---------------------------------------------------------------------------------------------------------


def looks_like_one(path: Path) -> bool:
    """Whether a file begins as ours do."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def read(path: str | Path) -> Archive:
    """The whole file, checked; `Damaged` where it is not as it was written, `ParseError` where it is something else."""
    path = Path(path)
    if path.is_fifo():  # would wait for ever
        raise ParseError("this is a pipe; a run is kept in a file", path=path)
    require_file(path)
    content = path.read_bytes()
    if not content:
        raise Damaged("the file is empty", path=path)
    if content[: len(MAGIC)] != MAGIC[: len(content)]:
        raise ParseError("this is no .dft file of definetti", path=path)
    start = len(MAGIC) + LIMITS.size
    if len(content) < start:
        raise Damaged("the file is cut off in its first bytes", path=path)
    number, length = LIMITS.unpack_from(content, len(MAGIC))
    end = start + length
    if len(content) < end + DIGEST:
        raise Damaged("the file is cut off in its head", path=path)
    if checksum(content[:end]) != content[end : end + DIGEST].hex():
        raise Damaged("the head is damaged: its checksum is another", path=path)
    try:
        head = json.loads(content[start:end])
        version, table = str(head["version"]), [(str(n), int(k), str(c)) for n, k, c in head.get("sections", ())]
    except (ValueError, TypeError, KeyError, RecursionError, AttributeError):
        raise Damaged("the head cannot be understood", path=path) from None
    if number > FORMAT:
        cure = "update definetti to read it"
        text = f"the file was written by definetti {version} in format {number}; this version reads up to {FORMAT}"
        raise ParseError(f"{text}: {cure}", path=path)
    return Archive(path, version, head, _sections(content, end + DIGEST, table, path, number))


def _sections(
    content: bytes, place: int, table: list[tuple[str, int, str]], path: Path, number: int
) -> dict[str, memoryview]:
    found = {}
    for name, length, expected in table:
        part = memoryview(content)[place : place + max(length, 0)]
        if len(part) != length:
            raise Damaged(f"the file is cut off in the section {name!r}", path=path)
        if (checksum(part) if number == 1 else crc([part])) != expected:
            raise Damaged(f"the section {name!r} is damaged: its checksum is another", path=path)
        found[name] = part
        place += length
    if place != len(content):
        raise Damaged(f"there are {len(content) - place} bytes behind the end", path=path)
    return found


# --- writing ---------------------------------------------------------------------------------------------------------


def previous(path: Path) -> Path:
    """Where the good file before the last one is kept."""
    return path.with_name(path.name + ".old")


def write(path: Path, head: Mapping[str, Any], sections: Mapping[str, Buffer | list[Buffer]], keep: bool) -> int:
    """Writes a new file beside the old one, makes sure that it is on the disk, and puts it into its place; the one that
    was there is kept as `previous` if it is worth keeping. Only one process at a time may do so: see `locked`. Returns
    the number of bytes."""
    parts = {name: one if isinstance(one, list) else [one] for name, one in sections.items()}
    table = [[name, sum(map(len, content)), crc(content)] for name, content in parts.items()]
    text = json.dumps({**head, "sections": table}, allow_nan=False).encode()
    start = MAGIC + LIMITS.pack(FORMAT, len(text)) + text
    new, second = path.with_name(f".{path.name}.new"), path.with_name(f".{path.name}.link")
    try:
        new.unlink(missing_ok=True)
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(handle, "wb") as file:
            for part in (start, bytes.fromhex(checksum(start)), *chain.from_iterable(parts.values())):
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        if keep and path.exists():
            second.unlink(missing_ok=True)
            try:
                os.link(path, second)
                os.replace(second, previous(path))
            except OSError:  # a file system without links: for a moment there is only the old one
                os.replace(path, previous(path))
        os.replace(new, path)
        _sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        left = "; the last checkpoint is as it was" if path.exists() else ""
        raise ModelError(f"cannot write {path}: {error.strerror}{left}") from None
    return len(start) + DIGEST + sum(length for _, length, _ in table)


def _sync_folder(folder: Path) -> None:
    """The names are on the disk, too."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """The right to write a file, held by a lock of the kernel on a file beside it: it ends with the process."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    try:
        handle = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except (OSError, ValueError) as error:
        raise cannot_write(path, error) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ModelError(f"another process is writing {path}; wait for its end, or choose another file") from None
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(handle)
