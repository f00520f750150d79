"""A streaming DataFrame as a side: the one shape that serves, and words for all others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from coincide import (
    ConditionError,
    CorrelateOptions,
    TimingCondition,
    correlate,
    correlate_tables,
    within,
)
from tests.helpers.histogram_tables import (
    by_device,
    events,
    in_order,
    random_templates,
    with_ends,
)
from tests.helpers.rows import lists_in_order
from tests.spark_plugin.ways.files.test_direct_join import stream

pytestmark = pytest.mark.spark
CONDITION = TimingCondition(within(-300, 100), 0.7)
TABLES = {"left": stream(900, 1), "right": stream(600, 2)}
LENGTHS: dict[str, Any] = {"left_longest": 200, "right_longest": 200}
BATCHES = 3
SCHEMA = "id bigint, min_time bigint, max_time bigint"


def streaming(
    spark: SparkSession,
    folder: Path,
    side: str,
    table: pa.Table | None = None,
    schema: str = SCHEMA,
) -> DataFrame:
    """A side as a stream of files, each a micro-batch."""
    table = TABLES[side] if table is None else table
    folder = folder / side
    folder.mkdir()
    rows = table.num_rows // BATCHES
    for i in range(BATCHES):
        pq.write_table(table.slice(i * rows, rows), folder / f"{i}.parquet")
    reader = spark.readStream.schema(schema)
    return reader.option("maxFilesPerTrigger", 1).parquet(str(folder))


def sides(spark: SparkSession, folder: Path, *streams: str) -> list[DataFrame]:
    return [
        streaming(spark, folder, side) if side in streams else spark.createDataFrame(TABLES[side])
        for side in TABLES
    ]


def streamed(found: DataFrame, name: str) -> pa.Table:
    """All that a streaming query finds, in as many micro-batches as there are files."""
    writer = found.writeStream.format("memory").queryName(name).outputMode("append")
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert sum(progress["numInputRows"] > 0 for progress in query.recentProgress) == BATCHES
    return found.sparkSession.table(name).toArrow()


@pytest.mark.parametrize(
    ("stream_side", "how", "emit"),
    [
        ("left", "inner", "pairs"),
        ("left", "left", "lists"),
        ("left", "left", "best"),
        ("left", "anti", "pairs"),
        ("right", "inner", "pairs"),
    ],
)
def test_a_stream_and_a_static_side_that_goes_to_every_worker(
    spark: SparkSession, tmp_path: Path, stream_side: str, how: Any, emit: Any
) -> None:
    static = "right" if stream_side == "left" else "left"
    options = CorrelateOptions(way=f"broadcast-{static}", **LENGTHS)
    shape = {"how": how, "emit": emit}
    found = correlate(*sides(spark, tmp_path, stream_side), CONDITION, options=options, **shape)
    expected = correlate_tables(TABLES["left"], TABLES["right"], CONDITION, **shape)
    assert expected.num_rows
    assert lists_in_order(streamed(found, f"found_{stream_side}_{how}_{emit}")) == lists_in_order(
        expected
    )


def test_a_stream_of_events_with_templates(spark: SparkSession, tmp_path: Path) -> None:
    """What a template reaches is known of the stream: no length is to be declared."""
    tables = {"left": events(1, 300), "right": with_ends(events(2, 300))}
    given: dict[str, Any] = {
        "left_time": by_device(random_templates(1)), "right_time": ("min_time", "seen_at"),
        "by": "place", "how": "left", "emit": "best", "probability": True,
    }  # fmt: skip
    condition = TimingCondition(within(-30, 50), 0.55)
    schema = "id bigint, device string, seen_at bigint, place string"
    found = correlate(
        streaming(spark, tmp_path, "left", tables["left"], schema),
        spark.createDataFrame(tables["right"]), condition, **given,
        options=CorrelateOptions(way="broadcast-right", right_longest=200),
    )  # fmt: skip
    expected = correlate_tables(tables["left"], tables["right"], condition, **given)
    assert expected["right_id"].null_count < expected.num_rows
    assert in_order(streamed(found, "found_templates")) == in_order(expected)


@pytest.mark.parametrize(
    ("streams", "options", "shape", "words"),
    [
        (
            ["left"],
            {},
            {},
            'Add way="broadcast-right", left_longest=..., right_longest=... to Corr',
        ),
        (
            ["right"],
            {},
            {},
            'Add way="broadcast-left", left_longest=..., right_longest=... to Corr',
        ),
        (
            ["left"],
            {**LENGTHS},
            {},
            'the static right side must .* Add way="broadcast-right" to Corr',
        ),
        (["left"], {**LENGTHS, "way": "broadcast-left"}, {}, 'Add way="broadcast-right" to Corr'),
        (["left"], {**LENGTHS, "way": "broadcast"}, {}, 'Add way="broadcast-right" to Corr'),
        (
            ["left"],
            {**LENGTHS, "way": "exchange"},
            {},
            'way="broadcast-right"',
        ),
        (
            ["left"],
            {"way": "broadcast-right", "left_longest": 9},
            {},
            r"Add right_longest=\.\.\. to",
        ),
        (
            ["left"],
            {**LENGTHS, "way": "broadcast-right", "invalid": "drop"},
            {},
            'Add invalid="raise" to Corr',
        ),
        (
            ["right"],
            {**LENGTHS, "way": "broadcast-left"},
            {"how": "left"},
            "Or give the stream as left",
        ),
        (
            ["right"],
            {**LENGTHS, "way": "broadcast-left"},
            {"emit": "best"},
            "emit='pairs'. Or give",
        ),
        (
            ["left", "right"],
            {**LENGTHS, "way": "exchange"},
            {},
            r"both streaming.* Use correlate_streams",
        ),
    ],
)
def test_other_shapes_are_refused(
    spark: SparkSession,
    tmp_path: Path,
    streams: list[str],
    options: dict[str, Any],
    shape: dict[str, Any],
    words: str,
) -> None:
    frames = sides(spark, tmp_path, *streams)
    with pytest.raises(ConditionError, match=words):
        correlate(*frames, CONDITION, options=CorrelateOptions(**options), **shape)
