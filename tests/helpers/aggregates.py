"""Columns of every type, questions and comparisons for tests of aggregates."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

from coincide import (
    CorrelateOptions,
    TimingCondition,
    correlate_tables,
    within,
)
from cpu_fallback.reference.aggregates import (
    Aggregate,
    is_same,
)
from cpu_fallback.reference.join import Row

CASES = int(os.environ.get("COINCIDE_CASES", "150"))
ORDERED = ("count", "min", "max", "first", "last")
NUMBERS = (*ORDERED, "sum", "mean", "std")
OF_A_PAIR = ("count", "min", "max", "sum", "mean", "std")
NAN, INF = math.nan, math.inf
LARGEST, LEAST = 1.7976931348623157e308, 5e-324


class Kind(NamedTuple):
    """A type of a column, values of it that are easily got wrong, and the functions that take it."""

    type: pa.DataType
    values: tuple[Any, ...]
    functions: tuple[str, ...] = ORDERED
    more: st.SearchStrategy[Any] = st.nothing()


def integers(kind: pa.DataType) -> Kind:
    bits, is_unsigned = kind.bit_width, str(kind).startswith("u")
    low, high = (0, 2**bits - 1) if is_unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return Kind(kind, (1, 0, high, low, high - 1, 7), NUMBERS, st.integers(low, high))


def decimals(kind: Any) -> Kind:
    one, most = Decimal((0, (1,), -kind.scale)), 10**kind.precision - 1
    unscaled = (7, 0, most, -most, -1, 10 ** (kind.precision // 2))
    values = tuple(
        Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -kind.scale)) for n in unscaled
    )
    return Kind(kind, (one, *values), NUMBERS)


def floats(kind: pa.DataType, *values: float) -> Kind:
    usual = (0.5, -0.0, 0.0, -0.1, 1.0, NAN, INF, -INF)
    more = st.floats(width=kind.bit_width)
    return Kind(kind, (*usual, *values, *(-value for value in values)), NUMBERS, more)


def times(kind: pa.DataType, *values: int) -> Kind:
    return Kind(kind, (5, -5, 0, *values), ORDERED)


TEXTS = (
    "b",
    "ab",
    "",
    "é",
    "z",
    "\N{GRINNING FACE}",
    "\N{FULLWIDTH LATIN SMALL LETTER A}",
    "a\x00",
)
BYTES = (b"b", b"ab", b"", b"\xff", b"\x00", b"a\x00", b"a")
FAR = 2**63 - 1
KINDS = {
    **{
        str(kind): integers(kind)
        for kind in (
            *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
            *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        )
    },
    "bool": Kind(pa.bool_(), (False, True), (*NUMBERS, "any")),
    "decimal, 0": decimals(pa.decimal128(38, 0)),
    "decimal, 2": decimals(pa.decimal128(10, 2)),
    "decimal, 9": decimals(pa.decimal128(18, 9)),
    "decimal, 18": decimals(pa.decimal128(38, 18)),
    "decimal, 30": decimals(pa.decimal128(38, 30)),
    "long decimal": decimals(pa.decimal256(76, 20)),
    "float16": floats(pa.float16(), 65504.0, 6e-8, 2048.0),
    "float32": floats(pa.float32(), 3.4028234663852886e38, 1e-45, 16777216.0, 1e-30),
    "float64": floats(pa.float64(), 1e300, 1e-300, LARGEST, LEAST, 2.0**53, 1e16),
    # Halves of the last place: a sum that is rounded twice comes out otherwise.
    "ties": Kind(
        pa.float64(), (1.0, 2.0**-53, -(2.0**-53), 2.0**-105, -(2.0**-105), 2.0**-52), NUMBERS
    ),
    "largest": Kind(pa.float64(), (LARGEST, -LARGEST, 2.0**970, -(2.0**969), 1.0), NUMBERS),
    "string": Kind(pa.string(), TEXTS),
    "large_string": Kind(pa.large_string(), TEXTS),
    "binary": Kind(pa.binary(), BYTES),
    "large_binary": Kind(pa.large_binary(), BYTES),
    "fixed binary": Kind(pa.binary(2), (b"ab", b"aa", b"\xff\x00", b"\x00\xff")),
    "dictionary": Kind(pa.dictionary(pa.int32(), pa.string()), TEXTS),
    "dictionary of numbers": Kind(pa.dictionary(pa.int32(), pa.int64()), (5, -5, 0), NUMBERS),
    "date32": times(pa.date32(), 19_000, -40_000),
    "date64": Kind(pa.date64(), (86_400_000, -86_400_000, 0, 20_000 * 86_400_000)),
    "time32": Kind(pa.time32("ms"), (5, 0, 86_399_999)),
    "time64": Kind(pa.time64("ns"), (5, 0, 86_400 * 10**9 - 1)),
    **{
        f"timestamp {unit}": times(pa.timestamp(unit, zone), 1_700_000_000)
        for unit, zone in (("s", None), ("ms", "UTC"), ("us", "Europe/Rome"))
    },
    "timestamp ns": times(pa.timestamp("ns"), FAR, -FAR),
    "duration s": Kind(pa.duration("s"), (5, -5, 0, 10**9), (*ORDERED, "sum")),
    "duration ns": Kind(pa.duration("ns"), (5, -5, 0, FAR, -FAR), (*ORDERED, "sum")),
}  # fmt: skip


def is_counted(kind: pa.DataType) -> bool:
    """Whether the values of a type count as integers here."""
    return bool(pa.types.is_temporal(kind))


def array(values: Any, kind: pa.DataType) -> pa.Array:
    values = list(values)
    if is_counted(kind):
        return pa.array(values, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode()
    return pa.array(values, kind)


def plain(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """The values as the reference has them."""
    kind, chunks = column.type, getattr(column, "chunks", [column])
    if is_counted(kind):
        whole = pa.int32() if kind.bit_width == 32 else pa.int64()
        chunks = [chunk.view(whole) for chunk in chunks]
    return [value for chunk in chunks for value in chunk.to_pylist()]


def output_type(kind: pa.DataType, function: str) -> pa.DataType:
    """The type of an aggregate of a column."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if function == "count":
        return pa.int64()
    if function in ("mean", "std"):
        return pa.float64()
    if function != "sum" or pa.types.is_duration(kind):
        return kind
    if pa.types.is_decimal256(kind):
        return pa.decimal256(76, kind.scale)
    if pa.types.is_decimal(kind):
        return pa.decimal128(38, kind.scale)
    if pa.types.is_floating(kind):
        return pa.float64()
    return pa.uint64() if pa.types.is_unsigned_integer(kind) else pa.int64()


