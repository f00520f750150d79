"""Bad input to stream correlators: clear errors, and nothing taken in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from bench.papers.streams import ALGORITHMS, stream_correlator
from bench.papers.streams.correlator import StreamCorrelator
from coincide import TimingCondition, Window, mutual_deadline, within
from coincide.model.errors import ConditionError, DataError, SchemaError
from coincide.model.timestamps import IntervalEvents

GOOD: dict[str, Any] = {
    "left_delay": 5, "right_delay": 5, "left_longest": 10, "right_longest": 10,
    "left_shortest": 2, "right_shortest": 2,
}  # fmt: skip
WINDOW = Window(-20, 20, 0.5)


def correlator(algorithm: str = "lazy", **options: Any) -> StreamCorrelator:
    return stream_correlator(algorithm, WINDOW, **(GOOD | options))


def events(*ends: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.array(ends, np.int64).reshape(-1, 2).T
    return low, high


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "hasty"}, "algorithm must be one of simple, .* .found 'hasty'"),
        ({"block": 0}, "block must be at least 1 .found 0"),
        ({"every": -3}, "every must be at least 1 .found -3"),
        ({"block": None}, "Give block .*, every .*, or both"),
        ({"block": 2.5}, "block must be an int .found 2.5"),
        ({"left_delay": -1}, "left_delay must be 0 or more .* .found -1"),
        ({"right_longest": 2**62}, "right_longest must be .* below 2\\^62"),
        ({"left_shortest": 11}, "left_shortest \\(11\\) is above left_longest \\(10\\)"),
        (
            {"right_delay": "5ms"},
            "right_delay must be an int .found '5ms'.*bare ticks. Give an int",
        ),
        ({"emit": "lists"}, "emit must be one of pairs, counts .found 'lists'"),
        ({"classes": 17}, "classes must be at most 16 .found 17"),
        ({"condition": Window(3, 2, 0.5)}, "lo \\(3\\) is above hi \\(2\\)"),
        ({"condition": Window(0, 2, 0.0)}, "must lie in \\(0, 1\\]"),
        ({"condition": Window(0, 2**61, 0.5)}, "below 2\\^61"),
        (
            {"condition": within(0, 2)},
            r"must be a TimingCondition or a Window .* Wrap a predicate as",
        ),
        (
            {"condition": Window("1s", "2s", 0.5)},
            "has a unit, but a stream's times are bare ticks",
        ),
        ({"classes": 10**30}, "classes must be at most 16"),
        ({"condition": TimingCondition(within("1s", "2s"), 0.5)}, "as an int in ticks"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    options = {"algorithm": "lazy", "condition": WINDOW, **GOOD, **options}
    with pytest.raises(ConditionError, match=message):
        stream_correlator(options.pop("algorithm"), options.pop("condition"), **options)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (events((0, 5), (9, 7)), DataError, r"left: event 1 .* \[9, 7\], has min_time above max"),
        (events((0, 5), (0, 11)), DataError, r"11 ticks long, but left_longest is 10. Give"),
        (events((0, 5), (4, 5)), DataError, r"1 ticks long, but left_shortest is 2. Give"),
        (events((2**61 - 5, 2**61)), DataError, r"reaches 2\^61 ticks. Use a coarser unit"),
        (events((-(2**61), -(2**61) + 5)), DataError, r"reaches 2\^61 ticks"),
        (events((2**62, -(2**62))), DataError, r"reaches 2\^61 ticks"),
        ((np.array([2**63], np.uint64), np.array([2**63], np.uint64)), DataError, r"2\^61"),
        ((np.array([0]), np.array([5, 6])), SchemaError, "max_time has 2 entries, but min_time"),
        ((np.array([0.5]), np.array([5.0])), SchemaError, "array of integers .* .found float64"),
        ((np.zeros((1, 2), int), np.zeros((1, 2), int)), SchemaError, "one-dimensional"),
        ([np.array([0]), np.array([5])], SchemaError, "IntervalEvents or a pair of arrays"),
        (
            IntervalEvents(*events((0, 5)), np.zeros(1, np.int64)),
            DataError,
            "a stream correlator has no groups",
        ),
    ],
)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_bad_events(algorithm: str, given: Any, error: type[Exception], message: str) -> None:
    made = correlator(algorithm, block=1)
    made.push("right", events((0, 5)))
    with pytest.raises(error, match=message):
        made.push("left", given)
    # Nothing of the bad push was taken.
    assert made.stats.arrived == (0, 1)
    assert made.push("left", events((0, 5))).count + made.flush().count == 1


@pytest.mark.parametrize("side", ["base", "LEFT", 0, None, ["left"]])
def test_unknown_side(side: Any) -> None:
    for call in (lambda: correlator().push(side, events()), lambda: correlator().take_late(side)):
        with pytest.raises(ConditionError, match=r"side must be 'left' or 'right' .found"):
            call()


@pytest.mark.parametrize(
    ("sides", "message"),
    [
        ([0, 2], "found 2 at position 1"),
        ([-1, 0], "found -1 at position 0"),
        ([0], "has 1 entries, but min_time has 2"),
        ([0.0, 1.0], "found float64"),
        ([[0, 1]], r"found int64 of shape \(1, 2\)"),
        (["left", "right"], "found <U5"),
        *((number, r"found \w+ of shape \(\)") for number in (0, 1, 2, 3, 200, -1, True)),
    ],
)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_bad_sides_of_a_mixed_push(algorithm: str, sides: Any, message: str) -> None:
    made = correlator(algorithm)
    with pytest.raises(SchemaError, match=f"sides.*{message}"):
        made.push_mixed(sides, events((0, 5), (1, 6)))
    assert made.stats.arrived == (0, 0)


MASKED = np.ma.array([1, 2], mask=[False, True])
NULL = "must hold no nulls, masked entries or NaN .found one at position 1"


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (MASKED, DataError, NULL),
        (pa.array([1, None]), DataError, NULL),
        (pa.chunked_array([[1], [None]]), DataError, NULL),
        (pd.Series([1, None]), DataError, NULL),
        (pd.Series([1, None], dtype="Int64"), DataError, NULL),
        ([1, None], DataError, NULL),
        ([1.0, float("nan")], DataError, NULL),
        ([1, [2]], SchemaError, "must be a one-dimensional array of integers .found a list"),
        ([1, 2**70], DataError, r"reaches 2\^61 ticks"),
        ([-1, 2**63], DataError, r"reaches 2\^61 ticks"),
        ([1, -(2**63) - 1], DataError, r"reaches 2\^61 ticks"),
    ],
)
@pytest.mark.parametrize("name", ["min_time", "max_time", "arrival", "sides"])
def test_nulls_ragged_lists_and_huge_ints(
    name: str, bad: Any, error: type[Exception], message: str
) -> None:
    given: dict[str, Any] = {
        "min_time": [1, 2], "max_time": [3, 4], "arrival": [3, 4], "sides": [0, 1], name: bad
    }  # fmt: skip
    if name == "sides" and "2\\^61" in message:
        error, message = SchemaError, "0 .left. and 1 .right."
    made = correlator()
    with pytest.raises(error, match=f"{name}.*{message}"):
        made.push_mixed(
            given["sides"], (given["min_time"], given["max_time"]), arrival=given["arrival"]
        )
    if name != "sides":
        with pytest.raises(error, match=f"{name}.*{message}"):
            made.push("left", (given["min_time"], given["max_time"]), arrival=given["arrival"])
    assert made.stats.arrived == (0, 0)


def test_masked_times_of_interval_events_and_unmasked_arrays() -> None:
    with pytest.raises(DataError, match=f"min_time {NULL}"):
        correlator().push("left", IntervalEvents(MASKED, np.array([4, 5])))
    assert correlator().push("left", (np.ma.array([1, 2]), np.ma.array([4, 5]))).count == 0


@pytest.mark.parametrize("options", [{"block": 10**30}, {"block": None, "every": 10**30}])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_huge_block_is_never_full(algorithm: str, options: dict[str, Any]) -> None:
    made = correlator(algorithm, **options)
    found = [made.push(side, events((0, 5))).count for side in ("left", "right")]
    assert sum(found) + made.flush().count == 1
    assert sum(found) == (algorithm not in ("lazy", "lookup", "classes"))


def test_arrivals_that_go_back() -> None:
    made = correlator()
    two = events((0, 5), (1, 6))
    with pytest.raises(DataError, match=r"arrives at 6, before an earlier event .* at 7"):
        made.push("left", two, arrival=[7, 6])
    made.push("left", two, arrival=[7, 8])
    made.push("right", two, arrival=[5, 6])
    with pytest.raises(
        DataError, match=r"arrives at 7, before an earlier .* at 8. Push the events"
    ):
        made.push("left", two, arrival=[7, 9])
    with pytest.raises(DataError, match=r"arrives at \d+, beyond 2\^61"):
        made.push("left", two, arrival=[9, 2**61])
    with pytest.raises(SchemaError, match="arrival has 1 entries"):
        made.push("left", two, arrival=[9])
    assert made.stats.arrived == (2, 2)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_after_flush(algorithm: str) -> None:
    made = correlator(algorithm)
    made.push("left", events((0, 5)))
    made.flush()
    for call in (
        lambda: made.push("left", events((0, 5))),
        lambda: made.push_mixed([0], events((0, 5))),
        lambda: made.advance(7),
    ):
        with pytest.raises(DataError, match=r"was flushed .* Make a new one"):
            call()
    assert made.flush().count == 0
    assert made.stats.arrived == (1, 0)


@pytest.mark.parametrize("time", [2**61, -(2**61), 1.5, "1s", True])
def test_bad_heartbeat(time: Any) -> None:
    with pytest.raises(ConditionError, match="time must be an int"):
        correlator().advance(time)


@pytest.mark.parametrize("side", ["base", 0, ["left"]])
def test_heartbeat_of_an_unknown_side(side: Any) -> None:
    with pytest.raises(ConditionError, match=r"side must be 'left' or 'right' .found"):
        correlator().advance(5, side)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_empty_pushes(algorithm: str) -> None:
    made = correlator(algorithm)
    for given in (events(), ([], []), IntervalEvents(*events())):
        assert made.push("left", given).count == 0
        assert made.push_mixed([], given, arrival=[]).count == 0
    result = made.flush()
    assert result.count == result.left.size == result.right.size == 0
    assert made.stats.arrived == (0, 0)
    assert made.stats.hit_ratio == 0.0


def test_kinds_of_arrays_and_conditions() -> None:
    low, high = events((0, 5), (3, 9))
    frozen = low.copy()
    frozen.flags.writeable = False
    ways = [
        (low, high),
        (low.tolist(), high.tolist()),
        (low.astype(np.int32), high.astype(np.uint8)),
        (np.repeat(low, 2)[::2], high[::-1][::-1]),
        (frozen, high),
        IntervalEvents(low, high),
    ]
    for condition in (WINDOW, TimingCondition(mutual_deadline(20), 0.5)):
        for given in ways:
            made = stream_correlator("eager", condition, **GOOD)
            assert made.push("left", given).count == 0
            assert made.push("right", given).count == 4


def test_tables_are_sent_where_they_are_taken() -> None:
    with pytest.raises(SchemaError, match=r"found Table\). Use coincide.stream_tables"):
        correlator().push("left", pa.table({"id": [1], "key": ["a"]}))
