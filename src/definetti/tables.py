"""Answers as tables of other libraries, which are needed only when they are asked for."""

from __future__ import annotations

from typing import Any

from definetti.errors import ModelError
from definetti.model.marginals import FIELDS, Marginals
from definetti.store.writing import table_columns


def to_pandas(marginals: Marginals) -> Any:
    """A pandas DataFrame: a row per query, then one per variable (and value, where there are more than two)."""
    try:
        import pandas
    except ImportError:
        raise ModelError("a DataFrame needs pandas: pip install pandas") from None
    made = pandas.DataFrame(table_columns(marginals))
    types = {"value": "Int32", **dict.fromkeys(FIELDS, "float64"), "orbit_size": "int64", "trusted": "bool"}
    return made.astype(types)


def to_polars(marginals: Marginals) -> Any:
    """The same as a polars DataFrame."""
    try:
        import polars
    except ImportError:
        raise ModelError("a DataFrame needs polars: pip install polars") from None
    types = {"value": polars.Int32, **dict.fromkeys(FIELDS, polars.Float64), "orbit_size": polars.Int64}
    return polars.DataFrame(table_columns(marginals), schema_overrides=types)
