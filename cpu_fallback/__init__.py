"""The CPU backend: a slow and obvious reference, and the Numba implementation of every operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cpu_fallback.join.event_join import (
    EventJoin,
    event_decisions,
    event_merits,
    event_probabilities,
)

if TYPE_CHECKING:
    from cpu_fallback.borders import BorderSearch

__all__ = ["BorderSearch", "EventJoin", "event_decisions", "event_merits", "event_probabilities"]


def __getattr__(name: str) -> Any:
    if name != "BorderSearch":  # a join needs no index of borders
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cpu_fallback.borders import BorderSearch

    return BorderSearch
