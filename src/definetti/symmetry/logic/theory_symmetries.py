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
from collections.abc import Iterator, Sequence
from itertools import permutations

import numpy as np

from definetti.constraints.logic.ties import Image
from definetti.errors import Notice
from definetti.journal import Deadline
from definetti.model.logic.theory import MarkovLogic, Predicate
from definetti.symmetry.logic.constants import ConstantGroup
from definetti.symmetry.logic.evidence_renamings import Lift, relabelling, signed_codes
from definetti.symmetry.logic.polynomial import Key, Polynomial, polynomial
from definetti.symmetry.logic.theory_group import Moves, Relabellings, TheoryGroup, after, itself

MOST_TRIALS = 4_000  # images of predicates tried in all
MOST_ARGUMENTS = 4  # of a predicate whose arguments are permuted


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
    preserving = _Chain(model, form, candidates).search()
    if not preserving.generators:
        return None, ()
    found = Lift(model, form, strict, deadline).group(preserving)
    if not deadline.passed():
        return found, ()
    message = f"the search for symmetries of the theory was stopped after {time_limit:g} s: some may be missing"
    return found, (Notice("time-limit", message + "; raise the time limit"),)


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
        yield itself(p)
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
                    if image != itself(p) and not (p.exclusive and not sign) and self._alike(p, q, sign):
                        yield image

    def _alike(self, p: Predicate, q: Predicate, sign: bool) -> bool:
        return self._known(p.name, sign) == self._known(q.name, True)

    def _known(self, name: str, sign: bool) -> tuple[int, ...]:
        relation = self.model.knowledge.relation(name)
        counts = np.bincount(signed_codes(relation.codes, sign), minlength=3).tolist()
        return int(signed_codes(np.array([relation.default]), sign)[0]), *counts


class _Chain:
    """A stabiliser chain of the relabellings that preserve the log density, constants and weights of `+` variables
    blurred: those of a level leave all predicates before it alone."""

    def __init__(self, model: MarkovLogic, form: Polynomial, candidates: _Candidates) -> None:
        self.form = form
        self.names = [name for name in model.predicates if name in form.predicates - form.pinned]
        self.itself = {name: itself(model.predicates[name]) for name in model.predicates}
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

    def search(self) -> Relabellings:
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
        return Relabellings(self.generators, self.order, self.complete)

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


# --- renamings that restore the evidence -----------------------------------------------------------------------------
