"""Markov logic networks: read an .mln model and its .db evidence into a `MarkovLogic`.

The order of work: parse all files; collect sorts and predicates; infer the sorts of all terms; read the evidence; only
then are all constants known, and formulas and evidence get their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import cast

import numpy as np
from lark import Token

from definetti.errors import ModelError, ParseError, UnknownName, suggestion
from definetti.files import read_text
from definetti.model.logic.change import MOST_CONSTANTS, check_closed_blocks, check_size, new_constants
from definetti.model.logic.normal_forms import split_weights
from definetti.model.logic.theory import MarkovLogic, Predicate, Sort, WeightedFormula
from definetti.readers.logic.db import Facts, mapping_source, number_facts, read_facts
from definetti.readers.logic.meaning import Annotated, annotate, lower_all
from definetti.readers.logic.syntax import FormulaLine, Include, Misplaced, SortLine, Source, constant_name, parse

PathText = str | PathLike[str]
EvidenceText = PathText | Iterable[PathText] | Mapping[str, bool | None] | Source


@dataclass
class Draft:
    """A model while it is read."""

    lists: dict[str, list[str]] = field(default_factory=dict)  # of sorts that are given by a list
    predicates: dict[str, Predicate] = field(default_factory=dict)
    places: dict[str, tuple[Source, Token]] = field(default_factory=dict)  # of declarations
    lines: list[tuple[Source, FormulaLine]] = field(default_factory=list)

    def declare(self, name: str, what: str, source: Source, token: Token) -> None:
        key = f"{what} {name}"
        if key in self.places:
            before, place = self.places[key]
            hint = "; a formula needs a weight in front or a period at its end" if what == "predicate" else ""
            message = f"{what} {name} is already declared in {before.path}, line {place.line}{hint}"
            raise source.error_at(message, token)
        self.places[key] = (source, token)


def read_mln(
    path: PathText,
    evidence: EvidenceText | None = None,
    *,
    domain: Mapping[str, int] | None = None,
    open_world: Iterable[str] = (),
    closed_world: Iterable[str] = (),
    weights: str = "formula",
) -> MarkovLogic:
    """Read a model.

    `evidence` is a .db file, several of them, or a mapping such as {"Smokes(Anna)": True}. `domain` gives sorts a size.
    Predicates in `closed_world` are false where the evidence is silent. `weights="alchemy"` splits each weight over the
    clauses of its formula; otherwise it counts once per grounding in which the whole formula is true.
    """
    file = Path(path)
    return _read(read_source(file), file, evidence, domain, (open_world, closed_world), weights)


def read_mln_text(
    text: str,
    evidence: EvidenceText | None = None,
    *,
    domain: Mapping[str, int] | None = None,
    open_world: Iterable[str] = (),
    closed_world: Iterable[str] = (),
    weights: str = "formula",
) -> MarkovLogic:
    """The same for a model given as text, which cannot include files; evidence may be text too."""
    if isinstance(evidence, str) and ("\n" in evidence or not evidence.rstrip().lower().endswith(".db")):
        evidence = Source("<evidence>", evidence)
    return _read(Source("<text>", text), None, evidence, domain, (open_world, closed_world), weights)


def _read(
    source: Source,
    path: Path | None,
    evidence: EvidenceText | None,
    domain: Mapping[str, int] | None,
    worlds: tuple[Iterable[str], Iterable[str]],
    weights: str,
) -> MarkovLogic:
    if weights not in ("formula", "alchemy"):
        raise ModelError(f"weights must be 'formula' or 'alchemy', not {weights!r}")
    draft = Draft()
    _collect(source, path, draft, ())
    if not draft.predicates and not draft.lines:
        raise ParseError("no predicate is declared; a model has at least one, as in Smokes(person)", path=source.path)
    closed = _worlds(draft.predicates, *worlds)
    annotated = [(line, annotate(where, line.formula, draft.predicates)) for where, line in draft.lines]
    facts = read_facts(_evidence_sources(evidence), draft.predicates)
    sorts = _sorts(draft, [found for _, found in annotated], facts, dict(domain or {}))
    formulas = [formula for line, found in annotated for formula in _weighted(line, found, sorts)]
    sized: frozenset[str] = frozenset()
    if weights == "alchemy":
        sized = frozenset(sort for formula in formulas for sort in _written_out(formula))
        formulas = [part for formula in formulas for part in split_weights(formula, sorts)]
    known, unknown = number_facts(facts, sorts, closed)
    model = MarkovLogic(sorts, draft.predicates, tuple(formulas), known, closed, unknown, sized)
    check_closed_blocks(model)
    return model


def _written_out(formula: WeightedFormula) -> set[str]:
    """The sorts whose number of constants decides the clauses of a formula, and their weights."""
    if formula.weight is None:
        return set()
    return {sort for name, sort in formula.sorts.items() if name not in formula.free or name in formula.plus}


def read_source(path: PathText) -> Source:
    """A text file, with errors that name it."""
    return Source(Path(path), read_text(path))


def _evidence_sources(evidence: EvidenceText | None) -> list[Source]:
    if evidence is None:
        return []
    if isinstance(evidence, Source):
        return [evidence]
    if isinstance(evidence, Mapping):
        return [mapping_source(cast("Mapping[str, bool | None]", evidence))]
    paths = [evidence] if isinstance(evidence, str | PathLike) else evidence
    return [read_source(cast("PathText", path)) for path in paths]


def _worlds(
    predicates: Mapping[str, Predicate], open_world: Iterable[str], closed_world: Iterable[str]
) -> frozenset[str]:
    opened = [open_world] if isinstance(open_world, str) else list(open_world)
    closed = [closed_world] if isinstance(closed_world, str) else list(closed_world)
    for name in [*opened, *closed]:
        if name not in predicates:
            raise UnknownName(f"no predicate is called {name}{suggestion(name, predicates)}")
    both = sorted(set(opened) & set(closed))
    if both:
        raise ModelError(f"{both[0]} cannot be open and closed at once; name it in one of the two lists")
    return frozenset(closed)


# --- files and declarations -------------------------------------------------------------------------------------------


def _collect(source: Source, path: Path | None, draft: Draft, chain: tuple[Path, ...]) -> None:
    """All statements of a file and of the files it includes. The first of `chain` is the model's own file."""
    here = path.resolve() if path else None
    chain = (*chain, here) if here else chain
    for statement in parse(source):
        if isinstance(statement, Include):
            target = _included(source, statement, chain)
            _collect(read_source(target), target, draft, chain)
        elif isinstance(statement, SortLine):
            name = str(statement.token)
            draft.declare(name, "sort", source, statement.token)
            draft.lists[name] = _listed(source, statement)
        else:
            _collect_line(source, statement, draft)


