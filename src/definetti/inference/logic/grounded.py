"""Queries about a model that is grounded, wholly or in its free part: formulas over constants are events of the ground
model; conditions, quantifiers, patterns and counts are counted in its states, over orbits of renamings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, cast

import numpy as np

from definetti.inference.logic.cells import lay_out, numbers_of
from definetti.inference.question import Formulas, Request
from definetti.model.logic.atom_literals import layout
from definetti.model.logic.evidence import UNKNOWN
from definetti.model.logic.formulas import atoms
from definetti.model.logic.theory import Atom, MarkovLogic
from definetti.readers.logic.queries import LogicQuery, QueryPart, ground_queries, parse_all
from definetti.samplers.logic.queries import Query, counter, grid_size, listed_counter
from definetti.symmetry.find import is_group
from definetti.symmetry.find import symmetries as find_symmetries
from definetti.symmetry.logic.renaming import RenamingSymmetries, trivial

AT_ONCE = 1 << 24  # truth values: chains are looked at some at a time where there are more

Literals = Callable[[Atom, tuple[Any, ...]], tuple[np.ndarray, np.ndarray]]  # (variable, or -1 of what is known; value)


def ground_request(model: MarkovLogic, request: Request) -> Request:
    """The request about the variables of `ground(model)`."""
    queries, boxes = parse_all(model, request.queries), layout(model)

    def literals(atom: Atom, at: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
        variable, value = boxes[atom.predicate].literals(at)
        return np.asarray(variable), np.asarray(value)

    plain = {key: query for key, query in queries.items() if query.plain}
    events = ground_queries(model, [QueryPart(key, query.formula) for key, query in plain.items()])
    return replace(request, queries=events, formulas=_formulas(model, queries, plain, request, literals))


def free_request(model: MarkovLogic, request: Request) -> Request:
    """The request about the variables of `ground_free(model)`: free atoms, in the order of all atoms."""
    queries, boxes = parse_all(model, request.queries), layout(model)
    if not queries:
        return request
    codes = np.concatenate([np.zeros(0, np.int8), *(model.knowledge.codes(name).ravel() for name in boxes)])
    number = np.where(codes == UNKNOWN, np.cumsum(codes == UNKNOWN) - 1, -1)

    def literals(atom: Atom, at: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
        place, _ = boxes[atom.predicate].literals(at)
        return number[place], np.where(number[place] < 0, codes[place], 1)

    def is_free(query: LogicQuery) -> bool:
        places = [boxes[a.predicate].literal(numbers_of(a))[0] for a in atoms(query.formula)]
        return bool((number[places] >= 0).all())

    plain = {key: query for key, query in queries.items() if query.plain and is_free(query)}
    events = ground_queries(model, [QueryPart(key, query.formula) for key, query in plain.items()])
    events = [replace(event, variables=tuple(number[list(event.variables)].tolist())) for event in events]
    return replace(request, queries=events, formulas=_formulas(model, queries, plain, request, literals))


def _formulas(
    model: MarkovLogic, queries: Mapping[str, LogicQuery], plain: Mapping[str, Any], request: Request,
    literals: Literals,
) -> Formulas | None:  # fmt: skip
    """What is asked beside the events `plain`."""
    asked = {key: query for key, query in queries.items() if key not in plain}
    if not asked:
        return None
    made = lay_out(_renamings(model, request), asked, (), atoms_too=True)
    looks = [_Looks(literals) for _ in made.counted]
    counters = [_counter(query, look) for query, look in zip(made.counted, looks, strict=True)]
    variables = np.unique(np.concatenate([np.zeros(0, np.int64), *(look.variables for look in looks)]))
    for look in looks:
        look.settle(variables)

    def count(values: np.ndarray) -> np.ndarray:
        seen = np.stack([_some_at_a_time(one, values, width) for one, width in counters])
        return np.stack([seen[list(cell.places)].sum(axis=0) for cell in made.cells.values()])

    cells = list(made.cells.values())
    spoken = [np.unique(np.concatenate([looks[k].variables for k in cell.places])) for cell in cells]
    first = [cell.places[0] if cell.places else -1 for cell in cells]
    return Formulas(
        variables, count, np.array([cell.size for cell in cells], np.int64), tuple(made.cells),
        tuple(np.searchsorted(variables, some) for some in spoken), tuple(first.index(k) for k in made.series),
        tuple(made.derived.values()), tuple(queries), tuple(made.notices),
        cache(lambda column, value: made.claims[column].holds(model, value)),
    )  # fmt: skip


def _renamings(model: MarkovLogic, request: Request) -> RenamingSymmetries:
    """What formulas are averaged over, whatever group the ground model has."""
    if request.symmetries in (None, "none") or request.method == "standard" or is_group(request.symmetries):
        return trivial(model)
    return cast(RenamingSymmetries, find_symmetries(model, "renaming", None, request.time_limit))


def _counter(query: Query, look: _Looks) -> tuple[Callable[[np.ndarray], np.ndarray], int]:
    """How many tuples satisfy a query in states, and how many are looked at."""
    return listed_counter(query, look.truth, look.known) or (counter(query, look.truth), grid_size(query))


def _some_at_a_time(count: Callable[[np.ndarray], np.ndarray], values: np.ndarray, width: int) -> np.ndarray:
    step = max(1, AT_ONCE // max(width, 1))
    parts = [count(values[:, at : at + step]) for at in range(0, values.shape[1], step)]
    return np.concatenate(parts)


@dataclass
class _Looks:
    """Where a formula looks into the states of a ground model."""

    literals: Literals
    places: list[np.ndarray] = field(default_factory=list)  # of each atom: the variables, then their rows among all

    @property
    def variables(self) -> np.ndarray:
        found = np.unique(np.concatenate([np.zeros(0, np.int64), *(some.ravel() for some in self.places)]))
        return found[found >= 0]

    def settle(self, variables: np.ndarray) -> None:
        """From here on the states hold these variables only."""
        self.places = [np.where(some < 0, -1, np.searchsorted(variables, some)) for some in self.places]

    def known(self, atom: Atom, at: tuple[Any, ...]) -> np.ndarray:
        variable, value = self.literals(atom, at)
        return np.where(variable < 0, value, -1)

    def truth(self, atom: Atom, at: tuple[Any, ...]) -> Callable[[np.ndarray], np.ndarray]:
        variable, value = self.literals(atom, at)
        place, self.places = len(self.places), [*self.places, np.asarray(variable)]
        known, value = (np.asarray(variable) < 0)[..., None], np.asarray(value, np.uint8)[..., None]
        none_known = not known.any()

        def sees(states: np.ndarray) -> np.ndarray:
            if not len(states):
                return np.broadcast_to(value == 1, (*known.shape[:-1], states.shape[1]))
            found = states[self.places[place]] == value  # bytes with bytes: it is done after every sweep
            return found if none_known else np.where(known, value == 1, found)

        return sees
