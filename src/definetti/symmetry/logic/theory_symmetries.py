"""Symmetries of the theory itself: predicates that can be exchanged, negated, or have their arguments permuted.

A symmetry of this kind is a relabelling of predicates, P(a) ↦ Q(a[places]) or !Q(a[places]), together with a renaming
of constants. The relabellings that preserve the formulas are found by a stabiliser chain: predicates are given images
one after the other, and whatever terms of the log density (`polynomial.py`) they complete must have images there. Each
is then paired with a renaming that restores the evidence: the identity, or one that the search for automorphisms finds
in two copies of the constants, the second one relabelled. Every pair is checked against formulas and evidence before
use. Nothing is grounded.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import permutations

import numpy as np

from definetti import groups
from definetti.constraints.logic.ties import Image
from definetti.errors import Notice
from definetti.journal import Deadline
from definetti.model.logic.evidence import UNKNOWN, Relation
from definetti.model.logic.formulas import map_terms, parts, rebuild
from definetti.model.logic.interchangeable import Nodes, class_sizes, mix
from definetti.model.logic.theory import Atom, Constant, Formula, MarkovLogic, Not, Predicate, Term
from definetti.symmetry.bliss import search
from definetti.symmetry.logic.class_permutations import Rows, quotient_graph, quotient_rows, refine
from definetti.symmetry.logic.constants import ConstantGroup
from definetti.symmetry.logic.polynomial import Key, NamedRows, Polynomial, Relabelling, polynomial

MOST_TRIALS = 4_000  # images of predicates tried in all
MOST_ELEMENTS = 400  # relabellings for which a renaming is sought one by one
MOST_RENAMINGS = 60  # searches for a renaming
MOST_ARGUMENTS = 4  # of a predicate whose arguments are permuted
MOST_NODES = 20_000  # of a graph in which a renaming is sought

Moves = Mapping[str, Image]  # predicates that stay as they are may be left out


@dataclass(frozen=True, eq=False)
class TheorySymmetry:
    """A relabelling of predicates and a permutation of the constants (nodes) that preserve the model together."""

    moves: Moves
    renaming: np.ndarray

    @property
    def negates(self) -> bool:
        return any(not image.sign for image in self.moves.values())


@dataclass(frozen=True, eq=False)
class TheoryGroup:
    """The group that `generators` generate beside the renamings; `order` counts its relabellings of predicates."""

    predicates: Mapping[str, Predicate]
    nodes: Nodes
    generators: tuple[TheorySymmetry, ...]
    order: int

    def restricted(self, kept: Sequence[bool]) -> TheoryGroup:
        """The group that some of the generators generate."""
        some = tuple(g for g, keep in zip(self.generators, kept, strict=True) if keep)
        return TheoryGroup(self.predicates, self.nodes, some, relabelling_count(self.predicates, some))

    @cached_property
    def starts(self) -> dict[str, int]:
        """Where the points of a predicate begin, behind those of the constants: true, false, then its arguments."""
        ends = np.cumsum([self.nodes.count, *(2 + len(p.sorts) for p in self.predicates.values())])
        return {name: int(end) for name, end in zip(self.predicates, ends, strict=False)}

    @cached_property
    def degree(self) -> int:
        return self.nodes.count + sum(2 + len(p.sorts) for p in self.predicates.values())

    @cached_property
    def group(self) -> groups.PermutationGroup:
        return groups.PermutationGroup(self.degree, tuple(groups.sparse(self.dense(g)) for g in self.generators))

    def dense(self, symmetry: TheorySymmetry) -> np.ndarray:
        """A symmetry as a permutation of constants, literals of predicates and their arguments."""
        points = np.arange(self.degree)
        points[: self.nodes.count] = symmetry.renaming
        for name, image in symmetry.moves.items():
            at, to = self.starts[name], self.starts[image.predicate]
            points[at : at + 2] = (to, to + 1) if image.sign else (to + 1, to)
            for k, place in enumerate(image.places):
                points[at + 2 + place] = to + 2 + k
        return points

    def symmetry(self, points: np.ndarray) -> TheorySymmetry:
        """The inverse of `dense`."""
        owner = {at: name for name, at in self.starts.items()}
        moves = {}
        for name, at in self.starts.items():
            to = min(int(points[at]), int(points[at + 1]))
            arity = len(self.predicates[name].sorts)
            places = np.argsort(points[at + 2 : at + 2 + arity]).tolist()
            image = Image(owner[to], tuple(places), bool(points[at] == to))
            if image != _itself(self.predicates[name]):
                moves[name] = image
        return TheorySymmetry(moves, points[: self.nodes.count])

    def images(self, formula: Formula, most: int) -> list[Formula]:
        """A formula over constants and its images under the group, itself first; only itself where they are more."""
        found, waiting = {formula: None}, [formula]
        while waiting:
            here = waiting.pop()
            for g in self.generators:
                image = _renamed(relabelled(here, g.moves), self.nodes, g.renaming)
                if image not in found:
                    found[image] = None
                    waiting.append(image)
            if len(found) > most:
                return [formula]
        return list(found)

    @cached_property
    def turns(self) -> tuple[tuple[frozenset[str], bool], ...]:
        """Predicates that can be exchanged, and whether arguments are permuted on the way. A sweep that visits each of
        these sets in random order (and its arguments, too) commutes with the group."""
        names = list(self.predicates)
        pairs = [(names.index(p), names.index(i.predicate)) for g in self.generators for p, i in g.moves.items()]
        a, b = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        of = groups.components(len(names), a, b)
        turned = {
            of[names.index(p)]
            for g in self.generators
            for p, i in g.moves.items()
            if i.places != tuple(sorted(i.places))
        }
        sets = [
            (frozenset(names[k] for k in np.flatnonzero(of == c)), c in turned) for c in range(of.max(initial=-1) + 1)
        ]
        return tuple((members, turn) for members, turn in sets if len(members) > 1 or turn)


def relabelling_count(predicates: Mapping[str, Predicate], found: Sequence[TheorySymmetry]) -> int:
    """The order of the group of relabellings alone."""
    still = tuple(TheorySymmetry(s.moves, np.zeros(0, np.int64)) for s in found)
    order = groups.order(TheoryGroup(predicates, Nodes({}, {}), still, 0).group)
    assert order is not None
    return order


def _itself(predicate: Predicate) -> Image:
    return Image(predicate.name, tuple(range(len(predicate.sorts))))


def theory_group(
    model: MarkovLogic, strict: ConstantGroup, time_limit: float
) -> tuple[TheoryGroup | None, tuple[Notice, ...]]:
    """The symmetries of a theory beside the renamings, or None if there are none, and what limits them; `strict`:
    renamings that preserve the evidence itself."""
    deadline = Deadline("symmetries of the theory", time_limit)
    candidates = _Candidates(model)
    if not candidates.any:
        return None, ()
    form = polynomial(model)
    chain = _Chain(model, form, candidates)
    chain.search()
    if not chain.generators:
        return None, ()
    found = _Lift(model, form, strict, deadline).group(chain)
    if not deadline.passed():
        return found, ()
    message = f"the search for symmetries of the theory was stopped after {time_limit:g} s: some may be missing"
    return found, (Notice("time-limit", message + "; raise the time limit"),)


# --- relabellings of predicates --------------------------------------------------------------------------------------


class _Candidates:
    """The images that a predicate may have by its sorts, its `!` and the numbers of its known atoms."""

    def __init__(self, model: MarkovLogic) -> None:
        self.model = model
        self.images = {name: tuple(self._images(p)) for name, p in model.predicates.items()}

    @property
    def any(self) -> bool:
        return any(len(images) > 1 for images in self.images.values())

    def _images(self, p: Predicate) -> Iterator[Image]:
        """Itself first."""
        yield _itself(p)
        for q in self.model.predicates.values():
            if sorted(p.sorts) != sorted(q.sorts) or len(p.exclusive) != len(q.exclusive):
                continue
            few = len(p.sorts) <= MOST_ARGUMENTS
            for places in permutations(range(len(p.sorts))) if few else [tuple(range(len(p.sorts)))]:
                if any(p.sorts[j] != s for j, s in zip(places, q.sorts, strict=True)):
                    continue
                if any((j in p.exclusive) != (k in q.exclusive) for k, j in enumerate(places)):
                    continue
                for sign in (True, False):
                    image = Image(q.name, places, sign)
                    if image != _itself(p) and not (p.exclusive and not sign) and self._alike(p, q, sign):
                        yield image

    def _alike(self, p: Predicate, q: Predicate, sign: bool) -> bool:
        return self._known(p.name, sign) == self._known(q.name, True)

    def _known(self, name: str, sign: bool) -> tuple[int, ...]:
        relation = self.model.knowledge.relation(name)
        counts = np.bincount(_signed_codes(relation.codes, sign), minlength=3).tolist()
        return int(_signed_codes(np.array([relation.default]), sign)[0]), *counts


def _signed_codes(codes: np.ndarray, sign: bool) -> np.ndarray:
    return codes if sign else np.where(codes == UNKNOWN, UNKNOWN, 1 - codes)


class _Chain:
    """A stabiliser chain of the relabellings that preserve the log density, constants and weights of `+` variables
    blurred: those of a level leave all predicates before it alone."""

    def __init__(self, model: MarkovLogic, form: Polynomial, candidates: _Candidates) -> None:
        self.form = form
        self.names = [name for name in model.predicates if name in form.predicates - form.pinned]
        self.itself = {name: _itself(model.predicates[name]) for name in model.predicates}
        self.images = self._filtered(candidates)
        self.names.sort(key=lambda name: len(self.images[name]))
        self.generators: list[dict[str, Image]] = []
        self.order, self.trials, self.complete = 1, 0, True
        rank = {name: k for k, name in enumerate(self.names)}
        self.completed: dict[int, list[Key]] = defaultdict(list)  # keys by the last of their predicates
        for key, used in form.predicates_of.items():
            free = [rank[name] for name in used if name in rank]
            if free:
                self.completed[max(free)].append(key)

    def _filtered(self, candidates: _Candidates) -> dict[str, list[Image]]:
        """Images that occur in terms with the same coefficients, up to sign, and in as many hard functions."""
        seen: dict[str, Counter[object]] = {name: Counter() for name in self.names}
        for key, used in self.form.predicates_of.items():
            mark = (len(key[2]), len(used), *sorted(map(abs, self.form.blurred[key])))
            for name in used & seen.keys():
                seen[name][mark] += 1
        return {
            name: [i for i in candidates.images[name] if i.predicate in seen and seen[i.predicate] == seen[name]]
            for name in self.names
        }

    def search(self) -> None:
        for level in reversed(range(len(self.names))):
            name = self.names[level]
            reached = self._reached(name)
            for image in self.images[name]:
                if image in reached:
                    continue
                before = {other: self.itself[other] for other in self.names[:level]}
                found = self._completed(before, level, [image])
                if found is not None:
                    self.generators.append({p: i for p, i in found.items() if i != self.itself[p]})
                    reached = self._reached(name)
            self.order *= len(reached)

    def _reached(self, name: str) -> set[Image]:
        """The images of a predicate under the relabellings found so far, which leave earlier predicates alone."""
        found, waiting = {self.itself[name]}, [self.itself[name]]
        while waiting:
            here = waiting.pop()
            for g in self.generators:
                image = after(here, g)
                if image not in found:
                    found.add(image)
                    waiting.append(image)
        return found

    def _completed(self, chosen: dict[str, Image], level: int, images: Sequence[Image]) -> dict[str, Image] | None:
        """A relabelling that goes on from the images of the predicates before a level; depth first."""
        if level == len(self.names):
            return dict(chosen)
        name, taken = self.names[level], {image.predicate for image in chosen.values()}
        for image in images:
            if image.predicate in taken:
                continue
            self.trials += 1
            if self.trials > MOST_TRIALS:
                self.complete = False
                return None
            chosen[name] = image
            if self._fits(chosen, level):
                later = self.images[self.names[level + 1]] if level + 1 < len(self.names) else ()
                found = self._completed(chosen, level + 1, later)
                if found is not None:
                    return found
            del chosen[name]
        return None

    def _fits(self, chosen: Moves, level: int) -> bool:
        by = relabelling(chosen)
        return all(self.form.allows(key, by) for key in self.completed[level])


def after(image: Image, moves: Moves) -> Image:
    """First one relabelling, then another."""
    then = moves.get(image.predicate)
    if then is None:
        return image
    return Image(then.predicate, tuple(image.places[k] for k in then.places), image.sign == then.sign)


def relabelling(moves: Moves, nodes: Nodes | None = None, renaming: np.ndarray | None = None) -> Relabelling:
    """The same for the polynomial."""
    by_name = {name: (i.predicate, i.places, i.sign) for name, i in moves.items()}
    if nodes is None or renaming is None:
        return Relabelling(by_name)

    def constant(sort: str, index: int) -> int:
        return int(renaming[nodes.start[sort] + index]) - nodes.start[sort]

    def array(sorts: tuple[str, ...], weights: np.ndarray) -> np.ndarray:
        out = np.empty_like(weights)
        images = [renaming[nodes.start[s] : nodes.start[s] + nodes.size[s]] - nodes.start[s] for s in sorts]
        out[np.ix_(*images)] = weights
        return out

    return Relabelling(by_name, constant, array)


# --- renamings that restore the evidence -----------------------------------------------------------------------------


def moved_relations(known: Mapping[str, Relation], moves: Moves) -> dict[str, Relation]:
    """What is known after a relabelling, by the new predicate."""
    out = dict(known)
    for name, image in moves.items():
        r = known[name]
        default = int(_signed_codes(np.array([r.default]), image.sign)[0])
        tuples, codes = r.tuples[:, list(image.places)], _signed_codes(r.codes, image.sign)
        out[image.predicate] = Relation(image.predicate, known[image.predicate].sorts, tuples, codes, default)
    return out


def same_relations(a: Mapping[str, Relation], b: Mapping[str, Relation]) -> bool:
    return all(a[name].default == b[name].default and np.array_equal(_rows(a[name]), _rows(b[name])) for name in a)


def _rows(relation: Relation) -> np.ndarray:
    """Rows and codes in lexicographic order."""
    whole = np.concatenate([relation.tuples, relation.codes[:, None]], axis=1).astype(np.int64)
    return whole[np.lexsort(whole.T)]


def renamed_relations(known: Mapping[str, Relation], nodes: Nodes, renaming: np.ndarray) -> dict[str, Relation]:
    out = {}
    for name, r in known.items():
        start = np.array([nodes.start[s] for s in r.sorts], dtype=np.int64)
        tuples = (renaming[r.tuples + start] - start).astype(np.int32) if r.sorts else r.tuples
        out[name] = Relation(name, r.sorts, tuples, r.codes, r.default)
    return out


@dataclass(frozen=True, eq=False)
class _Lift:
    """Which relabellings become symmetries of the model with its evidence, and by which renamings."""

    model: MarkovLogic
    form: Polynomial
    strict: ConstantGroup
    deadline: Deadline

    @property
    def known(self) -> Mapping[str, Relation]:
        return self.model.knowledge.relations

    def group(self, chain: _Chain) -> TheoryGroup | None:
        """With more than a few relabellings only the generators are tried."""
        identity = np.arange(self.strict.nodes.count)
        if all(self._holds(moves, identity) for moves in chain.generators):
            found = [TheorySymmetry(moves, identity) for moves in chain.generators]
            order = chain.order if chain.complete else relabelling_count(self.model.predicates, found)
            return TheoryGroup(self.model.predicates, self.strict.nodes, tuple(found), order)
        few = chain.complete and chain.order <= MOST_ELEMENTS
        waiting = list(_elements(chain)) if few else chain.generators
        found, reached, left = [], {frozenset[tuple[str, Image]]()}, MOST_RENAMINGS
        for moves in waiting:
            if few and frozenset(moves.items()) in reached:
                continue
            lifted = TheorySymmetry(moves, identity) if self._holds(moves, identity) else None
            if lifted is None and left and not self.deadline.passed():
                lifted, left = self._with_renaming(moves), left - 1
            if lifted is not None:
                found.append(lifted)
                if few:
                    reached = {frozenset(m.items()) for m in closure([s.moves for s in found])}
        if not found:
            return None
        return TheoryGroup(
            self.model.predicates, self.strict.nodes, tuple(found), relabelling_count(self.model.predicates, found)
        )

    def _holds(self, moves: Moves, renaming: np.ndarray) -> bool:
        """The check that every symmetry has to pass."""
        nodes, still = self.strict.nodes, bool((renaming == np.arange(len(renaming))).all())
        known = {name: self.known[name] for name in self.known if name in moves or not still}
        evidence = renamed_relations(moved_relations(known, moves), nodes, renaming)
        return same_relations(known, evidence) and self.form.preserved(relabelling(moves, nodes, renaming))

    def _with_renaming(self, moves: Moves) -> TheorySymmetry | None:
        renaming = self._renaming(moves)
        if renaming is None or not self._holds(moves, renaming):
            return None
        return TheorySymmetry(moves, renaming)

    def _renaming(self, moves: Moves) -> np.ndarray | None:
        """A map of classes of interchangeable constants onto each other that undoes what a relabelling does to the
        evidence: an automorphism that exchanges two copies of the constants, the second with relabelled evidence."""
        nodes, classes = self.strict.nodes, self.strict.classes
        other = moved_relations(self.known, moves)
        if any(self.known[name].default != other[name].default for name in other):
            return None
        sizes = class_sizes(nodes, classes)
        start, count = self.strict.quotient.start, sum(len(k) for k in sizes.values())
        if not 0 < 8 * count <= MOST_NODES:
            return None
        rows = self._copies(moves, other, start, count)
        sort = np.repeat(np.arange(len(sizes)), [len(k) for k in sizes.values()])
        keys = np.tile(mix(sort, np.concatenate([np.zeros(0, np.int64), *sizes.values()])), 2)
        colours = refine(keys, rows)
        if not np.array_equal(np.bincount(colours[:count]), np.bincount(colours[count:])):
            return None
        graph_colours, edges = quotient_graph(np.arange(2 * count), colours, rows)
        total = len(graph_colours)
        hubs = np.stack([total + np.arange(2 * count) // count, np.arange(2 * count)], 1)
        graph_colours = np.append(graph_colours, [graph_colours.max() + 1] * 2)
        if len(graph_colours) > MOST_NODES:
            return None
        for points, images in search(np.concatenate([edges, hubs]), graph_colours, self.deadline.left).generators:
            image = groups.dense((points, images), len(graph_colours))
            if image[total] == total + 1:  # relabelled evidence is where the evidence was
                return self._of_classes(image[count : 2 * count])
        return None

    def _copies(self, moves: Moves, other: Mapping[str, Relation], start: dict[str, int], count: int) -> list[Rows]:
        """What is said of the classes of constants in the first copy and, relabelled, in the second: by evidence, and
        by formulas that name constants or weigh them. All rows of one length are put together."""
        there = self.form.rows(relabelling(moves))
        pairs = [(self.known[name], other[name]) for name in self.known]
        codes: dict[tuple[object, ...], int] = {}
        for key in self._named.keys() | there.keys():
            here = _constants_relation(self._named.get(key, {}), codes)
            pairs.append((here, _constants_relation(there.get(key, {}), codes)))
        found: dict[int, list[Rows]] = defaultdict(list)
        for number, pair in enumerate(pairs):
            for copy, relation in enumerate(pair):
                if relation.sorts and len(relation.tuples):
                    rows = quotient_rows(self.strict.nodes, relation, self.strict.classes, start, number)
                    found[len(relation.sorts)].append(rows.shifted(copy * count))
        return [
            Rows(np.concatenate([r.nodes for r in some]), np.concatenate([r.label for r in some]))
            for some in found.values()
        ]

    @cached_property
    def _named(self) -> NamedRows:
        return self.form.rows(relabelling({}))

    def _of_classes(self, image: np.ndarray) -> np.ndarray:
        """A permutation of classes as one of constants, those of a class in order."""
        group = self.strict
        renaming = np.arange(group.nodes.count)
        for sort, start in group.quotient.start.items():
            for number in range(len(group.sizes[sort])):
                to = int(image[start + number]) - start
                at = group.nodes.start[sort]
                renaming[at + group.members(sort, number)] = at + group.members(sort, to)
        return renaming


def _constants_relation(
    rows: Mapping[tuple[tuple[str, int], ...], list[Fraction | float]], codes: dict[tuple[object, ...], int]
) -> Relation:
    sorts = tuple(sort for sort, _ in next(iter(rows), ()))
    tuples = np.array([[c for _, c in row] for row in rows], dtype=np.int32).reshape(len(rows), len(sorts))
    colour = [codes.setdefault(tuple(sorted(some)), len(codes)) for some in rows.values()]
    return Relation("constants", sorts, tuples, np.array(colour, dtype=np.int32))


def relabelled(formula: Formula, moves: Moves) -> Formula:
    """A formula with its atoms replaced by their images."""
    if isinstance(formula, Atom):
        image = moves.get(formula.predicate)
        if image is None:
            return formula
        atom = Atom(image.predicate, tuple(formula.args[k] for k in image.places))
        return atom if image.sign else Not(atom)
    if isinstance(formula, Not) and isinstance(formula.part, Atom):
        image = relabelled(formula.part, moves)
        return image.part if isinstance(image, Not) else Not(image)
    return rebuild(formula, tuple(relabelled(part, moves) for part in parts(formula)))


def _renamed(formula: Formula, nodes: Nodes, renaming: np.ndarray) -> Formula:
    def term(t: Term) -> Term:
        if not isinstance(t, Constant):
            return t
        start = nodes.start[t.sort]
        return Constant(t.sort, int(renaming[start + t.index]) - start)

    return map_terms(formula, term)


def _elements(chain: _Chain) -> Iterator[dict[str, Image]]:
    """All relabellings, those that move the fewest predicates first."""
    yield from sorted(closure(chain.generators), key=len)


def closure(generators: Sequence[Moves]) -> list[dict[str, Image]]:
    """The group of relabellings that some generate."""
    found: dict[frozenset[tuple[str, Image]], dict[str, Image]] = {frozenset(): {}}
    waiting: list[dict[str, Image]] = [{}]
    while waiting:
        here = waiting.pop()
        for g in generators:
            moved = composed(here, g)
            key = frozenset(moved.items())
            if key not in found:
                found[key] = moved
                waiting.append(moved)
    return list(found.values())


def composed(first: Moves, then: Moves) -> dict[str, Image]:
    """First one relabelling, then another; predicates that stay as they are are left out."""
    out = {}
    for name in {**first, **then}:
        image = after(first[name], then) if name in first else then[name]
        if image != Image(name, tuple(range(len(image.places)))):
            out[name] = image
    return out