def _included(source: Source, include: Include, chain: tuple[Path, ...]) -> Path:
    """The file to include: inside the model's folder, links followed, and not one that is being read."""
    name = include.name
    if not chain:
        raise source.error_at("a model given as text cannot include files", include.token)
    odd = ".." in re.split(r"[/\\]", name) or "\0" in name or "\\" in name
    if odd or not name or PurePosixPath(name).is_absolute() or PureWindowsPath(name).drive:
        message = f"{name!r} leaves the model's folder; only files inside it can be included"
        raise source.error_at(message, include.token)
    root = chain[0].parent
    try:
        target = (chain[-1].parent / name).resolve()
    except (OSError, RuntimeError, ValueError):
        raise source.error_at(f"{name!r} cannot be followed", include.token) from None
    if not target.is_relative_to(root):
        raise source.error_at(f"{name!r} is a link out of the model's folder", include.token)
    if target in chain:
        raise source.error_at(f"{name!r} includes itself", include.token)
    if not target.is_file():
        raise source.error_at(f"there is no file {name!r} in the model's folder", include.token)
    return target


def _listed(source: Source, line: SortLine) -> list[str]:
    """The constants of a list, or of a range {1,...,20}."""
    if any(item.type == "ELLIPSIS" for item in line.items):
        return _range(source, line.items)
    names: list[str] = []
    seen: set[str] = set()
    for item in line.items:
        try:
            name = constant_name(item)
        except Misplaced as error:
            raise source.error_at(error.message, error.token) from None
        if name in seen:
            raise source.error_at(f"{name} is listed twice", item)
        seen.add(name)
        names.append(name)
    if not names:
        raise source.error_at(f"sort {line.token} has no constants; name some, or leave the line out", line.token)
    return names


def _range(source: Source, items: Sequence[Token]) -> list[str]:
    shape = [item.type for item in items]
    if shape != ["NUMBER", "ELLIPSIS", "NUMBER"] or not all(str(item).isdecimal() for item in (items[0], items[2])):
        raise source.error_at("a range has the form {1,...,20}", next(i for i in items if i.type == "ELLIPSIS"))
    if max(len(items[0]), len(items[2])) > 18:
        raise source.error_at("the numbers of this range are too long", items[0])
    first, last = int(items[0]), int(items[2])
    if last < first:
        raise source.error_at(f"the range ends at {last}, before it starts at {first}", items[2])
    if last - first >= MOST_CONSTANTS:
        raise source.error_at(f"a range may hold {MOST_CONSTANTS} constants", items[2])
    return [str(number) for number in range(first, last + 1)]


