"""Rows that can have matches of a small side: all of them pass, and few others."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from coincide import (
    CorrelateOptions,
    TimingCondition,
    correlate,
    correlate_tables,
    histograms,
    within,
)
from coincide.engine.events.sides import Side
from coincide.engine.events.timestamps import INTERVALS
from coincide.model.condition import Window
from coincide.model.units import TIME_LIMIT, UNBOUNDED
from cpu_fallback.reference.decision import satisfaction_probability
from spark_plugin.ways.broadcast.join import NearCells, near_cells
from tests.helpers.spark_cases import frame

Ends = tuple[np.ndarray, np.ndarray]


def side(low: np.ndarray, high: np.ndarray, matchable: np.ndarray | None = None) -> Side:
    return Side(high, high - low, INTERVALS, matchable, [], [])


def cells_of(
    small: Ends, is_left: bool, lo: int, hi: int, longest: int | None = None, *, ct: float = 0.4
) -> NearCells:
    window = Window(lo, hi, ct) if is_left else Window(-hi, -lo, ct)
    return near_cells(side(*small), is_left, window, longest)


def passed(cells: NearCells, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """What the cells say of rows, bit by bit."""
    begins = (_keys(cells, low, high) >> cells.width) - cells.first
    bits = np.unpackbits(cells.words.astype("<i8").view(np.uint8), bitorder="little")
    inside = (begins >= 0) & (begins < bits.size)
    return (high - low > cells.margin) | (inside & (bits[np.where(inside, begins, 0)] == 1))


def _keys(cells: NearCells, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return {"low": low, "(low + high)": low + high}[cells.key]


def can_meet(small: Ends, low: np.ndarray, high: np.ndarray, lo: int, hi: int) -> np.ndarray:
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
def test_all_that_can_meet_pass(case: str, is_left: bool) -> None:
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
    expected = can_meet(small, low, high, lo, hi)
    found = passed(cells_of(small, is_left, lo, hi), low, high)
    assert found[expected].all()
    if case in ("sparse", "before 1970", "huge times"):
        is_short = high - low <= longest
        assert found[is_short].sum() < 3 * expected[is_short].sum() + 100
        assert not found[is_short].all()


@pytest.mark.parametrize("longest", [None, 70])
@pytest.mark.parametrize("is_left", [True, False])
def test_rows_that_just_meet_pass(is_left: bool, longest: int | None) -> None:
    """Rows of every length that end where an event's reach begins, or begin where it ends."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        events = rng.integers(-(10**4), 10**4, 3)
        small = events, events + rng.choice([0, 1, 30], 3)
        lo, hi = np.sort(rng.integers(-200, 200, 2)).tolist()
        cells = cells_of(small, is_left, lo, hi, longest)
        lengths = np.arange(71 if longest else 2 * cells.margin + 2)
        # Three cases: this reaches each edge of a cell at some.
        high = np.concatenate([small[0] + lo] * lengths.size)
        before = high - lengths.repeat(3), high
        begins = np.concatenate([small[1] + hi] * lengths.size)
        after = begins, begins + lengths.repeat(3)
        for low, high in (before, after):
            assert can_meet(small, low, high, lo, hi).all()
            assert passed(cells, low, high).all()


def test_rows_far_off_do_not_pass() -> None:
    """No more than a margin and a cell before what can be met, and a cell after."""
    small = np.array([0, 10**6]), np.array([10, 10**6 + 10])
    cells = cells_of(small, True, -5, 5)
    low = np.arange(-100, 10**6 + 100)
    near = can_meet(small, low - (1 << cells.width), low + cells.margin + (1 << cells.width), -5, 5)
    assert not passed(cells, low, low)[~near].any()