def fits(total: Any, kind: pa.DataType) -> bool:
    """Whether the type of a sum has it."""
    if not isinstance(total, Fraction):
        return True
    if pa.types.is_decimal(kind):
        return abs(total * 10**kind.scale) < 10**kind.precision
    return 0 <= total < 2**64 if kind == pa.uint64() else -(2**63) <= total < 2**63


NOTHING = {"count": 0}
"""What an event without a match has, null apart."""


def function_of(asking: Aggregate) -> str:
    return asking if isinstance(asking, str) else asking[1]


def check(
    found: pa.Table,
    expected: list[dict[str, Any] | None],
    aggregates: dict[str, Aggregate],
    how: str,
    row: str = "left_row",
    nothing: dict[str, Any] = NOTHING,
) -> None:
    """Each value is that of the reference; `row` is the column of the number of the left row."""
    found.validate(full=True)
    assert found.column_names[-len(aggregates) :] == list(aggregates)
    rows = [i for i, own in enumerate(expected) if own is not None or how == "left"]
    numbers = found[row].to_pylist()
    assert (numbers if how == "left" else sorted(numbers)) == rows
    for name, asking in aggregates.items():
        function = function_of(asking)
        for i, value in zip(numbers, plain(found[name]), strict=True):
            own = expected[i]
            want = nothing.get(function) if own is None else own[name]
            assert is_same(value, want, function), (name, asking, i, value, want)


def numbered(rows: Any) -> list[Row]:
    return [{**row, "id": number} for number, row in enumerate(rows)]


def _alike(left: Row, right: Row) -> bool:
    return left["name"] is not None and left["name"] == right["name"]


WHERES: list[tuple[str | None, Callable[[Row, Row], bool]]] = [
    (None, lambda left, right: True), (None, lambda left, right: True),
    ("left_id < right_id", lambda left, right: left["id"] < right["id"]),
    ("left_name = right_name", _alike),
]  # fmt: skip
OF_PAIRS: dict[str, Aggregate] = {
    "n": "count", "soonest": ("delta", "min"), "apart": ("delta", "sum"),
    "spread": ("delta", "std"), "usual": ("delta", "mean"), "surest": ("probability", "max"),
    "doubtful": ("probability", "min"), "likely": ("probability", "sum"),
}  # fmt: skip
CLOSED = st.sampled_from(["both", "left", "right", "neither"])
OPTIONS = st.builds(
    CorrelateOptions, threads=st.sampled_from([1, 2]), batch_pairs=st.sampled_from([None, 1, 7]),
    classes=st.sampled_from([None, None, 1, 3]),
)  # fmt: skip


@st.composite
def values_of(draw: Any, kind: Kind, count: int) -> list[Any]:
    """Values of a column: any, few different ones, those that are small, or none."""
    held = plain(array(kind.values, kind.type))
    chosen = draw(st.sampled_from([held, held[:2], held[:3], held[3:], []]))
    each = st.none() | st.sampled_from(chosen) | kind.more if chosen else st.none()
    return [draw(each) for _ in range(count)]


EXACT: dict[str, Any] = {
    "condition": TimingCondition(within(0, 9), 1.0), "left_time": "t", "right_time": "t",
    "emit": "aggregates",
}  # fmt: skip
LEFT = pa.table({"id": [1, 2], "t": [0, 100]})


def right_of(values: pa.Array) -> pa.Table:
    return pa.table({"t": pa.array([3] * len(values), pa.int64()), "amp": values})


def joined(values: Any, aggregates: Any, left: pa.Table = LEFT, **more: Any) -> pa.Table:
    """The answer where the first left event matches all values, and the second none."""
    return correlate_tables(left, right_of(values), aggregates=aggregates, **(EXACT | more))
