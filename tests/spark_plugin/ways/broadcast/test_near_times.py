"""Rows that can have partners of a small side: all of them pass, and few others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from coincide.condition import Window
from coincide.units import TIME_LIMIT
from spark_plugin.ways.broadcast.near_times import NearCells, near_cells
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.timestamps.models import INTERVALS
from tests.helpers.spark_cases import frame

pytestmark = pytest.mark.spark


def side(low: np.ndarray, high: np.ndarray, matchable: np.ndarray | None = None) -> Side:
    return Side(high, high - low, INTERVALS, matchable, [], [])


def passed(
    spark: SparkSession, near: NearCells | None, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    assert near is not None
    rows = frame(spark, pa.table({"low": low, "high": high, "row": np.arange(low.size)}))
    found = rows.where(near.has(spark)).select("row").toArrow()["row"].to_numpy()
    return np.isin(np.arange(low.size), found)


def can_meet(
    small: tuple[np.ndarray, np.ndarray], low: np.ndarray, high: np.ndarray, lo: int, hi: int
) -> np.ndarray:
    """Whether instants of a row and of an event of the small left side can be lo to hi apart."""
    first, last = small[0][:, None] + lo, small[1][:, None] + hi
    return ((low <= last) & (high >= first)).any(axis=0)


CASES = {
    "sparse": (0, 10**8, 1000, (-300, 200)),
    "before 1970": (-(10**9), 1000, 1000, (-300, 200)),
    "windows far off": (0, 10**7, 50, (10**6, 10**6 + 500)),
    "windows of nothing": (0, 10**7, 0, (0, 0)),
    "huge times": (TIME_LIMIT - 10**9, TIME_LIMIT - 1, 100, (-100, 100)),
    "all of time": (1 - TIME_LIMIT, TIME_LIMIT - 1, 1000, (-(10**15), 10**15)),
}


@pytest.mark.parametrize("is_left", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_all_that_can_meet_pass(spark: SparkSession, case: str, is_left: bool) -> None:
    first, last, longest, (lo, hi) = CASES[case]
    rng = np.random.default_rng(len(case))
    low = rng.integers(first, last - longest, 40)
    small = low, low + rng.integers(0, longest + 1, 40)
    # Rows anywhere, and rows whose ends are where an event's reach ends, or one tick off.
    ends = np.concatenate([small[0] + lo, small[1] + hi]) + rng.integers(-1, 2, 80)
    anywhere = rng.integers(first, last - longest, 2000)
    span = rng.integers(0, longest + 1, ends.size + anywhere.size)
    of_ends = np.where(rng.random(ends.size) < 0.5, ends, ends - span[: ends.size])
    low = np.clip(np.concatenate([of_ends, anywhere]), 1 - TIME_LIMIT, TIME_LIMIT - 1)
    # Some are longer than any event of the small side.
    span[::7] *= 1000
    high = np.minimum(low + span, TIME_LIMIT - 1)
    window = Window(lo, hi, 0.5) if is_left else Window(-hi, -lo, 0.5)
    near = near_cells(side(*small), is_left, window)
    expected = can_meet(small, low, high, lo, hi)
    found = passed(spark, near, low, high)
    assert found[expected].all()
    if case in ("sparse", "before 1970", "huge times"):
        is_short = high - low <= longest
        assert found[is_short].sum() < 3 * expected[is_short].sum() + 100
        assert not found[is_short].all()


def test_known_lengths_need_no_margin(spark: SparkSession) -> None:
    """Of long events beside instants more is known where their length is declared."""
    times = np.arange(0, 10**8, 10**6)
    low = np.arange(0, 10**8, 10**4)
    high = low + 10**5
    window = Window(0, 10, 0.5)
    unknown = passed(spark, near_cells(side(times, times), True, window), low, high)
    known = passed(spark, near_cells(side(times, times), True, window, 10**5), low, high)
    expected = can_meet((times, times), low, high, 0, 10)
    assert unknown.all()
    assert known[expected].all()
    assert known.sum() < 3 * expected.sum()


def test_of_no_events_none_pass(spark: SparkSession) -> None:
    none = np.empty(0, np.int64)
    nothing = side(none, none), side(np.zeros(2, int), np.zeros(2, int), np.zeros(2, bool))
    for small in nothing:
        near = near_cells(small, True, Window(0, 10, 0.5))
        assert not passed(spark, near, np.zeros(3, np.int64), np.ones(3, np.int64)).any()


def test_a_dense_side_tells_nothing_apart() -> None:
    times = np.arange(0, 10**6, 100)
    assert near_cells(side(times, times + 50), True, Window(-100, 100, 0.5)) is None


def test_plans_that_are_shown_do_not_hold_the_cells(spark: SparkSession) -> None:
    times = np.arange(0, 10**9, 10**5)
    near = near_cells(side(times, times + 50), True, Window(-100, 100, 0.5))
    assert near is not None
    assert near.words.size > 10_000
    rows = spark.range(10).selectExpr("id AS low", "id AS high").where(near.has(spark))
    assert rows.count() == 10
    assert len(rows._jdf.queryExecution().toString()) < 10_000
