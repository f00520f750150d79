"""Streams of which one side has intervals, and the other one templates: each side's own checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from coincide.errors import SchemaError
from coincide.sides import LEFT, RIGHT, SIDES
from coincide.streams.arrays import ARRIVALS, check_size, integers, marks_of
from coincide.streams.intake import NO_ARRIVAL, Batch
from coincide.streams.interval_intake import IntervalIntake
from coincide.streams.length_numbers import LengthNumbers
from coincide.streams.results import Late
from coincide.streams.template_intake import TemplateIntake


class MixedIntake:
    """The `Intake` of a pair of kinds. The shape of an interval is the number of its length.

    Parameters
    ----------
    interval_side : int
    intervals : IntervalIntake
        Knows the declared lengths.
    templates : TemplateIntake
    numbers : LengthNumbers
    """

    def __init__(
        self,
        interval_side: int,
        intervals: IntervalIntake,
        templates: TemplateIntake,
        numbers: LengthNumbers,
    ) -> None:
        self._interval_side = interval_side
        self._kinds = (intervals, templates) if interval_side == LEFT else (templates, intervals)
        self._numbers = numbers

    @property
    def rule(self) -> Any:
        """As `Intake`, like all that follow. Another one when new lengths have come."""
        return self._numbers.rule

    def one_sided(  # noqa: D102
        self, side: int, events: Any, arrival: npt.ArrayLike | None, clock: np.ndarray
    ) -> Batch:
        return self._numbered(side, self._kinds[side].one_sided(side, events, arrival, clock))

    def mixed(
        self, sides: npt.ArrayLike, events: Any, arrival: npt.ArrayLike | None, clock: np.ndarray
    ) -> Batch:
        """Of a pair of the left side's events and the right side's, which `sides` interleaves."""
        marks = marks_of(sides)
        if not isinstance(events, tuple) or len(events) != 2:
            raise SchemaError(
                "where one side has intervals and the other one templates, a mixed push takes a pair"
                " (left events, right events), each as push takes them, and sides says in which order"
                f" they came; found {type(events).__name__}"
            )
        instants = NO_ARRIVAL
        if arrival is not None:
            instants = integers(ARRIVALS, arrival)
            check_size(ARRIVALS.name, instants, "sides", marks.size)
        rows = [np.flatnonzero(marks == side) for side in (LEFT, RIGHT)]
        parts = []
        for side in (LEFT, RIGHT):
            when = None if arrival is None else instants[rows[side]]
            part = self._kinds[side].one_sided(side, events[side], when, clock)
            if part.sides.size != rows[side].size:
                raise SchemaError(
                    f"sides has {rows[side].size} entries of {side} ({SIDES[side]}), but there are"
                    f" {part.sides.size} events of that side; give one for each event"
                )
            parts.append(part)
        # Lengths are numbered last, when nothing else can be wrong.
        parts = [self._numbered(side, part) for side, part in enumerate(parts)]
        max_time, shapes = np.empty(marks.size, np.int64), np.empty(marks.size, np.int64)
        for at, part in zip(rows, parts, strict=True):
            max_time[at], shapes[at] = part.max_time, part.shapes
        return Batch(marks, max_time, shapes, instants)

    def late(  # noqa: D102
        self, side: int, numbers: np.ndarray, max_time: np.ndarray, shapes: np.ndarray
    ) -> Late:
        given = self._numbers.lengths[shapes] if side == self._interval_side else shapes
        return self._kinds[side].late(side, numbers, max_time, given)

    def _numbered(self, side: int, batch: Batch) -> Batch:
        if side != self._interval_side:
            return batch
        return batch._replace(shapes=self._numbers.numbered(batch.shapes))
