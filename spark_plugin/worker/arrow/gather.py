"""Taking rows of a column, into arrays of the type that was promised."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from coincide.errors import MemoryBudgetError
from spark_plugin.worker.arrow import row_sizes
from spark_plugin.worker.arrow.row_sizes import has_short_offsets, row_bytes


class Gather:
    """A column to take rows from; plain 64-bit integers without nulls take the NumPy way.

    Parameters
    ----------
    column : pa.Array
        It may be of the `spark_plugin.worker.arrow.wide_columns.wide_type` of what is handed out.
    kind : pa.DataType
        The type to hand out.
    """

    # `sizes`: bytes of each row, int64 array, shape (n,); None where all are small and alike.

    def __init__(self, column: pa.Array, kind: pa.DataType) -> None:
        self.column, self.kind = column, kind
        self.values: np.ndarray | None = None
        self.sizes: np.ndarray | None = None
        self._ordered: np.ndarray | None = None
        if column.null_count == 0 and _is_int64(column.type) and column.type == kind:
            self.values = column.view(pa.int64()).to_numpy()
        else:
            self.sizes = row_bytes(column)

    def __call__(self, rows: np.ndarray) -> pa.Array:
        """The rows' values."""
        if self.values is not None:
            return self.wrap(self.values[rows])
        taken = self.column.take(pa.array(rows))
        return taken if taken.type == self.kind else taken.cast(self.kind)

    def or_null(self, rows: np.ndarray) -> pa.Array:
        """The rows' values; null for what is below 0."""
        nobody = rows < 0
        if not nobody.any():
            return self(rows)
        return self.column.take(pa.array(rows, mask=nobody)).cast(self.kind)

    def list_of(self, rows: np.ndarray) -> pa.Array:
        """The rows' values, which are to be one list.

        Raises
        ------
        MemoryBudgetError
            If they take more bytes than the type to hand out can count.
        """
        if self.sizes is not None and has_short_offsets(self.kind):
            taken = int(self.sizes[rows].sum())
            if taken > row_sizes.ARRAY_BYTES:
                raise MemoryBudgetError(
                    f"the {rows.size} partners of one left event hold {taken} bytes of {self.kind} in one"
                    " column, more than a list can; use emit='pairs', or leave this column out"
                )
        return self(rows)

    def ordered(self, order: np.ndarray) -> np.ndarray:
        """All values in an order, computed once: int64 array."""
        if self._ordered is None:
            assert self.values is not None
            self._ordered = self.values[order]
        return self._ordered

    def wrap(self, values: np.ndarray) -> pa.Array:
        """An int64 array as a column of this type, without a copy."""
        return pa.array(values).view(self.column.type)


def _is_int64(kind: pa.DataType) -> bool:
    types = pa.types
    return (
        types.is_int64(kind)
        or types.is_timestamp(kind)
        or types.is_duration(kind)
        or types.is_time64(kind)
    )
