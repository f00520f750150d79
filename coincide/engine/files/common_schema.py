"""What files of one side must have in common: readers judge all by the first, and fill up with nulls."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import pyarrow as pa

from coincide.engine.events.schemas import plain_type
from coincide.model.errors import SchemaError

FileSchemas = Iterable[tuple[str, pa.Schema]]
"""Path and schema of each file."""


class MissingColumn(SchemaError):
    """A file lacks a column that others of its side have.

    Readers would fill it with nulls, and such rows match nothing: no way may take it so.
    """


def check_files(
    side: str, schemas: FileSchemas, names: Collection[str], times: Collection[str]
) -> None:
    """Refuse files of which some lack a needed column, or have one that means something else."""
    found = list(schemas)
    check_present(side, found, names)
    check_alike(side, found, names, _meaning)
    # As a wider float, a narrow one is no longer the decimal that it is read as.
    check_alike(side, found, times, _float)


def check_present(side: str, schemas: FileSchemas, names: Collection[str]) -> None:
    """Refuse files that lack a column which others have; one that none has is not looked for."""
    found = [(path, set(schema.names)) for path, schema in schemas]
    for name in sorted(names):
        lacking = [path for path, own in found if name not in own]
        if lacking and len(lacking) < len(found):
            raise MissingColumn(
                f"{side}: {lacking[0]} has no column {name!r}, which other files have. Write it"
                " with this column, of nulls if need be, or remove the file."
            )


def check_alike(
    side: str,
    schemas: FileSchemas,
    names: Collection[str],
    aspect: Callable[[pa.DataType], object] = plain_type,
    advice: str = "Write the files with one type",
) -> None:
    """Refuse a column whose types in two files differ in an aspect; None: such a type does not count."""
    first: dict[str, tuple[str, pa.DataType]] = {}
    last = None
    for path, schema in schemas:
        if schema is last:
            continue
        last = schema
        for name in sorted(names, key=schema.get_field_index):
            at = schema.get_field_index(name)
            kind = pa.null() if at < 0 else plain_type(schema.field(at).type)
            if at < 0 or aspect(kind) is None:
                continue
            other, wanted = first.setdefault(name, (path, kind))
            if aspect(kind) != aspect(wanted):
                raise SchemaError(
                    f"{side}: the column {name!r} must have one type in all files (found {kind} in"
                    f" {path} and {wanted} in {other}). {advice}."
                )


def _meaning(kind: pa.DataType) -> object:
    """What values of a type mean: casts between types of one meaning change no value, or fail."""
    types = pa.types
    if types.is_null(kind) or types.is_nested(kind):
        return None
    if types.is_timestamp(kind):
        return "timestamp", kind.tz is not None
    alike = (
        ("number", (types.is_integer, types.is_floating)),
        ("text", (types.is_string, types.is_large_string)),
        ("bytes", (types.is_binary, types.is_large_binary)),
        ("date", (types.is_date,)),
        ("time", (types.is_time,)),
        ("duration", (types.is_duration,)),
        ("decimal", (types.is_decimal,)),
    )
    return next((word for word, of_kind in alike if any(is_(kind) for is_ in of_kind)), kind)


def _float(kind: pa.DataType) -> pa.DataType | None:
    return kind if pa.types.is_floating(kind) else None
