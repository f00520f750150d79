"""Timestamp models, one file each, behind one protocol (`coincide.timestamps.protocol`)."""

from coincide.timestamps.intervals import (
    IntervalEvents,
    IntervalPairs,
    IntervalRule,
    IntervalTimes,
    are_valid_times,
)

__all__ = [
    "IntervalEvents",
    "IntervalPairs",
    "IntervalRule",
    "IntervalTimes",
    "are_valid_times",
]
