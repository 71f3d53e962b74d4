"""How many atoms of a predicate are true: the distribution of a count, and models in which a count is given.

Z is counted with a variable z that marks each true atom of the predicate: weights of cells and of 2-tables
become polynomials with the weights of k true atoms as coefficients, truncated where a count is given. Nothing
is interpolated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import comb, factorial, prod
from typing import Any

import numpy as np

from definetti import show
from definetti.errors import ModelError, TooLarge, UnknownName, Unsatisfiable, suggestion
from definetti.model.logic.text import find_atom
from definetti.model.logic.theory import Atom, Evidence, MarkovLogic, Variable
from definetti.model.marginals import Estimate, Marginals, OrbitRow
from definetti.solvers.lifted.cells import text
from definetti.solvers.lifted.classes import Known, known_of
from definetti.solvers.lifted.counting import IMPOSSIBLE, MOST_PRECISION, PRECISION, precision
from definetti.solvers.lifted.supercells import count_vectors
from definetti.solvers.lifted.tables import (
    PairTable,
    State,
    cells_of,
    global_states,
    is_zero,
    own_tables,
    pair_tables,
    pair_truth,
    single_truth,
    state_weight,
)
from definetti.solvers.lifted.theory import NotLiftable, theory_of
from definetti.symmetry.logic.members import AtomMembers
from definetti.symmetry.logic.renaming import renaming

MOST_VECTORS = 50_000
WANTED = 1e-12


def count_distribution(model: MarkovLogic, predicate: str | None = None) -> np.ndarray:
    """The distribution of the number of true atoms of a predicate, by lifted counting.

    Parameters
    ----------
    model : MarkovLogic
        A network whose formulas have at most two logical variables.
    predicate : str
        The predicate whose atoms are counted, observed ones included.

    Returns
    -------
    numpy.ndarray
        P(k atoms are true) for k from 0 to all of them.

    Raises
    ------
    ModelError
        For a model that cannot be counted lifted.

    Examples
    --------
    >>> import definetti as dft
    >>> dft.count_distribution(dft.markov_logic("Heads(coin)", domain={"coin": 2}), "Heads")
    array([0.25, 0.5 , 0.25])
    """
    if getattr(model, "kind", None) != "logic":
        kind = type(model).__name__
        raise ModelError(f"count_distribution counts atoms of a Markov logic network, and this is a {kind}")
    if predicate is None:
        raise ModelError(f"name the predicate whose atoms are counted: {', '.join(model.predicates)}")
    atoms = _atom_count(model, predicate)
    try:
        weights = _counted(model, {predicate: None})
    except NotLiftable as refusal:
        raise ModelError(f"this model cannot be counted lifted: {refusal}") from None
    with precision(PRECISION):
        total = sum(weights[1:], weights[0])
        found = [float((x / total).mid()) for x in weights]
    return np.array([*found, *[0.0] * (atoms + 1 - len(found))])


def given_counts(model: MarkovLogic, cardinality: Mapping[str, int]) -> Marginals:
    """Exact marginals of a model in which these predicates have so many true atoms: P(atom) = Z with the atom / Z."""
    whole = _count_given(model, cardinality)
    if is_zero(whole):
        raise Unsatisfiable(f"no state has positive probability with {dict(cardinality)} true atoms")
    group = renaming(model, simplify=False)  # a given count ties atoms that are loose without it
    rows = []
    for orbit in group.orbits:
        name, constants = find_atom(model, orbit.representative)
        try:
            part = _count_given(_observe(model, name, constants), cardinality)
        except Unsatisfiable:
            part = whole * 0
        with precision(PRECISION):
            rows.append(OrbitRow(orbit.representative, orbit.size, min(1.0, float((part / whole).mid()))))
    with precision(PRECISION):
        log_z = float(whole.log().mid())
    text_ = ", ".join(f"|{name}| = {count}" for name, count in cardinality.items())
    return Marginals(tuple(rows), AtomMembers(group), log_z=log_z, method=f"lifted counting given {text_}")


def given_answer(model: MarkovLogic, cardinality: Mapping[str, int], queries: list[str]) -> Marginals:
    """The same with queries: single atoms only."""
    from definetti.readers.logic.queries import parse_queries

    found = given_counts(model, cardinality)
    answers: dict[str, Estimate] = {}
    for key, formula in parse_queries(model, queries).items():
        if not isinstance(formula, Atom):
            raise ModelError(f"with a given count a query is a single atom, not {key}")
        answers[key] = found[key]
    return replace(found, queries=answers)


def _observe(model: MarkovLogic, name: str, constants: tuple[int, ...]) -> MarkovLogic:
    row = np.array([constants], dtype=np.int32).reshape(1, len(constants))
    old = model.evidence.get(name)
    tuples = row if old is None else np.concatenate([old.tuples, row])
    values = np.ones(1, np.int8) if old is None else np.append(old.values, np.int8(1))
    order = np.lexsort(tuples.T[::-1]) if tuples.shape[1] else np.arange(len(tuples))
    unknown = {key: (rows if key != name else rows[~(rows == row).all(axis=1)]) for key, rows in model.unknown.items()}
    return replace(model, evidence={**model.evidence, name: Evidence(tuples[order], values[order])}, unknown=unknown)


def _atom_count(model: MarkovLogic, predicate: str) -> int:
    if not isinstance(predicate, str):
        raise ModelError(f"a predicate is named by a text, got {show.brief(predicate)}")
    if predicate not in model.predicates:
        raise UnknownName(f"the model has no predicate {predicate!r}{suggestion(predicate, model.predicates)}")
    return prod(model.shape(predicate))


def _count_given(model: MarkovLogic, cardinality: Mapping[str, int]) -> Any:
    from flint import arb

    for name, count in cardinality.items():
        atoms = _atom_count(model, name)
        if not 0 <= count <= atoms:
            raise Unsatisfiable(f"{name} has {atoms} atoms: {count} of them cannot be true")
    weights = _counted(model, dict(cardinality))
    place, step = 0, 1
    for count in cardinality.values():
        place, step = place + count * step, step * (count + 1)
    return weights[place] if place < len(weights) else arb(0)


def _refuse_blocks(model: MarkovLogic) -> None:
    if any(p.exclusive for p in model.predicates.values()):
        raise NotLiftable("a predicate has an argument with !")


def _counted(model: MarkovLogic, wanted: Mapping[str, int | None]) -> list[Any]:
    """Z by count: with several predicates the first one's counts are fastest, each truncated at its count."""
    _refuse_blocks(model)
    theory = theory_of(model)
    bits = PRECISION
    while True:
        with precision(bits):
            found = _polynomial(known_of(theory), wanted)
            if not theory.signed or bits >= MOST_PRECISION or all(_sharp(x, found) for x in found):
                return found
        bits *= 2


