"""The stateful operator on its own: what it keeps, what it lets out at once, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row

from coincide import ConditionError
from coincide.engine.events.timestamps import IntervalModel
from spark_plugin.tasks.blobs import packed, unpacked
from spark_plugin.tasks.grid import Grid
from spark_plugin.tasks.samples import Reach
from spark_plugin.tasks.streaming import SETTINGS, StreamPackTask
from spark_plugin.tasks.wire import CODED, TIME
from spark_plugin.ways.streaming.buffer import SliceBuffer
from tests.helpers.stream_simulation import Operator

GRID = Grid(
    length=200, beyond=0, buckets=1, reach=Reach(0, 0), useful=(9, 9), nanoseconds=10**6,
    keeps_right=False, is_one_stream=False,
)  # fmt: skip
"""Slice n is closed at 100 (n + 1) ms."""


def blob(*times: int) -> bytes:
    rows = pa.table({TIME: pa.array(times, pa.int64()), CODED: pa.array([0] * len(times))})
    return next(packed(rows)).to_pybytes()


def times(row: Row) -> list[int]:
    found: list[int] = unpacked([pa.py_buffer(row.events)])[TIME].to_pylist()
    return found


def slice_buffer(settings: bytes = b"{}", *, keeps_late: bool = True) -> SliceBuffer:
    schema = pa.schema([(TIME, pa.int64()), (CODED, pa.int64())])
    task = StreamPackTask("left", schema, IntervalModel(), GRID, settings)
    return SliceBuffer([task], keeps_late=keeps_late)


def pack(*of: int, visits: Sequence[int] = (), **more: Any) -> Row:
    slices = [time // 100 for time in of]
    first, last = min([*slices, *visits]), max([*slices, *visits])
    told = {"first": first, "last": last, "due_first": min(slices), "due_last": max(slices)}
    return Row(**{"is_left": True, "is_own": True, "events": blob(*of), **told, **more})


def untimed(events: bytes = b"") -> Row:
    nothing = dict.fromkeys(("first", "last", "due_first", "due_last"))
    return Row(is_left=True, is_own=True, events=events or blob(1), **nothing)


def test_packs_come_out_while_their_slices_are_closed() -> None:
    operator = Operator(slice_buffer())
    assert operator.push(7, 0, pack(50, 250), pack(120)) == []
    assert operator.push(7, 0, pack(10, visits=[1], is_own=False)) == []
    assert operator.state.timers == [(100, 7), (100, 7)]
    told = [
        [(times(row), row.done < 0, row.until, row.is_own) for row in operator.batch([], end)]
        for end in (99, 130, 299, 300)
    ]
    first, second = ([50, 250], True, 0, True), ([10], True, 0, False)
    assert told[:2] == [[], [first, second]]
    assert [found[:1] + found[2:] for found in told[2]] == [
        ([50, 250], 1, True), ([120], 1, True), ([10], 1, False),
    ]  # fmt: skip
    assert told[3] == [([50, 250], False, 2, True)]
    assert operator.state.rows == {}


def test_nothing_comes_out_twice_by_two_timers() -> None:
    operator = Operator(slice_buffer())
    operator.push(7, 0, pack(50))
    operator.push(7, 0, pack(150, 250))
    assert [len(operator.batch([], end)) for end in (220, 230, 300)] == [2, 0, 1]
    assert operator.state.rows == {}


def test_a_row_is_late_by_its_first_slice_and_said_once() -> None:
    operator = Operator(slice_buffer())
    late, copy, early = pack(10, 20), pack(30, visits=[1], is_own=False), pack(150)
    (out,) = operator.push(7, 100, late, copy, early)
    assert (out.is_late, out.late_rows, out.events) == (True, 2, late.events)
    assert [bytes(row[-1]) for row in operator.state.rows[7]] == [b"{}", early.events]


def test_the_late_rows_of_a_pack_leave_it() -> None:
    operator = Operator(slice_buffer())
    copies = pack(20, 220, is_own=False)
    (out,) = operator.push(7, 200, pack(10, 150, 210), copies)
    assert (out.is_late, out.late_rows, times(out)) == (True, 2, [10, 150])
    assert [times(row) for row in operator.batch([], 300)] == [[210], [220]]


def test_late_rows_that_are_only_counted_stay_behind() -> None:
    (out,) = Operator(slice_buffer(keeps_late=False)).push(7, 100, pack(1, 2, 3))
    assert (out.late_rows, out.events) == (3, b"")


def test_what_matches_nothing_waits_for_nothing() -> None:
    operator = Operator(slice_buffer())
    (out,) = operator.push(7, 10**9, untimed())
    assert not out.is_late
    assert operator.state.rows == {}


def test_settings_of_another_join_are_refused() -> None:
    settings = [json.dumps({"k": k, "how": "left"}).encode() for k in (1, 2)]
    first = Operator(slice_buffer(settings[0]))
    for _ in range(2):
        assert first.push(SETTINGS, 0, untimed(settings[0])) == []
    first.push(7, 0, pack(50))
    second = Operator(slice_buffer(settings[1]), state=first.state)
    complaint = r"found: k was 1 and is 2\)\. Give the earlier"
    with pytest.raises(ConditionError, match=complaint):
        second.push(SETTINGS, 0, untimed(settings[1]))
    with pytest.raises(ConditionError, match=complaint):
        second.expire(7, 100)
    assert len(first.expire(7, 100)) == 1
