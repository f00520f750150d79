"""What the statistics of a footer tell of a column: the values of each row group; of times, their ticks.

Statistics hold what is stored, not what it means: a uint32 comes as an int32, a timestamp in the unit
of the file. What this module cannot read for certain, it does not know.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from coincide.units import NANOSECONDS_PER_UNIT, TIME_LIMIT
from spark_plugin.worker.arrow.ticks import float_ticks
from spark_plugin.worker.arrow.time_columns import TimeScale

_BITS = {"INT32": 32, "INT64": 64}
_UNITS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}

Value = Any
"""A stored value: an int, a float, or the bytes of a text, whose order is that of the texts."""

Range = tuple[Value, Value]
"""Smallest and largest stored value; None where it is not told, as beside a NaN. Of long texts some writers
tell a bit less and a bit more."""

ONLY_NULLS = (math.inf, -math.inf)
"""The range of a row group in which a column is null throughout."""


@dataclass(frozen=True)
class Stored:
    """How a file stores a column.

    Parameters
    ----------
    family : {"integer", "float", "text"}
    least, most : int
        What an integer can be.
    nanoseconds : int or None
        Length of one step of a timestamp or date.
    """

    family: str
    least: int = 0
    most: int = 0
    nanoseconds: int | None = None

    def range(self, low: object, high: object) -> Range:
        """The range that raw statistics tell of."""
        ends = self._value(low), self._value(high)
        # Ends the wrong way round come from a writer with another order in mind.
        wrong = ends[0] is not None and ends[1] is not None and ends[0] > ends[1]
        return (None, None) if wrong else ends

    def _value(self, raw: object) -> Value:
        if self.family == "text":
            return raw if isinstance(raw, bytes) else None
        if self.family == "float":
            return raw if isinstance(raw, float) and not math.isnan(raw) else None
        if not isinstance(raw, int):
            return None
        value = raw % 2**32 if self.least == 0 and raw < 0 else raw
        return value if self.least <= value <= self.most else None


def stored_as(column: pq.ColumnSchema) -> Stored | None:
    """How a column is stored; None if its statistics cannot be read as numbers, times or texts."""
    return _stored_as(column.physical_type, column.logical_type.to_json())


@cache
def _stored_as(physical: str, logical: str) -> Stored | None:
    meaning = json.loads(logical)
    kind, bits = meaning["Type"], _BITS.get(physical)
    if physical in ("FLOAT", "DOUBLE") and kind == "None":
        return Stored("float")
    if physical == "BYTE_ARRAY" and kind == "String":
        return Stored("text")
    if bits is None or kind not in ("None", "Int", "Timestamp", "Date"):
        return None
    if kind == "Date":
        return Stored("integer", -(2**31), 2**31 - 1, NANOSECONDS_PER_UNIT["d"])
    if kind == "Int" and not meaning["isSigned"]:
        # An unsigned 64-bit number is no time.
        return Stored("integer", 0, 2 ** meaning["bitWidth"] - 1) if bits == 32 else None
    half = 2 ** (meaning.get("bitWidth", bits) - 1)
    unit = _UNITS.get(meaning.get("timeUnit", ""))
    if (kind == "Timestamp") != (unit is not None):
        return None
    return Stored("integer", -half, half - 1, NANOSECONDS_PER_UNIT[unit] if unit else None)


def ranges(footer: pq.FileMetaData, name: str) -> tuple[Stored | None, list[Range | None]]:
    """How a column is stored, and its range in each row group of a file that has rows.

    Returns
    -------
    Stored or None
    list of Range or None
        None: nothing is told.
    """
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    groups = [group for group in groups if group.num_rows]
    place, stored = _place(footer, name)
    if stored is None:
        return None, [None] * len(groups)
    return stored, [chunk_range(group.column(place), stored) for group in groups]


def _place(footer: pq.FileMetaData, name: str) -> tuple[int, Stored | None]:
    columns = [footer.schema.column(i) for i in range(len(footer.schema))]
    places = [i for i, column in enumerate(columns) if column.path == name]
    # A column in a struct may go by the same path as one with a dot in its name.
    return (places[0], stored_as(columns[places[0]])) if len(places) == 1 else (-1, None)


def chunk_range(chunk: pq.ColumnChunkMetaData, stored: Stored) -> Range | None:
    """The range that the statistics of one row group tell of; None: none."""
    statistics = chunk.statistics if chunk.is_stats_set else None
    if statistics is None:
        return None
    if statistics.has_min_max:
        return stored.range(statistics.min_raw, statistics.max_raw)
    if statistics.has_null_count and statistics.null_count == chunk.num_values:
        return ONLY_NULLS
    # Writers leave the ends out where there are NaNs only, or, some of them, any.
    return (None, None) if stored.family == "float" and statistics.has_null_count else None


def range_ticks(
    stored: Stored, found: Sequence[Range | None], scale: TimeScale
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of ranges in ticks, rounded as rows are, or outwards.

    Parameters
    ----------
    stored : Stored
    found : sequence of Range or None
    scale : TimeScale
        Of the column as it is read.

    Returns
    -------
    two int64 arrays, shape (ranges,)
        Held within ±2^61, which stands for "not told" too.
    """
    low = [-math.inf if one is None or one[0] is None else one[0] for one in found]
    high = [math.inf if one is None or one[1] is None else one[1] for one in found]
    if stored.family == "float":
        return float_ticks(np.array(low), scale), float_ticks(np.array(high), scale)
    factor = _ticks_per_step(stored, scale)
    return _whole(low, factor, 1), _whole(high, factor, -1)


def _ticks_per_step(stored: Stored, scale: TimeScale) -> Fraction:
    """Of what is stored, which may be finer than what is read: Parquet has fewer units than Arrow."""
    if stored.nanoseconds is None or scale.column.nanoseconds is None:
        return scale.factor
    return scale.factor * Fraction(stored.nanoseconds, scale.column.nanoseconds)


def _whole(values: Sequence[int | float], factor: Fraction, sign: int) -> np.ndarray:
    """Integers in ticks, rounded down by sign 1 and up by sign -1."""
    up, down = factor.numerator, factor.denominator
    ticks = [
        value if isinstance(value, float) else sign * (sign * value * up // down)
        for value in values
    ]
    return np.array([max(-TIME_LIMIT, min(TIME_LIMIT, tick)) for tick in ticks], np.int64)
