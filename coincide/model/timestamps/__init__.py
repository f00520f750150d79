"""Timestamp models, one file each, behind one protocol (`coincide.model.timestamps.protocol`)."""

from coincide.model.timestamps.histograms import (
    HistogramEvents,
    HistogramPairs,
    HistogramRule,
    HistogramTimes,
)
from coincide.model.timestamps.intervals import (
    IntervalEvents,
    IntervalPairs,
    IntervalRule,
    IntervalTimes,
    are_valid_times,
)
from coincide.model.timestamps.mixed import MixedPairs, pairs_model

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
