"""The CPU backend: a slow and obvious reference, and the Numba implementation of every operator."""

from cpu_fallback.borders import BorderSearch
from cpu_fallback.join.event_join import (
    EventJoin,
    event_decisions,
    event_merits,
    event_probabilities,
)

__all__ = ["BorderSearch", "EventJoin", "event_decisions", "event_merits", "event_probabilities"]
