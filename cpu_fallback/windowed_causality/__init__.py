"""Causality through a bounded window on the CPU."""

from cpu_fallback.windowed_causality.join import WindowJoin, most_pairs

__all__ = ["WindowJoin", "most_pairs"]
