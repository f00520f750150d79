"""The sides of a join whose accidental pairs are counted."""

from __future__ import annotations

from dataclasses import replace

from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.emission.spec import AnySpec
from spark_plugin.worker.shifts import ShiftPlan


def without_payload(side: Side) -> Side:
    """A side of which nothing is handed out."""
    return replace(side, payload=[])


def check_shifted(shifts: ShiftPlan, spec: AnySpec, left: Side, right: Side) -> None:
    """Refuse shifts that move times out of their range, and warn of short ones.

    Raises
    ------
    ConditionError
    """
    lengths = []
    for side in (left, right):
        rows = slice(None) if side.matchable is None else side.matchable
        lengths.append(side.lengths[rows])
    times = right.max_time[rows]
    if times.size:
        shifts.check_times(int((times - lengths[1]).min()), int(times.max()))
    shifts.warn_of_short(spec, (int(lengths[0].max(initial=0)), int(lengths[1].max(initial=0))))
