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
        left, right = called
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
    left: Instants, right: Instants, window: Window, *, is_all: bool = True
) -> NearestMiss | None:
    """The pair nearest to a window that no pair should meet; None if one does, or there is no pair."""
    n = left.times.size
    keys = np.concatenate([left.keys, right.keys])
    times = np.concatenate([left.times + window.lo, right.times])
    is_right = np.arange(keys.size) >= n
    order = np.lexsort((is_right, times, keys))
    keys, times, is_right = keys[order], times[order], is_right[order]
    here = np.arange(keys.size)
    after = np.minimum.accumulate(np.where(is_right, here, keys.size)[::-1])[::-1]
    before = np.maximum.accumulate(np.where(is_right, here, -1))
    deltas = []
    for near in (after, before):
        own = np.flatnonzero(~is_right & (near >= 0) & (near < keys.size))
        own = own[keys[near[own]] == keys[own]]
        deltas.append(times[near[own]] - times[own] + window.lo)
    found = np.concatenate(deltas)
    missed = np.maximum(found - window.hi, window.lo - found)
    if not found.size or missed.min() <= 0:
        return None
    return NearestMiss(int(found[missed.argmin()]), is_all)
