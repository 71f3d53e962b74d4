"""Markov logic from the file to marginals: the relational engine, the ground engine and the exact answer agree.

Fixed seeds; |z| limits with a family-wise false-alarm rate of 1e-4 (the verdict of `compare` states it).
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from plain_kernels import plain_model, start

import definetti as dft
from definetti.cli.main import run
from definetti.errors import DefinettiError, TooLarge, UnknownName
from definetti.inference.stopping import Look, Stopping
from definetti.samplers.logic.queries import Asked
from definetti.samplers.logic.sampling import RelationalSampling
from definetti.samplers.protocol import Plan, Progress

EXAMPLES = Path(__file__).parents[2] / "examples"
PAIR = "Friends(Person1,Person2) ^ Friends(Person2,Person3)"


def smokers(people: int = 3, name: str = "smokers.mln"):
    return dft.read(EXAMPLES / name, domain={"person": people})


@pytest.mark.parametrize("name", ["smokers.mln", "smokers-transitive.mln", "asthma-hard.mln", "asthma-soft.mln"])
def test_relational_sampling_agrees_with_enumeration(name: str) -> None:
    model = smokers(3, name)
    queries = [PAIR, "Smokes(Person1) v Cancer(Person1)", "Cancer(Person2)"]
    sampled = dft.marginals(model, queries, sweeps=1500, chains=8, seed=11)
    comparison = sampled.compare(dft.exact(model, queries))
    assert len(comparison.names) == len(sampled.members) + 2
    assert comparison.agrees, comparison
    assert sampled.trusted


def test_every_scan_and_estimator_agrees() -> None:
    model = smokers()
    truth = dft.exact(model, [PAIR])
    for scan in ("symmetric", "random", "fixed"):
        for estimator in ("orbit", "standard", "conditional"):
            sampled = dft.marginals(model, [PAIR], sweeps=700, scan=scan, estimator=estimator, seed=5)
            assert sampled.compare(truth).agrees, (scan, estimator, sampled.compare(truth))


def test_the_ground_engine_gives_the_same() -> None:
    model = smokers()
    truth = dft.exact(model, [PAIR])
    for kind in ("variables", "literals"):
        ground = dft.marginals(model, [PAIR], symmetries=kind, sweeps=700, seed=3)
        assert ground.run["symmetries"] == kind and ground.run["chains"] == 64
        assert ground.compare(truth).agrees


def test_evidence_is_answered_without_error_and_the_rest_agrees() -> None:
    model = dft.read(EXAMPLES / "smokers.mln", evidence=EXAMPLES / "town.db")
    sampled = dft.marginals(model, ["Smokes(Anna)", "Cancer(Anna)", "Smokes(Bob)"], sweeps=3000, seed=8)
    assert sampled["Smokes(Anna)"].probability == 1 and sampled["Smokes(Anna)"].mcse == 0
    assert sampled["Smokes(Bob)"].probability == 0 and sampled["Smokes(Bob)"].orbit_size == 1
    assert sampled.compare(dft.exact(model)).agrees


def test_without_symmetries_every_atom_is_alone() -> None:
    sampled = dft.marginals(smokers(), symmetries=None, sweeps=200, seed=1)
    assert len(sampled.orbits) == 15 and {row.size for row in sampled.orbits} == {1}
    assert sampled.run["symmetries"] == "none"


def test_jensen_the_orbit_mean_is_no_worse_than_its_members() -> None:
    model = smokers()
    truth = dft.exact(model)
    alone = dft.marginals(model, estimator="standard", sweeps=300, seed=2)
    orbit = dft.marginals(model, estimator="orbit", sweeps=300, seed=2)
    for row in orbit.orbits:
        members = list(dft.symmetries(model).orbit_of(row.representative))
        means = np.array([alone[name].probability for name in members])
        target = truth[row.representative].probability
        assert np.isclose(row.probability, means.mean(), atol=1e-12)  # the same draws
        assert (row.probability - target) ** 2 <= ((means - target) ** 2).mean() + 1e-15


def test_a_seed_repeats_itself_whatever_the_number_of_workers() -> None:
    one = dft.marginals(smokers(5), sweeps=100, seed=4, workers=1)
    two = dft.marginals(smokers(5), sweeps=100, seed=4, workers=2)
    assert [row.probability for row in one.orbits] == [row.probability for row in two.orbits]
    assert [row.mcse for row in one.orbits] == [row.mcse for row in two.orbits]


def test_unknown_names_are_errors() -> None:
    for query in ("Smokes(Nobody)", "Sleeps(Person1)", "Smokes(Person1,Person2)", "Smokes(Person1) ^"):
        with pytest.raises(DefinettiError):
            dft.marginals(smokers(), [query], sweeps=10)
    with pytest.raises(UnknownName):
        dft.marginals(smokers(), sweeps=10, seed=1)["Smokes(Nobody)"]


def test_a_time_limit_ends_inside_a_sweep(cpu_limit) -> None:
    model = smokers(2000)  # one sweep of eight chains takes far longer than the limit
    with cpu_limit(30):
        sampled = dft.marginals(model, seconds=0.3, seed=1, workers=1, chains=8)
    assert not sampled.trusted
    assert 0 <= sampled["Smokes(Person1)"].probability <= 1


def test_the_progress_tells_the_time_that_is_left_by_the_clock() -> None:
    """Starts of a large model take long before the first stretch is sampled."""
    for until in (None, 0.01):
        stopping = Stopping(None, "orbit", 5.0, until, False, look=Look(0.02, None), began=time.perf_counter() - 3.0)
        assert not stopping.step(
            SimpleNamespace(can_stop=True, most_batches=32, batch_count=0), Progress("warm-up", 0, None, 1e6, None, 1.0)
        )
        assert until is not None or 1.0 < stopping.left <= 2.0
        assert stopping.left <= 2.0
    late = replace(stopping, began=time.perf_counter() - 5.0)
    assert (
        late.step(
            SimpleNamespace(can_stop=True, most_batches=32, batch_count=0), Progress("warm-up", 0, None, 1e6, None, 1.0)
        )
        and late.left == 0.0
    )


def test_states_inside_the_first_sweep_are_counted_some_atoms_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    group = dft.symmetries(smokers(40))
    r = plain_model(group.model, group.atom_orbits)
    sampling = RelationalSampling(r, Asked(group, dict, (), ()), Plan(1, 1, None, 5, 1))
    chain = start(r, 5)
    whole = sampling._orbit_means(chain)
    friends = r.atoms(chain, "Friends")
    number = group.orbit_number("Friends", (0, 1))
    assert whole[number] == pytest.approx((friends.sum() - friends.trace()) / (40 * 39), abs=1e-12)
    monkeypatch.setattr("definetti.samplers.logic.sampling.ATOMS_AT_ONCE", 7)
    assert sampling._orbit_means(chain).tolist() == whole.tolist()


def test_a_model_that_does_not_fit_is_refused_with_the_figure() -> None:
    """Lists of true atoms, too: a hundredth of 10^12 atoms may be true."""
    with pytest.raises(TooLarge, match=r"needs [\d.]+ [GT]B, the limit is [\d.]+ [MG]B") as caught:
        dft.marginals(smokers(1_000_000), sampler="gibbs", seconds=1, seed=1)
    assert caught.value.size >= 10**12 / 8


def test_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path, file = str(EXAMPLES / "smokers-transitive.mln"), tmp_path / "out.csv"
    words = ["marginals", path, "--domain", "person=4", "--query", "Smokes", "--query", PAIR, "--seed", "3"]
    assert run([*words, "--sweeps", "2000", "--json", "-o", str(file)]) == 0
    got = json.loads(capsys.readouterr().out)
    assert list(got["queries"]) == [f"Smokes(Person{k})" for k in range(1, 5)] + [PAIR]
    assert got["orbit_count"] == 4 and sum(row["size"] for row in got["orbits"]) == 24
    assert got["run"]["world"] == "open" and got["run"]["chains"] == 8
    asked = got["queries"]["Smokes(Person2)"]
    assert abs(asked["probability"] - 0.0665334667) < 5 * asked["mcse"]
    assert len(file.read_text().splitlines()) == 1 + 5 + 24  # the queries, then every atom
    assert run(["symmetries", path, "--domain", "person=30", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["order"] == "265252859812191058636308480000000" and found["orbit_count"] == 4


def test_closed_world_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["marginals", str(EXAMPLES / "smokers.mln"), "--evidence", str(EXAMPLES / "town.db"), "--seed", "3"]
    assert (
        run([*words, "--closed-world", "Friends", "--sweeps", "1000", "--json", "--query", "Friends(Dora,Anna)"]) == 0
    )
    got = json.loads(capsys.readouterr().out)
    assert got["run"]["world"] == "closed: Friends"
    assert got["queries"]["Friends(Dora,Anna)"] == {
        "probability": 0.0, "mcse": 0.0, "half_width": 0.0, "rhat": None, "ess": None, "orbit_size": 1,
    }  # fmt: skip


def test_the_table_tells_the_world(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["exact", str(EXAMPLES / "smokers.mln"), "--evidence", str(EXAMPLES / "town.db")]
    assert run([*words, "--closed-world", "Friends,Cancer"]) == 0
    line = "closed world: Cancer, Friends false where the evidence is silent; dialect alchemy"
    assert capsys.readouterr().out.splitlines()[-2] == line
    assert run(words) == 0
    assert capsys.readouterr().out.splitlines()[-2] == "open world; dialect alchemy"
    assert run(["exact", str(EXAMPLES / "grid.uai")]) == 0
    assert "world" not in capsys.readouterr().out


def test_queries_of_several_shapes_keep_their_order() -> None:
    """The kernel counts queries of one shape together: answers of interleaved shapes were exchanged."""
    text = "person = {A,B,C,D}\nS(person)\nF(person,person)\n0.5 S(x)\n1.1 F(x,y) ^ S(x) => S(y)\n-0.7 F(x,y)\n"
    model = dft.markov_logic(text, "S(D)\nF(A,B)")
    asked = ["S(A) ^ S(B)", "F(A,C) ^ S(A) ^ S(C)", "S(B) ^ S(C)", "F(B,C) v S(A)"]
    found, truth = dft.marginals(model, asked, sampler="gibbs", sweeps=1000, seed=1), dft.exact(model, asked)
    for text in asked:
        assert abs(found[text].probability - truth[text].probability) < 5 * found[text].mcse
