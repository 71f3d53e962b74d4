"""Text files of numbers, split at white space in one go; line and column are found only when an error needs them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from os import PathLike
from pathlib import Path

import numpy as np

from definetti.errors import ParseError
from definetti.files import place, read_bytes

MOST_INT32 = 2**31 - 1  # variables and values are kept as int32


@dataclass(frozen=True)
class Tokens:
    """The words of a file. `bare` is `text` with comments turned into spaces, so that places agree."""

    path: Path
    text: bytes
    bare: bytes
    words: list[bytes]
    underscores: bool  # Python reads 1_0 as 10, the formats don't

    def __len__(self) -> int:
        return len(self.words)

    # --- errors ----------------------------------------------------------------------------------------------

    def error(self, k: int, message: str) -> ParseError:
        """An error at token k; k = len(self) is the end of the file."""
        line, column, source = self._place(k)
        return ParseError(message, path=self.path, line=line, column=column, source=source)

    def expected(self, k: int, what: str, cure: str = "") -> ParseError:
        found = f"found {shown(self.words[k])}" if k < len(self) else "but the file ends here"
        return self.error(k, f"expected {what}, {found}{'; ' + cure if cure else ''}")

    def _place(self, k: int) -> tuple[int, int, str]:
        if k < len(self):
            offset = next(islice(re.finditer(rb"\S+", self.bare), k, None)).start()
        else:
            offset = len(self.bare.rstrip())
        return place(self.text, offset)

    # --- numbers ---------------------------------------------------------------------------------------------

    def whole(self, k: int, what: str, least: int = 0, cure: str = "") -> int:
        """Token k as a whole number, at least `least`."""
        number = _whole(self.words[k]) if k < len(self) else None
        if number is None or number < least:
            raise self.expected(k, what, cure)
        return number

    def wholes(
        self, words: Sequence[bytes], where: Callable[[int], int], what: Callable[[int], str], least: int, most: int
    ) -> np.ndarray:
        """Whole numbers from `least` to `most`; `words[j]` is token `where(j)` and is described by `what(j)`."""
        try:
            out = np.array(list(map(int, words)), dtype=np.int64)
            wrong = np.flatnonzero((out < least) | (out > most))
            first = int(wrong[0]) if wrong.size else None
        except (ValueError, OverflowError):
            out, first = np.empty(0, dtype=np.int64), 0
        if first is not None or self.underscores:
            for j in range(first or 0, len(words)):
                number = _whole(words[j])
                if number is None or not least <= number <= most:
                    raise self.expected(where(j), what(j))
        return out

    def weights(self, words: Sequence[bytes], where: Callable[[int], int], what: Callable[[int], str]) -> np.ndarray:
        """Table entries: finite and not negative; `words[j]` is token `where(j)`."""
        try:
            out = np.fromiter(map(float, words), dtype=np.float64, count=len(words))
        except ValueError:
            out = None
        if out is None or self.underscores:
            for j, word in enumerate(words):
                if not _is_number(word):
                    raise self.expected(where(j), f"a number, {what(j)}")
        assert out is not None  # a word that float() refuses was reported above
        wrong = np.flatnonzero(~((out >= 0) & (out < np.inf)))  # NaN fails both
        if wrong.size:
            j = int(wrong[0])
            raise self.expected(where(j), f"a finite number that is not negative, {what(j)}")
        self._refuse_underflow(words, out, where)
        return out

    def _refuse_underflow(self, words: Sequence[bytes], values: np.ndarray, where: Callable[[int], int]) -> None:
        """A weight like 1e-400 would silently become impossible."""
        zeros = np.flatnonzero(values == 0.0)
        forms = {words[j] for j in zeros.tolist()}
        lost = {form for form in forms if re.split(rb"[eE]", form)[0].strip(b"+-0.")}
        for j in zeros.tolist() if lost else ():
            if words[j] in lost:
                cure = "scale the table up, or write 0 if it is impossible"
                raise self.error(where(j), f"{shown(words[j])} is too small for a double and would become 0; {cure}")


def tokenise(path: str | PathLike[str], *, comments: bool = False) -> Tokens:
    """The words of a file; with `comments`, `#` hides the rest of its line."""
    text = read_bytes(path)
    bare = text
    if comments and b"#" in text:
        bare = re.sub(rb"#[^\r\n]*", lambda match: b" " * len(match[0]), text)
    return Tokens(Path(path), text, bare, bare.split(), b"_" in bare)


def shown(word: bytes) -> str:
    """A word as an error shows it: quoted, one line, not too long."""
    text = word.decode("utf-8", "replace")
    return repr(text if len(text) <= 40 else text[:37] + "...")


def shown_count(number: int) -> str:
    """A count as an error shows it: Python refuses to print integers of thousands of digits."""
    return str(number) if number < 10**18 else "more than 10^18"


def _whole(word: bytes) -> int | None:
    try:
        return None if b"_" in word else int(word)
    except ValueError:
        return None


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return b"_" not in word
