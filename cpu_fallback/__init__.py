"""The CPU backend: a slow and obvious reference, and the Numba implementation of every operator."""

from cpu_fallback.join.event_join import EventJoin, event_probabilities
from cpu_fallback.join.interval_join import IntervalJoin, pair_probabilities

__all__ = ["EventJoin", "IntervalJoin", "event_probabilities", "pair_probabilities"]
