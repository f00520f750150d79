"""Rows far ahead of the last ones of their side: they are set aside, and silence nothing."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bench.hunt.questions import ahead
from coincide import (
    AheadRowsWarning,
    ConditionError,
    CorrelateOptions,
    LateRowsWarning,
    StreamJoin,
    stream_tables,
)

WHOLE = CorrelateOptions(unit="s", tick="ms")


def fast_clock(**more: Any) -> StreamJoin:
    asked = {"left_delay": "2s", "right_delay": "2s", "left_time": "t", "right_time": "t", **more}
    return stream_tables(
        within=("0s", "2s"), confidence=0.9, left_columns=["t"], right_columns=["t"],
        options=WHOLE, **asked,
    )  # fmt: skip


def times(*given: float) -> pa.Table:
    return pa.table({"t": np.array(given, float)})


def test_a_clock_a_day_fast_silences_nothing() -> None:
    stream = fast_clock(left_ahead="1h")
    stream.push("right", times())
    words = (
        r"left, 3 rows: set aside 1 too far ahead of the last rows, by up to 1 d"
        r" \(found max_time 86,411 s\)\. .*left_ahead='25h'"
    )
    with pytest.warns(AheadRowsWarning, match=words):
        stream.push("left", times(10, 86411, 20))
    found = stream.push("right", times(21))
    assert found.to_pylist() == [{"left_t": 20.0, "right_t": 21.0}]
    assert (stream.summary().late, stream.summary().ahead) == ((0, 0), (1, 0))
    again = pickle.loads(pickle.dumps(stream))
    for each in (stream, again):
        assert each.take_ahead("left").to_pylist() == [{"t": 86411.0}]
        assert each.take_ahead("left").num_rows == each.take_ahead("right").num_rows == 0


def test_the_row_that_moved_the_clock_is_blamed() -> None:
    words = r"skipped 1 .*max_time 86,411 s moved the clock, 24 h ahead.*left_ahead='60min'"
    stream = fast_clock()
    stream.push("right", times())
    with pytest.warns(LateRowsWarning, match=words):
        stream.push("left", times(10, 86411, 20))
    # Where many of the last rows are as far, it is the late row that is behind.
    stream = fast_clock()
    stream.push("right", times())
    with pytest.warns(LateRowsWarning, match=r"left_delay='80s', which accepts them"):
        stream.push("left", times(100, 101, 102, 22))
    # Time alone is no row.
    stream = fast_clock()
    stream.push("right", times())
    stream.push("left", times(10, 11))
    stream.advance(86411.0, "left")
    with pytest.warns(LateRowsWarning, match=r"left_delay='24h', which accepts them"):
        stream.push("left", times(20))


def test_a_warning_that_is_an_error_takes_nothing() -> None:
    stream = fast_clock(left_ahead="1h")
    stream.push("right", times())
    stream.push("left", times(10))
    before = stream.summary()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(AheadRowsWarning):
            stream.push("left", times(86411))
    assert stream.summary() == before


def test_time_that_went_on_moves_the_clock_again() -> None:
    """After a pause rows are set aside until most of the last 31 are new; at once if time was passed."""
    stream = fast_clock(left_ahead="1h")
    stream.push("right", times())
    stream.push("left", times(*range(40)))
    with pytest.warns(AheadRowsWarning, match="set aside 16"):
        stream.push("left", times(*range(90_000, 90_020)))
    assert stream.summary().ahead == (16, 0)
    told = fast_clock(left_ahead="1h")
    told.push("right", times())
    told.push("left", times(*range(40)))
    told.advance(90_000.0, "left")
    told.push("left", times(*range(90_000, 90_020)))
    assert told.summary().ahead == (0, 0)


def test_rows_set_aside_are_no_unmatched_ones() -> None:
    for how in ("left", "anti"):
        stream = fast_clock(left_ahead="1h", how=how)
        stream.push("right", times())
        with pytest.warns(AheadRowsWarning):
            stream.push("left", times(10, 86411, 20))
        rows = [*stream.push("right", times(21)).to_pylist(), *stream.flush().to_pylist()]
        assert sorted(row["left_t"] for row in rows) == ([10.0, 20.0] if how == "left" else [10.0])


def test_one_stream() -> None:
    stream = stream_tables(
        within=("0s", "2s"), confidence=0.9, left_time="t", left_columns=["t"],
        right_columns=["t"], options=WHOLE, left_delay="2s", left_ahead="1h",
    )  # fmt: skip
    with pytest.warns(AheadRowsWarning, match="event, 3 rows: set aside 1"):
        found = stream.push(times(10, 86411, 11))
    assert found.to_pylist() == [{"left_t": 10.0, "right_t": 11.0}]
    assert stream.take_ahead().to_pylist() == [{"t": 86411.0}]
    with pytest.raises(ConditionError, match="right_ahead needs a second stream"):
        stream_tables(within=("0s", "2s"), confidence=0.9, left_delay="2s", right_ahead="1h")
    with pytest.raises(ConditionError, match=r"left_ahead is .* cannot be negative"):
        fast_clock(left_ahead="-1h")


def test_drawn_streams_with_fast_rows() -> None:
    for seed in range(180):
        assert ahead.wrong(np.random.default_rng([8, seed])) is None
