"""The .uai format (MARKOV and BAYES) and its .evid evidence files.

A file is words between white space, however they are spread over lines: the kind, the number of variables, their
numbers of values, the number of factors, the scopes, then for each factor the size of its table and the entries, the
last variable of the scope fastest. In a BAYES file the child is last in its scope; tables are factors like any others.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from math import prod
from os import PathLike

import numpy as np

from definetti.errors import ParseError
from definetti.model.graph.factors import FactorGraph
from definetti.readers.graph.tokens import MOST_INT32, Tokens, shown, shown_count, tokenise

KINDS = (b"MARKOV", b"BAYES")


@dataclass(frozen=True)
class Scopes:
    """The preamble: numbers of values, scopes in CSR form, and the place of the first table's size."""

    cards: np.ndarray
    start: np.ndarray
    scope: np.ndarray
    end: int


def read_uai(path: str | PathLike[str]) -> FactorGraph:
    """A factor graph with the variables X0, X1, … from a .uai file."""
    tokens = tokenise(path)
    if not len(tokens) or tokens.words[0].upper() not in KINDS:
        raise tokens.expected(0, "MARKOV or BAYES")
    scopes = _scopes(tokens)
    entry_start, entries = _tables(tokens, scopes)
    with np.errstate(divide="ignore"):
        logs = np.log(entries)
    cards = scopes.cards[scopes.scope].tolist()
    bounds, starts = entry_start.tolist(), scopes.start.tolist()
    tables = [logs[bounds[k] : bounds[k + 1]].reshape(cards[starts[k] : starts[k + 1]]) for k in range(len(starts) - 1)]
    return FactorGraph.from_arrays(scopes.cards, scopes.start, scopes.scope, np.arange(len(tables)), tables)


def _scopes(tokens: Tokens) -> Scopes:
    n = tokens.whole(1, "the number of variables")
    if n > len(tokens) - 2:
        raise tokens.expected(len(tokens), f"the numbers of values of {n} variables")
    cards = tokens.wholes(
        tokens.words[2 : 2 + n], lambda j: 2 + j, lambda j: f"the number of values of X{j} (1 or more)", 1, MOST_INT32
    )
    count = tokens.whole(2 + n, "the number of factors")
    words, place, arities = tokens.words, 3 + n, []
    scope_words: list[bytes] = []
    for k in range(count):
        arity = tokens.whole(place, f"the number of variables of factor {k}")
        if arity > n:
            raise tokens.error(place, f"factor {k} cannot be over {arity} variables: the model has {n}")
        if arity > len(tokens) - place - 1:
            raise tokens.expected(len(tokens), f"the {arity} variables of factor {k}")
        arities.append(arity)
        scope_words += words[place + 1 : place + 1 + arity]
        place += 1 + arity
    start = np.array([0, *accumulate(arities)], dtype=np.int64)
    scope = _variables(tokens, scope_words, start, n)
    return Scopes(cards.astype(np.int32), start, scope, place)


def _variables(tokens: Tokens, words: list[bytes], start: np.ndarray, n: int) -> np.ndarray:
    """The scopes' variables: known ones, each once in a scope."""

    def factor(j: int) -> int:
        return int(np.searchsorted(start, j, side="right")) - 1

    def where(j: int) -> int:  # before it stand the preamble and the arities of the factors up to its own
        return 3 + n + j + factor(j) + 1

    scope = tokens.wholes(words, where, lambda j: f"a variable from 0 to {n - 1} in factor {factor(j)}", 0, n - 1)
    owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
    key = owner * n + scope
    order = np.argsort(key, kind="stable")
    again = order[1:][np.diff(key[order]) == 0]
    if again.size:
        j = int(again.min())
        raise tokens.error(where(j), f"factor {factor(j)} has the variable {int(scope[j])} twice in its scope")
    return scope.astype(np.int32)


def _tables(tokens: Tokens, scopes: Scopes) -> tuple[np.ndarray, np.ndarray]:
    """All entries in one array, and where each factor's begin."""
    words, place, starts = tokens.words, scopes.end, scopes.start.tolist()
    cards = scopes.cards[scopes.scope].tolist()
    entry_words: list[bytes] = []
    bounds = [0]
    for k in range(len(starts) - 1):
        shape = cards[starts[k] : starts[k + 1]]
        size = _size(tokens, place, k, shape)
        entry_words += words[place + 1 : place + 1 + size]
        bounds.append(bounds[-1] + size)
        place += 1 + size
    start = np.array(bounds, dtype=np.int64)

    def factor(j: int) -> int:
        return int(np.searchsorted(start, j, side="right")) - 1

    def where(j: int) -> int:
        return scopes.end + j + factor(j) + 1

    def what(j: int) -> str:
        k = factor(j)
        return f"entry {j - bounds[k] + 1} of {bounds[k + 1] - bounds[k]} in the table of factor {k}"

    entries = tokens.weights(entry_words, where, what)
    if place < len(tokens):
        raise tokens.expected(place, f"the end of the file after the tables of {len(starts) - 1} factors")
    if len(entries):
        empty = np.flatnonzero(np.maximum.reduceat(entries, start[:-1]) == 0)
        if empty.size:
            k = int(empty[0])
            raise tokens.error(where(bounds[k]), f"the table of factor {k} is all zeros, so no state is possible")
    return start, entries


