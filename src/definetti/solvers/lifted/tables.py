"""The tables of lifted counting: cells (1-types) of each sort, their weights, and the sums over 2-tables of two
cells.

Weights are products of few different factors, so entries are counted first and each different product is
computed once, in ball arithmetic or as a fraction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from definetti.errors import TooLarge
from definetti.model.logic.evidence import UNKNOWN
from definetti.model.logic.formulas import atoms, equalities, evaluate
from definetti.model.logic.theory import Atom, Constant, Equal, Formula, Term
from definetti.solvers.lifted.classes import ABSENT, Known
from definetti.solvers.lifted.theory import Rule, Theory

MOST_CELLS = 1 << 12
MOST_ENTRIES = 1 << 22  #: of one table of pairs of cells
Letter = float | Fraction
State = Mapping[str, bool]  #: the truth of predicates without arguments


@dataclass(frozen=True, eq=False)
class Cells:
    """The 1-types of a sort that rules without names allow."""

    predicates: tuple[str, ...]
    bits: np.ndarray  # bool[cell, predicate]

    def column(self, predicate: str) -> np.ndarray:
        return self.bits[:, self.predicates.index(predicate)]


@dataclass(frozen=True, eq=False)
class PairTable:
    """For two cells: the weight of each 2-table (`values[ids]`, 0 where -1), and their sum."""

    slots: tuple[tuple[str, str], ...]  # the unknown atoms over both, a bit of a table each, the first slowest
    known: Mapping[tuple[str, str], int]
    ids: np.ndarray  # int[cell of a, cell of b, table]
    values: np.ndarray  # object
    total: np.ndarray  # object[cell of a, cell of b]


# --- numbers -------------------------------------------------------------------------------------------------


def number(letters: Sequence[Letter], counts: Sequence[int], exact: bool) -> Any:
    """The product of exp(logarithm)^count and factor^count."""
    from flint import arb, fmpq

    if exact:
        found = fmpq(1)
        for letter, count in zip(letters, counts, strict=True):
            if count and isinstance(letter, Fraction):
                found *= fmpq(letter.numerator, letter.denominator) ** int(count)
        return found
    total, found = arb(0), arb(1)
    for letter, count in zip(letters, counts, strict=True):
        if count and isinstance(letter, Fraction):
            found *= (arb(letter.numerator) / letter.denominator) ** int(count)
        elif count:
            total += arb(float(letter)) * int(count)
    return found * total.exp() if total != 0 else found


def zero(exact: bool) -> Any:
    from flint import arb, fmpq

    return fmpq(0) if exact else arb(0)


def is_zero(value: Any) -> bool:
    """Exactly zero: a ball around zero is not."""
    return bool(value == 0)


def raise_to(x: Any, power: int) -> Any:
    """x ** power for whole powers; a ball around zero is multiplied with itself (the library's power is undefined)."""
    if power < 2 or not hasattr(x, "contains") or not x.contains(0) or is_zero(x):
        return x if power == 1 else x**power
    half = raise_to(x, power // 2)
    return half * half * x if power % 2 else half * half


@dataclass
class _Tally:
    """Counts of each letter, entry by entry; `legal` where no hard rule is broken."""

    legal: np.ndarray
    counts: dict[tuple[type, Letter], np.ndarray]  # the logarithm -1.0 and the factor -1 are equal as keys

    @classmethod
    def of(cls, shape: tuple[int, ...]) -> _Tally:
        return cls(np.ones(shape, bool), {})

    def add(self, truth: np.ndarray, letter: Letter | None) -> None:
        if letter is None:
            self.legal &= truth
        elif letter != (1 if isinstance(letter, Fraction) else 0.0):
            found = self.counts.setdefault((type(letter), letter), np.zeros(self.legal.shape, dtype=np.int64))
            found += truth

    def numbers(self, exact: bool) -> tuple[np.ndarray, np.ndarray]:
        """(ids of the entries, -1 where illegal; the different numbers)."""
        letters = list(self.counts)
        rows = np.stack([self.counts[x].reshape(-1) for x in letters], 1) if letters else None
        if rows is None:
            ids, found = np.zeros(self.legal.size, dtype=np.int64), [number((), (), exact)]
        else:
            unique, ids = np.unique(rows, axis=0, return_inverse=True)
            found = [number([x for _, x in letters], row, exact) for row in unique.tolist()]
        ids = np.where(self.legal.reshape(-1), ids.reshape(-1), -1).reshape(self.legal.shape)
        values = np.empty(len(found) + 1, dtype=object)
        values[:] = [*found, zero(exact)]
        return ids, values


# --- cells ---------------------------------------------------------------------------------------------------


def global_states(theory: Theory) -> Iterator[State]:
    """All values of predicates without arguments that the evidence allows."""
    names = [p.name for p in theory.predicates.values() if not p.sorts]
    model, choices = theory.model, []
    for name in names:
        value = model.knowledge.value(name, ()) if name in model.predicates else None  # else an auxiliary one
        choices.append((False, True) if value is None else (bool(value),))
    for values in product(*choices):
        yield dict(zip(names, values, strict=True))


def state_weight(theory: Theory, state: State, exact: bool) -> Any:
    """The weight of rules without terms."""
    tally = _Tally.of(())
    for rule in theory.rules:
        if not rule.terms:
            tally.add(_truth(rule.body, state, {}, ()), rule.letter(0))
    ids, values = tally.numbers(exact)
    return values[int(ids)]


@lru_cache(maxsize=1000)
def _leaves(body: Formula) -> tuple[tuple[Atom, ...], tuple[Equal, ...]]:
    return tuple(dict.fromkeys(atoms(body))), tuple(dict.fromkeys(equalities(body)))


def _truth(
    body: Formula, state: State, place: Mapping[Term, int], columns: Any, shape: tuple[int, ...] = ()
) -> np.ndarray:
    """The truth of a rule's body; `columns(predicate, places)` gives that of its atoms."""
    truth: dict[Formula, Any] = {}
    found, equal = _leaves(body)
    for atom in found:
        truth[atom] = state[atom.predicate] if not atom.args else columns(atom.predicate, _places(atom, place))
    for e in equal:
        truth[e] = place.get(e.left, e.left) == place.get(e.right, e.right)
    return np.broadcast_to(np.asarray(evaluate(body, truth), dtype=bool), shape)


def _places(atom: Atom, place: Mapping[Term, int]) -> tuple[int, ...]:
    return tuple(place[term] for term in atom.args)


def cells_of(known: Known, sort: str, state: State) -> Cells:
    theory = known.theory
    names = tuple(p.name for p in theory.predicates.values() if p.sorts in ((sort,), (sort, sort)))
    if 1 << len(names) > MOST_CELLS:
        raise TooLarge("lifted counting", 2 ** len(names), MOST_CELLS, "sample instead", unit=f"cells of {sort}")
    bits = np.array(list(product((False, True), repeat=len(names))), dtype=bool).reshape(1 << len(names), len(names))
    cells = Cells(names, bits)
    legal = np.ones(len(bits), bool)
    for rule in theory.rules:
        plain = rule.terms and not any(isinstance(t, Constant) for t in rule.terms)
        if rule.weight is None and plain and set(rule.sorts) == {sort}:
            legal &= own_truth(rule, cells, state)
    return Cells(names, bits[legal])


def own_truth(rule: Rule, cells: Cells, state: State) -> np.ndarray:
    """A rule with all its terms at one constant."""
    place = dict.fromkeys(rule.terms, 0)
    return _truth(rule.body, state, place, lambda p, _: cells.column(p), (len(cells.bits),))


def own_tables(known: Known, cells: Mapping[str, Cells], state: State, exact: bool) -> list[np.ndarray]:
    """For each class the weights of its cells: object[cell]."""
    memory: dict[tuple, np.ndarray] = {}
    out = []
    truths = lru_cache(maxsize=None)(lambda k, sort: own_truth(known.theory.rules[k], cells[sort], state))
    width = len(known.own_predicates)
    for sort, row in zip(known.classes.sort, known.own, strict=True):
        key = (sort, row.tobytes())
        if key not in memory:
            tally = _Tally.of((len(cells[sort].bits),))
            for name, code in zip(known.own_predicates, row[:width].tolist(), strict=True):
                if code in (0, 1):
                    tally.legal &= cells[sort].column(name) == bool(code)
            for j in np.flatnonzero(row[width:] != ABSENT).tolist():
                k = known.own_rules[j]
                tally.add(truths(k, sort), known.theory.rules[k].letter(int(row[width + j])))
            ids, values = tally.numbers(exact)
            memory[key] = values[ids]
        out.append(memory[key])
    return out


# --- pairs of cells ------------------------------------------------------------------------------------------


def pair_tables(known: Known, cells: Mapping[str, Cells], state: State, exact: bool) -> dict[int, PairTable]:
    """One table for each kind of pairs that occurs."""
    used = np.unique(known.kinds.of[known.kinds.of >= 0]).tolist()
    return {kind: _pair_table(known, kind, cells, state, exact) for kind in used}


def _pair_table(known: Known, kind: int, cells: Mapping[str, Cells], state: State, exact: bool) -> PairTable:
    codes = known.kinds.codes[kind]
    sides = [cells[sort] for sort in known.kinds.sorts[kind]]
    slots = tuple(slot for slot, code in codes.items() if code == UNKNOWN)
    shape = (len(sides[0].bits), len(sides[1].bits), 1 << len(slots))
    if shape[0] * shape[1] * shape[2] > MOST_ENTRIES:
        raise TooLarge("the table of two cells in lifted counting", float(np.prod(shape)), MOST_ENTRIES,
                       "sample instead", unit="entries")  # fmt: skip
    tally = _Tally.of(shape)
    columns = pair_columns(sides, slots, codes)
    for (k, side), place in known.kinds.weights[kind].items():
        rule = known.theory.rules[k]
        at = dict(zip(rule.terms, (0, 1) if side == "ab" else (1, 0), strict=True))
        tally.add(_truth(rule.body, state, at, columns, shape), rule.letter(place))
    ids, values = tally.numbers(exact)
    return PairTable(slots, codes, ids, values, _sums(ids, values))


def pair_columns(sides: Sequence[Cells], slots: Sequence[tuple[str, str]], codes: Mapping[tuple[str, str], int]) -> Any:
    """The truth of atoms over two constants in all cells and 2-tables at once."""
    tables = np.arange(1 << len(slots))

    def columns(predicate: str, places: tuple[int, ...]) -> np.ndarray | bool:
        if set(places) == {0}:
            return sides[0].column(predicate)[:, None, None]
        if set(places) == {1}:
            return sides[1].column(predicate)[None, :, None]
        slot = ("ab" if places == (0, 1) else "ba", predicate)
        if slot not in slots:
            return bool(codes[slot])
        return (tables >> (len(slots) - 1 - slots.index(slot)) & 1).astype(bool)[None, None, :]

    return columns


def pair_truth(body: Formula, at: Mapping[Term, int], table: PairTable, sides: Sequence[Cells], state: State) -> Any:
    """The truth of a formula over two constants: bool[cell, cell, table]."""
    columns = pair_columns(sides, table.slots, table.known)
    return _truth(body, state, at, columns, table.ids.shape)


def single_truth(body: Formula, at: Mapping[Term, int], cells: Cells, state: State) -> np.ndarray:
    return _truth(body, state, at, lambda p, _: cells.column(p), (len(cells.bits),))


def proposition(body: Formula, state: State) -> bool:
    return bool(_truth(body, state, {}, None))


def _sums(ids: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Σ over tables; entries with the same tables are summed once."""
    flat = np.sort(ids.reshape(-1, ids.shape[2]), axis=1)
    unique, back = np.unique(flat, axis=0, return_inverse=True)
    sums = np.empty(len(unique), dtype=object)
    sums[:] = [sum((values[k] for k in row if k >= 0), values[-1]) for row in unique.tolist()]
    return sums[back.reshape(-1)].reshape(ids.shape[:2])
