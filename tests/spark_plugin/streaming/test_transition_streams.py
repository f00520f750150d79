"""Region transitions of streams: those of a DataFrame of all events that are not late."""

from __future__ import annotations

import itertools
import json
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from coincide import ConditionError, CorrelateOptions, transition_streams, transitions
from spark_plugin.ways.streaming.arguments import STATE_STORE
from tests.helpers.spark_cases import frame
from tests.helpers.spark_streams import (
    BEGIN,
    FAR,
    appended,
    as_json,
    multiset,
    stream_of,
    write_files,
)
from tests.helpers.transition_cases import stream_rows

pytestmark = pytest.mark.spark
SCHEMA = "zone bigint, car string, event string, first bigint, last bigint"
USUAL: dict[str, Any] = {
    "within": 400, "query": "zone", "stream": "car",
    "options": CorrelateOptions(unit="ms", invalid="drop"),
}  # fmt: skip
CASES: dict[str, dict[str, Any]] = {
    "intervals": {"confidence": 0.7, "time": ("first", "last"), "repeated": "first"},
}
LONGEST, DELAY, SPAN = 60, 300, 20_000


def events(random: np.random.Generator, n: int, batches: int) -> list[pa.Table]:
    """Events in the order in which they come, many at one midpoint, and the last one of all."""
    midpoints = BEGIN + random.integers(0, SPAN, n) // 40 * 40
    half = random.choice([0, 5, LONGEST // 2], n)
    order = np.argsort(midpoints + half + random.integers(0, DELAY, n), kind="stable")
    table = pa.table({
        "zone": random.integers(0, 3, n), "car": [f"c{k}" for k in random.integers(0, 4, n)],
        "event": [("O", "I")[k] for k in random.integers(0, 2, n)],
        "first": midpoints - half, "last": midpoints + half,
    }).take(pa.array(order))  # fmt: skip
    cuts = np.linspace(0, n, batches + 1).astype(int).tolist()
    files = [table.slice(a, b - a) for a, b in itertools.pairwise(cuts)]
    last = {"zone": [9], "car": ["last"], "event": ["I"], "first": [FAR], "last": [FAR]}
    return [*files, pa.table(last, schema=table.schema)]


@pytest.mark.slow
def test_transitions_are_those_of_a_frame(spark: SparkSession, tmp_path: Path) -> None:
    for name, value in STATE_STORE.items():
        spark.conf.set(name, value)
    files = events(np.random.default_rng(2), 500, 4)
    late = files[0].slice(0, 2)
    too_long = pa.table(
        {
            "zone": [0],
            "car": ["c0"],
            "event": ["I"],
            "first": [BEGIN],
            "last": [BEGIN + LONGEST + 1],
        },
        schema=late.schema,
    )
    written = [pa.concat_tables([files[0], too_long]), *files[1:], late]
    folder, progress = tmp_path / "events", []
    for until in (3, 6):  # the second query goes on where the first one has ended
        stream = stream_of(spark, write_files(folder, written[:until]), SCHEMA)
        found = [
            transition_streams(
                stream, **{**USUAL, **more}, delay=DELAY, slice_length=700, name=name,
                longest=LONGEST if name == "intervals" else None,
            ).select(F.lit(name).alias("name"), as_json())
            for name, more in CASES.items()
        ]  # fmt: skip
        progress += appended(reduce(DataFrame.unionAll, found), tmp_path)
    rows = [tuple(row) for row in spark.read.parquet(str(tmp_path / "found")).collect()]
    for name, more in CASES.items():
        own = [json.loads(text) for case, text in rows if case == name]
        batch = frame(spark, pa.concat_tables(files[:-1]))
        wanted = stream_rows(transitions(batch, **{**USUAL, **more}, until=FAR - 10_000).toArrow())
        assert len({row["transition"] for row in wanted}) == 4
        assert multiset(own) == multiset(wanted)
        counted = [each["observedMetrics"][f"{name}_late"]["events"] for each in progress]
        assert sum(counted) == late.num_rows
        rows_told = [each["observedMetrics"][f"{name}_events"] for each in progress]
        assert sum(each["invalid"] for each in rows_told) == too_long.num_rows


def test_what_is_refused(spark: SparkSession) -> None:
    for name, value in STATE_STORE.items():
        spark.conf.set(name, value)
    rate = spark.readStream.format("rate").load()
    stream = rate.selectExpr("1L AS zone", "'a' AS car", "'I' AS event", "timestamp AS first",
                             "timestamp AS last")  # fmt: skip
    own: dict[str, Any] = {
        "query": "zone", "stream": "car", "within": "3min", "confidence": 0.9, "delay": "5s",
    }  # fmt: skip
    with pytest.raises(ConditionError, match=r"longest is missing.*longest='1min'"):
        transition_streams(stream, time=("first", "last"), **own)
    with pytest.raises(ConditionError, match=r"slice_length='1us' is too short.* 1,000 ticks"):
        transition_streams(stream, time="last", slice_length="1us", **own)
    with pytest.raises(ConditionError, match=r"delay cannot be negative"):
        transition_streams(stream, time="last", **{**own, "delay": "-1s"})
    with pytest.raises(ConditionError, match=r"clock must be a streaming DataFrame"):
        transition_streams(stream, time="last", clock=stream, **own)
    static = spark.createDataFrame([(1, 2)], "zone bigint, last bigint")
    with pytest.raises(ConditionError, match=r"events are a static DataFrame.*Use transitions,"):
        transition_streams(static, time="last", **own)
