"""Which columns a join needs of its files, and whether every file has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from coincide.errors import SchemaError


class MissingColumn(SchemaError):
    """A file lacks a column that others of its side have.

    Readers would fill it with nulls, and such rows match nothing: no way may take it so.
    """


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
