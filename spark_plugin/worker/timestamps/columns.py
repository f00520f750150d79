"""What the columns of a side's timestamps are to a join, whatever their model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from spark_plugin.worker.arrow.ticks import Ticks
from spark_plugin.worker.arrow.time_columns import TimeScale
from spark_plugin.worker.timestamps.models import SideModel

Faults = Iterator[tuple[str, np.ndarray]]


class ReadTimes(Protocol):
    """Timestamps of the rows of a table."""

    @property
    def are_valid(self) -> bool:
        """Whether every row is valid and no time is null: mostly so, and then no masks are needed."""

    @property
    def null(self) -> np.ndarray:
        """Rows without a time, which match nothing: bool array, shape (n,)."""

    @property
    def excused(self) -> np.ndarray:
        """Rows of which no fault counts, for want of a time: bool array, shape (n,)."""

    def faults(self) -> Faults:
        """Reasons of `INVALID_REASONS`, in their order, and for each a bool array, shape (n,).

        Rows that are `excused` may be among them.
        """

    @property
    def max_time(self) -> np.ndarray:
        """Ticks, int64 array, shape (n,); of rows that are not valid anything."""

    @property
    def shapes(self) -> np.ndarray:
        """As `max_time`."""

    def rounded(self, valid: np.ndarray | None) -> float:
        """The largest change of a time in the valid rows, or in all."""


class TimestampColumns(Protocol):
    """The columns that make the timestamps of a side, and how."""

    @property
    def scales(self) -> tuple[TimeScale, TimeScale]:
        """How the columns of the earliest and of the latest time become ticks."""

    @property
    def names(self) -> tuple[str, ...]:
        """All columns."""

    @property
    def model(self) -> SideModel:
        """What shapes of events mean."""

    @property
    def declared(self) -> tuple[int, int] | None:
        """Smallest and largest shape, where that is known without a look at the rows."""

    @property
    def longest(self) -> int | None:
        """Longest length of a valid event that has to be looked for in its row, ticks; None: none."""

    @property
    def beyond(self) -> tuple[int, int] | None:
        """What to add to the earliest and to the latest time of rows to bound their events, ticks.

        None where the times alone do not bound them.
        """

    def blamed(self, reason: str) -> tuple[str, ...]:
        """The columns that hold what makes a row invalid for a reason."""

    def read(self, table: pa.Table) -> ReadTimes:
        """The timestamps of a table's rows.

        Raises
        ------
        SchemaError
            If a column is missing.
        """


def most_rounded(columns: Sequence[Ticks], valid: np.ndarray | None) -> float:
    """The largest change of a time in the valid rows, or in all."""
    changes = [column.rounding for column in columns if column.rounding is not None]
    return max(
        (float((each if valid is None else each[valid]).max(initial=0.0)) for each in changes),
        default=0.0,
    )
