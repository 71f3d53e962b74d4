"""What can go wrong, as values: each error carries what it is about and the cure.

Every error a user can cause is a `DefinettiError`; the command line turns it into exit code 2 and one message.
What leaves an answer in doubt is not an error but a `Notice`, kept beside the answer.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any

from definetti import show

#: Set by Ctrl-C on the command line. An exception raised in a callback of the compiler is lost: loops look here too.
INTERRUPTED = threading.Event()

#: Notices of these kinds mean that a printed number cannot be trusted: exit code 1.
FAILURES = frozenset({"not-mixed", "divided", "frozen", "few-samples", "approximate", "biased"})


@dataclass(frozen=True)
class Notice:
    """A warning that belongs to a result.

    Attributes
    ----------
    kind : str
        One word, such as "not-mixed" or "time-limit"; `fails` says whether the numbers cannot be trusted.
    message : str
        What happened, and what to do.
    cure : str
        What to do, where the usual advice of its kind does not apply.

    Examples
    --------
    >>> import definetti as dft
    >>> dft.Notice("not-mixed", "the chains disagree").fails
    True
    """

    kind: str
    message: str
    cure: str = ""

    @property
    def fails(self) -> bool:
        """Whether an answer with this notice is not to be trusted."""
        return self.kind in FAILURES


MOST_COMPARED = 10_000  # names that are compared with one that is not known


def suggestion(name: str, known: Iterable[str], otherwise: str | None = None) -> str:
    """The end of a message about an unknown name: the names that were probably meant; else the first that there are,
    or `otherwise`."""
    names = list(islice(known, MOST_COMPARED))
    same = [other for other in names if other.lower() == name.lower()]
    close = list(dict.fromkeys([*same, *get_close_matches(name, names, 3, 0.6)]))[:3]
    if close:
        return f"; did you mean {' or '.join(close)}?"
    if otherwise is not None:
        return otherwise
    return f"; known are {', '.join(names[:8])}" if names else ""


class DefinettiError(Exception):
    """The base of all errors that a user can cause and mend.

    Examples
    --------
    >>> import definetti as dft
    >>> try:
    ...     dft.read("nowhere.uai")
    ... except dft.DefinettiError as error:
    ...     print(error)
    nowhere.uai: there is no such file
    """


class ModelError(DefinettiError):
    """The model makes no sense: a wrong table size, an unknown variable, evidence on a value that is not there.

    Examples
    --------
    >>> import definetti as dft
    >>> dft.factor_graph([2, 2], [([0, 1], [1, 2, 3])])
    Traceback (most recent call last):
    definetti.errors.ModelError: factor 0 needs a table of shape (2, 2), got (3,)
    """


class ParseError(DefinettiError):
    """A file could not be read. Shows file, line, column and a caret under the place (all counted from 1).

    Examples
    --------
    >>> import definetti as dft
    >>> try:
    ...     dft.markov_logic("Smokes(person)\\n1.5 Smokes(x) =>")
    ... except dft.ParseError as error:
    ...     print(error)
    <text>:2:17: the text ends too early
        1.5 Smokes(x) =>
                        ^
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | Path | None = None,
        line: int | None = None,
        column: int | None = None,
        source: str | None = None,
    ) -> None:
        self.message, self.path, self.line, self.column, self.source = message, path, line, column, source
        super().__init__(self._text())

    def _text(self) -> str:
        place = ":".join(str(part) for part in (self.path or "<input>", self.line, self.column) if part is not None)
        text = f"{place}: {self.message}"
        if self.source is None or self.column is None:
            return text
        shown = self.source.rstrip("\n").expandtabs(1)
        start = max(0, self.column - 60)  # a table line may hold a million numbers
        caret = " " * (self.column - 1 - start) + "^"
        return f"{text}\n    {shown[start : start + 100]}\n    {caret}"


class UnknownName(DefinettiError, KeyError):
    """A query, an evidence file or a group names something the model does not have.

    It is a `KeyError`, too: answers are mappings, so `name in p` and `p.get(name)` work as they do for a dict.

    Examples
    --------
    >>> import definetti as dft
    >>> try:
    ...     dft.exact(dft.factor_graph({"rain": 2, "wet": 2}, []), queries=["ran"])
    ... except dft.UnknownName as error:
    ...     print(error)
    query:1: no variable is named 'ran'; did you mean rain?
        ran
        ^
    """

    __str__ = DefinettiError.__str__  # a KeyError shows its message in quotes


