"""Region transitions of tables, and bit by bit, against the reference."""

from __future__ import annotations

import pickle
import warnings
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide import (
    AmbiguousCrossingsWarning,
    CorrelateOptions,
    DataError,
    LateRowsWarning,
    TransitionMonitor,
    TransitionReport,
    transition_tables,
)
from cpu_fallback.reference.transitions import Row, transitions
from tests.helpers.transition_cases import (
    GARAGE,
    Case,
    event_table,
    in_order,
    of_stream,
    result_rows,
    transition_cases,
)

CASES = 350
MANY_CASES = 1000


def expected(case: Case) -> tuple[list[Row], int] | None:
    """What the reference says; None for an error."""
    try:
        rows, undecided = transitions(*case)
    except ValueError:
        return None
    return in_order(rows), undecided


def check_table(case: Case, order: list[int]) -> None:
    """Events of a table in any order; those of equal midpoints stay as they come."""
    case = case._replace(events=[case.events[i] for i in order])
    wanted, report = expected(case), TransitionReport()
    arguments = case._asdict()
    table = event_table(arguments.pop("events"))
    try:
        found = transition_tables(table, report=report, **arguments)
    except DataError:
        assert wanted is None
        return
    summary = report.summary()
    assert (result_rows(found), summary.undecided) == wanted
    assert summary.counts.events == len(case.events)
    assert sum(summary.counts.found.values()) == found.num_rows
    if case.confidence > 0.51:
        assert summary.counts.both == 0


def check_monitor(case: Case, cuts: list[int]) -> None:
    """Any batching of events in order, the clock moved between pushes as far as it may, and a pickle."""
    arguments = case._asdict()
    events, until = arguments.pop("events"), arguments.pop("until")
    monitor = TransitionMonitor(**arguments)
    wanted = expected(case)
    ends = [0, *sorted(min(cut, len(events)) for cut in cuts), len(events)]
    found = []
    try:
        for start, stop in pairwise(ends):
            found.append(monitor.push(event_table(events[start:stop])))
            monitor = pickle.loads(pickle.dumps(monitor))
            to_come = [event[3] for event in events[stop:]]
            if to_come and (until is None or min(to_come) <= until):
                found.append(monitor.advance(min(to_come)))
        found.append(monitor.flush(until))
    except DataError:
        assert wanted is None
        return
    assert wanted is not None
    assert (result_rows(*found), monitor.summary().undecided) == (of_stream(wanted[0]), wanted[1])
    assert monitor.summary().counts.events == len(events)


@settings(max_examples=CASES)
@given(transition_cases(), st.data())
def test_tables_agree_with_the_reference(case: Case, data: Any) -> None:
    check_table(case, data.draw(st.permutations(range(len(case.events)))))


@settings(max_examples=CASES)
@given(transition_cases(), st.lists(st.integers(0, 14), max_size=5))
def test_any_batching_agrees_with_the_reference(case: Case, cuts: list[int]) -> None:
    check_monitor(case, cuts)


@pytest.mark.slow
@settings(max_examples=MANY_CASES)
@given(transition_cases(), st.data(), st.lists(st.integers(0, 14), max_size=5))
def test_many_agree_with_the_reference(case: Case, data: Any, cuts: list[int]) -> None:
    check_table(case, data.draw(st.permutations(range(len(case.events)))))
    check_monitor(case, cuts)


def test_a_parking_garage() -> None:
    table = event_table(GARAGE, pa.timestamp("s", "UTC"))
    table = table.rename_columns(["garage", "car", "crossing", "time", "same"]).drop("same")
    report = TransitionReport()
    found = transition_tables(
        table, within="3min", query="garage", stream="car", event="crossing", time="time",
        report=report,
    )  # fmt: skip
    micros = pa.timestamp("us", "UTC")
    assert found.schema == pa.schema(
        [
            ("garage", pa.int64()), ("car", pa.string()), ("transition", pa.string()),
            ("first_min_time", micros), ("first_max_time", micros),
            ("min_time", micros), ("max_time", micros),
            ("next_min_time", micros), ("next_max_time", micros),
            ("min_duration_us", pa.int64()), ("max_duration_us", pa.int64()),
        ]
    )  # fmt: skip
    rows, undecided = transitions(GARAGE, 180, 1.0)
    seconds = [pc.divide(c.cast(pa.int64()), 10**6).to_pylist() for c in found.columns[3:]]
    shown = zip(found["car"].to_pylist(), found["transition"].to_pylist(), *seconds, strict=True)
    assert in_order(shown) == in_order(row[1:] for row in rows)
    paid = found.filter(pc.equal(found["car"], "pays")).to_pylist()
    assert [row["transition"] for row in paid] == ["I>!O", "O>I", "I>!O"]
    assert [row["min_duration_us"] for row in paid] == [181 * 10**6, 119 * 10**6, 700 * 10**6]
    summary = report.summary()
    assert summary.undecided == undecided == 2
    assert summary.counts.found == {"O>I": 1, "I>O": 2, "O>!I": 2, "I>!O": 3}


def test_ids_of_any_kind_and_columns_in_other_encodings() -> None:
    for ids in (pa.array([b"x", b"y"] * 2), pa.array(["x", "y"] * 2).dictionary_encode(), uuids()):
        table = pa.table(
            {"query_id": ids, "stream_id": pa.array([1, 1, 1, 1], pa.uint8()),
             "event": pa.array(["I", "I", "O", "O"], pa.string_view()), "at": [0, 5, 4, 30]}
        )  # fmt: skip
        found = transition_tables(table, within=10, time="at")
        plain = ids.dictionary_decode() if pa.types.is_dictionary(ids.type) else ids
        assert found["query_id"].combine_chunks() == plain.take(pa.array([0, 1, 0]))
        assert found["transition"].to_pylist() == ["I>O", "I>!O", "O>!I"]
        monitor = TransitionMonitor(within=10, time="at")
        bits = [monitor.push(table.slice(i, 1)) for i in range(4)]
        streamed = pa.concat_tables([*bits, monitor.flush()])
        assert result_rows(streamed) == of_stream(result_rows(found))


