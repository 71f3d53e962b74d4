"""Evidence files (.db): one atom a line, `Smokes(Anna)` true, `!Smokes(Bob)` false, `?Smokes(Eve)` unknown; values of
functions, `Anna = Mother(Bob)`; and constants of a sort, `person = {Anna, Bob}`.

A file may have a million lines, so a plain line costs one regular expression; anything else (quotes, comments,
mistakes) goes through a slower reader that knows columns. Constants stay names until the sorts are known; then
`number_facts` sorts the rows, refuses contradictions and completes `!` blocks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from definetti.errors import ParseError, suggestion
from definetti.model.logic.change import (
    FALSE,
    MOST_CONSTANTS,
    TRUE,
    UNKNOWN,
)
from definetti.model.logic.text import unescaped
from definetti.model.logic.theory import Predicate
from definetti.readers.logic.meaning import UnknownPlace
from definetti.readers.logic.raw import Source

LINES_AT_ONCE, FEW_LINES = 2000, 16  # of one form that are read together; fewer are not worth it
SIGN = {"": TRUE, "!": FALSE, "?": UNKNOWN}

_BARE = r"(?:[A-Za-z_][\w']*(?:-[\w']+)*|-?[0-9]+(?:\.[0-9]+)?)"
_QUOTED = r'"[^"\\]*"'  # without escapes


def _line_of(constant: str) -> re.Pattern[str]:
    space = r"[ \t]*"
    args = f"({constant}(?:{space},{space}{constant})*)"
    return re.compile(rf"{space}([!?]?){space}([A-Za-z_]\w*){space}\({space}{args}{space}\)\s*(?://.*)?", re.ASCII)


_PLAIN_LINE = _line_of(_BARE)
_QUOTED_LINE = _line_of(f"(?:{_BARE}|{_QUOTED})")
_CONSTANT = re.compile(f"{_BARE}|{_QUOTED}", re.ASCII)
_LISTED = re.compile(r"[^\W\d][\w']*(?:-[\w']+)*|-?\d+(?:\.\d+)?")
_WORD = re.compile(
    r'(?P<space>[ \t\r\f]+)|(?P<comment>//.*)|(?P<open>/\*)|(?P<quoted>"(?:\\.|[^"\\])*")'
    r"|(?P<name>[^\W\d][\w']*(?:-[\w']+)*)|(?P<number>-?\d+(?:\.\d+)?(?!\w))|(?P<mark>[!?(),.=])"
)
_VARIABLE = re.compile(r"[a-z][0-9]*'*")  # what people write for variables; a constant of this form is quoted or listed
_DOMAIN = re.compile(r"\s*([A-Za-z_][\w']*)\s*=\s*\{")
_ITEM = re.compile(
    r'(?P<space>[\s,]+)|(?P<comment>//.*|/\*.*?\*/)|(?P<open>/\*)|(?P<end>\})|(?P<quoted>"(?:\\.|[^"\\])*")'
    r'|(?P<word>(?:(?!//|/\*)[^\s,{}"])+)'
)


@dataclass
class Facts:
    """What the files say of one predicate, row by row. `args` holds the constants as written, joined by commas."""

    predicate: Predicate
    args: list[str] = field(default_factory=list)
    signs: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    odd: dict[int, list[str]] = field(default_factory=dict)  # rows that the plain reader could not split
    sources: list[tuple[int, Source]] = field(default_factory=list)  # (first row, file), ascending

    def place(self, row: int) -> tuple[Source, int]:
        """The file and line of a row."""
        source = next(source for first, source in reversed(self.sources) if first <= row)
        return source, self.lines[row]

    def error(
        self, message: str, row: int, argument: int | None = None, kind: type[ParseError] = ParseError
    ) -> ParseError:
        """An error that points at a row, or at one of its arguments."""
        source, line = self.place(row)
        atom = read_atom(source, line, source.lines[line - 1])
        column = atom.column if atom else 1
        if atom and argument is not None:
            column = atom.columns[argument]
        return source.error(message, line, column, kind)

    @cached_property
    def names(self) -> list[str]:
        """All constants, the arguments of a row side by side (asked for once all files are read)."""
        arity = len(self.predicate.sorts)
        if arity == 0 or not self.args:
            return []
        flat = ",".join(self.args)
        if " " in flat or "\t" in flat:
            flat = flat.replace(" ", "").replace("\t", "")
        names = flat.split(",")
        for row, constants in self.odd.items():
            names[row * arity : (row + 1) * arity] = constants
        return names


@dataclass(frozen=True)
class GroundAtom:
    """One line, with columns."""

    sign: str
    predicate: str
    column: int
    constants: list[str]
    columns: list[int]
    bare: list[bool]  # neither quoted nor a number
    function: bool = False  # a value of a function, which comes last


@dataclass(frozen=True)
class Words:
    """What the words of evidence files may mean, and the constants that these files list."""

    predicates: Mapping[str, Predicate]
    lists: dict[str, list[str]] = field(default_factory=dict)  # sorts with listed constants; files add to them
    added: dict[str, list[str]] = field(default_factory=dict)  # constants of other sorts that files name
    any_case: bool = False  # pracmln: every word is a constant


def read_facts(
    sources: list[Source],
    predicates: Mapping[str, Predicate],
    lists: dict[str, list[str]] | None = None,
    any_case: bool = False,
) -> tuple[dict[str, Facts], dict[str, list[str]]]:
    """All lines of all files, by predicate, and the constants that files add to sorts without a list."""
    facts: dict[str, Facts] = {}
    words = Words(predicates, {} if lists is None else lists, {}, any_case)
    for source in sources:
        for known in facts.values():
            known.sources.append((len(known.args), source))
        _read_file(source, words, facts)
    return facts, words.added


def _suspects(words: Words) -> re.Pattern[str]:
    """Arguments that look like variables, or like a declaration."""
    sorts = {sort for predicate in words.predicates.values() for sort in predicate.sorts}
    names = "|".join([_VARIABLE.pattern, *map(re.escape, sorted(sorts))])
    return re.compile(rf"[(,][ \t]*(?:{names})[ \t]*[,)]")


def _read_file(source: Source, words: Words, facts: dict[str, Facts]) -> None:
    predicates = words.predicates
    commas = {name: len(predicate.sorts) - 1 for name, predicate in predicates.items()}
    plain, lines, number, look = _PLAIN_LINE.fullmatch, source.lines, 0, 0
    suspect = None if words.any_case else _suspects(words)
    if suspect is not None and not suspect.search(source.text):
        suspect = None
    while number < len(lines):
        line = lines[number]
        number += 1
        match = plain(line)
        if match is not None and suspect is not None and suspect.search(line):
            match = None
        if match is not None:
            sign, name, args = match.groups()
            if name in facts and args.count(",") == commas[name]:
                known = facts[name]
                known.args.append(args)
                known.signs.append(SIGN[sign])
                known.lines.append(number)
                if suspect is None and number >= look:  # more lines of the same form, all at once
                    taken = _same_form(lines, number, sign, known)
                    look = number + taken + (1 if taken >= FEW_LINES else FEW_LINES)
                    number += taken
                continue
        elif '"' in line and (match := _QUOTED_LINE.fullmatch(line)) and match[2] in predicates:
            names = [word[1:-1] if word[0] == '"' else word for word in _CONSTANT.findall(match[3])]
            if len(names) - 1 == commas[match[2]]:
                _add_row(source, number, match[1], predicates[match[2]], names, facts)
                continue
        elif not line or line.isspace():
            continue
        elif line.lstrip().startswith("/*"):
            number = _skip_comment(source, number)
            continue
        elif "{" in line and _DOMAIN.match(line):
            number = _read_domain(source, number, words)
            continue
        atom = read_atom(source, number, line)
        if atom is not None:
            _add(source, number, atom, words, facts)


@cache
def _form(head: str, commas: int) -> re.Pattern[str]:
    """Lines `head` constants `)` without spaces, at most LINES_AT_ONCE of them."""
    args = _BARE + f"(?:,{_BARE}){{{commas}}}"
    return re.compile(rf"(?>(?:{re.escape(head)}{args}\)\n){{0,{LINES_AT_ONCE}}})", re.ASCII)


def _same_form(lines: list[str], number: int, sign: str, known: Facts) -> int:
    """Adds the lines from here on that are like the last one, with its sign and predicate; how many."""
    head = f"{sign}{known.predicate.name}("
    if not lines[number : number + 1] or not lines[number].startswith(head):
        return 0
    text = "\n".join(lines[number : number + LINES_AT_ONCE]) + "\n"
    found = _form(head, len(known.predicate.sorts) - 1).match(text)
    if found is None or not found.end():
        return 0
    args = text[len(head) : found.end() - 2].split(f")\n{head}")
    known.args += args
    known.signs += [SIGN[sign]] * len(args)
    known.lines += range(number + 1, number + 1 + len(args))
    return len(args)


def _read_domain(source: Source, first: int, words: Words) -> int:
    """`person = {Anna, Bob}`, which may go over lines: the number of its last line."""
    head = _DOMAIN.match(source.lines[first - 1])
    assert head is not None
    sort = head[1]
    known = {name for predicate in words.predicates.values() for name in predicate.sorts} | words.lists.keys()
    if sort not in known:
        message = f"no sort is called {sort}{suggestion(sort, known)}"
        raise source.error(message, first, head.start(1) + 1, UnknownPlace)
    items, last = _list_items(source, first, head.end(), words.any_case)
    names = [name for name, _, _ in items]
    if (dots := next((item for item in items if item[0] == "..."), None)) is not None:
        names = _counted(source, names, dots[1], dots[2])
    if sort in words.lists:
        there = set(words.lists[sort])
        words.lists[sort] += [name for name in dict.fromkeys(names) if name not in there]
    else:
        words.added.setdefault(sort, []).extend(names)
    return last


def _list_items(source: Source, first: int, at: int, any_case: bool) -> tuple[list[tuple[str, int, int]], int]:
    """(name, line, column) of what stands in a list from character `at` of a line on, comments left out; and the line
    on which the list ends."""
    items: list[tuple[str, int, int]] = []
    for number in range(first, len(source.lines) + 1):
        line = source.lines[number - 1]
        while at < len(line):
            match = _ITEM.match(line, at)
            if match is None:
                raise source.error(f"the character {line[at]!r} has no meaning in this list", number, at + 1)
            kind, text, at = match.lastgroup, match[0], match.end()
            if kind == "end":
                rest = line[at:]
                if rest.strip() and not rest.lstrip().startswith("//"):
                    raise source.error("an atom needs a line of its own, after the list", number, at + 1)
                return items, number
            if kind == "word" and text != "..." and not any_case and not _LISTED.fullmatch(text):
                raise source.error(f'{text} is no name for a constant; quote it: "{text}"', number, match.start() + 1)
            if kind == "open":
                raise source.error("a comment inside a list must end on its line", number, match.start() + 1)
            if kind in ("word", "quoted"):
                name = unescaped(text[1:-1]) if kind == "quoted" else text
                items.append((name, number, match.start() + 1))
        at = 0
    raise source.error("this list is never closed: } is missing", first, source.lines[first - 1].index("{") + 1)


def _counted(source: Source, names: list[str], line: int, column: int) -> list[str]:
    """The numbers of a range {1,...,20}."""
    if len(names) != 3 or names[1] != "..." or not (names[0].isdecimal() and names[2].isdecimal()):
        raise source.error("a range has the form {1,...,20}", line, column)
    if max(map(len, names)) > 18:
        raise source.error("the numbers of this range are too long", line, column)
    if not int(names[0]) <= int(names[2]) < int(names[0]) + MOST_CONSTANTS:
        raise source.error(f"a range may hold 1 to {MOST_CONSTANTS} constants", line, column)
    return [str(k) for k in range(int(names[0]), int(names[2]) + 1)]


def _skip_comment(source: Source, first: int) -> int:
    """The number of the line that closes the comment opened on line `first`."""
    start = source.lines[first - 1].index("/*") + 2
    for number in range(first, len(source.lines) + 1):
        line = source.lines[number - 1]
        end = line.find("*/", start)
        start = 0
        if end >= 0:
            rest = line[end + 2 :]
            if rest.strip() and not rest.lstrip().startswith("//"):
                raise source.error("an atom needs a line of its own, after the comment", number, end + 3)
            return number
    column = source.lines[first - 1].index("/*") + 1
    raise source.error("this comment is never closed: */ is missing", first, column)


def _add(source: Source, line: int, atom: GroundAtom, words: Words, facts: dict[str, Facts]) -> None:
    predicates = words.predicates
    predicate = predicates.get(atom.predicate)
    if predicate is None:
        message = f"no predicate is called {atom.predicate}{suggestion(atom.predicate, predicates)}"
        raise source.error(message, line, atom.column, UnknownPlace)
    if atom.function and not predicate.function:
        soft = _soft_value(atom.constants[-1])
        raise source.error(soft or f"{predicate.name} is a predicate and has no value", line, atom.column)
    if len(atom.constants) != len(predicate.sorts):
        wanted = f"{predicate.name}({', '.join(predicate.sorts)})"
        count = len(atom.constants)
        raise source.error(f"{wanted} has {len(predicate.sorts)} arguments, here are {count}", line, atom.column)
    for place, (name, sort) in enumerate(zip(atom.constants, predicate.sorts, strict=True)):
        odd = atom.bare[place] and (_VARIABLE.fullmatch(name) or name == sort)
        if odd and sort not in words.lists and not words.any_case and name not in words.added.get(sort, ()):
            message = f'evidence is about constants, and {name} looks like a variable; quote it: "{name}"'
            raise source.error(message, line, atom.columns[place])
    _add_row(source, line, atom.sign, predicate, atom.constants, facts)


def _add_row(
    source: Source, line: int, sign: str, predicate: Predicate, constants: list[str], facts: dict[str, Facts]
) -> None:
    known = facts.get(predicate.name)
    if known is None:
        known = facts[predicate.name] = Facts(predicate, sources=[(0, source)])
    known.odd[len(known.args)] = constants
    known.args.append("," * (len(constants) - 1))
    known.signs.append(SIGN[sign])
    known.lines.append(line)


def read_atom(source: Source, number: int, line: str) -> GroundAtom | None:
    """One line word by word; None if it holds no atom."""
    words = _words(source, number, line)
    if not words:
        return None
    end = ("end", "", len(line.rstrip()) + 1)
    at = 0

    def take(*kinds: str) -> tuple[str, str, int]:
        nonlocal at
        word = words[at] if at < len(words) else end
        if word[0] not in kinds:
            met = "the end of the line" if word[0] == "end" else repr(word[1])
            expected = " or ".join(_SPOKEN.get(kind, repr(kind)) for kind in kinds)
            raise source.error(f"expected {expected}, not {met}", number, word[2])
        at += 1
        return word

    _refuse_foreign(source, number, words)
    sign = take("!", "?")[1] if words[0][0] in ("!", "?") else ""
    value = None
    if not sign and len(words) > 2 and words[1][0] == "=":  # Anna = Mother(Bob)
        value = take("name", "number", "quoted")
        take("=")
    _, name, column = take("name")
    found: list[tuple[str, str, int]] = []
    if at < len(words) and take("(")[0] == "(" and not (words[at : at + 1] and words[at][0] == ")" and take(")")):
        while True:
            found.append(take("name", "number", "quoted"))
            if take(",", ")")[0] == ")":
                break
    if value is None and not sign and at < len(words) and words[at][0] == "=":  # Mother(Bob) = Anna
        take("=")
        value = take("name", "number", "quoted")
    if at < len(words):
        take("end")
    found += [] if value is None else [value]
    constants = [unescaped(text[1:-1]) if kind == "quoted" else text for kind, text, _ in found]
    bare = [kind == "name" for kind, _, _ in found]
    return GroundAtom(sign, name, column, constants, [place for _, _, place in found], bare, value is not None)


def _refuse_foreign(source: Source, number: int, words: list[tuple[str, str, int]]) -> None:
    """What other programs write into evidence files and this one does not know."""
    kinds = [kind for kind, _, _ in words]
    if kinds[0] == "number" and len(kinds) > 1 and kinds[1] in ("name", "!"):
        message = "soft evidence (0.6 P(A)) is not supported; an atom is true, false (!) or unknown (?)"
        raise source.error(message, number, words[0][2])
    if kinds[-2:] == [")", "number"]:
        raise source.error(_NO_VALUES, number, words[-1][2])


def _soft_value(value: str) -> str | None:
    """What to say of `P(A) = 0.5` and `P(A) = True`."""
    if value.lower() in ("true", "false"):
        return "truth is said by a sign: P(A) is true, !P(A) false, ?P(A) unknown"
    return _NO_VALUES if value.replace(".", "", 1).isdecimal() else None


_NO_VALUES = "values of atoms (soft evidence, continuous features) are not supported; an atom is true or false"
_SPOKEN = {"name": "a name", "number": "a number", "quoted": "a quoted name", "end": "the end of the line"}


def _words(source: Source, number: int, line: str) -> list[tuple[str, str, int]]:
    """(kind, text, column) of each word of a line, without spaces and comments."""
    words, at = [], 0
    if line.strip() == "---":
        message = "several databases in one file (---) are not supported; split the file and run once for each"
        raise source.error(message, number, line.index("-") + 1)
    while at < len(line):
        match = _WORD.match(line, at)
        if match is None:
            raise source.error(f"the character {line[at]!r} has no meaning here", number, at + 1)
        kind, text = match.lastgroup or "", match[0]
        if kind == "open":
            close = line.find("*/", match.end())
            if close < 0:
                raise source.error("a comment that starts behind an atom must end on its line", number, at + 1)
            at = close + 2
            continue
        if kind not in ("space", "comment"):
            words.append((text if kind == "mark" else kind, text, at + 1))
        at = match.end()
    return words


def mapping_source(evidence: Mapping[str, bool | None]) -> Source:
    """Evidence given as a mapping, as the file that says the same."""
    lines = []
    for atom, value in evidence.items():
        place = Source(Path("<evidence>"), str(atom))
        words = _words(place, 1, str(atom)) if "\n" not in str(atom) else []
        if not words or words[0][0] in ("!", "?"):
            raise place.error(f"{str(atom)!r} is no atom such as Smokes(Anna)", 1, 1)
        if value is not None and (isinstance(value, str) or value not in (True, False)):
            raise place.error(f"the evidence on {atom} is {value!r}; it must be True, False or None", 1, 1)
        lines.append(("?" if value is None else "" if value else "!") + str(atom))
    return Source("<evidence>", "\n".join(lines))
