"""Windows of streams: what `windowed_causality` finds in all tuples that are not late."""

from __future__ import annotations

import itertools
import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from coincide import (
    CausalityCondition,
    ConditionError,
    DataError,
    Spatial,
    Temporal,
    WindowOptions,
    windowed_causality,
    windowed_causality_streams,
)
from coincide.engine.events.timestamps import IntervalModel
from coincide.engine.windowed_causality.arguments import WindowArguments
from coincide.model.windowed_causality import Policy
from spark_plugin.frames.windowed_causality import ARRIVED, TupleFrame
from spark_plugin.tasks.grid import Grid
from spark_plugin.tasks.monitors import CheckedPackTask
from spark_plugin.tasks.samples import Reach
from spark_plugin.tasks.windowed_causality import KeyedTuples, WindowTask
from spark_plugin.tasks.windowed_causality_streams import WindowMonitors, valid_tuples
from spark_plugin.tasks.wire import KEY_HASH
from spark_plugin.ways.streaming.arguments import STATE_STORE
from tests.helpers.rows import in_order
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
from tests.helpers.stream_simulation import monitored

SCHEMA = "id bigint, site string, floor int, arrival bigint, time bigint, x double, y double"
NEAR = CausalityCondition([Temporal(0, 400), Spatial(0.3)])
WHERE: Any = {"place": ("x", "y"), "arrival": "arrival", "home": (0.5, 0.5)}
SPAN, DELAY = 20_000, 300


def tuples(random: np.random.Generator, n: int) -> pa.Table:
    """Tuples in the order in which they come, many of which arrived at once."""
    arrival = BEGIN + random.integers(0, SPAN, n) // 400 * 400
    order = np.argsort(arrival + random.integers(0, DELAY, n), kind="stable")
    table = pa.table({
        "id": random.permutation(n), "site": [f"s{k}" for k in random.integers(0, 3, n)],
        "floor": pa.array(random.integers(0, 2, n), pa.int32()), "arrival": arrival,
        "time": arrival - random.integers(0, 2, n) * 50, "x": random.integers(0, 2, n) / 4,
        "y": random.integers(0, 2, n) / 4,
    })  # fmt: skip
    return table.take(pa.array(order))


def in_sparks_order(columns: KeyedTuples, wire: pa.Table) -> pa.Table:
    """Rows by key, and those of a key by arrival and all else."""
    names = [*wire.column_names[: columns.keys], *columns.order]

    def place(row: dict[str, Any]) -> list[Any]:
        values = [row[name] for name in names]
        is_nan = [isinstance(v, float) and math.isnan(v) for v in values]
        return [
            (v is not None, nan, 0 if nan or v is None else v)
            for v, nan in zip(values, is_nan, strict=True)
        ]

    return pa.Table.from_pylist(sorted(wire.to_pylist(), key=place), schema=wire.schema)


@pytest.mark.parametrize("policy", ["fifo", "fhcfo", "expected"])
@pytest.mark.parametrize("seed", range(3))
def test_pairs_are_those_of_all_tuples_that_are_not_late(seed: int, policy: Policy) -> None:
    random = np.random.default_rng([7, seed])
    given, n = tuples(random, 500), 500
    weight = np.where(random.random(n) < 0.3, np.nan, random.integers(0, 3, n) / 2)
    out = {
        "out0": pa.array(weight, mask=random.random(n) < 0.2), "out1": given["id"],
    }  # fmt: skip
    wire = pa.table({
        "key0": given["site"], "key1": given["floor"].cast(pa.int64()), "read0": given["time"],
        "read1": given["arrival"], "read2": given["x"], "read3": given["y"], **out,
        ARRIVED: given["arrival"],
        KEY_HASH: pa.array([int(s[1:]) for s in given["site"].to_pylist()]),
    })  # fmt: skip
    payload = ("payload_0", "payload_1")
    arguments = WindowArguments(
        NEAR, columns=payload, options=WindowOptions(40, policy, unit="ms"), **WHERE
    )
    order = ("read1", "read0", "read2", "read3", "out0", "out1")
    columns = KeyedTuples(arguments, 2, ("time", "arrival", "x", "y", *payload), order)
    names = ("site", "floor", *(f"{side}{k}" for side in ("cause", "effect") for k in (0, 1)),
             "delta", "distance")  # fmt: skip
    grid = Grid(
        length=int(random.integers(2, 8_000)), beyond=0, buckets=int(random.choice([1, 3])),
        reach=Reach(0, 0), useful=(1 << 62, 1 << 62), nanoseconds=10**6, keeps_right=False,
        is_one_stream=False, is_lasting=True,
    )  # fmt: skip
    kept = wire.drop_columns([ARRIVED, KEY_HASH])
    task = CheckedPackTask(
        "left", kept.schema, IntervalModel(), grid, b"{}", check=partial(valid_tuples, columns),
        ends=(ARRIVED, ARRIVED),
    )  # fmt: skip
    last = wire.slice(0, 1).to_pylist()[0] | {ARRIVED: FAR, "read1": FAR, "read0": FAR}
    cuts = np.sort(random.integers(0, n + 1, 5)).tolist()
    batches = [wire.slice(a, b - a) for a, b in itertools.pairwise([0, *cuts, n])]
    batches += [pa.Table.from_pylist([last], schema=wire.schema), wire.slice(0, 2)]
    found, late = monitored(task, WindowMonitors(names, columns), batches, DELAY)
    whole = in_sparks_order(columns, kept)
    wanted = pa.Table.from_batches(WindowTask(columns, names)(whole.to_batches()))
    assert in_order(found) == in_order(wanted)
    assert wanted.num_rows > 150
    assert late == 2


