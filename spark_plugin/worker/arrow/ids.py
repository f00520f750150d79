"""Ids of one column as numbers, which stay the same from batch to batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_plugin.worker.arrow.gather import Gather
from spark_plugin.worker.arrow.wide_columns import of_one_type, one_array, stored


@dataclass(frozen=True, eq=False)
class Ids:
    """Distinct ids of one column, numbered in the order in which they first came.

    Parameters
    ----------
    kind : pa.DataType
        What to hand out.
    known : pa.Array
        The ids as they are stored, without nulls; wide where 32-bit offsets would not do.
    """

    kind: pa.DataType
    known: pa.Array

    @classmethod
    def none(cls, kind: pa.DataType) -> Ids:
        """No ids of a type."""
        return cls(kind, pa.array([], _storage_type(kind)))

    def numbered(self, values: pa.Array) -> tuple[Ids, np.ndarray]:
        """These ids and those of more rows, with the numbers of the rows: int64 array, shape (n,)."""
        encoded = pc.dictionary_encode(stored(values))
        rows = encoded.indices.to_numpy().astype(np.int64)
        if not len(self.known):
            return Ids(self.kind, encoded.dictionary), rows
        known, distinct = of_one_type([self.known, encoded.dictionary]).chunks
        found = pc.index_in(distinct, value_set=known)
        if not found.null_count:
            return self, found.to_numpy().astype(np.int64)[rows]
        is_new = found.is_null()
        numbers = found.fill_null(0).to_numpy().astype(np.int64)
        numbers[is_new.to_numpy(zero_copy_only=False)] = len(known) + np.arange(found.null_count)
        more = one_array(of_one_type([known, distinct.filter(is_new)]))
        return Ids(self.kind, more), numbers[rows]

    def of(self, numbers: np.ndarray) -> pa.Array:
        """The ids of numbers."""
        found = Gather(self.known, _storage_type(self.kind))(numbers)
        is_extension = isinstance(self.kind, pa.BaseExtensionType)
        return self.kind.wrap_array(found) if is_extension else found


def _storage_type(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
