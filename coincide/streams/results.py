"""What a correlator hands out: matches, and events that came too late."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np


@dataclass(frozen=True, eq=False)
class Matches:
    """Pairs that became final.

    Parameters
    ----------
    count : int
        Number of pairs.
    left, right : int64 arrays, shape (count,)
        Arrival numbers of the two events of each pair: the first event pushed to a side is its number
        0, and late events have numbers too. In no promised order. Empty with ``emit="counts"``.
    """

    count: int
    left: np.ndarray
    right: np.ndarray


@dataclass(frozen=True, eq=False)
class LateEvents:
    """Intervals of one side that arrived later than its delay permits, and were not correlated.

    Parameters
    ----------
    numbers : int64 array, shape (n,)
        Arrival numbers.
    min_time, max_time : int64 arrays, shape (n,)
        Timestamps, ticks.
    """

    numbers: np.ndarray
    min_time: np.ndarray
    max_time: np.ndarray

    def __len__(self) -> int:
        return self.numbers.size


@dataclass(frozen=True, eq=False)
class LateHistogramEvents:
    """As `LateEvents`, of a side whose timestamps are histograms.

    Parameters
    ----------
    numbers : int64 array, shape (n,)
        Arrival numbers.
    max_time, template : int64 arrays, shape (n,)
        Ticks; numbers of templates.
    """

    numbers: np.ndarray
    max_time: np.ndarray
    template: np.ndarray

    def __len__(self) -> int:
        return self.numbers.size


Late = LateEvents | LateHistogramEvents
_L = TypeVar("_L", LateEvents, LateHistogramEvents)

_NOTHING = np.empty(0, np.int64)
NO_MATCHES = Matches(0, _NOTHING, _NOTHING)


def joined_matches(parts: list[Matches]) -> Matches:
    """Several results as one."""
    if not parts:
        return NO_MATCHES
    if len(parts) == 1:
        return parts[0]
    left, right = (np.concatenate([getattr(p, side) for p in parts]) for side in ("left", "right"))
    return Matches(sum(part.count for part in parts), left, right)


def joined_late(parts: list[_L]) -> _L:
    """Several lots of late events, one at least, as one."""
    names = [field.name for field in fields(parts[0])]
    return type(parts[0])(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in names)
    )
