"""The marginals of a Markov logic network by lifted counting: one row per orbit of atoms, queries over constants,
log Z.

The probability of a formula over at most two constants comes from the counted model: P(f) = Σ over cells s, t of
P(merged cells) · share of s · share of t · share of the 2-tables that make f true. With signs the same sums are taken
of derivatives of Z, which need no division by a sum that may vanish, and divided by Z at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from definetti.errors import TooLarge, Unsatisfiable
from definetti.model.logic.formulas import atoms, quantified, terms
from definetti.model.logic.text import atom_text, find_atom
from definetti.model.logic.theory import Atom, Constant, Formula, MarkovLogic, Term, WeightedFormula
from definetti.model.marginals import Estimate, Marginals, OrbitRow
from definetti.readers.logic.queries import QueryPart, parse_queries
from definetti.solvers.lifted.conditioning import field_of
from definetti.solvers.lifted.counting import MOST_PRECISION, Lifted, Part, lift, precision
from definetti.solvers.lifted.scene import Scene, total_field
from definetti.solvers.lifted.tables import PairTable, is_zero, pair_truth, proposition, single_truth
from definetti.solvers.lifted.theory import NotLiftable
from definetti.solvers.work import ROW, Budget
from definetti.symmetry.logic.members import AtomMembers
from definetti.symmetry.logic.renaming import RenamingSymmetries, renaming

WANTED = 1e-12  #: relative radius of a signed answer
TINY = 1e-30  #: an absolute one that serves as well: then it is nothing


def atom_probability(lifted: Lifted, predicate: str, constants: Sequence[int]) -> float:
    theory = lifted.known.theory
    if predicate in theory.idle:
        return 0.5
    sorts = theory.predicates[predicate].sorts
    return probability(lifted, Atom(predicate, tuple(Constant(s, i) for s, i in zip(sorts, constants, strict=True))))


def lifted_marginals(
    model: MarkovLogic,
    queries: Sequence[str | QueryPart] = (),
    grouped: Callable[[], RenamingSymmetries] | None = None,
    budget: Budget | None = None,
) -> Marginals:
    """Exact marginals of all atoms. `NotLiftable`, `TooLarge`, `TooMuch` or `Unsatisfiable` otherwise."""
    if any(p.exclusive for p in model.predicates.values()):
        raise NotLiftable("a predicate has an argument with !")
    asked = parse_queries(model, queries)
    inner = {query.key: query.sorts for query in queries if isinstance(query, QueryPart)}
    bits: int | None = None
    budget = budget or Budget()
    lifted = lift(model, budget=budget)
    group = renaming(model) if grouped is None else grouped()
    while True:
        try:
            budget.charge(_row_work(lifted) * (len(group.sizes) + len(asked)))
            for formula in asked.values():
                if _counted_again(lifted, formula):
                    budget.charge(budget.spent)
            return _marginals(lifted, group, asked, inner)
        except Blurred:
            bits = 2 * lifted.bits
            if bits > MOST_PRECISION:
                raise TooLarge("lifted counting with cancelling signs", bits, MOST_PRECISION,
                               "sample instead", unit="bits of precision") from None  # fmt: skip
            lifted = lift(model, bits, budget)


def _row_work(lifted: Lifted) -> float:
    return ROW * (2 + len(lifted.parts)) * (4 if lifted.signed else 1)


def _marginals(
    lifted: Lifted, group: RenamingSymmetries, asked: Mapping[str, Formula], inner: Mapping[str, Mapping[str, str]]
) -> Marginals:
    rows = []
    for orbit in group.orbits:
        p = atom_probability(lifted, *find_atom(group.model, orbit.representative))
        rows.append(OrbitRow(orbit.representative, orbit.size, p))
    members = AtomMembers(group, lambda name, constants: Estimate(atom_probability(lifted, name, constants)))
    shown = Marginals(tuple(rows), members, log_z=lifted.log_z, method=f"lifted counting ({lifted.cost})")
    answers: dict[str, Estimate] = {}
    for text, formula in asked.items():
        if isinstance(formula, Atom):
            constants = [t.index for t in formula.args if isinstance(t, Constant)]
            answers[text] = shown[atom_text(group.model, formula.predicate, constants)]
        else:
            answers[text] = Estimate(formula_probability(lifted, formula, inner.get(text, {})))
    return replace(shown, queries=answers, notices=tuple(group.notices))


def formula_probability(lifted: Lifted, formula: Formula, sorts: Mapping[str, str] | None = None) -> float:
    """At most two constants: from the joint distribution of their cells. More: by counting once more, with the
    formula as a hard one."""
    constants = {t for t in terms(formula) if isinstance(t, Constant)}
    if not _counted_again(lifted, formula):
        return probability(lifted, formula)
    model = lifted.known.theory.model
    held = replace(model, formulas=(*model.formulas, WeightedFormula(formula, None, sorts or {}, ())))
    try:
        return lift(held, lifted.bits).share_of(lifted)
    except Unsatisfiable:
        return 0.0
    except NotLiftable as reason:
        raise TooLarge(f"the number of constants of a query ({reason})", len(constants), 2,
                       "ask about two at a time") from None  # fmt: skip


def _counted_again(lifted: Lifted, formula: Formula) -> bool:
    constants = {t for t in terms(formula) if isinstance(t, Constant)}
    idle = {atom.predicate for atom in atoms(formula)} & set(lifted.known.theory.idle)
    return not isinstance(formula, Atom) and (len(constants) > 2 or bool(idle) or any(quantified(formula)))


# --- formulas over at most two constants ----------------------------------------------------------------------------


class Blurred(Exception):
    """Inside the package: the signs cancelled so far that more bits are needed."""


def probability(lifted: Lifted, formula: Formula) -> float:
    """P(formula) for a formula without variables over at most two constants."""
    constants = list(dict.fromkeys(t for t in terms(formula) if isinstance(t, Constant)))
    if len(constants) > 2:
        raise TooLarge("the number of constants of a query", len(constants), 2, "ask about two at a time")
    classes = [int(lifted.known.classes.of[c.sort][c.index]) for c in constants]
    with precision(lifted.bits):
        found = [_answer(lifted, part, formula, constants, classes) for part in lifted.parts]
        if lifted.signed:
            return _certain(sum(found[1:], found[0]) / lifted.z)
        return min(1.0, max(0.0, float(np.dot(part_weights(lifted), found))))


def _certain(ball: Any) -> float:
    radius, middle = ball.rad(), abs(ball.mid())
    if not (radius <= WANTED * middle or radius + middle <= TINY):
        raise Blurred
    return min(1.0, max(0.0, float(ball.mid())))


def part_weights(lifted: Lifted) -> np.ndarray:
    if "weights" not in lifted.memory:
        lifted.memory["weights"] = np.array([float((p.z / lifted.z).mid()) for p in lifted.parts])
    return lifted.memory["weights"]


def _answer(lifted: Lifted, part: Part, formula: Formula, constants: Sequence[Constant], classes: list[int]) -> Any:
    """P(formula) in a part; with signs, times the part's Z."""
    scene = part.scene
    at: dict[Term, int] = {c: k for k, c in enumerate(constants)}
    if not constants:
        true = proposition(formula, scene.state)
        return part.z * int(true) if lifted.signed else float(true)
    if len(constants) == 1:
        (c,) = classes
        truth = single_truth(formula, at, scene.cells[constants[0].sort], scene.state)
        weights = marginal(lifted, part, c)[scene.merged(c)] * inside(lifted, part, c)
        return np.dot(weights, truth.astype(int))
    c, d = classes
    kind = int(scene.known.kinds.of[scene.known.role_of[c], scene.known.role_of[d]])
    sides = [scene.cells[x.sort] for x in constants]
    truth = pair_truth(formula, at, scene.pairs[kind], sides, scene.state)
    key = ("shares", id(scene), kind, truth.tobytes())
    if key not in lifted.memory:
        lifted.memory[key] = _shares(scene.pairs[kind], truth, lifted.signed)
    joint = pair_marginal(lifted, part, c, d)[np.ix_(scene.merged(c), scene.merged(d))] * lifted.memory[key]
    return np.dot(np.dot(inside(lifted, part, c), joint), inside(lifted, part, d))


