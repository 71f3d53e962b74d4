"""Bounds on log Z by density, and the log density from lists, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from logic_worlds import worlds

import definetti as dft
from definetti.constraints.logic.forced_atoms import with_forced_atoms
from definetti.samplers.sparse.emit import plan_of
from definetti.samplers.sparse.starts import Lists
from definetti.samplers.sparse.weights.bounds import NotBounded, Terms, covers, denser
from definetti.samplers.sparse.weights.counting import log_density

FORMS = {
    "transitive": "S(node)\nE(node,node)\n1.4 !S(x)\n0.8 !E(x,y)\n1.1 E(x,y) ^ S(x) => S(y)\n"
    "1.0 E(x,y) ^ E(y,z) => E(x,z)",
    "reciprocity": "E(node,node)\n-0.7 E(x,y)\n0.9 E(x,y) ^ E(y,x)",
    "homophily": "G(node)\nE(node,node)\n0.3 G(x)\n-0.8 E(x,y)\n0.6 E(x,y) ^ (G(x) <=> G(y))",
    "triangles": "E(node,node)\n-0.7 E(x,y)\n0.4 E(x,y) ^ E(x,z) ^ E(y,z)\n!E(x,x).",
    "cycles": "E(node,node)\n-0.7 E(x,y)\n-0.4 E(x,y) ^ E(y,z) ^ E(z,x)",
    "stars": "E(node,node)\n-0.5 E(x,y)\n0.3 E(x,z) ^ E(y,z)",
    "two sorts": "A(user)\nLikes(user,item)\nB(item)\n-0.5 Likes(u,i)\n0.4 A(u) ^ Likes(u,i) => B(i)\n"
    "0.3 Likes(u,i) ^ Likes(w,i) ^ u != w",
    "two relations": "E(node,node)\nD(node,node)\n-0.5 E(x,y)\n-0.4 D(x,y)\n0.6 E(x,y) => D(y,x)\n"
    "0.3 E(x,y) ^ D(y,z) => D(x,z)\n!E(x,x).\n!D(x,x).",
    "undirected": "E(node,node)\n-0.4 E(x,y)\n0.3 E(x,y) ^ E(y,z) ^ E(x,z)\nE(x,y) => E(y,x).\n!E(x,x).",
}
UNBOUNDED = {"somebody": "P(node)\nE(node,node)\n-0.5 E(x,y)\n0.7 P(x) => (EXIST y E(x,y))\n0.4 E(x,y) ^ P(y)"}
SLACK = 0.1  # nats: the densities of a second relation are looked at on a grid


class Plain:
    """What `log_density` reads of an engine."""

    def __init__(self, name: str) -> None:
        text = (FORMS | UNBOUNDED)[name]
        sizes = {"user": 3, "item": 2} if "user" in text else {"node": 3}
        self.model = with_forced_atoms(dft.markov_logic(text, domain=sizes))
        self.plan = plan_of(self.model)
        _, self.values, self.logs = worlds(self.model)
        self.legal = np.flatnonzero(np.isfinite(self.logs))

    def lists(self, k: int) -> Lists:
        """World number k."""
        bits, pairs = {}, {}
        for name, predicate in self.model.predicates.items():
            true = [c for (n, c), value in self.values.items() if n == name and value[k]]
            if len(set(predicate.sorts)) == 1:
                bits[name] = np.array([(x,) * len(predicate.sorts) in true for x in range(self.model.shape(name)[0])])
            if len(predicate.sorts) == 2:
                pairs[name] = np.array([c for c in true if self.is_pair(name, c)], int).reshape(-1, 2)
        return Lists(bits, pairs)

    def is_pair(self, name: str, constants: tuple[int, ...]) -> bool:
        return len(set(self.model.predicates[name].sorts)) > 1 or constants[0] != constants[1]


@pytest.mark.parametrize("name", FORMS | UNBOUNDED)
def test_log_density_from_lists(name: str) -> None:
    """Up to one constant, that of what the normal form leaves out."""
    r = Plain(name)
    off = [log_density(r, r.lists(k)) - r.logs[k] for k in r.legal[:: 1 + len(r.legal) // 60]]
    assert np.ptp(off) < 1e-9


@pytest.mark.parametrize("name", FORMS)
def test_bounds_hold(name: str) -> None:
    r = Plain(name)
    first = int(r.legal[0])
    logs = r.logs[r.legal] + log_density(r, r.lists(first)) - r.logs[first]
    terms = Terms(r.model, r.plan)
    lower, _ = terms.best_product()
    total = float(np.logaddexp.reduce(logs))
    assert total - 6.0 < lower <= total + 1e-9
    for p in terms.binary:
        relation = list(r.model.predicates)[p]
        pairs = [v[r.legal] for (n, c), v in r.values.items() if n == relation and r.is_pair(n, c)]
        count = np.sum(pairs, axis=0)
        for m in np.unique(count[count > 0]):
            upper = terms.upper(p, np.array([m / terms.pairs(p)]))[0]
            assert float(np.logaddexp.reduce(logs[count == m])) <= upper + SLACK, (relation, m)


def graph(n: int, edge: float, triangle: float):
    text = f"E(node,node)\n!E(x,x).\n{edge} E(x,y)\n{triangle} E(x,y) ^ E(y,z) ^ E(x,z) ^ x!=y ^ y!=z ^ x!=z"
    return with_forced_atoms(dft.markov_logic(text, domain={"node": n}))


@pytest.mark.parametrize(("share", "known"), [(0.9, "none"), (1.0, "open"), (1.1, "heavier"), (3.0, "heavier")])
@pytest.mark.parametrize("n", [2000, 10_000])
def test_degenerate_graphs(n: int, share: float, known: str) -> None:
    """Triangles against edges: at a share of 1 the complete graph is as likely as the empty one."""
    model = graph(n, -6.0, 6.0 * share / n)
    (found,) = denser(model, plan_of(model))
    assert (found.outweighed(0.01) > 12) == (known == "heavier")
    assert (found.cutoff < 0.1) == (known == "none")


def test_crowds_have_a_cutoff() -> None:
    """All-true friends are no second mode: transitivity takes away what it gives."""
    text = "S(p)\nF(p,p)\n1.4 !S(x)\n4.6 !F(x,y)\n1.1 F(x,y) ^ S(x) => S(y)\n1.0 F(x,y) ^ F(y,z) => F(x,z)"
    model = dft.markov_logic(text, domain={"p": 3000})
    (found,) = denser(model, plan_of(model))
    assert 0.005 < found.cutoff < 0.03 and found.outweighed(0.003) == -np.inf


def test_no_bounds() -> None:
    hard = dft.markov_logic("E(node,node)\n-1 E(x,y)\n1 E(x,y) ^ E(y,x)\nE(x,y) => E(x,x).", domain={"node": 3})
    for model in (hard, Plain("somebody").model):
        with pytest.raises(NotBounded):
            denser(model, plan_of(model))


def test_covers() -> None:
    plan = plan_of(dft.markov_logic("E(node,node)\n1.0 E(x,y) ^ E(y,z) => E(x,z)", domain={"node": 4}))
    triangle = next(m for m in plan.monomials if len(m.pairs) == 3)
    path = next(m for m in plan.monomials if len(m.pairs) == 2 and len(m.sorts) == 3)
    assert covers(triangle, path, frozenset()) and not covers(path, triangle, frozenset())
