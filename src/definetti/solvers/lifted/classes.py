"""Constants that lifted counting need not distinguish: classes, roles (as far as pairs go), kinds of pairs of roles.

Constants of one class are interchangeable. Constants of one role are so as far as atoms over two of them go:
evidence on R(a,b), weights and named constants of rules over two terms. Everything else about a constant is a
field on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from definetti.errors import TooLarge
from definetti.integer_rows import distinct
from definetti.model.logic.evidence import UNKNOWN, Relation
from definetti.model.logic.interchangeable import Nodes, nodes_of, twins
from definetti.model.logic.theory import Constant
from definetti.solvers.lifted.theory import Rule, Theory

MOST_ROLES = 3000
ABSENT = -1  #: of a code or weight: there is no such atom, the rule does not apply


@dataclass(frozen=True, eq=False)
class Partition:
    """Classes of constants, numbered over all sorts."""

    of: Mapping[str, np.ndarray]  # the class of each constant
    sort: tuple[str, ...]  # of each class
    size: np.ndarray
    first: np.ndarray  # a member, and another one or -1
    second: np.ndarray


@dataclass(frozen=True, eq=False)
class Kinds:
    """Pairs (a, b) of different constants by the evidence on atoms over both and by the rules that apply to them."""

    of: np.ndarray  # int32[role, role]: -1 for a single constant with itself
    sorts: tuple[tuple[str, str], ...]
    codes: tuple[Mapping[tuple[str, str], int], ...]  # ("ab", R) → what is known of R(a,b); "ba": R(b,a)
    weights: tuple[Mapping[tuple[int, str], int], ...]  # (rule, "ab") → place among the rule's weights


@dataclass(frozen=True, eq=False)
class Known:
    """What lifted counting knows of the constants."""

    theory: Theory
    classes: Partition
    roles: Partition
    role_of: np.ndarray  # of each class
    own: np.ndarray  # int[class, column]: codes of atoms over one constant, then a rule's place in its weights
    own_predicates: tuple[str, ...]
    own_rules: tuple[int, ...]
    kinds: Kinds


def known_of(theory: Theory) -> Known:
    model = theory.model
    nodes = nodes_of({s.name: s.size for s in model.sorts.values()})
    evidence = model.knowledge.relations
    seen = [evidence[name] for name, p in theory.predicates.items() if name in evidence and p.sorts]
    both = [_apart(r) for r in seen if len(r.sorts) == 2]
    both += [_apart(r) for rule in theory.rules if len(rule.terms) == 2 for r in _rule_relations(rule)]
    alone = [*seen, *(r for rule in theory.rules for r in _rule_relations(rule))]
    roles = _partition(nodes, both)
    classes = _partition(nodes, [*alone, *both])
    if len(roles.sort) > MOST_ROLES:
        raise TooLarge("lifted counting", len(roles.sort), MOST_ROLES, "sample instead",
                       unit="different rows of binary evidence")  # fmt: skip
    role_of = np.array([roles.of[s][i] for s, i in zip(classes.sort, classes.first.tolist(), strict=True)], np.int64)
    names = tuple(p.name for p in theory.predicates.values() if p.sorts and len(set(p.sorts)) == 1)
    rules = tuple(k for k, rule in enumerate(theory.rules) if rule.terms)
    columns = [_own_codes(theory, evidence.get(name), name, classes) for name in names]
    columns += [_own_weights(theory.rules[k], classes) for k in rules]
    own = np.stack(columns, 1) if columns else np.zeros((len(classes.sort), 0), np.int64)
    return Known(theory, classes, roles, role_of, own, names, rules, _kinds(theory, evidence, roles))


# --- partitions ----------------------------------------------------------------------------------------------


def _apart(relation: Relation) -> Relation:
    """Only what is said of different constants."""
    if len(relation.sorts) < 2 or relation.sorts[0] != relation.sorts[1]:
        return relation
    keep = relation.tuples[:, 0] != relation.tuples[:, 1]
    return Relation(relation.name, relation.sorts, relation.tuples[keep], relation.codes[keep], relation.default)


def _rule_relations(rule: Rule) -> Iterator[Relation]:
    for term in rule.terms:
        if isinstance(term, Constant):
            row = np.array([[term.index]], np.int32)
            yield Relation(f"constant {term.sort} {term.index}", (term.sort,), row, np.zeros(1, np.int32))
    if rule.plus:
        _, places = rule.values
        tuples = np.indices(places.shape, dtype=np.int32).reshape(places.ndim, places.size).T
        yield Relation("weights", tuple(rule.sorts[k] for k in rule.plus), tuples, places.reshape(-1).astype(np.int32))


def _partition(nodes: Nodes, relations: Sequence[Relation]) -> Partition:
    label = twins(nodes, [r for r in relations if len(r.tuples)])
    of, sort, size, first, second, start = {}, [], [], [], [], 0
    for name, begin in nodes.start.items():
        mine = label[begin : begin + nodes.size[name]]
        count = int(mine.max(initial=-1)) + 1
        order = np.argsort(mine, kind="stable")
        sizes = np.bincount(mine, minlength=count)
        places = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64) if count else np.zeros(0, np.int64)
        of[name] = mine.astype(np.int64) + start
        sort += [name] * count
        size.append(sizes)
        first.append(order[places])
        second.append(np.where(sizes > 1, order[np.minimum(places + 1, len(order) - 1)], -1))
        start += count
    joined = [np.concatenate([np.zeros(0, np.int64), *some]).astype(np.int64) for some in (size, first, second)]
    return Partition(of, tuple(sort), *joined)


def _own_codes(theory: Theory, relation: Relation | None, name: str, classes: Partition) -> np.ndarray:
    """What is known of P(a) or P(a,a) for a member a of each class."""
    sorts = theory.predicates[name].sorts
    mine = np.array([s == sorts[0] for s in classes.sort])
    column = np.where(mine, UNKNOWN if relation is None else relation.default, ABSENT).astype(np.int64)
    if relation is not None:
        loops = (relation.tuples == relation.tuples[:, :1]).all(axis=1)
        column[classes.of[sorts[0]][relation.tuples[loops, 0]]] = relation.codes[loops]
    return column


def _own_weights(rule: Rule, classes: Partition) -> np.ndarray:
    """Where a rule applies with all its terms at one constant: its place among its weights."""
    column = np.full(len(classes.sort), ABSENT, dtype=np.int64)
    if len(set(rule.sorts)) > 1:
        return column
    named = [term.index for term in rule.terms if isinstance(term, Constant)]
    if len(named) > 1:
        return column
    mine = np.flatnonzero(np.array([s == rule.sorts[0] for s in classes.sort]))
    if named:
        mine = classes.of[rule.sorts[0]][named]
    column[mine] = _flat(rule, [classes.first[mine]] * len(rule.terms))
    return column


def _flat(rule: Rule, at: Sequence[np.ndarray]) -> np.ndarray:
    if not rule.plus:
        return np.zeros(np.broadcast_shapes(*(a.shape for a in at)), dtype=np.int64)
    return rule.values[1][tuple(np.broadcast_arrays(*(at[k] for k in rule.plus)))].astype(np.int64)


# --- kinds of pairs ------------------------------------------------------------------------------------------


def _kinds(theory: Theory, evidence: Mapping[str, Relation], roles: Partition) -> Kinds:
    count = len(roles.sort)
    numbers = {name: k for k, name in enumerate(theory.model.sorts)}
    number = np.array([numbers[s] for s in roles.sort], dtype=np.int64)
    binary = [p for p in theory.predicates.values() if len(p.sorts) == 2]
    rules = [k for k, rule in enumerate(theory.rules) if len(rule.terms) == 2]
    layers = [np.broadcast_to(number[:, None], (count, count)), np.broadcast_to(number, (count, count))]
    for p in binary:
        code = _pair_codes(p.sorts, evidence.get(p.name), roles)
        layers += [code, code.T]
    for k in rules:
        place = _pair_weights(theory.rules[k], roles)
        layers += [place, place.T]
    rows, label, _ = distinct(np.stack([layer.reshape(-1) for layer in layers], 1))
    of = label.reshape(count, count).astype(np.int32)
    of[np.arange(count)[roles.size == 1], np.arange(count)[roles.size == 1]] = -1
    names = list(theory.model.sorts)
    slots = [(side, p.name) for p in binary for side in ("ab", "ba")]
    sides = [(k, side) for k in rules for side in ("ab", "ba")]
    tables = rows.tolist()
    return Kinds(
        of,
        tuple((names[row[0]], names[row[1]]) for row in tables),
        tuple({s: c for s, c in zip(slots, row[2:], strict=False) if c != ABSENT} for row in tables),
        tuple({s: c for s, c in zip(sides, row[2 + len(slots) :], strict=True) if c != ABSENT} for row in tables),
    )


def _pair_codes(sorts: tuple[str, ...], relation: Relation | None, roles: Partition) -> np.ndarray:
    rows, columns = (np.array([s == sort for s in roles.sort]) for sort in sorts)
    code = np.full((len(rows), len(rows)), ABSENT, dtype=np.int64)
    code[np.ix_(rows, columns)] = UNKNOWN if relation is None else relation.default
    if relation is not None:
        apart = _apart(relation)
        code[roles.of[sorts[0]][apart.tuples[:, 0]], roles.of[sorts[1]][apart.tuples[:, 1]]] = apart.codes
    return code


def _pair_weights(rule: Rule, roles: Partition) -> np.ndarray:
    """Where a rule applies with its first term at role i and its second at role j; a role's own members differ."""
    place = np.full((len(roles.sort), len(roles.sort)), ABSENT, dtype=np.int64)
    at = []
    for term, sort in zip(rule.terms, rule.sorts, strict=True):
        mine = np.flatnonzero(np.array([s == sort for s in roles.sort]))
        at.append(roles.of[sort][[term.index]] if isinstance(term, Constant) else mine)
    i, j = np.ix_(*at)
    second = np.where(i == j, np.maximum(roles.second[j], 0), roles.first[j])
    place[i, j] = _flat(rule, [np.broadcast_to(roles.first[i], second.shape), second])
    return place
