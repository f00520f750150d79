"""Each feature by each front end: it gives what tables give, or is refused in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from coincide import (
    CoincideError,
    CorrelateOptions,
    TimingCondition,
    correlate,
    correlate_tables,
    stream_tables,
    within,
)
from spark_plugin.ways.files.source import CoincideSource
from tests.helpers.joins import local_files_join
from tests.helpers.rows import lists_in_order
from tests.helpers.spark_cases import frame
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
WORDS = ("--within", "-12", "15", "--confidence", "0.5")


class Feature(NamedTuple):
    """The question, and the words with which a front end refuses it; None: it works there."""

    given: dict[str, Any]
    by_files: str | None = None
    by_streams: str | None = None
    by_source: str | None = None


WHOLE = "needs whole tables. In streams swap the sides"
SLICES = "compares pairs of different slices of files. Use a broadcast"
SOURCE = "the data source reads slices one by one"
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
    "best of right": Feature(NEAREST | {"how": "right"}, by_streams=WHOLE),
    "prefer a column": Feature({"emit": "best", "prefer": "-id"}),
    "where": Feature({"where": "left_key = right_key"}),
    "mutual": Feature({"matching": "mutual"}, by_files=SLICES, by_source=SOURCE),
    "unambiguous": Feature({"matching": "unambiguous"}, by_files=SLICES, by_source=SOURCE),
    "optimal": Feature(
        {"matching": "optimal"},
        by_files=SLICES,
        by_source=SOURCE,
        by_streams="in a stream a group may never end",
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


def by_command(inputs: Workplace, **given: Any) -> pa.Table:
    words = [
        f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}")
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
    words = {name: str(value).lower() for name, value in given.items()}
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