@pytest.mark.spark
@pytest.mark.parametrize("invalid", ["drop", "raise"])
def test_tuples_that_match_nothing_and_invalid_ones(spark: SparkSession, invalid: Any) -> None:
    rows = tuples(np.random.default_rng(1), 8).to_pylist()
    for k, change in enumerate([
        {"x": math.inf}, {"time": 2**62}, {"arrival": -(2**62)}, {"site": None, "y": -math.inf},
        {"x": None}, {"y": math.nan}, {"arrival": None, "x": math.inf}, {"floor": None},
    ]):  # fmt: skip
        rows[k] |= change
    table = pa.Table.from_pylist([*rows, rows[0] | {"x": 0.5}])
    options = WindowOptions(unit="ms", invalid=invalid)
    given = TupleFrame.of(
        frame(spark, table), WindowArguments(NEAR, options=options, **WHERE), ["site", "floor"]
    )
    kept = given.stream_rows("seen").toArrow()
    assert kept.num_rows == (1 if invalid == "drop" else 5)
    if invalid == "raise":
        with pytest.raises(DataError, match="infinite coordinates"):
            valid_tuples(given.tuples, kept)
    else:
        assert valid_tuples(given.tuples, kept) is kept


@pytest.mark.slow
@pytest.mark.spark
def test_pairs_are_those_of_a_frame(spark: SparkSession, tmp_path: Path) -> None:
    for name, value in STATE_STORE.items():
        spark.conf.set(name, value)
    table = tuples(np.random.default_rng(3), 600)
    files = [table.slice(start, 150) for start in range(0, 600, 150)]
    late, infinite = files[0].slice(0, 3), files[1].slice(0, 1).to_pylist()[0] | {"x": math.inf}
    files[1] = pa.concat_tables([files[1], pa.Table.from_pylist([infinite], schema=table.schema)])
    last = pa.Table.from_pylist(
        [{"site": "last", "arrival": FAR, "time": FAR, "x": 0.0, "y": 0.0}], schema=table.schema
    )
    asked: dict[str, Any] = {
        **WHERE, "by": ["site", "floor"], "columns": ["id", "x"],
    }  # fmt: skip
    last = last.set_column(2, "floor", pa.array([1], pa.int32()))
    folder, progress = tmp_path / "events", []
    for until in (3, 6):  # the second query goes on where the first one has ended
        stream = stream_of(spark, write_files(folder, [*files, last, late][:until]), SCHEMA)
        asked["options"] = WindowOptions(50, unit="ms", invalid="drop" if until == 3 else "raise")
        found = windowed_causality_streams(stream, NEAR, **asked, delay=DELAY, slice_length=700)
        progress += appended(found.select(as_json()), tmp_path)
    rows = spark.read.parquet(str(tmp_path / "found")).collect()
    own = [json.loads(text) for (text,) in rows]
    batch = frame(spark, pa.concat_tables(files))
    asked["options"] = WindowOptions(50, unit="ms", invalid="drop")
    wanted = windowed_causality(batch, NEAR, **asked).toArrow().to_pylist()
    assert len(wanted) > 300
    assert multiset(own) == multiset(wanted)
    told = [each["observedMetrics"] for each in progress]
    assert sum(each["windows_late"]["events"] for each in told) == late.num_rows
    assert sum(each["windows_events"]["rows"] for each in told) == 605
    assert sum(each["windows_events"]["invalid"] for each in told) == 1


@pytest.mark.spark
def test_what_is_refused(spark: SparkSession) -> None:
    for name, value in STATE_STORE.items():
        spark.conf.set(name, value)
    rate = spark.readStream.format("rate").load()
    stream = rate.selectExpr("value AS id", "timestamp AS time", "1L AS bare")
    own: Any = {"by": "id", "arrival": "time", "delay": "5s"}
    condition = CausalityCondition([Temporal(0, "3min")])
    found = windowed_causality_streams(stream, condition, **own)
    assert found.columns == ["id", "cause_id", "effect_id", "delta_us"]
    with pytest.raises(ConditionError, match="Name the columns of the key with by"):
        windowed_causality_streams(stream, condition, **{**own, "by": []})
    with pytest.raises(ConditionError, match=r"options=WindowOptions\(unit='ms'\)"):
        windowed_causality_streams(
            stream,
            CausalityCondition([Temporal(0, 3)]),
            by="id",
            arrival="bare",
            time="bare",
            delay=5,
        )
    static = spark.sql("SELECT 1 AS id, current_timestamp() AS time")
    with pytest.raises(ConditionError, match=r"static DataFrame.*Use windowed_causality,"):
        windowed_causality_streams(static, condition, **own)
    with pytest.raises(ConditionError, match="Use windowed_causality_streams"):
        windowed_causality(stream, condition, by="id", arrival="time")
