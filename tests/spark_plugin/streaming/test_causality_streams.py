"""Causality of streams: that of the tables of all rows that are not late."""

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

from coincide import (
    CausalityCondition,
    ConditionError,
    CorrelateOptions,
    Propagation,
    Spatial,
    Temporal,
    causality_streams,
    causality_tables,
)
from spark_plugin.ways.streaming.arguments import STATE_STORE
from tests.helpers.spark_streams import (
    BEGIN,
    as_json,
    multiset,
    stream_of,
    streamed,
    write_files,
)

pytestmark = pytest.mark.spark
SCHEMA = "id bigint, time bigint, x double, y double, key string"
CONDITION = CausalityCondition([Temporal(0, "900ms"), Spatial(6), Propagation("700ms", speed=20.0)])
USUAL: dict[str, Any] = {
    "cause_time": "time", "cause_place": ("x", "y"), "by": "key",
    "options": CorrelateOptions(unit="ms"),
}  # fmt: skip
DELAY, SPAN = 300, 8_000


def events(random: np.random.Generator, n: int, batches: int) -> list[pa.Table]:
    """Events in the order in which they come, some without a place, and the last one of all."""
    times = BEGIN + random.permutation(SPAN)[:n]
    order = np.argsort(times + random.integers(0, DELAY, n), kind="stable")
    null = random.random(n) < 0.05
    table = pa.table({
        "id": np.arange(n), "time": times, "x": pa.array(random.integers(-9, 9, n) / 2.0, mask=null),
        "y": random.integers(-9, 9, n) / 2.0,
        "key": pa.array([f"k{k}" for k in random.integers(0, 3, n)]),
    }).take(pa.array(order))  # fmt: skip
    cuts = np.linspace(0, n, batches + 1).astype(int).tolist()
    files = [table.slice(a, b - a) for a, b in itertools.pairwise(cuts)]
    last = {"id": [-1], "time": [BEGIN + 10**8], "x": [0.0], "y": [0.0], "key": ["k0"]}
    return [*files, pa.table(last, schema=table.schema)]


@pytest.mark.slow
def test_pairs_are_those_of_tables(spark: SparkSession, tmp_path: Path) -> None:
    for name, value in STATE_STORE.items():
        spark.conf.set(name, value)
    random = np.random.default_rng(4)
    files = [events(random, 300, 3) for _ in range(2)]
    late = files[1][0].slice(0, 2)
    folders = [
        write_files(tmp_path / str(i), each) for i, each in enumerate([files[0], [*files[1], late]])
    ]
    causes, effects = (stream_of(spark, folder, SCHEMA) for folder in folders)
    shapes: dict[str, dict[str, Any]] = {"pairs": {"how": "left"}}
    two = {"cause_delay": f"{DELAY}ms", "effect_delay": f"{DELAY}ms", "late": "rows"}
    found = [
        causality_streams(causes, effects, CONDITION, **USUAL, **more, **two, name=name)
        for name, more in shapes.items()
    ]
    found.append(causality_streams(causes, None, CONDITION, **USUAL, cause_delay=DELAY, name="one"))
    named = [
        each.select(F.lit(name).alias("name"), as_json())
        for name, each in zip([*shapes, "one"], found, strict=True)
    ]
    rows, progress = streamed(reduce(DataFrame.unionAll, named), "causality")
    read = [source["numInputRows"] for source in progress[0]["sources"]]
    assert read == [200, 100]  # 100 rows of each by a join, and one stream once
    tables = [pa.concat_tables(each[:-1]) for each in files]
    for name, sides, more in [
        *((name, tables, more) for name, more in shapes.items()), ("one", [tables[0], None], {}),
    ]:  # fmt: skip
        own = [json.loads(text) for case, text in rows if case == name]
        lates = [row for row in own if row.pop("late", None)]
        wanted = causality_tables(*sides, CONDITION, **USUAL, **more).to_pylist()
        assert len(wanted) > 100
        assert multiset([row for row in own if row not in lates]) == multiset(wanted)
        assert len(lates) == (0 if name == "one" else late.num_rows)
    counted = [each["observedMetrics"]["pairs_late"] for each in progress]
    assert sum(each["effect"] for each in counted) == 2
    assert sum(each["cause"] for each in counted) == 0


def test_what_is_refused(spark: SparkSession) -> None:
    for name, value in STATE_STORE.items():
        spark.conf.set(name, value)
    rate = spark.readStream.format("rate").load()
    stream = rate.selectExpr("value AS id", "timestamp AS time", "1.0D AS x", "1.0D AS y")
    place: dict[str, Any] = {"cause_place": ("x", "y"), "cause_delay": "1s", "effect_delay": "1s"}
    unbounded = CausalityCondition([Spatial(6)])
    with pytest.raises(ConditionError, match=r"bounds no time, .* such as Temporal\(0, '1h'\)"):
        causality_streams(stream, stream, unbounded, **place)
    with pytest.raises(ConditionError, match=r"no argument 'left_time'\. Use one of causality's"):
        causality_streams(stream, stream, CONDITION, left_time="time", **place)
    with pytest.raises(ConditionError, match="effect_delay is missing"):
        causality_streams(stream, stream, CONDITION, **{**place, "effect_delay": None})
    static = spark.createDataFrame([(1, 2)], "id bigint, time bigint")
    with pytest.raises(ConditionError, match=r"effects are a static DataFrame.*Use causality,"):
        causality_streams(stream, static, CONDITION, **place)
