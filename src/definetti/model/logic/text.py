"""Markov logic as text: names of atoms, formulas, whole models and their evidence, in the language that is read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product

import numpy as np

from definetti.errors import UnknownName, suggestion
from definetti.model.logic.formulas import atoms, substitute
from definetti.model.logic.theory import (
    And,
    Atom,
    Constant,
    Equal,
    Exist,
    Forall,
    Formula,
    Iff,
    Implies,
    MarkovLogic,
    Not,
    Or,
    Predicate,
    Sort,
    Term,
    Truth,
    Variable,
    WeightedFormula,
)

PLAIN = re.compile(r"[^\W\d_]\w*(-\w+)*|[0-9]+")
KEYWORDS = {"exist", "exists", "forall"}  # in any case
ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def quote(name: str) -> str:
    """A constant as it is written: bare where it reads as a constant, in quotes elsewhere."""
    if PLAIN.fullmatch(name) and (name[0].isupper() or name.isdecimal()) and name.lower() not in KEYWORDS:
        return name
    return '"' + "".join(ESCAPES.get(character, character) for character in name) + '"'


def unescaped(text: str) -> str:
    """The name that stands between the quotes."""
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t", "r": "\r"}.get(match[1], match[1]), text)


def atom_name(predicate: str, constants: Iterable[str]) -> str:
    """`Friends(Anna,Bob)`: no spaces, quotes where needed; a predicate without arguments is its bare name."""
    words = ",".join(map(quote, constants))
    return f"{predicate}({words})" if words else predicate


def block_name(predicate: Predicate, constants: Sequence[str]) -> str:
    """`Topic(P1,!)`: the atoms of a block, of which exactly one is true. What stands in the `!` places is not read."""
    words = ["!" if k in predicate.exclusive else quote(name) for k, name in enumerate(constants)]
    return f"{predicate.name}({','.join(words)})"


def format_atom(atom: Atom, sorts: Mapping[str, Sort]) -> str:
    words = ",".join(_term(term, sorts) for term in atom.args)
    return f"{atom.predicate}({words})" if words else atom.predicate


def _term(term: Term, sorts: Mapping[str, Sort]) -> str:
    return quote(sorts[term.sort].constants[term.index]) if isinstance(term, Constant) else term.name


# --- formulas: a part gets brackets unless it binds tighter than its place asks ---------------------------------------

IFF, IMPLIES, OR, AND, NOT, ATOM = range(1, 7)


def format_formula(formula: Formula, sorts: Mapping[str, Sort], place: int = 0, plus: Sequence[str] = ()) -> str:
    def inside(part: Formula, at: int) -> str:
        return format_formula(part, sorts, at, plus)

    match formula:
        case Truth(value):
            return "TRUE" if value else "FALSE"
        case Atom(predicate, args):
            words = ",".join("+" * (_term(t, sorts) in plus) + _term(t, sorts) for t in args)
            return f"{predicate}({words})" if words else predicate
        case Equal(left, right):
            return _bracket(f"{_term(left, sorts)} = {_term(right, sorts)}", ATOM, place)
        case Not(Equal(left, right)):
            return _bracket(f"{_term(left, sorts)} != {_term(right, sorts)}", ATOM, place)
        case Not(part):
            return _bracket("!" + inside(part, NOT), NOT, place)
        case And(()) | Or(()):
            return "TRUE" if isinstance(formula, And) else "FALSE"
        case And((part,)) | Or((part,)):
            return inside(part, place)
        case And(parts):
            return _bracket(" ^ ".join(inside(part, AND + 1) for part in parts), AND, place)
        case Or(parts):
            return _bracket(" v ".join(inside(part, OR + 1) for part in parts), OR, place)
        case Implies(left, right):
            return _bracket(f"{inside(left, IMPLIES + 1)} => {inside(right, IMPLIES)}", IMPLIES, place)
        case Iff(left, right):
            return _bracket(f"{inside(left, IFF)} <=> {inside(right, IFF + 1)}", IFF, place)
        case Exist(variables, body) | Forall(variables, body):
            word = "EXIST" if isinstance(formula, Exist) else "FORALL"
            return _bracket(f"{word} {','.join(variables)} {inside(body, 0)}", 0, place)


def _bracket(text: str, strength: int, place: int) -> str:
    return f"({text})" if strength < place else text


# --- models -----------------------------------------------------------------------------------------------------------


def format_mln(model: MarkovLogic) -> str:
    """The model as a file that reads back as the same model (the evidence is apart: `format_db`)."""
    lines = [f"{sort.name} = {{{', '.join(map(quote, sort.constants))}}}" for sort in model.sorts.values()]
    lines += [format_predicate(predicate) for predicate in model.predicates.values()]
    for formula in model.formulas:
        lines += _formula_lines(formula, model.sorts)
    return "\n".join(lines) + "\n"


def format_predicate(predicate: Predicate) -> str:
    words = [sort + "!" * (place in predicate.exclusive) for place, sort in enumerate(predicate.sorts)]
    return f"{predicate.name}({', '.join(words)})" if words else predicate.name


def format_weighted(formula: WeightedFormula, sorts: Mapping[str, Sort]) -> str:
    """One line; of an array of different weights only the first is shown."""
    text = format_formula(formula.body, sorts, 0, formula.plus)
    return f"{text}." if formula.weight is None else f"{float(np.ravel(formula.weight)[0])!r} {text}"


def _formula_lines(formula: WeightedFormula, sorts: Mapping[str, Sort]) -> list[str]:
    """One line; several where weights differ (a line has one number) or where a variable stands in equalities alone:
    its sort could not be read back, so its constants are spelled out."""
    weights = np.asarray(0.0 if formula.weight is None else formula.weight)
    in_atoms = {term for atom in atoms(formula.body) for term in atom.args}
    spelled = [name for name in formula.free if Variable(name) not in in_atoms]
    if not spelled and (weights == weights.flat[0]).all():
        return [format_weighted(formula, sorts)]
    spelled = [*formula.plus, *(name for name in spelled if name not in formula.plus)]
    lines = []
    for index in product(*(range(sorts[formula.sorts[name]].size) for name in spelled)):
        chosen = {n: Constant(formula.sorts[n], i) for n, i in zip(spelled, index, strict=True)}
        text = format_formula(substitute(formula.body, chosen), sorts)
        weight = float(weights[index[: len(formula.plus)]])
        lines.append(f"{text}." if formula.weight is None else f"{weight!r} {text}")
    return lines


def format_db(model: MarkovLogic) -> str:
    """The evidence as a .db file: true atoms, `!` false ones, `?` those left open in a closed predicate."""
    lines = []
    for name, known in model.evidence.items():
        signs = np.where(known.values == 1, "", "!")
        lines += [sign + _row(model, name, row) for sign, row in zip(signs, known.tuples, strict=True)]
    for name, rows in model.unknown.items():
        lines += ["?" + _row(model, name, row) for row in rows]
    return "".join(line + "\n" for line in lines)


def _row(model: MarkovLogic, predicate: str, row: np.ndarray) -> str:
    sorts = model.predicates[predicate].sorts
    return atom_name(predicate, (model.sorts[sort].constants[i] for sort, i in zip(sorts, row, strict=True)))


# --- ground atoms, and what a text names ------------------------------------------------------------------------------


_ARGUMENT = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|([^",()\s]+))\s*(,|$)""")


