"""Draws as output: the states of the run itself, in every format, and orbital chains against exact answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_models import hard_pairs, ising_ring, potts_ring

import definetti as dft
from definetti.cli.main import run
from definetti.errors import ModelError
from definetti.readers.samples import read_samples


def largest_difference(a: dft.Marginals, b: dft.Marginals) -> float:
    rows = zip(a.orbits, b.orbits, strict=True)
    return max(float(np.abs(np.subtract(x.probability, y.probability)).max()) for x, y in rows)


@pytest.mark.parametrize("sampler", ["gibbs", "blocks", "orbital"])
@pytest.mark.parametrize("model", [ising_ring(6, 0.5, 0.2), hard_pairs(), potts_ring(4, 3)])
def test_marginals_of_draws_are_those_of_the_direct_run(model: dft.FactorGraph, sampler: str) -> None:
    options = {"sampler": sampler, "chains": 5, "burn_in": 3, "seed": 4}
    draws = dft.sample(model, draws=64, **options)
    direct = dft.marginals(model, sweeps=64, estimator="orbit", **options)
    assert largest_difference(dft.marginals(draws), direct) < 1e-12
    assert largest_difference(dft.marginals(draws, model=model), direct) < 1e-12


@pytest.mark.parametrize("sampler", ["gibbs", "mcsat", "lifted", "orbital"])
def test_so_are_those_of_markov_logic(sampler: str, examples: Path) -> None:
    model = dft.read(examples / "smokers.mln", domain={"person": 3})
    options = {"sampler": sampler, "chains": 3, "burn_in": 0 if sampler == "lifted" else 4, "seed": 4}
    draws = dft.sample(model, draws=64, **options)
    query = ["Smokes(Person1) ^ Friends(Person1,Person2)"] if sampler in ("mcsat", "lifted") else []
    direct = dft.marginals(model, query, sweeps=64, estimator="orbit", **options)
    folded = dft.marginals(draws, query, model=model)
    assert largest_difference(folded, direct) < 1e-12
    assert all(abs(folded[text].probability - direct[text].probability) < 1e-12 for text in query)
    assert draws.names[:3] == ("Smokes(Person1)", "Smokes(Person2)", "Smokes(Person3)")


def test_words_of_every_shape_are_unpacked() -> None:
    """Predicates without arguments and rows of several words; states recorded one by one, or many at once."""
    rules = "P(t)\nQ\nR(t,t,u)\n0.5 P(x) => Q\n0.3 R(x,y,z) => P(x)"
    model = dft.markov_logic(rules, domain={"t": 2, "u": 70})
    draws = dft.sample(model, sampler="gibbs", chains=2, draws=40, seed=3, workers=1)
    direct = dft.marginals(model, sampler="gibbs", chains=2, sweeps=40, seed=3, estimator="orbit")
    assert largest_difference(dft.marginals(draws, model=model), direct) < 1e-12
    singly = [batch[0] for _, batch in zip(range(40), draws.start().snapshots(1), strict=False)]
    np.testing.assert_array_equal(np.stack(singly, axis=1), draws.array())
    assert draws.names[2] == "Q" and draws.variables == 3 + 4 * 70


def test_every_pass_gives_the_same_draws_whatever_the_workers() -> None:
    a, b = (dft.sample(ising_ring(8), sampler="gibbs", chains=70, draws=9, every=2, seed=1, workers=w) for w in (1, 2))
    np.testing.assert_array_equal(a.array(), b.array())
    np.testing.assert_array_equal(a.array(), a.array())
    both = dft.sample(ising_ring(8), sampler="gibbs", chains=70, draws=18, seed=1, workers=1).array()
    np.testing.assert_array_equal(a.array(), both[:, 1::2])
    packed = np.concatenate(list(a.packed()))
    np.testing.assert_array_equal(np.unpackbits(packed, axis=-1)[..., :8].transpose(1, 0, 2), a.array())


@pytest.mark.parametrize("model", [ising_ring(5, 0.4, 0.1), potts_ring(4, 3)])
@pytest.mark.parametrize("suffix", [".npz", ".csv"])
def test_files_hold_the_draws(model: dft.FactorGraph, suffix: str, tmp_path: Path) -> None:
    draws = dft.sample(model, sampler="gibbs", chains=12, draws=7, seed=2)
    draws.save(tmp_path / f"draws{suffix}")
    np.testing.assert_array_equal(read_samples(tmp_path / f"draws{suffix}", model), draws.array())
    assert [path.name for path in tmp_path.iterdir()] == [f"draws{suffix}"]


def test_parquet_has_a_row_per_draw_and_chain(tmp_path: Path) -> None:
    import pyarrow.parquet as parquet

    draws = dft.sample(ising_ring(5), sampler="gibbs", chains=3, draws=4, seed=2)
    draws.save(tmp_path / "draws.parquet")
    table = parquet.read_table(tmp_path / "draws.parquet").to_pydict()
    found = np.array([table[name] for name in draws.names]).T.reshape(4, 3, 5).transpose(1, 0, 2)
    np.testing.assert_array_equal(found, draws.array())
    assert table["chain"][:4] == [0, 1, 2, 0] and table["draw"][:4] == [0, 0, 0, 1]


def test_a_failed_run_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=".npz, .csv, .parquet"):
        dft.sample(ising_ring(4), draws=3).save(tmp_path / "draws.txt")
    with pytest.raises(ModelError, match="whole number from 1"):
        dft.sample(ising_ring(4), draws=0)
    with pytest.raises(ModelError, match="takes a model"):
        dft.sample(np.zeros(3))  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_the_command_writes_what_marginals_reads(tmp_path: Path, examples: Path, capsys: Any) -> None:
    grid, out = str(examples / "grid.uai"), str(tmp_path / "draws.npz")
    words = [
        "sample",
        grid,
        "-o",
        out,
        "--sampler",
        "orbital",
        "--chains",
        "8",
        "--draws",
        "40",
        "--seed",
        "3",
        "--json",
    ]
    assert run(words) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["values"], told["sampler"], told["seed"]) == (8 * 40 * 144, "orbital", 3)
    assert run(["marginals", grid, "--samples", out, "--json"]) in (0, 1)
    answer = json.loads(capsys.readouterr().out)
    assert run(["sample", grid]) == 2 and "-o says where the draws go" in capsys.readouterr().err
    assert answer["run"]["chains"] == 8 and answer["run"]["sweeps"] == 40


def test_draws_of_markov_logic_come_back_by_the_command(tmp_path: Path, examples: Path, capsys: Any) -> None:
    words = [str(examples / "smokers.mln"), "--domain", "person=3"]
    for name in ("draws.npz", "draws.csv"):
        out = str(tmp_path / name)
        assert run(["sample", *words, "-o", out, "--sampler", "orbital", "--chains", "4", "--draws", "40"]) == 0
        capsys.readouterr()
        assert run(["marginals", *words, "--samples", out]) in (0, 1)
        said = capsys.readouterr()
        assert "open world" in said.out and "bug" not in said.err and "Smokes(Person1)" in said.out


@pytest.mark.parametrize("sampler", [dft.Orbital(), dft.Orbital(dft.Gibbs("random")), dft.OrbitalMetropolis()])
def test_standard_estimates_from_orbital_chains(sampler: Any) -> None:
    for model in (ising_ring(6, 0.5, 0.2), potts_ring(4, 3)):
        found = dft.marginals(model, sampler=sampler, estimator="standard", chains=64, sweeps=400, seed=11)
        assert found.compare(dft.exact(model)).agrees


def test_standard_estimates_from_orbital_chains_of_markov_logic(examples: Path) -> None:
    model = dft.read(examples / "smokers.mln", domain={"person": 3})
    found = dft.marginals(model, sampler=dft.Orbital(), estimator="standard", chains=8, sweeps=2000, seed=11)
    assert found.compare(dft.exact(model)).agrees


@pytest.mark.parametrize("name", ["orbital-metropolis", "orbital-metropolis:mcsat", "orbital:tempering"])
def test_moves_of_markov_logic_with_evidence(name: str, examples: Path) -> None:
    """By name; the proposals swap people of whom different things are known."""
    model = dft.read(examples / "smokers.mln", domain={"person": 3})
    model = model.condition({"Smokes(Person1)": True, "Friends(Person1,Person2)": True})
    found = dft.marginals(model, sampler=name, estimator="orbit", chains=8, sweeps=250, seed=11)
    assert found.compare(dft.exact(model)).agrees
    assert found.run["sampler"] == name and ("metropolis" in name) == ("accepted" in found.run)
    assert 0.01 < found.run.get("accepted", 0.5) < 0.99
