"""The name of the file that a row is from, as a column of it, where files hold no `FILENAME`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa

FILENAME = "filename"
"""Without folders: so it is the same by every way, and the same of both sides."""


def lacks_name(asked: Collection[str], own: Collection[str]) -> bool:
    """Whether `FILENAME` is asked for and is no column of the files."""
    return FILENAME in asked and FILENAME not in own


def with_name(schema: pa.Schema) -> pa.Schema:
    """A schema with `FILENAME` behind its columns."""
    return schema.append(pa.field(FILENAME, pa.string()))


def without_name(schema: pa.Schema) -> pa.Schema:
    """A schema without `FILENAME`."""
    return pa.schema([field for field in schema if field.name != FILENAME])


def named(table: pa.Table, path: str, names: Sequence[str]) -> pa.Table:
    """Columns of rows of a file, the name of the file among them."""
    name = pa.repeat(pa.scalar(path.rpartition("/")[2]), table.num_rows)
    return pa.table([name if each == FILENAME else table[each] for each in names], list(names))
