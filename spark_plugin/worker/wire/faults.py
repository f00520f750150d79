"""Invalid rows on the wire: told by a number in one column, and refused or counted by the task."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import pyarrow as pa

from spark_plugin.worker.arrow.tables import example_text
from spark_plugin.worker.arrow.wide_columns import one_array

ROUNDED, EXAMPLE = "rounded", "example"
"""Names of columns: the change of a row's times by rounding them, if they were floats; and where an invalid
row is refused, what it was in words."""


class FaultyRows(ABC):
    """Takes the invalid rows out of the chunks of one partition, and knows how many they are.

    All that are to be refused come first, and in one partition.

    Parameters
    ----------
    column : str
        Of int64, in which the codes of invalid rows are.
    first : int
        In place of the value of an invalid row stands its code, counted from here.

    Attributes
    ----------
    rows : int
        All that came.
    rounded : float
        The largest change of a time.
    counts : dict of int to int
        Invalid rows by code.
    examples : dict of int to str
        One of each, in words.
    """

    def __init__(self, column: str, first: int) -> None:
        self._column, self._first = column, first
        self.rows, self.rounded = 0, 0.0
        self.counts: dict[int, int] = {}
        self.examples: dict[int, str] = {}

    @abstractmethod
    def refuse(self) -> None:
        """Raise if some that were read are to be refused: to be called at the end, too."""

    def valid(self, table: pa.Table) -> tuple[pa.Table, np.ndarray]:
        """The valid rows of a chunk, and what their column of codes holds.

        Raises
        ------
        DataError
            If rows up to here are to be refused.
        """
        self.rows += table.num_rows
        values = one_array(table.column(self._column)).to_numpy()
        wrong = values >= self._first
        if wrong.any():
            self._count(table, values[wrong] - self._first, np.flatnonzero(wrong))
            table, values = table.filter(pa.array(~wrong)), values[~wrong]
        if values.size:
            self.refuse()
            if ROUNDED in table.column_names:
                change = one_array(table.column(ROUNDED)).to_numpy().max()
                self.rounded = max(self.rounded, float(change))
        return table, values

    def _count(self, table: pa.Table, codes: np.ndarray, rows: np.ndarray) -> None:
        found = np.unique(codes, return_index=True, return_counts=True)
        for code, first, count in zip(*map(np.ndarray.tolist, found), strict=True):
            self.counts[code] = self.counts.get(code, 0) + count
            if EXAMPLE in table.column_names:
                words = table.column(EXAMPLE)[int(rows[first])].as_py()
                if words is not None:  # told of rows that are refused, and not of those left out
                    self.examples.setdefault(code, example_text(words))
