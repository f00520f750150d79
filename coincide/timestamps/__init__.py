"""Timestamp models, one file each, behind one protocol (`coincide.timestamps.protocol`)."""

from coincide.timestamps.histograms import (
    HistogramEvents,
    HistogramPairs,
    HistogramRule,
    HistogramTimes,
)
from coincide.timestamps.intervals import (
    IntervalEvents,
    IntervalPairs,
    IntervalRule,
    IntervalTimes,
    are_valid_times,
)
from coincide.timestamps.mixed import MixedPairs, pairs_model

__all__ = [
    "HistogramEvents",
    "HistogramPairs",
    "HistogramRule",
    "HistogramTimes",
    "IntervalEvents",
    "IntervalPairs",
    "IntervalRule",
    "IntervalTimes",
    "MixedPairs",
    "are_valid_times",
    "pairs_model",
]
