"""The CPU backend: a slow and obvious reference, and the Numba implementation of every operator."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cpu_fallback.join.event_join import (
    EventJoin,
    event_decisions,
    event_merits,
    event_probabilities,
)

if TYPE_CHECKING:
    from cpu_fallback.borders import BorderSearch
    from cpu_fallback.sequences.making import TupleMaker

__all__ = [
    "BorderSearch",
    "EventJoin",
    "TupleMaker",
    "event_decisions",
    "event_merits",
    "event_probabilities",
]

_MODULES = {"BorderSearch": "borders", "TupleMaker": "sequences.making"}
"""What a join does without."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
