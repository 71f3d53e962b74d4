"""A run that is killed at any moment and resumed gives the same answer, bit by bit.

Kills are simulated by an exception that nothing catches, between two checkpoints; some are real (SIGKILL).
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from every_sampler import GRAPHS, LOGIC, coexisting, theory
from saved_runs import Killed, killer, numbers

import definetti as dft
from definetti import archive, journal
from definetti.cli.main import run as cli
from definetti.errors import INTERRUPTED, ModelError
from definetti.estimators import ESTIMATORS
from definetti.inference.mixture import Mixture
from definetti.inference.saving import checkpoint, remembered
from definetti.inference.stopping import Stopping
from definetti.model import encoding
from definetti.model.marginals import Marginals
from definetti.modes.graph.walkers import GraphWalkers
from definetti.modes.logic.walkers import LogicWalkers
from definetti.samplers import protocol
from definetti.samplers import run as loop

HARD = """
P(thing)
R(thing, thing)
0.3 P(x)
R(x,y) => (P(x) <=> P(y)).
1.5 R(x,y)
"""


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shortest steps, and a checkpoint after every third of them."""
    asked = iter(range(1 << 30))
    monkeypatch.setattr(loop, "CHUNK_SECONDS", 1e-9)
    monkeypatch.setattr(checkpoint.Checkpoint, "due", lambda self, size: size() >= 0 and next(asked) % 3 == 0)


def killed_and_resumed(path: Path, kills: list[int], **settings: Any) -> Marginals:
    """Killed after so many steps, resumed, killed again, …, resumed."""
    model = settings.pop("model")
    with pytest.raises(Killed):
        dft.marginals(model, checkpoint=path, progress=killer(kills[0]), **settings)
    for steps in kills[1:]:
        with pytest.raises(Killed):
            dft.resume(path, progress=killer(steps))
    return dft.resume(path)


def check(path: Path, kills: list[int], **settings: Any) -> Marginals:
    made = killed_and_resumed(path, kills, **settings)
    model = settings.pop("model")
    whole = dft.marginals(model, **settings)
    assert numbers(made) == numbers(whole)
    return whole


# --- every sampler, estimator and kind of model -----------------------------------------------------------------------


@pytest.mark.parametrize("name", GRAPHS)
def test_factor_graphs(name: str, tmp_path: Path, often: None) -> None:
    sampler, model, chains = GRAPHS[name]
    settings = {"queries": ["X0=1 ^ X1=0"], "sampler": sampler, "chains": chains, "sweeps": 70, "seed": 5}
    check(tmp_path / "run.dft", [40], model=model, workers=1, **settings)


@pytest.mark.parametrize("name", LOGIC)
def test_markov_logic(name: str, tmp_path: Path, often: None) -> None:
    sampler = LOGIC[name][0]
    settings = {"queries": ["P(Thing1) ^ R(Thing1,Thing2)"], "sampler": sampler, "chains": 4, "sweeps": 70, "seed": 5}
    check(tmp_path / "run.dft", [30], model=theory(tmp_path), workers=1, **settings)


@pytest.mark.parametrize(
    ("estimator", "kind"), [*((name, "graph") for name in ESTIMATORS if name != "auto"), ("control", "logic")]
)
def test_estimators(estimator: str, kind: str, tmp_path: Path, often: None) -> None:
    model = GRAPHS["gibbs-words"][1] if kind == "graph" else theory(tmp_path)
    check(tmp_path / "run.dft", [20], model=model, sampler="gibbs", estimator=estimator, chains=4, sweeps=70, seed=5)


