"""Adversarial events, windows and join cases for the property tests.

One set of builders serves two sources of chance: Hypothesis, which shrinks what fails, and a
seeded NumPy generator, which is fast enough for thousands of cases. A builder asks a `AnyChance`
and does not know which of the two answers; both lean towards the simple answer first, so that
Hypothesis shrinks towards plain cases.

All times, lengths and bounds are integer ticks with an absolute value below 2**61.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

import numpy as np
from hypothesis import strategies as st

from bench.hunt.intervals import (
    AnyChance,
    Scale,
    clamp,
    draw_confidence,
    draw_huge_intervals,
    draw_intervals,
    draw_window,
    huge_integer,
)
from cpu_fallback.reference.decision import decision_is_clear, satisfaction_probability

T = TypeVar("T")
Row = dict[str, Any]
Interval = tuple[int, int]

EPOCH_NS = 1_700_000_000 * 10**9
"""A time of our days in nanoseconds since 1970."""

KEY_VALUES: dict[str, tuple[Any, ...]] = {
    "station": ("AQU", "", "é", "null"),
    # 2**53 and 2**53 + 1 are one number to a float64: no detour over floats goes unseen.
    "channel": (0, -1, 2**53, 2**53 + 1),
}
"""Key columns that the builders can draw, and their values."""


class JoinCase(NamedTuple):
    """One join to run: rows, window in ticks, confidence threshold, key columns."""

    left: list[Row]
    right: list[Row]
    lo: int
    hi: int
    confidence: float
    by: tuple[str, ...]


class _HypothesisChooser:
    def __init__(self, draw: Any) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return int(self._draw(st.integers(low, high)))

    def choice(self, options: Sequence[T]) -> T:
        return self._draw(st.sampled_from(options))  # type: ignore[no-any-return]

    def happens(self, percent: float) -> bool:
        return int(self._draw(st.integers(0, 99))) >= 100 - percent


class _NumpyChooser:
    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def integer(self, low: int, high: int) -> int:
        return int(self._rng.integers(low, high, endpoint=True))

    def choice(self, options: Sequence[T]) -> T:
        return options[self.integer(0, len(options) - 1)]

    def happens(self, percent: float) -> bool:
        return self.integer(0, 99) >= 100 - percent


def _scale(choose: AnyChance) -> Scale:
    step = choose.choice((10, 1, 2, 1000, 10**6, 999_983, 10**9))
    origin = choose.choice((0, -5 * step, EPOCH_NS, -EPOCH_NS, EPOCH_NS + 123_456_789))
    return Scale(origin, step, choose.choice((20, 6, 0, 1, 12, 60)))


def _row(row_id: int, min_time: int | None, max_time: int | None) -> Row:
    # Ids in another order than the rows, so that a tie by id cannot pass as a tie by position.
    return {"min_time": min_time, "max_time": max_time, "id": row_id * 379 % 1009}


def _size(choose: AnyChance, max_size: int) -> int:
    """Number of rows of one side: empty and single ones happen, but not often."""
    if choose.happens(85):
        return choose.integer(min(3, max_size), max_size)
    return choose.integer(0, min(2, max_size))


def _rows(choose: AnyChance, scale: Scale, max_size: int) -> list[Row]:
    """Events of one side, with neither nulls nor keys."""
    drawn = draw_intervals(choose, scale, _size(choose, max_size))
    return [_row(i, *ends) for i, ends in enumerate(drawn)]


def _duplicate_rows(choose: AnyChance, rows: list[Row]) -> list[Row]:
    """Put whole rows, id included, in the place of some others."""
    if len(rows) < 2 or not choose.happens(25):
        return rows
    return [dict(rows[0]) if choose.happens(25) else row for row in rows]


def _add_keys(choose: AnyChance, rows: list[Row], by: Sequence[str], nulls: bool) -> list[Row]:
    for name in by:
        values = KEY_VALUES[name]
        giant_percent = choose.choice((60, 0, 100, 90))
        null_percent = choose.choice((0, 20)) if nulls else 0
        for row in rows:
            row[name] = values[0] if choose.happens(giant_percent) else choose.choice(values)
            if choose.happens(null_percent):
                row[name] = None
    return rows


def _null_times(choose: AnyChance, rows: list[Row]) -> list[Row]:
    if not choose.happens(25):
        return rows
    for row in rows:
        if choose.happens(20):
            for name in choose.choice((("min_time", "max_time"), ("min_time",), ("max_time",))):
                row[name] = None
    return rows


def _finish(choose: AnyChance, rows: list[Row], by: Sequence[str], nulls: bool) -> list[Row]:
    """Add keys, then nulls, then duplicates, so that a duplicate equals its row in all columns."""
    rows = _add_keys(choose, rows, by, nulls)
    if nulls:
        rows = _null_times(choose, rows)
    return _duplicate_rows(choose, rows)


def _whole_rows(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["min_time"] is not None and row["max_time"] is not None]


def _pair(choose: AnyChance, left: list[Row], right: list[Row]) -> tuple[Row, Row] | None:
    left, right = _whole_rows(left), _whole_rows(right)
    if not left or not right:
        return None
    return choose.choice(left), choose.choice(right)


def _window_at_a_pair(
    choose: AnyChance, left: list[Row], right: list[Row], window: tuple[int, int]
) -> tuple[int, int]:
    """Move a window so that its end meets, or just misses, the end of some pair's difference.

    Kinks of the probability and the edge between satisfaction and probe regions lie there.
    """
    pair = _pair(choose, left, right)
    if pair is None:
        return window
    end = choose.choice(("min_time", "max_time"))
    other = choose.choice(("max_time", "min_time"))
    target = pair[1][other] - pair[0][end] + choose.choice((0, 1, -1))
    width = window[1] - window[0]
    lo, hi = choose.choice(((target, target + width), (target - width, target)))
    return clamp(lo), clamp(hi)


def _confidence_at_a_pair(
    choose: AnyChance, left: list[Row], right: list[Row], lo: int, hi: int
) -> float | None:
    """The float next to some pair's probability: an exact tie, or as near as floats allow."""
    pair = _pair(choose, left, right)
    if pair is None:
        return None
    # Not below 1e-12: at ct <= 2**-50 even probability zero would qualify.
    return max(1e-12, float(_probability(*pair, lo, hi)))