def _collect_line(source: Source, line: FormulaLine, draft: Draft) -> None:
    formula = line.formula
    if line.weight is not None and line.period is not None:
        message = "a weight and a period together: take the weight away for a hard formula, the period for a soft one"
        raise source.error_at(message, line.period)
    if line.weight is not None or line.period is not None:
        draft.lines.append((source, line))
        return
    plain = formula.kind == "atom" and not formula.grouped and formula.starred is None
    if not plain or any(term.constant or term.plus for term in formula.parts):
        start = source.text.rfind("\n", 0, formula.start) + 1
        number, column = source.text.count("\n", 0, formula.start) + 1, formula.start - start + 1
        message = "a formula needs a weight in front, or a period at its end if it is hard"
        if plain and any(term.constant for term in formula.parts):
            message += "; to declare a predicate, name sorts: they start with a lower-case letter"
        raise source.error(message, number, column)
    name = str(formula.token)
    draft.declare(name, "predicate", source, formula.token)
    exclusive = tuple(place for place, term in enumerate(formula.parts) if term.bang is not None)
    draft.predicates[name] = Predicate(name, tuple(term.text for term in formula.parts), exclusive)


# --- constants --------------------------------------------------------------------------------------------------------


_DIGITS = re.compile(r"[0-9]+")


def natural(name: str) -> str:
    """Sorts Person2 before Person10: digits are padded to equal length."""
    return _DIGITS.sub(lambda digits: digits[0].zfill(20), name) + "\0" + name


def _sorts(
    draft: Draft, annotated: Sequence[Annotated], facts: Mapping[str, Facts], domain: dict[str, int]
) -> dict[str, Sort]:
    """Every sort with its constants: its list, or what formulas and evidence name; filled up to the size asked for."""
    used = dict.fromkeys(sort for predicate in draft.predicates.values() for sort in predicate.sorts)
    names = dict.fromkeys([*draft.lists, *used])
    for sort in domain:
        if sort not in names:
            raise UnknownName(f"the domain names the sort {sort}{suggestion(sort, names)}")
    mentioned: dict[str, set[str]] = {sort: set() for sort in names if sort not in draft.lists}
    for found in annotated:
        for term in found.constants:
            if term.sort in mentioned:
                mentioned[term.sort].add(term.text)
    for known in facts.values():
        words, arity = known.names, len(known.predicate.sorts)
        for place, sort in enumerate(known.predicate.sorts):
            if sort in mentioned:
                mentioned[sort].update(words[place::arity])
    return {sort: Sort(sort, _filled(sort, draft, mentioned, domain)) for sort in names}


def _filled(sort: str, draft: Draft, mentioned: Mapping[str, set[str]], domain: Mapping[str, int]) -> tuple[str, ...]:
    constants = draft.lists.get(sort) or sorted(mentioned[sort], key=natural)
    wanted = domain.get(sort)
    if wanted is not None:
        wanted = check_size(sort, wanted)
        if wanted < len(constants):
            raise ModelError(f"the domain asks for {wanted} constants of sort {sort}, but {len(constants)} are named")
        more = new_constants(sort, constants, wanted - len(constants))
        constants = [*constants, *more] if sort in draft.lists else sorted([*constants, *more], key=natural)
    if not constants:
        cure = f"say how many there are (--domain {sort}=100), or list them ({sort} = {{A, B}})"
        raise ModelError(f"sort {sort} has no constants: {cure}")
    return tuple(constants)


def _weighted(line: FormulaLine, found: Annotated, sorts: Mapping[str, Sort]) -> Iterable[WeightedFormula]:
    """The formulas that a line stands for: several with `*`, one weight per constant with `+`."""
    free = found.free
    plus = tuple(binder for binder in free if binder.plus is not None and line.weight is not None)
    weight: float | np.ndarray | None = line.weight
    if plus and line.weight is not None:
        weight = np.full(tuple(sorts[binder.sort or ""].size for binder in plus), line.weight)
    number = found.source.text.count("\n", 0, found.raw.start) + 1
    for body in lower_all(found, sorts):
        yield WeightedFormula(
            body=body,
            weight=weight,
            sorts={binder.name: binder.sort or "" for binder in found.binders},
            free=tuple(binder.name for binder in free),
            plus=tuple(binder.name for binder in plus),
            source=found.source.text[found.raw.start : found.raw.stop],
            line=number,
        )
