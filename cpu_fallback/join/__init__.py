"""The join of events on the CPU."""

from cpu_fallback.join.event_join import EventJoin, event_merits, event_probabilities

__all__ = ["EventJoin", "event_merits", "event_probabilities"]
