"""Spans as sets of time: labels of unions, gaps, differences, what is covered, as sets of points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coincide
from coincide import (
    ConditionError,
    CorrelateOptions,
    DataError,
    SchemaError,
    coverage,
    covered,
    difference,
    gaps,
    labelled,
    merged,
    spans,
)
from coincide.model.condition import Closed
from cpu_fallback.reference.spans import Span, depths, lasting, runs, ticks, unions
from tests.helpers.rows import tuples

LAST = 50
"""After all times of drawn events; where those end that go on."""
EVENTS = st.lists(
    st.tuples(
        st.none() | st.integers(-8, 12) | st.integers(-8, 12),
        st.none() | st.sampled_from([0, 0, 1, 2, 3, 5, 9]) | st.sampled_from([0, 1, 2, 4]),
        st.none() | st.integers(0, 1) | st.integers(0, 1),
    ),
    max_size=9,
)
"""Starts, lengths and keys; null lengths are spans that go on, if ends may be open."""
CLOSED = st.sampled_from(get_args(Closed))
MOVED = st.sampled_from([(1, 0), (1000, 1_700_000_000_000), (10**9 + 7, -(2**58))])
Events = list[tuple[int | None, int | None, int | None]]
Moved = tuple[int, int]


class Drawn:
    """Drawn events as a table, and as spans of the oracle by their keys and rows."""

    def __init__(
        self, events: Events, closed: Any, moved: Moved, is_open: bool, has_ends: bool
    ) -> None:
        self.step, self.origin = moved
        starts = [None if s is None else self.at(s) for s, _, _ in events]
        lengths = [None if n is None else n * self.step for _, n, _ in events]
        pairs = list(zip(starts, lengths, strict=True))
        ends = [None if s is None or n is None else s + n for s, n in pairs]
        own = {"end": ends} if has_ends else {"len": lengths}
        self.table = pa.table({
            name: pa.array(values, pa.int64())
            for name, values in {
                "id": range(len(events)), "key": [k for _, _, k in events], "start": starts, **own,
            }.items()
        })  # fmt: skip
        said: dict[str, Any] = {"end": "end"} if has_ends else {"duration": "len"}
        self.time = spans("start", **said, closed=closed, open_ends=is_open)
        self.spans = {
            i: (k, lasting(s, n, closed, LAST))
            for i, (s, n, k) in enumerate(events)
            if s is not None and k is not None and (n is not None or is_open)
        }
        self.left_out = set(range(len(events))) - self.spans.keys()

    def at(self, tick: int) -> int | None:
        """A tick as in the table, null where events go on."""
        return None if tick == LAST else tick * self.step + self.origin

    def of(self, key: int) -> list[Span]:
        """The spans of a key."""
        return [span for own, span in self.spans.values() if own == key]

    @property
    def keys(self) -> list[int]:
        """Spans that hold a moment, in the order in which keys first come."""
        first = [key for key in dict.fromkeys(self.table["key"].to_pylist()) if key is not None]
        return [key for key in first if any(span.points for span in self.of(key))]


SIDES = st.builds(
    lambda *drawn: drawn, EVENTS, CLOSED, st.booleans(), st.booleans()
)  # what `Drawn` takes, but for `MOVED`


def made(side: Any, moved: Moved) -> Drawn:
    events, closed, is_open, has_ends = side
    return Drawn(events, closed, moved, is_open, has_ends)


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@settings(max_examples=200)
@given(side=SIDES, moved=MOVED, gap=st.none() | st.integers(0, 4))
def test_labels_name_the_unions(side: Any, moved: Moved, gap: int | None) -> None:
    drawn = made(side, moved)
    asked: dict[str, Any] = {"time": drawn.time, "by": "key"}
    gap = None if gap is None else gap * drawn.step
    found = labelled(drawn.table, gap, **asked)
    assert found.select(drawn.table.column_names) == drawn.table
    wanted = [(None, None, None)] * drawn.table.num_rows
    number = 0
    for key in drawn.keys:
        rows = [i for i, (own, _) in drawn.spans.items() if own == key]
        parts = unions(drawn.of(key), None if gap is None else gap // drawn.step)
        for start, end, members in parts:
            for member in members:
                wanted[rows[member]] = number, drawn.at(start), drawn.at(end)  # type: ignore[call-overload]
            number += 1
    assert tuples(found, "union", "union_start", "union_end") == wanted
    whole = merged(drawn.table, gap, **asked)
    assert whole.num_rows == number


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@settings(max_examples=200)
@given(
    side=SIDES, moved=MOVED,
    bounds=st.none() | st.tuples(st.integers(-12, 16), st.integers(1, 20)).map(lambda b: (b[0], sum(b))),
)  # fmt: skip
def test_gaps_are_what_no_span_covers(
    side: Any, moved: Moved, bounds: tuple[int, int] | None
) -> None:
    """And with the stretches of some depth they are those of `coverage` with depth 0."""
    drawn = made(side, moved)
    asked: dict[str, Any] = {"time": drawn.time, "by": "key"}
    if bounds is not None:
        asked["bounds"] = tuple(map(drawn.at, bounds))
    holes, filled = [], []
    for key in drawn.keys:
        own = depths(drawn.of(key))
        first, last = bounds or (min(own, default=0), max(own, default=-1) + 1)
        free = set(range(first, last)) - ticks(drawn.of(key))
        holes += [(key, drawn.at(a), drawn.at(b)) for a, b in runs(free)]
        filled += [(key, t, own[t]) for t in range(first, last) if own[t]]
    found = gaps(drawn.table, **asked)
    end = drawn.time.end or "end"
    assert tuples(found, "key", "start", end) == holes
    whole = coverage(drawn.table, **asked, zeros=True)
    empty = whole.filter(pa.compute.equal(whole["depth"], 0)).drop_columns("depth")
    assert empty == found
    above = whole.filter(pa.compute.greater(whole["depth"], 0))
    assert above == coverage(drawn.table, **asked)
    told = []
    for key, start, stop, depth in tuples(above, "key", "start", end, "depth"):
        last = LAST if stop is None else (stop - drawn.origin) // drawn.step
        told += [(key, t, depth) for t in range((start - drawn.origin) // drawn.step, last)]
    assert told == filled


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@settings(max_examples=300)
@given(left=SIDES, right=SIDES, moved=MOVED)
def test_differences_and_what_is_covered(left: Any, right: Any, moved: Moved) -> None:
    """Together they are as long as the span; of one that goes on both may be without an end."""
    own, others = made(left, moved), made(right, moved)
    asked: dict[str, Any] = {"left_time": own.time, "right_time": others.time, "by": "key"}
    pieces, lengths = [], [None] * own.table.num_rows
    for i, (key, span) in own.spans.items():
        mine, theirs = ticks([span]), ticks(others.of(key))
        pieces += [(i, key, own.at(a), own.at(b)) for a, b in runs(mine - theirs)]
        goes_on = LAST - 1 in mine & theirs
        lengths[i] = None if goes_on else len(mine & theirs) * own.step  # type: ignore[call-overload]
    found = difference(own.table, others.table, **asked)
    assert tuples(found, "id", "key", "start", own.time.end or "end") == pieces
    assert "len" not in found.column_names
    told = covered(own.table, others.table, **asked)
    assert told.drop_columns("covered") == own.table
    assert told["covered"].to_pylist() == lengths


SPANS = {"start": [0, 20], "end": [10, 30]}
SECONDS = CorrelateOptions(unit="s")


def test_gaps_of_nothing_are_the_bounds() -> None:
    nothing = pa.table(SPANS).slice(0, 0)
    assert gaps(nothing, (3, 9)).to_pylist() == [{"start": 3, "end": 9}]
    assert gaps(nothing).num_rows == 0
    empty = pa.table({"start": [4], "end": [4]})
    half_open = spans("start", "end", closed="left")
    assert gaps(empty, (3, 9), time=half_open).to_pylist() == [{"start": 3, "end": 9}]


def test_gaps_are_of_the_types_of_events() -> None:
    kind = pa.timestamp("ms", "UTC")
    side = pa.table({"start": pa.array([0, 20], kind), "end": pa.array([10, 30], kind)})
    times = side["start"].to_pylist()
    found = gaps(side, (times[0], times[1] + (times[1] - times[0])))
    assert found.schema.types == [kind, kind]
    assert found["start"].cast(pa.int64()).to_pylist() == [10, 30]
    assert found["end"].cast(pa.int64()).to_pylist() == [20, 40]
    floats = gaps(pa.table({"start": [0.1, 0.5], "end": [0.2, 0.6]}), (0, 0.7), options=SECONDS)
    assert tuples(floats, "start", "end") == [(0.0, 0.1), (0.2, 0.5), (0.6, 0.7)]
    dates = pa.table(
        {"start": pa.array([0, 9], pa.date32()), "end": pa.array([3, 11], pa.date32())}
    )
    assert gaps(dates).schema.types == [pa.date32()] * 2


def test_differences_are_of_a_type_that_holds_all() -> None:
    left = pa.table(
        {"id": ["a"], "start": pa.array([0], pa.int32()), "end": pa.array([9], pa.int32())}
    )
    right = pa.table({"start": [2], "end": [5]})
    found = difference(left, right)
    assert found.schema.types == [pa.string(), pa.int64(), pa.int64()]
    assert tuples(found, "id", "start", "end") == [("a", 0, 2), ("a", 5, 9)]
    assert difference(left, left).num_rows == 0
    same = difference(left, right.cast(left.schema.remove(0)))
    assert same.schema.types == left.schema.types


def test_what_is_covered_is_counted_in_a_unit() -> None:
    side = pa.table(
        {"start": pa.array([0], pa.timestamp("s")), "end": pa.array([9], pa.timestamp("s"))}
    )
    assert covered(side, side)["covered_us"].to_pylist() == [9_000_000]
    assert covered(pa.table(SPANS), pa.table(SPANS), options=SECONDS)["covered_s"].to_pylist() == [
        10,
        10,
    ]


def test_invalid_rows_are_refused_or_null() -> None:
    side = pa.table({"id": [0, 1, 2], "start": [0, 5, None], "end": [9, 3, 8]})
    drop = CorrelateOptions(invalid="drop")
    calls: list[tuple[Callable[..., pa.Table], list[pa.Table], str, list[int | None]]] = [
        (labelled, [side], "union", [0, None, None]),
        (covered, [side, side], "covered", [9, None, None]),
        (covered, [side, side.slice(0, 1)], "covered", [9, None, None]),
    ]
    for call, tables, name, wanted in calls:
        with pytest.raises(DataError, match="starts that are or may be after"):
            call(*tables)
        with pytest.warns(coincide.CoincideWarning):
            found = call(*tables, options=drop)
        assert found[name].to_pylist() == wanted
    with pytest.warns(coincide.CoincideWarning):
        assert difference(side, side.slice(2), options=drop)["id"].to_pylist() == [0]


def test_keys_with_other_names() -> None:
    left = pa.table({"room": ["lab", "hall"], **SPANS})
    right = pa.table({"place": ["lab", "hall"], "start": [4, 0], "end": [30, 1]})
    asked: dict[str, Any] = {"by": [("room", "place")]}
    assert covered(left, right, **asked)["covered"].to_pylist() == [6, 0]
    assert tuples(difference(left, right, **asked), "room", "start", "end") == [
        ("lab", 0, 4), ("hall", 20, 30),
    ]  # fmt: skip


def test_tables_of_any_kind() -> None:
    pandas = pytest.importorskip("pandas")
    side = pandas.DataFrame({"name": ["a", "b"], **SPANS, "more": [0.5, 1.5]})
    assert labelled(side)["more"].to_pylist() == [0.5, 1.5]
    assert difference(side, [{"start": 5, "end": 25}])["name"].to_pylist() == ["a", "b"]


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "bounds that end first": (lambda: gaps(pa.table(SPANS), (9, 3)), ConditionError, "Swap the two"),
    "one bound": (lambda: gaps(pa.table(SPANS), 3), ConditionError, "bounds takes two times"),  # type: ignore[arg-type]
    "bounds of another kind": (
        lambda: coverage(pa.table(SPANS), bounds=("a", "b")), ConditionError,
        "bounds must be a time like those",
    ),
    "uncertain spans": (
        lambda: covered(pa.table(SPANS), pa.table(SPANS), right_time=spans("start", "end", around=1)),
        ConditionError, r"right_time must be spans\('start', 'end'\), whose ends are known",
    ),
    "no spans": (
        lambda: difference(pa.table(SPANS), pa.table(SPANS), left_time=3), ConditionError,  # type: ignore[arg-type]
        r"left_time must be spans\('start', 'end'\)",
    ),
    "a name that is taken": (
        lambda: labelled(pa.table({**SPANS, "union": [1, 2]})), ConditionError, "would be named union",
    ),
    "a column that is missing": (
        lambda: covered(pa.table(SPANS), pa.table({"from": [1]})), SchemaError,
        "right has no column 'start'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_meaning_is_refused(name: str) -> None:
    call, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        call()


def test_a_second_side_is_needed() -> None:
    """None was taken for one stream, which has no difference from itself."""
    spans = pa.table({"start": [1], "end": [4]})
    for function in (coincide.difference, coincide.covered):
        with pytest.raises(coincide.SchemaError, match=r"right must be .*found None"):
            function(spans, None)