def _probability(left_row: Row, right_row: Row, lo: int, hi: int) -> Fraction:
    left_ends = (left_row["min_time"], left_row["max_time"])
    return satisfaction_probability(
        *left_ends, right_row["min_time"], right_row["max_time"], lo, hi
    )


def _clear_confidence(
    left: list[Row], right: list[Row], lo: int, hi: int, confidence: float
) -> float:
    """Lower a threshold until float64 can decide every pair: see `decision_is_clear`."""
    whole_left, whole_right = _whole_rows(left), _whole_rows(right)
    found = {_probability(one, other, lo, hi) for one in whole_left for other in whole_right}
    while not all(decision_is_clear(p, confidence) for p in found):
        confidence *= 0.999
    return confidence


def _condition(
    choose: AnyChance, left: list[Row], right: list[Row], window: tuple[int, int]
) -> tuple[int, int, float]:
    """Window and confidence threshold for these rows."""
    lo, hi = window
    if choose.happens(50):
        lo, hi = _window_at_a_pair(choose, left, right, window)
    confidence = draw_confidence(choose)
    if choose.happens(20):
        confidence = _confidence_at_a_pair(choose, left, right, lo, hi) or confidence
    return lo, hi, _clear_confidence(left, right, lo, hi, confidence)


def _key_columns(choose: AnyChance, keys: bool) -> tuple[str, ...]:
    if not keys:
        return ()
    return choose.choice(((), (), (), ("station",), ("channel",), ("station", "channel")))


