"""Columns that are called otherwise here than in the files that hold them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa


@dataclass(frozen=True)
class ColumnNames:
    """What files call columns.

    Parameters
    ----------
    stored : dict of str to str
        Of all columns that are needed, by what they are called here; empty: as in the files.
    """

    stored: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, stored: Mapping[str, str]) -> ColumnNames:
        """The names, none where all columns are called as in the files."""
        return cls() if all(name == of_file for name, of_file in stored.items()) else cls(stored)

    def in_files(self, names: Sequence[str]) -> list[str]:
        """What files call columns: each once."""
        return list(dict.fromkeys(self.stored.get(name, name) for name in names))

    def here(self, in_files: Collection[str]) -> frozenset[str]:
        """What columns of files are called here."""
        if not self.stored:
            return frozenset(in_files)
        return frozenset(name for name, of_file in self.stored.items() if of_file in in_files)

    def schema(self, of_file: pa.Schema) -> pa.Schema:
        """The schema of a file, by the names here."""
        if not self.stored:
            return of_file
        return pa.schema(
            f.with_name(name)
            for name, stored in self.stored.items()
            for f in of_file
            if f.name == stored
        )

    def table(self, of_file: pa.Table, names: Sequence[str]) -> pa.Table:
        """Columns that were read by the names of `in_files`, by those here."""
        if not self.stored:
            return of_file
        return pa.table([of_file.column(self.stored[name]) for name in names], names=list(names))


AS_IN_FILES = ColumnNames(), ColumnNames()
"""Of two sides whose columns are called as in their files."""
