"""Readings that come late, and the order in which a monitor gives crossings."""

from __future__ import annotations

import pickle
import warnings
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coincide
from coincide import BorderMonitor, BorderOptions, border_crossing_tables, inside_tables
from tests.helpers.rows import tuples

QUERIES = pa.table({"query_id": ["hot", "cold"], "lower": [28.0, None], "upper": [None, 5.0]})
DELAY = 7


def table(rows: list[tuple[str, int, float]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    kinds = {"stream_id": pa.string(), "time": pa.int64(), "value": pa.float64()}
    found = zip(kinds.items(), columns, strict=True)
    return pa.table({name: pa.array(list(column), kind) for (name, kind), column in found})


def test_a_push_gives_crossings_in_order_of_time() -> None:
    """Ten streams, whose crossings a stream of tables takes without any delay."""
    walks = [(f"s{k}", t, 30.0 * ((t + k) % 2)) for k in range(10) for t in range(k, 40, 3)]
    monitor = BorderMonitor(QUERIES, options=BorderOptions(interpolate=True, batch_events=7))
    found = monitor.push(table(walks))
    times = found["max_time"].to_numpy()
    assert found.num_rows > 100
    assert (np.diff(times) >= 0).all()
    whole = border_crossing_tables(table(walks), QUERIES, options=BorderOptions(interpolate=True))
    assert sorted(tuples(found)) == sorted(tuples(whole))
    stream = coincide.stream_tables(
        within=(-2, 2), confidence=0.1, left_delay=0, right_delay=0, by="stream_id",
        left_columns=["query_id", "event"], right_columns=["event"],
    )  # fmt: skip
    stream.push("left", found)
    assert stream.summary().late == (0, 0)


ARRIVALS = st.lists(
    st.tuples(
        st.sampled_from("ab"), st.integers(0, 60), st.sampled_from([2.0, 10.0, 30.0, float("nan")])
    ),
    max_size=40,
)


@settings(max_examples=80)
@given(ARRIVALS, st.lists(st.integers(0, 40), max_size=4), st.booleans())
def test_with_a_delay_all_that_is_not_late_counts(
    rows: list[tuple[str, int, float]], cuts: list[int], is_near: bool
) -> None:
    """Like the answer of one table, whatever the cuts; crossings in order of time over all
    pushes."""
    if is_near:
        rows = [(who, t // 12 + k, v) for k, (who, t, v) in enumerate(rows)]
    clock, taken, late = -1, [], []
    for row in rows:
        clock = max(clock, row[1])
        is_late = row[1] < clock - DELAY and row[2] == row[2]
        (late if is_late else taken).append(row)
    ends = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    monitor = BorderMonitor(QUERIES, delay=DELAY, first="outside")
    parts = [monitor.push(table([]))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", coincide.CoincideWarning)
        for start, stop in pairwise(ends):
            parts.append(monitor.push(table(rows[start:stop])))
            monitor = pickle.loads(pickle.dumps(monitor))
        assert monitor.summary().waiting <= len(taken)
        parts.append(monitor.flush())
        wanted = border_crossing_tables(table(taken), QUERIES, first="outside")
        inside = inside_tables(table(taken), QUERIES)
    found = pa.concat_tables(parts)
    assert sorted(tuples(found)) == sorted(tuples(wanted))
    assert (np.diff(found["max_time"].to_numpy()) >= 0).all()
    assert tuples(monitor.take_late()) == late
    summary = monitor.summary()
    assert (summary.readings, summary.late, summary.waiting) == (len(rows), len(late), 0)
    assert sorted(tuples(monitor.inside())) == sorted(tuples(inside))


def test_late_readings_are_warned_of_and_given_out() -> None:
    monitor = BorderMonitor(QUERIES, delay="5s", invalid="drop", unit="s", tick="s")
    assert monitor.push(table([("a", 100, 10.0), ("b", 97, 30.0)])).num_rows == 0
    late = pa.table(
        {"stream_id": ["b", None, "a"], "time": [20, 101, 98], "value": [10.0, 1.0, 30.0]}
    )
    with pytest.warns(
        coincide.LateRowsWarning,
        match=r"skipped 1 that came too late, by up to 1.333 min.*delay='80s'",
    ):
        monitor.push(late)
    assert tuples(monitor.take_late()) == [("b", 20, 10.0)]
    assert monitor.take_late().num_rows == 0
    assert tuples(monitor.advance(110)) == [("hot", "a", "O", 98, 100)]
    assert monitor.summary().dropped == {"null": 1}


def test_late_readings_without_a_delay_are_warned_of() -> None:
    """The delay that is reported takes all readings."""
    rows = [("a", 100, 10.0), ("b", 60, 10.0), ("a", 95, 30.0), ("b", 61, 30.0)]
    monitor = BorderMonitor(QUERIES)
    with pytest.warns(
        coincide.LateRowsWarning, match=r"4 rows: skipped 1 that came too late.*delay=40\)"
    ):
        monitor.push(table(rows))
    again = BorderMonitor(QUERIES, delay=40)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again.push(table(rows))
    assert again.summary().late == 0
    with pytest.raises(coincide.ConditionError, match="without a delay"):
        monitor.take_late()


def test_readings_of_a_time_again_are_warned_of() -> None:
    """Twelve sensors under one name."""
    rows = [("all", t, float(k)) for t in range(9) for k in range(12)]
    words = "108 rows: skipped 99 that repeat a time .* with stream"
    with pytest.warns(coincide.LateRowsWarning, match=words):
        border_crossing_tables(table(rows), QUERIES)
    with pytest.warns(coincide.LateRowsWarning, match=words):
        BorderMonitor(QUERIES).push(table(rows))


@pytest.mark.parametrize(
    ("delay", "words"),
    [("-1s", "cannot be negative"), ("5s", "has a unit"), ("soon", "cannot read")],
)
def test_delays_that_make_no_sense(delay: str, words: str) -> None:
    with pytest.raises(coincide.ConditionError, match=words):
        BorderMonitor(QUERIES, delay=delay).push(table([]))


def test_a_monitor_that_knows_no_columns() -> None:
    monitor = BorderMonitor(QUERIES, delay=1)
    for call in (monitor.flush, monitor.take_late, lambda: monitor.advance(3)):
        with pytest.raises(coincide.ConditionError, match=r"\(\) does not know the columns yet"):
            call()


def test_queries_that_come_while_readings_wait_meet_them() -> None:
    monitor = BorderMonitor(QUERIES, delay=DELAY)
    monitor.push(table([("a", 0, 10.0), ("a", 1, 30.0)]))
    monitor.remove(["hot"])
    monitor.add(pa.table({"query_id": ["warm"], "lower": [20], "upper": [40]}))
    assert tuples(monitor.flush()) == [("warm", "a", "I", 0, 1)]
    assert pc.sum(monitor.push(table([("a", 3, 1.0)]))["max_time"]).as_py() is None
