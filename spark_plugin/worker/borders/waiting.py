"""Readings that wait until no earlier one can come, so that they are taken in order of time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spark_plugin.worker.arrow.wide_columns import of_one_type, one_array
from spark_plugin.worker.borders.readings import Readings


@dataclass(frozen=True, eq=False)
class Waiting:
    """Readings that came, and are not yet as old as the delay.

    Parameters
    ----------
    delay : int
        Ticks.
    readings : Readings
    clock : int or None
        The largest time so far, or that to which it was moved.
    """

    delay: int
    readings: Readings
    clock: int | None = None

    def arrived(self, readings: Readings) -> tuple[Waiting, np.ndarray, int]:
        """After readings in order of their arrival.

        One is late if its time is more than the delay before the clock. A gap says nothing of where its
        stream is, and so comes never too late.

        Returns
        -------
        Waiting
        int64 array, int
            The rows of late ones, and how far the latest of them lay behind the clock.
        """
        if not readings.times.size:
            return self, np.zeros(0, np.int64), 0
        clocks = np.maximum.accumulate(readings.times)
        if self.clock is not None:
            clocks = np.maximum(clocks, self.clock)
        behind = clocks - readings.times
        is_late = (behind > self.delay) & ~np.isnan(readings.values).any(axis=1)
        late = np.flatnonzero(is_late)
        kept = readings.rows_of(np.flatnonzero(~is_late)) if late.size else readings
        both = _joined(self.readings, kept)
        return Waiting(self.delay, both, int(clocks[-1])), late, int(behind[late].max(initial=0))

    def moved(self, clock: int) -> Waiting:
        """With a clock that is at least so late."""
        later = clock if self.clock is None else max(clock, self.clock)
        return Waiting(self.delay, self.readings, later)

    def released(self) -> tuple[Waiting, Readings]:
        """What still waits, and the readings before which none can come: older than the delay."""
        times = self.readings.times
        bound = -np.inf if self.clock is None else self.clock - self.delay
        is_due = times < bound
        due, others = (np.flatnonzero(mask) for mask in (is_due, ~is_due))
        rest = Waiting(self.delay, self.readings.rows_of(others), self.clock)
        return rest, self.readings.rows_of(due)

    def ended(self) -> tuple[Waiting, Readings]:
        """Nothing that waits any more, and all that did; what comes before the clock is late then."""
        none = self.readings.rows_of(np.zeros(0, np.int64))
        clock = None if self.clock is None else self.clock + self.delay
        return Waiting(self.delay, none, clock), self.readings


def _joined(first: Readings, second: Readings) -> Readings:
    if not first.times.size:
        return second
    streams = one_array(of_one_type([first.streams, second.streams]))
    return Readings(
        streams,
        np.concatenate([first.times, second.times]),
        np.concatenate([first.values, second.values]),
        first.times.size + second.times.size,
    )
