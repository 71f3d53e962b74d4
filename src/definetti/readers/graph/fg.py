"""libDAI's .fg format: sparse tables, the *first* variable of a factor fastest.

The number of factors, then a block for each: the number of variables, their labels, their numbers of values, the number
of entries that are not zero, and these as pairs of place and value. Blank lines part the blocks; `#` starts a comment.
Labels are any whole numbers: the variable with label 7 is named X7, and variables are in the order of their labels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from os import PathLike

import numpy as np

from definetti.errors import TooLarge
from definetti.memory import available_memory
from definetti.model.graph.factors import FactorGraph
from definetti.readers.graph.tokens import MOST_INT32, Tokens, tokenise

FEW_ENTRIES = 2**20
MOST_ENTRIES = 2**24  # of all tables, zeros included: 128 MiB, some five times while they are read


@dataclass
class Blocks:
    """What the walk over the file collects; entries are kept as words and read all at once."""

    scopes: list[list[int]] = field(default_factory=list)
    shapes: list[list[int]] = field(default_factory=list)
    count_place: list[int] = field(default_factory=list)  # where the number of entries stands
    entry_bounds: list[int] = field(default_factory=lambda: [0])
    table_bounds: list[int] = field(default_factory=lambda: [0])
    place_words: list[bytes] = field(default_factory=list)
    value_words: list[bytes] = field(default_factory=list)


def read_fg(path: str | PathLike[str]) -> FactorGraph:
    """A factor graph with the variables X<label> from a .fg file."""
    tokens = tokenise(path, comments=True)
    blocks, cards = _walk(tokens)
    with np.errstate(divide="ignore"):
        logs = np.log(_dense(tokens, blocks))
    labels = sorted(cards)
    index = {label: i for i, label in enumerate(labels)}
    bounds = blocks.table_bounds
    tables = [
        logs[bounds[k] : bounds[k + 1]].reshape(shape[::-1]).T  # the first variable is fastest in the file
        for k, shape in enumerate(blocks.shapes)
    ]
    return FactorGraph.from_arrays(
        np.array([cards[label] for label in labels], dtype=np.int32),
        np.cumsum([0, *map(len, blocks.scopes)]),
        np.array([index[label] for scope in blocks.scopes for label in scope], dtype=np.int32),
        np.arange(len(tables)),
        tables,
        names=[f"X{label}" for label in labels],
    )


def _walk(tokens: Tokens) -> tuple[Blocks, dict[int, int]]:
    count = tokens.whole(0, "the number of factors")
    blocks, cards, place = Blocks(), {}, 1
    for k in range(count):
        place = _block(tokens, place, k, blocks, cards)
    if place < len(tokens):
        raise tokens.expected(place, f"the end of the file after {count} factors")
    return blocks, cards


def _block(tokens: Tokens, place: int, k: int, blocks: Blocks, cards: dict[int, int]) -> int:
    """Collect factor k, which begins at `place`; the place after it."""
    arity = tokens.whole(place, f"the number of variables of factor {k}")
    labels_at, shape_at, count_at = place + 1, place + 1 + arity, place + 1 + 2 * arity
    if count_at >= len(tokens):
        raise tokens.expected(len(tokens), f"{arity} labels, {arity} numbers of values and entries of factor {k}")
    scope = [tokens.whole(p, f"a variable's label in factor {k}") for p in range(labels_at, shape_at)]
    if len(set(scope)) < arity:
        again = next(j for j, label in enumerate(scope) if label in scope[:j])
        raise tokens.error(labels_at + again, f"factor {k} has the variable {scope[again]} twice in its scope")
    shape = []
    for p, label in zip(range(shape_at, count_at), scope, strict=True):
        card = tokens.whole(p, f"the number of values of X{label} (1 or more)", least=1)
        if card > MOST_INT32 or cards.setdefault(label, card) != card:
            known = f"it has {cards[label]} in an earlier factor" if label in cards else f"at most {MOST_INT32}"
            raise tokens.expected(p, f"the number of values of X{label} ({known})")
        shape.append(card)
    size = prod(shape)
    entries = tokens.whole(count_at, f"the number of entries of factor {k} that are not zero")
    if entries > size:
        raise tokens.expected(count_at, f"at most {size} entries in factor {k}, the size of its table")
    if 2 * entries > len(tokens) - count_at - 1:
        raise tokens.expected(len(tokens), f"{entries} pairs of place and value in factor {k}")
    if entries == 0:
        raise tokens.error(count_at, f"the table of factor {k} is all zeros, so no state is possible")
    most = MOST_ENTRIES if blocks.table_bounds[-1] + size < FEW_ENTRIES else min(MOST_ENTRIES, available_memory() // 32)
    if blocks.table_bounds[-1] + size > most:
        what, cure = f"{tokens.path} up to factor {k}, with zeros,", "split factors over many variables"
        raise TooLarge(what, blocks.table_bounds[-1] + size, most, cure, unit="table entries")
    end = count_at + 1 + 2 * entries
    blocks.scopes.append(scope)
    blocks.shapes.append(shape)
    blocks.count_place.append(count_at)
    blocks.entry_bounds.append(blocks.entry_bounds[-1] + entries)
    blocks.table_bounds.append(blocks.table_bounds[-1] + size)
    blocks.place_words += tokens.words[count_at + 1 : end : 2]
    blocks.value_words += tokens.words[count_at + 2 : end : 2]
    return end


def _dense(tokens: Tokens, blocks: Blocks) -> np.ndarray:
    """All tables, one after the other, each as in the file (first variable fastest)."""
    entry_start, table_start = np.array(blocks.entry_bounds), np.array(blocks.table_bounds)

    def factor(j: int) -> int:
        return int(np.searchsorted(entry_start, j, side="right")) - 1

    def where(j: int) -> int:
        k = factor(j)
        return blocks.count_place[k] + 1 + 2 * (j - blocks.entry_bounds[k])

    def what(j: int) -> str:
        k = factor(j)
        return f"a place from 0 to {blocks.table_bounds[k + 1] - blocks.table_bounds[k] - 1} in the table of factor {k}"

    places = tokens.wholes(blocks.place_words, where, what, 0, MOST_ENTRIES)
    owner = np.repeat(np.arange(len(blocks.scopes)), np.diff(entry_start))
    wrong = np.flatnonzero(places >= np.diff(table_start)[owner])
    if wrong.size:
        raise tokens.expected(where(int(wrong[0])), what(int(wrong[0])))
    values = tokens.weights(blocks.value_words, lambda j: where(j) + 1, lambda j: f"an entry of factor {factor(j)}")
    slots = table_start[owner] + places
    order = np.argsort(slots, kind="stable")
    again = order[1:][np.diff(slots[order]) == 0]
    if again.size:
        j = int(again.min())
        raise tokens.error(where(j), f"the place {int(places[j])} in the table of factor {factor(j)} is given twice")
    out = np.zeros(blocks.table_bounds[-1])
    out[slots] = values
    if len(out):
        empty = np.flatnonzero(np.maximum.reduceat(out, table_start[:-1]) == 0)
        if empty.size:
            k = int(empty[0])
            raise tokens.error(blocks.count_place[k], f"the table of factor {k} is all zeros, so no state is possible")
    return out
