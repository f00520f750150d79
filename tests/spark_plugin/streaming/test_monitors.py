"""Monitors of streams without Spark: any micro-batches, slices and buckets give what tables give."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import Row

from coincide import (
    BorderOptions,
    ConditionError,
    CorrelateOptions,
    DataError,
    border_crossing_tables,
)
from coincide.engine.borders.arguments import BorderArguments
from coincide.engine.borders.readings import ReadingColumns, read_queries
from coincide.engine.events.timestamps import IntervalModel
from coincide.engine.transitions.arguments import EventColumns, TransitionArguments
from coincide.model.borders.crossings import EVENTS
from coincide.model.transitions import TRANSITIONS
from spark_plugin.tasks.blobs import unpacked
from spark_plugin.tasks.border_streams import CrossingMonitors
from spark_plugin.tasks.borders import STREAM, TIME, ReadingRows, ShippedQueries, as_table
from spark_plugin.tasks.counting import valid_rows
from spark_plugin.tasks.grid import Grid
from spark_plugin.tasks.monitors import CheckedPackTask, Monitors, StreamMonitor
from spark_plugin.tasks.samples import Reach
from spark_plugin.tasks.transition_streams import TransitionMonitors
from spark_plugin.tasks.transitions import HIGH, KIND, LOW, QUERY, EventRows, TransitionTask
from spark_plugin.tasks.transitions import STREAM as IN
from spark_plugin.tasks.wire import KEY_HASH, Shipment, as_stream
from spark_plugin.ways.streaming import buffer
from spark_plugin.ways.streaming.borders import decided_by as crossings_told
from spark_plugin.ways.streaming.transitions import decided_by as transitions_told
from tests.helpers.border_tables import NAMES, least_last, random_queries, random_readings
from tests.helpers.rows import in_order
from tests.helpers.stream_simulation import Operator, State, buffer_of, monitored
from tests.helpers.transition_cases import of_stream, result_rows

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
        check=partial(valid_rows, ReadingRows, columns), ends=(TIME, TIME),
    )  # fmt: skip
    monitors = CrossingMonitors(tuple(arguments.made), columns, sent)
    found, late = monitored(task, monitors, cut(random, wire, last), delay)
    events = pa.array(EVENTS).take(found["event"].combine_chunks())
    found = found.set_column(2, "event", events)
    wanted = border_crossing_tables(
        least_last(readings), queries, values="x", options=OPTIONS[options], **NAMES
    )
    assert in_order(found) == in_order(wanted)
    assert wanted.num_rows > 50
    assert late == 2


def transition_columns(**more: Any) -> tuple[EventColumns, tuple[str, ...]]:
    """The columns of events, and those of the result."""
    asked: dict[str, Any] = {"confidence": 0.7, "repeated": "first", **more}
    given = TransitionArguments(
        400, query="query", stream="car", time=("first", "last"),
        options=CorrelateOptions(unit="ms"), **asked,
    )  # fmt: skip
    kinds = {"query": pa.int64(), "car": pa.string(), "event": pa.string(), "first": pa.int64()}
    columns = EventColumns.of(pa.schema([*kinds.items(), ("last", pa.int64())]), given)
    return columns, tuple(columns.schema.names)


def transition_task(
    columns: EventColumns, wire: pa.Table, grid: Grid, longest: int = 0, **more: Any
) -> CheckedPackTask:
    return CheckedPackTask(
        "left", wire.drop_columns(KEY_HASH).schema, IntervalModel(), grid, b"{}",
        check=partial(valid_rows, EventRows, columns), ends=(LOW, HIGH), longest=longest, **more,
    )  # fmt: skip


def crossing_rows(kinds: str, low: list[int], high: list[int] | None = None) -> pa.Table:
    """Events of one car and query on the wire."""
    return pa.table({
        QUERY: [1] * len(kinds), IN: ["c"] * len(kinds), LOW: low, HIGH: high or low,
        KIND: ["OI".index(kind) for kind in kinds], KEY_HASH: [1] * len(kinds),
    })  # fmt: skip


def short_slices(nanoseconds: int = 10**6, length: int = 20) -> Grid:
    return Grid(
        length=length, beyond=0, buckets=1, reach=Reach(0, 0), useful=(1 << 62, 1 << 62),
        nanoseconds=nanoseconds, keeps_right=False, is_one_stream=False, is_lasting=True,
    )  # fmt: skip


def packs_of(task: CheckedPackTask, rows: pa.Table) -> list[Row]:
    return [Row(**row) for batch in task(rows.to_batches()) for row in batch.to_pylist()]


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
    columns, names = transition_columns(repeated=repeated)
    task = transition_task(columns, wire, grid_of(random, longest), longest)
    far = 10**9
    last = {QUERY: [9], IN: ["last"], LOW: [far], HIGH: [far], KIND: [1], KEY_HASH: [9]}
    found, late = monitored(
        task, TransitionMonitors(names, columns), cut(random, wire, last), delay
    )
    middle = pc.add(wire[LOW], wire[HIGH])
    by = [(name, "ascending") for name in (QUERY, IN, "middle", KIND, HIGH)]
    whole = wire.append_column("middle", middle).sort_by(by).drop_columns(["middle", KEY_HASH])
    wanted = pa.Table.from_batches(TransitionTask(columns, far // 2, names)(whole.to_batches()))
    words = [pa.array(TRANSITIONS).take(t["transition"].combine_chunks()) for t in (found, wanted)]
    found, wanted = (
        table.set_column(2, "transition", each)
        for table, each in zip((found, wanted), words, strict=True)
    )
    assert result_rows(found) == of_stream(result_rows(wanted))
    assert wanted.num_rows > 150
    assert late == 2


@pytest.mark.parametrize("drops_longer", [False, True])
def test_an_event_that_is_too_long_is_refused_or_skipped(drops_longer: bool) -> None:
    columns, _ = transition_columns()
    wire = crossing_rows("IOI", [0, 20, 40], [7, 25, 40])
    grid = short_slices(length=2_000)
    for longest, kept in ((7, 3), (6, 2)):
        task = transition_task(columns, wire, grid, longest, drops_longer=drops_longer)
        if kept < 3 and not drops_longer:
            with pytest.raises(DataError, match=r"longest, 6 ticks \(found 7\)\. Skip.*'drop'"):
                packs_of(task, wire)
        else:
            told, pack = packs_of(task, wire)
            assert told.seen == 40_000
            assert unpacked([pa.py_buffer(pack.events)]).num_rows == kept


def test_intervals_need_a_confidence() -> None:
    columns, names = transition_columns(confidence=None)
    monitor = TransitionMonitors(names, columns).monitor(None)
    list(monitor.take(crossing_rows("I", [5])))
    with pytest.raises(ConditionError, match=r"intervals in 1 row.*confidence=0\.9"):
        list(monitor.take(crossing_rows("OI", [20, 30], [20, 31])))


def test_a_late_event_leaves_a_repeat_behind_and_the_query_goes_on_with_first() -> None:
    task = transition_task(transition_columns()[0], crossing_rows("I", [0]), short_slices())
    state, packed = State(), [packs_of(task, crossing_rows("I", [time])) for time in (5, 25)]
    operators = [
        Operator(buffer_of(task, TransitionMonitors(names, columns)), state=state)
        for columns, names in (transition_columns(repeated=way) for way in ("raise", "first"))
    ]
    assert operators[0].batch(packed[0], 0) == []
    operators[0].batch(packed[1], 20)
    with pytest.raises(DataError, match=r"repeat the event before.*repeated='first'"):
        operators[0].batch([], 40)
    arguments = [transition_columns(repeated=way)[0].arguments for way in ("raise", "first")]
    kinds = {"query": "bigint"}
    before, now = (transitions_told(each, kinds) for each in arguments)
    assert before == now
    assert before != transitions_told(transition_columns(confidence=0.8)[0].arguments, kinds)


@pytest.mark.parametrize("known", [0, 20])
def test_timers_alone_refuse_other_arguments(known: int) -> None:
    columns, names = transition_columns()
    wire, monitors = crossing_rows("I", [5]), TransitionMonitors(names, columns)
    tasks = [
        replace(
            transition_task(columns, wire, short_slices()),
            settings=json.dumps({"within": within}).encode(),
        )
        for within in (400, 500)
    ]
    before = Operator(buffer_of(tasks[0], monitors))
    before.batch(packs_of(tasks[0], wire), 0)
    assert before.batch([], known) == []
    (label,) = {label for _, label in before.state.timers}
    after = Operator(buffer_of(tasks[1], monitors), state=before.state)
    with pytest.raises(ConditionError, match=r"within was 400 and is 500"):
        after.expire(label, 1_000)
    assert len(before.expire(label, 1_000)) == 1


class Counting(StreamMonitor):
    """Counts the rows of each call."""

    def __init__(self) -> None:
        self.taken: list[int] = []

    def take(self, rows: pa.Table) -> Iterator[list[pa.Array]]:
        self.taken.append(rows.num_rows)
        return iter(())

    def state(self) -> bytes:
        return b""


@dataclass(frozen=True)
class OneMonitor(Monitors):
    one: Counting

    def monitor(self, state: bytes | None) -> StreamMonitor:
        return self.one


@pytest.mark.parametrize(("most", "taken"), [(16 << 20, [6]), (1, [1, 2, 3])])
def test_slices_of_few_rows_are_taken_together(
    monkeypatch: pytest.MonkeyPatch, most: int, taken: list[int]
) -> None:
    monkeypatch.setattr(buffer, "_PART_BYTES", most)
    wire = crossing_rows("IOIOIO", [5, 15, 16, 25, 26, 27])
    task = transition_task(transition_columns()[0], wire, short_slices())
    one = Counting()
    operator = Operator(buffer_of(task, OneMonitor((), one)))
    operator.batch(packs_of(task, wire), 0)
    operator.batch([], 100)
    assert one.taken == taken


def test_a_stay_is_waited_for_by_one_timer() -> None:
    columns, names = transition_columns()
    wire = crossing_rows("I", [5])
    task = transition_task(columns, wire, short_slices())
    operator = Operator(buffer_of(task, TransitionMonitors(names, columns)))
    operator.batch(packs_of(task, wire), 0)
    assert operator.batch([], 10) == []
    assert operator.state.timers == [(410, operator.state.key)]  # more than 5 + 400
    assert operator.batch([], 409) == []
    assert len(operator.batch([], 410)) == 1
    assert operator.state.timers == []


def test_a_clock_may_be_in_the_year_9999() -> None:
    columns, names = transition_columns()
    wire = crossing_rows("I", [5])
    task = transition_task(columns, wire, short_slices(nanoseconds=1, length=2_000_000))
    operator = Operator(buffer_of(task, TransitionMonitors(names, columns)))
    operator.batch(packs_of(task, wire), 0)
    assert len(operator.batch([], 253_402_300_799_000)) == 1


def test_no_name_of_a_column_hides_an_option() -> None:
    names = {"stream": "first", "time": "tick", "values": ["unit", "closed"], "query": "query"}

    def told(swapped: bool = False, **more: Any) -> dict[str, str]:
        given = {**names, "values": names["values"][::-1]} if swapped else names
        arguments = BorderArguments(**given, options=BorderOptions(unit="ms", **more))
        return crossings_told(arguments, dict.fromkeys(arguments.columns, "bigint"))

    assert told() == told()
    assert told() != told(first="outside")
    assert told() != told(closed="both")
    assert told() != told(swapped=True)
