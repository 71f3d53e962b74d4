"""FactorGraph: any discrete model, ground, as flat read-only arrays.

p(x) is proportional to exp(log_constant + the sum of log tables), over the states that agree with the evidence.
Equal tables are stored once. Literals are the (variable, value) pairs, numbered `literal_start[i] + v`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from definetti.errors import ModelError, TooLarge, UnknownName, require_mapping, suggestion
from definetti.integer_rows import distinct
from definetti.model.checked_input import each, integer, listed, log_table, mapping, number, numbers, pair, position
from definetti.model.graph.checked_arrays import fault, outside, whole_numbers
from definetti.show import Shown

FREE = -1  # in `evidence`: the variable is not observed
MOST_LITERALS = 2**28  # of a model: every step from here on makes arrays of them
CHUNK = 2**22  # numbers gathered at once by `log_density`


def frozen(array: np.ndarray, dtype: type | None = None) -> np.ndarray:
    """A read-only contiguous array (a copy only where one is needed)."""
    out = np.ascontiguousarray(array, dtype=dtype)
    if out is array and out.flags.writeable:
        out = out.copy()
    out.flags.writeable = False
    return out


@dataclass(frozen=True, eq=False)
class SameShape:
    """All factors whose tables have the same shape, ascending."""

    shape: tuple[int, ...]
    factors: np.ndarray  # int64[m]
    scopes: np.ndarray  # int64[m, arity]: their variables
    tables: np.ndarray  # int64[m]: the numbers of their tables

    @property
    def arity(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many entries a table has."""
        return math.prod(self.shape)

    @cached_property
    def incidence(self) -> tuple[np.ndarray, np.ndarray]:
        """(variables ascending, the row that each is in): all (variable, row) pairs."""
        order = np.argsort(self.scopes, axis=None, kind="stable")
        return self.scopes.ravel()[order], order // max(self.arity, 1)

    def take(self, rows: np.ndarray) -> SameShape:
        """Some of the factors, by number or as a mask of rows."""
        return SameShape(self.shape, self.factors[rows], self.scopes[rows], self.tables[rows])


