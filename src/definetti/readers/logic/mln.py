"""Markov logic networks: read an .mln model and its .db evidence into a `MarkovLogic`.

The order of work: parse all files; collect sorts and predicates; infer the sorts of all terms; read the evidence; only
then are all constants known, and formulas and evidence get their numbers.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, cast

import numpy as np

from definetti.errors import ModelError, ParseError, UnknownName, suggestion
from definetti.model.checked_input import LARGEST_LOG
from definetti.model.logic.change import check_closed_blocks, check_size, new_constants, read_only
from definetti.model.logic.formulas import free_variables, with_body
from definetti.model.logic.normal_forms import split_weights
from definetti.model.logic.theory import Evidence, Formula, MarkovLogic, Not, Predicate, Sort, WeightedFormula
from definetti.readers.logic import dialects
from definetti.readers.logic.collecting import Draft, PathText, collect, plain, predicate_of, read_source
from definetti.readers.logic.db import Facts, mapping_source, read_facts
from definetti.readers.logic.fact_numbers import function_values, number_facts
from definetti.readers.logic.lowering import guarded, lower_all, lower_guards
from definetti.readers.logic.meaning import Annotated, Language, annotate
from definetti.readers.logic.raw import FormulaLine, Raw, Source
from definetti.readers.logic.terms import Relations, variables_of

EvidenceText = PathText | Iterable[PathText] | Mapping[str, bool | None] | Source


@dataclass(frozen=True)
class Reading:
    """How to read a model: the options of `read` that are about Markov logic."""

    domain: Mapping[str, int] | None = None
    open_world: Iterable[str] = ()
    closed_world: Iterable[str] = ()
    weights: str = "formula"
    dialect: str = "auto"
    default_weight: float | None = None

    def __post_init__(self) -> None:
        if self.weights not in ("formula", "alchemy"):
            raise ModelError(f"weights must be 'formula' or 'alchemy', not {self.weights!r}")
        if not isinstance(self.dialect, str):
            raise ModelError(f"the dialect is named by a text, got {self.dialect!r}")
        dialects.check(self.dialect)
        if self.domain is not None and not (isinstance(self.domain, Mapping) and _are_texts(self.domain)):
            raise ModelError(f"the domain is a mapping of sorts to sizes, as in {{'person': 100}}; got {self.domain!r}")
        for option in ("open_world", "closed_world"):
            named = getattr(self, option)
            named = (named,) if isinstance(named, str) else tuple(named) if isinstance(named, Iterable) else None
            if named is None or not _are_texts(named):
                raise ModelError(f"{option} names predicates, as in ['Smokes']; got {getattr(self, option)!r}")
            object.__setattr__(self, option, named)
        weight = self.default_weight
        number = isinstance(weight, int | float | np.number) and not isinstance(weight, bool)
        if weight is not None and not (number and abs(weight) < LARGEST_LOG):
            raise ModelError(f"the default weight must be a finite number, not {weight!r}")


def _are_texts(names: Iterable[object]) -> bool:
    return all(isinstance(name, str) for name in names)


def read_mln(path: PathText, evidence: EvidenceText | None = None, **options: Any) -> MarkovLogic:
    """Read a model.

    `evidence` is a .db file, several of them, or a mapping such as {"Smokes(Anna)": True}. `domain` gives sorts a size.
    Predicates in `closed_world` are false where the evidence is silent. `weights="alchemy"` splits each weight over the
    clauses of its formula; otherwise it counts once per grounding in which the whole formula is true. `dialect` is
    recognised unless it is named; `default_weight` is for formulas that have no weight.
    """
    file = Path(path)
    return _read(read_source(file), file, evidence, Reading(**options))


def read_mln_text(text: str, evidence: EvidenceText | None = None, **options: Any) -> MarkovLogic:
    """The same for a model given as text, which cannot include files; evidence may be text too."""
    if isinstance(evidence, str) and ("\n" in evidence or not evidence.rstrip().lower().endswith(".db")):
        evidence = Source("<evidence>", evidence)
    return _read(Source("<text>", text), None, evidence, Reading(**options))


def _read(source: Source, path: Path | None, evidence: EvidenceText | None, how: Reading) -> MarkovLogic:
    draft = Draft(dialect=dialects.recognised(source.text) if how.dialect == "auto" else how.dialect)
    collect(source, path, draft, ())
    _declare_closed(draft, how.dialect)
    if not draft.predicates and not draft.lines:
        raise ParseError("no predicate is declared; a model has at least one, as in Smokes(person)", path=source.path)
    closed = _worlds(draft.predicates, how.open_world, how.closed_world) | draft.closed - {*how.open_world}
    sources = _evidence_sources(evidence)
    facts, added = read_facts(sources, draft.predicates, draft.lists, draft.dialect == "pracmln")
    small = {sort: {name for name in names if not name[:1].isupper()} for sort, names in draft.lists.items() if names}
    language = Language(draft.predicates, small, draft.marked)
    annotated = [(line, _annotated(where, line, language)) for where, line in draft.lines]
    sized = {sort for _, found in annotated for sort in _computed_sorts(found)}
    sorts = _sorts(draft, [found for _, found in annotated], (facts, added), dict(how.domain or {}), sized)
    relations = Relations(sorts, draft.predicates)
    formulas: list[WeightedFormula] = []
    unweighted: list[int] = []
    for line, found in annotated:
        whole = list(_weighted(line, found, sorts, relations, _weight_of(line, how, len(unweighted))))
        if how.weights == "alchemy" and not found.raw.indivisible:
            sized |= {sort for formula in whole for sort in _written_out(formula)}
            whole = [part for formula in whole for part in split_weights(formula, sorts)]
        guards = lower_guards(found, sorts, relations)
        if line.weight is None and line.period is None and how.default_weight is None:
            unweighted += range(len(formulas), len(formulas) + len(whole))
        formulas += [_with_guards(formula, guards) for formula in whole]
    predicates, closed = _functions(draft.predicates, facts, sorts, closed)
    known, unknown = number_facts(facts, sorts, closed)
    known |= {
        name: Evidence(read_only(rows, np.int32), read_only(np.ones(len(rows)), np.int8))
        for name, rows in relations.rows.items()
        if len(rows)
    }
    model = MarkovLogic(
        sorts,
        predicates | relations.predicates,
        tuple(formulas),
        known,
        closed | relations.predicates.keys(),
        unknown,
        frozenset(sized),
        draft.dialect,
        tuple(unweighted),
        frozenset(relations.predicates),
    )
    check_closed_blocks(model)
    return model


def _annotated(source: Source, line: FormulaLine, language: Language) -> Annotated:
    """The formula of a line; an error says so where the line uses a feature of another program."""
    try:
        return annotate(source, line.formula, language)
    except ParseError as error:
        other = dialects.refused(source.lines[(error.line or 1) - 1])
        if other is None:
            raise
        raise source.error(other, error.line or 1, error.column or 1) from None


def _weight_of(line: FormulaLine, how: Reading, number: int) -> float | None:
    """The weight of a line; None is hard. A formula without weight has the default one, else a stand-in that no other
    formula has: its structure and symmetries are right, and inference refuses it."""
    if line.period is not None or line.weight is not None:
        return line.weight
    return how.default_weight if how.default_weight is not None else 1.0 + 0.01 * (number + 1) / math.pi


def _with_guards(formula: WeightedFormula, guards: Mapping[str, Formula]) -> WeightedFormula:
    """The formula with what gives its terms their values; a clause may have lost some of them."""
    if not guards:
        return formula
    made = with_body(formula, guarded(formula.body, guards, formula.weight is None))
    lost = [name for name in formula.free if name not in free_variables(made.body) and name not in guards]
    return replace(made, free=(*made.free, *(name for name in lost if name not in made.free)))


def _computed_sorts(found: Annotated) -> set[str]:
    """The sorts that arithmetic computes with: their relations would change with their constants."""
    terms = [term for term, _ in found.computed]
    terms += [term for raw in found.equalities if raw.kind not in ("equal", "unequal") for term in raw.parts]
    terms += [term for raw in found.equalities for term in raw.parts if term.parts]
    own = {sort for _, sort in found.computed}
    return own | {variable.binder.sort for variable in variables_of(terms) if variable.binder.sort}


def _functions(
    predicates: Mapping[str, Predicate], facts: Mapping[str, Facts], sorts: Mapping[str, Sort], closed: frozenset[str]
) -> tuple[dict[str, Predicate], frozenset[str]]:
    """A function whose values are all known is a closed predicate; else exactly one of its values is true."""
    out = dict(predicates)
    for predicate in predicates.values():
        if not predicate.function:
            continue
        places = math.prod(sorts[sort].size for sort in predicate.sorts[:-1])
        known = facts.get(predicate.name)
        if known is not None and function_values(known, sorts) == places:
            out[predicate.name] = replace(predicate, exclusive=())
            known.predicate = out[predicate.name]
            closed |= {predicate.name}
    return out, closed


def _written_out(formula: WeightedFormula) -> set[str]:
    """The sorts whose number of constants decides the clauses of a formula, and their weights."""
    if formula.weight is None:
        return set()
    return {sort for name, sort in formula.sorts.items() if name not in formula.free or name in formula.plus}


def _evidence_sources(evidence: EvidenceText | None) -> list[Source]:
    if evidence is None:
        return []
    if isinstance(evidence, Source):
        return [evidence]
    if isinstance(evidence, Mapping):
        return [mapping_source(cast("Mapping[str, bool | None]", evidence))]
    if not isinstance(evidence, str | PathLike | Iterable):
        raise ModelError(f"evidence is the path of a .db file, several, or a mapping of atoms; got {evidence!r}")
    paths = [evidence] if isinstance(evidence, str | PathLike) else list(evidence)
    if not all(isinstance(path, str | PathLike) for path in paths):
        raise ModelError("evidence is the path of a .db file, several, or a mapping of atoms; one of these is no path")
    return [read_source(cast("PathText", path)) for path in paths]


def _declare_closed(draft: Draft, dialect: str) -> None:
    """`*P(sort)` on a line of its own declares a predicate that is closed, unless P is declared elsewhere: then the
    line is a formula with both signs, without a weight. RockIt's sorts may begin with a capital: `P(Sort)` on a line of
    its own is a declaration, too, if P is used and not declared elsewhere."""
    rest: list[tuple[Source, FormulaLine]] = []
    used = Counter(str(atom.token) for _, line in draft.lines for atom in _atoms(line.formula))
    for source, line in draft.lines:
        raw = line.formula
        bare = raw.kind == "atom" and line.weight is None and line.period is None and not raw.grouped
        star = raw.starred if bare else None
        capital = bare and star is None and bool(raw.parts) and used[str(raw.token)] > 1  # RockIt's sorts
        declared = draft.predicates.get(str(raw.token))
        if star and declared is not None and tuple(term.text for term in raw.parts) == declared.sorts != ():
            draft.declare(str(raw.token), "predicate", source, raw.token)  # says where it was declared before
        if not (star or capital) or declared is not None or not plain(raw, capitals=True):
            rest.append((source, line))
            continue
        if star is None:
            draft.declare(str(raw.token), "predicate", source, raw.token)
            draft.predicates[str(raw.token)] = predicate_of(raw)
            continue
        if dialect in ("alchemy", "pracmln"):
            message = f"{raw.token} is not declared; *{raw.token}(…) as a declaration is Tuffy's: --dialect tuffy"
            raise source.error_at(message, star)
        draft.declare(str(raw.token), "predicate", source, raw.token)
        draft.predicates[str(raw.token)] = predicate_of(raw)
        draft.closed.add(str(raw.token))
        draft.dialect = "tuffy"
    draft.lines = rest


def _atoms(raw: Any) -> Iterable[Raw]:
    if raw.kind == "atom":
        yield raw
    elif raw.kind in ("and", "or", "not", "implies", "iff", "exist", "forall"):
        for part in raw.parts:
            yield from _atoms(part)


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


# --- constants --------------------------------------------------------------------------------------------------------


FEW = 32  # constants made by number for each one that is named
_DIGITS = re.compile(r"[0-9]+")


def natural(name: str) -> str:
    """Sorts Person2 before Person10: digits are padded to equal length."""
    return _DIGITS.sub(lambda digits: digits[0].zfill(20), name) + "\0" + name


def _sorts(
    draft: Draft,
    annotated: Sequence[Annotated],
    evidence: tuple[Mapping[str, Facts], Mapping[str, list[str]]],
    domain: dict[str, int],
    integers: Collection[str],
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
    facts, added = evidence
    for sort, more in added.items():
        mentioned[sort].update(more)
    for known in facts.values():
        words, arity = known.names, len(known.predicate.sorts)
        for place, sort in enumerate(known.predicate.sorts):
            if sort in mentioned:
                mentioned[sort].update(words[place::arity])
    return {sort: Sort(sort, _filled(sort, draft, mentioned, domain, sort in integers)) for sort in names}


def _filled(
    sort: str, draft: Draft, mentioned: Mapping[str, set[str]], domain: Mapping[str, int], integers: bool
) -> tuple[str, ...]:
    constants = draft.lists.get(sort) or sorted(mentioned[sort], key=natural)
    wanted = domain.get(sort)
    if wanted is not None:
        wanted = check_size(sort, wanted)
        if wanted < len(constants):
            raise ModelError(f"the domain asks for {wanted} constants of sort {sort}, but {len(constants)} are named")
        more = (next_integers if integers else new_constants)(sort, constants, wanted - len(constants))
        constants = [*constants, *more] if sort in draft.lists else _merged(constants, more)
    if not constants:
        cure = f"say how many there are (--domain {sort}=100), or list them ({sort} = {{A, B}})"
        raise ModelError(f"sort {sort} has no constants: {cure}")
    return tuple(constants)


def _merged(named: Sequence[str], more: list[str]) -> list[str]:
    """Both in natural order, which `more` is in; few names are put in their places, as keys of a million take long."""
    if FEW * len(named) > len(more):
        return sorted([*named, *more], key=natural)
    out, begin = [], 0
    for name in named:
        end = bisect_left(more, natural(name), begin, key=natural)
        out += [*more[begin:end], name]
        begin = end
    return out + more[begin:]


def next_integers(sort: str, taken: Iterable[str], number: int) -> list[str]:
    """More constants of a sort that arithmetic computes with: the integers after the largest one, or 0, 1, …"""
    first = 1 + max((int(name) for name in taken if name.isdecimal() and len(name) < 19), default=-1)
    return [str(first + k) for k in range(max(0, number))]


def _weighted(
    line: FormulaLine, found: Annotated, sorts: Mapping[str, Sort], relations: Relations, value: float | None
) -> Iterable[WeightedFormula]:
    """The formulas that a line stands for: several with `*`, one weight per constant with `+`. Infinite weights are
    hard: of minus infinity the negation."""
    negated = value == -math.inf
    value = None if value is None or math.isinf(value) else value
    free = found.free
    plus = tuple(binder for binder in free if binder.plus is not None and value is not None)
    weight: float | np.ndarray | None = value
    if plus and value is not None:
        weight = np.full(tuple(sorts[binder.sort or ""].size for binder in plus), value)
    number = found.source.text.count("\n", 0, found.raw.start) + 1
    for body in lower_all(found, sorts, relations):
        yield WeightedFormula(
            body=Not(body) if negated else body,
            weight=weight,
            sorts={binder.name: binder.sort or "" for binder in found.binders},
            free=tuple(binder.name for binder in free),
            plus=tuple(binder.name for binder in plus),
            source=found.source.text[found.raw.start : found.raw.stop],
            line=number,
        )
