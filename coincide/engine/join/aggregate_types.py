"""The types of aggregates, and what they take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from coincide.engine.events.rows import is_string
from coincide.engine.events.schemas import check_name, plain_type, storage_type
from coincide.model.aggregates import PAIR_VALUES, Aggregate, Function
from coincide.model.errors import SchemaError


def output_type(aggregate: Aggregate, kind: pa.DataType) -> pa.DataType:
    """The type of an aggregate of a column of a type."""
    if aggregate.is_weighted:
        return pa.float64()
    if aggregate.function == "count":
        return pa.int64()
    if aggregate.function in ("mean", "std"):
        return pa.float64()
    kind = plain_type(kind)
    if pa.types.is_null(kind):
        return kind
    return type_of_sum(kind) if aggregate.function == "sum" else kind


def check_type(aggregate: Aggregate, kind: pa.DataType) -> None:
    """Refuse an aggregate of a type for which it has no meaning."""
    if pa.types.is_null(plain_type(kind)):
        return  # there is no value that it could not take
    kind = readable_type(kind)
    is_taken = {
        "sum": _is_number(kind) or (pa.types.is_duration(kind) and not aggregate.is_weighted),
        "mean": _is_number(kind),
        "std": _is_number(kind),
        "min": _has_order(kind),
        "max": _has_order(kind),
        "any": pa.types.is_boolean(kind),
    }
    if not is_taken.get(aggregate.function, True):
        raise SchemaError(
            f"{aggregate.function!r} takes {aggregate.takes} (found {aggregate.column!r}, which is"
            f" {kind}, in {aggregate.said}). Cast it, or choose another function."
        )


def readable_type(kind: pa.DataType) -> pa.DataType:
    """A column without a type has nulls alone, which may be of any."""
    kind = plain_type(kind)
    return pa.int64() if pa.types.is_null(kind) else kind


def types_of_nothing(aggregates: Sequence[Aggregate]) -> dict[str, pa.DataType]:
    """Types for columns of which no row tells the type, where a function does not take texts."""
    numbers = dict.fromkeys(("sum", "mean", "std"), pa.float64())
    kinds = {"any": pa.bool_(), **numbers}
    return {
        each.column: kinds[each.function]
        for each in aggregates
        if each.column is not None and each.function in kinds
    }


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_decimal(kind):
        return bool(kind.scale >= 0)
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _has_order(kind: pa.DataType) -> bool:
    types, kind = pa.types, storage_type(kind)
    is_bytes = types.is_binary(kind) or types.is_large_binary(kind)
    is_bytes |= types.is_fixed_size_binary(kind)
    is_time = types.is_temporal(kind) and not types.is_interval(kind)
    return bool(_is_number(kind) or is_time or is_string(kind) or is_bytes)


LEAST, GREATEST = "least", "greatest"


def extreme_of(function: Function) -> str:
    """Which value is sought among all others: 1 is the greatest of truth values."""
    return LEAST if function == "min" else GREATEST


def type_of_sum(kind: pa.DataType) -> pa.DataType:
    """The type of sums of numbers, or durations, of a type."""
    types = pa.types
    if types.is_floating(kind):
        return pa.float64()
    if types.is_decimal256(kind):
        return pa.decimal256(76, kind.scale)
    if types.is_decimal(kind):
        return pa.decimal128(38, kind.scale)
    if types.is_unsigned_integer(kind):
        return pa.uint64()
    return kind if types.is_duration(kind) else pa.int64()


_OF_PAIRS = {"delta": pa.int64(), "overlap": pa.int64()}
"""Types of what pairs have; all else is a float."""


def kinds_of(
    aggregates: Sequence[Aggregate], columns: Mapping[str, pa.DataType]
) -> list[pa.DataType]:
    """The types of what is aggregated, where columns have these types."""
    kinds = {**columns, **{name: _OF_PAIRS.get(name, pa.float64()) for name in PAIR_VALUES}}
    return [pa.int64() if each.column is None else kinds[each.column] for each in aggregates]


def aggregate_fields(
    aggregates: Sequence[Aggregate], columns: Mapping[str, pa.DataType]
) -> list[pa.Field]:
    """The columns of the output, of columns of these types."""
    named = zip(aggregates, kinds_of(aggregates, columns), strict=True)
    return [
        pa.field(each.name, output_type(each, kind), nullable=each.function != "count")
        for each, kind in named
    ]


def check_aggregates(
    aggregates: Sequence[Aggregate], side: str, columns: Mapping[str, pa.DataType]
) -> None:
    """Refuse names that pairs and columns of a side both have, and types that have no meaning."""
    for each in aggregates:
        if each.is_of_pairs and each.column in columns:
            raise SchemaError(
                f"{each.column!r} is what a pair has, and a column of {side} (found both in"
                f" {each.said}). Rename the column."
            )
        if each.column is not None and not each.is_of_pairs:
            check_name(side, each.column, list(columns))
    for each, kind in zip(aggregates, kinds_of(aggregates, columns), strict=True):
        check_type(each, kind)
