"""The stateful operator on its own: what it keeps, what it lets out at once, and what it refuses."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from pyspark.sql import Row

from coincide import ConditionError
from spark_plugin.tasks.blobs import packed
from spark_plugin.tasks.streaming import SETTINGS
from spark_plugin.ways.streaming.buffer import SliceBuffer
from tests.helpers.stream_simulation import Operator

ROWS = [next(packed(pa.table({"id": list(range(n))}))).to_pybytes() for n in (1, 2, 3)]


def pack(
    closes: int | None, due: int | None, events: bytes = ROWS[0], *, is_own: bool = True
) -> Row:
    return Row(closes=closes, due=due, is_left=True, is_own=is_own, events=events)


def test_packs_wait_for_one_timer_and_come_out_once() -> None:
    operator = Operator()
    assert operator.push(7, 0, pack(100, 100), pack(100, 90, ROWS[1])) == []
    assert operator.push(7, 50, pack(100, 100, ROWS[2], is_own=False)) == []
    assert operator.state.timers == [(100, 7)]
    out = operator.expire(7)
    assert [row.events for row in out] == ROWS
    assert [row.is_own for row in out] == [True, True, False]
    assert not any(row.is_late or row.late_rows for row in out)
    assert operator.state.rows == {}


def test_a_row_is_late_by_its_first_slice_and_said_once() -> None:
    operator = Operator()
    late, copy, early = pack(200, 100, ROWS[1]), pack(200, 100, is_own=False), pack(200, 200)
    (out,) = operator.push(7, 100, late, copy, early)
    assert (out.is_late, out.late_rows, out.events) == (True, 2, ROWS[1])
    assert [row[2] for row in operator.state.rows[7]] == [b"{}", ROWS[0]]


def test_late_rows_that_are_only_counted_stay_behind() -> None:
    (out,) = Operator(keeps_late=False).push(7, 100, pack(100, 100, ROWS[2]))
    assert (out.late_rows, out.events) == (3, b"")


def test_what_matches_nothing_waits_for_nothing() -> None:
    operator = Operator()
    (out,) = operator.push(7, 10**9, pack(None, None))
    assert not out.is_late
    assert operator.state.rows == {}


def test_settings_of_another_join_are_refused() -> None:
    settings = [json.dumps({"k": k, "how": "left"}).encode() for k in (1, 2)]
    first = Operator(SliceBuffer(settings[0], keeps_late=False))
    for _ in range(2):
        assert first.push(SETTINGS, 0, pack(None, None, settings[0])) == []
    first.push(7, 0, pack(100, 100))
    second = Operator(SliceBuffer(settings[1], keeps_late=False), state=first.state)
    complaint = r"found: k was 1 and is 2\)\. Give the earlier"
    with pytest.raises(ConditionError, match=complaint):
        second.push(SETTINGS, 0, pack(None, None, settings[1]))
    with pytest.raises(ConditionError, match=complaint):
        second.expire(7)
    assert len(first.expire(7)) == 1
