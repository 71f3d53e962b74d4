"""Numbers, scopes and tables as users hand them over, checked; the errors that say what is wrong with them."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import numpy as np

from definetti import show
from definetti.errors import ModelError, UnknownName

REAL = (int, float, np.number)
LARGEST_LOG = 1e100  # of a weight: sums of them must stay finite
PRECISION = 1e-9  # of log weights: sums that large terms make coarser are refused


def require_model(model: object, what: str) -> None:
    """`ModelError` for what is no model of either kind; its class is none."""
    if isinstance(model, type) or getattr(model, "kind", None) not in ("graph", "logic"):
        got = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"
        raise ModelError(f"{what}, got {got}; dft.read makes one")


def integer(number: object, what: str) -> int:
    """A whole number of any type; 0.7 is not one."""
    try:
        return operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        raise ModelError(f"{what} {number!r}; a name or a whole number is needed") from None


def pair(factor: Any, number: int) -> tuple[Iterable[Any], Any]:
    """The scope and the table of a factor as it is given; a text is the name of its only variable."""
    try:
        scope, table = factor
        return ((scope,) if isinstance(scope, str) else iter(scope)), table
    except (TypeError, ValueError):
        asked = "is a pair of a scope and a table, as in ([0, 1], [[3, 1], [1, 3]])"
        raise ModelError(f"factor {number} {asked}; got {show.brief(factor)}") from None


def position(variable: int | str, index: Mapping[str, int], factor: int) -> int:
    if type(variable) is int and 0 <= variable < len(index):  # most are
        return variable
    if isinstance(variable, str):
        if variable not in index:
            raise UnknownName(f"factor {factor} is over {variable!r}, which is no variable")
        return index[variable]
    number = integer(variable, f"factor {factor} is over the variable")
    if not 0 <= number < len(index):
        raise UnknownName(f"factor {factor} is over variable {number}, but there are {len(index)}")
    return number


def numbers(table: object, what: str) -> np.ndarray:
    try:
        array = np.asarray(table)
        if array.dtype.kind != "c":
            return array.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        pass
    raise ModelError(f"{what} is not an array of real numbers")


def number(value: object, what: str) -> float:
    array = numbers(value, what)
    if array.ndim:
        raise ModelError(f"{what} is a number, got {show.brief(value)}")
    return float(array)


def log_table(table: np.ndarray, want: tuple[int, ...], log: bool, factor: int) -> np.ndarray:
    """The checked log table in the shape that is wanted."""
    if table.size != int(np.prod(want, dtype=np.int64)) or (table.ndim != 1 and table.shape != want):
        raise ModelError(f"factor {factor} needs a table of shape {want}, got {table.shape}")
    table = table.reshape(want)
    if np.isnan(table).any() or (table == np.inf).any():
        raise ModelError(f"factor {factor} has a NaN or infinite entry")
    if log:
        if (np.abs(table, where=np.isfinite(table), out=np.zeros(want)) > LARGEST_LOG).any():
            raise ModelError(f"factor {factor} has a logarithm beyond ±{LARGEST_LOG:g}; write -inf if it is impossible")
        return table
    if (table < 0).any():
        raise ModelError(f"factor {factor} has the negative entry {table.min()}")
    with np.errstate(divide="ignore"):
        return np.log(table)


def cancelling(names: Iterable[str], largest: float, lost: float) -> ModelError:
    """The error for log weights so large that those beside them are lost where they cancel."""
    over = ", ".join(islice(names, 8))
    return ModelError(
        f"log weights of up to {show.number(largest)} on ({over}) cancel, and doubles of that size leave an error of "
        f"{show.number(lost, 2)} where 1e-9 is needed; make penalties smaller (100 forbids as well), or use -inf"
    )


def cardinalities(cardinality: Any) -> dict[str, int]:
    """How many atoms of each predicate are true, as they are given."""
    if cardinality is None:
        return {}
    if not isinstance(cardinality, Mapping) or not all(isinstance(name, str) for name in cardinality):
        asked = "cardinality says how many atoms of a predicate are true, as in {'Smokes': 3}"
        raise ModelError(f"{asked}; got {show.brief(cardinality)}")
    return {name: integer(count, f"the cardinality of {name} is") for name, count in cardinality.items()}


def each(values: Any, what: str) -> Iterable[Any]:
    """Any collection but a text."""
    if isinstance(values, Iterable) and not isinstance(values, str | bytes | type):
        return values
    raise ModelError(f"{what}, got {show.brief(values)}")


def mapping(values: Any, what: str) -> dict[Any, Any]:
    if isinstance(values, Mapping):
        return dict(values)
    raise ModelError(f"{what} is a mapping, got {show.brief(values)}")


def listed(values: Any, what: str) -> list[Any]:
    return list(each(values, what))


def whole(value: Any, name: str, least: int = 1) -> int | None:
    """A count, of whatever integer type; 1.5 sweeps of warm-up would never end."""
    if value is None:
        return None
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise ModelError(f"{name} is a whole number from {least} on, got {value!r}")
    return number


def check_length(sweeps: int | None, seconds: Any, until: Any) -> None:
    if sweeps is not None and (seconds is not None or until is not None):
        raise ModelError("sweeps excludes seconds and until: give one (seconds beside until is the most it may take)")
    if seconds is not None and not (isinstance(seconds, REAL) and seconds > 0):
        raise ModelError(f"seconds must be a positive number, got {seconds!r}")
    if until is not None and not (isinstance(until, REAL) and 0 < until < 1):
        raise ModelError(f"until is a half-width between 0 and 1, got {until!r}")
