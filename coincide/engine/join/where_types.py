"""Types in a condition on pairs: how Arrow gets them, so that values compare and add as in SQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.rows import is_string

Fields: TypeAlias = "Mapping[str, pa.DataType]"
Kind: TypeAlias = "pa.DataType | None"
_NANOSECONDS = {
    "NANOSECOND": 1, "MICROSECOND": 10**3, "MILLISECOND": 10**6, "SECOND": 10**9,
    "MINUTE": 60 * 10**9, "HOUR": 3600 * 10**9, "DAY": 86400 * 10**9, "WEEK": 7 * 86400 * 10**9,
}  # fmt: skip
UNITS = "NANOSECOND, MICROSECOND, MILLISECOND, SECOND, MINUTE, HOUR, DAY or WEEK"
CASTS = {
    "BIGINT": pa.int64(), "INT": pa.int32(), "SMALLINT": pa.int16(), "TINYINT": pa.int8(),
    "DOUBLE": pa.float64(), "FLOAT": pa.float32(), "STRING": pa.string(), "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
}  # fmt: skip
_TESTS: dict[str, Callable[[pa.DataType], bool]] = {
    "whole": pa.types.is_integer, "float": pa.types.is_floating, "decimal": pa.types.is_decimal,
    "boolean": pa.types.is_boolean, "date": pa.types.is_date, "timestamp": pa.types.is_timestamp,
    "duration": pa.types.is_duration, "nothing": pa.types.is_null,
    "text": is_string,
}  # fmt: skip
_TAKES = {
    "whole": ("whole", "float", "decimal", "boolean", "text"),
    "float": ("whole", "float", "decimal", "text"),
    "text": ("whole", "decimal", "boolean", "date", "text"),
    "boolean": ("boolean", "whole", "text"),
    "date": ("date", "timestamp", "text"),
    "decimal": ("whole", "float", "decimal", "text"),
}
"""From what a cast means the same in every SQL: floats and times are printed in many ways."""
_CAST_CURES = {
    "duration": "Divide it by INTERVAL '1' SECOND", "float": "Compare numbers",
    "boolean": "Compare it with TRUE",
}  # fmt: skip
_NUMBERS = ("whole", "float", "decimal")
_DECIMAL = re.compile(r"DECIMAL\((\d+)(?:, (\d+))?\)")
_MOST_DIGITS = 76
_MOST_CAST = 38
"""Digits of a decimal in SQL."""
_WHOLES = pa.decimal256(20, 0)
"""All whole numbers of 64 bits, with and without a sign."""


def kind_of(expression: pc.Expression, fields: Fields) -> Kind:
    """The type of an expression over columns of these types; None if it has none."""
    # Without rows Arrow does not compare the zones of times.
    table = pa.table(
        {"": pa.nulls(1), **{name: pa.nulls(1, kind) for name, kind in fields.items()}}
    )
    try:
        return evaluated(expression, table).type
    except pa.ArrowException:
        return None


def evaluated(expression: pc.Expression, table: pa.Table) -> pa.ChunkedArray:
    """The value of an expression in each row of a table, by one thread."""
    from pyarrow import (
        acero,  # loads pandas where it is installed: only joins with a condition wait
    )

    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(table))
    options = acero.ProjectNodeOptions([expression], ["it"])
    plan = acero.Declaration("project", options, inputs=[source])
    return plan.to_table(use_threads=False)["it"]


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
    """An expression as another type; None, and what is wrong, where that has no one meaning."""
    target = CASTS.get(word) or _decimal_of(word)
    if target is None:
        return None, f"CAST takes {', '.join(CASTS)} and DECIMAL(10, 2) (found {word})"
    own = None if kind is None else class_of(kind)
    if own is None or own == "nothing":
        return given.cast(target), ""
    wanted = class_of(target)
    if own not in _TAKES[str(wanted)]:
        cure = _CAST_CURES.get(str(own), "Compare times with TIMESTAMP '...'")
        return None, f"a CAST of {kind} AS {word} is ambiguous. {cure}"
    if wanted == "whole" and own in ("float", "decimal"):
        given = pc.trunc(given)
    if wanted == "float" and own == "decimal":
        given = _number(given, kind)
    if own == "text" and wanted != "text":
        given = pc.utf8_trim_whitespace(given)
    if wanted == "decimal":
        given = _rounded(given, kind, target)
    return given.cast(target), ""


def _decimal_of(word: str) -> pa.DataType | None:
    """The type of such a word as ``DECIMAL(10, 2)``."""
    found = _DECIMAL.fullmatch(word)
    precision, scale = (int(found[1]), int(found[2] or 0)) if found else (0, 0)
    return pa.decimal256(precision, scale) if max(scale, 1) <= precision <= _MOST_CAST else None


def _rounded(given: pc.Expression, kind: pa.DataType, target: pa.DataType) -> pc.Expression:
    """With the decimals of a type, halves away from zero; a float is the decimal that it reads as."""
    own = class_of(kind)
    if own == "whole":
        return given.cast(_WHOLES)
    # Arrow rounds what then needs one more digit than its type has to 0.
    if own == "decimal":
        given = given.cast(pa.decimal256(min(kind.precision + 1, _MOST_DIGITS), kind.scale))
    if own in ("float", "text"):
        if own == "float":
            # Digits far below the last one have no place in any decimal.
            is_small = pc.abs(given) < 0.1 ** (target.scale + 2)
            given = pc.if_else(is_small, pc.scalar(0.0).cast(kind), given).cast("string")
        places = _MOST_DIGITS - (target.precision - target.scale) - 1
        given = given.cast(pa.decimal256(_MOST_DIGITS, places))
    return pc.round(given, target.scale, round_mode="half_towards_infinity")


def product(one: pc.Expression, other: pc.Expression, kinds: tuple[Kind, Kind]) -> pc.Expression:
    """The product of numbers, or of a duration and a number: to the nearest step of the duration."""
    classes = _classes(kinds)
    if classes[1] == "duration" and classes[0] in ("float", "decimal"):
        one, other, kinds, classes = other, one, kinds[::-1], classes[::-1]
    if classes[0] == "duration" and classes[1] in ("float", "decimal"):
        return _steps(_as_float(one) * _number(other, kinds[1]), kinds[0])
    if classes == ["decimal", "decimal"] and _digits(kinds) >= _MOST_DIGITS:
        return _number(one, kinds[0]) * _number(other, kinds[1])
    one, other = alike([one, other], kinds, pa.int64())
    return one * other


def quotient(one: pc.Expression, other: pc.Expression, kinds: tuple[Kind, Kind]) -> pc.Expression:
    """As in SQL: whole numbers give a whole one, by zero it is null, and durations give a number."""
    classes = _classes(kinds)
    if classes == ["duration", "duration"]:
        unit = max(
            (kind.unit for kind in kinds if kind is not None), key=["s", "ms", "us", "ns"].index
        )
        fine = pa.duration(unit)
        return quotient(_as_float(one.cast(fine)), _as_float(other.cast(fine)), (None, None))
    if classes[0] == "duration" and classes[1] in _NUMBERS:
        return _steps(quotient(_as_float(one), other, (None, kinds[1])), kinds[0])
    divisor = _number(other, kinds[1])
    nothing = pc.scalar(pa.scalar(None, pa.float64()))
    return pc.divide(_number(one, kinds[0]), pc.if_else(divisor == 0.0, nothing, divisor))


def alike(
    given: Sequence[pc.Expression], kinds: Sequence[Kind], untyped: pa.DataType
) -> list[pc.Expression]:
    """Expressions that Arrow compares and adds exactly; what has no type has that of another, or this."""
    # Arrow has decimals of whole numbers too narrow, and nothing but nulls compares with no nulls.
    classes = _classes(kinds)
    typed = (kind for kind in kinds if not (kind is None or pa.types.is_null(kind)))
    kind_of_nulls = next(typed, untyped)
    found = []
    for each, kind, own in zip(given, kinds, classes, strict=True):
        if own == "nothing":
            each = each.cast(kind_of_nulls)
        elif own == "decimal" and "float" in classes:
            each = _number(each, kind)
        elif own == "whole" and "decimal" in classes and "float" not in classes:
            each = each.cast(_WHOLES)
        found.append(each)
    return found


def _number(given: pc.Expression, kind: Kind) -> pc.Expression:
    """As the nearest float: Arrow may take another one for a long decimal, but reads texts rightly."""
    if kind is not None and pa.types.is_decimal(kind):
        given = given.cast("string")
    return given.cast("float64")


def _digits(kinds: Sequence[Kind]) -> int:
    """The digits of decimals, together."""
    return sum(kind.precision for kind in kinds if kind is not None)


def decimal(word: str) -> pc.Expression | None:
    """A decimal as it is written; None if it has too many digits."""
    value = Decimal(word)
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale, 1)
    if precision > _MOST_DIGITS:
        return None
    return pc.scalar(pa.scalar(value, pa.decimal256(precision, scale)))


def unlike(kinds: Sequence[Kind]) -> str:
    """What is wrong with comparing or adding a duration and a number; empty for other types."""
    classes = _classes(kinds)
    if "duration" in classes and any(each in _NUMBERS for each in classes):
        return f"{' and '.join(map(str, kinds))} are not two durations"
    return ""


def _classes(kinds: Sequence[Kind]) -> list[str | None]:
    return [None if kind is None else class_of(kind) for kind in kinds]


def class_of(kind: pa.DataType) -> str | None:
    """What a type is, in a word; None where no comparison takes it."""
    return next((name for name, test in _TESTS.items() if test(kind)), None)


def _as_float(duration: pc.Expression) -> pc.Expression:
    return duration.cast("int64").cast("float64")


def _steps(number: pc.Expression, kind: Kind) -> pc.Expression:
    """Halves away from zero, as Spark has it."""
    return pc.round(number, round_mode="half_towards_infinity").cast("int64").cast(kind)
