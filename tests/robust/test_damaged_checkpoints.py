"""Checkpoints that are cut off, changed, foreign or newer; a full disk; two writers. A good file always survives."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from every_sampler import GRAPHS

import definetti as dft
from definetti import archive
from definetti.cli.main import run
from definetti.errors import DefinettiError, ModelError, NotSaved, ParseError
from definetti.inference.saving.checkpoint import Checkpoint, read_run

MODEL = GRAPHS["gibbs"][1]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, with the checkpoint before it."""
    path = tmp_path_factory.mktemp("run") / "run.dft"
    dft.marginals(MODEL, sampler="gibbs", chains=4, sweeps=20, seed=5, checkpoint=path)
    return path


def copied(written: Path, folder: Path, content: bytes, previous: bool = False) -> Path:
    path = folder / "run.dft"
    path.write_bytes(content)
    archive.previous(path).unlink(missing_ok=True)
    if previous:
        archive.previous(path).write_bytes(archive.previous(written).read_bytes())
    return path


def refusal(path: Path) -> str:
    with pytest.raises(ParseError) as caught:
        read_run(path)
    return str(caught.value)


def test_cut_off_anywhere(written: Path, tmp_path: Path) -> None:
    whole = written.read_bytes()
    for length in [*range(0, 400, 7), *range(400, len(whole), max(1, len(whole) // 150))]:
        said = refusal(copied(written, tmp_path, whole[:length]))
        assert "cut off" in said or "empty" in said, (length, said)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_what_is_no_file(tmp_path: Path) -> None:
    """A folder was taken for a bug, and nobody writes into a pipe."""
    pipe = tmp_path / "run.dft"
    os.mkfifo(pipe)
    for path, said in ((Path("."), "this is a directory"), (pipe, "this is a pipe")):
        with pytest.raises(ParseError, match=said):
            dft.resume(path)
    with pytest.raises(ModelError, match="this is a pipe"):
        dft.marginals(MODEL, sampler="gibbs", sweeps=5, checkpoint=pipe)


def test_nothing_is_left_beside_what_is_no_run(tmp_path: Path) -> None:
    """`definetti resume model.uai` left a lock there."""
    model = tmp_path / "model.uai"
    model.write_text("MARKOV\n1\n2\n0\n")
    with pytest.raises(ParseError, match=r"this is no \.dft file"):
        dft.resume(model)
    assert list(tmp_path.iterdir()) == [model]


def test_changed_anywhere(written: Path, tmp_path: Path) -> None:
    whole = bytearray(written.read_bytes())
    for place in [*range(0, 400, 3), *range(400, len(whole), max(1, len(whole) // 200)), len(whole) - 1]:
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        said = refusal(copied(written, tmp_path, bytes(changed)))
        assert any(word in said for word in ("damaged", "cut off", "no .dft file", "behind the end")), (place, said)
    assert "behind the end" in refusal(copied(written, tmp_path, bytes(whole) + b"\0"))


def test_foreign_files(written: Path, tmp_path: Path) -> None:
    for content in (b"{}", b"\x89PNG\r\n\x1a\n" + bytes(100), written.read_bytes().replace(b"\r\n", b"\n", 1)):
        assert "this is no .dft file" in refusal(copied(written, tmp_path, content, previous=True))


def test_a_newer_version_is_refused_by_its_number(written: Path, tmp_path: Path) -> None:
    head = json.dumps({"version": "7.1.0"}).encode()
    start = archive.MAGIC + archive.LIMITS.pack(archive.FORMAT + 2, len(head)) + head
    path = copied(written, tmp_path, start + bytes.fromhex(archive.checksum(start)) + b"what comes later")
    assert "7.1.0" in refusal(path) and f"format {archive.FORMAT + 2}" in refusal(path)


def test_the_checkpoint_before_it_is_used(written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = copied(written, tmp_path, written.read_bytes()[:-50], previous=True)
    before = archive.previous(path).read_bytes()
    assert run(["resume", str(path), "--json", "--quiet"]) in (0, 1)
    found = json.loads(capsys.readouterr().out)
    expected = dft.marginals(MODEL, sampler="gibbs", chains=4, sweeps=20, seed=5, workers=found["run"]["workers"])
    assert found["orbits"] == expected.to_json()["orbits"]
    assert any("checkpoint before it is used" in row["message"] for row in found["warnings"])
    assert archive.read(path).head["finished"]  # mended
    assert archive.read(archive.previous(path)) is not None and before != path.read_bytes()


def test_the_command_line_says_which(written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = copied(written, tmp_path, written.read_bytes()[:-50])
    for words in (["resume", str(path)], ["compare", str(path), str(path)], ["report", str(path)]):
        assert run(words) == 2
        assert "cut off in the section" in capsys.readouterr().err
    assert run(["resume", str(tmp_path / "none.dft")]) == 2 and "no such file" in capsys.readouterr().err
    copied(written, tmp_path, b"hello")
    assert run(["marginals", "examples/grid.uai", "-o", str(path)]) == 2
    assert path.read_bytes() == b"hello"


def test_what_is_whole_and_wrong(written: Path, tmp_path: Path) -> None:
    """Checksums are right, and the content is not: a table that ends too early, a variable that is not there, …"""
    good = archive.read(written)
    for change in ("scope", "table_of", "tables", "cards", "evidence"):
        call = good.tree("call")
        call["model"]["parts"][change] = call["model"]["parts"][change][:-1]
        archive.write(tmp_path / "run.dft", good.head, {**good.sections, "call": archive.pack(call)}, False)
        assert "no run of definetti" in refusal(tmp_path / "run.dft")
        call = good.tree("call")
        call["model"]["parts"][change] = call["model"]["parts"][change] + 1000
        if change != "tables":
            archive.write(tmp_path / "run.dft", good.head, {**good.sections, "call": archive.pack(call)}, False)
            assert "no run of definetti" in refusal(tmp_path / "run.dft")
    for section in ("call", "journal", "part 0"):
        for tree in ({}, [], None, 3, {"model": 5}, [[[]]]):
            archive.write(tmp_path / "run.dft", good.head, {**good.sections, section: archive.pack(tree)}, False)
            assert refusal(tmp_path / "run.dft")


# --- a full disk, and two writers -------------------------------------------------------------------------------------


@pytest.fixture
def small_disk() -> Iterator[None]:
    """No file may be larger than four kilobytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_the_last_good_file(tmp_path: Path, small_disk: None) -> None:
    path = tmp_path / "run.dft"
    archive.write(path, {"version": "1"}, {"a": b"good"}, False)
    with pytest.raises(ModelError, match="File too large; the last checkpoint is as it was"):
        archive.write(path, {"version": "1"}, {"a": bytes(5000)}, True)
    assert archive.read(path).sections["a"] == b"good" and os.listdir(tmp_path) == ["run.dft"]


def test_a_run_on_a_full_disk_ends_with_an_error(tmp_path: Path, small_disk: None) -> None:
    with pytest.raises(DefinettiError, match="cannot write"):
        dft.marginals(MODEL, sampler="gibbs", chains=64, sweeps=2000, seed=5, checkpoint=tmp_path / "run.dft")


@pytest.mark.parametrize("kind", ["--json", "--quiet"])
def test_a_disk_that_is_full_at_the_last_write_does_not_cost_the_answer(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.dft"
    finish = Checkpoint.finish

    def full(self: Checkpoint, document: Any, interrupted: bool) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (16, hard))
        try:
            finish(self, document, interrupted)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    words = ["marginals", "examples/grid.uai", "--sampler", "gibbs", "--sweeps", "40", "--seed", "1"]
    with monkeypatch.context() as patched:
        patched.setattr(Checkpoint, "finish", full)
        assert run([*words, "-o", str(path), kind]) == 2
    printed = capsys.readouterr()
    assert "cannot write" in printed.err and "explain NotSaved" in printed.err
    assert run(["resume", str(path), kind]) in (0, 1)  # from the last checkpoint, to the same answer
    again = capsys.readouterr().out
    if kind == "--json":
        assert json.loads(printed.out)["orbits"] == json.loads(again)["orbits"]
    else:
        assert "X0" in printed.out and "trusted" in printed.out.splitlines()[-1]
    with monkeypatch.context() as patched, pytest.raises(NotSaved, match="cannot write") as caught:
        patched.setattr(Checkpoint, "finish", full)
        dft.marginals(MODEL, sampler="gibbs", chains=4, sweeps=20, seed=5, checkpoint=tmp_path / "other.dft")
    assert caught.value.result["X0"] == dft.resume(tmp_path / "other.dft")["X0"]


def test_files_of_the_first_format_are_read(written: Path, tmp_path: Path) -> None:
    """Its sections had BLAKE2 checksums."""
    now = archive.read(written)
    table = [[name, len(part), archive.checksum(part)] for name, part in now.sections.items()]
    head = json.dumps({**now.head, "sections": table}).encode()
    start = archive.MAGIC + archive.LIMITS.pack(1, len(head)) + head
    content = start + bytes.fromhex(archive.checksum(start)) + b"".join(now.sections.values())
    assert archive.read(copied(written, tmp_path, content)).sections == now.sections
    assert "is damaged" in refusal(copied(written, tmp_path, content[:-1] + bytes([content[-1] ^ 1])))


def test_a_second_writer_is_refused(written: Path, tmp_path: Path) -> None:
    path = copied(written, tmp_path, written.read_bytes())
    with archive.locked(path):
        for write in (lambda: dft.resume(path), lambda: dft.marginals(MODEL, checkpoint=path)):
            with pytest.raises(ModelError, match="another process is writing"):
                write()
        assert dft.load(path)["X0"].probability  # readers need no lock
    assert dft.resume(path).run["sweeps"] == 20
