"""What border crossings tell of themselves, and why none is found."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from coincide.engine.borders.arguments import READINGS, BorderArguments
from coincide.engine.borders.readings import REASONS, Queries
from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.events.schemas import as_times
from coincide.engine.reports.lines import Line, Told, under
from coincide.engine.reports.metrics import numbers_of
from coincide.engine.reports.warnings import (
    LaterReport,
    Loss,
    are_most,
    losses,
    warn,
    warn_of_losses,
    warn_of_repeated,
)
from coincide.model.borders.index import CLOSED_ABOVE, OPEN_BELOW
from coincide.model.borders.monitor import Monitor
from coincide.model.errors import NoPairsWarning, Words, argument, marked, several
from coincide.model.units import TIME_LIMIT, Tick


@dataclass(frozen=True)
class BorderSummary(Told):
    """What became of readings, and what was found.

    Parameters
    ----------
    readings : int
        Rows in.
    dropped : dict of str to int
        Skipped invalid rows, by reason: ``"null"`` (no stream or no time), ``"not_finite"`` and
        ``"range"`` (of times), ``"infinite"`` (of values).
    gaps : int
        Readings with a value that is null or NaN: their stream is taken to be where it was.
    repeated, late : int
        Skipped readings that repeat a time of their stream, or come after a later one.
    waiting : int
        Readings that a monitor keeps until they are as old as its delay.
    queries, empty : int
        Live queries, and those of them whose range holds nothing.
    entered, left : int
        I and O events.
    retrieved : int
        Queries that were taken out of the index for them. The paper's processing efficiency is what was
        found over this.
    rounded : float
        Largest change of a time by rounding it to ticks, in ticks.
    tick : Tick or None
        In what times are counted; None before the first reading.
    latest : int
        The time of the last reading, in ticks from −2⁶¹ on, so that 0 is before any.
    time_kind : pa.DataType or None
        The type of the times of crossings; None before the first reading.
    why_none : tuple of str
        Where no crossing was found, what speaks against any, the most telling first.
    way, why : str
        On Spark, how readings came to the tasks, ``"files"`` or ``"exchange"``, and why.
    """

    readings: int = 0
    dropped: dict[str, int] = field(default_factory=dict, metadata={"names": tuple(REASONS)})
    gaps: int = 0
    repeated: int = 0
    late: int = 0
    waiting: int = 0
    queries: int = 0
    empty: int = 0
    entered: int = 0
    left: int = 0
    retrieved: int = 0
    rounded: float = 0.0
    tick: Tick | None = None
    why_none: tuple[str, ...] = ()
    latest: int = 0
    time_kind: pa.DataType | None = None
    way: str = field(default="", compare=False)
    why: str = field(default="", compare=False)

    @classmethod
    def of(cls, monitor: Monitor, rows: SideCounts) -> BorderSummary:
        """What a monitor has found, and what the rows of readings were."""
        taken = monitor.taken
        return cls(
            rows.rows, rows.invalid, taken.gaps, taken.repeated, taken.late, entered=monitor.entered,
            left=monitor.left, retrieved=monitor.retrieved, rounded=rows.rounded, latest=taken.latest,
        )  # fmt: skip

    @property
    def last_reading(self) -> pa.Scalar | None:
        """The time up to which readings are known, as crossings have it: `until` of region transitions."""
        if not self.latest or self.tick is None or self.time_kind is None:
            return None
        ticks = pa.array([self.latest - TIME_LIMIT], pa.int64())
        return as_times(ticks, self.time_kind, self.tick)[0]

    @property
    def lines(self) -> list[Line]:
        """Names and what there is to say, for people."""
        readings = [f"{self.readings:,} rows"]
        if self.gaps:
            readings.append(f"{self.gaps:,} gaps")
        if self.repeated:
            again = f". {ONE_STREAM_AGAIN}" * are_most(self.repeated, self.readings)
            readings.append(f"skipped {self.repeated:,} that repeat a time{again}")
        if self.late:
            readings.append(f"skipped {self.late:,} that came too late")
        readings += [words for _, words in losses_of(self)]
        empty = f", {self.empty:,} of them empty" if self.empty else ""
        last = self.last_reading
        return [
            ("readings", "; ".join(readings)),
            *([] if last is None else [("until", f"{shown_time(last)}, the last reading")]),
            ("queries", f"{self.queries:,}{empty}"),
            ("entered", f"{self.entered:,}"),
            ("left", f"{self.left:,}"),
            ("retrieved", f"{self.retrieved:,}"),
            *under("no crossing:", self.why_none),
            *([("way", f"{self.way}: {self.why}")] if self.way else []),
        ]

    @property
    def events(self) -> int:
        """All crossings."""
        return self.entered + self.left


def shown_time(time: pa.Scalar) -> str:
    """A time as `coincide transitions` reads it: ``2024-05-01T08:00:00Z``, ``9000us``, or a number."""
    if pa.types.is_duration(time.type):
        return f"{time.value}{time.type.unit}"
    return str(time.cast(pa.string())).replace(" ", "T")


COUNTED = tuple(numbers_of(BorderSummary()))
"""What tasks count, by name."""


ONE_STREAM_AGAIN = (
    f"Name the column that identifies streams with {argument('stream')}, or give times that are"
    " fine enough to differ"
)
"""What to do where most readings repeat a time."""


class BorderReport(LaterReport[BorderSummary]):
    """Takes what `border_crossings` tells: give one as ``report=``, then ask its `summary`."""

    operator = "border_crossings"

    @staticmethod
    def warn_of(summary: BorderSummary) -> None:
        """Warn of readings that were left out, of rounded times, and where nothing was found."""
        warn_of_losses(READINGS, summary.readings, losses_of(summary))
        warn_of_repeated(READINGS, summary.readings, summary.repeated, ONE_STREAM_AGAIN)
        if summary.why_none:
            warn(
                f"no crossing is found: {'; '.join(map(marked, summary.why_none))}.", NoPairsWarning
            )


def losses_of(summary: BorderSummary) -> list[Loss]:
    """What is lost, in words, with the category of each."""
    words = {why: f"with {what}" for why, what in REASONS.items()}
    return losses(summary.dropped, words, summary.rounded, summary.tick)


_FACTORS = {"1,000": 1e3, "1,000,000": 1e6, "180/pi": 180 / math.pi}
"""By which values in one unit are those in another, in words."""


@dataclass(frozen=True, eq=False)
class Seen:
    """Valid readings that are no gaps."""

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
        return ("no query has a range that contains a value",)
    return tuple(map(Words, [*_of_streams(seen, arguments), *_of_values(seen, queries, arguments)]))


def _of_streams(seen: Seen, arguments: BorderArguments) -> Iterator[str]:
    if seen.single == seen.streams:
        silent = arguments.options.first == "ignore"
        cure = (
            f". {argument('first', 'outside')} counts what its range contains as a crossing"
            * silent
        )
        yield (
            f"each of {several(seen.streams, 'stream')} has one reading, and a crossing lies between"
            f" two{cure}"
        )
    elif seen.single:
        yield f"{seen.single:,} of {several(seen.streams, 'stream')} have one reading only"


def _of_values(seen: Seen, queries: Queries, arguments: BorderArguments) -> Iterator[str]:
    """What was read and what the queries cover, per dimension, and how far these are apart."""
    gaps = np.maximum(queries.lower - seen.high, seen.low - queries.upper)
    for k, name in enumerate(arguments.values):
        ends = f"{name} was read from {seen.low[k]:.6g} to {seen.high[k]:.6g}"
        asked = f"ranges go from {queries.lower[:, k].min():.6g} to {queries.upper[:, k].max():.6g}"
        nearest = int(np.argmin(gaps[:, k]))
        gap = float(gaps[nearest, k])
        if gap > 0 or (gap == 0 and not _touches(seen, queries, nearest, k)):
            yield (
                f"{ends}, and no range reaches there: {asked}. The nearest one,"
                f" {_range_words(queries, nearest, k)} of {arguments.query}"
                f" {queries.ids[nearest].as_py()!r}, is {gap:.6g}"
                f" away{_of_units(seen, queries, k)}"
            )
        else:
            yield f"{ends}; {asked}"
    around = (queries.lower < seen.low) & (queries.upper > seen.high)
    held = int(around.all(axis=1).sum())
    if held:
        yield f"all readings are always within {held:,} of the ranges"
    elif (gaps <= 0).any(axis=0).all() and not arguments.options.pass_through:
        yield f"{argument('pass_through', True)} finds a move over a whole range"


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
                return (
                    f". Values {sign} {words} would reach one. Check that both have the same unit"
                )
    return ""


@dataclass(frozen=True, eq=False)
class Sight:
    """What readings in memory tell, push by push."""

    low: np.ndarray
    high: np.ndarray
    counts: np.ndarray

    @classmethod
    def none(cls, dimensions: int) -> Sight:
        """The sight of no readings."""
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
