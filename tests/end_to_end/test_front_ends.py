"""Each feature by each front end: it gives what tables give, or is refused in words."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from coincide import (
    CoincideError,
    CorrelateOptions,
    TimingCondition,
    correlate,
    correlate_streams,
    correlate_tables,
    stream_tables,
    within,
)
from spark_plugin.ways.files.source import CoincideSource
from spark_plugin.ways.streaming.arguments import STATE_STORE
from tests.helpers.joins import local_files_join
from tests.helpers.rows import lists_in_order
from tests.helpers.spark_cases import frame
from tests.helpers.spark_streams import as_json, stream_of, streamed, write_files
from tests.helpers.workplace import Workplace, events

LEFT = events(
    id=[0, 1, 2, 3, 4, 5], min_time=[0, 10, 20, 30, 500, 900], max_time=[4, 14, 24, 34, 501, 901],
    key=["a", "a", "b", "b", "c", "c"],
)  # fmt: skip
RIGHT = events(
    id=[0, 1, 2, 3, 4], min_time=[1, 11, 21, 90, 502], max_time=[5, 15, 25, 94, 503],
    key=["a", "a", "b", "b", "c"],
)  # fmt: skip
CONDITION = TimingCondition(within(-12, 15), 0.5)
SCHEMA = "id bigint, min_time bigint, max_time bigint, key string"
IN_MILLISECONDS = CorrelateOptions(unit="ms", left_longest=20, right_longest=20)
WORDS = ("--within", "-12", "15", "--confidence", "0.5")


class Feature(NamedTuple):
    """The question, and the words with which a front end refuses it; None: it works there."""

    given: dict[str, Any]
    by_files: str | None = None
    by_streams: str | None = None
    by_source: str | None = None
    by_queries: str | None = None


WHOLE = "needs whole tables. In streams swap the sides"
SLICES = "compares pairs of different slices of files. Use a broadcast"
SOURCE = "the data source reads slices one by one"
STATE = "compares pairs of several slices, which are closed one after the other"
AGGREGATES = {"n": "count", "sum": ("id", "sum"), "last": ("key", "last"), "soon": ("delta", "min")}
NEAREST = {"emit": "best", "prefer": "nearest"}
FEATURES = {
    "keys": Feature({"by": "key"}),
    "how='left'": Feature({"how": "left"}),
    "how='semi'": Feature({"how": "semi"}),
    "how='anti'": Feature({"how": "anti"}),
    "how='right'": Feature({"how": "right"}, by_streams=WHOLE),
    "how='full'": Feature({"how": "full"}, by_streams=WHOLE),
    "emit='lists'": Feature({"emit": "lists"}),
    "emit='counts'": Feature({"emit": "counts"}),
    "emit='best'": Feature(NEAREST),
    "k": Feature(NEAREST | {"k": 2}),
    "ties": Feature(NEAREST | {"ties": "all"}, by_streams="unexpected keyword argument 'ties'"),
    "best of right": Feature(
        NEAREST | {"how": "right"},
        by_streams=WHOLE,
        by_queries="asks for right ones. Swap the sides",
    ),
    "aggregates": Feature({"emit": "aggregates", "how": "left", "aggregates": AGGREGATES}),
    "aggregates of pairs": Feature(
        {"emit": "aggregates", "where": "left_key = right_key", "aggregates": AGGREGATES}
    ),
    "aggregates of right": Feature(
        {
            "emit": "aggregates",
            "how": "right",
            "aggregates": {"n": "count", "soon": ("delta", "min")},
        },
        by_streams=WHOLE,
        by_queries="asks for right ones. Swap the sides",
    ),
    "event before": Feature(
        {
            "emit": "aggregates",
            "left_time": "min_time",
            "right_time": "max_time",
            "aggregates": {"n": "count", "last": ("max_time", "last")},
            "including": "previous",
        },
        by_streams="unexpected keyword argument 'including'",
        by_queries="may need an event of any age",
    ),
    "expected numbers": Feature(
        {
            "emit": "aggregates",
            "aggregates": {"n": "count", "id": ("id", "mean")},
            "weights": "probability",
        }
    ),
    "prefer a column": Feature({"emit": "best", "prefer": "-id"}),
    "where": Feature({"where": "left_key = right_key"}),
    "mutual": Feature({"matching": "mutual"}, by_files=SLICES, by_source=SOURCE, by_queries=STATE),
    "unambiguous": Feature(
        {"matching": "unambiguous"}, by_files=SLICES, by_source=SOURCE, by_queries=STATE
    ),
    "optimal": Feature(
        {"matching": "optimal"},
        by_files=SLICES,
        by_source=SOURCE,
        by_streams="in a stream a group may never end",
        by_queries=STATE,
    ),
    "probability": Feature({"probability": True}),
    "delta": Feature(
        {"pair_columns": "delta"}, by_streams="unexpected keyword argument 'pair_columns'"
    ),
    "exact times": Feature({"left_time": "min_time", "right_time": "max_time"}),
}


@pytest.fixture
def inputs(work: Workplace) -> Workplace:
    for path, table in ((work.left, LEFT), (work.right, RIGHT)):
        pq.write_table(table, path)
    return work


def by_files(inputs: Workplace, **given: Any) -> pa.Table:
    options = CorrelateOptions(way="files", slices=2)
    job = local_files_join(inputs.left, inputs.right, CONDITION, options=options, **given)
    return pa.Table.from_batches(job.batches(), job.schema)


def by_streams(inputs: Workplace, **given: Any) -> pa.Table:
    stream = stream_tables(CONDITION, left_delay=100, right_delay=100, **given)
    found = [stream.push("left", LEFT), stream.push("right", RIGHT), stream.flush()]
    return pa.concat_tables(table for table in found if table.num_columns)


def worded(value: Any) -> str:
    """A value as front ends of texts take it."""
    if not isinstance(value, dict):
        return str(value)
    asked = {name: (each, "*") if each == "count" else each[::-1] for name, each in value.items()}
    return ",".join(f"{name}={function}({column})" for name, (function, column) in asked.items())


def by_command(inputs: Workplace, **given: Any) -> pa.Table:
    called = {name: name.replace("_", "-").replace("aggregates", "aggregate") for name in given}
    words = [
        f"--{called[name]}" + ("" if value is True else f"={worded(value)}")
        for name, value in given.items()
    ]
    code, _, told = inputs.join(*WORDS, *words)
    if code:
        raise ValueError(told)
    return inputs.result()


FRONT_ENDS: dict[str, Callable[..., pa.Table]] = {
    "by_files": by_files, "by_streams": by_streams, "by_command": by_command,
}  # fmt: skip


@pytest.mark.parametrize("front_end", FRONT_ENDS)
@pytest.mark.parametrize("name", FEATURES)
def test_a_feature_works_or_is_refused(inputs: Workplace, front_end: str, name: str) -> None:
    feature = FEATURES[name]
    refusal = {"by_files": feature.by_files, "by_streams": feature.by_streams}.get(front_end)
    if refusal is not None:
        with pytest.raises((CoincideError, TypeError), match=refusal):
            FRONT_ENDS[front_end](inputs, **feature.given)
        return
    expected = correlate_tables(LEFT, RIGHT, CONDITION, **feature.given)
    assert expected.num_rows > 0
    found = FRONT_ENDS[front_end](inputs, **feature.given)
    assert found.schema.names == expected.schema.names
    assert found.schema.types == expected.schema.types
    assert lists_in_order(found) == lists_in_order(expected)


def by_frames(spark: SparkSession, inputs: Workplace, **given: Any) -> DataFrame:
    return correlate(frame(spark, LEFT), frame(spark, RIGHT), CONDITION, **given)


def by_source(spark: SparkSession, inputs: Workplace, **given: Any) -> DataFrame:
    spark.dataSource.register(CoincideSource)
    words = {name: worded(value).lower() for name, value in given.items()}
    paths = {"left": str(inputs.left), "right": str(inputs.right)}
    asked = {"within": "-12,15", "confidence": "0.5", **paths, **words}
    return spark.read.format("coincide").options(**asked).load()


@pytest.mark.spark
@pytest.mark.parametrize("front_end", [by_frames, by_source])
@pytest.mark.parametrize("name", FEATURES)
def test_a_feature_on_spark(
    spark: SparkSession, inputs: Workplace, front_end: Callable[..., DataFrame], name: str
) -> None:
    feature = FEATURES[name]
    if front_end is by_source and feature.by_source is not None:
        with pytest.raises(AnalysisException, match=feature.by_source):
            front_end(spark, inputs, **feature.given)
        return
    expected = correlate_tables(LEFT, RIGHT, CONDITION, **feature.given)
    rows = front_end(spark, inputs, **feature.given).toArrow()
    assert rows.schema.names == expected.schema.names
    assert lists_in_order(rows) == lists_in_order(expected)


def streams_of(spark: SparkSession, folder: Path) -> list[DataFrame]:
    """Both sides as streams, each ended by an event far later, which is not final itself."""
    last = events(id=[-1], min_time=[10**9], max_time=[10**9], key=["z"])
    streams = []
    for name, table in (("left", LEFT), ("right", RIGHT)):
        files = write_files(folder / name, [table, last])
        streams.append(stream_of(spark, files, SCHEMA))
    return streams


IN_A_QUERY = ("keys", "how='left'", "emit='lists'", "emit='best'", "where", "delta", "aggregates")
"""Each takes seconds: those that differ in what a query keeps and gives out."""


@pytest.mark.slow
@pytest.mark.spark
def test_features_of_streaming_queries(spark: SparkSession, tmp_path: Path) -> None:
    """One query has several features, and all that do not work are refused."""
    for setting, value in STATE_STORE.items():
        spark.conf.set(setting, value)
    left, right = streams_of(spark, tmp_path)
    frames, expected = [], {}
    for name, feature in FEATURES.items():
        delays = {"left_delay": 100, "right_delay": 100, "name": f"join{len(frames)}"}
        given = {"options": IN_MILLISECONDS, **feature.given}
        if feature.by_queries is not None:
            with pytest.raises(CoincideError, match=feature.by_queries):
                correlate_streams(left, right, CONDITION, **delays, **given)
            continue
        if name not in IN_A_QUERY:
            continue
        rows = correlate_streams(left, right, CONDITION, **delays, **given)
        expected[name] = correlate_tables(LEFT, RIGHT, CONDITION, **given)
        types = to_arrow_schema(rows.schema)
        assert types.names == expected[name].schema.names, name
        frames.append(rows.select(F.lit(name).alias("feature"), as_json()))
    texts, _ = streamed(reduce(DataFrame.unionAll, frames), "features")
    for name, table in expected.items():
        rows = pa.Table.from_pylist(
            [json.loads(text) for of, text in texts if of == name], schema=table.schema
        )
        assert lists_in_order(rows) == lists_in_order(table), name
