"""Rows far ahead of the last ones of their side: they are set aside, and silence nothing."""

from __future__ import annotations

import os
import pickle
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from coincide import (
    AheadRowsWarning,
    ConditionError,
    CorrelateOptions,
    LateRowsWarning,
    StreamJoin,
    TimingCondition,
    correlate_tables,
    stream_tables,
    within,
)
from tests.helpers.strategies import JoinCase, Row, random_cases
from tests.helpers.stream_tables import in_order, late_and_ahead, pushed, stream_sides, table_of

MANY = int(os.environ.get("COINCIDE_AHEAD", "60"))
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


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@pytest.mark.parametrize("how", ["inner", "left", "anti"])
def test_drawn_streams_with_fast_rows(how: str) -> None:
    """Rows late and set aside by the definition, row by row; all others are joined as in a batch."""
    rows = late = ahead = 0
    for i, case in enumerate(random_cases(53, MANY, max_size=60)):
        found = _check(case, np.random.default_rng([8, i]), how)
        rows, late, ahead = (a + b for a, b in zip((rows, late, ahead), found, strict=True))
    assert min(rows, late, ahead) > MANY / 4, (rows, late, ahead)


def _check(case: JoinCase, rng: np.random.Generator, how: str) -> tuple[int, int, int]:
    sides, delays = stream_sides(case, rng)
    sides = [[_fast(row, rng) for row in rows] for rows in sides]
    aheads = [int(rng.choice([0, 20, 500, 10_000])) for _ in sides]
    condition = TimingCondition(within(case.lo, case.hi), case.confidence)
    asked: dict[str, Any] = {"by": case.by, "backend": "cpu", "how": how}
    stream = stream_tables(
        condition, left_delay=delays[0], right_delay=delays[1],
        left_ahead=aheads[0], right_ahead=aheads[1], **asked,
    )  # fmt: skip
    found = pushed(stream, sides, rng)
    gone = [late_and_ahead(*each) for each in zip(sides, delays, aheads, strict=True)]
    kept = [
        table_of([row for row in rows if row["id"] not in late | ahead])
        for rows, (late, ahead) in zip(sides, gone, strict=True)
    ]
    want = correlate_tables(*kept, condition, **asked)
    assert in_order(found) == in_order(want)
    (late, ahead), (right_late, right_ahead) = gone
    assert stream.summary().late == (len(late), len(right_late))
    assert stream.summary().ahead == (len(ahead), len(right_ahead))
    for side, own in (("left", ahead), ("right", right_ahead)):
        assert stream.take_ahead(side).num_rows == len(own)
    return want.num_rows, len(late) + len(right_late), len(ahead) + len(right_ahead)


def _fast(row: Row, rng: np.random.Generator) -> Row:
    """A row, now and then of a clock that is fast."""
    if row["max_time"] is None or row["min_time"] is None or rng.random() > 0.1:
        return row
    by = int(rng.choice([25, 600, 20_000]))
    return {**row, "min_time": row["min_time"] + by, "max_time": row["max_time"] + by}
