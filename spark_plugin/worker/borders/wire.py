"""Readings in the columns of the wire: each stream's in order of time, invalid ones told by their times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from coincide.errors import DataError
from coincide.units import TIME_LIMIT
from spark_plugin.worker.arrow.tables import example_text
from spark_plugin.worker.arrow.wide_columns import one_array
from spark_plugin.worker.borders.arguments import READINGS
from spark_plugin.worker.borders.numbers import words_of_far
from spark_plugin.worker.borders.readings import REASONS, ReadingColumns, words_of_invalid

STREAM, TIME, ROUNDED, EXAMPLE = "stream", "time", "rounded", "example"
"""Names of columns: int64 or a key, ticks, the change of a time by rounding it if it was a float, and where
an invalid reading is refused, what it was in words."""

FIRST_CODE = TIME_LIMIT
"""In place of the time of an invalid reading stands its reason, counted from here: those of `REASONS`, and
after them, for each value column, an integer that is none of float64."""


def value_names(dimensions: int) -> list[str]:
    """Names of the columns of values."""
    return [f"value{k}" for k in range(dimensions)]


@dataclass(frozen=True, eq=False)
class WireReadings:
    """Valid readings of a chunk, n of them.

    Parameters
    ----------
    streams : pa.Array
    times : int64 array, shape (n,)
    values : float64 array, shape (n, d)
    """

    streams: pa.Array
    times: np.ndarray
    values: np.ndarray


class WireReader:
    """Reads the chunks of one partition, and refuses invalid readings or counts them.

    All that are to be refused come first, and in one partition.

    Parameters
    ----------
    columns : ReadingColumns
    """

    def __init__(self, columns: ReadingColumns) -> None:
        self._columns = columns
        self._names = value_names(columns.arguments.dimensions)
        self._counts = np.zeros(len(REASONS) + len(self._names), np.int64)
        self._examples: dict[int, str] = {}
        self.rows, self.rounded = 0, 0.0

    @property
    def dropped(self) -> dict[str, int]:
        """Readings left out so far, by reason, in the order of `REASONS`."""
        return dict(zip(REASONS, self._counts.tolist(), strict=False))

    def read(self, table: pa.Table) -> WireReadings:
        """The valid readings of a chunk.

        Raises
        ------
        DataError
            If readings before them are to be refused.
        """
        self.rows += table.num_rows
        times = one_array(table.column(TIME)).to_numpy()
        wrong = times >= FIRST_CODE
        if wrong.any():
            self._count(table, times[wrong] - FIRST_CODE, np.flatnonzero(wrong))
            table, times = table.filter(pa.array(~wrong)), times[~wrong]
        if times.size:
            self.refuse()
            if ROUNDED in table.column_names:
                change = one_array(table.column(ROUNDED)).to_numpy().max()
                self.rounded = max(self.rounded, float(change))
        values = np.empty((times.size, len(self._names)))
        for k, name in enumerate(self._names):
            values[:, k] = one_array(table.column(name)).to_numpy()
        return WireReadings(one_array(table.column(STREAM)), times, values)

    def refuse(self) -> None:
        """Raise if some that were read are to be refused: to be called at the end, too.

        Raises
        ------
        DataError
            As `coincide.border_crossing_tables`.
        """
        arguments = self._columns.arguments
        for k, name in enumerate(arguments.values, len(REASONS)):
            if self._counts[k]:
                words = int(self._counts[k]), self._examples[k]
                raise DataError(words_of_far(READINGS, name, *words))
        if self._counts.any() and arguments.options.invalid == "raise":
            k = int(np.argmax(self._counts > 0))
            words = int(self._counts[k]), self._examples[k]
            raise DataError(words_of_invalid(self._columns, list(REASONS)[k], *words))

    def _count(self, table: pa.Table, codes: np.ndarray, rows: np.ndarray) -> None:
        self._counts += np.bincount(codes, minlength=self._counts.size)
        if EXAMPLE in table.column_names:
            for code, first in zip(*np.unique(codes, return_index=True), strict=True):
                words = table.column(EXAMPLE)[int(rows[first])].as_py()
                self._examples.setdefault(int(code), example_text(words))
