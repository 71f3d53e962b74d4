"""Lines of source with their depth, the names they use, and how the state is addressed in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from definetti.samplers.codegen import layout
from definetti.samplers.codegen.expressions import Argument, Equal, Read, Term, Variable
from definetti.samplers.codegen.layout import Bits, Local
from definetti.samplers.codegen.shapes import Theory


def site(theory: Theory, predicate: int) -> Read:
    """The updated atom's bit."""
    return Read(predicate, arguments(range(len(theory.signatures[predicate].sorts))))


def arguments(places: Iterable[int]) -> tuple[Term, ...]:
    return tuple(Argument(j) for j in places)


class Text:
    """Lines, and the local variables that the function around them must look up at its top."""

    def __init__(self, theory: Theory) -> None:
        self.theory = theory
        self.lines: list[str] = []
        self.used: dict[Local, None] = {}
        self.depth = 0
        self.count = 0

    # --- lines ---

    def add(self, *lines: str) -> None:
        self.lines += ["    " * self.depth + line for line in lines]

    def open(self, header: str) -> None:
        """Begins a compound statement, which lasts until the depth is put back (`inside`)."""
        self.add(header)
        self.depth += 1

    @contextmanager
    def inside(self, header: str = "") -> Iterator[None]:
        """Whatever is opened inside ends with it."""
        depth = self.depth
        if header:
            self.open(header)
        yield
        self.depth = depth

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def include(self, other: Text) -> None:
        """Lines that were written apart, at the present depth."""
        self.add(*other.lines)
        self.used |= other.used
        self.count += other.count

    # --- names ---

    def name(self, x: Local) -> str:
        self.used[x] = None
        return x.name

    def size(self, sort: int) -> str:
        return self.name(layout.size(sort))

    def width(self, sort: int) -> str:
        """The number of words of a row over a sort; a literal where the theory fixes it."""
        return str(self.theory.words[sort] or self.name(layout.width(sort)))

    def tail(self, sort: int) -> str:
        return self.name(layout.tail(sort))

    # --- the state ---

    def address(self, bits: Bits, terms: tuple[Term, ...], index: str) -> str:
        """Where the word with number `index` of a row stands: rows are counted by the arguments beside the axis."""
        sorts = self.theory.signatures[bits.predicate].sorts
        row = ""
        for j, term in enumerate(terms):
            if j not in bits.axis:
                row = f"({row} * {self.size(sorts[j])} + {term})" if row else str(term)
        parts = [self.name(bits)]
        if row:
            width = self.width(sorts[bits.axis[0]]) if bits.axis else "1"
            parts.append(row if width == "1" else f"{row} * {width}")
        if index != "0":
            parts.append(index)
        return " + ".join(parts)

    def read(self, leaf: Read | Equal) -> str:
        """A scalar leaf as 0 or 1."""
        if isinstance(leaf, Equal):
            return f"U({leaf.left} == {leaf.right})"
        signature = self.theory.signatures[leaf.predicate]
        home = layout.orientation(leaf.predicate, signature.home)
        if not leaf.terms:
            return f"test(bits, {self.address(home, (), '0')}, 0)"
        bit = leaf.terms[-1]
        index = "0" if self.theory.words[signature.sorts[-1]] == 1 else f"({bit} >> 6)"
        return f"test(bits, {self.address(home, leaf.terms, index)}, {bit})"

    def read_word(self, leaf: Read | Equal, axis: Variable, index: str, sort: int) -> str:
        """A leaf for 64 values of the axis at once."""
        if isinstance(leaf, Equal):
            other = leaf.other(axis)
            if self.theory.words[sort] == 1:
                return f"(ONE << U({other}))"
            return f"mask({other}, I({index}))"  # Numba would compile the helper for each literal
        along = tuple(j for j, t in enumerate(leaf.terms) if t == axis)
        return f"peek(bits, {self.address(layout.orientation(leaf.predicate, along), leaf.terms, index)})"
