"""Readings in the columns of the wire: each stream's in order of time, invalid ones told by their times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from coincide.errors import DataError
from coincide.units import TIME_LIMIT
from spark_plugin.worker.arrow.wide_columns import one_array
from spark_plugin.worker.borders.arguments import READINGS
from spark_plugin.worker.borders.numbers import words_of_far
from spark_plugin.worker.borders.readings import REASONS, ReadingColumns, words_of_invalid
from spark_plugin.worker.wire.faults import FaultyRows

STREAM, TIME = "stream", "time"
"""Names of columns: int64 or a key, and ticks. Beside them those of `faults`."""

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


class WireReader(FaultyRows):
    """Reads the chunks of one partition, and refuses invalid readings or counts them.

    Parameters
    ----------
    columns : ReadingColumns
    """

    def __init__(self, columns: ReadingColumns) -> None:
        super().__init__(TIME, FIRST_CODE)
        self._columns = columns
        self._names = value_names(columns.arguments.dimensions)

    @property
    def dropped(self) -> dict[str, int]:
        """Readings left out so far, by reason, in the order of `REASONS`."""
        return {reason: self.counts.get(code, 0) for code, reason in enumerate(REASONS)}

    def read(self, table: pa.Table) -> WireReadings:
        """The valid readings of a chunk.

        Raises
        ------
        DataError
            If readings before them are to be refused.
        """
        table, times = self.valid(table)
        values = np.empty((times.size, len(self._names)))
        for k, name in enumerate(self._names):
            values[:, k] = one_array(table.column(name)).to_numpy()
        return WireReadings(one_array(table.column(STREAM)), times, values)

    def refuse(self) -> None:
        """Raise if some that were read are to be refused.

        Raises
        ------
        DataError
            As `coincide.border_crossing_tables`.
        """
        arguments = self._columns.arguments
        for code, name in enumerate(arguments.values, len(REASONS)):
            if code in self.counts:
                words = self.counts[code], self.examples[code]
                raise DataError(words_of_far(READINGS, name, *words))
        if self.counts and arguments.options.invalid == "raise":
            code = min(self.counts)
            words = self.counts[code], self.examples[code]
            raise DataError(words_of_invalid(self._columns, list(REASONS)[code], *words))
