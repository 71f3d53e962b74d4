"""Every refusal of what is too large is one sentence with the size, the limit and the cure."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import definetti as dft
from definetti import show
from definetti.constraints.sat import undecided
from definetti.errors import TooLarge
from definetti.inference.draws import sample
from definetti.model.graph.factors import factor_graph
from definetti.model.logic.ground import ground
from definetti.readers.graph.fg import read_fg
from definetti.readers.logic.mln import read_mln_text
from definetti.samplers.logic.engine import compile_model
from definetti.solvers.graph.eliminate import eliminate

TRANSITIVE = "R(p,p)\n1 R(x,y) ^ R(y,z) => R(x,z)\n"


def clique(n: int) -> dft.FactorGraph:
    rng = np.random.default_rng(1)
    return factor_graph([2] * n, [([i, j], rng.normal(size=(2, 2))) for i in range(n) for j in range(i)], log=True)


def wide(n: int) -> dft.FactorGraph:
    return factor_graph([n, 2], [([0, 1], np.random.default_rng(2).random((n, 2)) + 0.5)])


def library(tmp_path: Path) -> None:
    path = tmp_path / "large.fg"
    path.write_text("1\n\n3\n0 1 2\n100000 100000 100000\n1\n0 1\n")
    read_fg(path)


def core_query(_: Path) -> None:
    one_of = np.array([float(sum(state) == 1) for state in np.ndindex(*[2] * 6)]).reshape([2] * 6)
    model = factor_graph([2] * 60, [(range(6 * k, 6 * k + 6), one_of) for k in range(10)])
    text = " v ".join(f"(X{6 * k} ^ !X{6 * k + 1})" for k in range(10))
    dft.exact(model, [text])


REFUSALS: dict[str, Callable[[Path], object]] = {
    "literals": lambda _: factor_graph([2**28, 2], []),
    "query": lambda _: (
        dft.exact(clique(3), [" v ".join(["X0 ^ X1"])])
        and dft.exact(factor_graph([2] * 40, []), [" v ".join(f"X{i}" for i in range(40))])
    ),
    "query after contraction": core_query,
    "exact": lambda _: dft.exact(clique(60)),
    "enumeration": lambda _: dft.exact(clique(30), method="enumerate"),
    "enumeration beyond floats": lambda _: dft.exact(
        factor_graph([2] * 3000, [([i, i + 1], np.eye(2) + 1) for i in range(2999)]), method="enumerate"
    ),
    "elimination": lambda _: eliminate(clique(12), limit=1000),
    "orbits": lambda _: dft.exact(
        factor_graph([2] * 12, [(range(12), np.indices([2] * 12).sum(axis=0))], log=True), method="orbits"
    ),
    "values of tables": lambda _: dft.marginals(wide(300), sweeps=1, seed=1),
    "values of MC-SAT": lambda _: dft.marginals(wide(2000), sweeps=1, seed=1, sampler="mcsat"),
    ".fg": library,
    "domain": lambda _: read_mln_text("P(p)\n1 P(x)\n", domain={"p": 10**12}),
    "ground formulas": lambda _: ground(read_mln_text(TRANSITIVE, domain={"p": 10_000})),
    "ground atoms": lambda _: ground(read_mln_text("R(p,p,p)\n1 R(x,x,x)\n", domain={"p": 10_000})),
    "ground table": lambda _: ground(read_mln_text("R(p,p)\n1 EXIST y R(x,y)\n", domain={"p": 100})),
    "quantifiers": lambda _: ground(read_mln_text("R(p,p)\n1 EXIST x,y R(x,y)\n", domain={"p": 1000})),
    "clauses": lambda _: read_mln_text("P(p)\nQ(p)\n1 EXIST x (P(x) ^ Q(x))\n", domain={"p": 2000}, weights="alchemy"),
    "exact of logic": lambda _: dft.exact(read_mln_text(TRANSITIVE, domain={"p": 200})),
    "exact of logic by elimination": lambda _: dft.exact(read_mln_text(TRANSITIVE, domain={"p": 12})),
    "state of chains": lambda _: compile_model(read_mln_text(TRANSITIVE, domain={"p": 1_000_000}), {}),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_is_one_sentence_with_size_limit_and_cure(name: str, tmp_path: Path) -> None:
    with pytest.raises(TooLarge) as caught:
        REFUSALS[name](tmp_path)
    check(caught.value)


def check(error: TooLarge) -> None:
    text = str(error)
    assert text.count("too large") == 1 and "TooLarge" not in text
    assert not re.search(r"\de[+-]?\d", text), "a bare 4.7e+08"
    head, _, cure = text.rpartition("; ")
    assert cure == error.cure and cure[0].islower() and not cure.endswith(".")
    assert "\n" not in text and ". " not in text.replace("…", "")
    found = re.search(r" (is|needs) (at least )?(.+), the limit is (.+)$", head)
    assert found, text
    assert found[4] == show.amount(error.limit, "bytes" if error.unit == "bytes" else "")
    assert found[3] == show.amount(error.size, error.unit)
    assert error.size > error.limit


def test_memory_is_shown_in_units(monkeypatch: pytest.MonkeyPatch) -> None:
    error = TooLarge("the state", 3.2e9, 1e9, "use fewer chains", unit="bytes")
    assert str(error) == "too large: the state needs 3.2 GB, the limit is 1 GB; use fewer chains"
    check(error)


def test_a_search_without_answer_names_its_budget() -> None:
    text = str(undecided(30_000, "give a start"))
    assert text.startswith("undecided: ") and "after 30,000 conflicts" in text and text.endswith("; give a start")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(2**25, "states", "33,554,432 states"), (1e20, "states", "about 10^20 states"), (4.7e8, "", "470,000,000"),
     (9e15, "", "about 10^15"), (float("inf"), "states", "more than 10^300 states"),
     (10**400, "", "about 10^400"), (3e12, "bytes", "3 TB")],
)  # fmt: skip
def test_amounts(value: float, unit: str, text: str) -> None:
    assert show.amount(value, unit) == text


@pytest.mark.parametrize(
    ("bits", "text"), [(3, "8"), (np.log2(3), "3"), (25, "2^25"), (10_000, "10^3010"), (40.5, "10^12")]
)
def test_powers_of_two(bits: float, text: str) -> None:
    assert show.power_of_two(bits) == text


def test_draws_of_more_atoms_than_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused by size, before memory is taken: the state is bits, a draw bytes, and names more."""
    wide = dft.markov_logic("P(n,n)\n1 P(x,y)", domain={"n": 200_000})
    with pytest.raises(TooLarge, match="the state of the chains"):
        dft.sample(wide, sampler="gibbs", draws=1, chains=64, seed=1)
    draws = dft.sample(wide.with_domain(n=10), sampler="gibbs", draws=1, chains=64, seed=1)
    monkeypatch.setattr(sample, "available_memory", lambda: 5_000)
    for what, take in (
        ("one draw", lambda: next(iter(draws))),
        ("the names", lambda: draws.names),
        ("array", draws.array),
    ):
        with pytest.raises(TooLarge, match=what):
            take()


