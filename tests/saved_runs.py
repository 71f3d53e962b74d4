"""Runs that are saved on the way and restored: whether they go on bit by bit."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from definetti.model.marginals import Marginals
from definetti.samplers import run as loop
from definetti.samplers.protocol import Sampling

CLOCKS = ("seconds", "cpu_seconds")  # of a state: no two runs have the same


def written_and_read(state: dict[str, Any]) -> dict[str, Any]:
    """Through an .npz file without pickle: arrays by number, everything else as JSON."""
    arrays: dict[str, np.ndarray] = {}

    def flat(part: Any) -> Any:
        if isinstance(part, np.ndarray):
            arrays[str(len(arrays))] = part
            return {"array": len(arrays) - 1}
        if isinstance(part, dict):
            assert all(isinstance(key, str) for key in part)
            return {"dict": {key: flat(value) for key, value in part.items()}}
        if isinstance(part, list):
            return [flat(value) for value in part]
        assert part is None or type(part) in (int, float, str, bool), type(part)
        return part

    def whole(part: Any) -> Any:
        if isinstance(part, list):
            return [whole(value) for value in part]
        if isinstance(part, dict):
            if "array" in part:
                return found[str(part["array"])]
            return {key: whole(value) for key, value in part["dict"].items()}
        return part

    text, file = json.dumps(flat(state)), io.BytesIO()
    np.savez(file, **arrays)
    file.seek(0)
    with np.load(file, allow_pickle=False) as found:
        return whole(json.loads(text))


def same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a if key not in CLOCKS)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def left(sampling: Sampling) -> list[Any]:
    """All that a run leaves behind."""
    draws = vars(sampling.draws())
    members, balance = draws.pop("tracked"), draws.pop("balance")
    parts = [] if members is None else [members.statistic, members.means, members.lengths]
    parts += [] if balance is None else vars(balance).values()
    return [draws, parts, sampling.updates, sampling.report(), sampling.notices()]


def stops(sampling: Sampling, most: int | None) -> Iterator[Any]:
    for step in sampling.steps():
        yield step
        if most is not None and step.phase == "sampling" and step.done >= most:
            return


def check(make: Callable[[], Sampling], most: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run in whole chunks; then one in the smallest, saved on the way; then each of the saved ones to the end."""
    whole = make()
    for _ in stops(whole, most):
        pass
    expected = left(whole)
    monkeypatch.setattr(loop, "CHUNK_SECONDS", 1e-9)
    cut, saved = make(), []
    for step in stops(cut, most):
        saved.append((step.phase, step.done, cut.state()))
    assert same(left(cut), expected)
    end = cut.state()
    warm = [s for s in saved if s[0] == "warm-up"]
    sampled = [s for s in saved if s[0] == "sampling" and s[1] != most]
    inside = [s for s in sampled if 0 < s[2]["done"] < s[2]["length"]]
    followed = [s for s in inside if s[2]["tracking"]]
    tried = warm[:1] + followed[:1] + warm[len(warm) // 2 :][:1] + inside[:1] + inside[len(inside) // 2 :][:1]
    tried += sampled[len(sampled) // 3 :][:1] + sampled[-1:]
    assert inside and sampled
    make().restore(written_and_read(make().state()))  # before the first step
    for phase, done, state in tried:
        other = make()
        other.restore(written_and_read(state))
        assert same(other.state(), state), (phase, done)
        for _ in stops(other, most):
            pass
        assert same(left(other), expected) and same(other.state(), end), (phase, done)


# --- runs that are killed and resumed ---------------------------------------------------------------------------------


class Killed(BaseException):
    """Nothing of ours catches it."""


def numbers(p: Marginals) -> Any:
    """All of an answer that does not come from a clock."""
    found = p.to_json(None)
    run = {key: found["run"][key] for key in ("sampler", "estimator", "sweeps", "burn_in", "updates", "seed", "chains")}
    tempering = found["run"].get("tempering")
    return json.dumps([found["queries"], found["orbits"], run, found["warnings"], tempering], sort_keys=True)


def killer(steps: int) -> Callable[[Any], None]:
    left = iter(range(steps))

    def progress(report: Any) -> None:
        if next(left, None) is None:
            raise Killed

    return progress
