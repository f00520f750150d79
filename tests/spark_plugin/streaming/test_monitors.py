"""Monitors of streams without Spark: any micro-batches, slices and buckets give what tables give."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from coincide import BorderOptions, DataError, border_crossing_tables
from coincide.engine.borders.arguments import BorderArguments
from coincide.engine.borders.readings import ReadingColumns, read_queries
from coincide.engine.events.timestamps import IntervalModel
from coincide.model.borders.crossings import EVENTS
from spark_plugin.tasks.border_streams import CrossingMonitors
from spark_plugin.tasks.borders import STREAM, TIME, ReadingRows, ShippedQueries, as_table
from spark_plugin.tasks.grid import Grid
from spark_plugin.tasks.monitors import CheckedPackTask
from spark_plugin.tasks.samples import Reach
from spark_plugin.tasks.wire import KEY_HASH, Shipment, as_stream
from tests.helpers.border_tables import NAMES, random_queries, random_readings, sorted_rows
from tests.helpers.stream_simulation import monitored

SLICE = 4_000
OPTIONS = {
    "plain": BorderOptions(interpolate=True, unit="ms"),
    "outside": BorderOptions(first="outside", unit="ms"),
    "hysteresis": BorderOptions(hysteresis=1.5, unit="ms"),
    "pass through": BorderOptions(pass_through=True, unit="ms"),
}


def grid_of(random: np.random.Generator) -> Grid:
    return Grid(
        length=int(random.integers(2, 2 * SLICE)), beyond=0, buckets=int(random.choice([1, 3])),
        reach=Reach(0, 0), useful=(1 << 62, 1 << 62), nanoseconds=10**6, keeps_right=False,
        is_one_stream=False, is_lasting=True,
    )  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("seed", range(4))
def test_crossings_are_those_of_all_readings_that_are_not_late(seed: int, options: str) -> None:
    random = np.random.default_rng([5, seed])
    readings = random_readings(seed, 300, pa.array([f"s{k}" for k in range(9)]), pa.int64())
    queries = random_queries(seed, pa.array(range(20)))
    arguments = BorderArguments(values="x", options=OPTIONS[options], **NAMES)
    own = read_queries(queries, arguments)
    sent = ShippedQueries(f"{options}{seed}", Shipment(as_stream(as_table(own, own.ids))))
    columns = ReadingColumns.of(readings.schema, arguments)
    times, delay = readings["at"].to_numpy(), int(random.choice([0, 900, 30_000]))
    order = np.argsort(times + random.integers(0, delay + 1, times.size), kind="stable")
    readings = readings.take(pa.array(order))
    wire = pa.table({
        STREAM: readings["stream"], TIME: readings["at"],
        "value0": pc.fill_null(readings["x"], np.nan),
        KEY_HASH: np.array([int(s[1:]) for s in readings["stream"].to_pylist()]) - 4,
    })  # fmt: skip
    cuts = np.sort(random.integers(0, 301, 6)).tolist()
    batches = [wire.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, 300], strict=True)]
    last = {STREAM: ["last"], TIME: [10**9], "value0": [0.0], KEY_HASH: [0]}
    batches.append(pa.table(last, schema=wire.schema))
    task = CheckedPackTask(
        "left", wire.drop_columns(KEY_HASH).schema, IntervalModel(), grid_of(random), b"{}",
        reader=partial(ReadingRows, columns), ends=(TIME, TIME),
    )  # fmt: skip
    monitors = CrossingMonitors(tuple(arguments.made), columns, sent)
    found, late = monitored(task, monitors, [*batches, wire.slice(0, 2)], delay)
    events = pa.array(EVENTS).take(found["event"].combine_chunks())
    found = found.set_column(2, "event", events)
    wanted = border_crossing_tables(
        readings, queries, values="x", options=OPTIONS[options], **NAMES
    )
    assert sorted_rows(found) == sorted_rows(wanted)
    assert wanted.num_rows > 50
    assert late == 2


def test_an_event_that_is_too_long_is_refused() -> None:
    readings = pa.table({"stream": ["a"], "at": [5], "x": [1.0]})
    arguments = BorderArguments(values="x", options=OPTIONS["plain"], **NAMES)
    columns = ReadingColumns.of(readings.schema, arguments)
    wire = pa.table({"low": [0], TIME: [7], KEY_HASH: [0]})
    grid = grid_of(np.random.default_rng(1))
    for longest, is_refused in ((7, False), (6, True)):
        task = CheckedPackTask(
            "left", wire.schema, IntervalModel(), grid, b"{}",
            reader=partial(ReadingRows, columns), ends=("low", TIME), longest=longest,
        )  # fmt: skip
        if is_refused:
            with pytest.raises(DataError, match=r"longest, 6 ticks \(found 7\)"):
                list(task(wire.to_batches()))
        else:
            assert sum(batch.num_rows for batch in task(wire.to_batches())) == 2
