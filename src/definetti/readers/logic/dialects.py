"""Dialects of the Markov logic language: which one a file is written in, and what of theirs is refused, by name.

Alchemy's language is the common ground. Tuffy and RockIt write `*P(x)` for a predicate that is false where the evidence
is silent. pracmln marks variables (`?x`), and there `v` binds tighter than `^` and a quantifier reaches over the next
formula only, so the same text can mean something else: the output says which dialect was read.
"""

from __future__ import annotations

import re

from definetti.errors import ModelError, suggestion

DIALECTS = ("auto", "alchemy", "tuffy", "pracmln")

_NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_PRACMLN = re.compile(r"[(,+\s]\?[A-Za-z]|=/=|\blogx\s*\(|^\s*#(?:fixweight|fixunitclause|unique|fuzzy)", re.MULTILINE)

# ruff: noqa: E501  a table: one feature a line
#: What other programs know and this one does not: how a line that cannot be read looks, and its name.
REFUSED: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"^\s*[A-Za-z]\w*\s*:(?![=-])"), "weights of a variable (RockIt's `conf: F`, Tuffy's `w: F`) are not supported; give each formula its number"),
    (re.compile(r":="), "RockIt's := (formulas over computed sets) is not supported; state the atoms as evidence"),
    (re.compile(r":-"), "Datalog rules (:-) are not supported; write the formula, as in Body(x) => Head(x)."),
    (re.compile(r"^\s*(?:[-+\d.eE]+\s+)?\|[^|]*\|"), "cardinalities (|x| P(x) <= 1) are not supported; use `!` arguments for exactly one"),
    (re.compile(r"(?<![\w'])[A-Za-z]\w*\|[A-Za-z]\w*\s*\("), "groups of predicates (P|Q(x)) are not supported; write a formula for each predicate"),
    (re.compile(r"^\s*[PR]\s*\(.*\)\s*=\s*[\d.]+\s*$"), "constraints on probabilities, P(f) = p, are not supported; give the formula a weight"),
    (re.compile(r"\)\s*\*\s*[-(\w]|^\s*\w[\w-]*\s*\([^)]*\)\s*=\s*[-+]?\d*\.\d+\s*$"), "continuous features (hybrid networks, formulas times a number) are not supported"),
    (re.compile(r"[)\].]\s*:\s*[-+]?[\d.]+\s*$"), "utilities (decision networks, F : 5) are not supported"),
    (re.compile(r"\)\s*,\s*\["), "conditions in brackets (Tuffy's P(x), [x != y] => Q(x)) are not supported; write P(x) ^ x != y => Q(x)"),
    (re.compile(r"^\s*\*{0,2}\s*[A-Za-z]\w*\s*\(\s*[A-Za-z]\w*\s+[A-Za-z]\w*\s*!?\s*[,)]"), "names of arguments (Tuffy's Wrote(person who)) are not supported; leave them out: Wrote(person)"),
    (re.compile(r"^\s*\*\*"), "Tuffy's ** is not supported; write *P(sort), false where the evidence is silent"),
    (re.compile(r"^\s*@"), "Tuffy's marks of rules and predicates (@) are not supported; take them away"),
    (re.compile(r"^\s*\[\+?Label\+?\]"), "labels of formulas (Tuffy's [Label]) are not supported; take them away"),
    (re.compile(r"\bcount\s*\("), "count constraints (count(P(x) | x) = 2) are not supported; use `!` arguments for exactly one"),
    (re.compile(r"<>"), "x <> y is not supported; write x != y"),
    (re.compile(r"^\s*[A-Za-z]\w*\s*=\s*\d+\s*$"), "a sort's size is no line of a model; give it by --domain, or list the constants, as in p = {1,...,5}"),
    (re.compile(r"[(,]\s*\["), "computed arguments (RockIt's P([t+1])) are not supported; successors are written t+1, without brackets"),
    (re.compile(r"\$"), "predicates over formulas ($) are not supported"),
)  # fmt: skip

DIRECTIVES = {
    "fixweight": None,  # for learning alone
    "fixunitclause": None,
    "unique": "#unique changes which formulas a template stands for: write them out",
    "fuzzy": "fuzzy predicates are not supported: atoms are true or false",
}


def check(dialect: str) -> None:
    if dialect not in DIALECTS:
        raise ModelError(
            f"dialect must be one of {', '.join(DIALECTS)}, not {dialect!r}{suggestion(dialect, DIALECTS)}"
        )


def recognised(text: str) -> str:
    """The dialect by the words of a text: pracmln, else alchemy (Tuffy's is recognised by its declarations, later)."""
    return "pracmln" if _PRACMLN.search(_NOISE.sub(" ", text)) else "alchemy"


def refused(line: str) -> str | None:
    """The name of what other programs know and a line uses that cannot be read."""
    plain = re.sub(r'//.*|"(?:\\.|[^"\\\n])*"', '""', line)
    return next((message for pattern, message in REFUSED if pattern.search(plain)), None)
