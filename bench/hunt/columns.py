"""The types of columns that cases have: of times, of keys, and of mere output columns."""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

NANOSECONDS = {
    "ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9,
    "d": 86400 * 10**9,
}  # fmt: skip


@dataclass(frozen=True)
class TimeType:
    """A type of a time column."""

    name: str
    arrow: pa.DataType
    family: str  # integer, float, timestamp, timestamp_ntz or duration
    step: str | None = None  # unit of a timestamp, date or duration; None: the join's unit says it
    bits: int = 64  # those of a whole number, or of a float's significand

    @property
    def range(self) -> tuple[int, int]:
        """Least and largest whole number that it holds."""
        if self.name.startswith("uint"):
            return 0, 2**self.bits - 1
        return -(2 ** (self.bits - 1)), 2 ** (self.bits - 1) - 1

    def value(self, steps: Fraction) -> int | float:
        """The value nearest to a number of steps."""
        if self.family == "float":
            number = float(steps)
            return float(np.float32(number)) if self.name == "float32" else number
        low, high = self.range
        return max(low, min(high, math.floor(steps + Fraction(1, 2))))


def _integers() -> list[TimeType]:
    sizes = [("int", size) for size in (64, 32, 16, 8)] + [("uint", size) for size in (8, 16, 32)]
    return [
        TimeType(f"{kind}{size}", getattr(pa, f"{kind}{size}")(), "integer", bits=size)
        for kind, size in sizes
    ]


def _timestamps(zone: str | None) -> list[TimeType]:
    family = "timestamp_ntz" if zone is None else "timestamp"
    return [
        TimeType(f"{family}[{unit}]", pa.timestamp(unit, zone), family, unit)
        for unit in ("us", "ms", "s", "ns")
    ]


TIME_TYPES: dict[str, list[TimeType]] = {
    "integer": _integers(),
    "float": [
        TimeType("float64", pa.float64(), "float", bits=53),
        TimeType("float32", pa.float32(), "float", bits=24),
    ],
    "timestamp": _timestamps("UTC") + _timestamps("Europe/Rome")[:1],
    "timestamp_ntz": [
        *_timestamps(None),
        TimeType("date32", pa.date32(), "timestamp_ntz", "d", 32),
    ],
    "duration": [
        TimeType(f"duration[{unit}]", pa.duration(unit), "duration", unit)
        for unit in ("us", "ms", "s", "ns")
    ],
}
"""By family."""


@dataclass(frozen=True)
class ValueType:
    """A type of keys or of an output column, and the values that are drawn, None apart."""

    name: str
    arrow: pa.DataType
    values: tuple[Any, ...]


_DECIMALS = tuple(map(decimal.Decimal, ("0.00", "1.10", "-1.10", "99999999.99", "0.01")))
_DAYS = (date(2026, 1, 2), date(1969, 12, 31), date(1, 1, 1), date(9999, 12, 31))
_INSTANTS = tuple(
    datetime(*when, tzinfo=UTC)
    for when in ((2026, 1, 2, 3, 4, 5, 6), (1969, 12, 31, 23, 59, 59), (2026, 3, 29, 1, 30))
)
# What collates alike, differs by blanks or case, or would be a null to some reader.
_TEXTS = ("AQU", "", "é", "e\N{COMBINING ACUTE ACCENT}", "aqu", "AQU ", "null", "x\ny", "😀", "a,b")

KEY_TYPES = [
    ValueType("string", pa.string(), _TEXTS),
    ValueType("int64", pa.int64(), (0, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63))),
    ValueType("int32", pa.int32(), (0, 7, -1, 2**31 - 1, -(2**31))),
    ValueType("int8", pa.int8(), (0, 1, -128, 127)),
    ValueType("boolean", pa.bool_(), (True, False)),
    ValueType("date", pa.date32(), _DAYS),
    ValueType("timestamp", pa.timestamp("us", "UTC"), _INSTANTS),
    ValueType("decimal", pa.decimal128(10, 2), _DECIMALS),
    ValueType("wide decimal", pa.decimal128(38, 2), _DECIMALS),
    ValueType("binary", pa.binary(), (b"", b"\x00", b"\x00\x00", b"\xff", b"AQU")),
    ValueType("dictionary", pa.dictionary(pa.int32(), pa.string()), _TEXTS),
    ValueType("large string", pa.large_string(), _TEXTS),
]

EXTRA_TYPES = [
    ValueType("string", pa.string(), _TEXTS),
    ValueType("float64", pa.float64(), (0.5, -0.0, math.nan, math.inf, 1e300)),
    ValueType("float32", pa.float32(), (0.5, -2.0, math.nan)),
    ValueType("boolean", pa.bool_(), (True, False)),
    ValueType("int16", pa.int16(), (0, -(2**15), 2**15 - 1)),
    ValueType("date", pa.date32(), _DAYS[:2]),
    ValueType("timestamp", pa.timestamp("us", "UTC"), _INSTANTS),
    ValueType("wall clock", pa.timestamp("us"), tuple(t.replace(tzinfo=None) for t in _INSTANTS)),
    ValueType("decimal", pa.decimal128(10, 2), _DECIMALS),
    ValueType("binary", pa.binary(), (b"", b"\x00", b"xyz")),
    ValueType("list", pa.list_(pa.int64()), ([], [1, None, 3], [2**63 - 1])),
    ValueType("struct", pa.struct([("a", pa.int64()), ("b", pa.string())]),
              ({"a": 1, "b": "x"}, {"a": None, "b": ""})),
]  # fmt: skip
