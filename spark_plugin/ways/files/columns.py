"""Which columns a join needs of its files, and whether every file has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from coincide.errors import SchemaError
from spark_plugin.worker.arrow.tables import plain_type

_TEXTS = {pa.string(), pa.large_string()}


class MissingColumn(SchemaError):
    """A file lacks a column that others of its side have.

    Readers would fill it with nulls, and such rows match nothing: no way may take it so.
    """


def with_like_keys(schemas: Sequence[pa.Schema], by: Sequence[str]) -> list[pa.Schema]:
    """Both schemas, text keys of one type: writers differ in how they store strings, not in what.

    Parameters
    ----------
    schemas : (pa.Schema, pa.Schema)
    by : sequence of str
        Keys, which may be missing.
    """
    found = list(schemas)
    for name in by:
        if any(schema.names.count(name) != 1 for schema in found):
            continue
        if {plain_type(schema.field(name).type) for schema in found} == _TEXTS:
            found = [
                schema.set(schema.get_field_index(name), pa.field(name, pa.large_string()))
                for schema in found
            ]
    return found


def check_present(
    side: str, schemas: Iterable[tuple[str, pa.Schema]], names: Sequence[str]
) -> None:
    """Refuse files that lack a column which others have; one that none has is not looked for.

    Parameters
    ----------
    side : str
    schemas : iterable of (str, pa.Schema)
        Path and schema of each file.
    names : sequence of str

    Raises
    ------
    MissingColumn
        That names the file.
    """
    found = [(path, set(schema.names)) for path, schema in schemas]
    for name in names:
        lacking = [path for path, own in found if name not in own]
        if lacking and len(lacking) < len(found):
            raise MissingColumn(
                f"{side}: {lacking[0]} has no column {name!r}, which other files have; write it with"
                " this column, of nulls if need be, or leave it out"
            )
