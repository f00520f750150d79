"""Rows without ids: their numbers are these."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa

from coincide.engine.events.keys import Names, names_of

ID = "id"
"""The output column of a side without named columns; it may be missing, where rows have numbers."""
_NUMBERS = pa.field(ID, pa.int64())


def are_default(columns: Names) -> bool:
    """Whether output columns are those of a side for which nothing is said."""
    return names_of(columns) == [ID]


def with_row_numbers(table: pa.Table, needed: Collection[str], first: int = 0) -> pa.Table:
    """A table with ids: where it has none, the numbers of its rows, from `first`."""
    # One that lacks other columns, too, is refused later, by those that it has.
    own = table.column_names
    if ID in own or not {*needed} - {ID} <= {*own}:
        return table
    return table.append_column(_NUMBERS, pa.array(np.arange(first, first + table.num_rows)))


def with_number(schema: pa.Schema) -> pa.Schema:
    """The schema of such a table."""
    return schema if ID in schema.names else schema.append(_NUMBERS)