def test_known_lengths_need_no_margin() -> None:
    """Long events among instants: more is known where their length is declared."""
    times = np.arange(0, 10**8, 10**6)
    low = np.arange(0, 10**8, 10**4)
    high = low + 10**5
    unknown = passed(cells_of((times, times), True, 0, 10), low, high)
    known = passed(cells_of((times, times), True, 0, 10, 10**5), low, high)
    expected = can_meet((times, times), low, high, 0, 10)
    assert unknown.all()
    assert known[expected].all()
    assert known.sum() < 3 * expected.sum()


def test_rows_as_short_as_a_cell_need_not_pass() -> None:
    times = np.arange(0, 10**8, 10**6)
    low = np.arange(0, 10**8, 10**4)
    assert passed(cells_of((times, times), True, 0, 1000), low, low + 100).mean() < 0.1


def test_cells_are_no_more_than_a_plan_can_bear() -> None:
    times = np.array([0, 2**60])
    assert cells_of((times, times), True, 0, 0).words.size <= (1 << 16) + 2


@pytest.mark.spark
def test_of_no_events_none_pass(spark: SparkSession) -> None:
    none = np.empty(0, np.int64)
    nothing = side(none, none), side(np.zeros(2, int), np.zeros(2, int), np.zeros(2, bool))
    for small in nothing:
        near = near_cells(small, True, Window(0, 10, 0.5))
        rows = spark.range(3).selectExpr("id AS low", "id AS high")
        assert not rows.where(near.has(spark)).count()


def test_rows_that_match_nothing_have_no_cells() -> None:
    times = np.array([0, 10**6, 10**12])
    some = side(times, times, np.array([True, True, False]))
    window = Window(0, 10, 0.5)
    found, expected = (
        near_cells(events, True, window) for events in (some, side(*[times[:2]] * 2))
    )
    np.testing.assert_array_equal(found.words, expected.words)
    assert (found.first, found.width) == (expected.first, expected.width)


@pytest.mark.parametrize("longest", [None, 70])
def test_of_a_dense_side_few_cells_tell_what_is_outside(longest: int | None) -> None:
    times = np.arange(0, 10**6, 100)
    cells = cells_of((times, times + 50), True, -100, 100, longest)
    assert cells.words.size == 1
    inside, outside = np.arange(-100, 10**6 + 50), np.array([-(10**5), 2 * 10**6])
    assert passed(cells, inside, inside).all()
    assert not passed(cells, outside, outside + 70).any()


