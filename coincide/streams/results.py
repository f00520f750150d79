"""What a correlator hands out: matches, and events that came too late."""

from __future__ import annotations

from dataclasses import dataclass

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
    """Events of one side that arrived later than its delay permits, and were not correlated.

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


def joined_late(parts: list[LateEvents]) -> LateEvents:
    """Several lots of late events as one."""
    arrays = (
        np.concatenate([_NOTHING, *(getattr(part, name) for part in parts)])
        for name in ("numbers", "min_time", "max_time")
    )
    return LateEvents(*arrays)
