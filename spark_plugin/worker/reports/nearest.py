"""How near to the window a pair of exact instants comes, where no pair meets it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coincide.condition import Window
from coincide.units import Tick
from spark_plugin.worker.arrow.sides import Side, grouped_events
from spark_plugin.worker.arrow.time_words import length_words


class Instants(NamedTuple):
    """Exact times of a side that can match.

    Parameters
    ----------
    keys : int64 array, shape (n,)
        Equal where keys are.
    times : int64 array, shape (n,)
        Ticks.
    """

    keys: np.ndarray
    times: np.ndarray


class NearestMiss(NamedTuple):
    """The pair of equal keys that is nearest to the window.

    Parameters
    ----------
    delta : int
        T_right - T_left, ticks.
    is_all : bool
        Whether all pairs were looked at.
    """

    delta: int
    is_all: bool = True

    def words(self, window: Window, tick: Tick, called: tuple[str, str]) -> str:
        """What is said of it."""
        left, right = called if called[0] != called[1] else ("the other", "one event")
        late = self.delta > window.hi
        end = (
            f"ends at {_signed(window.hi, tick)}"
            if late
            else f"begins at {_signed(window.lo, tick)}"
        )
        order = "after" if self.delta >= 0 else "before"
        seen = "" if self.is_all else " of those that were looked at"
        return (
            f"in the nearest pair{seen} {right} is {length_words(abs(self.delta), tick, 9)} {order}"
            f" {left}; the window {end}"
        )


def _signed(ticks: int, tick: Tick) -> str:
    return f"{'-' if ticks < 0 else ''}{length_words(abs(ticks), tick, 9)}"


def instants_of(left: Side, right: Side, case_fold: bool) -> tuple[Instants, Instants] | None:
    """The exact times of both sides; None if some are uncertain."""
    sides = left, right
    if any(side.model.table is not None or side.shapes.any() for side in sides):
        return None
    found = []
    for side, events in zip(sides, grouped_events(left, right, case_fold=case_fold), strict=True):
        keys = np.zeros(len(side), np.int64) if events.group is None else events.group
        found.append(Instants(keys[keys >= 0], side.max_time[keys >= 0]))
    return found[0], found[1]


def nearest_miss(
    left: Instants, right: Instants | None, window: Window, *, is_all: bool = True
) -> NearestMiss | None:
    """As `nearest_delta`; None also if that is in the window."""
    delta = nearest_delta(left, right, window.lo, window.hi)
    is_miss = delta is not None and not window.lo <= delta <= window.hi
    return NearestMiss(delta, is_all) if is_miss and delta is not None else None


def nearest_delta(left: Instants, right: Instants | None, lo: int, hi: int) -> int | None:
    """T_right - T_left, ticks, of the pair of equal keys that is nearest to a window that none meets.

    Parameters
    ----------
    left : Instants
    right : Instants or None
        None: the same stream, of which no event is paired with itself.
    lo, hi : int
        The window.

    Returns
    -------
    int or None
        None of no pair.
    """
    others = left if right is None else right
    n = left.times.size
    keys = np.concatenate([left.keys, others.keys])
    times = np.concatenate([left.times + lo, others.times])
    order = np.lexsort((np.arange(keys.size) >= n, times, keys))
    keys, times, is_right = keys[order], times[order], order >= n
    rights, lefts = np.flatnonzero(is_right), np.flatnonzero(~is_right)
    following = np.cumsum(is_right)[lefts]
    deltas = []
    # Of one stream the event itself may be beside it: the one behind that is then the next.
    for step in (0, -1) if right is not None else (0, 1, -1, -2):
        places = following + step
        own = lefts[(places >= 0) & (places < rights.size)]
        near = rights[places[(places >= 0) & (places < rights.size)]]
        is_pair = keys[near] == keys[own]
        if right is None:
            is_pair &= order[near] - n != order[own]
        deltas.append(times[near[is_pair]] - times[own[is_pair]] + lo)
    found = np.concatenate(deltas)
    if not found.size:
        return None
    return int(found[np.maximum(found - hi, lo - found).argmin()])
