"""Stamps of a clock whose errors were found: instants, and intervals where two lines may hold."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.frames import TABLES, arrow_table, offers_arrow, own_names
from coincide.engine.events.intervals import ReadAround
from coincide.engine.events.keys import Keys, key_pairs
from coincide.engine.events.schemas import (
    arrow_time_column,
    can_be_key,
    can_be_label,
    column_of,
    one_array,
    plain_type,
)
from coincide.engine.events.ticks import Ticks, contiguous
from coincide.engine.events.time_arguments import check_column_name
from coincide.engine.events.time_columns import TimeScale
from coincide.engine.events.timestamps import INTERVALS, IntervalModel
from coincide.engine.reports.warnings import warn
from coincide.model.clocks.correction import Segments, bounds_of, correct
from coincide.model.clocks.errors import PARTS_PER_MILLION
from coincide.model.errors import (
    ConditionError,
    DataError,
    SchemaError,
    UnmatchableRowsWarning,
    argument,
)
from coincide.model.remembered import remembered
from coincide.model.units import NANOSECONDS_PER_UNIT, parse_duration

SIDE = "errors"
"""What the table is called in messages."""
_COLUMNS = ("status", "start", "end", "offset", "drift")


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
    """

    time: str
    errors: pa.Table
    by: tuple[tuple[str, str], ...]

    def __repr__(self) -> str:
        by = f", by={list(self.by)!r}" if self.by else ""
        return f"corrected_clock({self.time!r}, errors{by})"


def corrected_clock(time: str, errors: Any, *, by: Keys = ()) -> CorrectedClock:
    """Say that the stamps of a side are put right by the errors of its clock, which were found before.

    Stamps are times of the left side of `coincide.clock_error_tables`; what comes of them are times of its
    right side. A stamp within a segment becomes an instant. Between two segments it becomes the interval
    that covers both lines. Before the first segment, after the last and without any it has no time, and
    matches nothing.

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

    Returns
    -------
    CorrectedClock
        For ``left_time`` or ``right_time`` of `coincide.correlate_tables` and `coincide.correlate`.

    Raises
    ------
    ConditionError
        If a column is no name, or `by` is missing where there are several clocks.
    SchemaError
        If errors lack a column.
    """
    return named_clock(time, errors, by)


def named_clock(time: str, errors: Any, by: Keys, called: str = "by") -> CorrectedClock:
    """As `corrected_clock`, for a front end that calls `by` something else."""
    check_column_name("time", time)
    if callable(collect := getattr(errors, "toArrow", None)):
        errors = collect()
    if not offers_arrow(errors):
        raise SchemaError(f"errors must be {TABLES} (found {type(errors).__name__}).")
    pairs = tuple(key_pairs(by))
    names = [*_COLUMNS, *(name for _, name in pairs)]
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
            f" clocks apart, for example {argument(called, unused[0] if unused else 'device')}."
        )
    return CorrectedClock(time, found.select(list(dict.fromkeys(names))), pairs)


def warn_of_ends(prefixes: Sequence[str], times: Sequence[Any]) -> None:
    """Say of a stream that stamps after the last segment of a corrected clock have no time."""
    said: list[CorrectedClock] = []
    for prefix, names in zip(prefixes, times, strict=False):
        if isinstance(names, CorrectedNames) and names.given not in said:
            said.append(names.given)
            last = pc.max(names.given.errors["end"]).as_py()
            found = "none is found" if last is None else f"found {last}"
            warn(
                f"stamps of {argument(f'{prefix}_time')} after the last segment of their clock match"
                f" nothing, and do not move the clock of the stream ({found}). Find the errors again before"
                " then, and start the stream anew.",
                UnmatchableRowsWarning,
            )


def _keys_in(names: Sequence[str]) -> list[str]:
    """Of the columns of an answer those that name the clock: they come before the number of segments."""
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


