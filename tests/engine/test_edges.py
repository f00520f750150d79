"""Odd values and types that joins have to take, or refuse in words of their own."""

from __future__ import annotations

import contextlib

import pyarrow as pa
import pytest

from coincide import CoincideError, CorrelateOptions, around, correlate_tables

EVENTS = pa.table({"id": [1, 2], "t": [0, 5], "x": [4.0, 0.0]})
ASKED = {"within": (0, 6), "confidence": 0.5, "left_time": "t", "right_time": "t"}


def test_a_quotient_by_zero_is_no_error_where_it_is_ruled_out() -> None:
    where = "right_x <> 0 AND left_x / right_x = 1"
    found = correlate_tables(EVENTS, EVENTS, where=where, **ASKED)
    assert found.to_pylist() == [{"left_id": 1, "right_id": 1}]


@pytest.mark.parametrize(
    "where", ["left_big + right_id > 0", "left_big = right_x", "left_id < 9223372036854775808"]
)
def test_where_is_computed_or_refused_in_our_words(where: str) -> None:
    events = EVENTS.append_column("big", pa.array([2**63 - 1] * 2))
    with contextlib.suppress(CoincideError):  # what comes from Arrow has no cure in it
        correlate_tables(events, events, where=where, **ASKED)


@pytest.mark.parametrize("width", [2**63 - 1, -(2**63)])
def test_half_widths_that_stand_for_nothing_are_invalid(width: int) -> None:
    events = EVENTS.append_column("w", pa.array([width, 0]))
    asked = ASKED | {"left_time": around("t", column="w"), "how": "left"}
    found = correlate_tables(events, EVENTS, options=CorrelateOptions(invalid="drop"), **asked)
    assert found["left_id"].to_pylist() == [2]


def test_best_matches_with_columns_of_extension_types() -> None:
    events = EVENTS.append_column("key", pa.array([b"0" * 16, b"1" * 16], pa.uuid()))
    found = correlate_tables(events, events, emit="best", right_columns=["id", "key"], **ASKED)
    assert found.num_rows == 2
