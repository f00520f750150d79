"""The union of spans, and how many hold at a time, as sets of points of the real line have them."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import coincide
from bench.hunt.relations import CLOSED
from coincide import ConditionError, CorrelateOptions, coverage, merged, spans
from cpu_fallback.reference.spans import Span, depths, united
from tests.engine.test_spans import drawn, table

KEYS = 3


def by_key(side: list[Span], keys: list[int]) -> dict[int, list[Span]]:
    """In the order in which keys first come."""
    return {key: [s for s, k in zip(side, keys, strict=True) if k == key] for key in keys}


@pytest.mark.parametrize("gap", [None, 0, 1, 4])
@pytest.mark.parametrize("closed", CLOSED)
def test_union_is_that_of_sets_of_points(closed: Any, gap: int | None) -> None:
    rows = 0
    for seed in range(60):
        side, keys = drawn(np.random.default_rng(seed), closed, KEYS)
        found = merged(
            table(side, keys), gap, time=spans("start", "end", closed=closed), by="key"
        ).to_pylist()
        wanted = [
            {"key": key, "start": start, "end": end, "spans": count}
            for key, own in by_key(side, keys).items()
            for start, end, count in united(own, gap)
        ]
        assert found == wanted
        rows += sum(row["spans"] > 1 for row in found)
    assert rows > 40


@pytest.mark.parametrize("closed", CLOSED)
def test_depth_is_that_of_sets_of_points(closed: Any) -> None:
    deepest = 0
    for seed in range(60):
        side, keys = drawn(np.random.default_rng(seed), closed, KEYS)
        found = coverage(
            table(side, keys), time=spans("start", "end", closed=closed), by="key"
        ).to_pylist()
        holding = {key: depths(own) for key, own in by_key(side, keys).items()}
        assert [row["key"] for row in found] == [
            key for key in holding for row in found if row["key"] == key
        ]
        told = {key: Counter[int]() for key in holding}
        for row in found:
            assert row["start"] < row["end"]
            ticks = range(row["start"], row["end"])
            told[row["key"]].update(dict.fromkeys(ticks, row["depth"]))
        for row, following in pairwise(found):
            if following["key"] == row["key"]:
                assert row["end"] <= following["start"]
                assert row["end"] < following["start"] or row["depth"] != following["depth"]
        assert told == holding
        deepest = max([deepest, *(row["depth"] for row in found)])
    assert deepest > 3


def test_all_spans_of_long_tables() -> None:
    """More rows than are put in order by merging; without keys, and of times far apart."""
    random = np.random.default_rng(1)
    start = random.integers(-(2**60), 2**60, 5_000)
    side = pa.table({"start": start, "end": start + random.integers(0, 2**50, 5_000)})
    found, depth = merged(side), coverage(side)
    assert found["spans"].to_numpy().sum() == 5_000
    covered = (found["end"].to_numpy() - found["start"].to_numpy()).sum()
    lengths = depth["end"].to_numpy() - depth["start"].to_numpy()
    assert covered == lengths.sum()
    total = (side["end"].to_numpy() - side["start"].to_numpy()).sum()
    assert (lengths * depth["depth"].to_numpy()).sum() == total
    assert (found["start"].to_numpy()[1:] > found["end"].to_numpy()[:-1]).all()


def test_times_and_keys_keep_their_types() -> None:
    side = pa.table({
        "machine": ["b", "b", None, "a", "a"],
        "from": pa.array([0, 4_000, 0, 1_000, None], pa.timestamp("us", "UTC")),
        "to": pa.array([4, 5, 9, 2, 3], pa.timestamp("ms", "UTC")),
    })  # fmt: skip
    given: dict[str, Any] = {"time": spans("from", "to"), "by": "machine"}
    with pytest.warns(coincide.UnmatchableRowsWarning, match="2 without time or key"):
        found = merged(side, **given)
    assert found.schema.types == [
        pa.string(), pa.timestamp("us", "UTC"), pa.timestamp("ms", "UTC"), pa.int64(),
    ]  # fmt: skip
    assert found["machine"].to_pylist() == ["b", "a"]
    assert found["from"].cast(pa.int64()).to_pylist() == [0, 1_000]
    assert found["to"].cast(pa.int64()).to_pylist() == [5, 2]
    assert found["spans"].to_pylist() == [2, 1]


SECONDS = CorrelateOptions(unit="s")
TYPES: dict[str, tuple[pa.Array, pa.Array, pa.DataType, CorrelateOptions]] = {
    "floats": (pa.array([0.1, 0.3]), pa.array([0.7, 1.5]), pa.float64(), SECONDS),
    "decimals": (
        *(
            pa.array(map(Decimal, each), pa.decimal128(9, 2))
            for each in (["1.25", "3"], ["4", "9.5"])
        ),
        pa.decimal128(9, 2),
        SECONDS,
    ),
    "fine ticks": (
        pa.array([0, 3]),
        pa.array([4, 9]),
        pa.int64(),
        CorrelateOptions(unit="s", tick="ms"),
    ),
    "integers and floats": (pa.array([0, 3]), pa.array([4.5, 9.5]), pa.float64(), SECONDS),
    "dates and times": (
        pa.array([0, 1], pa.date32()),
        pa.array([90_000_000_000, 200_000_000_001], pa.timestamp("us")),
        pa.timestamp("us"),
        CorrelateOptions(),
    ),
    "durations": (
        pa.array([0, 3], pa.duration("s")),
        pa.array([4001, 9001], pa.duration("ms")),
        pa.duration("ms"),
        CorrelateOptions(),
    ),
}


@pytest.mark.parametrize("name", TYPES)
def test_times_come_out_as_they_went_in(name: str) -> None:
    """Both overlapping spans give the first start, and the last end; what comes out goes in again."""
    start, end, both, options = TYPES[name]
    side = pa.table({"start": start, "end": end})
    found = merged(side, options=options)
    assert found.schema.types == [start.type, end.type, pa.int64()]
    assert found.to_pylist() == [{"start": start[0].as_py(), "end": end[1].as_py(), "spans": 2}]
    again = merged(found.select(["start", "end"]), options=options)
    assert again.to_pylist() == [{**found.to_pylist()[0], "spans": 1}]
    depth = coverage(side, options=options)
    assert depth.schema.types == [both, both, pa.int64()]
    edges = [each.cast(both).to_pylist() for each in (start, end)]
    assert depth["start"].to_pylist() == [*edges[0], edges[1][0]]
    assert depth["end"].to_pylist() == [edges[0][1], *edges[1]]
    again = merged(depth.select(["start", "end"]), options=options)
    assert again["spans"].to_pylist() == [3]


LASTED: dict[str, tuple[pa.Array, pa.Array, dict[str, Any], CorrelateOptions, list[Any]]] = {
    "whole numbers": (pa.array([0, 3]), pa.array([4, None]), {}, CorrelateOptions(), [3, 4, None]),
    "floats": (pa.array([0.1, 0.3]), pa.array([0.6, None]), {}, SECONDS, [0.3, 0.7, None]),
    "timestamps": (
        pa.array([0, 3], pa.timestamp("s", "UTC")), pa.array([4, None]), {"unit": "s"}, CorrelateOptions(),
        pa.array([3, 4, None], pa.timestamp("s", "UTC")).cast(pa.timestamp("us", "UTC")).to_pylist(),
    ),
    "finer": (
        pa.array([0, 3]), pa.array([4000, None]), {"unit": "ms"}, CorrelateOptions(unit="s", tick="ms"),
        [3, 4, None],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LASTED)
def test_ends_of_durations_and_of_events_that_go_on(name: str) -> None:
    start, lasted, said, options, ends = LASTED[name]
    side = pa.table({"from": start, "lasted": lasted})
    time = spans("from", duration="lasted", open_ends=True, **said)
    found = merged(side, time=time, options=options)
    assert [list(row.values()) for row in found.to_pylist()] == [[start[0].as_py(), None, 2]]
    depth = coverage(side, time=time, options=options)
    assert depth["end"].to_pylist() == ends
    assert depth["depth"].to_pylist() == [1, 2, 1]
    given = side.append_column("end", pa.array([ends[1], None], depth["end"].type))
    time = spans("from", "end", open_ends=True)
    assert merged(given, time=time, options=options)["end"].to_pylist() == [None]


def test_ends_between_whole_numbers_are_refused() -> None:
    side = pa.table({"start": [0], "ms": [1500]})
    time = spans("start", duration="ms", unit="ms")
    with pytest.raises(
        coincide.DataError, match=r"start do not say \(found 1,500 ms\). Cast start"
    ):
        merged(side, time=time, options=CorrelateOptions(unit="s", tick="ms"))


def test_types_of_nothing_in_common_are_refused() -> None:
    side = pa.table({"start": pa.array([0], pa.duration("s")), "end": [9]})
    assert merged(side, options=SECONDS).num_rows == 1
    with pytest.raises(coincide.SchemaError, match=r"found duration\[s\] and int64\). Cast one"):
        coverage(side, options=SECONDS)


def test_bad_rows_are_refused_or_skipped() -> None:
    side = pa.table({"start": [0, 5, None], "end": [9, 3, 8]})
    with pytest.raises(coincide.DataError, match="events: starts that are or may be after"):
        merged(side)
    with pytest.raises(coincide.SchemaError, match=r"events has no column .* time=spans\('begin'"):
        merged(side.rename_columns(["begin", "stop"]))
    with pytest.raises(coincide.SchemaError, match="events must be"):
        merged(3)
    with pytest.warns(coincide.CoincideWarning):
        found = coverage(side, options=CorrelateOptions(invalid="drop"))
    assert found.to_pylist() == [{"start": 0, "end": 9, "depth": 1}]


def test_what_has_no_meaning_is_refused() -> None:
    side = pa.table({"start": [0], "end": [9]})
    given: Any = ("start", "end")
    with pytest.raises(ConditionError, match=r"time must be spans\('start', 'end'\)"):
        merged(side, time=given)
    with pytest.raises(ConditionError, match=r"whose ends are known .* without around"):
        coverage(side, time=spans("start", "end", around=1))
    with pytest.raises(ConditionError, match="gap must not be negative"):
        merged(side, -1)
    with pytest.raises(ConditionError, match="two output columns would be named depth"):
        coverage(side.append_column("depth", [[1]]), by="depth")
