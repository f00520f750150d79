"""The tables that are pushed to a monitor: all of the types of the first one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import pyarrow as pa

from coincide.engine.events.frames import TABLES, Numbers, arrow_table, offers_arrow
from coincide.engine.events.row_numbers import ID, with_row_numbers
from coincide.engine.events.schemas import other_types, with_first_types
from coincide.model.errors import ConditionError, SchemaError
from coincide.model.options import Invalid

C = TypeVar("C")
"""What columns mean to an operator."""


class Pushes(Generic[C]):
    """What the columns of all tables mean, once the first one was taken. It pickles.

    `names` are the columns that are needed, `numbers` those that CSV may write as numbers. `invalid` is as
    `CorrelateOptions.invalid`, of lines of CSV, too. `numbered`: rows have their numbers as ids where
    they have none.
    """

    def __init__(
        self,
        side: str,
        names: Sequence[str],
        numbers: Numbers,
        columns_of: Callable[[pa.Schema], C],
        invalid: Invalid,
        *,
        numbered: bool = False,
    ) -> None:
        self.columns: C | None = None
        self._drops = invalid == "drop"
        self._side, self._names, self._numbers = side, list(dict.fromkeys(names)), numbers
        self._columns_of = columns_of
        self._first: pa.Schema | None = None
        self._may_lack, self._rows = ID if numbered else None, 0

    def read(self, given: Any) -> tuple[pa.Table, C]:
        """The table of what was pushed, and what its columns mean; `keep` them once they are taken."""
        if not offers_arrow(given):
            raise SchemaError(
                f"{self._side} must be {TABLES} (found {type(given).__name__}). Use .collect() of"
                " a Polars LazyFrame, or .toArrow() of a Spark DataFrame."
            )
        table = arrow_table(
            self._side, given, self._names, self._numbers, self._first, drops=self._drops,
            may_lack=self._may_lack,
        )  # fmt: skip
        if self._may_lack is not None:
            table = with_row_numbers(table, self._names, self._rows)
        table = with_first_types(table, self._first)
        if self.columns is not None and table.schema == self._first:
            return table, self.columns
        columns = self._columns_of(table.schema)
        if self.columns not in (None, columns):
            raise SchemaError(other_types(self._side, self._first, table.schema, self._fits))
        return table, columns

    def keep(self, table: pa.Table, columns: C) -> None:
        """A table was taken; the types of the first one hold for all."""
        self._rows += table.num_rows
        if self.columns is None:
            self.columns = columns
            self._first = pa.schema([table.schema.field(name) for name in self._names])

    def known(self, method: str) -> C:
        """What columns mean, for a method that must know it."""
        if self.columns is None:
            raise ConditionError(
                f"{method}() does not know the columns yet. Push {self._side} first, or a table"
                " without rows."
            )
        return self.columns

    def _fits(self, schema: pa.Schema) -> bool:
        return self._columns_of(schema) == self.columns
