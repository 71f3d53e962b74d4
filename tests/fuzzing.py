"""Hostile input for every reader: what is read, inputs that are valid but for an odd choice (`fuzz_grammar.py`), and
mutations of these. `make fuzz` runs it; inputs that were found are in `corpus/`, which the gate replays.

A reader may accept an input or raise a `DefinettiError`; anything else is a mistake of ours, and so is an input that
takes more than five seconds or a gigabyte.
"""

from __future__ import annotations

import copy
import json
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import fuzz_grammar
import numpy as np

import definetti as dft
from definetti import archive
from definetti.errors import DefinettiError

HERE = Path(__file__).resolve().parent
CORPUS = HERE / "corpus"
FAST = "/dev/shm" if Path("/dev/shm").is_dir() else None
SAMPLED = ("readers/samples.py",)
RULES = """0.5 Friends(x,y) ^ Smokes(x) => Smokes(y)
Friends(x,y) => Friends(y,x).
0.3 EXIST y (Friends(x,y) v !Smokes(Anna)) ^ x != y
0.1 Likes(x,+f) v TRUE
0.2 FORALL y (Smokes(y) <=> At(x,t)) v x = Bob
"""

UAI = b"MARKOV\n3\n2 2 3\n3\n2 0 1\n2 1 2\n1 2\n\n4\n 1.0 2.0\n 0.5 1\n6\n1 2 3 4 5 0\n3\n .25 1e-3 0\n"
BAYES = b"BAYES\n2\n2 2\n2\n1 0\n2 0 1\n\n2\n 0.4 0.6\n4\n 0.1 0.9\n 0.5 0.5\n"
FG = b"2\n\n1\n0\n2\n2\n0 0.5\n1 1.5\n\n2\n0 1\n2 3\n3\n0 1\n3 2.5\n5 1e-2\n"
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
    entries: tuple[str, ...]  # the functions that are called: lines count that these reach,
    apart: tuple[str, ...] = ()  # but for what is none of this reader's: writing, other formats


@cache
def graph() -> Any:
    return dft.factor_graph([2, 2, 3], [([0, 1], [[1, 2], [2, 1]]), ([1, 2], np.arange(1.0, 7.0).reshape(2, 3))])


@cache
def pair() -> Any:
    return dft.factor_graph([2, 2, 2], [([0, 1], [[1, 2], [2, 1]]), ([1, 2], [[1, 2], [2, 1]])])


@cache
def observed() -> Any:
    return graph().condition({"X2": 1})


@cache
def numbered() -> Any:
    """Names of variables that look like values."""
    return dft.factor_graph({"0": 2, "1": 2, "2": 3}, [(["0", "1"], [[1, 2], [2, 1]])])


@cache
def folder() -> Path:
    """Where inputs are read, with what they may include."""
    made = Path(tempfile.mkdtemp(dir=FAST))
    (made / "theory.mln").write_text(fuzz_grammar.DECLARED)
    (made / "part.mln").write_text("Sleeps(person)\n0.5 Sleeps(x)\n")
    return made


@cache
def logic() -> Any:
    return dft.read(folder() / "theory.mln")


@cache
def atoms() -> Any:
    return dft.markov_logic("P(t)\nR(t,t)\n1 P(x)", "P(A)", domain={"t": 1})


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

    number = zlib.crc32(path.read_bytes()) % 16  # mostly for the plain model
    return read_samples(path, {0: atoms, 1: numbered, 2: observed, 3: observed}.get(number, graph)())


def _generators(path: Path) -> Any:
    from definetti.symmetry.graph.generator_text import read_generators

    return read_generators(pair(), path)


def _result(path: Path) -> Any:
    return dft.load(path)


def _mln(path: Path) -> Any:
    number = zlib.crc32(path.read_bytes()) % 8
    more: Any = {
        0: {"weights": "alchemy"},
        1: {"domain": {"time": 6}},
        2: {"dialect": "tuffy"},
        3: {"closed_world": ["At"]},
    }
    return dft.read(path, **more.get(number, {}))


def _db(path: Path) -> Any:
    number = zlib.crc32(path.read_bytes()) % 4
    return dft.read(folder() / "theory.mln", path, closed_world=["At", "Likes"] if number == 0 else [])


def _query(path: Path) -> Any:
    from definetti.readers.logic.queries import parse_all

    found = parse_all(logic(), [path.read_bytes().decode("utf-8", "surrogateescape")])
    return [(query.plain, query.tuples(logic())) for query in found.values()]


def _graph_query(path: Path) -> Any:
    from definetti.model.queries import parse_query

    return parse_query(path.read_bytes().decode("utf-8", "surrogateescape"), graph())


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
    text, known = fuzz_grammar.DECLARED + RULES, "Smokes(Anna)\n!Smokes(Bob)\n?At(Anna,1)\nLikes(Anna,Fish)\n"
    theory = dft.markov_logic(text, known, closed_world=["At"])
    common = {"chains": 2, "sweeps": 4, "burn_in": 1, "seed": 1, "workers": 1}
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "run.dft"
        for model, group, sampler in (
            (graph(), "auto", "gibbs"),
            (pair(), dft.symmetries(pair()), dft.Tempering(dft.Gibbs(), levels=(0.0, 1.0))),
            (theory, "auto", "gibbs"),
        ):
            dft.marginals(model, sampler=sampler, symmetries=group, checkpoint=path, **common)
            found.append(path.read_bytes())
    return tuple(found)


