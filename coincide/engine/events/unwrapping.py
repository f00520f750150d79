"""Counters that wrap: times that begin again at 0 become times that go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.frames import arrow_table, own_names
from coincide.engine.events.schemas import column_of, one_array
from coincide.engine.events.time_columns import time_names
from coincide.model.errors import ConditionError, DataError, SchemaError, argument, brief
from coincide.model.sides import SIDES
from coincide.model.units import TIME_LIMIT

Times = str | tuple[str, str]
"""The column of the times of a side, or those of their ends."""
_INTERVALS = ("min_time", "max_time")


@overload
def unwrapped(
    left: Any, right: None = None, *, modulus: int, left_time: Times = ..., in_order: bool = False
) -> pa.Table: ...


@overload
def unwrapped(
    left: Any,
    right: Any,
    *,
    modulus: int,
    left_time: Times = ...,
    right_time: Times | None = None,
    in_order: bool = False,
) -> tuple[pa.Table, pa.Table]: ...


def unwrapped(
    left: Any,
    right: Any = None,
    *,
    modulus: int,
    left_time: Times = _INTERVALS,
    right_time: Times | None = None,
    in_order: bool = False,
) -> pa.Table | tuple[pa.Table, pa.Table]:
    """Make times that go on of a counter that wraps, such as one of 32 bits, in the order of rows.

    From each row to the next one, time goes the shorter way round: on, or a little back. A step of more
    than a quarter of the modulus either way is refused, as it may be the other one. A pause of a whole
    modulus or more leaves no trace: cut the tables there. Both sides have one counter, and their first
    rows are less than a quarter of the modulus apart.

    Parameters
    ----------
    left, right : pa.Table, whatever offers Arrow's C stream, dict of arrays, list of dicts, or path
        Events in the order in which they were counted. `right` may be left out.
    modulus : int
        What the counter begins again at, in the unit of the column: ``2**32``.
    left_time, right_time : str or (str, str)
        The column of times: whole numbers from 0 to below `modulus`.
        With two columns, the max is at most a quarter of the modulus after the min. Default of
        `right_time`: `left_time`.
    in_order : bool
        Whether rows of a side never go back. Steps may then be as long as the modulus.

    Returns
    -------
    pa.Table, or two of them
        The tables, with these columns as int64. A row keeps its place, and null stays null.

    Raises
    ------
    ConditionError
        If the modulus is no whole number of at least 4.
    SchemaError
        If a column is missing or holds no whole numbers, or a table is a DataFrame of Spark, whose rows
        have no order.
    DataError
        If a value is not below the modulus, or a step is ambiguous.
    """
    sides = (left,) if right is None else (left, right)
    counter = Counter(checked_modulus(modulus), in_order)
    asked = (left_time, left_time if right_time is None else right_time)
    names = [time_names(f"{side}_time", given) for side, given in zip(SIDES, asked, strict=True)]
    tables = [
        _table(side, given, times) for side, given, times in zip(SIDES, sides, names, strict=False)
    ]
    found = counter.unwrapped(tables, names)
    return found[0] if right is None else (found[0], found[1])


def checked_modulus(given: Any) -> int:
    """What a counter may begin again at."""
    try:
        modulus = 0 if isinstance(given, bool) else index(given)
    except TypeError:
        modulus = 0
    if not 4 <= modulus < TIME_LIMIT:
        raise ConditionError(
            f"{argument('modulus')} must be a whole number from 4 to below 2^61 (found"
            f" {brief(given)}). Use {argument('modulus', 2**32)} for a counter of 32 bits."
        )
    return modulus


def _table(side: str, given: Any, times: Sequence[str]) -> pa.Table:
    if hasattr(given, "sparkSession"):
        raise SchemaError(
            f"{side} is a DataFrame of Spark, whose rows have no order (found"
            f" {type(given).__name__}). Unwrap its times where the rows are written, or collect it"
            " in their order with toArrow()."
        )
    return arrow_table(side, given, [*own_names(given, side), *times])


@dataclass(frozen=True)
class Counter:
    """What wraps at `modulus`; `in_order` says that no row is before the one above it."""

    modulus: int
    in_order: bool = False

    def unwrapped(
        self, tables: Sequence[pa.Table], times: Sequence[tuple[str, str]]
    ) -> list[pa.Table]:
        """The tables, on one line of time that begins with the first row of the first one."""
        found, begin = [], None
        for side, table, (low, high) in zip(SIDES, tables, times, strict=False):
            values, null = self._values(table, side, low)
            rows = np.flatnonzero(~null)
            if rows.size and begin is None:
                begin = int(values[rows[0]])
            ticks = self._line(side, low, values, rows, begin or 0)
            table = _with(table, low, ticks, null)
            if high != low:
                table = self._with_ends(table, side, (low, high), values, ticks, null)
            found.append(table)
        return found

    def _values(self, table: pa.Table, side: str, name: str) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of a column, int64, 0 for null; and which are null."""
        column = one_array(column_of(table, side, name))
        if not pa.types.is_integer(column.type):
            raise SchemaError(
                f"{side}.{name} must hold whole numbers, as it is a counter (found {column.type})."
                " Cast it to int64."
            )
        null = pc.is_null(column).to_numpy(zero_copy_only=False)
        numbers = column.fill_null(0).to_numpy(zero_copy_only=False)
        wrong = (numbers < 0) | (numbers >= self.modulus)
        if wrong.any():
            row = int(wrong.argmax())
            raise DataError(
                f"{side}.{name} must lie from 0 to below {self.modulus:,} (found {numbers[row]} in"
                f" row {row}). Give the modulus of the counter, or fix the row."
            )
        return numbers.astype(np.int64), null

    def _line(
        self, side: str, name: str, values: np.ndarray, rows: np.ndarray, begin: int
    ) -> np.ndarray:
        """Ticks from row to row, of rows that have a time; the first one is near `begin`."""
        ticks = np.zeros(values.size, np.int64)
        if not rows.size:
            return ticks
        first, steps = int(values[rows[0]]), np.diff(values[rows]) % self.modulus
        self._check(
            side, name, np.array([(first - begin) % self.modulus]), rows[:1], "the first row"
        )
        if not self.in_order:
            self._check(side, name, steps, rows[1:], "the row above")
            steps = self._shorter(steps)
        start = begin + int(self._shorter(np.array([(first - begin) % self.modulus]))[0])
        if abs(start) + float(np.abs(steps).astype(np.float64).sum()) >= TIME_LIMIT:
            raise DataError(
                f"{side}.{name} goes beyond 2^61 when it is unwrapped. Cut the table into parts."
            )
        ticks[rows] = start + np.concatenate([[0], np.cumsum(steps)])
        return ticks

    def _shorter(self, steps: np.ndarray) -> np.ndarray:
        """Steps round the counter the shorter way: on, or back."""
        return np.where(steps > self.modulus // 2, steps - self.modulus, steps)

    def _check(self, side: str, name: str, steps: np.ndarray, rows: np.ndarray, other: str) -> None:
        most = self.modulus // 4
        unclear = (steps > most) & (steps < self.modulus - most)
        if unclear.any():
            k = int(unclear.argmax())
            on, back = int(steps[k]), self.modulus - int(steps[k])
            cure = (
                "Cut the tables so that both begin together."
                if other == "the first row"
                else f"Cut the table there, or use {argument('in_order', True)} if no row goes back."
            )
            raise DataError(
                f"{side}.{name} is ambiguous: row {rows[k]} is {on:,} after {other}, or {back:,}"
                f" before it, and both are more than a quarter of the modulus. {cure}"
            )

    def _with_ends(
        self,
        table: pa.Table,
        side: str,
        times: tuple[str, str],
        values: np.ndarray,
        ticks: np.ndarray,
        null: np.ndarray,
    ) -> pa.Table:
        low, high = times
        ends, none = self._values(table, side, high)
        lengths = np.where(null | none, 0, (ends - values) % self.modulus)
        far = lengths > self.modulus // 4
        if far.any():
            row = int(far.argmax())
            raise DataError(
                f"{side}.{high} must be at most a quarter of the modulus after {low} (found"
                f" {int(lengths[row]):,} in row {row}). Swap the two, or fix the row."
            )
        return _with(table, high, ticks + lengths, null | none)


def _with(table: pa.Table, name: str, ticks: np.ndarray, null: np.ndarray) -> pa.Table:
    column = pa.array(ticks, pa.int64(), mask=null)
    return table.set_column(table.column_names.index(name), name, column)
