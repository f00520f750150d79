"""Intervals that are pushed: checked against the declared lengths. Their shapes are their lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from coincide.errors import SchemaError
from coincide.sides import SIDES
from coincide.streams.arrays import Column
from coincide.streams.checks import OUT_OF_RANGE, REVERSED, TOO_LONG, first_interval_trouble
from coincide.streams.intake import Batch, OneKindIntake, refuse_groups, where_tables_go
from coincide.streams.results import LateEvents
from coincide.timestamps import IntervalEvents
from coincide.units import TIME_LIMIT


class IntervalIntake(OneKindIntake):
    """The `Intake` of `IntervalEvents` and of pairs of arrays (min_time, max_time).

    Parameters
    ----------
    lengths : int64 array, shape (2, 2)
        Shortest and longest of the left and the right side, ticks.
    rule : NamedTuple, optional
        As `OneKindIntake`.
    """

    COLUMNS = (Column("min_time"), Column("max_time"))

    def __init__(self, lengths: np.ndarray, rule: Any = None) -> None:
        super().__init__(rule)
        self._lengths = lengths

    def late(  # noqa: D102
        self, side: int, numbers: np.ndarray, max_time: np.ndarray, shapes: np.ndarray
    ) -> LateEvents:
        return LateEvents(numbers, max_time - shapes, max_time)

    def _given(self, events: Any, sides: tuple[int, ...]) -> tuple[npt.ArrayLike, npt.ArrayLike]:
        if isinstance(events, IntervalEvents):
            refuse_groups(events.group)
            return events.min_time, events.max_time
        if isinstance(events, tuple) and len(events) == 2:
            return events
        raise SchemaError(
            "events must be IntervalEvents or a pair of arrays (min_time, max_time); found"
            f" {type(events).__name__}{where_tables_go(events)}"
        )

    def _first_trouble(
        self, marks: np.ndarray, first: np.ndarray, second: np.ndarray
    ) -> tuple[int, int]:
        return first_interval_trouble(marks, first, second, self._lengths, TIME_LIMIT)

    def _batch(
        self, marks: np.ndarray, first: np.ndarray, second: np.ndarray, arrival: np.ndarray
    ) -> Batch:
        return Batch(marks, second, second - first, arrival)

    def _described(self, first: int, second: int) -> str:
        return f"[{first}, {second}]"

    def _complaint(self, trouble: int, side: int, first: int, second: int) -> str:
        name, length = SIDES[side], second - first
        shortest, longest = self._lengths[side].tolist()
        if trouble == OUT_OF_RANGE:
            return "reaches 2^61 ticks; use a coarser unit"
        if trouble == REVERSED:
            return "has min_time above max_time; swap the two or leave the event out"
        if trouble == TOO_LONG:
            return (
                f"is {length} ticks long, but {name}_longest is {longest};"
                f" declare a larger {name}_longest or leave the event out"
            )
        return (
            f"is {length} ticks long, but {name}_shortest is {shortest};"
            f" declare a smaller {name}_shortest or leave the event out"
        )
