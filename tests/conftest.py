"""What every test relies on: hypothesis draws the same examples in every run, unless fresh ones are asked for."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

# No deadline: the first example may compile a kernel.
settings.register_profile("gate", derandomize=True, deadline=None, database=None, print_blob=True)
settings.register_profile(
    "fresh", deadline=None, max_examples=500, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fresh" if "DEFINETTI_SEED" in os.environ else "gate")


def pytest_configure(config: pytest.Config) -> None:
    """Turn `DEFINETTI_SEED=fresh` into a number before the workers start, so that all share it."""
    if os.environ.get("DEFINETTI_SEED") == "fresh":
        os.environ["DEFINETTI_SEED"] = str(secrets.randbelow(2**32))


def pytest_report_header(config: pytest.Config) -> str | None:
    seed = os.environ.get("DEFINETTI_SEED")
    return seed and f"fresh seeds: repeat with DEFINETTI_SEED={seed}"


@pytest.fixture(scope="session")
def fresh_seed() -> int:
    """For slow tests only: another seed in every run, printed in the head of the report."""
    return int(os.environ.get("DEFINETTI_SEED", "0"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that state how long something takes have the mark `timed`: `make check-slow` runs them once more."""
    for item in items:
        if "cpu_limit" in getattr(item, "fixturenames", ()):
            item.add_marker("timed")


@pytest.fixture(scope="session")
def cpu_limit() -> Callable[[float], AbstractContextManager[None]]:
    """`with cpu_limit(5):` fails past 5 CPU seconds, children included. The gate does not look at the clock."""

    @contextmanager
    def limit(seconds: float) -> Iterator[None]:
        began = sum(os.times()[:4])
        yield
        spent = sum(os.times()[:4]) - began
        assert "DEFINETTI_SEED" not in os.environ or spent < seconds, f"{spent:.1f} CPU seconds, not {seconds:g}"

    return limit


@pytest.fixture(scope="session")
def examples() -> Path:
    """The folder of bundled models."""
    return ROOT / "examples"
