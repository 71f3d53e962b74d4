"""Grounding: a Markov logic network as a `FactorGraph`, one factor per grounding of a formula.

All groundings of a formula are made at once with index arithmetic. Those in which the same atoms coincide (x = y makes
Friends(x,y) and Friends(y,x) one atom) form a pattern and share one table over their distinct variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import log2, prod

import numpy as np

from definetti.errors import ModelError, TooLarge, Unsatisfiable
from definetti.model.checked_input import whole
from definetti.model.graph.factors import FREE, FactorGraph
from definetti.model.logic.atom_literals import Box, atom_literal, layout, value_names, variable_names
from definetti.model.logic.evidence import UNKNOWN
from definetti.model.logic.formulas import atoms, equalities, evaluate
from definetti.model.logic.joins import groundings, join, remaining, selection
from definetti.model.logic.normal_forms import hard_parts, sizes_of, written_out, written_size
from definetti.model.logic.text import atom_text, format_formula
from definetti.model.logic.theory import Atom, Constant, Equal, Formula, MarkovLogic, Term, WeightedFormula

LARGEST_TABLE = 1 << 20  # entries
LIMIT = 5_000_000  # variables, and factors
CHUNK = 1 << 18  # groundings handled at once
CURE = "sample without grounding: symmetries by renaming and the Markov logic sampler need no ground model"


@dataclass(frozen=True)
class GroundSize:
    """How large a ground model will be, before it is built (upper bounds: patterns that say nothing drop out)."""

    variables: int
    factors: int
    largest_scope: int


def ground_size(model: MarkovLogic) -> GroundSize:
    """Exact integers, whatever their size; nothing is built."""
    factors = largest = 0
    for formula in _pieces(model):
        count = remaining(model, formula.body, formula.free, formula.sorts)
        width = written_size(formula.body, {name: model.sorts[sort].size for name, sort in formula.sorts.items()})
        factors, largest = factors + count, max(largest, width)
    return GroundSize(sum(box.count for box in layout(model).values()), factors, largest)


def _pieces(model: MarkovLogic) -> list[WeightedFormula]:
    """What is grounded: soft formulas as they are, hard ones in their independent parts."""
    return [piece for formula in model.formulas for piece in (hard_parts(formula) if formula.hard else [formula])]


def ground(model: MarkovLogic, limit: int = LIMIT) -> FactorGraph:
    """The ground model of a Markov logic network: the same distribution over the same atoms.

    Parameters
    ----------
    model : MarkovLogic
        What to ground.
    limit : int
        The most variables, and the most factors.

    Returns
    -------
    FactorGraph
        A variable for each atom, or for each block of atoms of a predicate with a `!` argument.

    Raises
    ------
    TooLarge
        Before memory is taken.

    Examples
    --------
    >>> import definetti as dft
    >>> dft.ground(dft.markov_logic("Smokes(person)\\n1.5 Smokes(x)", domain={"person": 3}))
    FactorGraph(3 variables, 3 factors, 1 tables)
    """
    if getattr(model, "kind", None) != "logic":
        raise ModelError(f"ground needs a Markov logic network, got a {type(model).__name__}")
    limit = whole(limit, "limit") or 0
    size = ground_size(model)
    if size.variables > limit:
        raise TooLarge("the ground model", size.variables, limit, CURE, unit="ground atoms")
    if size.factors > limit:
        raise TooLarge("the ground model", size.factors, limit, CURE, unit="ground formulas")
    boxes = layout(model)
    cards = np.concatenate([np.full(box.count, box.card) for box in boxes.values()] or [np.empty(0)]).astype(np.int32)
    out = _Output(cards)
    for formula in _pieces(model):
        _ground_formula(model, formula, boxes, out)
    evidence = np.full(len(cards), FREE, dtype=np.int32)
    for name, box in boxes.items():
        span = slice(box.offset, box.offset + box.count)
        evidence[span] = _observe(model, name, box, out)
    widths = np.concatenate([np.full(len(scope), scope.shape[1]) for scope in out.scopes] or [np.empty(0, int)])
    return FactorGraph.from_arrays(
        cards,
        np.concatenate([[0], np.cumsum(widths)]).astype(np.int64),
        np.concatenate([scope.ravel() for scope in out.scopes] or [np.empty(0)]).astype(np.int32),
        np.repeat(np.array(out.table_of, dtype=np.int64), [len(scope) for scope in out.scopes]),
        out.tables,
        names=variable_names(model),
        evidence=evidence,
        log_constant=out.log_constant,
        value_names=value_names(model),
    )


def ground_free(model: MarkovLogic, limit: int = LIMIT) -> FactorGraph:
    """The ground model over the atoms that are not known, without `!` predicates: of a model with much closed evidence
    a small part, made by joins over the facts."""
    if any(predicate.exclusive for predicate in model.predicates.values()):
        raise ModelError("the free part is grounded for models without ! arguments")
    size = ground_size(model)
    if max(size.factors, size.variables // 10) > limit:
        raise TooLarge("the ground model", max(size.factors, size.variables), limit, CURE, unit="ground formulas")
    boxes = layout(model)
    codes = np.concatenate([np.zeros(0, np.int8), *(model.knowledge.codes(name).ravel() for name in boxes)])
    free = np.flatnonzero(codes == UNKNOWN)
    out = _Output(np.full(len(free), 2, np.int32), codes=codes)
    for formula in _pieces(model):
        _ground_formula(model, formula, boxes, out)
    number = np.full(len(codes), -1, np.int32)
    number[free] = np.arange(len(free), dtype=np.int32)
    widths = np.concatenate([np.full(len(scope), scope.shape[1]) for scope in out.scopes] or [np.empty(0, int)])
    unknown = {name: np.argwhere(model.knowledge.codes(name) == UNKNOWN).tolist() for name in boxes}
    names = [atom_text(model, name, at) for name, places in unknown.items() for at in places]
    return FactorGraph.from_arrays(
        out.cards,
        np.concatenate([[0], np.cumsum(widths)]).astype(np.int64),
        number[np.concatenate([scope.ravel() for scope in out.scopes] or [np.empty(0, int)]).astype(np.int64)],
        np.repeat(np.array(out.table_of, dtype=np.int64), [len(scope) for scope in out.scopes]),
        out.tables,
        names=tuple(names),
        log_constant=out.log_constant,
    )


@dataclass
class _Output:
    """The factors made so far: blocks of scopes (rows are factors) with their table."""

    cards: np.ndarray
    scopes: list[np.ndarray] = field(default_factory=list)
    table_of: list[int] = field(default_factory=list)
    tables: list[np.ndarray] = field(default_factory=list)
    log_constant: float = 0.0
    codes: np.ndarray | None = None  # int8 by variable: what is known; None: known atoms are variables, too

    def add(self, scopes: np.ndarray, table: np.ndarray) -> None:
        self.scopes.append(scopes)
        self.table_of.append(len(self.tables))
        self.tables.append(table)


# --- formulas ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Template:
    """A formula without quantifiers, its distinct atoms and equalities, and the sizes of its free variables."""

    formula: WeightedFormula
    body: Formula
    atoms: tuple[Atom, ...]
    equalities: tuple[Equal, ...]
    shape: tuple[int, ...]


@dataclass(frozen=True)
class _Pattern:
    """What decides the table of a grounding."""

    labels: tuple[int, ...]  # of each atom: the first atom that lies in the same variable
    values: tuple[int, ...]  # of each atom: the value that makes it true
    equal: tuple[bool, ...]
    weight: float | None
    known: tuple[int, ...] = ()  # of each atom: its value, or UNKNOWN; empty where known atoms are variables


def _ground_formula(model: MarkovLogic, formula: WeightedFormula, boxes: Mapping[str, Box], out: _Output) -> None:
    if formula.weight is not None and not np.any(formula.weight):
        return
    body = written_out(formula.body, sizes_of(formula, model.sorts))
    shape = tuple(model.sorts[formula.sorts[name]].size for name in formula.free)
    template = _Template(
        formula, body, tuple(dict.fromkeys(atoms(body))), tuple(dict.fromkeys(equalities(body))), shape
    )
    total = prod(shape)
    _refuse_wide(model, template, boxes, total)
    known: dict[_Pattern, tuple[int, list[int], float]] = {}
    chosen = selection(model, body)
    if chosen is None:
        for start in range(0, total, CHUNK):
            _ground_rows(model, template, np.arange(start, min(start + CHUNK, total)), boxes, out, known)
        return
    left = groundings(join(model, chosen.atoms), formula.free, shape)
    for start in range(0, len(left), CHUNK):
        _ground_rows(model, template, left[start : start + CHUNK], boxes, out, known)
    if len(left) < total:
        _settle(model, template, chosen.value, left, total, out)


def _settle(model: MarkovLogic, template: _Template, value: bool, left: np.ndarray, total: int, out: _Output) -> None:
    """The groundings that closed evidence decides: a constant, or a clash."""
    formula = template.formula
    if formula.weight is None:
        if not value:
            raise Unsatisfiable(_always_false(model, formula))
        return
    if value:
        weight = np.asarray(formula.weight, dtype=np.float64)
        bound = _indices(template, left)
        there = weight[tuple(bound[name] for name in formula.plus)].sum() if formula.plus else len(left) * weight
        out.log_constant += float(weight.sum() * (total // max(weight.size, 1)) - there)


def _always_false(model: MarkovLogic, formula: WeightedFormula) -> str:
    place = f" (line {formula.line})" if formula.line else ""
    return f"the hard formula {format_formula(formula.body, model.sorts)}{place} is false in every state"


def _indices(template: _Template, rows: np.ndarray) -> dict[str, np.ndarray]:
    """The constant of each free variable in each grounding."""
    found = np.unravel_index(rows, template.shape) if template.shape else ()
    return dict(zip(template.formula.free, found, strict=True))


def _literals(
    template: _Template, bound: Mapping[str, np.ndarray], rows: int, boxes: Mapping[str, Box]
) -> tuple[np.ndarray, np.ndarray]:
    """The variables and the values of all atoms in all groundings: two arrays int64[atom, row]."""
    variables = np.empty((len(template.atoms), rows), dtype=np.int64)
    values = np.ones((len(template.atoms), rows), dtype=np.int64)
    for k, atom in enumerate(template.atoms):
        box = boxes[atom.predicate]
        at = [_value(term, bound) for term in atom.args]
        variables[k] = box.offset + sum(i * s for i, s in zip(at, box.variable_strides, strict=True))
        if box.exclusive:
            values[k] = sum(i * s for i, s in zip(at, box.value_strides, strict=True))
    return variables, values


def _value(term: Term, bound: Mapping[str, np.ndarray]) -> np.ndarray | int:
    return term.index if isinstance(term, Constant) else bound[term.name]


def _refuse_wide(model: MarkovLogic, template: _Template, boxes: Mapping[str, Box], total: int) -> None:
    """Quantifiers over many constants make tables that cannot be written down: refuse before any work."""
    rows = np.unique(np.array([0, total // 3, total // 2, total - 1]))
    variables, _ = _literals(template, _indices(template, rows), len(rows), boxes)
    sizes = {v: box.card for atom in template.atoms for box in [boxes[atom.predicate]] for v in (box.offset,)}
    starts = np.array(sorted(sizes), dtype=np.int64)
    for row in variables.T:
        distinct = np.unique(row)
        cards = [sizes[int(starts[np.searchsorted(starts, v, side="right") - 1])] for v in distinct]
        if sum(map(log2, cards)) > log2(LARGEST_TABLE):
            text = format_formula(template.formula.body, model.sorts)
            entries = 2.0 ** min(1000.0, sum(map(log2, cards)))
            raise TooLarge(f"one grounding of {text}", entries, LARGEST_TABLE, CURE, unit="table entries")


def _ground_rows(
    model: MarkovLogic,
    template: _Template,
    rows: np.ndarray,
    boxes: Mapping[str, Box],
    out: _Output,
    known: dict[_Pattern, tuple[int, list[int], float]],
) -> None:
    """Add the factors of some groundings, pattern by pattern."""
    bound = _indices(template, rows)
    variables, values = _literals(template, bound, len(rows), boxes)
    labels = _coincidences(template, variables)
    equal = np.empty((len(template.equalities), len(rows)), dtype=np.int64)
    for k, equality in enumerate(template.equalities):
        equal[k] = _value(equality.left, bound) == _value(equality.right, bound)
    weights, weight_of = _weights(template.formula, bound, len(rows))
    codes = np.zeros((0, len(rows)), np.int64) if out.codes is None else out.codes[variables].astype(np.int64)
    groups = _groups(np.concatenate([labels, values, equal, weight_of[None], codes]))
    for group in groups:
        r = group[0]
        weight = None if weights is None else float(weights[weight_of[r]])
        same = tuple(equal[:, r].astype(bool))
        pattern = _Pattern(tuple(labels[:, r]), tuple(values[:, r]), same, weight, tuple(codes[:, r].tolist()))
        if pattern not in known:
            known[pattern] = _add_pattern(model, template, pattern, boxes, out)
        table, kept, constant = known[pattern]
        if table < 0:
            out.log_constant += constant * len(group)
            continue
        out.scopes.append(variables[kept][:, group].T)
        out.table_of.append(table)


def _coincidences(template: _Template, variables: np.ndarray) -> np.ndarray:
    """int64[atom, row]: the first atom that lies in the same variable of the ground model."""
    labels = np.repeat(np.arange(len(variables))[:, None], variables.shape[1], axis=1)
    for j, atom in enumerate(template.atoms):
        for i in range(j):
            if template.atoms[i].predicate == atom.predicate:
                same = (variables[i] == variables[j]) & (labels[j] == j)
                labels[j][same] = i
    return labels


def _weights(
    formula: WeightedFormula, bound: Mapping[str, np.ndarray], rows: int
) -> tuple[np.ndarray | None, np.ndarray]:
    """The distinct weights and which of them each grounding has."""
    if formula.weight is None:
        return None, np.zeros(rows, dtype=np.int64)
    distinct, place = np.unique(np.asarray(formula.weight, dtype=np.float64), return_inverse=True)
    if not formula.plus:
        return distinct, np.zeros(rows, dtype=np.int64)
    place = place.reshape(np.shape(formula.weight))
    return distinct, place[tuple(bound[name] for name in formula.plus)]


def _groups(columns: np.ndarray) -> list[np.ndarray]:
    """Rows that agree in all columns (columns[column, row])."""
    code = np.zeros(columns.shape[1], dtype=np.int64)
    size = 1
    for column in columns:
        if not (column != column[0]).any():
            continue
        radix = int(column.max()) + 1
        if size * radix >= 2**62:
            code = np.unique(code, return_inverse=True)[1]
            size = len(code)
        code, size = code * radix + column, size * radix
    order = np.argsort(code, kind="stable")
    cuts = np.flatnonzero(np.diff(code[order])) + 1
    return np.split(order, cuts)


def _add_pattern(
    model: MarkovLogic, template: _Template, pattern: _Pattern, boxes: Mapping[str, Box], out: _Output
) -> tuple[int, list[int], float]:
    """The table of a pattern: its number in the output (or -1 for a constant), the atoms of its scope, the constant."""
    free = [k for k in range(len(template.atoms)) if not pattern.known or pattern.known[k] == UNKNOWN]
    distinct = sorted({pattern.labels[k] for k in free})
    shape = tuple(boxes[template.atoms[k].predicate].card for k in distinct)
    entries = prod(shape)
    if entries > LARGEST_TABLE:
        text = format_formula(template.formula.body, model.sorts)
        raise TooLarge(f"one grounding of {text}", entries, LARGEST_TABLE, CURE, unit="table entries")
    truth = {}
    for k, atom in enumerate(template.atoms):
        if k not in free:
            truth[atom] = np.bool_(pattern.known[k])
            continue
        axis = distinct.index(pattern.labels[k])
        side = [1] * len(shape)
        side[axis] = shape[axis]
        truth[atom] = (np.arange(shape[axis]) == pattern.values[k]).reshape(side)
    truth |= dict(zip(template.equalities, pattern.equal, strict=True))
    table = np.broadcast_to(np.asarray(evaluate(template.body, truth)), shape)
    kept = list(distinct)
    for axis in reversed(range(len(shape))):  # a variable that changes nothing leaves the scope
        first = table.take([0], axis=axis)
        if (table == first).all():
            table = first.squeeze(axis)
            del kept[axis]
    if kept:
        high, low = (0.0, -np.inf) if pattern.weight is None else (pattern.weight, 0.0)
        out.tables.append(np.where(table, high, low))
        return len(out.tables) - 1, kept, 0.0
    if pattern.weight is None and not table:
        raise Unsatisfiable(_always_false(model, template.formula))
    return -1, kept, (pattern.weight or 0.0) * float(table)


# --- evidence ---------------------------------------------------------------------------------------------------------


def _observe(model: MarkovLogic, name: str, box: Box, out: _Output) -> np.ndarray:
    """The known values of a predicate's variables; where a block has several possible values, but not all, a factor
    rules the others out."""
    codes = model.knowledge.codes(name)
    if not box.exclusive:
        return np.where(codes == UNKNOWN, FREE, codes).astype(np.int32).ravel()
    inner = model.predicates[name].exclusive
    outer = [k for k in range(codes.ndim) if k not in inner]
    possible = codes.transpose([*outer, *inner]).reshape(box.count, box.card) != 0
    count = possible.sum(axis=1)
    seen = np.where(count == 1, possible.argmax(axis=1), FREE).astype(np.int32)
    partial = np.flatnonzero((count > 1) & (count < box.card))
    if len(partial):
        masks, which = np.unique(possible[partial], axis=0, return_inverse=True)
        for number, mask in enumerate(masks):
            blocks = partial[which.ravel() == number] + box.offset
            out.add(blocks[:, None], np.where(mask, 0.0, -np.inf))
    return seen


# --- events -----------------------------------------------------------------------------------------------------------


def ground_event(boxes: Mapping[str, Box], formula: Formula) -> tuple[tuple[int, ...], np.ndarray]:
    """The variables of `ground(model)` that a quantifier-free formula over constants speaks of, ascending, and the
    tuples of their values that make it true: int32[s, k]. `Topic(P1,AI)` is one value of the variable `Topic(P1,!)`;
    `boxes` is `layout(model)`."""
    literals = {atom: atom_literal(boxes, atom) for atom in atoms(formula)}
    cards = {literals[atom][0]: boxes[atom.predicate].card for atom in literals}
    variables = tuple(sorted(cards))
    shape = tuple(cards[variable] for variable in variables)
    if prod(shape) > LARGEST_TABLE:
        raise TooLarge("the number of states of a query's atoms", prod(shape), LARGEST_TABLE, "ask for fewer at once")
    truth: dict[Formula, np.ndarray | bool] = {e: e.left == e.right for e in equalities(formula)}
    for atom, (variable, value) in literals.items():
        axis = variables.index(variable)
        side = [1] * len(shape)
        side[axis] = shape[axis]
        truth[atom] = (np.arange(shape[axis]) == value).reshape(side)
    table = np.broadcast_to(np.asarray(evaluate(formula, truth)), shape)
    return variables, np.argwhere(table).astype(np.int32)