@pytest.mark.spark
@pytest.mark.parametrize("key", ["low", "(low + high)"])
@pytest.mark.parametrize("count", [1, 50])
@pytest.mark.parametrize("start", [-(10**6), TIME_LIMIT - 10**7])
def test_sql_says_what_the_cells_say(spark: SparkSession, start: int, count: int, key: str) -> None:
    """At both edges of each cell and beyond the outer ones; no plan shows many bits."""
    words = np.random.default_rng(5).integers(-(2**63), 2**63, count, np.int64)
    if count > 1:
        words[[0, -1]] = -1
    doubled = int(key != "low")
    cells = NearCells(5, start << doubled >> 5, words, 32, key)
    edges = (cells.first + np.arange(-66, 64 * cells.words.size + 66)) << cells.width
    low = np.concatenate([edges, edges - 1]) >> doubled
    low = np.concatenate([low, [1 - TIME_LIMIT, TIME_LIMIT - 1]] * 2)
    high = low + np.where(np.arange(low.size) % 2, cells.margin, cells.margin + 1)
    high[: low.size // 2] = low[: low.size // 2]
    rows = frame(spark, pa.table({"low": low, "high": high, "row": np.arange(low.size)}))
    near = rows.where(cells.has(spark))
    found = near.select("row").toArrow()["row"].to_numpy()
    expected = passed(cells, low, high)
    assert 0 < expected[: low.size // 2].sum() < low.size // 2
    np.testing.assert_array_equal(np.isin(np.arange(low.size), found), expected)
    shown = near._jdf.queryExecution().toString()
    assert all((str(word) in shown) == (count == 1) for word in cells.words[:2])


@pytest.mark.parametrize("at", [1 - TIME_LIMIT, TIME_LIMIT - 7])
@pytest.mark.parametrize(
    ("lo", "hi"), [(1 - TIME_LIMIT, 11 - TIME_LIMIT), (TIME_LIMIT - 11, TIME_LIMIT - 1)]
)
def test_sql_of_a_narrow_window_beyond_all_rows(
    spark: SparkSession, at: int, lo: int, hi: int
) -> None:
    """In ANSI mode a difference that no bigint holds is an error."""
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    low = np.array([1 - TIME_LIMIT, -3, 0, 5, TIME_LIMIT - 9])
    high = low + np.array([0, 1, 3, 3, 8])
    small = np.array([at]), np.array([at + 1])
    cells = near_cells(side(*small), True, Window(lo, hi, 0.7))
    table = spark.createDataFrame(pa.table({"low": low, "high": high}))
    found = table.select("*", cells.has(spark).alias("near")).toArrow()
    assert found.column("near").to_pylist() == passed(cells, low, high).tolist()


def test_one_long_event_does_not_blur_the_others() -> None:
    times = np.arange(0, 10**8, 10**6)
    low = np.arange(0, 10**8, 10**4)
    high = times + np.where(np.arange(times.size) == 7, 10**6, 100)
    assert passed(cells_of((times, high), True, 0, 100), low, low + 100).mean() < 0.1


def test_a_length_declared_to_be_safe_is_no_worse_than_none() -> None:
    low = np.arange(200) * 10_000_000
    small = low, low + 100
    rows = np.random.default_rng(8).integers(0, int(low[-1]), 1000)
    generous, none = (
        cells_of(small, True, -300, 200, longest) for longest in (3_600_000_000, None)
    )
    assert passed(generous, rows, rows).sum() == passed(none, rows, rows).sum() < 10
    assert passed(generous, rows, rows + 3_600_000_000).all()


@pytest.mark.parametrize("ct", [0.5, 0.5 + 2.0**-51, 0.6, 0.9, 1.0])
@pytest.mark.parametrize("is_left", [True, False])
def test_all_that_qualify_pass_by_their_midpoints(is_left: bool, ct: float) -> None:
    """Exact ties among them, at both ends of the window, whatever the lengths."""
    random = np.random.default_rng(17)
    ties = qualifying = 0
    for _ in range(60):
        lo, hi = sorted(random.integers(-300, 300, 2).tolist())
        low = random.integers(-3000, 3000, 5)
        small = low, low + random.choice([0, 1, 7, 1000], 5)
        cells = cells_of(small, is_left, lo, hi, ct=ct)
        assert cells.key == "(low + high)"
        for event in range(5):
            # Rows of each length about where their midpoints leave the window.
            length = np.repeat([0, 1, 8, 10, 2000], 2 * 7)
            ends = np.tile(np.concatenate([lo + np.arange(-3, 4), hi + np.arange(-3, 4)]), 5)
            middle = (small[0][event] + small[1][event]) // 2 + ends
            rows = middle - length // 2, middle - length // 2 + length
            for low_, high_ in zip(*rows, strict=True):
                span = int(small[0][event]), int(small[1][event]), int(low_), int(high_)
                bounds = (lo, hi) if is_left else (-hi, -lo)
                p = satisfaction_probability(
                    *(span if is_left else (*span[2:], *span[:2])), *bounds
                )
                if p >= Fraction(ct) - Fraction(1, 2**50):
                    ties += p == Fraction(ct)
                    qualifying += 1
                    assert passed(cells, np.array([low_]), np.array([high_])).all()
    assert qualifying > 1000
    assert ties > 50 or ct not in (0.5, 1.0)


@pytest.mark.parametrize("ct", [0.4, 0.5, 1.0])
@pytest.mark.parametrize("is_left", [True, False])
def test_of_a_window_of_all_time_all_pass(is_left: bool, ct: float) -> None:
    """As with causality without bounds on time: such windows are further than int64 tells."""
    times = np.array([0, 10**6])
    rows = np.array([1 - TIME_LIMIT, -1, 0, 10**9, TIME_LIMIT - 1])
    for lo, hi in ((-UNBOUNDED, UNBOUNDED), (-UNBOUNDED, 10**9), (0, UNBOUNDED)):
        cells = cells_of((times, times + 50), is_left, lo, hi, ct=ct)
        expected = can_meet((times, times + 50), rows, rows, lo, hi)
        assert passed(cells, rows, rows)[expected].all()


def test_long_rows_do_not_pass_for_their_length_where_midpoints_tell() -> None:
    times = np.arange(0, 10**9, 10**7)
    low = np.arange(0, 10**9, 10**5)
    by_midpoints, by_supports = (
        passed(cells_of((times, times), True, -100_000, 100_000, ct=ct), low, low + 10**7)
        for ct in (0.5, 0.4)
    )
    assert 0 < by_midpoints.sum() < 400
    assert by_supports.all()


def test_midpoints_at_the_ends_of_time() -> None:
    """Their sums with a window just fit, and what is beyond no row can be."""
    ends = np.array([1 - TIME_LIMIT, TIME_LIMIT - 1])
    for lo, hi in ((-5, 5), (2 - TIME_LIMIT, TIME_LIMIT - 2), (TIME_LIMIT - 9, TIME_LIMIT - 2)):
        for is_left in (True, False):
            cells = cells_of((ends, ends), is_left, lo, hi, ct=0.9)
            expected = ((ends[:, None] - ends >= lo) & (ends[:, None] - ends <= hi)).any(axis=1)
            assert passed(cells, ends, ends)[expected].all()


def test_huge_lengths_and_histograms_go_by_their_supports() -> None:
    low, high = np.array([0, 5]), np.array([10, 2**48])
    assert cells_of((low, high), True, -5, 5, ct=0.9).key == "low"
    assert cells_of((low, low), True, -5, 5, ct=0.9).key == "(low + high)"
    of_templates = near_cells(side(low, low), True, Window(-5, 5, 0.9), are_uniform=False)
    assert of_templates.key == "low"


def test_events_within_a_long_one_leave_none_of_it_out() -> None:
    low = np.array([0, 10_000, 300_000, 500_000, 10**9])
    small = low, low + np.array([1_000_000, 10, 10, 200_000, 10])
    rows = np.arange(0, 1_000_000, 500)
    cells = cells_of(small, True, 0, 0)
    assert cells.words.size > 1
    assert passed(cells, rows, rows).all()


@pytest.mark.spark
@pytest.mark.parametrize("small", ["left", "right"])
def test_skewed_histograms_beside_a_small_side(spark: SparkSession, small: str) -> None:
    """Whose times are far from the midpoints of what holds them."""
    seen_at = np.arange(0, 10**6, 1000)
    shapes = pa.table({
        "template": ["late"] * 2, "lower": [-1000, -10], "upper": [-990, 0], "mass": [0.9, 0.1],
    })  # fmt: skip
    sides = {
        "left": pa.table({"t": seen_at, "device": ["late"] * seen_at.size, "id": seen_at}),
        "right": pa.table({"t": seen_at[::50] - 990, "id": seen_at[::50]}),
    }
    words: dict[str, Any] = {
        "left_time": histograms("t", template="device", templates=shapes), "right_time": "t",
    }  # fmt: skip
    condition = TimingCondition(within(0, 20), 0.6)
    way: Any = f"broadcast-{small}"
    left, right = (frame(spark, table) for table in sides.values())
    found = correlate(left, right, condition, options=CorrelateOptions(way=way), **words)
    expected = correlate_tables(*sides.values(), condition, **words)
    assert expected.num_rows == 20
    assert sorted(map(tuple, found.collect())) == sorted(
        zip(*(column.to_pylist() for column in expected.columns), strict=True)
    )
