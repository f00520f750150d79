"""What is said of a window on exact times, and on timestamps: no more than can matter, and with a unit."""

from __future__ import annotations

import pyarrow as pa
import pytest

import coincide
from coincide import ConditionError, within
from tests.helpers.workplace import Workplace

AT = ("--left-time", "t", "--right-time", "t")
TIMES = {
    "timestamp": pa.array([0, 3, 10], pa.timestamp("s")),
    "date": pa.array([0, 3, 10], pa.int32()).cast(pa.date32()),
    "duration": pa.array([0, 3, 10], pa.duration("s")),
    "integer": pa.array([0, 3, 10]),
}


def stamped(work: Workplace, kind: str) -> pa.Table:
    table = pa.table({"id": [0, 1, 2], "t": TIMES[kind]})
    work.left, work.right = (work.write(f"{name}.parquet", table) for name in ("l", "r"))
    return table


@pytest.mark.parametrize("kind", TIMES)
def test_exact_times_need_no_confidence(work: Workplace, kind: str) -> None:
    window = {"integer": "3", "date": "3d"}.get(kind, "3s")
    table = stamped(work, kind)
    assert work.join("--within", window, window, *AT)[0] == 0
    assert work.result()["left_id"].to_pylist() == [0]
    given = int(window) if kind == "integer" else window
    asked = {"left_time": "t", "right_time": "t"}
    found = coincide.correlate_tables(table, table, within=(given, given), **asked)
    assert found["right_id"].to_pylist() == [1]
    found = coincide.correlate_tables(table, table, within(given, given), **asked)
    assert found["right_id"].to_pylist() == [1]


NOTHING = [("0s", None, None), (0, None, None), (None, "-5ms", "5ms"), (None, "0s", 0)]


@pytest.mark.parametrize(("width", "before", "after"), NOTHING)
def test_stamps_that_are_off_by_nothing_need_no_confidence(
    width: object, before: object, after: object
) -> None:
    table = pa.table({"id": [0, 1, 2], "t": TIMES["timestamp"]})
    ends = {"width": width} if width is not None else {"before": before, "after": after}
    times = {"left_time": coincide.around("t", **ends), "right_time": "t"}
    found = coincide.correlate_tables(table, table, within=("2s", "4s"), **times)
    assert found["right_id"].to_pylist() == [1]
    for wide in ("1us", 1):
        times["left_time"] = coincide.around("t", before=0, after=wide)
        with pytest.raises(ConditionError, match="confidence is missing"):
            coincide.correlate_tables(table, table, within=("2s", "4s"), **times)


def test_the_command_needs_none_for_stamps_that_are_off_by_nothing(work: Workplace) -> None:
    stamped(work, "timestamp")
    about = ("--left-around", "0s", "--right-resolution", "0s")
    assert work.join("--within", "3s", "3s", *AT, *about)[0] == 0
    assert "--confidence" in work.refused("--within", "3s", "3s", *AT, "--left-around", "1us")


def test_intervals_need_a_confidence(work: Workplace) -> None:
    table = stamped(work, "integer")
    assert "--confidence" in work.refused("--within", "0", "3", "--left-time", "t,t2")
    with pytest.raises(ConditionError, match="confidence is missing"):
        coincide.correlate_tables(table, table, within=(0, 3), left_time="t")
    with pytest.raises(ConditionError, match="must lie in"):
        coincide.correlate_tables(table, table, within(0, 3), confidence=0)


@pytest.mark.parametrize("kind", ["timestamp", "date", "duration"])
def test_a_bare_number_beside_timestamps_is_refused(work: Workplace, kind: str) -> None:
    """Also in Python; a 0 is a 0 everywhere."""
    table = stamped(work, kind)
    assert "Write '3ms'" in work.refused("--within", "0", "3", *AT)
    assert "Write '3ms'" in work.refused("--mutual-deadline", "3", *AT)
    more = ("--confidence", "0.5", "--left-around", "5")
    assert "Write '5ms'" in work.refused("--within", "0", "3s", *AT, *more)
    assert work.join("--within", "0", "10d", *AT)[0] == 0
    with pytest.raises(ConditionError, match=r"Write '3ms'.* For ticks write '3u?s'"):
        coincide.correlate_tables(table, table, within=(0, 3), left_time="t", right_time="t")
    given = {"left_time": "t", "right_time": "t"}
    assert coincide.correlate_tables(table, table, within=(0, "10d"), **given).num_rows > 0
