"""Durations and casts in conditions on pairs: what SQL says, against DuckDB."""

from __future__ import annotations

import datetime as dt
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from coincide import CoincideError, ConditionError, correlate_tables

ANY: dict[str, Any] = {
    "within": ("-9d", "9d"),
    "confidence": 1.0,
    "left_time": "t",
    "right_time": "t",
}
START = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
LEFT = pa.table(
    {
        "id": range(6),
        "t": [START + dt.timedelta(seconds=7 * n) for n in range(6)],
        "s": ["1", " 2", "3", None, "05", "6"],
        "x": [0.5, 1.5, -2.5, 3.0, None, 6.9],
        "lag": pa.array([0, 5_000_000, 7_000_000, None, -5_000_000, 1], pa.duration("us")),
        "n": [0, 1, 2, 3, 4, 5],
    }
)
RIGHT = LEFT.slice(2)
TEXTS = [
    "right_t - left_t <= INTERVAL '5' SECOND", "right_t - left_t <= INTERVAL 14 SECONDS",
    "right_t BETWEEN left_t - INTERVAL '7' SECOND AND left_t + INTERVAL '21' SECOND",
    "right_t - left_t > INTERVAL '7 seconds'", "right_t > left_t + left_n * INTERVAL '3' SECOND",
    "abs(right_n - left_n) * INTERVAL '7' SECOND = right_t - left_t",
    "left_lag = INTERVAL '5' SECOND", "left_lag > -INTERVAL '1' SECOND",
    "CAST(left_s AS BIGINT) = right_n", "CAST(left_s AS INTEGER) BETWEEN 2 AND right_n",
    "CAST(right_n AS VARCHAR) = left_s", "CAST(left_t AS DATE) = DATE '2024-05-01' AND left_n > 2",
    "CAST(left_n AS DOUBLE) / 2 < right_x", "CAST(left_n AS BOOLEAN)",
]  # fmt: skip


@pytest.mark.parametrize("where", TEXTS)
def test_durations_and_casts_are_a_databases(where: str) -> None:
    left, right = LEFT, RIGHT
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    database.register("a", left.rename_columns([f"left_{n}" for n in left.column_names]))
    database.register("b", right.rename_columns([f"right_{n}" for n in right.column_names]))
    rows = f"SELECT left_id, right_id FROM a, b WHERE {where} ORDER BY ALL"
    expected = database.execute(rows).fetchall()
    found = correlate_tables(left, right, where=where, **ANY)
    assert sorted(zip(*(c.to_pylist() for c in found.columns), strict=True)) == expected
    assert 0 < len(expected) < 24, expected


def test_what_no_two_systems_have_alike() -> None:
    def ids(where: str) -> list[int]:
        found = correlate_tables(LEFT, LEFT, where=where, how="semi", **ANY)
        return sorted(found["left_id"].to_pylist())

    assert ids("(right_t - left_t) / INTERVAL '1' SECOND = 35") == [0]
    assert ids("left_lag / INTERVAL '0' SECOND > 0") == []
    assert ids("left_lag * 0.5 = INTERVAL '2.5' SECOND") == [1]
    assert ids("left_lag / 2 = INTERVAL '3500' MILLISECONDS") == [2]
    assert ids("left_t < TIMESTAMP '2024-05-01T00:00:00Z' + INTERVAL '0' HOUR 10 SECONDS") == [0, 1]
    assert ids("right_t = left_t + INTERVAL '0.35' MINUTE") == [0, 1, 2]
    assert ids("CAST(left_x AS BIGINT) = -2") == [2]  # cut off, as Spark does


@pytest.mark.parametrize(
    ("where", "words"),
    [
        (
            "left_lag > 5",
            "duration.us. and int.* are not two durations. Write the number as INTERVAL",
        ),
        ("right_t - left_t IN (5)", "are not two durations"),
        ("left_lag + 1 > left_lag", "are not two durations"),
        (
            "left_t > INTERVAL '1' MONTH",
            "takes a number and one of NANOSECOND, .*found 1 MONTH",
        ),
        ("left_t > INTERVAL 'x' DAY", "INTERVAL takes a number"),
        ("CAST(left_t AS BIGINT) = 1", "is ambiguous. Compare times with TIMESTAMP"),
        ("CAST(left_x AS STRING) = '1'", "is ambiguous. Compare numbers"),
        ("CAST(left_lag AS BIGINT) = 1", "Divide it by INTERVAL '1' SECOND"),
        ("CAST(left_s AS JSON) = 1", "CAST takes BIGINT, INT"),
        ("CAST(left_s BIGINT) = 1", "'BIGINT' is not expected there"),
        ("CAST(left_s AS BIGINT = 1", r"\) is missing. Use"),
    ],
)
def test_what_has_no_one_meaning(where: str, words: str) -> None:
    with pytest.raises(ConditionError, match=words):
        correlate_tables(LEFT, RIGHT, where=where, **ANY)


def test_a_text_that_is_no_number_is_an_error() -> None:
    odd = LEFT.set_column(2, "s", pa.array(["x"] * 6))
    with pytest.raises(CoincideError, match="found 'x', which does not read as int64"):
        correlate_tables(odd, RIGHT, where="CAST(left_s AS BIGINT) = 1", **ANY)
