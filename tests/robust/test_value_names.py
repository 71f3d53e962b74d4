"""Tables of answers give the names of values that queries use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import definetti as dft
from definetti.errors import Notice
from definetti.store.loading import load


def test_names_of_values_have_a_column(tmp_path: Path) -> None:
    """`value` counts from 0 in every table; what queries call it stands in the last column, if it has a name."""
    model = dft.factor_graph({"w": 3, "s": 2, "t": 3}, [(("w", "s", "t"), np.arange(1.0, 19.0).reshape(3, 2, 3))])
    model = replace(model, value_names={0: ("sun", "rain", "snow"), 1: ("off", "on")})
    answer = dft.exact(model, queries=["w=rain"])
    doubtful = replace(answer, notices=(Notice("frozen", "nothing moved"),))
    for told in (answer, doubtful):
        table, other = told.to_pandas(), told.to_polars()
        assert table["value_name"].tolist() == ["", "sun", "rain", "snow", "on", "", "", ""]
        assert other["value_name"].to_list() == table["value_name"].tolist()
        assert table["value"].tolist()[1:4] == [0, 1, 2]
        rows = table.set_index(["variable", "value_name"])["probability"]
        assert rows["w", "rain"] == pytest.approx(answer["w=rain"].probability)
        for suffix in (".csv", ".parquet"):
            saved = load(dft.save(told, tmp_path / f"named{suffix}"))
            assert saved["w"].probability == pytest.approx(answer["w"].probability)
            assert saved["s"].probability == pytest.approx(answer["s"].probability)
            assert [notice.kind for notice in saved.notices] == [notice.kind for notice in told.notices]
    assert "value_name" not in dft.exact(replace(model, value_names={})).to_pandas()
