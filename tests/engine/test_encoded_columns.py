"""Columns in encodings and in rare types: every operator takes them as their plain values."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coincide import (
    CorrelateOptions,
    DataError,
    around,
    border_crossing_tables,
    correlate_tables,
    stream_tables,
    transition_tables,
    within,
)
from coincide.engine.events.schemas import column_of
from coincide.model.condition import TimingCondition

AT_ONCE = {"within": (0, 0), "confidence": 1}
TIMES = {"left_time": "t", "right_time": "t"}


def coded(values: pa.Array) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(range(len(values)), pa.int8()), values)


def test_a_null_of_a_dictionary_is_no_time() -> None:
    left = pa.table({"id": [0, 1], "t": coded(pa.array([5, None]))})
    right = pa.table({"id": [7, 8], "t": [0, 5]})
    found = correlate_tables(left, right, **AT_ONCE, **TIMES)
    assert found.to_pylist() == [{"left_id": 0, "right_id": 8}]


def test_a_null_of_a_dictionary_is_no_half_width() -> None:
    left = pa.table({"id": [0, 1], "t": [0, 0], "w": coded(pa.array([0, None]))})
    asked = {"left_time": around("t", column="w"), "right_time": "t", **AT_ONCE}
    with pytest.raises(DataError, match="missing, negative or infinite half-widths in w in 1 row"):
        correlate_tables(left, left, **asked)
    found = correlate_tables(left, left, **asked, options=CorrelateOptions(invalid="drop"))
    assert found["left_id"].to_pylist() == [0, 0]


def test_a_null_of_a_dictionary_is_named() -> None:
    events = pa.table(
        {
            "query_id": [1, 1],
            "stream_id": [1, 1],
            "t": [0, 1],
            "event": coded(pa.array(["I", None])),
        }
    )
    with pytest.raises(DataError, match="nulls in event in 1 row"):
        transition_tables(events, within=5, time="t")


@pytest.mark.parametrize(
    "times",
    [
        pa.array([5, None], pa.int32()).view(pa.date32()),
        pa.array([5 * 86_400_000, None]).view(pa.date64()),
        pa.array([5, None]).view(pa.duration("ms")),
        pa.array([Decimal(5), None], pa.decimal256(50, 1)),
        pa.array([Decimal(5), None], pa.decimal128(38, 1)),
        pa.array([Decimal(5), None], pa.decimal64(9, 1)),
    ],
    ids=lambda times: str(times.type),
)
def test_times_in_dictionaries(times: pa.Array) -> None:
    plain = pa.table({"id": [0, 1], "t": times})
    encoded = plain.set_column(1, "t", coded(times))
    unit = {"unit": "s"} if pa.types.is_decimal(times.type) else {}
    for left, right in ((encoded, plain), (plain, encoded), (encoded, encoded)):
        found = correlate_tables(
            left,
            right,
            within=("0s", "0s"),
            confidence=1,
            **TIMES,
            options=CorrelateOptions(**unit),
        )
        assert found.to_pylist() == [{"left_id": 0, "right_id": 0}]


def test_a_date_is_its_midnight(tmp_path: Path) -> None:
    """Arrow's date64 may hold a time of day, which no file of Parquet keeps."""
    noons = pa.array([43_200_000, -43_200_000, None]).view(pa.date64())
    table = pa.table({"id": [0, 1, 2], "t": noons})
    midnights = column_of(table, "left", "t")
    assert midnights.cast(pa.int64()).to_pylist() == [0, -86_400_000, None]
    pq.write_table(table.slice(0, 1), tmp_path / "a.parquet")
    right = pa.table({"id": [9, 8], "t": pa.array([0, 43_200], pa.timestamp("s"))})
    for left in (table, str(tmp_path / "a.parquet")):
        found = correlate_tables(left, right, within=("0s", "0s"), confidence=1, **TIMES)
        assert found.to_pylist() == [{"left_id": 0, "right_id": 9}]


@pytest.mark.parametrize("kind", [pa.decimal32(9, 2), pa.decimal64(9, 2)], ids=str)
def test_short_decimals_as_ids(kind: pa.DataType) -> None:
    ids = pa.array([Decimal("1.50"), Decimal("2.50"), Decimal("1.50")], kind)
    readings = pa.table({"stream_id": ids, "time": [0, 1, 2], "value": [0.0, 5.0, 5.0]})
    queries = pa.table({"query_id": ids.slice(0, 2), "lower": [4.0, 7.0], "upper": [6.0, 9.0]})
    crossings = border_crossing_tables(readings, queries)
    assert crossings.schema.field("stream_id").type == kind
    assert crossings.schema.field("query_id").type == kind
    assert crossings["stream_id"].to_pylist() == [Decimal("1.50")]
    events = pa.table(
        {"stream_id": ids, "query_id": [1, 1, 1], "t": [0, 1, 2], "event": ["I", "I", "O"]}
    )
    moved = transition_tables(events, within=5, time="t")
    assert moved.schema.field("stream_id").type == kind
    assert moved["stream_id"].to_pylist() == [Decimal("1.50")]
    rows = pa.table({"id": [0, 1, 2], "t": [0, 0, 0], "k": ids})
    stream = stream_tables(
        TimingCondition(within(0, 0), 1.0), left_delay=0, right_delay=0, by="k", **TIMES
    )
    stream.push("left", rows)
    assert stream.push("right", rows).num_rows == 5