def _shares(table: PairTable, truth: np.ndarray, signed: bool) -> np.ndarray:
    """The share of the 2-tables in which a formula is true, for every pair of cells."""
    rows = np.where(truth, table.ids, -1)
    memory: dict[Any, Any] = {}
    out = np.empty(table.total.shape, dtype=object if signed else float)
    for place in np.ndindex(*out.shape):
        key = (tuple(rows[place].tolist()), id(table.total[place]))
        if key not in memory:
            whole = table.total[place]
            part: Any = sum((table.values[k] for k in key[0] if k >= 0), table.values[-1])
            share: Any = part if is_zero(whole) else part / whole
            memory[key] = share if signed else float(share.mid())
        out[place] = memory[key]
    return out


def inside(lifted: Lifted, part: Part, c: int) -> np.ndarray:
    """The share of each cell of a class in its merged cell; for units with signs: the factor of the derivative."""
    scene, merged = part.scene, part.scene.merged(c)
    unit = lifted.signed and c in part.plan.unit_of
    key = ("inside", id(part) if unit else id(scene), c)
    if key in lifted.memory:
        return lifted.memory[key]
    if unit:
        more = field_of(scene, c, part.way.counts)
        outer = np.full(len(scene.fields[c]), 1, dtype=object) * scene.outer[c] * more
        found = scene.inside[c] * outer[merged]
    elif lifted.signed and c in scene.free:
        outer = np.full(len(scene.fields[c]), 1, dtype=object) * scene.outer[c] / total_field(scene, c)
        found = scene.inside[c] * outer[merged]
    else:
        sums, possible = _sums(scene, c), scene.masks[c]
        shares = [x / sums[m] if possible[m] else x * 0 for x, m in zip(scene.inside[c], merged, strict=True)]
        found = np.array(shares, dtype=object)
    if not lifted.signed:
        found = np.array([float(x.mid()) for x in found])
    lifted.memory[key] = found
    return found


