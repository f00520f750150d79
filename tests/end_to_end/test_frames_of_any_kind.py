"""Tables of other libraries, by Arrow's C stream, are tables for `correlate_tables`."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import coincide

TABLE = pa.table(
    {"id": [1, 2, 3], "min_time": [0, 5, 50], "max_time": [3, 9, 60], "key": ["a", "b", "b"]}
)
CONDITION = coincide.TimingCondition(coincide.within(-2, 2), 0.5)


class Stream:
    """A stream that can be read only once, of an unknown class."""

    def __init__(self, table: pa.Table) -> None:
        self._reader = table.to_reader(max_chunksize=1)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._reader.__arrow_c_stream__(requested_schema)


def polars(table: pa.Table) -> Any:
    return pytest.importorskip("polars").from_arrow(table)


def polars_categories(table: pa.Table) -> Any:
    frame = polars(table)
    return frame.with_columns(frame["key"].cast(pytest.importorskip("polars").Categorical))


def duckdb(table: pa.Table) -> Any:
    return pytest.importorskip("duckdb").from_arrow(table)


KINDS = {
    "pandas": lambda table: table.to_pandas(),
    "pandas with an index": lambda table: table.to_pandas().set_index(pd.Index([7, 9, 5])),
    "polars": polars,
    "polars categories": polars_categories,
    "duckdb": duckdb,
    "reader": lambda table: table.to_reader(),
    "batch": lambda table: table.to_batches()[0],
    "stream": Stream,
}


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_is_that_of_arrow(kind: str, side: str) -> None:
    tables = {"left": TABLE, "right": TABLE}
    given = {"by": "key", "left_columns": ["id", "key"], "emit": "lists"}
    expected = coincide.correlate_tables(**tables, condition=CONDITION, **given)
    tables[side] = KINDS[kind](TABLE)
    found = coincide.correlate_tables(**tables, condition=CONDITION, **given)
    assert isinstance(found, pa.Table)
    assert found.to_pylist() == expected.to_pylist()


def test_what_is_not_there_yet_is_told_apart() -> None:
    frame = polars(TABLE).lazy()
    with pytest.raises(
        coincide.SchemaError, match=r"right must be a table.*polars.LazyFrame.. Use .col"
    ):
        coincide.correlate_tables(TABLE, frame, CONDITION)


MIXED = TABLE.to_pandas().assign(note=[7, "word", None], odd=[1j, 2j, 3j])


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize(("column", "why"), [("note", "convert 'word'"), ("odd", "numpy type")])
def test_a_column_that_arrow_cannot_take(side: str, column: str, why: str) -> None:
    tables = {"left": TABLE, "right": TABLE, side: MIXED}
    given = {f"{side}_columns": ["id", column]}
    with pytest.raises(coincide.SchemaError, match=rf"{side}: .*the column '{column}'.*{why}"):
        coincide.correlate_tables(**tables, condition=CONDITION, **given)


def test_columns_that_nobody_needs_are_not_converted() -> None:
    expected = coincide.correlate_tables(TABLE, TABLE, CONDITION)
    assert coincide.correlate_tables(MIXED, MIXED, CONDITION).equals(expected)
    by_index = MIXED.drop(columns=["note", "odd"]).set_index("id")
    assert coincide.correlate_tables(by_index, TABLE, CONDITION).equals(expected)


def test_a_frame_with_columns_of_one_name() -> None:
    twice = pd.concat([MIXED, MIXED[["note"]]], axis=1)
    expected = coincide.correlate_tables(TABLE, TABLE, CONDITION)
    assert coincide.correlate_tables(twice, TABLE, CONDITION).equals(expected)
    with pytest.raises(coincide.SchemaError, match="left has 2 columns called 'note'"):
        coincide.correlate_tables(twice, TABLE, CONDITION, left_columns="note")


@pytest.mark.parametrize("kind", ["pandas", "polars", "stream"])
def test_a_missing_column_is_named_beside_those_there(kind: str) -> None:
    with pytest.raises(coincide.SchemaError, match=r"left has no column 'nope' .found 'id', 'min"):
        coincide.correlate_tables(KINDS[kind](TABLE), TABLE, CONDITION, left_columns="nope")


class StreamOfSpark(Stream):
    """A DataFrame of Spark 4.2, which has a stream as well."""

    def toArrow(self) -> pa.Table:
        raise AssertionError


@pytest.mark.spark
def test_a_spark_dataframe_is_no_table(spark: SparkSession) -> None:
    for given in (spark.createDataFrame(TABLE), StreamOfSpark(TABLE)):
        with pytest.raises(coincide.SchemaError, match=r"Use .*\.toArrow\(\) of a Spark DataFrame"):
            coincide.correlate_tables(given, TABLE, CONDITION)


@pytest.mark.spark
def test_a_table_is_no_right_dataframe(spark: SparkSession) -> None:
    frame = spark.createDataFrame(TABLE)
    with pytest.raises(coincide.SchemaError, match="right must be a"):
        coincide.correlate(frame, TABLE.to_pandas(), CONDITION)
    with pytest.raises(coincide.SchemaError, match="right must be a"):
        coincide.accidental_pairs(frame, TABLE.to_pandas(), CONDITION, shifts=["30s"])