def _sharp(x: Any, all_of_them: list[Any]) -> bool:
    largest = max(float(abs(y.mid())) for y in all_of_them)
    return bool(x.rad() <= WANTED * abs(x.mid())) or float(x.rad()) <= 1e-40 * largest


# --- polynomials ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Ring:
    """Arrays over the counts of the marked predicates, multiplied and truncated."""

    most: tuple[int | None, ...]
    degrees: tuple[int, ...]  # counts that can occur at all

    @property
    def steps(self) -> list[int]:
        """Powers of one variable stand for those of several: z_i = z^step (with room for twice the counts)."""
        steps, at = [], 1
        for degree in self.degrees:
            steps.append(at)
            at *= 2 * degree + 1
        return steps

    def mark(self, counts: tuple[int, ...], value: Any) -> Any:
        from flint import arb_poly

        place = sum(c * s for c, s in zip(counts, self.steps, strict=True))
        return arb_poly([0] * place + [value])

    def cut(self, poly: Any) -> Any:
        """Without what counts too many."""
        from flint import arb_poly

        if len(self.most) == 1:
            return poly if self.most[0] is None else arb_poly(poly.coeffs()[: self.most[0] + 1])
        coefficients = poly.coeffs()
        for k in range(len(coefficients)):
            if any(most is not None and c > most for c, most in zip(self.counts(k), self.most, strict=True)):
                coefficients[k] = 0
        return arb_poly(coefficients)

    def counts(self, place: int) -> list[int]:
        out = []
        for step in reversed(self.steps):
            out.append(place // step)
            place %= step
        return out[::-1]

    def power(self, poly: Any, k: int) -> Any:
        found: Any = None
        while k:
            if k & 1:
                found = poly if found is None else self.cut(found * poly)
            k >>= 1
            if k:
                poly = self.cut(poly * poly)
        return self.mark((0,) * len(self.most), 1) if found is None else found


def _polynomial(known: Known, wanted: Mapping[str, int | None]) -> list[Any]:
    from flint import arb

    model = known.theory.model
    degrees = tuple(_atom_count(model, p) if most is None else most for p, most in wanted.items())
    ring = _Ring(tuple(wanted.values()), degrees)
    total: Any = None
    for state in global_states(known.theory):
        found = _of_state(known, state, tuple(wanted), ring)
        if found is not None:
            total = found if total is None else total + found
    if total is None:
        raise Unsatisfiable(IMPOSSIBLE)
    total = _with_idle(known, total, tuple(wanted), ring)
    coefficients = total.coeffs()
    if len(wanted) == 1:
        return coefficients
    order = np.ndindex(*reversed([d + 1 for d in degrees]))
    places = [sum(c * s for c, s in zip(reversed(place), ring.steps, strict=True)) for place in order]
    return [coefficients[p] if p < len(coefficients) else arb(0) for p in places]


def _with_idle(known: Known, total: Any, marked: tuple[str, ...], ring: _Ring) -> Any:
    """Predicates that no rule mentions: fair coins, marked ones with their binomial weights."""
    knowledge = known.theory.model.knowledge
    for name in known.theory.idle:
        free = knowledge.free_count(name)
        if name not in marked:
            total = total * (1 << free)
            continue
        true = int((knowledge.relation(name).codes == 1).sum())
        unit = tuple(int(m == name) for m in marked)
        factor: Any = None
        for k in range(min(free, ring.degrees[marked.index(name)] - true) + 1):
            term = ring.mark(tuple(u * (k + true) for u in unit), comb(free, k))
            factor = term if factor is None else factor + term
        total = total * 0 if factor is None else ring.cut(total * factor)
    return total


def _of_state(known: Known, state: State, marked: tuple[str, ...], ring: _Ring) -> Any:
    weight = state_weight(known.theory, state, False)
    cells = {sort: cells_of(known, sort, state) for sort in known.theory.model.sorts}
    if is_zero(weight) or any(not len(c.bits) for c in cells.values()):
        return None
    own, pairs = own_tables(known, cells, state, False), pair_tables(known, cells, state, False)
    tables = {k: _marked_table(known, k, t, cells, state, marked) for k, t in pairs.items()}
    rows = {s: [t for k, t in tables.items() if known.kinds.sorts[k][0] == s] for s in cells}
    merged = {s: _merged(rows[s], len(c.bits)) for s, c in cells.items()}
    fields = []
    for sort, weights in zip(known.classes.sort, own, strict=True):
        degree = _own_degrees(known, sort, cells, state, marked)
        fields.append(_field(weights, degree, merged[sort], ring))
    small = {}
    for k, table in tables.items():
        a, b = known.kinds.sorts[k]
        small[k] = [[_to_poly(table[s][t], ring) for t in _leaders(merged[b])] for s in _leaders(merged[a])]
    found = _sum_vectors(known, fields, small, ring)
    constants = tuple(int(state.get(name, False)) for name in marked)
    return None if found is None else ring.cut(found * ring.mark(constants, weight))


def _own_degrees(known: Known, sort: str, cells: Any, state: State, marked: tuple[str, ...]) -> list[np.ndarray]:
    """How many marked atoms are true over one constant, by cell."""
    out, x = [], Variable("x")
    for name in marked:
        p = known.theory.predicates.get(name)
        if p is None or set(p.sorts) != {sort}:
            out.append(np.zeros(len(cells[sort].bits), np.int64))
        else:
            out.append(single_truth(Atom(name, (x,) * len(p.sorts)), {x: 0}, cells[sort], state).astype(np.int64))
    return out


def _marked_table(known: Known, kind: int, table: PairTable, cells: Any, state: State, marked: tuple[str, ...]) -> Any:
    """For two cells: {counts of marked atoms over both constants: sum of the weights of such 2-tables}."""
    sorts, a, b = known.kinds.sorts[kind], Variable("a"), Variable("b")
    sides, degrees = [cells[s] for s in sorts], []
    for name in marked:
        degree = np.zeros(table.ids.shape, dtype=np.int64)
        p = known.theory.predicates.get(name)
        for args, order in (((a, b), sorts), ((b, a), sorts[::-1])):
            if p is not None and p.sorts == order:
                degree += pair_truth(Atom(name, args), {a: 0, b: 1}, table, sides, state)
        degrees.append(degree)
    out = []
    for s in range(table.ids.shape[0]):
        row = []
        for t in range(table.ids.shape[1]):
            found: dict[tuple[int, ...], Any] = {}
            for k, number in enumerate(table.ids[s, t].tolist()):
                if number >= 0:
                    key = tuple(int(d[s, t, k]) for d in degrees)
                    found[key] = found.get(key, 0) + table.values[number]
            row.append(found)
        out.append(row)
    return out


def _key(entry: dict[tuple[int, ...], Any]) -> tuple:
    return tuple(sorted((k, text(x)) for k, x in entry.items()))


def _merged(tables: list[Any], size: int) -> np.ndarray:
    """Cells with equal rows in every table are one to all others."""
    names: dict[tuple, int] = {}
    keys = [tuple(_key(entry) for table in tables for entry in table[s]) for s in range(size)]
    return np.array([names.setdefault(key, len(names)) for key in keys], dtype=np.int64)


def _leaders(merged: np.ndarray) -> list[int]:
    return np.unique(merged, return_index=True)[1].tolist()


def _to_poly(entry: dict[tuple[int, ...], Any], ring: _Ring) -> Any:
    found = ring.mark((0,) * len(ring.most), 0)
    for counts, value in entry.items():
        found = found + ring.mark(counts, value)
    return ring.cut(found)


def _field(weights: np.ndarray, degree: list[np.ndarray], merged: np.ndarray, ring: _Ring) -> list[Any]:
    out: list[Any] = [None] * (int(merged.max()) + 1)
    for s, m in enumerate(merged.tolist()):
        if not is_zero(weights[s]):
            found = ring.mark(tuple(int(d[s]) for d in degree), weights[s])
            out[m] = found if out[m] is None else out[m] + found
    return [x if x is None else ring.cut(x) for x in out]


def _sum_vectors(known: Known, fields: list[list[Any]], tables: dict[int, Any], ring: _Ring) -> Any:
    """Σ over counts of merged cells of each class."""
    sizes = known.classes.size.tolist()
    slots = [(c, m) for c, field in enumerate(fields) for m, x in enumerate(field) if x is not None]
    inside = [[m for m, x in enumerate(field) if x is not None] for field in fields]
    if any(not some for some in inside):
        return None
    vectors = prod(comb(n + len(some) - 1, len(some) - 1) for n, some in zip(sizes, inside, strict=True))
    if vectors > MOST_VECTORS:
        raise TooLarge("counting by a predicate", vectors, MOST_VECTORS, "sample instead", unit="vectors of counts")
    each = [count_vectors(n, len(some)) for n, some in zip(sizes, inside, strict=True)]
    memory: dict[tuple, Any] = {}

    def raised(key: Any, poly: Any, k: int) -> Any:
        if (key, k) not in memory:
            memory[key, k] = ring.power(poly, k)
        return memory[key, k]

    total: Any = None
    for chosen in np.ndindex(*(len(rows) for rows in each)):
        counts = np.concatenate([rows[i] for rows, i in zip(each, chosen, strict=True)]).tolist()
        ways = prod(factorial(n) for n in sizes) // prod(factorial(k) for k in counts)
        term = ring.mark((0,) * len(ring.most), ways)
        for i, (c, m) in enumerate(slots):
            if not counts[i]:
                continue
            term = ring.cut(term * raised(("field", c, m), fields[c][m], counts[i]))
            for j in range(i, len(slots)):
                d, q = slots[j]
                pairs = counts[i] * (counts[i] - 1) // 2 if i == j else counts[i] * counts[j]
                if pairs:
                    kind = int(known.kinds.of[known.role_of[c], known.role_of[d]])
                    term = ring.cut(term * raised((kind, m, q), tables[kind][m][q], pairs))
        total = term if total is None else total + term
    return total