def _size(tokens: Tokens, place: int, factor: int, shape: list[int]) -> int:
    """The declared size of a table, right for its scope and no larger than the rest of the file."""
    want, left = prod(shape), len(tokens) - place - 1
    if left >= want and tokens.words[place] == b"%d" % want:
        return want
    box = " × ".join(map(str, shape)) + " = " if len(shape) > 1 else ""
    what = f"the table size of factor {factor}" + (f" ({box}{want})" if want < 10**18 and len(shape) < 20 else "")
    cure = f"the table of factor {factor - 1} may have too few or too many entries" if factor else ""
    size = tokens.whole(place, what, cure=cure)
    if size != want:
        raise tokens.expected(place, what, cure)
    if size > left:
        raise tokens.expected(len(tokens), f"{shown_count(size)} entries in the table of factor {factor}")
    return size


# --- evidence ------------------------------------------------------------------------------------------------


def read_evid(path: str | PathLike[str], model: FactorGraph) -> FactorGraph:
    """The model with the evidence of an .evid file, where variable i is the one named X<i> (else the i-th).

    Both forms are read: `m i1 v1 … im vm`, and the older one with the number of samples before it. With one sample the
    two differ in the parity of the number of words, so no file can be read in two ways. Several samples are an error.
    """
    tokens = tokenise(path)
    first = _first_pair(tokens)
    numbers = {i: i for i in range(model.n)}
    if all(name[:1] == "X" and name[1:].isdecimal() for name in model.names):
        numbers = {int(name[1:]): i for i, name in enumerate(model.names)}  # .fg: labels with gaps
    seen: dict[int, int] = {}
    for place in range(first, len(tokens), 2):
        variable = tokens.whole(place, "a variable")
        if variable not in numbers:
            known = f"{model.names[0]} to {model.names[-1]}" if model.n else "none"
            raise tokens.expected(place, f"one of the model's {model.n} variables ({known})")
        i = numbers[variable]
        card, what = int(model.cards[i]), f"a value of {model.names[i]} (0 to {int(model.cards[i]) - 1})"
        value = tokens.whole(place + 1, what)
        if value >= card:
            raise tokens.expected(place + 1, what)
        known_value = seen.get(i, int(model.evidence[i]))
        if known_value not in (-1, value):
            message = f"contradicting evidence on {model.names[i]}: {known_value} and {value}"
            raise tokens.error(place + 1, message)
        seen[i] = value
    return model.observe(seen)


def _first_pair(tokens: Tokens) -> int:
    """Where the pairs begin: after one word (no count of samples) or two."""
    count = tokens.whole(0, "the number of observed variables (0 if there are none)")
    total = len(tokens)
    if count > 1 and _is_samples(tokens, count):
        raise _several(tokens, count)
    if total == 1 + 2 * count:
        return 1
    alone = len(tokens.bare.lstrip().splitlines()[0].split()) == 1
    if count == 1 and total > 1 and (alone or total % 2 == 0):
        pairs = tokens.whole(1, "the number of observed variables of the sample")
        if total == 2 and not alone:  # `1 0` on one line is a pair that was cut off, not a sample without evidence
            raise tokens.expected(2, f"the value of variable {pairs}", "write 0 alone if nothing is observed")
        if total == 2 + 2 * pairs:
            return 2
        raise _miscounted(tokens, 2, pairs)
    raise _miscounted(tokens, 1, count)


def _is_samples(tokens: Tokens, count: int) -> bool:
    """Whether the words are `count` samples; where they are pairs as well, the layout of one sample a line decides."""
    lines = [line.split() for line in tokens.bare.splitlines() if line.strip()]
    if len(tokens) == 1 + 2 * count and (len(lines) != count + 1 or len(lines[0]) > 1 or any(map(_odd, lines[1:]))):
        return False
    place = 1
    for _ in range(count):
        if place >= len(tokens) or not tokens.words[place].isdigit() or len(tokens.words[place]) > 18:
            return False
        place += 1 + 2 * int(tokens.words[place])
    return place == len(tokens)


def _odd(line: list[bytes]) -> bool:
    """Whether a line is not a sample."""
    return not (line[0].isdigit() and len(line[0]) < 19 and len(line) == 1 + 2 * int(line[0]))


def _several(tokens: Tokens, count: int) -> ParseError:
    return tokens.error(0, f"the file holds {count} samples of evidence and one is needed; put each into its own file")


def _miscounted(tokens: Tokens, first: int, pairs: int) -> ParseError:
    """The error for pairs that are not as many as announced."""
    end = first + 2 * pairs
    what = f"{pairs} pairs of a variable and its value"
    if end > len(tokens):
        return tokens.expected(len(tokens), f"{what} ({2 * pairs} numbers, there are {len(tokens) - first})")
    return tokens.error(end, f"expected the end of the file after {what}, found {shown(tokens.words[end])}")
