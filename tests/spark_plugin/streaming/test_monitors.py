"""Monitors of streams without Spark: any micro-batches, slices and buckets give what tables give."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from coincide import BorderOptions, CorrelateOptions, DataError, border_crossing_tables
from coincide.engine.borders.arguments import BorderArguments
from coincide.engine.borders.readings import ReadingColumns, read_queries
from coincide.engine.events.timestamps import IntervalModel
from coincide.engine.transitions.arguments import EventColumns, TransitionArguments
from coincide.model.borders.crossings import EVENTS
from spark_plugin.tasks.border_streams import CrossingMonitors
from spark_plugin.tasks.borders import STREAM, TIME, ReadingRows, ShippedQueries, as_table
from spark_plugin.tasks.grid import Grid
from spark_plugin.tasks.monitors import CheckedPackTask
from spark_plugin.tasks.samples import Reach
from spark_plugin.tasks.transition_streams import TransitionMonitors
from spark_plugin.tasks.transitions import HIGH, KIND, LOW, QUERY, EventRows, TransitionTask
from spark_plugin.tasks.transitions import STREAM as IN
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


def grid_of(random: np.random.Generator, beyond: int = 0) -> Grid:
    return Grid(
        length=int(random.integers(2, 2 * SLICE)), beyond=beyond,
        buckets=int(random.choice([1, 3])), reach=Reach(0, 0), useful=(1 << 62, 1 << 62),
        nanoseconds=10**6, keeps_right=False, is_one_stream=False, is_lasting=True,
    )  # fmt: skip


def cut(random: np.random.Generator, wire: pa.Table, last: dict[str, Any]) -> list[pa.Table]:
    """Micro-batches of any size, a row that is later than all others, and two late rows."""
    cuts = np.sort(random.integers(0, wire.num_rows + 1, 6)).tolist()
    ends = itertools.pairwise([0, *cuts, wire.num_rows])
    batches = [wire.slice(start, stop - start) for start, stop in ends]
    return [*batches, pa.table(last, schema=wire.schema), wire.slice(0, 2)]


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
    last = {STREAM: ["last"], TIME: [10**9], "value0": [0.0], KEY_HASH: [0]}
    task = CheckedPackTask(
        "left", wire.drop_columns(KEY_HASH).schema, IntervalModel(), grid_of(random), b"{}",
        reader=partial(ReadingRows, columns), ends=(TIME, TIME),
    )  # fmt: skip
    monitors = CrossingMonitors(tuple(arguments.made), columns, sent)
    found, late = monitored(task, monitors, cut(random, wire, last), delay)
    events = pa.array(EVENTS).take(found["event"].combine_chunks())
    found = found.set_column(2, "event", events)
    wanted = border_crossing_tables(
        readings, queries, values="x", options=OPTIONS[options], **NAMES
    )
    assert sorted_rows(found) == sorted_rows(wanted)
    assert wanted.num_rows > 50
    assert late == 2


@pytest.mark.parametrize("repeated", ["first", "last"])
@pytest.mark.parametrize("seed", range(6))
def test_transitions_are_those_of_all_events_that_are_not_late(seed: int, repeated: str) -> None:
    random, longest, delay = np.random.default_rng([6, seed]), 60, 300
    midpoints = random.integers(0, 20_000, 400) // 40 * 40
    half = random.choice([0, 5, longest // 2], 400) * (seed % 2)
    wire = pa.table({
        QUERY: random.integers(0, 3, 400), IN: [f"c{k}" for k in random.integers(0, 4, 400)],
        LOW: midpoints - half, HIGH: midpoints + half, KIND: random.integers(0, 2, 400),
    })  # fmt: skip
    order = np.argsort(midpoints + half + random.integers(0, delay, 400), kind="stable")
    wire = wire.append_column(KEY_HASH, wire[QUERY]).take(pa.array(order))
    given = TransitionArguments(
        400, 0.7, "query", "car", "event", ("first", "last"), repeated, CorrelateOptions(unit="ms")
    )
    kinds = {"query": pa.int64(), "car": pa.string(), "event": pa.string(), "first": pa.int64()}
    columns = EventColumns.of(pa.schema([*kinds.items(), ("last", pa.int64())]), given)
    names = tuple(given.result_columns)
    task = CheckedPackTask(
        "left", wire.drop_columns(KEY_HASH).schema, IntervalModel(), grid_of(random, longest),
        b"{}", reader=partial(EventRows, columns), ends=(LOW, HIGH), longest=longest,
    )  # fmt: skip
    far = 10**9
    last = {QUERY: [9], IN: ["last"], LOW: [far], HIGH: [far], KIND: [1], KEY_HASH: [9]}
    found, late = monitored(
        task, TransitionMonitors(names, columns), cut(random, wire, last), delay
    )
    middle = pc.add(wire[LOW], wire[HIGH])
    by = [(name, "ascending") for name in (QUERY, IN, "middle", KIND, HIGH)]
    whole = wire.append_column("middle", middle).sort_by(by).drop_columns(["middle", KEY_HASH])
    wanted = pa.Table.from_batches(TransitionTask(columns, far // 2, names)(whole.to_batches()))
    assert sorted_rows(found) == sorted_rows(wanted)
    assert wanted.num_rows > 150
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