@pytest.mark.parametrize("chains", [10**6, 10**9])
@pytest.mark.parametrize("ask", [dft.marginals, dft.sample])
@pytest.mark.parametrize(("kind", "sampler"), [("graph", "gibbs"), ("graph", "tempering"), ("logic", "mcsat")])
def test_more_chains_than_fit_are_refused_before_their_starts(
    ask: Callable, kind: str, sampler: str, chains: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Starts of a billion chains ended with a MemoryError, or with all the memory of the machine."""
    monkeypatch.setattr("definetti.samplers.protocol.available_memory", lambda: 2**29)
    monkeypatch.setattr("definetti.samplers.logic.engine.available_memory", lambda: 2**29)
    model = clique(4) if kind == "graph" else dft.markov_logic("P(p)\n1 P(x)", domain={"p": 3})
    with pytest.raises(TooLarge, match="the state of the chains"):
        ask(model, chains=chains, sampler=sampler, seed=1)


def test_chains_of_mcsat_that_do_not_fit_are_refused_after_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("definetti.samplers.logic.engine.available_memory", lambda: 2**29)
    model = dft.markov_logic("P(p)\n1 P(x)", domain={"p": 3})
    with pytest.raises(TooLarge, match="the state of the chains"):
        dft.marginals(model, chains=10**5, sampler="mcsat", seed=1)
