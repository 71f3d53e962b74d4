"""Figure 1: an MLN with three formulas over two people, the state space of its Gibbs chain, and the quotient chain."""

from __future__ import annotations

from typing import Any

from definetti.experiments.figure import Effort, Measured, Verdict

CAPTION = (
    "Illustration of the orbit partition of the assignment space induced by the renaming automorphism group "
    "{(A B), ()}: (a) an MLN with three formulas; (b) the state space of a Gibbs chain; (c) the lumped state space of "
    "the quotient Markov chain which has 10 instead of 16 states."
)
SECONDS = (5.0, 5.0)
MODEL = """
person = {A, B}
smokes(person)
cancer(person)
1.4 !smokes(x)
2.3 !cancer(x)
1.5 smokes(x) => cancer(x)
"""


def measure(effort: Effort) -> Measured:
    chain = _quotient()
    probability, orbit = chain.space.probability, chain.partition.orbit_of
    rows = [
        {"state": chain.space.text(s), "orbit": int(orbit[s]) + 1, "probability": float(probability[s])}
        for s in range(chain.states)
    ]
    facts = {
        "states": chain.states,
        "orbits": chain.orbits,
        "lumpable": bool(chain.lumpable),
        "violation": float(chain.lumpability.ordinary),
        "tau": chain.tau,
        "quotient_tau": chain.quotient_tau,
        "epsilon": chain.epsilon,
        "example": _example(chain),
    }
    return Measured(rows, facts)


def draw(measured: Measured) -> Any:
    from definetti.pages.quotient_figure import quotient_figure

    return quotient_figure(_quotient())


def judge(measured: Measured) -> list[Verdict]:
    facts = measured.facts
    return [
        Verdict(
            "fig1",
            "“the lumped state space of the quotient Markov chain which has 10 instead of 16 states”",
            "10 orbits of 16 states",
            f"{facts['orbits']} orbits of {facts['states']} states",
            (facts["orbits"], facts["states"]) == (10, 16),
            paper=True,
        ),
        Verdict(
            "fig1",
            "“Given the sample point s = ⟨1, 0, 1, 0⟩ we have that … P(smokes(A)=1 | s^G) = 1/2”",
            "0.5",
            f"{facts['example']:g}",
            facts["example"] == 0.5,
            paper=True,
        ),
        Verdict(
            "fig1",
            "“Every finite ergodic Markov chain is exactly lumpable with respect to an orbit partition of its state "
            "space.”",
            "Gibbs sampling by uniform random scan is: rows of one orbit agree to rounding",
            f"largest difference {facts['violation']:.1g}",
            facts["lumpable"] and facts["violation"] < 1e-12,
            paper=True,
            note="It needs a kernel that commutes with the group, Q(gx, gy) = Q(x, y). The uniform random scan does; a "
            "fixed order of sites does not: definetti quotient MODEL --scan fixed.",
        ),
        Verdict(
            "fig1",
            "“the mixing time of M′ is smaller than or equal to the mixing time of M”",
            f"τ′({facts['epsilon']:g}) ≤ τ({facts['epsilon']:g})",
            f"{facts['quotient_tau']} ≤ {facts['tau']} updates",
            facts["quotient_tau"] <= facts["tau"],
            paper=True,
            note="Often the two are equal, because the slowest mode is itself symmetric: the gain is in variance.",
        ),
    ]


def _quotient() -> Any:
    from definetti.lumping.quotient import quotient
    from definetti.readers.reading import markov_logic

    return quotient(markov_logic(MODEL), scan="random")


def _example(chain: Any) -> float:
    """P(smokes(A) = 1 | orbit of s) for the state of the paper's example: the mean over the orbit of s."""
    space = chain.space
    names = [space.model.names[i] for i in space.model.free]
    values = space.states[:, space.model.free]
    wanted = {"smokes(A)": 1, "smokes(B)": 0, "cancer(A)": 1, "cancer(B)": 0}
    s = next(k for k, row in enumerate(values.tolist()) if dict(zip(names, row, strict=True)) == wanted)
    same = chain.partition.orbit_of == chain.partition.orbit_of[s]
    return float(values[same, names.index("smokes(A)")].mean())
