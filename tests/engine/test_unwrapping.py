"""Counters that wrap: what was counted comes back, in joins too; what is ambiguous is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bench.hunt.questions import counters
from coincide import ConditionError, DataError, SchemaError, correlate_tables, unwrapped


def table(times: Any, kind: pa.DataType | None = None) -> pa.Table:
    return pa.table({"id": range(len(times)), "t": pa.array(times, kind or pa.uint32())})


def test_true_times_come_back_but_for_whole_turns() -> None:
    for seed in range(300):
        assert counters.wrong(np.random.default_rng([1, seed])) is None


def test_a_join_across_the_turn() -> None:
    last = 2**32 - 1
    left, right = table([last - 10, last, 4]), table([last - 8, 1, 7])
    given: dict[str, Any] = {"left_time": "t", "right_time": "t", "within": (0, 3)}
    lost = correlate_tables(left, right, **given)
    assert sorted(zip(*lost.to_pydict().values(), strict=True)) == [(0, 0), (2, 2)]
    found = correlate_tables(*unwrapped(left, right, modulus=2**32, left_time="t"), **given)
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == [(0, 0), (1, 1), (2, 2)]


def test_ends_of_intervals_and_one_table() -> None:
    events = pa.table(
        {"min_time": [90, 98, 3, None, 5], "max_time": [95, 2, 3, 7, None], "n": range(5)}
    )
    found = unwrapped(events, modulus=100)
    assert found["min_time"].to_pylist() == [90, 98, 103, None, 105]
    assert found["max_time"].to_pylist() == [95, 102, 103, None, None]
    assert found["n"].to_pylist() == [0, 1, 2, 3, 4]
    assert unwrapped({"t": [90, 10]}, modulus=100, left_time="t")["t"].to_pylist() == [90, 110]
    assert unwrapped({"t": [10, 90]}, modulus=100, left_time="t")["t"].to_pylist() == [10, -10]
    assert unwrapped(events.slice(0, 0), modulus=100).num_rows == 0


REFUSED: dict[str, tuple[type[Exception], dict[str, Any], str]] = {
    "a long step": (DataError, {"left": {"t": [0, 10, 40]}}, "left.t is ambiguous: row 2 is 30 after"),
    "far apart": (DataError, {"right": {"t": [50]}}, "right.t is ambiguous: row 0 is 50 after the first"),
    "far apart in order": (
        DataError, {"right": {"t": [50]}, "in_order": True}, "so that both begin together",
    ),
    "above": (DataError, {"left": {"t": [1, 100]}}, r"left.t must lie .* below 100 \(found 100 in row 1"),
    "below": (DataError, {"left": {"t": [-1]}}, "found -1 in row 0"),
    "too wide": (
        DataError, {"left": {"t": [1], "u": [60]}, "left_time": ("t", "u"), "right_time": "t"},
        "left.u must be at most a quarter of the modulus after t",
    ),
    "fractions": (SchemaError, {"left": {"t": [0.5]}}, "must hold whole numbers"),
    "no column": (SchemaError, {"left_time": "time", "right_time": "t"}, "no column 'time'"),
    "no modulus": (ConditionError, {"modulus": 3}, r"modulus=4294967296 for a counter of 32 bits"),
    "a fraction of a modulus": (ConditionError, {"modulus": 4.5}, "a whole number from 4"),
    "a DataFrame": (
        SchemaError, {"left": SimpleNamespace(sparkSession=None)}, "whose rows have no order",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    error, change, words = REFUSED[name]
    given = {
        "left": {"t": [0, 10]},
        "right": {"t": [99]},
        "modulus": 100,
        "left_time": "t",
    } | change
    with pytest.raises(error, match=words):
        unwrapped(given.pop("left"), given.pop("right"), **given)


def test_long_steps_are_clear_in_order() -> None:
    found = unwrapped({"t": [0, 60, 40]}, modulus=100, left_time="t", in_order=True)
    assert found["t"].to_pylist() == [0, 60, 140]