@dataclass(frozen=True, eq=False, repr=False)
class FactorGraph(Shown):
    """A discrete factor graph. Make one with `factor_graph` (lists) or `FactorGraph.from_arrays` (large models).

    Attributes
    ----------
    names : tuple of str
        The variables.
    cards : numpy.ndarray
        The number of values of each.
    scope_start, scope, table_of, table_start, tables : numpy.ndarray
        Factors and their log tables, flat.
    evidence : numpy.ndarray
        The observed value of each variable, or -1.
    log_constant : float
        What is added to every log density.
    value_names : mapping
        The names of values, of variables that have any.

    Examples
    --------
    >>> import definetti as dft
    >>> model = dft.factor_graph([2, 3], [([0, 1], [[1, 2, 3], [4, 5, 6]])])
    >>> model.n, model.factor_count, float(model.log_density([0, 0]))
    (2, 1, 0.0)
    """

    kind: ClassVar[str] = "graph"  # which of the two kinds of model this is

    names: tuple[str, ...]
    cards: np.ndarray  # int32[n]: number of values of each variable
    scope_start: np.ndarray  # int64[F + 1]: factor k is over scope[scope_start[k] : scope_start[k + 1]]
    scope: np.ndarray  # int32: variables
    table_of: np.ndarray  # int32[F]: which table a factor uses
    table_start: np.ndarray  # int64[T + 1]
    tables: np.ndarray  # float64: log values, last variable of the scope fastest; -inf where impossible
    evidence: np.ndarray  # int32[n]: the observed value, or FREE
    log_constant: float = 0.0
    value_names: Mapping[int, tuple[str, ...]] = field(default_factory=dict)  # only where values have names

    @classmethod
    def from_arrays(
        cls,
        cards: np.ndarray,
        scope_start: np.ndarray,
        scope: np.ndarray,
        table_of: np.ndarray,
        tables: Sequence[np.ndarray],
        *,
        names: Sequence[str] | None = None,
        evidence: np.ndarray | None = None,
        log_constant: float = 0.0,
        value_names: Mapping[int, tuple[str, ...]] | None = None,
    ) -> FactorGraph:
        """From scopes in CSR form and a list of log tables; equal tables are merged here.

        `ModelError` for arrays that do not fit each other, and for what is no logarithm of a weight.
        """
        cards = whole_numbers(cards, "cards", np.int32)
        n, literals = len(cards), int(np.sum(cards, dtype=np.int64))
        if literals > MOST_LITERALS:
            what = "the number of values of all variables together"
            raise TooLarge(what, literals, MOST_LITERALS, "split variables of many values into several")
        keys: dict[tuple[tuple[int, ...], bytes], int] = {}
        which_table: list[int] = []
        kept: list[np.ndarray] = []
        for t, table in enumerate(each(tables, "tables are a list of arrays")):
            table = np.ascontiguousarray(numbers(table, f"table {t}")) + 0.0  # +0.0 turns -0.0 into 0.0
            key = (table.shape, table.tobytes())
            if key not in keys:
                keys[key] = len(kept)
                kept.append(table)
            which_table.append(keys[key])
        which = whole_numbers(table_of, "table_of", np.int64)
        wrong = outside(which, len(which_table), "table")
        if wrong:
            raise ModelError(wrong)
        made = cls(
            names=tuple(each(names, "names are a list of texts"))
            if names is not None
            else tuple(f"X{i}" for i in range(n)),
            cards=frozen(cards),
            scope_start=frozen(whole_numbers(scope_start, "scope_start", np.int64)),
            scope=frozen(whole_numbers(scope, "scope", np.int32)),
            table_of=frozen(np.array(which_table, dtype=np.int32)[which]),
            table_start=frozen(np.cumsum([0, *(table.size for table in kept)]), np.int64),
            tables=frozen(np.concatenate([table.ravel() for table in kept]) if kept else np.empty(0)),
            evidence=frozen(
                np.full(n, FREE, np.int32) if evidence is None else whole_numbers(evidence, "evidence", np.int32)
            ),
            log_constant=number(log_constant, "log_constant"),
            value_names=mapping({} if value_names is None else value_names, "value_names"),
        )
        wrong = fault(made, [table.shape for table in kept])
        if wrong:
            raise ModelError(wrong)
        return made

    # --- sizes and names -------------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """The number of variables."""
        return len(self.cards)

    @property
    def factor_count(self) -> int:
        """The number of factors."""
        return len(self.table_of)

    @cached_property
    def free(self) -> np.ndarray:
        """The unobserved variables, ascending."""
        return frozen(np.flatnonzero(self.evidence == FREE), np.int32)

    @cached_property
    def literal_start(self) -> np.ndarray:
        """int64[n + 1]: literal (i, v) has number literal_start[i] + v."""
        return frozen(np.concatenate([[0], np.cumsum(self.cards, dtype=np.int64)]), np.int64)

    @cached_property
    def variable_of(self) -> np.ndarray:
        """int64[L]: the variable of each literal."""
        return frozen(np.repeat(np.arange(self.n, dtype=np.int64), self.cards))

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def index(self, name: str) -> int:
        """The number of the variable with this name; `UnknownName` if there is none."""
        try:
            return self._index[name]
        except KeyError:
            first = f"; the first are {', '.join(self.names[:5])}"
            raise UnknownName(f"no variable is named {name!r}{suggestion(str(name), self.names, first)}") from None

    def value(self, variable: int, given: str | int) -> int:
        """The number of a value that is given by its name, or by its number (from 0) where it has no name.

        Names win: where values are named by whole numbers, a number is always a name.
        """
        labels, card, name = self.value_names.get(variable, ()), int(self.cards[variable]), self.names[variable]
        text = str(given)
        if text not in labels and not isinstance(given, str):  # True is the value that is named 1
            text = str(integer(given, f"a value of {name} is"))
        if text in labels:
            return labels.index(text)
        counted = text.isdecimal() and len(text) < 19 and int(text) < card
        if counted and not any(re.fullmatch("-?[0-9]+", label) for label in labels):
            return int(text)
        known = ", ".join(labels) if labels else f"0 to {card - 1}"
        raise UnknownName(f"{name} has no value {text[:40]!r}; its values are {known}")

    def shape(self, factor: int) -> tuple[int, ...]:
        """How many values each variable of a factor has."""
        return tuple(int(c) for c in self.cards[self.variables(factor)])

    def variables(self, factor: int) -> np.ndarray:
        """The numbers of a factor's variables, in the order of its table's axes."""
        return self.scope[self.scope_start[factor] : self.scope_start[factor + 1]]

    def table(self, factor: int) -> np.ndarray:
        """The factor's log table, one axis per variable of its scope."""
        return self.log_values(int(self.table_of[factor]), self.shape(factor))

    def log_values(self, table: int, shape: tuple[int, ...]) -> np.ndarray:
        """The log table with this number; tables are stored without their shapes."""
        return self.tables[self.table_start[table] : self.table_start[table + 1]].reshape(shape)

    def entries(self, alike: SameShape) -> np.ndarray:
        """float64[m, *shape]: the log tables of factors of one shape, one for each factor."""
        first = self.table_start[alike.tables]
        return self.tables[first[:, None] + np.arange(alike.size)].reshape(len(first), *alike.shape)

    # --- factors by shape --------------------------------------------------------------------------------------

    @cached_property
    def arity(self) -> np.ndarray:
        """int64[F]: how many variables each factor has."""
        return frozen(np.diff(self.scope_start), np.int64)

    @cached_property
    def table_range(self) -> np.ndarray:
        """float64[T]: of each table, the largest minus the smallest possible log entry."""
        top, low = (np.full(len(self.table_start) - 1, extreme) for extreme in (-np.inf, np.inf))
        which = np.repeat(np.arange(len(top)), np.diff(self.table_start))
        np.maximum.at(top, which, self.tables)
        np.minimum.at(low, which, np.where(np.isneginf(self.tables), np.inf, self.tables))
        return frozen(top - low)

    @cached_property
    def hard_factors(self) -> np.ndarray:
        """int64: the factors with impossible entries, ascending."""
        which = np.repeat(np.arange(len(self.table_start) - 1), np.diff(self.table_start))
        impossible = np.bincount(which[np.isneginf(self.tables)], minlength=len(self.table_start) - 1) > 0
        return frozen(np.flatnonzero(impossible[self.table_of]), np.int64)

    @cached_property
    def owner_of(self) -> np.ndarray:
        """int64 beside `scope`: the factor that each entry of `scope` belongs to."""
        return frozen(np.repeat(np.arange(self.factor_count), self.arity), np.int64)

    @cached_property
    def strides(self) -> np.ndarray:
        """int64 beside `scope`: what one step of this variable adds to the entry's place in the table."""
        out = np.ones(len(self.scope), dtype=np.int64)
        for alike in self.by_shape:
            if alike.arity > 1:
                later = np.cumprod(alike.shape[:0:-1], dtype=np.int64)[::-1]
                out[self.scope_start[alike.factors][:, None] + np.arange(alike.arity - 1)] = later
        return frozen(out)

    @cached_property
    def by_shape(self) -> tuple[SameShape, ...]:
        """The factors grouped by the shape of their tables; groups ordered by arity, then by shape."""
        out = []
        for k in np.flatnonzero(np.bincount(self.arity)).tolist():
            factors = np.flatnonzero(self.arity == k)
            first, last = self.scope_start[factors[0]], self.scope_start[factors[-1] + 1]
            if last - first == k * len(factors):  # one after the other
                scopes = self.scope[first:last].reshape(len(factors), k).astype(np.int64)
            else:
                scopes = self.scope[self.scope_start[factors][:, None] + np.arange(k)].astype(np.int64)
            tables = self.table_of[factors].astype(np.int64)
            if k == 0 or (self.cards == self.cards[0]).all():
                shapes, number = self.cards[scopes[:1]], np.empty(0)
            else:
                shapes, number, _ = distinct(self.cards[scopes])
            whole = SameShape(tuple(shapes[0].tolist()), factors, scopes, tables)
            if len(shapes) == 1:
                out.append(whole)
            else:
                for s, shape in enumerate(shapes.tolist()):
                    out.append(replace(whole.take(number == s), shape=tuple(shape)))
        return tuple(out)

    # --- the distribution ------------------------------------------------------------------------------------

    def log_density(self, states: npt.ArrayLike) -> np.ndarray:
        """Unnormalised log density of states[..., n]; -inf where a state contradicts the evidence."""
        return self.log_constant + self.log_factors(states)

    def log_factors(self, states: npt.ArrayLike) -> np.ndarray:
        """`log_density` without `log_constant`: where densities are compared, since small weights are lost beside a
        large constant."""
        states = np.asarray(states)
        if states.shape[-1:] != (self.n,):
            raise ModelError(f"a state has {self.n} values, one of each variable; got an array of shape {states.shape}")
        if ((states < 0) | (states >= self.cards)).any():  # a negative one would be read from the end of a table
            raise ModelError("a state has a value that its variable does not have; values are counted from 0")
        flat = states.reshape(-1, self.n) if self.n else np.empty((math.prod(states.shape[:-1]), 0), dtype=np.int64)
        total = np.empty(len(flat))
        step = max(1, CHUNK // max(1, len(self.scope)))  # the gathered values are states × scope
        for lo in range(0, len(flat), step):
            columns = flat[lo : lo + step].T
            if columns.shape[1] == 1:  # numpy sums one column in another order than several: same state, same density
                columns = np.repeat(columns, 2, axis=1)
            total[lo : lo + step] = self._sum_tables(columns)[: len(total) - lo]
        seen = np.flatnonzero(self.evidence != FREE)
        legal = (flat[:, seen] == self.evidence[seen]).all(axis=-1)
        return np.where(legal, total, -np.inf).reshape(states.shape[:-1])

    def _sum_tables(self, columns: np.ndarray) -> np.ndarray:
        """The sum of log tables for states given as columns[n, states]."""
        first = self.table_start[self.table_of]
        wide = np.flatnonzero(self.arity)  # reduceat would give an empty scope its neighbour's value
        total = np.zeros(columns.shape[1])
        total += self.tables[np.delete(first, wide)].sum()
        if len(wide):
            steps = columns[self.scope].astype(np.int64) * self.strides[:, None]
            entry = np.add.reduceat(steps, self.scope_start[wide], axis=0)
            total += self.tables[first[wide, None] + entry].sum(axis=0)
        return total

    def condition(self, evidence: Mapping[str, int | str] | Mapping[int, int | str]) -> FactorGraph:
        """The same model with more variables observed.

        Parameters
        ----------
        evidence : mapping
            Variables to values. Both are given by their names, those of values where there are any (those of a pgmpy
            network, or -1 and 1 for spins), or by their numbers from 0 on: a variable where no name is a whole number.

        Returns
        -------
        FactorGraph
            A new model; this one is unchanged.

        Raises
        ------
        UnknownName
            For a variable or value that the model does not have.
        ModelError
            Where the evidence contradicts what is observed already.

        Examples
        --------
        >>> import definetti as dft
        >>> model = dft.factor_graph({"rain": 2, "wet": 2}, [(["rain", "wet"], [[9, 1], [1, 4]])])
        >>> dft.exact(model.condition({"wet": 1}))["rain"].probability
        0.8
        """
        found: dict[int, int] = {}
        counted = not all(isinstance(key, str) for key in require_mapping(evidence))
        named = counted and any(re.fullmatch("-?[0-9]+", name) for name in self.names)  # then a number is a name, too
        for key, value in evidence.items():
            i = key if isinstance(key, str) else integer(key, "evidence names a variable by")
            i = self.index(str(i)) if named or isinstance(i, str) else i
            if not 0 <= i < self.n:
                raise UnknownName(f"evidence names variable {i}, but the model has {self.n} variables")
            found[i] = self.value(i, value)
        return self.observe(found)

    def observe(self, values: Mapping[int, int]) -> FactorGraph:
        """`condition` by numbers of variables and of values, which names do not enter."""
        seen = self.evidence.copy()
        for i, v in values.items():
            if seen[i] not in (FREE, v):
                raise ModelError(f"contradicting evidence on {self.names[i]}: {seen[i]} and {v}")
            seen[i] = v
        return replace(self, evidence=frozen(seen))

    def __repr__(self) -> str:
        observed = self.n - len(self.free)
        more = f", {observed} observed" if observed else ""
        return f"FactorGraph({self.n} variables{more}, {self.factor_count} factors, {len(self.table_start) - 1} tables)"


def factor_graph(
    cards: Sequence[int] | Mapping[str, int],
    factors: Iterable[tuple[Sequence[int | str], npt.ArrayLike]],
    *,
    log: bool = False,
    names: Sequence[str] | None = None,
) -> FactorGraph:
    """A factor graph from plain lists of (scope, table).

    Parameters
    ----------
    cards : sequence or mapping
        The number of values of each variable, by position or by name.
    factors : iterable of (scope, table)
        A scope lists variables (names or positions). A table holds nonnegative weights, one axis per variable of its
        scope, or flat with the last variable fastest.
    log : bool
        Tables hold logarithms of weights; -inf is impossible.
    names : sequence of str, optional
        The names of the variables where `cards` has none; X0, X1, … by default.

    Returns
    -------
    FactorGraph
        The model, frozen.

    Raises
    ------
    ModelError
        For a table that does not fit its scope, or holds what is no weight.

    Examples
    --------
    >>> import definetti as dft
    >>> dft.factor_graph({"rain": 2, "wet": 2}, [(["rain"], [4, 1]), (["rain", "wet"], [[9, 1], [1, 4]])])
    FactorGraph(2 variables, 2 factors, 2 tables)
    """
    if isinstance(cards, Mapping):
        names, cards = list(cards), list(cards.values())
    cards = listed(cards, "cards are the numbers of values of the variables, as in [2, 3]")
    counts = [integer(card, "the number of values of a variable is") for card in cards]
    if any(not 1 <= card < 2**31 for card in counts):
        raise ModelError(f"a variable has {next(c for c in counts if not 1 <= c < 2**31)} values; it needs 1 or more")
    cards_array = np.array(counts, dtype=np.int32)
    names = (
        listed(names, "names are those of the variables")
        if names is not None
        else [f"X{i}" for i in range(len(cards_array))]
    )
    wrong = next((name for name in names if not isinstance(name, str)), None)
    if wrong is not None:  # a number in a scope is a position
        raise ModelError(f"the name of a variable is a text, got {wrong!r}")
    index = {name: i for i, name in enumerate(names)}
    if len(index) != len(cards_array):
        raise ModelError(f"{len(cards_array)} variables need as many different names, got {len(index)}")
    starts, scopes, table_of, tables = [0], [], [], []
    known: dict[tuple[object, ...], int] = {}  # tables that were checked: models of many factors have few
    for k, factor in enumerate(each(factors, "factors are pairs of a scope and a table")):
        scope, table = pair(factor, k)
        variables = [position(v, index, k) for v in scope]
        if len(set(variables)) != len(variables):
            raise ModelError(f"factor {k} names a variable twice: {variables}")
        scopes.extend(variables)
        starts.append(len(scopes))
        shape, values = tuple([counts[v] for v in variables]), numbers(table, f"the table of factor {k}")
        key = (shape, values.shape, values.tobytes())
        if key not in known:
            known[key] = len(tables)
            tables.append(log_table(values, shape, log, k))
        table_of.append(known[key])
    return FactorGraph.from_arrays(
        cards_array,
        np.array(starts),
        np.array(scopes, dtype=np.int32),
        np.array(table_of, dtype=np.int64),
        tables,
        names=names,
    )
