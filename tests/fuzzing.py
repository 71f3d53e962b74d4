"""Hostile input for every reader: what is read, seeds to start from, mutations. `make fuzz` runs it; inputs that
were found are in `corpus/`, which the gate replays.

A reader may accept an input or raise a `DefinettiError`; anything else is a mistake of ours, and so is an input that
takes more than five seconds or a gigabyte.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import definetti as dft
from definetti import archive
from definetti.errors import DefinettiError

HERE = Path(__file__).resolve().parent
EXAMPLES, CORPUS = HERE.parent / "examples", HERE / "corpus"

UAI = b"MARKOV\n3\n2 2 3\n3\n2 0 1\n2 1 2\n1 2\n\n4\n 1.0 2.0\n 0.5 1\n6\n1 2 3 4 5 0\n3\n .25 1e-3 0\n"
BAYES = b"BAYES\n2\n2 2\n2\n1 0\n2 0 1\n\n2\n 0.4 0.6\n4\n 0.1 0.9\n 0.5 0.5\n"
FG = b"2\n\n1\n0\n2\n2\n0 0.5\n1 1.5\n\n2\n0 1\n2 3\n3\n0 1\n3 2.5\n5 1e-2\n"
MLN = b"""// a theory
person = {Anna, Bob}
Smokes(person)
Friends(person, person)
Likes(person, food!)
0.5 Friends(x,y) ^ Smokes(x) => Smokes(y)
-1.2 Smokes(x)
Friends(x,y) => Friends(y,x).
0.3 EXIST y (Friends(x,y) v !Smokes(Anna)) ^ x != y
0.1 Likes(x,+f)
food = {Fish, "a \\"b\\""}
"""
DB = b"Smokes(Anna)\n!Smokes(Bob)\n?Friends(Anna,Bob) // c\nFriends(Bob, Anna)\nLikes(Anna,Fish)\n"
SAMPLES = b"X0,X1,X2\n0,1,2\n1,1,0\n0,0,1\n"
LABELLED = b"chain,X2,X0,X1\n0,2,0,1\n0,1,1,0\n1,0,0,0\n1,1,1,1\n"
GENERATORS = b"(X0 X1)\n(X0=0 X1=0)(X0=1 X1=1)\n# nothing\n()\n"
RESULT = (
    b"kind,variable,value,probability,mcse,half_width,rhat,ess,orbit_size,trusted\n"
    b"variable,X0,,0.25,0.001,0.002,1.0,500,1,true\nvariable,X1,0,0.5,,,,,2,true\nvariable,X1,1,0.5,,,,,2,true\n"
)
MAR = b"MAR\n2 2 0.25 0.75 3 0.2 0.3 0.5\n"
ALCHEMY = b'Smokes(Anna) 0.25\nFriends("a b",Bob) 1e-3\n'

WORDS = [
    b"1e999", b"-1e999", b"99999999999999999999", b"-1", b"0", b"4294967296", b"2147483648", b"nan", b"inf",
    b"1e308", b"\0", b"\xff\xfe", b"\xc3", b"\xe2\x80\xae", b"\x1b[2J\x1b[31m", b"../../../etc/passwd",
    b"/dev/zero", b"__import__('os').system('true')", b"<script>alert(1)</script>", b"%s%n", b"${HOME}", b"\r\n",
    b"\r", b"\n\n", b"\t", b'"', b"'", b"(", b")", b"((((((((((", b"))))))))))", b"{", b"}", b"[", b"]", b",",
    b";", b"!", b"?", b"+", b"*", b".", b"//", b"/*", b"*/", b"#include \"x.mln\"", b"EXIST x", b"FORALL x",
    b"<=>", b"=>", b"^", b"v", b"!=", b"=", b"\xef\xbb\xbf", b"MARKOV", b"BAYES", b"null", b"true", b"NaN",
    b"Infinity", b"e", b"-", b"X0", b"X1", b"X2", b"0.5", b"1", b"2", b"3", b" ",
]  # fmt: skip


@dataclass(frozen=True)
class Reader:
    """`read` returns if it accepts; `modules` are those whose lines count."""

    suffix: str
    seeds: tuple[bytes, ...]
    read: Callable[[Path], Any]
    modules: tuple[str, ...]


@cache
def graph() -> Any:
    return dft.factor_graph([2, 2, 3], [([0, 1], [[1, 2], [2, 1]]), ([1, 2], np.arange(1.0, 7.0).reshape(2, 3))])


@cache
def pair() -> Any:
    return dft.factor_graph([2, 2, 2], [([0, 1], [[1, 2], [2, 1]]), ([1, 2], [[1, 2], [2, 1]])])


@cache
def theory() -> Any:
    """The file that evidence is read for."""
    path = Path(tempfile.mkdtemp()) / "theory.mln"
    path.write_bytes(MLN)
    return path


def _uai(path: Path) -> Any:
    from definetti.readers.graph.uai import read_uai

    return read_uai(path)


def _evid(path: Path) -> Any:
    from definetti.readers.graph.uai import read_evid

    return read_evid(path, graph())


def _fg(path: Path) -> Any:
    from definetti.readers.graph.fg import read_fg

    return read_fg(path)


def _samples(path: Path) -> Any:
    from definetti.readers.samples import read_samples

    return read_samples(path, graph())


def _generators(path: Path) -> Any:
    from definetti.symmetry.graph.generator_text import read_generators

    return read_generators(pair(), path)


def _result(path: Path) -> Any:
    return dft.load(path)


def _mln(path: Path) -> Any:
    return dft.read(path, domain={"person": 3})


def _db(path: Path) -> Any:
    return dft.read(theory(), path)


def _run(path: Path) -> Any:
    from definetti.inference.saving.checkpoint import read_run

    return read_run(path)


@cache
def result() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return dft.save(dft.exact(graph(), ["X0", "X0=1 ^ X1=0"]), f"{folder}/p.json").read_bytes()


@cache
def runs() -> tuple[bytes, ...]:
    """Checkpoints of both kinds of model."""
    found = []
    logic = dft.markov_logic(MLN.decode(), DB.decode())
    with tempfile.TemporaryDirectory() as folder:
        for number, model in enumerate((graph(), logic)):
            path = Path(folder) / f"{number}.dft"
            dft.marginals(model, sampler="gibbs", chains=2, sweeps=4, burn_in=1, seed=1, workers=1, checkpoint=path)
            found.append(path.read_bytes())
    return tuple(found)


def readers() -> dict[str, Reader]:
    graph_rooms, logic_rooms = "readers/graph/", "readers/logic/"
    return {
        "uai": Reader(".uai", (UAI, BAYES), _uai, (graph_rooms + "uai.py", graph_rooms + "tokens.py")),
        "evid": Reader(".evid", (b"2 0 1 2 0\n", b"1\n1 1 0\n", b"0\n"), _evid, (graph_rooms + "uai.py",)),
        "fg": Reader(".fg", (FG,), _fg, (graph_rooms + "fg.py", graph_rooms + "tokens.py")),
        "csv": Reader(".csv", (SAMPLES, LABELLED, b"0,1,2\n1,0,0\n"), _samples, ("readers/samples.py",)),
        "generators": Reader(".txt", (GENERATORS,), _generators, ("symmetry/graph/generator_text.py",)),
        "json": Reader(".json", (result(),), _result, ("store.py",)),
        "result": Reader(".csv", (RESULT,), _result, ("store.py",)),
        "mar": Reader(".MAR", (MAR, ALCHEMY), _result, ("store.py",)),
        "dft": Reader(".dft", runs(), _run, ("archive.py", "inference/saving/checkpoint.py",
                      "inference/saving/option_encoding.py", "model/graph/encoding.py", "model/logic/encoding.py")),
        "mln": Reader(".mln", (MLN,), _mln, tuple(logic_rooms + n for n in ("mln.py", "meaning.py", "syntax.py"))),
        "db": Reader(".db", (DB,), _db, (logic_rooms + "db.py",)),
    }  # fmt: skip


def accepts(reader: Reader, content: bytes, path: Path) -> bool:
    """Whether the input was read; what it raises beside our own errors is not caught."""
    path.write_bytes(content)
    try:
        reader.read(path)
    except DefinettiError as error:
        str(error)
        return False
    return True


# --- mutations --------------------------------------------------------------------------------------------------------


def mutated(name: str, reader: Reader, rng: Random) -> bytes:
    content = rng.choice(reader.seeds)
    if name == "dft":
        return _changed_run(content, rng)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3, 8))):
        content = _changed(content, reader, rng)
    return content[:20_000]


def _changed(content: bytes, reader: Reader, rng: Random) -> bytes:
    way, at = rng.randrange(9), rng.randrange(len(content) + 1)
    end = min(len(content), at + rng.choice((1, 1, 2, 5, 20)))
    if way == 0:
        return content[:at] + content[end:]
    if way == 1:
        return content[:at] + content[at:end] * rng.choice((2, 2, 3, 50)) + content[end:]
    if way == 2:
        return content[:at] + rng.choice(WORDS) + content[at:]
    if way == 3:
        return content[:at] + rng.choice(WORDS) + content[end:]
    if way == 4:
        return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]
    if way == 5:
        other = rng.choice(reader.seeds)
        return content[:at] + other[rng.randrange(len(other)) :]
    words = content.split(b" ") if way == 6 else content.split(b"\n")
    k, j = rng.randrange(len(words)), rng.randrange(len(words))
    if way == 8:
        words[k] = rng.choice(WORDS)
    else:
        words[k], words[j] = words[j], words[k]
    return (b" " if way == 6 else b"\n").join(words)


def _changed_run(content: bytes, rng: Random) -> bytes:
    """A checkpoint whose checksums are right; now and then one whose bytes are changed."""
    if rng.random() < 0.1:
        at = rng.randrange(len(content))
        return content[:at] + bytes([rng.randrange(256)]) + content[at + rng.randrange(3) :]
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        path = Path(folder) / "run.dft"
        path.write_bytes(content)
        found = archive.read(path)
        name = rng.choice([*found.sections, "call", "call"])
        part = found.sections[name]
        if name != "answer":
            tree = found.tree(name)
            for _ in range(rng.choice((0, 1, 1, 2))):
                _change_tree(tree, rng)
            part = archive.pack(tree)
        if rng.random() < 0.1:
            part = part[: rng.randrange(len(part) + 1)]
        path.unlink()
        head = {key: value for key, value in found.head.items() if key != "sections"}
        archive.write(path, head, {**found.sections, name: part}, False)
        return path.read_bytes()


ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    1,
    2**40,
    2**70,
    1e300,
    float("nan"),
    "",
    "x",
    "X0",
    "\x1b[2J",
    [],
    {},
    [[]],
    ["And"],
]


def _change_tree(tree: Any, rng: Random) -> None:
    """One leaf, at random."""
    for _ in range(20):
        keys = list(tree) if isinstance(tree, dict) else list(range(len(tree))) if isinstance(tree, list) else []
        if not keys:
            return
        key = rng.choice(keys)
        value = tree[key]
        if isinstance(value, (dict, list)) and value and rng.random() < 0.9:
            tree = value
            continue
        if isinstance(value, np.ndarray) and value.size and rng.random() < 0.8:
            changed = value.copy()
            changed.flat[rng.randrange(changed.size)] = rng.choice((0, 1, 2, 5, 100))
            tree[key] = changed if rng.random() < 0.8 else changed[:-1]
        elif isinstance(tree, dict) and rng.random() < 0.1:
            del tree[key]
        else:
            tree[key] = rng.choice(ODD)
        return


def kept(name: str) -> list[Path]:
    return sorted((CORPUS / name).glob("*"))
