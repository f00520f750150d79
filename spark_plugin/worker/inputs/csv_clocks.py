"""Times in CSV without an offset, of clocks whose zone is known: wall-clock times, then instants."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from coincide.errors import ConditionError, DataError

_UTC = "UTC"


def clock_type(option: str, zone: str) -> pa.DataType:
    """The type of a column of wall-clock times of a zone: that of the instants which they are.

    Raises
    ------
    ConditionError
        If there is no such zone.
    """
    kind = pa.timestamp("us", zone)
    try:
        pc.assume_timezone(pa.array([0], pa.timestamp("us")), zone)
    except pa.ArrowInvalid:
        raise ConditionError(
            f"{option}: there is no zone {zone!r}; name one as in timestamp@Europe/Rome"
        ) from None
    # UTC by its own name is that of times with offsets.
    return pa.timestamp("us", "Etc/UTC") if zone == _UTC else kind


def as_shown(schema: pa.Schema) -> pa.Schema:
    """A schema to read by: wall-clock times where clocks of a zone are."""
    return pa.schema(
        [
            field.with_type(pa.timestamp(field.type.unit)) if _has_clocks(field.type) else field
            for field in schema
        ]
    )


def as_instants(table: pa.Table, schema: pa.Schema, place: Callable[[int], str]) -> pa.Table:
    """What was read by `as_shown`, as instants.

    Parameters
    ----------
    table : pa.Table
    schema : pa.Schema
        With the types of clocks.
    place : callable
        Words for where a row of the table is.

    Raises
    ------
    DataError
        If a clock showed a time twice, or never, as at the ends of summer time.
    """
    for i, field in enumerate(schema):
        if _has_clocks(field.type):
            shown = table.column(i)
            try:
                found = pc.assume_timezone(shown, field.type.tz)
            except pa.ArrowInvalid as error:
                if (row := _first_unclear(shown, field.type.tz)) < 0:
                    raise
                raise DataError(
                    f"{place(row)}, column {field.name!r}: clocks of {field.type.tz} showed"
                    f" {shown[row].as_py()} twice or never; write such times with offsets"
                ) from error
            table = table.set_column(i, field, found)
    return table


def _first_unclear(shown: pa.ChunkedArray, zone: str) -> int:
    """The first row with a time that clocks showed twice or never; -1 if there is none."""
    first, last = (
        pc.assume_timezone(shown, zone, ambiguous=way, nonexistent=way)
        for way in ("earliest", "latest")
    )
    row: int = pc.index(pc.not_equal(first, last), True).as_py()
    return row


def _has_clocks(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz not in (None, _UTC)
