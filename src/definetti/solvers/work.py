"""The work of an exact engine, counted before it is done: numbers of operations times fixed prices.

A price is about the seconds that one such operation took on one machine when it was last measured, so that sums read
as seconds. No clock and no free memory enters: the same model has the same work everywhere, and what is decided by it
(`auto` answers exactly or samples) is decided alike everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

CHEAP = 1.0  #: work that is done without being asked for

# Elimination and enumeration
BUCKET = 9e-5  #: a variable's bucket, however small
ENTRY = 7e-8  #: of a bucket's table, in both passes
FACTOR = 1e-5
STATE = 9e-8
ADDED = 2e-9  #: a factor's value added to one entry of the array over states
# Lifted counting
TERM = 3e-6  #: a vector of counts of one unit
SIGNED = 4e-6  #: the same with signs, for each pair of cells
PAIR = 6e-5  #: of units, by polynomials
COEFFICIENT = 5e-6  #: of such a pair's polynomial
PRODUCT = 3e-8  #: of two coefficients
CELLS = 5e-7  #: an entry of a table of two cells
MERGE = 2e-6  #: a trial to count two cells together
ROW = 1e-4  #: the probability of an atom in one part of the sum
# Markov logic
GROUNDING = 2e-6


class TooMuch(Exception):
    """Inside the package: an answer is within reach, but takes more work than is allowed."""

    def __init__(self, work: float) -> None:
        self.work = work
        super().__init__(f"about {work:.3g} s of work")


@dataclass
class Budget:
    """Work that may be done; what is known of it beforehand is charged before it is done."""

    limit: float = math.inf
    spent: float = field(default=0.0, init=False)

    def charge(self, work: float, times: int = 1) -> None:
        """`times`: so often the same will be charged again, this time included; it is refused at once if that is too
        much."""
        if self.spent + work * times > self.limit:
            raise TooMuch(self.spent + work * times)
        self.spent += work