class Unsatisfiable(DefinettiError):
    """No state has positive probability.

    Examples
    --------
    >>> import definetti as dft
    >>> try:
    ...     dft.exact(dft.factor_graph([2], [([0], [0, 1]), ([0], [1, 0])]))
    ... except dft.Unsatisfiable as error:
    ...     print(error)
    no state has positive probability: the factors over (X0), (X0) contradict each other
    """

    explained: object = None  # the model whose formulas and evidence the message names, where it names some


class SymmetryError(DefinettiError):
    """A given permutation is not a symmetry of the model; the message names the factor that breaks.

    Examples
    --------
    >>> import definetti as dft
    >>> path = dft.factor_graph([2] * 3, [([0, 1], [[2, 1], [1, 3]]), ([1, 2], [[2, 1], [1, 3]])])
    >>> try:
    ...     dft.symmetries(path, generators=["(X0 X1)"])
    ... except dft.SymmetryError as error:
    ...     print(str(error).partition(":")[0])
    generator 1 of 1 is no symmetry of the model
    """


class TooLarge(DefinettiError):
    """The work was refused before memory was taken: one sentence with the size, the limit and the cure.

    Parameters
    ----------
    what : str
        What is too large: "the number of ground atoms", or, with a unit, what would need so much: "elimination".
    size, limit : float
        In the unit. A size may be infinite, or an integer beyond any float.
    cure : str
        What the user can do.
    unit : str
        "table entries", "conflicts"; sizes in "bytes" are shown as 3.2 GB.
    at_least : bool
        The size is a lower bound: counting stopped at the limit.

    Examples
    --------
    >>> import definetti as dft
    >>> people = dft.markov_logic("R(x,x)\\n1 R(x,y) ^ R(y,z) => R(x,z)", domain={"x": 1000})
    >>> try:
    ...     dft.ground(people)
    ... except dft.TooLarge as error:
    ...     print(error.what, error.size, error.limit)
    the ground model 1000000000 5000000
    """

    def __init__(
        self, what: str, size: float, limit: float, cure: str, *, unit: str = "", at_least: bool = False
    ) -> None:
        self.what, self.size, self.limit, self.cure, self.unit, self.at_least = what, size, limit, cure, unit, at_least
        super().__init__(
            f"too large: {self.finding}, the limit is {show.amount(limit, unit if unit == 'bytes' else '')}; {cure}"
        )

    @property
    def finding(self) -> str:
        """What is too large and how large it is, without the limit: for messages that explain a choice."""
        bound = "at least " if self.at_least else ""
        return f"{self.what} {'needs' if self.unit else 'is'} {bound}{show.amount(self.size, self.unit)}"


class Undecided(TooLarge):
    """A search used up its budget without an answer."""

    def __init__(self, what: str, limit: int, unit: str, cure: str) -> None:
        super().__init__(what, limit, limit, cure, unit=unit, at_least=True)
        self.args = (f"undecided: {what} had no answer after {show.amount(limit, unit)}, the limit; {cure}",)


class NotSaved(ModelError):
    """The run came to its end, and its last checkpoint could not be written: the disk is full, for instance.

    Attributes
    ----------
    result : Marginals
        The answer, which is not lost.
    """

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(message)
        self.result = result


def query_list(queries: Any) -> list[str]:
    """Queries as they are given to a verb: one text, or several."""
    found = [queries] if isinstance(queries, str) else list(queries) if isinstance(queries, Iterable) else [queries]
    for query in found:
        if not isinstance(query, str):
            raise ModelError(f"a query is a text, as in 'X0' or 'X1=0 ^ X7=2'; got {query!r:.60}")
    return found


def require_mapping(evidence: Any) -> Any:
    """Evidence that is given to `condition`."""
    if not isinstance(evidence, Mapping):
        raise ModelError(f"evidence is a mapping, as in {{'X0': 1}} or {{'Smokes(Anna)': True}}; got {evidence!r:.60}")
    return evidence
