"""The lines of a .mln file sorted into declarations, formulas, functions and included files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path, PurePosixPath, PureWindowsPath

from lark import Token

from definetti.files import read_text
from definetti.model.logic.change import MOST_CONSTANTS
from definetti.model.logic.theory import Predicate
from definetti.readers.logic import dialects
from definetti.readers.logic.raw import Directive, FormulaLine, FunctionLine, Include, Misplaced, Raw, SortLine, Source
from definetti.readers.logic.syntax import constant_name, parse

PathText = str | PathLike[str]


@dataclass
class Draft:
    """A model while it is read."""

    lists: dict[str, list[str]] = field(default_factory=dict)  # of sorts that are given by a list
    predicates: dict[str, Predicate] = field(default_factory=dict)
    places: dict[str, tuple[Source, Token]] = field(default_factory=dict)  # of declarations
    lines: list[tuple[Source, FormulaLine]] = field(default_factory=list)
    dialect: str = "alchemy"
    closed: set[str] = field(default_factory=set)  # declared with *, as Tuffy does
    marked: bool = False  # `?` marks the variables

    def declare(self, name: str, what: str, source: Source, token: Token) -> None:
        key = f"{what} {name}"
        if key in self.places:
            before, place = self.places[key]
            hint = "; a formula needs a weight in front or a period at its end" if what == "predicate" else ""
            message = f"{what} {name} is already declared in {before.path}, line {place.line}{hint}"
            raise source.error_at(message, token)
        self.places[key] = (source, token)


def read_source(path: PathText) -> Source:
    """A text file, with errors that name it."""
    return Source(Path(path), read_text(path))


def plain(raw: Raw, capitals: bool = False) -> bool:
    """Whether an atom could be a declaration: words with a small first letter, or with any."""
    return not any(
        (term.constant and not (capitals and term.token.type == "NAME"))
        or term.plus
        or term.function
        or term.token.type == "QUERY_NAME"
        for term in raw.parts
    )


def predicate_of(raw: Raw) -> Predicate:
    exclusive = tuple(place for place, term in enumerate(raw.parts) if term.bang is not None)
    return Predicate(str(raw.token), tuple(term.text for term in raw.parts), exclusive)


def collect(source: Source, path: Path | None, draft: Draft, chain: tuple[Path, ...]) -> None:
    """All statements of a file and of the files it includes. The first of `chain` is the model's own file."""
    here = path.resolve() if path else None
    chain = (*chain, here) if here else chain
    draft.marked = draft.marked or (draft.dialect == "pracmln" and bool(re.search(r"[(,+\s]\?[A-Za-z]", source.text)))
    for statement in parse(source, "file", draft.dialect):
        if isinstance(statement, Include):
            target = _included(source, statement, chain)
            collect(read_source(target), target, draft, chain)
        elif isinstance(statement, SortLine):
            name = str(statement.token)
            draft.declare(name, "sort", source, statement.token)
            draft.lists[name] = _listed(source, statement)
        elif isinstance(statement, FunctionLine):
            _collect_function(source, statement, draft)
        elif isinstance(statement, Directive):
            _check_directive(source, statement)
        else:
            if draft.marked:
                _check_strength(source, statement.formula)
            _collect_line(source, statement, draft)


def _check_strength(source: Source, raw: Raw) -> None:
    """pracmln's versions differ in whether ^ or v binds tighter where `?` marks the variables: brackets must say."""
    if raw.kind not in ("and", "or", "not", "implies", "iff", "exist", "forall"):
        return
    for part in raw.parts:
        if {raw.kind, part.kind} == {"and", "or"} and not part.grouped:
            message = "versions of pracmln differ in whether ^ or v binds tighter: put brackets around one of them"
            raise source.error_at(message, part.token)
        _check_strength(source, part)


def _collect_function(source: Source, line: FunctionLine, draft: Draft) -> None:
    """`person Mother(person)`: a predicate with the value as its last argument."""
    name = str(line.token)
    if str(line.sort).lower() in ("inf", "infinity", "nan"):
        message = "a weight is a finite number: write a hard formula, with a period at its end"
        raise source.error_at(message, line.token)
    draft.declare(name, "predicate", source, line.token)
    sorts = (*map(str, line.arguments), str(line.sort))
    draft.predicates[name] = Predicate(name, sorts, (len(sorts) - 1,), function=True)


def _check_directive(source: Source, directive: Directive) -> None:
    """pracmln's directives: those that only learning reads are skipped."""
    word = re.match(r"#(\w+)", str(directive.token))
    name = word[1] if word else ""
    if name not in dialects.DIRECTIVES:
        raise source.error_at(f'unknown directive #{name}; #include "file" is one', directive.token)
    if (message := dialects.DIRECTIVES[name]) is not None:
        raise source.error_at(message, directive.token)


def _included(source: Source, include: Include, chain: tuple[Path, ...]) -> Path:
    """The file to include: inside the model's folder, links followed, and not one that is being read."""
    name = include.name
    if not chain:
        raise source.error_at("a model given as text cannot include files", include.token)
    if re.search(r"\.(?:c|cc|cpp|cxx|h|hpp)$", name, re.IGNORECASE):
        message = f"linked-in functions and predicates ({name!r}) are not supported; state their values as evidence"
        raise source.error_at(message, include.token)
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
    name = str(formula.token)
    unmarked = formula.kind == "atom" and not formula.grouped and formula.starred is None and plain(formula)
    if line.weight is not None or line.period is not None or not unmarked or _is_formula(formula, draft):
        if line.weight is None and line.period is None and unmarked and any(term.bang for term in formula.parts):
            draft.declare(name, "predicate", source, formula.token)
        draft.lines.append((source, line))
        return
    draft.declare(name, "predicate", source, formula.token)
    draft.predicates[name] = predicate_of(formula)


def _is_formula(atom: Raw, draft: Draft) -> bool:
    """Whether an atom without a weight is a formula: its predicate is declared, and these are not its sorts."""
    declared = draft.predicates.get(str(atom.token))
    return declared is not None and tuple(term.text for term in atom.parts) != declared.sorts