def _join_case(choose: AnyChance, max_size: int, nulls: bool, keys: bool) -> JoinCase:
    scale = _scale(choose)
    by = _key_columns(choose, keys)
    left = _finish(choose, _rows(choose, scale, max_size), by, nulls)
    right = _finish(choose, _rows(choose, scale, max_size), by, nulls)
    lo, hi, confidence = _condition(choose, left, right, draw_window(choose, scale.step))
    return JoinCase(left, right, lo, hi, confidence, by)


def _huge_rows(choose: AnyChance, max_size: int) -> list[Row]:
    drawn = draw_huge_intervals(choose, _size(choose, max_size))
    return [_row(i, *ends) for i, ends in enumerate(drawn)]


def _huge_join_case(choose: AnyChance, max_size: int, nulls: bool, keys: bool) -> JoinCase:
    by = _key_columns(choose, keys)
    left = _finish(choose, _huge_rows(choose, max_size), by, nulls)
    right = _finish(choose, _huge_rows(choose, max_size), by, nulls)
    bounds = sorted((huge_integer(choose), huge_integer(choose)))
    lo, hi, confidence = _condition(choose, left, right, (bounds[0], bounds[1]))
    return JoinCase(left, right, lo, hi, confidence, by)


@st.composite
def events(
    draw: Any,
    max_size: int = 12,
    *,
    scale: Scale | None = None,
    nulls: bool = False,
    keys: Sequence[str] = (),
) -> list[Row]:
    """Rows of one side: ``min_time``, ``max_time`` (ticks), ``id`` and the key columns.

    Parameters
    ----------
    draw : callable
        Given by Hypothesis.
    max_size : int
        Most rows; ids are unique up to 1009 rows, but for duplicates of whole rows.
    scale : Scale, optional
        Where the times lie; drawn if not given. Give both sides the same one.
    nulls : bool
        Whether times and keys may be None.
    keys : sequence of str
        Key columns, names from `KEY_VALUES`.

    Returns
    -------
    list of dict
        The rows, in no order.
    """
    choose = _HypothesisChooser(draw)
    where = _scale(choose) if scale is None else scale
    return _finish(choose, _rows(choose, where, max_size), keys, nulls)


@st.composite
def windows(draw: Any, step: int = 10) -> tuple[int, int]:
    """Windows (lo, hi) in ticks for lengths of a few `step` ticks.

    Symmetric, narrow, of zero width, asymmetric, off zero, wide and so far off that nothing
    matches.
    """
    return draw_window(_HypothesisChooser(draw), step)


@st.composite
def confidences(draw: Any) -> float:
    """Confidence thresholds in (0, 1], with 1, tiny ones and those that make exact ties."""
    return draw_confidence(_HypothesisChooser(draw))


@st.composite
def join_cases(draw: Any, max_size: int = 12, *, nulls: bool = True, keys: bool = True) -> JoinCase:
    """Join cases whose two sides and window share one scale, so that many have matches."""
    return _join_case(_HypothesisChooser(draw), max_size, nulls, keys)


@st.composite
def huge_join_cases(
    draw: Any, max_size: int = 8, *, nulls: bool = True, keys: bool = True
) -> JoinCase:
    """Join cases with times and bounds of any size up to +-(2**61 - 1) ticks."""
    return _huge_join_case(_HypothesisChooser(draw), max_size, nulls, keys)


def random_cases(
    seed: int,
    n: int,
    *,
    max_size: int = 25,
    nulls: bool = True,
    keys: bool = True,
    huge: bool = False,
) -> Iterator[JoinCase]:
    """The same variety as `join_cases` from a seeded generator, without Hypothesis.

    Parameters
    ----------
    seed : int
        Seed; case i depends on `seed` and i alone, so that one failing case can be rerun.
    n : int
        Number of cases.
    max_size : int
        Most rows a side.
    nulls, keys : bool
        Whether times and keys may be None; whether there may be key columns.
    huge : bool
        Whether to draw as `huge_join_cases` does.

    Yields
    ------
    JoinCase
        One case after the other.
    """
    build = _huge_join_case if huge else _join_case
    for i in range(n):
        choose = _NumpyChooser(np.random.default_rng([seed, i]))
        yield build(choose, max_size, nulls, keys)
