"""The interval join on the CPU."""

from cpu_fallback.join.interval_join import IntervalJoin, pair_probabilities

__all__ = ["IntervalJoin", "pair_probabilities"]
