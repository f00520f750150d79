"""What SQL says of types, in Arrow: casts, and durations in arithmetic."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.compute as pc

Fields: TypeAlias = "Mapping[str, pa.DataType]"
Kind: TypeAlias = "pa.DataType | None"
_NANOSECONDS = {
    "NANOSECOND": 1, "MICROSECOND": 10**3, "MILLISECOND": 10**6, "SECOND": 10**9,
    "MINUTE": 60 * 10**9, "HOUR": 3600 * 10**9, "DAY": 86400 * 10**9, "WEEK": 7 * 86400 * 10**9,
}  # fmt: skip
UNITS = "NANOSECOND, MICROSECOND, MILLISECOND, SECOND, MINUTE, HOUR, DAY or WEEK"
_CASTS = {
    **dict.fromkeys(("BIGINT", "LONG"), pa.int64()),
    **dict.fromkeys(("INT", "INTEGER"), pa.int32()),
    "SMALLINT": pa.int16(), "TINYINT": pa.int8(), "DOUBLE": pa.float64(),
    **dict.fromkeys(("FLOAT", "REAL"), pa.float32()),
    **dict.fromkeys(("STRING", "VARCHAR", "TEXT"), pa.string()),
    "BOOLEAN": pa.bool_(), "DATE": pa.date32(),
}  # fmt: skip
TARGETS = ", ".join(_CASTS)
_TESTS: dict[str, Callable[[pa.DataType], bool]] = {
    "whole": pa.types.is_integer, "float": pa.types.is_floating, "decimal": pa.types.is_decimal,
    "boolean": pa.types.is_boolean, "date": pa.types.is_date, "timestamp": pa.types.is_timestamp,
    "duration": pa.types.is_duration, "nothing": pa.types.is_null,
    "text": lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind),
}  # fmt: skip
_TAKES = {
    "whole": ("whole", "float", "decimal", "boolean", "text"),
    "float": ("whole", "float", "decimal", "text"),
    "text": ("whole", "decimal", "boolean", "date", "text"),
    "boolean": ("boolean", "whole", "text"),
    "date": ("date", "timestamp", "text"),
}
"""From what a cast means the same in every SQL: floats and times are printed in many ways."""
_NUMBERS = ("whole", "float", "decimal")


def kind_of(expression: pc.Expression, fields: Fields) -> Kind:
    """The type of an expression over columns of these types; None if it has none."""
    table = pa.table({name: pa.array([], kind) for name, kind in fields.items()} or {"": []})
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(table))
    options = acero.ProjectNodeOptions([expression], ["it"])
    try:
        found = acero.Declaration("project", options, inputs=[source]).to_table(use_threads=False)
    except pa.ArrowException:
        return None
    return found.schema.field(0).type


def interval(number: str, unit: str) -> pa.Scalar | None:
    """A duration of a number of units, such as ``2.5`` and ``SECONDS``; None if there is no such one."""
    size = _NANOSECONDS.get(unit.upper()) or _NANOSECONDS.get(unit.upper().removesuffix("S"))
    found = re.fullmatch(r"\s*([+-]?)(\d+)(?:\.(\d*))?\s*", number)
    if size is None or found is None:
        return None
    sign, wholes, decimals = found[1], found[2], found[3] or ""
    ticks, rest = divmod(int(wholes + decimals) * size, 10 ** len(decimals))
    if rest:
        return None
    ticks = -ticks if sign == "-" else ticks
    is_fine = ticks % 1000 != 0
    try:
        return pa.scalar(
            ticks if is_fine else ticks // 1000, pa.duration("ns" if is_fine else "us")
        )
    except (pa.ArrowInvalid, OverflowError):
        return None


def cast(given: pc.Expression, word: str, kind: Kind) -> tuple[pc.Expression | None, str]:
    """An expression as another type; None, and what is wrong, where that has no one meaning.

    Parameters
    ----------
    given : pc.Expression
    word : str
        The type in SQL.
    kind : pa.DataType or None
        What it is; None where nobody knows yet.
    """
    target = _CASTS.get(word.upper())
    if target is None:
        return None, f"CAST knows {TARGETS}; found {word}"
    own = None if kind is None else _class_of(kind)
    if own is None or own == "nothing":
        return given.cast(target), ""
    wanted = _class_of(target)
    if own not in _TAKES[str(wanted)]:
        cure = "compare times with TIMESTAMP '...'"
        if own == "duration":
            cure = "divide it by INTERVAL '1' SECOND"
        elif own == "float":
            cure = "compare numbers"
        return None, f"a CAST of {kind} AS {word.upper()} has no one meaning; {cure}"
    if wanted == "whole" and own in ("float", "decimal"):
        given = pc.trunc(given)
    if own == "text" and wanted != "text":
        given = pc.utf8_trim_whitespace(given)
    return given.cast(target), ""


def product(one: pc.Expression, other: pc.Expression, kinds: tuple[Kind, Kind]) -> pc.Expression:
    """Of numbers, or of a duration and a number: to the nearest step of the duration."""
    if _classes(kinds) == ["float", "duration"]:
        one, other, kinds = other, one, kinds[::-1]
    if _classes(kinds) == ["duration", "float"]:
        return _steps(_as_float(one) * other.cast("float64"), kinds[0])
    return one * other


def quotient(one: pc.Expression, other: pc.Expression, kinds: tuple[Kind, Kind]) -> pc.Expression:
    """As in SQL: of whole numbers it is none, and by zero it is null; of durations it is a number."""
    classes = _classes(kinds)
    if classes == ["duration", "duration"]:
        unit = max(
            (kind.unit for kind in kinds if kind is not None), key=["s", "ms", "us", "ns"].index
        )
        fine = pa.duration(unit)
        return quotient(_as_float(one.cast(fine)), _as_float(other.cast(fine)), (None, None))
    if classes[0] == "duration" and classes[1] in _NUMBERS:
        return _steps(quotient(_as_float(one), other, (None, None)), kinds[0])
    divisor = other.cast("float64")
    nothing = pc.scalar(pa.scalar(None, pa.float64()))
    return pc.divide(one.cast("float64"), pc.if_else(divisor == 0.0, nothing, divisor))


def unlike(kinds: tuple[Kind, Kind]) -> str:
    """What is wrong with comparing or adding a duration and a number; empty if they are none."""
    classes = _classes(kinds)
    if "duration" in classes and any(each in _NUMBERS for each in classes):
        return (
            f"{kinds[0]} and {kinds[1]} are no two durations; write the number as INTERVAL '5' SECOND, or"
            " divide the duration by INTERVAL '1' SECOND"
        )
    return ""


def _classes(kinds: tuple[Kind, Kind]) -> list[str | None]:
    return [None if kind is None else _class_of(kind) for kind in kinds]


def _class_of(kind: pa.DataType) -> str | None:
    return next((name for name, test in _TESTS.items() if test(kind)), None)


def _as_float(duration: pc.Expression) -> pc.Expression:
    return duration.cast("int64").cast("float64")


def _steps(number: pc.Expression, kind: Kind) -> pc.Expression:
    """Halves away from zero, as Spark has it."""
    return pc.round(number, round_mode="half_towards_infinity").cast("int64").cast(kind)