def _sums(scene: Scene, c: int) -> np.ndarray:
    """A class's weights summed over merged cells, before the settled add theirs."""
    out = np.full(len(scene.fields[c]), scene.inside[c][0] * 0, dtype=object)
    for x, m in zip(scene.inside[c], scene.merged(c), strict=True):
        out[m] = out[m] + x
    return out


# --- merged cells --------------------------------------------------------------------------------------------


def _apart(lifted: Lifted, part: Part, c: int) -> np.ndarray:
    """P(merged cell) of a class that is not counted: settled, free or conditioned."""
    scene = part.scene
    if c in scene.settled:
        found = np.zeros(len(scene.fields[c]))
        found[scene.settled[c]] = 1.0
        return found
    if c in part.way.counts:
        return part.way.counts[c] / scene.size(c)
    if lifted.signed:  # a cell's field may vanish: `inside` has the shares
        return np.ones(len(scene.fields[c]))
    return np.array([float(x.mid()) for x in scene.fields[c] / total_field(scene, c)])


def marginal(lifted: Lifted, part: Part, c: int) -> np.ndarray:
    """P(merged cell); with signs: derivatives for units, times Z for others."""
    if c in part.plan.unit_of:
        piece, number = part.piece_of[part.plan.unit_of[c]]
        found = part.pieces[piece].single[number]
        return found * part.way.constant if lifted.signed else found
    return _apart(lifted, part, c) * (part.z if lifted.signed else 1.0)


def pair_marginal(lifted: Lifted, part: Part, c: int, d: int) -> np.ndarray:
    """P(merged cells of two different constants of classes c and d)."""
    units = part.plan.unit_of
    if c in units and d in units:
        (p, i), (q, j) = part.piece_of[units[c]], part.piece_of[units[d]]
        if p != q:
            return np.outer(marginal(lifted, part, c), marginal(lifted, part, d))
        found = part.pieces[p].joint(i, j)
        return found * part.way.constant if lifted.signed else found
    if c in units:
        return np.outer(marginal(lifted, part, c), _apart(lifted, part, d))
    if d in units:
        return np.outer(_apart(lifted, part, c), marginal(lifted, part, d))
    if c == d and c in part.way.counts:
        k, n = part.way.counts[c], part.scene.size(c)
        found = (np.outer(k, k) - np.diag(k)) / (n * (n - 1))
    else:
        found = np.outer(_apart(lifted, part, c), _apart(lifted, part, d))
    return found * (part.z if lifted.signed else 1.0)