def readers() -> dict[str, Reader]:
    graphs, logic_rooms = "readers/graph/", "readers/logic/"
    language = tuple(logic_rooms + f"{n}.py" for n in ("meaning", "lowering", "terms", "raw", "syntax"))
    saved = ("archive.py", "inference/saving/checkpoint.py", "inference/saving/option_encoding.py", "model/encoding.py",
             "model/graph/encoding.py", "model/logic/encoding.py")  # fmt: skip
    models = tuple(logic_rooms + f"{n}.py" for n in ("mln", "collecting", "weights", "dialects"))
    return {
        "uai": Reader(".uai", (UAI, BAYES), _uai, (graphs + "uai.py", graphs + "tokens.py"), ("read_uai",)),
        "evid": Reader(".evid", (b"2 0 1 2 0\n", b"1\n1 1 0\n", b"0\n"), _evid, (graphs + "uai.py",), ("read_evid",)),
        "fg": Reader(".fg", (FG,), _fg, (graphs + "fg.py", graphs + "tokens.py"), ("read_fg",)),
        "csv": Reader(
            ".csv", (SAMPLES, LABELLED, b"0,1,2\n1,0,0\n"), _samples, SAMPLED, ("read_samples",), ("read_packed",)
        ),
        "npz": Reader(".npz", (), _samples, SAMPLED, ("read_packed",)),
        "generators": Reader(
            ".txt", (GENERATORS,), _generators, ("symmetry/graph/generator_text.py",), ("parse_cycles",)
        ),
        "json": Reader(".json", (result(),), _result, ("store/loading.py",), ("saved", "_parsed")),
        "result": Reader(".csv", (RESULT,), _result, ("store/loading.py",), ("_from_csv",)),
        "mar": Reader(".MAR", (MAR, ALCHEMY), _result, ("store/loading.py",), ("_from_mar", "_from_alchemy")),
        "dft": Reader(".dft", runs(), _run, saved, ("read_run", "opened", "decoded"), ("Checkpoint", "write")),
        "mln": Reader(".mln", (), _mln, (*models, *language), ("read_mln",)),
        "db": Reader(".db", (), _db, (logic_rooms + "db.py",), ("read_facts", "number_facts")),
        "query": Reader(".txt", (), _query, (logic_rooms + "queries.py",), ("parse_all",)),
        "graph-query": Reader(".txt", (), _graph_query, ("model/queries.py",), ("parse_query",)),
    }


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
    """An input that is right but for odd choices, changed in a few places half of the time."""
    if name == "dft":
        return _changed_run(rng.choice(reader.seeds), rng)
    content = made(name, reader, rng)
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2, 8))):
        content = _changed(content, made(name, reader, rng), rng)
    return content[:200_000]


def made(name: str, reader: Reader, rng: Random) -> bytes:
    if reader.seeds and rng.random() < 0.1:
        return rng.choice(reader.seeds)
    return fuzz_grammar.GENERATORS[name](fuzz_grammar.Choice(rng))


def _changed(content: bytes, other: bytes, rng: Random) -> bytes:
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
        return content[:at] + other[rng.randrange(len(other) + 1) :]
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
        at = rng.choice((rng.randrange(40), rng.randrange(len(content))))
        ways = [
            b"",
            content[at:],
            content[:at],
            content + b"more",
            content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :],
        ]
        return rng.choice(
            [
                *ways,
                _headed(b"[]", 1),
                _headed(b'{"version": 1, "sections": [[1]]}', 1),
                _headed(b'{"version": "9"}', 9),
            ]
        )
    with tempfile.TemporaryDirectory(dir=FAST) as place:
        path = Path(place) / "run.dft"
        path.write_bytes(content)
        found = archive.read(path)
        name = rng.choice([*found.sections, "call", "call"])
        part = found.sections[name]
        if name != "answer":
            tree = found.tree(name)
            for _ in range(rng.choice((0, 1, 1, 2))):
                _change_tree(tree, rng)
            part = _packed(tree, rng)
        if rng.random() < 0.1:
            part = part[: rng.randrange(len(part) + 1)]
        path.unlink()
        head = {key: value for key, value in found.head.items() if key != "sections"}
        archive.write(path, head, {**found.sections, name: part}, False)
        return path.read_bytes()


def _packed(tree: Any, rng: Random) -> bytes:
    """As it is stored; now and then with arrays that are deflated, and references to arrays that are wrong."""
    fewest, archive.FEWEST_BYTES = archive.FEWEST_BYTES, rng.choice((archive.FEWEST_BYTES, 8))
    try:
        packed = b"".join(archive.buffers(tree, once=True))
    finally:
        archive.FEWEST_BYTES = fewest
    if rng.random() < 0.7:
        return packed
    end = 4 + int.from_bytes(packed[:4], "little")
    text = json.loads(packed[4:end])
    references: list[list[Any]] = []

    def find(part: Any) -> None:
        if isinstance(part, dict) and "!" in part:
            references.append(part["!"])
        for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
            find(inner)

    find(text)
    if references:
        chosen = rng.choice(references)
        odd = [*ODD, 8, 40, 2**31, "<f8", "|O", "V8", "<U4", ">i2", [2**40], [3, -1], [0] * 9, [2] * 8]
        chosen[rng.randrange(len(chosen))] = copy.deepcopy(rng.choice(odd))
        chosen += rng.choice(([], [], [7], [-3], ["x"]))
    made = json.dumps(text).encode()
    return len(made).to_bytes(4, "little") + made + packed[end:]


def _headed(head: bytes, number: int) -> bytes:
    """A file with this head and its checksum."""
    start = archive.MAGIC + archive.LIMITS.pack(number, len(head)) + head
    return start + bytes.fromhex(archive.checksum(start))


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
            tree[key] = copy.deepcopy(rng.choice(ODD))
        return


def kept(name: str) -> list[Path]:
    return sorted((CORPUS / name).glob("*"))