@dataclass(frozen=True, eq=False)
class CorrectedNames:
    """Stamps and the columns of their clock: `coincide.engine.events.timestamp_names.TimestampNames`."""

    given: CorrectedClock
    widths: tuple[str, ...] = ()

    @property
    def clocks(self) -> tuple[str, str]:  # noqa: D102
        return self.given.time, self.given.time

    @property
    def labels(self) -> tuple[str, ...]:  # noqa: D102
        return tuple(name for name, _ in self.given.by)

    def check_longest(self, name: str) -> None:  # noqa: D102
        raise ConditionError(
            f"{argument(name)} declares the longest interval, but the errors of the clock of"
            f" {self.given.time!r} give the lengths already. Remove it."
        )

    def resolved(  # noqa: D102
        self, scales: tuple[TimeScale, TimeScale], longest: int | None
    ) -> CorrectedColumns:
        return CorrectedColumns(scales[0], self.given)


@dataclass(frozen=True, eq=False)
class CorrectedColumns:
    """Stamps and the columns of their clock: `coincide.engine.events.timestamps.TimestampColumns`."""

    scale: TimeScale
    given: CorrectedClock
    longest: None = None

    @property
    def scales(self) -> tuple[TimeScale, TimeScale]:  # noqa: D102
        return self.scale, self.scale

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
        """Events are instants, but for those between two segments, where two lines are so far apart."""
        ends, starts, stops, offsets, drifts = self.segments
        before = np.setdiff1d(np.arange(starts.size), ends - 1)
        own, later = ((offsets[s], drifts[s], starts[s]) for s in (before, before + 1))
        borders = np.array([stops[before], starts[before + 1]])
        lines = [offset + drift * (borders - start) for offset, drift, start in (own, later)]
        apart = np.abs(lines[1] - lines[0]).max(initial=-1)
        return 0, int(np.ceil(apart)) + 1  # ends are rounded to whole ticks

    def blamed(self, reason: str) -> tuple[str, ...]:  # noqa: D102
        return (self.scale.column.name,)

    @remembered
    def digest(self) -> str:
        """Of all lines and what names their clocks."""
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
        offsets = _lengths_of(errors, scale)[order]
        drifts = errors["drift"].to_numpy()[order] / PARTS_PER_MILLION
        ends = np.append(first, number.size)
        segments = Segments(ends, starts[order], stops[order], offsets, drifts)
        return segments, [key.take(pa.array(order)) for key in keys], values, known

    def read(self, table: pa.Table) -> ReadCorrected:  # noqa: D102
        side = self.scale.column.side
        stamps = Ticks(column_of(table, side, self.scale.column.name), self.scale)
        segments, _, values, known = self._lines
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
        return ReadCorrected(stamps, np.where(is_known, place, -1), segments)


class ReadCorrected(ReadAround):
    """Corrected times of rows: `coincide.engine.events.timestamps.ReadTimes`."""

    def __init__(self, stamps: Ticks, clocks: np.ndarray, segments: Segments) -> None:
        earliest, latest = (np.empty(clocks.size, np.int64) for _ in range(2))
        self._is_known = np.empty(clocks.size, bool)
        correct(stamps.ticks, clocks, segments, earliest, latest, self._is_known)
        super().__init__(stamps, latest - stamps.ticks, latest - earliest)

    @property
    def are_valid(self) -> bool:  # noqa: D102
        return super().are_valid and bool(self._is_known.all())

    @remembered
    def null(self) -> np.ndarray:  # noqa: D102
        return self._stamps.null | ~self._is_known

    @property
    def excused(self) -> np.ndarray:
        """An unknown error excuses no impossible time."""
        return self._stamps.null


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
    factor = Fraction(own.nanoseconds or 1, scale.tick.nanoseconds if own.nanoseconds else 1)
    _check_given(errors, name)
    return Ticks(column, TimeScale(own, factor, scale.tick)).ticks


def _check_given(errors: pa.Table, name: str) -> None:
    if errors[name].null_count:
        raise DataError(f"{SIDE}.{name} is null where an error is found. Fix the table.")


def _lengths_of(errors: pa.Table, scale: TimeScale) -> np.ndarray:
    """Offsets in ticks of the join: float64 array."""
    column = one_array(errors["offset"])
    if pa.types.is_integer(column.type) and scale.column.nanoseconds is not None:
        raise SchemaError(
            f"{SIDE}.offset must hold durations, as {SIDE}.start holds timestamps (found {column.type},"
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
