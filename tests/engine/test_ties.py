"""Matches that are as good as the last of the k: by the order of rows one of them counts, or all do."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide import ConditionError, CorrelateOptions, correlate_tables, overlapping, spans
from cpu_fallback.reference.spans import Span, is_overlapping, overlap

EVENTS = st.lists(st.tuples(st.integers(-6, 6), st.integers(0, 3), st.integers(0, 1)), max_size=9)
"""Times, values or lengths, and keys."""
BEST: dict[str, Any] = {
    "nearest": lambda delta, value: abs(delta),
    "first": lambda delta, value: delta,
    "last": lambda delta, value: -delta,
    "value": lambda delta, value: value,
    "-value": lambda delta, value: -value,
    "probability": lambda delta, value: 0,
}


def with_ties(found: list[list[tuple[Any, int]]], k: int) -> list[tuple[int, int, int]]:
    """Left and right rows and ranks, from what is least of each match of each left event."""
    rows = []
    for i, matches in enumerate(found):
        for least, j in matches:
            better = sum(other < least for other, _ in matches)
            if better < k:
                rows.append((i, j, better + 1))
    return sorted(rows)


def ranked(found: pa.Table, k: int) -> list[tuple[int, int, int]]:
    ranks = found["rank"].to_pylist() if k > 1 else [1] * found.num_rows
    return sorted(
        zip(found["left_id"].to_pylist(), found["right_id"].to_pylist(), ranks, strict=True)
    )


def table(events: list[tuple[int, int, int]]) -> pa.Table:
    columns: list[tuple[int, ...]] = list(zip(*events, strict=True)) if events else [(), (), ()]
    names = ("t", "value", "key")
    own = {name: pa.array(each, pa.int64()) for name, each in zip(names, columns, strict=True)}
    return pa.table({"id": pa.array(range(len(events)), pa.int64()), **own})


@settings(max_examples=150)
@given(
    left=EVENTS, right=EVENTS, k=st.integers(1, 3), prefer=st.sampled_from(list(BEST)),
    batch=st.integers(1, 9),
)  # fmt: skip
def test_all_that_are_as_good(left: Any, right: Any, k: int, prefer: Any, batch: int) -> None:
    found = [
        [
            (BEST[prefer](u - t, value), j)
            for j, (u, value, other) in enumerate(right)
            if other == key and -4 <= u - t <= 3
        ]
        for t, _, key in left
    ]
    asked: dict[str, Any] = {
        "within": (-4, 3), "left_time": "t", "right_time": "t", "by": "key", "emit": "best", "k": k,
        "prefer": prefer, "options": CorrelateOptions(batch_pairs=batch),
    }  # fmt: skip
    tables = table(left), table(right)
    got = correlate_tables(*tables, **asked, ties="all")
    assert ranked(got, k) == with_ties(found, k)
    alone = correlate_tables(*tables, **asked, ties="all", how="left")
    assert alone.num_rows == got.num_rows + sum(not each for each in found)
    few = correlate_tables(*tables, **asked)
    assert few.num_rows == sum(min(len(each), k) for each in found)


@settings(max_examples=150)
@given(left=EVENTS, right=EVENTS, k=st.integers(1, 3))
def test_spans_with_as_much_in_common(left: Any, right: Any, k: int) -> None:
    """Or with none, and one gap."""
    sides = [[Span(t, t + n) for t, n, _ in events] for events in (left, right)]
    found = [
        [
            (-overlap(own, span), j)
            for j, span in enumerate(sides[1])
            if right[j][2] == left[i][2] and is_overlapping(own, span, gap=2)
        ]
        for i, own in enumerate(sides[0])
    ]
    time = spans("t", duration="value")
    got = correlate_tables(
        table(left), table(right), overlapping(gap=2), left_time=time, right_time=time, by="key",
        emit="best", k=k, ties="all",
    )  # fmt: skip
    assert ranked(got, k) == with_ties(found, k)


def test_probabilities_that_are_equal() -> None:
    """However far from the middle of the window."""
    left = pa.table({"id": [0], "t": [0]})
    right = pa.table({"id": [0, 1, 2], "min_time": [1, 4, 9], "max_time": [3, 6, 12]})
    asked: dict[str, Any] = {"within": (0, 10), "confidence": 0.1, "left_time": "t", "emit": "best"}
    found = correlate_tables(left, right, **asked, ties="all", probability=True)
    assert sorted(found["right_id"].to_pylist()) == [0, 1]
    assert found["probability"].to_pylist() == [1.0, 1.0]
    assert correlate_tables(left, right, **asked)["right_id"].to_pylist() == [1]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another word": ({"ties": "some", "emit": "best"}, "ties must be one of order, all"),
    "all matches": ({"ties": "all"}, "ties='all' chooses among matches, .* Add emit='best'"),
    "matching": ({"ties": "all", "matching": "mutual"}, "at most one match. Remove ties='all'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_meaning_is_refused(name: str) -> None:
    asked, message = REFUSED[name]
    side = pa.table({"id": [0], "t": [0]})
    with pytest.raises(ConditionError, match=message):
        correlate_tables(side, side, within=5, left_time="t", right_time="t", **asked)
