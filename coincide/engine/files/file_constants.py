"""Columns that have one value in each file: files hold them not, or it is not what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa


@dataclass(frozen=True, eq=False)
class FileConstants:
    """What the names of folders tell of the rows of their files, as in ``day=2026-01-01/a.parquet``.

    `values` has a row for all files of a folder, and `rows` says by the path of a file which.
    """

    values: pa.Table = field(default_factory=lambda: pa.table({}))
    rows: Mapping[str, int] = field(default_factory=dict)

    def __contains__(self, name: object) -> bool:
        return name in self.values.column_names

    def __len__(self) -> int:
        return int(self.values.num_columns)

    def schema(self, of_file: pa.Schema) -> pa.Schema:
        """The schema of a file with these columns: they take the place of those of their names."""
        if not len(self):
            return of_file
        return pa.schema([*(f for f in of_file if f.name not in self), *self.values.schema])

    def column(self, name: str, path: str, rows: int) -> pa.Array:
        """A column of some rows of a file."""
        return pa.repeat(self.values.column(name)[self.rows[path]], rows)

    def appended(self, table: pa.Table, paths: str) -> pa.Table:
        """Rows of several files, with these columns; a column has the path of each row's file."""
        if not len(self):
            return table
        found = table.column(paths).combine_chunks().dictionary_encode()
        row = pa.array([self.rows[path] for path in found.dictionary.to_pylist()], pa.int64())
        row = row.take(found.indices)
        for each in self.values.schema:
            table = table.append_column(each, self.values.column(each.name).take(row))
        return table


NO_CONSTANTS = FileConstants()
