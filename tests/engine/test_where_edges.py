"""Conditions on pairs where SQL and Arrow differ, and what users get wrong."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from coincide import correlate_tables
from coincide.model.errors import CoincideError, ConditionError, DataError, SchemaError

LEFT = pa.table(
    {
        "id": [0, 1],
        "t": [0, 10],
        "x": [0, 2],
        "small": pa.array([100, 1], pa.int8()),
        "text": ["\ta ", " b "],
        "at": pa.array([dt.datetime(2024, 1, 1)] * 2, pa.timestamp("us", "UTC")),
    }
)
RIGHT = pa.table({"id": [5, 6], "t": [1, 11]})


def found(where: str) -> list[int]:
    pairs = correlate_tables(
        LEFT, RIGHT, within=(0, 5), confidence=0.5, left_time="t", right_time="t", where=where
    )
    return pairs["left_id"].to_pylist()


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("left_x <> 0 AND 1 / left_x > 0", [1]),
        ("1 / left_x IS NULL", [0]),
        ("left_id > -9223372036854775808", [0, 1]),
        ("left_id < 9223372036854775807", [0, 1]),
        ("left_x - -1 = 1", [0]),
        ("trim(left_text) = 'b'", [1]),
        ("length(trim(left_text)) = 2", [0]),
    ],
)
def test_what_is_the_same_as_in_sql(where: str, expected: list[int]) -> None:
    assert found(where) == expected


def test_a_long_list_of_alternatives() -> None:
    ids = " OR ".join(f"left_id = {number}" for number in range(500))
    assert found(ids) == [0, 1]


def test_a_backtick_in_a_name_is_written_twice(tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2], "t": [0, 0], "a`b": [3, 4]})
    pq.write_table(table, tmp_path / "t.parquet")
    exact = {"within": 0, "left_time": "t", "right_time": "t"}
    for given in (table, table.to_pandas(), tmp_path / "t.parquet"):
        for where in ("`left_a``b` < `right_a``b`", pc.field("left_a`b") < pc.field("right_a`b")):
            pairs = correlate_tables(given, given, **exact, where=where)
            assert pairs.to_pylist() == [{"left_id": 1, "right_id": 2}]


@pytest.mark.parametrize(
    ("where", "error", "told"),
    [
        ("left_small + left_small > 0", DataError, "overflow.*a wider type"),
        ("left_id < 99999999999999999999", ConditionError, "beyond whole numbers of 64 bits"),
        ("left_x --1 > 0", ConditionError, "it has a comment, which -- or"),
        ("left_x > 0 /* all */", ConditionError, "Remove it"),
        ("CAST(left_x AS BIGINT = 1", ConditionError, r"\) is missing"),
        ("trim(left_text", ConditionError, r"\) is missing"),
        (
            "trim(BOTH 'b' FROM left_text) = ''",
            ConditionError,
            "function trim is not taken in that",
        ),
        ("trim('b' FROM left_text) = ''", ConditionError, "function trim is not taken in that"),
        ("trim(left_text, 'b') = ''", ConditionError, "trim takes 1 argument .found 2"),
        ("left_text LIKE 'b' ESCAPE 'c'", ConditionError, "is unknown"),
        ("left_x IS TRUE", ConditionError, r"IS takes NULL or NOT NULL \(found TRUE"),
        ("left_id = 1; left_id = 2", ConditionError, "is unknown"),
        ("left_text = 'b", ConditionError, "a quote is missing"),
        ("", ConditionError, "it is empty"),
        ("left_at > TIMESTAMP '2024-01-01 00:00:00'", SchemaError, "Give both an offset"),
    ],
)
def test_what_is_refused_in_one_line(where: str, error: type[CoincideError], told: str) -> None:
    with pytest.raises(error, match=told) as refused:
        found(where)
    assert "\n" not in str(refused.value)


def test_keys_are_no_mapping() -> None:
    with pytest.raises(ConditionError, match=r"found a mapping\). Write by=\[\('id', 'id'\)\]"):
        correlate_tables(LEFT, RIGHT, within=(0, 5), confidence=0.5, by={"id": "id"})  # type: ignore[arg-type]


def test_an_empty_answer_names_the_condition_on_pairs() -> None:
    with pytest.warns(UserWarning, match="a pair must also meet where, which may exclude all that"):
        assert found("left_id = 77") == []