def uuids() -> pa.Array:
    stored = pa.array([bytes([i] * 16) for i in (1, 2)] * 2, pa.binary(16))
    return pa.ExtensionArray.from_storage(pa.uuid(), stored)


def test_rows_are_given_out_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    from coincide.engine.transitions import monitor as open_watches

    table = event_table([(0, "", "IO"[i % 2], i, i) for i in range(10)])
    whole = transition_tables(table, within=1)
    monkeypatch.setattr(open_watches, "_BATCH_ROWS", 2)
    assert transition_tables(table, within=1).equals(whole)
    assert whole.num_rows == 9


def test_durations_are_differences_of_intervals() -> None:
    """Never negative; without an end where an event repeats, and of what is still so."""
    table = event_table([
        *((0, "", "I", 0, 10), (0, "", "O", 30, 50), (0, "", "I", 45, 45), (0, "", "I", 90, 90)),
        *((0, "", "O", 95, 99), (0, "far", "I", 900, 900)),
    ])  # fmt: skip
    asked: dict[str, Any] = {"within": 25, "confidence": 0.6, "repeated": "last"}
    found = transition_tables(table, **asked)
    names = ["transition", "next_min_time", "next_max_time", "min_duration", "max_duration"]
    assert [list(row) for row in zip(*(found[n].to_pylist() for n in names), strict=True)] == [
        ["I>!O", 30, 50, 20, 50], ["O>I", 45, 45, 0, 15], ["I>!O", None, None, None, None],
        ["I>O", 95, 99, 5, 9], ["O>!I", None, None, None, None],
    ]  # fmt: skip
    monitor = TransitionMonitor(**asked)
    streamed = [monitor.push(table), monitor.flush()]
    assert result_rows(*streamed) == of_stream(result_rows(found))


def test_repeated_events_are_counted() -> None:
    table = event_table([(0, "", "I", 0, 0), (0, "", "I", 5, 5), (0, "", "O", 6, 6)])
    report = TransitionReport()
    transition_tables(table, within=3, repeated="last", report=report)
    assert report.summary().counts.repeated == 1
    assert report.summary().counts.found["I>!O"] == 1


def test_a_pair_of_which_nothing_is_certain_is_counted() -> None:
    table = event_table([(0, "", "I", 0, 10), (0, "", "O", 10, 20)])
    report = TransitionReport()
    assert transition_tables(table, within=10, confidence=0.6, report=report).num_rows == 0
    assert report.summary().counts.neither == 1


NEAR = event_table([(0, "", "I", 0, 60), (0, "", "O", 300, 360), (0, "", "I", 900, 960)])
"""The first two as likely within 300 ticks as not."""


def test_what_is_told_as_crossed_and_as_stayed_is_counted_and_said() -> None:
    report = TransitionReport()
    with pytest.warns(
        AmbiguousCrossingsWarning,
        match=r"3 rows: 1 are reported as crossed and as stayed.*above 0.5, such as 0.9",
    ):
        found = transition_tables(NEAR, within=300, confidence=0.5, until=0, report=report)
    assert found["transition"].to_pylist() == ["I>!O", "I>O", "O>!I"]
    assert (report.summary().counts.both, report.summary().counts.neither) == (1, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sure = transition_tables(NEAR, within=300, confidence=0.9, until=0, report=report)
    assert sure["transition"].to_pylist() == ["O>!I"]
    assert (report.summary().counts.both, report.summary().counts.neither) == (0, 1)


def test_a_monitor_says_once_that_it_tells_twice() -> None:
    monitor = TransitionMonitor(within=300, confidence=0.5)
    with pytest.warns(AmbiguousCrossingsWarning):
        monitor.push(NEAR)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        monitor.push(NEAR.set_column(1, "stream_id", [["b"] * 3]))
    assert monitor.summary().counts.both == 2


def test_late_events_that_are_left_out_are_warned_of() -> None:
    options = CorrelateOptions(unit="s", tick="s", invalid="drop")
    monitor = TransitionMonitor(within=5, options=options)
    late = event_table([(0, "", "I", 100, 100), (0, "", "O", 40, 40), (0, "b", "I", 90, 90)])
    with pytest.warns(
        LateRowsWarning, match=r"3 rows: skipped 1 that came too late, by up to 1 min.*delay='60s'"
    ):
        monitor.push(late)
    monitor.advance(200)
    with pytest.warns(
        LateRowsWarning, match=r"1 row: skipped 1 that came too late, by up to 1.5 min"
    ):
        monitor.push(event_table([(0, "c", "I", 110, 110)]))
    assert monitor.summary().counts.dropped == {"late": 2}


def test_floats_are_rounded_to_ticks() -> None:
    table = pa.table(
        {"query_id": [1, 1], "stream_id": [1, 1], "event": ["I", "O"], "at": [0.5, 2.0]}
    )
    report = TransitionReport()
    options = CorrelateOptions(unit="s", tick="s")
    found = transition_tables(table, within=2, time="at", options=options, report=report)
    assert found["min_time"].to_pylist() == [2]
    assert report.summary().rounded == 0.5
