"""Causality through a bounded window on the CPU."""

from cpu_fallback.causality.windowed.bound import most_pairs
from cpu_fallback.causality.windowed.window_join import WindowJoin

__all__ = ["WindowJoin", "most_pairs"]