def atom_text(model: MarkovLogic, predicate: str, constants: Sequence[int]) -> str:
    sorts = model.predicates[predicate].sorts
    return atom_name(predicate, (model.sorts[s].constants[c] for s, c in zip(sorts, constants, strict=True)))


def find_atom(model: MarkovLogic, text: str) -> tuple[str, tuple[int, ...]]:
    """The predicate and the constants of a ground atom given as text."""
    if not isinstance(text, str):
        raise UnknownName(f"an atom is named by text, such as 'P(A)', not by {text!r}")
    name, opened, rest = text.strip().partition("(")
    name = name.strip()
    if name not in model.predicates:
        raise UnknownName(f"the model has no predicate {name!r}{suggestion(name, model.predicates)}")
    sorts = model.predicates[name].sorts
    if opened and not rest.endswith(")"):
        raise UnknownName(f"{text!r} lacks its closing parenthesis")
    names = _arguments(rest.removesuffix(")"))
    if len(names) != len(sorts):
        raise UnknownName(f"{name} has {len(sorts)} arguments ({', '.join(sorts)}); {text!r} gives {len(names)}")
    return name, tuple(model.sorts[s].index(n) for s, n in zip(sorts, names, strict=True))


def _arguments(text: str) -> list[str]:
    found, at = [], 0
    while at < len(text):
        match = _ARGUMENT.match(text, at)
        if match is None:
            raise UnknownName(f"cannot read the arguments {text!r}: names are separated by commas")
        quoted, plain, comma = match.groups()
        found.append(plain if plain is not None else unescaped(quoted))
        at = match.end()
        if comma and at == len(text):
            raise UnknownName(f"cannot read the arguments {text!r}: a name is missing after the last comma")
    return found
