"""Border crossings that go on into a join, in one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from coincide import border_crossing_tables, correlate_tables
from coincide.command_line import run


def test_crossings_that_are_joined_without_a_word_on_columns(tmp_path: Path, capsys: Any) -> None:
    """They have no id: their rows have numbers, and all of their columns can be asked for."""
    walk = pa.table(
        {"stream_id": [1, 1, 2, 2], "time": [0, 9, 0, 8], "value": [0.0, 5.0, 0.0, 5.0]}
    )
    area = pa.table({"query_id": ["a"], "lower": [3.0], "upper": [9.0]})
    crossings = border_crossing_tables(walk, area)
    asked: dict[str, Any] = {"within": (-20, 20), "confidence": 0.5, "by": "query_id"}
    numbers = correlate_tables(crossings, **asked).to_pylist()
    assert numbers == [{"query_id": "a", "left_id": 1, "right_id": 0}]
    pairs = correlate_tables(crossings, left_columns="*", right_columns="*", **asked)
    assert pairs.num_rows == 1
    assert "right_stream_id" in pairs.column_names
    pq.write_table(crossings, tmp_path / "crossings.parquet")
    words = ["join", str(tmp_path / "crossings.parquet"), "-o", str(tmp_path / "out.parquet")]
    words += ["--within", "-20", "20", "--confidence", "0.5", "--by", "query_id"]
    assert run(words) == 0
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == numbers
    words += ["--overwrite", "--left-columns", "*", "--right-columns", "*"]
    assert run(words) == 0
