"""The union of spans, and how many hold at a time, as sets of points of the real line have them."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import coincide
from coincide import ConditionError, CorrelateOptions, coverage, merged, spans
from cpu_fallback.reference.spans import Span, depths, united
from tests.engine.test_spans import CLOSED, drawn, table

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
        "machine": ["b", "B", None, "a", "a"],
        "from": pa.array([0, 4_000, 0, 1_000, None], pa.timestamp("us", "UTC")),
        "to": pa.array([4, 5, 9, 2, 3], pa.timestamp("ms", "UTC")),
    })  # fmt: skip
    given: dict[str, Any] = {"time": spans("from", "to"), "by": "machine", "case_fold": True}
    with pytest.warns(coincide.UnmatchableRowsWarning, match="2 without time or key"):
        found = merged(side, **given)
    assert found.schema.types == [
        pa.string(), *[pa.timestamp("us", "UTC")] * 2, pa.int64(),
    ]  # fmt: skip
    assert found["machine"].to_pylist() == ["b", "a"]
    assert found["from"].cast(pa.int64()).to_pylist() == [0, 1_000]
    assert found["to"].cast(pa.int64()).to_pylist() == [5_000, 2_000]
    assert found["spans"].to_pylist() == [2, 1]


def test_bad_rows_are_refused_or_skipped() -> None:
    side = pa.table({"start": [0, 5, None], "end": [9, 3, 8]})
    with pytest.raises(coincide.DataError):
        merged(side)
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
