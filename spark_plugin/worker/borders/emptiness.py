"""Why no stream crosses a border: what is known of the readings and of the queries. No Spark.

Asked when nothing was found; never while crossings are looked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from coincide.borders.closed import CLOSED_ABOVE, OPEN_BELOW
from coincide.plurals import several
from spark_plugin.worker.borders.arguments import BorderArguments
from spark_plugin.worker.borders.queries import Queries

_FACTORS = {"1,000": 1e3, "1,000,000": 1e6, "180/pi": 180 / math.pi}
"""By which values in one unit are those in another, in words."""


@dataclass(frozen=True, eq=False)
class Seen:
    """Valid readings that are no gaps.

    Parameters
    ----------
    readings, streams, single : int
        How many, of how many streams, and streams that have one alone.
    low, high : float64 arrays, shape (d,)
        Least and greatest value of each dimension; of nothing without readings.
    """

    readings: int
    streams: int
    single: int
    low: np.ndarray
    high: np.ndarray


def why_none(seen: Seen, queries: Queries, arguments: BorderArguments) -> tuple[str, ...]:
    """What speaks against any crossing, the most telling first."""
    if not seen.readings:
        return ("no reading has a value in each dimension",)
    if len(queries.ids) == queries.empty:
        return ("no query has a range that holds anything",)
    return tuple([*_of_streams(seen, arguments), *_of_values(seen, queries, arguments)])


def _of_streams(seen: Seen, arguments: BorderArguments) -> Iterator[str]:
    if seen.single == seen.streams:
        silent = arguments.options.first == "ignore"
        cure = ": first='outside' counts what its range holds as a crossing" * silent
        yield (
            f"each of {several(seen.streams, 'stream')} has one reading, and a crossing lies between"
            f" two{cure}"
        )
    elif seen.single:
        yield f"{seen.single:,} of {several(seen.streams, 'stream')} have one reading alone"


def _of_values(seen: Seen, queries: Queries, arguments: BorderArguments) -> Iterator[str]:
    """Per dimension what was read, what is asked for, and how far these are apart."""
    gaps = np.maximum(queries.lower - seen.high, seen.low - queries.upper)
    for k, name in enumerate(arguments.values):
        ends = f"{name} was read from {seen.low[k]:.6g} to {seen.high[k]:.6g}"
        asked = f"ranges go from {queries.lower[:, k].min():.6g} to {queries.upper[:, k].max():.6g}"
        nearest = int(np.argmin(gaps[:, k]))
        gap = float(gaps[nearest, k])
        if gap > 0 or (gap == 0 and not _touches(seen, queries, nearest, k)):
            yield (
                f"{ends}, and no range reaches there: {asked}, and the nearest one,"
                f" {_range_words(queries, nearest, k)} of {arguments.query}"
                f" {queries.ids[nearest].as_py()!r}, is {gap:.6g} away{_of_units(seen, queries, k)}"
            )
        else:
            yield f"{ends}; {asked}"
    around = (queries.lower < seen.low) & (queries.upper > seen.high)
    held = int(around.all(axis=1).sum())
    if held:
        yield f"all readings are within {held:,} of the ranges all along"
    elif (gaps <= 0).any(axis=0).all() and not arguments.options.pass_through:
        yield "with pass_through=True (--pass-through) a move over a whole range counts, too"


def _touches(seen: Seen, queries: Queries, query: int, k: int) -> bool:
    """Whether a range that meets the values in its border holds that."""
    bits = int(queries.closed[query])
    if queries.lower[query, k] == seen.high[k]:
        return not bits & OPEN_BELOW
    return bool(bits & CLOSED_ABOVE)


def _range_words(queries: Queries, query: int, k: int) -> str:
    bits = int(queries.closed[query])
    ends = "(" if bits & OPEN_BELOW else "[", "]" if bits & CLOSED_ABOVE else ")"
    return f"{ends[0]}{queries.lower[query, k]:.6g}, {queries.upper[query, k]:.6g}{ends[1]}"


def _of_units(seen: Seen, queries: Queries, k: int) -> str:
    """Which factor would bring values and ranges together, if one does."""
    lower, upper = queries.lower[:, k], queries.upper[:, k]
    finite = np.isfinite(lower) & np.isfinite(upper)
    for words, factor in _FACTORS.items():
        for sign, by in (("times", factor), ("divided by", 1 / factor)):
            meets = (lower <= seen.high[k] * by) & (upper > seen.low[k] * by)
            if (meets & finite).any():
                return f"; values {sign} {words} would reach one: are both in one unit?"
    return ""


@dataclass(frozen=True, eq=False)
class Sight:
    """What readings in memory tell, push by push.

    Parameters
    ----------
    low, high : float64 arrays, shape (d,)
    counts : int64 array
        Readings of each stream, by its number.
    """

    low: np.ndarray
    high: np.ndarray
    counts: np.ndarray

    @classmethod
    def none(cls, dimensions: int) -> Sight:
        """Of nothing."""
        ends = np.full(dimensions, np.inf), np.full(dimensions, -np.inf)
        return cls(*ends, np.zeros(0, np.int64))

    def of_more(self, numbers: np.ndarray, values: np.ndarray) -> Sight:
        """With more readings: numbers of their streams, and values, (n, d), NaN where one is a gap."""
        known = ~np.isnan(values).any(axis=1)
        values, numbers = values[known], numbers[known]
        counts = np.bincount(numbers, minlength=self.counts.size).astype(np.int64)
        counts[: self.counts.size] += self.counts
        low, high = values.min(axis=0, initial=np.inf), values.max(axis=0, initial=-np.inf)
        return Sight(np.minimum(self.low, low), np.maximum(self.high, high), counts)

    @property
    def seen(self) -> Seen:
        """All together."""
        of_each = self.counts[self.counts > 0]
        single = int((of_each == 1).sum())
        return Seen(int(of_each.sum()), of_each.size, single, self.low, self.high)
