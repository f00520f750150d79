"""A task of region transitions without Spark: any batches and chunks give what the reference says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide import (
    ConditionError,
    CorrelateOptions,
    DataError,
    TransitionReport,
    transition_tables,
)
from coincide.engine.reports.metrics import with_numbers
from coincide.engine.transitions.arguments import EventColumns, TransitionArguments
from coincide.engine.transitions.reports import TransitionSummary
from coincide.model.transitions import TRANSITIONS, Repeated
from cpu_fallback.reference.transitions import Event, transitions
from spark_plugin.tasks import counting
from spark_plugin.tasks import transitions as task
from spark_plugin.tasks.counting import EXAMPLE
from spark_plugin.tasks.transitions import FIRST_FAULT, FIRST_NULL, HIGH, KIND, LOW, QUERY, STREAM
from tests.helpers.alternating import in_alternating_order
from tests.helpers.transition_cases import (
    Case,
    event_table,
    in_order,
    result_rows,
    transition_cases,
)


def on_the_wire(events: Sequence[Event]) -> pa.Table:
    """Events as Spark hands them over."""
    table = event_table(events)
    kinds = pc.cast(pc.equal(table["event"], "I"), pa.int64())
    low, high = table["min_time"], table["max_time"]
    columns = [table["query_id"], table["stream_id"], low, high, kinds, pc.add(low, high)]
    wire = pa.table(columns, names=[QUERY, STREAM, LOW, HIGH, KIND, "midpoint"])
    order = [QUERY, STREAM, "midpoint", KIND, HIGH]
    return wire.sort_by([(name, "ascending") for name in order]).drop("midpoint")


def task_of(columns: EventColumns, until: int | None) -> task.TransitionTask:
    return task.TransitionTask(columns, until, tuple(columns.schema.names), "told")


def answered(of: task.TransitionTask, wire: pa.Table, size: int) -> tuple[pa.Table, Any]:
    found = list(of(wire.to_batches(max_chunksize=size)))
    if not found:
        return of.columns.schema.empty_table(), None
    table = pa.Table.from_batches(found)
    numbers = dict(zip(of.counted, table["told"].drop_null()[0].as_py()[:-1], strict=True))
    rows = table.filter(pc.is_null(table["told"])).drop("told")
    words = pa.array(TRANSITIONS).take(rows["transition"].combine_chunks())
    summary = with_numbers(TransitionSummary(tick=of.columns.tick), numbers)
    return rows.set_column(2, "transition", words), summary


@settings(max_examples=150)
@given(transition_cases(), st.integers(1, 4), st.integers(1, 6))
def test_any_batches_and_chunks_agree_with_the_reference(case: Case, size: int, rows: int) -> None:
    events = in_alternating_order(case.events)
    try:
        wanted = transitions(events, case.within, case.confidence, case.until, case.repeated)
    except ValueError:
        wanted = None
    arguments = TransitionArguments(case.within, case.confidence, repeated=case.repeated)
    columns = EventColumns.of(event_table([]).schema, arguments)
    until = case.until
    if until is None:
        until = max((event[4] for event in events), default=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "CHUNK_ROWS", rows)
        try:
            found, summary = answered(task_of(columns, until), on_the_wire(events), size)
        except DataError:
            assert wanted is None
            return
    assert wanted is not None
    assert result_rows(found) == in_order(wanted[0])
    if summary is None:
        assert not events
        return
    assert summary.undecided == wanted[1]
    assert summary.counts.events == len(events)
    assert sum(summary.counts.found.values()) == found.num_rows
    report, asked = TransitionReport(), case._replace(events=event_table(events))._asdict()
    transition_tables(asked.pop("events"), report=report, **asked)
    assert summary == report.summary()


def test_a_stream_that_passes_through_enters_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """At one midpoint I and O in turns, also where a chunk ends between them."""
    events = [
        *((1, "through", "O", 0, 10), (1, "through", "I", 0, 10)),
        *((1, "out and in", "I", 0, 2), (1, "out and in", "I", 4, 8), (1, "out and in", "O", 4, 8)),
        *((1, "more", "O", 4, 8), (1, "more", "I", 4, 8), (1, "more", "O", 5, 7)),
    ]
    arguments = TransitionArguments(100, 0.5)
    columns = EventColumns.of(event_table([]).schema, arguments)
    for rows in (1, 2, 100):
        monkeypatch.setattr(counting, "CHUNK_ROWS", rows)
        found, _ = answered(task_of(columns, 50), on_the_wire(events), 1)
        assert result_rows(found) == [
            (1, "more", "I>O", 4, 8, 4, 8, 4, 8, 0, 4), (1, "more", "O>I", 5, 7, 4, 8, 4, 8, 0, 3),
            (1, "out and in", "I>O", 0, 2, 4, 8, 4, 8, 2, 8),
            (1, "out and in", "O>I", 4, 8, 4, 8, 4, 8, 0, 4),
            (1, "through", "I>O", 0, 10, 0, 10, 0, 10, 0, 10),
        ]  # fmt: skip


def test_events_that_planning_did_not_see_are_refused() -> None:
    columns = EventColumns.of(event_table([]).schema, TransitionArguments(100, 0.5))
    wire = on_the_wire([(1, "car", "I", 0, 10), (1, "car", "O", 40, 50)])
    for until, changed in ((50, False), (49, True), (None, True)):
        measured = replace(task_of(columns, until), is_measured=True)
        if changed:
            with pytest.raises(DataError, match=r"events has changed since.*as until"):
                answered(measured, wire, 1)
        else:
            assert answered(measured, wire, 1)[0].num_rows == 1
    assert answered(task_of(columns, 49), wire, 1)[0].num_rows == 1  # said by the caller


def test_only_the_last_watch_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "CHUNK_ROWS", 7)
    kept = []
    take = task._TransitionWork.take

    def noted(self: Any, events: Any) -> Any:
        yield from take(self, events)
        kept.append(sum(len(part) for part in (self._held, self._last) if part is not None))

    monkeypatch.setattr(task._TransitionWork, "take", noted)
    events = [(q, "s", "IO"[k % 2], 9 * k, 9 * k) for q in range(30) for k in range(5)]
    columns = EventColumns.of(event_table([]).schema, TransitionArguments(10))
    found, summary = answered(task_of(columns, 50), on_the_wire(events), 7)
    assert found.num_rows == 30 * 5
    assert summary.undecided == 0
    assert len(kept) > 20
    assert max(kept) == 2


@pytest.mark.parametrize("size", [1, 2, 100])
def test_repeated_events_are_counted(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "CHUNK_ROWS", size)
    times = ((0, "I"), (5, "I"), (20, "I"), (21, "O"))
    wire = on_the_wire([(1, "a", word, time, time) for time, word in times])
    wanted: dict[Repeated, Any] = {
        "first": [(1, "a", "I>!O", 0, 0, 10, 10, 21, 21, 21, 21)],
        "last": [
            (1, "a", "I>!O", 5, 5, 15, 15, *(None,) * 4),
            (1, "a", "I>O", 20, 20, 21, 21, 21, 21, 1, 1),
        ],
    }
    for repeated, rows in wanted.items():
        arguments = TransitionArguments(10, repeated=repeated)
        columns = EventColumns.of(event_table([]).schema, arguments)
        found, summary = answered(task_of(columns, 21), wire, 1)
        assert result_rows(found) == rows
        assert (summary.counts.repeated, summary.undecided) == (2, 1)


def test_intervals_need_a_confidence() -> None:
    columns = EventColumns.of(event_table([]).schema, TransitionArguments(10))
    with pytest.raises(ConditionError, match="confidence=0\\.9"):
        answered(task_of(columns, 50), on_the_wire([(1, "a", "I", 0, 2)]), 1)


def test_no_events_and_no_end() -> None:
    columns = EventColumns.of(event_table([]).schema, TransitionArguments(10))
    of = task_of(columns, None)
    assert list(of([])) == []
    found, summary = answered(of, on_the_wire([(1, "a", "I", 0, 0)]), 1)
    assert (found.num_rows, summary.undecided) == (0, 1)
    empty = [pa.RecordBatch.from_pylist([], schema=on_the_wire([(1, "a", "I", 0, 0)]).schema)]
    assert np.array_equal([batch.num_rows for batch in of(empty)], [1])


WRONG = [FIRST_FAULT, FIRST_NULL + 1, FIRST_FAULT, FIRST_NULL + 2, FIRST_FAULT + 2]
"""Two words, two nulls and a time out of range, as they cross."""


def with_wrong(events: Sequence[Event], size: int, monkeypatch: pytest.MonkeyPatch) -> pa.Table:
    """Events behind wrong ones on the wire; a chunk holds `size` events."""
    monkeypatch.setattr(counting, "CHUNK_ROWS", size)
    valid = on_the_wire(events)
    wrong = pa.table(
        {
            QUERY: pa.nulls(5, pa.int64()), STREAM: pa.nulls(5, pa.string()),
            LOW: [0] * 5, HIGH: [0] * 5, KIND: WRONG, EXAMPLE: [f"number={k}" for k in range(5)],
        }
    )  # fmt: skip
    return pa.concat_tables([wrong, valid], promote_options="default")


@pytest.mark.parametrize("events", [[], [(1, "a", "I", 0, 0)]])
@pytest.mark.parametrize("size", [1, 2, 100])
def test_all_that_is_refused_is_counted(
    events: list[Event], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = EventColumns.of(event_table([]).schema, TransitionArguments(10))
    with pytest.raises(DataError) as raised:
        answered(task_of(columns, 50), with_wrong(events, size, monkeypatch), 1)
    nulls, words, times = str(raised.value).split(" events: ")
    assert nulls.startswith("events: nulls in query_id and stream_id in 2 rows (found number=1).")
    assert words.startswith("words other than 'I' and 'O' in event in 2 rows (found number=0).")
    assert " in 1 row (found number=4" in times


@pytest.mark.parametrize("size", [1, 2, 100])
def test_all_that_is_left_out_is_counted(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    options = CorrelateOptions(invalid="drop")
    columns = EventColumns.of(event_table([]).schema, TransitionArguments(10, options=options))
    wire = with_wrong([(1, "a", "I", 0, 0), (1, "a", "O", 4, 4)], size, monkeypatch)
    found, summary = answered(task_of(columns, 50), wire.drop(EXAMPLE), 1)
    assert result_rows(found) == [
        (1, "a", "I>O", 0, 0, 4, 4, 4, 4, 4, 4), (1, "a", "O>!I", 4, 4, 14, 14, *(None,) * 4),
    ]  # fmt: skip
    assert summary.counts.events == 7
    assert summary.counts.dropped == {"null": 2, "event": 2, "range": 1}
