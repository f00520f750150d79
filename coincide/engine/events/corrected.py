"""Stamps of a clock whose errors were found: instants, or intervals where asked or where two lines hold."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.frames import TABLES, arrow_table, offers_arrow, own_names
from coincide.engine.events.intervals import about_stamps
from coincide.engine.events.keys import Keys, key_pairs
from coincide.engine.events.schemas import (
    arrow_time_column,
    can_be_key,
    can_be_label,
    column_of,
    one_array,
    plain_type,
)
from coincide.engine.events.span_ends import OPEN_END, AnyTicks
from coincide.engine.events.ticks import Ticks, contiguous
from coincide.engine.events.time_arguments import check_column_name
from coincide.engine.events.time_columns import TimeScale
from coincide.engine.events.timestamps import (
    INTERVALS,
    IntervalModel,
    ReadTimes,
    TimestampColumns,
)
from coincide.model.clocks.correction import Segments, bounds_of, correct
from coincide.model.clocks.errors import PARTS_PER_MILLION
from coincide.model.errors import (
    CoincideError,
    ConditionError,
    DataError,
    SchemaError,
    argument,
    brief,
    said_of,
)
from coincide.model.remembered import remembered
from coincide.model.units import (
    NANOSECONDS_PER_UNIT,
    TIME_LIMIT,
    Duration,
    parse_duration,
    plain,
    size_of,
)

SIDE = "errors"
"""What the table is called in messages."""
_COLUMNS = ("status", "start", "end", "offset", "drift")
FITTED = "fitted"
"""In place of a width: as wide as the residuals of the fit."""
_LARGEST = 2**58
"""Sums of times and of this many ticks do not overflow."""


@dataclass(frozen=True, eq=False, repr=False)
class CorrectedClock:
    """Stamps that are put right. Made by `corrected_clock`.

    Parameters
    ----------
    time : str
        Column of the stamps.
    errors : pa.Table
        As `coincide.clock_error_tables` gives them.
    by : tuple of (str, str)
        Columns that name the clock: those of the events, and those of errors.
    around : int, str or None
        How far an event may be from its time: a duration, ``"fitted"``, or nothing.
    """

    time: str
    errors: pa.Table
    by: tuple[tuple[str, str], ...]
    around: Duration | None = None

    def __repr__(self) -> str:
        by = f", by={list(self.by)!r}" if self.by else ""
        around = "" if self.around is None else f", around={self.around!r}"
        return f"corrected_clock({self.time!r}, errors{by}{around})"


def corrected_clock(
    time: str, errors: Any, *, by: Keys = (), around: Duration | None = None
) -> CorrectedClock:
    """Say that the stamps of a side are put right by the errors of its clock, which were found before.

    Stamps are times of the left side of `coincide.clock_error_tables`; what comes of them are times of its
    right side. A stamp within a segment becomes an instant, or with `around` an interval about it. Between
    two segments it becomes the interval that covers both. Before the first segment, after the last and
    without any it has no time, and matches nothing.

    Parameters
    ----------
    time : str
        Column of the stamps.
    errors : pa.Table, whatever offers Arrow's C stream, dict of arrays, list of dicts, path, or
        DataFrame of Spark
        As `coincide.clock_error_tables` and `coincide.clock_errors` give them: ``status``, ``start``,
        ``end``, ``offset``, ``drift``. A DataFrame is collected. Only rows that are ``"found"`` count. If
        times are numbers, the join needs the same unit and tick. Offsets may be texts, such as ``"1.5s"``.
    by : str or sequence of str and (str, str)
        Columns that name the clock, ``("receiver", "device")`` for one with another name in errors.
    around : int, str or timedelta, optional
        How far an event may be from its corrected time: ``"10ms"`` is ± 10 ms, and uniform. ``"fitted"``
        takes the ``spread`` of each segment: ± spread · √3, rounded up to ticks, which is the uniform
        interval with this standard deviation. Default: events are instants.

    Returns
    -------
    CorrectedClock
        For ``left_time`` or ``right_time`` of `coincide.correlate_tables` and `coincide.correlate`, and in
        place of a column of `coincide.spans`.

    Raises
    ------
    ConditionError
        If a column is no name, `by` is missing where there are several clocks, or `around` is negative or
        another word.
    SchemaError
        If errors lack a column.

    Examples
    --------
    >>> line = {"status": ["found"], "start": [0], "end": [900], "offset": [7.0], "drift": [0.0]}
    >>> corrected_clock("t", line, around=5)
    corrected_clock('t', errors, around=5)
    """
    return named_clock(time, errors, by, around)


def named_clock(
    time: str,
    errors: Any,
    by: Keys,
    around: Duration | None,
    called: tuple[str, str] = ("by", "around"),
) -> CorrectedClock:
    """As `corrected_clock`, for a front end that calls `by` and `around` something else."""
    check_column_name("time", time)
    around = _width(called[1], around)
    if callable(collect := getattr(errors, "toArrow", None)):
        errors = collect()
    if not offers_arrow(errors):
        raise SchemaError(f"errors must be {TABLES} (found {type(errors).__name__}).")
    pairs = tuple(key_pairs(by))
    columns = (*_COLUMNS, "spread") if around == FITTED else _COLUMNS
    names = [*columns, *(name for _, name in pairs)]
    own = own_names(errors, SIDE)
    table = arrow_table(SIDE, errors, [*_keys_in(own), *names]).combine_chunks()
    for name in names:
        column_of(table, SIDE, name)
    found = table.filter(pc.equal(table["status"], "found"))
    keys = _keys_in(own or table.column_names)
    unused = [name for name in keys if name not in names]
    tell_apart = _count(table, [*pairs, *zip(unused, unused, strict=True)]) > _count(table, pairs)
    if tell_apart or _overlap(found, pairs):
        what = f"keys {', '.join(unused)}" if tell_apart else "segments that overlap in time"
        raise ConditionError(
            f"{SIDE} has several clocks for one event (found {what}). Name the columns that tell the"
            f" clocks apart, for example {argument(called[0], unused[0] if unused else 'device')}."
        )
    return CorrectedClock(time, found.select(list(dict.fromkeys(names))), pairs, around)


def _width(called: str, given: Duration | None) -> Duration | None:
    """How far an event may be from its time, checked as far as that goes without a tick."""
    if given is None or given == FITTED:
        return given
    try:
        size = size_of(given)
    except CoincideError:
        raise ConditionError(
            f"{argument(called)} must be a duration, such as '10ms', or {FITTED!r} (found"
            f" {brief(given)})."
        ) from None
    if size < 0:
        raise ConditionError(
            f"{argument(called)} must not be negative (found {brief(given)}). Give the ± width."
        )
    return plain(given)


def widest_fitted(clock: CorrectedClock) -> Duration | None:
    """The largest width of a fitted clock, as one says it; None where none is known."""
    if clock.around != FITTED:
        return None
    column = one_array(clock.errors["spread"]).drop_null()
    if not len(column):
        return None
    if pa.types.is_duration(column.type):
        # A tick of the join may be as coarse as the unit of the column.
        return f"{_fitted(column.view(pa.int64()).to_numpy()).max()}{column.type.unit}"
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        nanoseconds = max(map(parse_duration, column.to_pylist()))
        return f"{_fitted(np.array([float(nanoseconds / 1000)])).max()}us"
    spreads = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    known = spreads[(spreads >= 0) & (spreads < TIME_LIMIT)]
    return int(_fitted(known).max()) if known.size else None


def _fitted(spreads: np.ndarray) -> np.ndarray:
    """The half of the uniform interval that has a standard deviation, rounded up: int64 array."""
    return np.ceil(math.sqrt(3) * spreads).astype(np.int64)


def _keys_in(names: Sequence[str]) -> list[str]:
    """The columns of an answer that name the clock: they come before the number of segments."""
    return list(names[: names.index("segment")]) if "segment" in names else []


def _count(errors: pa.Table, by: Sequence[tuple[str, str]]) -> int:
    """How many clocks some columns tell apart."""
    return np.unique(_numbers(errors, by)[0]).size


def _overlap(found: pa.Table, by: Sequence[tuple[str, str]]) -> bool:
    """Whether segments of what should be one clock are at the same time, so of several."""
    if not found.num_rows:
        return False
    number, _, _ = _numbers(found, by)
    order = pa.array(np.lexsort((pc.rank(one_array(found["start"])).to_numpy(), number)))
    starts, stops = (one_array(found[name]).take(order) for name in ("start", "end"))
    is_early = pc.less(starts[1:], stops[:-1]).fill_null(False).to_numpy(zero_copy_only=False)
    is_same = np.diff(number[order]) == 0
    return bool((is_early & is_same).any())


def _numbers(
    errors: pa.Table, by: Sequence[tuple[str, str]]
) -> tuple[np.ndarray, list[pa.Array], list[pa.Array]]:
    """A number for the clock of each segment; each key as it is compared, and its values."""
    keys, values, number = [], [], np.zeros(errors.num_rows, np.int64)
    for _, name in by:
        keys.append(comparable(errors[name]))
        values.append(pc.unique(keys[-1]))
        codes = pc.index_in(keys[-1], values[-1]).to_numpy(zero_copy_only=False)
        number = number * len(values[-1]) + codes.astype(np.int64)
    return number, keys, values


@dataclass(frozen=True, eq=False, kw_only=True)
class CorrectedColumns(TimestampColumns):
    """Stamps of a clock that are put right, and the columns that name the clock."""

    given: CorrectedClock
    width: int | None = 0  # ticks; None of what was fitted

    @classmethod
    def resolve(
        cls, given: CorrectedClock, scales: tuple[TimeScale, TimeScale], longest: int | None
    ) -> CorrectedColumns:
        """For stamps that become ticks by a scale."""
        if given.around == FITTED:
            return cls(scales, given=given, width=None)
        with said_of("around"):
            width = scales[0].tick.count(given.around or 0)
        if width >= _LARGEST:
            raise ConditionError(
                f"{argument('around')} must be below 2^58 ticks (found {brief(given.around)})."
            )
        return cls(scales, given=given, width=width)

    @property
    def names(self) -> tuple[str, ...]:  # noqa: D102
        return tuple(dict.fromkeys((self.scale.column.name, *(name for name, _ in self.given.by))))

    @property
    def model(self) -> IntervalModel:  # noqa: D102
        return INTERVALS

    @remembered
    def beyond(self) -> tuple[int, int]:
        """What the errors move times by at most, between segments as well."""
        return bounds_of(self.segments)

    @remembered
    def declared(self) -> tuple[int, int]:
        """Events are as long as their widths, and longer between two segments, where lines are apart."""
        ends, starts, stops, offsets, drifts, widths = self.segments
        before = np.setdiff1d(np.arange(starts.size), ends - 1)
        own, later = ((offsets[s], drifts[s], starts[s]) for s in (before, before + 1))
        borders = np.array([stops[before], starts[before + 1]])
        lines = [offset + drift * (borders - start) for offset, drift, start in (own, later)]
        apart = np.abs(lines[1] - lines[0]).max(initial=-1)
        shortest, longest = (
            2 * int(most(widths, initial=size)) for most, size in ((np.min, _LARGEST), (np.max, 0))
        )
        # Ends are rounded to whole ticks.
        return min(shortest, longest), longest + int(np.ceil(apart)) + 1

    def blamed(self, reason: str) -> tuple[str, ...]:  # noqa: D102
        return (self.scale.column.name,)

    @remembered
    def digest(self) -> str:
        """A digest of all lines and what names their clocks."""
        told = [*(each.tolist() for each in self.segments), *(key.to_pylist() for key in self.keys)]
        return hashlib.sha256(repr(told).encode()).hexdigest()[:16]

    @property
    def segments(self) -> Segments:
        """The lines of all clocks."""
        return self._lines[0]

    @property
    def keys(self) -> list[pa.Array]:
        """What names the clock of each segment, by column: as `comparable` has it."""
        return self._lines[1]

    @remembered
    def _lines(self) -> tuple[Segments, list[pa.Array], list[pa.Array], np.ndarray]:
        """The segments by clock, their keys, the values of each, and the number of each clock's keys."""
        errors, scale = self.given.errors, self.scale
        number, keys, values = _numbers(errors, self.given.by)
        starts, stops = (_ticks_of(errors, name, scale) for name in ("start", "end"))
        order = np.lexsort((starts, number))
        known, first = np.unique(number[order], return_index=True)
        for name in ("offset", "drift"):
            _check_given(errors, name)
        offsets = _lengths_of(errors, "offset", scale)[order]
        drifts = errors["drift"].to_numpy()[order] / PARTS_PER_MILLION
        ends = np.append(first, number.size)
        segments = Segments(
            ends, starts[order], stops[order], offsets, drifts, self._widths()[order]
        )
        return segments, [key.take(pa.array(order)) for key in keys], values, known

    def _widths(self) -> np.ndarray:
        """The half-width of each segment, ticks: int64 array."""
        if self.width is not None:
            return np.full(self.given.errors.num_rows, self.width)
        _check_given(self.given.errors, "spread")
        spreads = _lengths_of(self.given.errors, "spread", self.scale)
        wrong = ~((spreads >= 0) & (spreads < _LARGEST / 2))
        if wrong.any():
            raise DataError(
                f"{SIDE}.spread must be a length, from 0 to 2^57 ticks (found {spreads[wrong][0]:g}"
                " ticks). Fix the table."
            )
        return _fitted(spreads)

    def read(self, table: pa.Table) -> ReadTimes:  # noqa: D102
        stamps = Ticks(column_of(table, self.scale.column.side, self.scale.column.name), self.scale)
        earliest, latest, is_known = self.put_right(stamps, table)
        # An unknown error excuses no impossible time.
        found = about_stamps(stamps, latest, latest - earliest, lost=~is_known)
        return replace(found, lacking=lambda: [("no_segment", ~stamps.null & ~is_known)])

    def put_right(
        self, given: AnyTicks, table: pa.Table
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The earliest and the latest time of each stamp of a table, and whether they are known."""
        earliest, latest = (np.empty(given.ticks.size, np.int64) for _ in range(2))
        is_known = np.empty(given.ticks.size, bool)
        correct(given.ticks, self.clocks(table), self.segments, earliest, latest, is_known)
        return earliest, latest, is_known

    def clocks(self, table: pa.Table) -> np.ndarray:
        """The clock of each row by its number in the segments, -1 for none: int64 array, shape (n,)."""
        side = self.scale.column.side
        _, _, values, known = self._lines
        number, is_known = np.zeros(table.num_rows, np.int64), np.ones(table.num_rows, bool)
        for (name, _), own in zip(self.given.by, values, strict=True):
            column = comparable(column_of(table, side, name))
            kind = common_kind(side, name, column.type, own.type)
            # A null key is that of no clock.
            codes = pc.index_in(column.cast(kind), own.cast(kind), skip_nulls=True)
            found = codes.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
            is_known &= found >= 0
            number = number * len(own) + found
        place = np.searchsorted(known, number)
        is_known &= np.append(known, -1)[place] == number
        return np.where(is_known, place, -1)


class PutRight:
    """Starts or ends of spans put right, which are taken as `Ticks` are."""

    # Between two segments a start or an end has no one time, so none is known.

    def __init__(
        self, given: AnyTicks, columns: CorrectedColumns, table: pa.Table, *, is_open: bool
    ) -> None:
        earliest, latest, is_known = columns.put_right(given, table)
        is_wrong = given.out_of_range.copy()
        if given.not_finite.size:
            is_wrong |= given.not_finite
        # What goes on is put off by no clock.
        stays = is_wrong | (is_open & (given.ticks == OPEN_END))
        self.ticks = np.where(stays, given.ticks, earliest)
        self.lost = ~(given.null | stays | (is_known & (earliest == latest)))
        self.null = given.null | self.lost
        self.not_finite, self.rounding = given.not_finite, given.rounding
        self.out_of_range = is_wrong | (~self.null & (np.abs(self.ticks) >= TIME_LIMIT))

    @property
    def shows_all(self) -> bool:
        """As in `Ticks`."""
        return not (self.null.any() or self.not_finite.any() or self.out_of_range.any())


_TEXT = pa.large_string()


def comparable(column: pa.ChunkedArray) -> pa.Array:
    """What names clocks, as it is compared: texts, whole numbers as their digits, all else as it is."""
    array = contiguous(column)
    return array.cast(_TEXT) if is_text_key(array.type) else array


def is_text_key(kind: pa.DataType) -> bool:
    """Whether what names clocks is compared as text; of a column of nulls no type is known."""
    return can_be_label(kind) or pa.types.is_null(kind)


def check_clock_key(side: str, name: str, kind: str, able: bool) -> None:
    """Refuse a column that cannot name clocks."""
    if not able:
        raise SchemaError(
            f"{side}.{name} has a type that cannot be compared exactly (found {kind}). Cast it to a"
            " string or an integer."
        )


def common_kind(side: str, name: str, kind: pa.DataType, own: pa.DataType) -> pa.DataType:
    """The type in which a column of events and one of errors are compared."""
    kinds = [_TEXT if is_text_key(each) else _in_utc(plain_type(each)) for each in (kind, own)]
    # A column of nulls names no clock, whatever its type.
    for null, other in (((kind, own)), (own, kind)):
        if pa.types.is_null(null):
            return _TEXT if is_text_key(other) else other
    schemas = [pa.schema([(name, each)]) for each in kinds]
    try:
        found = pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        found = None
    if found is None or not can_be_key(found) or is_text_key(kinds[0]) != is_text_key(kinds[1]):
        raise SchemaError(
            f"{side}.{name} is {kind}, and the column of {SIDE} that names its clocks is {own}. Cast one so"
            " that both are the same."
        )
    return found


def _in_utc(kind: pa.DataType) -> pa.DataType:
    """Instants are equal in any zone."""
    is_instant = pa.types.is_timestamp(kind) and kind.tz is not None
    return pa.timestamp(kind.unit, "UTC") if is_instant else kind


def _ticks_of(errors: pa.Table, name: str, scale: TimeScale) -> np.ndarray:
    """Times of segments in ticks of the join: numbers are counted so already."""
    column = column_of(errors, SIDE, name)
    own = arrow_time_column(SIDE, name, column.type)
    if (own.nanoseconds is None) != (scale.column.nanoseconds is None):
        raise SchemaError(
            f"{SIDE}.{name} and {scale.column.side}.{scale.column.name} must both be timestamps,"
            f" or both be numbers (found {column.type}). Find the errors of times like these."
        )
    if {own.family, scale.column.family} == {"timestamp", "timestamp_ntz"}:
        raise SchemaError(
            f"{SIDE}.{name} and {scale.column.side}.{scale.column.name} must both have a time zone, or"
            f" neither (found {column.type}). Find the errors of times like these, or cast one column."
        )
    factor = Fraction(own.nanoseconds or 1, scale.tick.nanoseconds if own.nanoseconds else 1)
    _check_given(errors, name)
    return Ticks(column, TimeScale(own, factor, scale.tick)).ticks


def _check_given(errors: pa.Table, name: str) -> None:
    if errors[name].null_count:
        raise DataError(f"{SIDE}.{name} is null where an error is found. Fix the table.")


def _lengths_of(errors: pa.Table, name: str, scale: TimeScale) -> np.ndarray:
    """Offsets or spreads in ticks of the join: float64 array."""
    column = one_array(errors[name])
    if pa.types.is_integer(column.type) and scale.column.nanoseconds is not None:
        raise SchemaError(
            f"{SIDE}.{name} must hold durations, as {SIDE}.start holds timestamps (found {column.type},"
            " as Spark writes its intervals to Parquet). Give the DataFrame itself, or write its"
            " .toArrow()."
        )
    if pa.types.is_large_string(column.type) or pa.types.is_string(column.type):
        sizes = [
            parse_duration(text) / (scale.tick.nanoseconds or 1) for text in column.to_pylist()
        ]
        return np.array(sizes, np.float64)
    if not pa.types.is_duration(column.type):
        return column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    step = float(NANOSECONDS_PER_UNIT[column.type.unit] / (scale.tick.nanoseconds or 1))
    return column.view(pa.int64()).to_numpy(zero_copy_only=False) * step
