"""From Python: what is given wrongly is told as one of our errors; nothing runs for ever or gives a wrong number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_models import ising_ring

import definetti as dft

RING = ising_ring(4, field=0.3)


@pytest.mark.parametrize("option", ["chains", "sweeps", "workers", "burn_in", "seed"])
@pytest.mark.parametrize("value", [1.5, -1, "3", [2]])
def test_counts_are_whole_numbers(option: str, value: Any) -> None:
    """A warm-up of 1.5 sweeps never ended."""
    with pytest.raises(dft.ModelError, match=f"{option} is a whole number"):
        dft.marginals(RING, **{option: value})


def test_any_integer_type_is_a_count() -> None:
    runs = [dft.marginals(RING, sweeps=kind(6), chains=kind(3), seed=kind(7)) for kind in (int, np.uint16)]
    assert runs[0]["X0"].probability == runs[1]["X0"].probability
    assert dft.marginals(RING, sweeps=5, chains=True, seed=1).run["chains"] == 1


@pytest.mark.parametrize("value", ["x", float("nan"), 0, -1])
def test_times_and_widths_are_positive_numbers(value: Any) -> None:
    for option in ("seconds", "until", "time_limit"):
        with pytest.raises(dft.ModelError, match=option):
            dft.marginals(RING, **{option: value})


def test_one_query_needs_no_list() -> None:
    assert dft.exact(RING, "X0=1 ^ X1=1").queries.keys() == {"X0=1 ^ X1=1"}
    assert dft.marginals(RING, "X0", sweeps=5, seed=1).queries.keys() == {"X0"}


def test_a_path_is_no_model() -> None:
    for verb in (dft.exact, dft.symmetries):
        with pytest.raises(dft.ModelError, match="dft.read"):
            verb("model.uai")  # type: ignore[arg-type]


def test_samples_need_chains() -> None:
    with pytest.raises(dft.ModelError, match=r"got shape \(0, 5, 4\)"):
        dft.marginals(np.zeros((0, 5, 4), dtype=int), model=RING)


def test_the_density_of_what_is_no_state() -> None:
    for state in ([-1, 1, 1, 1], [2, 0, 0, 0], [0, 0, 0]):  # spins were read from the end of the tables
        with pytest.raises(dft.ModelError, match="a state has"):
            RING.log_density(np.array(state))


def test_names_are_texts() -> None:
    """A number in a scope is a position: {1: 2, 0: 3} would be read as the variables 0 and 1."""
    with pytest.raises(dft.ModelError, match="text"):
        dft.factor_graph({1: 2, 0: 3}, [([0, 1], np.ones((2, 3)))])  # type: ignore[dict-item]


def test_too_many_values_are_refused_before_memory_is_taken() -> None:
    with pytest.raises(dft.TooLarge, match="values of all variables together"):
        dft.factor_graph([2_000_000_000], [])


def test_weights_whose_sums_would_not_be_finite() -> None:
    """Three of these add up to infinity: an ordinary model was called unsatisfiable."""
    with pytest.raises(dft.ModelError, match="logarithm beyond"):
        dft.factor_graph([2], [([0], [0.0, 1e308])] * 3, log=True)
    assert dft.exact(dft.factor_graph([2], [([0], [-np.inf, 1e99])] * 3, log=True))["X0"].probability == 1.0