# --- what the clock decides -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["graph", "logic"])
def test_a_run_for_some_time(kind: str, tmp_path: Path, often: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Identical to an uninterrupted one of as many sweeps: here the end comes at a fixed number of them."""
    monkeypatch.setattr(Stopping, "_over", lambda self, sampling, report: report.phase[0] == "s" and report.done > 150)
    model = GRAPHS["gibbs"][1] if kind == "graph" else theory(tmp_path)
    found = check(tmp_path / "run.dft", [4, 40], model=model, sampler="gibbs", chains=4, seconds=1e6, seed=5)
    assert found.run["sweeps"] > 100


def test_a_run_until_an_error_is_reached(tmp_path: Path, often: None) -> None:
    found = check(tmp_path / "run.dft", [4, 90], model=GRAPHS["gibbs-words"][1], sampler="gibbs", until=0.01, seed=5)
    assert found.run["half_width"] < 0.01


def test_time_that_was_used_counts(tmp_path: Path, often: None) -> None:
    path, model = tmp_path / "run.dft", GRAPHS["gibbs"][1]
    with pytest.raises(Killed):
        dft.marginals(model, sampler="gibbs", seconds=1e6, checkpoint=path, progress=killer(40))
    kept = checkpoint.read_run(path)
    part = kept.journal._past[0]
    part.state["stopping"]["used"] = 2e6
    kept.journal.write(0.0)
    assert dft.resume(path).run["sweeps"] >= 8  # at once


def test_set_up_is_not_taken_from_the_time_of_a_run_that_goes_on(tmp_path: Path) -> None:
    path, model = tmp_path / "run.dft", GRAPHS["gibbs"][1]
    short = dft.marginals(model, sampler="gibbs", seconds=1e-4, seed=5, checkpoint=path)
    assert any("one batch was sampled" in notice.message for notice in short.notices)
    longer = dft.resume(path, seconds=0.2)
    assert not any("one batch was sampled" in notice.message for notice in longer.notices)
    assert longer.run["sweeps"] > short.run["sweeps"]


def test_a_second_sampler_after_the_first(tmp_path: Path, often: None) -> None:
    """`auto` asks MC-SAT where Gibbs sampling is stuck: killed in the second, the first is not run again."""
    text = "!A(x) v !S(x).\n!A(x) v !F(x,y) v !S(y).\nS(P1).\n0.1 A(x)\n"  # asthma, where one smokes
    model = dft.markov_logic("A(person)\nS(person)\nF(person,person)\n" + text, domain={"person": 6})
    steps: list[str] = []
    whole = dft.marginals(model, chains=4, sweeps=40, seed=5, progress=lambda r: steps.append(r.phase))
    second = max((k for k, phase in enumerate(steps) if phase == "compiling mcsat"), default=None)
    if second is None:
        pytest.fail("this model no longer makes `auto` change its sampler")
    made = killed_and_resumed(tmp_path / "run.dft", [second + 20], model=model, chains=4, sweeps=40, seed=5)
    assert numbers(made) == numbers(whole)
    parts = checkpoint.read_run(tmp_path / "run.dft").journal._past
    assert [part.name for part in parts] == ["gibbs", "mcsat"]


@pytest.mark.parametrize("kind", ["graph", "logic"])
def test_a_mixture_of_modes_goes_on(kind: str, tmp_path: Path, often: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in the survey, in the warm-up of a region, in the first and in the second one; every batch counts once."""
    steps: list[str] = []
    settings = {"chains": 8, "sweeps": 64, "seed": 3, "workers": 1}
    whole = dft.marginals(coexisting(kind), **settings, progress=lambda r: steps.append(r.phase))
    assert len(whole.run["regions"]) == 2 and min(region["share"] for region in whole.run["regions"]) > 0.1
    batches, path, first = steps.count("sampling"), tmp_path / "run.dft", steps.index("sampling")
    kills = [first + 1, 6, batches // 2 - 4, 9]
    made = killed_and_resumed(path, kills, model=coexisting(kind), **settings)
    assert numbers(made) == numbers(whole) and made.run["regions"] == whole.run["regions"]
    monkeypatch.setattr(Mixture, "go_on", lambda *_: pytest.fail("a finished run is not sampled again"))
    assert numbers(dft.resume(path)) == numbers(whole) and dft.load(path).notices == whole.notices


def test_the_survey_of_modes_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What took long enough is kept, and used by the run that goes on."""
    monkeypatch.setattr(remembered, "SHORT", 0.0)
    monkeypatch.setattr(checkpoint.Checkpoint, "due", lambda self, size: size() >= 0)
    settings = {"chains": 8, "sweeps": 64, "seed": 3, "workers": 1}
    for kind in ("graph", "logic"):
        model, path = coexisting(kind), tmp_path / f"{kind}.dft"
        with monkeypatch.context() as survey:
            survey.setattr(Mixture, "go_on", lambda *_: (_ for _ in ()).throw(Killed))
            with pytest.raises(Killed):
                dft.marginals(model, checkpoint=path, **settings)
        calls = checkpoint.read_run(path).journal.remembered.calls
        assert {tree["result"] for tree in calls.values() if isinstance(tree, dict)} == {"Walk", "Paths"}
        with monkeypatch.context() as again:
            for name in ("walk", "paths", "starts"):
                walkers = GraphWalkers if kind == "graph" else LogicWalkers
                again.setattr(walkers, name, lambda *_, **__: pytest.fail("computed again"))
            made = dft.resume(path)
        assert numbers(made) == numbers(dft.marginals(model, **settings))


def test_a_mixture_that_is_extended(tmp_path: Path, often: None) -> None:
    """Killed on the way or not: the same; the rounds before are not repeated."""
    answers = []
    for kill in (False, True):
        path = tmp_path / f"{kill}.dft"
        dft.marginals(coexisting("logic"), chains=8, sweeps=64, seed=3, workers=1, checkpoint=path)
        if kill:
            with pytest.raises(Killed):
                dft.resume(path, sweeps=128, progress=killer(40))
        answers.append(dft.resume(path) if kill else dft.resume(path, sweeps=128))
    assert numbers(answers[0]) == numbers(answers[1]) and answers[0].run["sweeps"] == 128
    longer = dft.resume(path, seconds=0.2)
    assert longer.run["sweeps"] > 128 and numbers(dft.resume(path)) == numbers(longer)
    reached = dft.resume(path, until=0.2)
    assert all(row.half_width <= 0.2 for row in reached.orbits)


def test_a_mixture_that_is_interrupted(tmp_path: Path, often: None) -> None:
    """What there is so far is an answer; the run goes on from where it was, not from the answer."""
    path, steps = tmp_path / "run.dft", iter(range(1 << 30))
    settings = {"chains": 8, "sweeps": 64, "seed": 3, "workers": 1}

    def interrupts(report: Any) -> None:
        if report.phase == "sampling" and next(steps) == 20:
            signal.raise_signal(signal.SIGTERM)

    stopped = dft.marginals(coexisting("logic"), **settings, checkpoint=path, progress=interrupts)
    assert stopped.interrupted and stopped.run["sweeps"] < 64
    assert numbers(dft.resume(path)) == numbers(dft.marginals(coexisting("logic"), **settings))


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN])
def test_a_run_that_was_ended_leaves_the_next_one_alone(handler: Any) -> None:
    """A process that a shell has put into the background ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        with checkpoint.Checkpoint(Path("run.dft"), b"", {}, False).patiently():
            signal.raise_signal(signal.SIGTERM)
            assert INTERRUPTED.is_set()
        assert not INTERRUPTED.is_set() and signal.getsignal(signal.SIGINT) is handler
    finally:
        INTERRUPTED.clear()
        signal.signal(signal.SIGINT, before)


def test_exact_answers(tmp_path: Path) -> None:
    model, path = GRAPHS["gibbs"][1], tmp_path / "run.dft"
    p = dft.marginals(model, checkpoint=path)
    assert p.run["sampler"] == "exact" and numbers(dft.resume(path)) == numbers(p)
    assert dft.load(path)["X0"].probability == p["X0"].probability


def test_given_groups(tmp_path: Path, often: None) -> None:
    model, logic = GRAPHS["gibbs-words"][1], theory(tmp_path)
    for number, (source, group) in enumerate(
        [(model, dft.symmetries(model, "variables")), (logic, dft.symmetries(logic, "renaming"))]
    ):
        check(tmp_path / f"{number}.dft", [20], model=source, symmetries=group, sampler="gibbs", sweeps=70, seed=5)


def test_decisions_are_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    record: journal.Record = {}
    asked = (np.arange(3),)
    with journal.recording(record):
        assert journal.decided("search", asked, lambda: {"found": 1}) == {"found": 1}
        first, late = journal.Deadline("work", 1e6), journal.Deadline("work", -1.0)
        assert [first.passed() for _ in range(3)] == [False] * 3 and late.passed()
    record = archive.unpack(archive.pack(record))
    with journal.recording(record):
        assert journal.decided("search", asked, lambda: {"found": 2}) == {"found": 1}
        assert journal.decided("search", (np.arange(4),), lambda: {"found": 2}) == {"found": 2}
        first, late = journal.Deadline("work", -1.0), journal.Deadline("work", 1e6)
        assert [first.passed() for _ in range(5)] == [False] * 3 + [True] * 2 and late.passed() and late.passed()
    assert journal.Deadline("work", -1.0).passed() and not journal.Deadline("work", 1e6).passed()


def test_the_search_for_symmetries_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that the clock ended stays ended; one that was complete is not repeated."""
    from definetti.symmetry import bliss

    edges, colours = np.stack([np.arange(300), (np.arange(300) + 1) % 300], 1), np.zeros(300, np.int64)
    record: journal.Record = {}
    with journal.recording(record):
        found = bliss.search(edges, colours, 60.0)
        ended = bliss.search(edges[:-1], colours, -1.0)
    assert found.order == 600 and found.complete and not ended.complete
    monkeypatch.setattr(bliss, "_run", lambda *_: pytest.fail("searched again"))
    with journal.recording(archive.unpack(archive.pack(record))):
        again = bliss.search(edges, colours, 60.0)
        assert again.order == 600 and len(again.generators) == len(found.generators)
        assert not bliss.search(edges[:-1], colours, 60.0).complete


# --- going on for longer ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["graph", "logic"])
def test_other_ends(kind: str, tmp_path: Path) -> None:
    path, model = tmp_path / "run.dft", GRAPHS["gibbs-words"][1] if kind == "graph" else theory(tmp_path)
    dft.marginals(model, sampler="gibbs", chains=4, sweeps=40, seed=5, checkpoint=path)
    longer = dft.resume(path, sweeps=1000)
    assert longer.run["sweeps"] == 1000 and numbers(dft.resume(path)) == numbers(longer)
    same = dft.resume(path, sweeps=500)
    assert same.run["sweeps"] == 1000  # nothing is thrown away
    for clock in ("sample", "sample_cpu"):
        assert same.run["seconds"][clock] >= longer.run["seconds"][clock]
    assert dft.resume(path, seconds=0.01).run["sweeps"] >= 1000
    reached = dft.resume(path, until=0.02)
    assert reached.run["until"] == 0.02 and reached.run["half_width"] <= 0.02


@pytest.mark.parametrize("kind", ["graph", "logic"])
def test_a_run_of_days_has_results_from_the_first_minutes(kind: str, tmp_path: Path) -> None:
    """Its first batch was a thirty-second of it: hours without results, for which `seconds` waited, too."""
    path, model = tmp_path / "run.dft", GRAPHS["gibbs-words"][1] if kind == "graph" else theory(tmp_path)

    def interrupt(progress: Any) -> None:
        if progress.phase == "sampling" and progress.done >= 40 and not INTERRUPTED.is_set():
            signal.raise_signal(signal.SIGINT)

    settings = {"sampler": "gibbs", "chains": 4, "sweeps": 10**12, "seed": 5}
    made = dft.marginals(model, checkpoint=path, progress=interrupt, **settings)
    assert 20 <= made.run["sweeps"] < 10**9
    assert made.run["sweeps"] <= dft.resume(path, seconds=0.01).run["sweeps"] < 10**9


def test_batches_of_a_long_run_grow_to_its_end(tmp_path: Path, often: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "LONG_PLAN", 100)
    settings = {"sampler": "gibbs", "chains": 4, "sweeps": 203, "seed": 5}
    made = check(tmp_path / "run.dft", [40, 90], model=GRAPHS["gibbs-words"][1], **settings)
    assert made.run["sweeps"] == 203


def test_an_extended_run_that_is_killed(tmp_path: Path, often: None) -> None:
    path, model = tmp_path / "run.dft", GRAPHS["gibbs-words"][1]
    answers = []
    for kill in (False, True):
        path = tmp_path / f"{kill}.dft"
        dft.marginals(model, sampler="gibbs", chains=4, sweeps=40, seed=5, checkpoint=path)
        if kill:
            with pytest.raises(Killed):
                dft.resume(path, sweeps=300, progress=killer(50))
        answers.append(numbers(dft.resume(path) if kill else dft.resume(path, sweeps=300)))
    assert answers[0] == answers[1]


# --- a file as a result -----------------------------------------------------------------------------------------------


def test_a_run_under_way_is_a_result(tmp_path: Path, often: None) -> None:
    path, model = tmp_path / "run.dft", GRAPHS["gibbs"][1]
    with pytest.raises(Killed):
        dft.marginals(model, sampler="gibbs", sweeps=200, seed=5, checkpoint=path, progress=killer(120))
    before = path.read_bytes()
    found = dft.load(path)
    assert 0 < found["X0"].probability < 1 and path.read_bytes() == before
    assert dft.exact(model).compare(found).strongest is not None
    with pytest.raises(ModelError, match="not finished: definetti resume"):
        dft.marginals(model, sampler="gibbs", checkpoint=path)
    p = dft.resume(path)
    assert dft.load(path)["X0"].probability == p["X0"].probability
    dft.report(path, tmp_path / "page.html")
    dft.marginals(model, sampler="gibbs", sweeps=20, seed=6, checkpoint=path)  # a finished one may be replaced
    assert dft.resume(path).run["seed"] == 6


def test_nothing_to_show_yet(tmp_path: Path, often: None) -> None:
    path = tmp_path / "run.dft"
    with pytest.raises(Killed):
        dft.marginals(
            GRAPHS["gibbs"][1], sampler="gibbs", sweeps=200, burn_in=50, seed=5, checkpoint=path, progress=killer(5)
        )
    with pytest.raises(ModelError, match="no results yet"):
        dft.load(path)


def test_a_refused_run_leaves_no_file(tmp_path: Path) -> None:
    path, model = tmp_path / "run.dft", GRAPHS["gibbs"][1]
    with pytest.raises(dft.DefinettiError):
        dft.marginals(model, ["X99"], sampler="gibbs", checkpoint=path)
    assert not path.exists()
    with pytest.raises(ModelError, match="nothing to resume"):
        dft.marginals(np.zeros((2, 10, model.n), int), model=model, checkpoint=path)
    with pytest.raises(ModelError, match="ends in .dft"):
        dft.marginals(model, checkpoint=tmp_path / "run.json")


# --- models -----------------------------------------------------------------------------------------------------------


def test_arrays_are_kept_bit_by_bit() -> None:
    arrays = [
        np.array(numbers, dtype=kind)
        for numbers, kind in [
            ([-129, 5], np.int64), ([0, 255], np.uint8), ([2**63 - 1, -(2**63)], np.int64), ([2**64 - 1], np.uint64),
            ([[1, 2], [3, 4]], np.int32), ([True, False], np.bool_), ([np.nan, -0.0], np.float64),
            ([], np.int64), (7, np.int64),
        ]
    ]  # fmt: skip
    arrays += [np.asfortranarray(np.arange(6).reshape(2, 3)), np.arange(20)[::3]]
    whole = np.arange(300.0) % 100  # floats that are stored as small integers, if to the last bit
    arrays += [whole, np.asfortranarray(whole.reshape(3, 100)), whole[::2], np.append(whole, -0.0)]
    padded = np.random.default_rng(1).random((40, 30))[:20, :7].T  # a slice, in the order of Fortran
    arrays += [padded, np.floor(4 * padded), np.zeros((3, 4, 5)).transpose(1, 2, 0)[..., :2]]
    arrays += [np.append(whole, last) for last in (np.nan, np.inf, 128.0, -1.0, 0.5)]
    sparse = np.zeros((40, 1000), np.uint64)  # arrays that are deflated
    sparse[::7, ::91] = 2**63 + 1
    arrays += [sparse, np.asfortranarray(sparse), sparse.astype(bool), sparse / 3, np.zeros(10_000)]
    for array, again in zip(arrays, archive.unpack(archive.pack(arrays)), strict=True):
        assert again.dtype == array.dtype and again.shape == array.shape and again.tobytes() == array.tobytes()
        assert again.flags.c_contiguous or list(array.strides) == sorted(array.strides)


def test_small_and_sparse_arrays_take_little() -> None:
    sparse = np.zeros(32_000, np.uint64)  # truth values of a relation with few true atoms
    sparse[::100] = 1 << 40
    assert len(archive.pack([sparse])) < sparse.nbytes / 50
    assert len(archive.pack([np.arange(8000.0) % 2])) < 8100
    assert len(archive.pack([np.random.default_rng(1).random(1000)])) >= 8000


def test_arrays_that_claim_too_much() -> None:
    """Arrays follow each other, and deflated ones have a limit in all, so that a small file takes little memory."""
    one = archive.pack([np.arange(100, dtype=np.uint8)])
    with pytest.raises(ValueError):  # the same bytes twice
        archive.unpack(changed(one, lambda tree: tree * 2))
    zeros = archive.pack([np.zeros(1 << 20, np.uint8)])
    (reference,) = json.loads(zeros[4 : 4 + int.from_bytes(zeros[:4], "little")])
    assert reference["!"][-1] < 5000  # bytes, deflated
    for shape in ([1 << 50], [(1 << 20) - 1], [(1 << 20) + 1], [-1]):
        with pytest.raises(ValueError):
            archive.unpack(changed(zeros, lambda tree, s=shape: [{"!": [tree[0]["!"][0], s, *tree[0]["!"][2:]]}]))
    for length in (0, -5, 1 << 40, 2.5, "9", None):
        with pytest.raises((ValueError, TypeError)):
            archive.unpack(changed(zeros, lambda tree, n=length: [{"!": [*tree[0]["!"][:5], n]}]))
    reals = archive.pack([np.array([np.nan, 1e300])])
    with pytest.raises(ValueError):  # integers from what is none
        archive.unpack(changed(reals, lambda tree: [{"!": [*tree[0]["!"][:4], "<i8"]}]))
    many = [np.zeros(1 << 23, np.uint8)] * 8  # past the limit the others are stored as they are
    packed = archive.pack(many)
    assert 1 << 23 < len(packed) < 3 << 23
    assert all(not array.any() and array.shape == (1 << 23,) for array in archive.unpack(packed))


def changed(packed: bytes, change: Any) -> bytes:
    """With another tree before the same arrays."""
    end = 4 + int.from_bytes(packed[:4], "little")
    text = json.dumps(change(json.loads(packed[4:end]))).encode()
    return len(text).to_bytes(4, "little") + text + packed[end:]


@pytest.mark.slow
def test_a_large_relation_takes_little(tmp_path: Path) -> None:
    """A thousand people, eight chains: states of the survey are mostly zeros or ones, those of the chains are lists."""
    model = dft.read(
        Path(__file__).resolve().parents[2] / "examples" / "smokers-transitive.mln", domain={"person": 1000}
    )
    path = tmp_path / "run.dft"
    dft.marginals(model, sampler="gibbs", chains=8, sweeps=200, seed=3, checkpoint=path)
    assert "survey" in archive.read(path).sections
    assert path.stat().st_size < 5e6


def test_models_are_kept_bit_by_bit(tmp_path: Path) -> None:
    text = """
    colour = {Red, "a \\"b\\"", Blue}
    Has(thing, colour!)
    R(thing, thing)
    0.5 Has(x,+c)
    -1.25 R(x,y) ^ !(x = y) => (EXIST z R(x,z) ^ Has(z,Red))
    FORALL y (R(x,y) <=> R(y,x)).
    """
    logic = dft.markov_logic(text, "R(A,B)\n!R(B,C)\n?R(C,C)", domain={"thing": 5}, closed_world=["R"])
    graph = dft.factor_graph([2, 3], [([0, 1], [[1, 2, 0], [4, 5, 6]])], names=["a", "b"]).condition({"a": 1})
    for model in (logic, graph, dft.ground(logic), theory(tmp_path)):
        packed = archive.pack(encoding.encoded(model))
        again = encoding.decoded(archive.unpack(packed))
        assert archive.pack(encoding.encoded(again)) == packed and repr(again) == repr(model)
    names = {field.name for field in fields(logic)}
    assert names == encoding.encoded(logic)["parts"].keys()  # a new field is kept, too
    again = encoding.decoded(archive.unpack(archive.pack(encoding.encoded(logic))))
    assert [f.body for f in again.formulas] == [f.body for f in logic.formulas]


# --- real signals -----------------------------------------------------------------------------------------------------

GRID = [sys.executable, "-m", "definetti", "marginals", "examples/grid.uai", "--sampler", "gibbs", "--seed", "7"]


def started(path: Path, *options: str) -> subprocess.Popen[str]:
    command = [*GRID, "-o", str(path), "--json", *options]
    root = Path(__file__).resolve().parents[2]
    return subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_sampling(path: Path, process: subprocess.Popen[str]) -> None:
    while process.poll() is None:
        try:
            part = checkpoint.read_run(path).journal._past[0]
            if part.state is not None and part.state["sampling"]["kept"]:
                return
        except (dft.DefinettiError, IndexError):
            pass
        time.sleep(0.05)
    pytest.fail(f"it ended too early: {process.communicate()}")


def test_sigkill_and_resume(tmp_path: Path) -> None:
    path = tmp_path / "run.dft"
    process = started(path, "--sweeps", "20000", "--chains", "256")
    wait_for_sampling(path, process)
    process.kill()
    process.communicate()
    made = dft.resume(path)
    model = dft.read(Path(__file__).resolve().parents[2] / "examples" / "grid.uai")
    workers = made.run["workers"]
    assert numbers(made) == numbers(
        dft.marginals(model, sampler="gibbs", seed=7, sweeps=20000, chains=256, workers=workers)
    )


def test_sigterm_writes_a_last_checkpoint_and_prints_what_there_is(tmp_path: Path) -> None:
    path = tmp_path / "run.dft"
    process = started(path, "--seconds", "600")
    wait_for_sampling(path, process)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate()
    found = json.loads(out)
    assert process.returncode == 130
    part = checkpoint.read_run(path).journal._past[0]
    assert found["run"]["sweeps"] == part.state["sampling"]["kept"] and not part.finished
    assert dft.load(path)["X0"].probability == next(
        row["probability"] for row in found["orbits"] if row["representative"] == "X0"
    )


def test_a_run_is_read_once_and_into_one_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a million constants two copies would take more memory than the run."""
    path, reads = tmp_path / "run.dft", []
    dft.marginals(GRAPHS["gibbs"][1], sampler="gibbs", chains=4, sweeps=20, seed=5, checkpoint=path)
    assert len({id(memoryview(part).obj) for part in archive.read(path).sections.values()}) == 1
    read_bytes = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda file: reads.append(file.name) or read_bytes(file))
    assert cli(["resume", str(path), "--quiet"]) in (0, 1)
    assert reads.count("run.dft") == 1
    assert "X0" in capsys.readouterr().out


def test_a_state_goes_before_the_next_one_is_made() -> None:
    """Two do not stand beside the chains."""

    class Keeping(journal.Journal):
        keeps = True

    part, left = journal.Part(Keeping(), "gibbs"), []

    def state() -> dict[str, Any]:
        left.append(part.state)
        return {"chains": np.zeros(3)}

    for _ in range(2):
        part.keep(state)
    assert left == [None, None]
    assert part.begun and part.state is not None


def test_an_interrupt_behind_the_last_sweep_costs_no_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer of a large model takes seconds, in which the run was lost."""
    path, settings = tmp_path / "run.dft", {"sampler": "gibbs", "chains": 4, "sweeps": 20, "seed": 5}

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as changed, pytest.raises(KeyboardInterrupt):
        changed.setattr("definetti.inference.marginals.with_advice", interrupted)
        dft.marginals(GRAPHS["gibbs"][1], checkpoint=path, **settings)
    (part,) = checkpoint.read_run(path).journal._past
    assert part.finished and part.state["sampling"]["kept"] == 20
    assert numbers(dft.resume(path)) == numbers(dft.marginals(GRAPHS["gibbs"][1], **settings))


def test_a_second_signal_while_a_state_is_taken_costs_nothing(tmp_path: Path, often: None) -> None:
    path, model = tmp_path / "run.dft", GRAPHS["gibbs"][1]
    with pytest.raises(Killed):
        dft.marginals(model, sampler="gibbs", sweeps=300, seed=5, checkpoint=path, progress=killer(40))
    run, before = checkpoint.read_run(path).journal, path.read_bytes()

    def cut_off() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run._past[0].keep(cut_off)
    run.write(0.0)
    assert path.read_bytes() == before


@pytest.mark.slow
def test_a_hundred_kills(fresh_seed: int) -> None:
    """SIGKILL at random moments, over all samplers: set-up, warm-up, sampling, checkpoints."""
    script = Path(__file__).resolve().parents[2] / "benchmarks" / "soak.py"
    command = [sys.executable, str(script), "--kills", "100", "--seed", str(fresh_seed)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    found = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 0 and found["kills"] >= 100 and not found["results_different"], found
