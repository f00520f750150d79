"""What is pushed, checked before anything of it is taken in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cpu_fallback.streams.kernels.checks import (
    ARRIVAL,
    FINE,
    OUT_OF_RANGE,
    REVERSED,
    TOO_LONG,
    TOO_SHORT,
    first_trouble,
)
from cpu_fallback.streams.options import SideLimits
from cpu_fallback.streams.sides import LEFT, RIGHT, SIDES
from event_model.errors import DataError, SchemaError
from event_model.timestamps import IntervalEvents
from event_model.units import TIME_LIMIT

Events = IntervalEvents | tuple[npt.ArrayLike, npt.ArrayLike]

_NO_ARRIVAL = np.empty(0, np.int64)


class Batch(NamedTuple):
    """Checked events of one or both sides, in order of arrival.

    Parameters
    ----------
    sides : uint8 array, shape (n,)
    min_time, max_time : int64 arrays, shape (n,)
        Ticks.
    arrival : int64 array, shape (n,) or (0,)
        Arrival instants, ticks; none: each event comes as late as its side's largest max_time.
    """

    sides: np.ndarray
    min_time: np.ndarray
    max_time: np.ndarray
    arrival: np.ndarray


def checked_batch(
    sides: npt.ArrayLike | int,
    events: Events,
    arrival: npt.ArrayLike | None,
    lengths: np.ndarray,
    clock: np.ndarray,
) -> Batch:
    """Events as a batch.

    Parameters
    ----------
    sides : int or array of int, shape (n,)
        0 for left, 1 for right.
    events : IntervalEvents or (min_time, max_time)
        Without groups.
    arrival : int64 array, shape (n,), or None
        Arrival instants, ticks.
    lengths : int64 array, shape (2, 2)
        From `declared_lengths`.
    clock : int64 array, shape (2,)
        Latest arrival instant of each side so far.

    Raises
    ------
    SchemaError
        If arrays are not one-dimensional arrays of integers, of equal size.
    DataError
        If an event has min_time above max_time, a time beyond 2**61 ticks, or a length outside the
        declared limits; if arrival instants go back; if events have groups.
    """
    low, high = _both_ends(events)
    lows, highs = _ticks("min_time", low), _ticks("max_time", high)
    instants = _NO_ARRIVAL if arrival is None else _ticks("arrival", arrival)
    marks = np.full(lows.size, sides, np.uint8) if isinstance(sides, int) else _marks(sides)
    for name, array in (("max_time", highs), ("sides", marks)):
        _check_size(name, array, lows)
    if arrival is not None:
        _check_size("arrival", instants, lows)
    batch = Batch(marks, lows, highs, instants)
    trouble, at = first_trouble(*batch, lengths, clock, TIME_LIMIT)
    if trouble != FINE:
        raise DataError(_complaint(trouble, int(at), batch, lengths, clock))
    return batch


def declared_lengths(limits: tuple[SideLimits, SideLimits]) -> np.ndarray:
    """Shortest and longest length, ticks, of the left and the right side."""
    return np.array([(side.shortest, side.longest) for side in limits], np.int64)


def _both_ends(events: Events) -> tuple[npt.ArrayLike, npt.ArrayLike]:
    if isinstance(events, IntervalEvents):
        if events.group is not None:
            raise DataError(
                "a stream correlator knows no groups; use one correlator for each key, and push"
                " events without group"
            )
        return events.min_time, events.max_time
    if isinstance(events, tuple) and len(events) == 2:
        return events
    raise SchemaError(
        "events must be IntervalEvents or a pair of arrays (min_time, max_time); found"
        f" {type(events).__name__}"
    )


def _ticks(name: str, values: npt.ArrayLike) -> np.ndarray:
    array = np.asarray(values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise SchemaError(
            f"{name} must be a one-dimensional array of integers (ticks); found {array.dtype} of"
            f" shape {array.shape}. Round times to int64 ticks first"
        )
    if array.dtype.kind == "u" and array.size and int(array.max()) >= TIME_LIMIT:
        raise DataError(f"{name}: a time reaches 2^61 ticks; use a coarser unit")
    return _plain(array, np.int64)


def _marks(sides: npt.ArrayLike) -> np.ndarray:
    array = np.asarray(sides)
    plain = array.ndim == 1 and (array.dtype.kind in "iub" or not array.size)
    if not plain or not ((array == LEFT) | (array == RIGHT)).all():
        raise SchemaError("sides must be a one-dimensional array of 0 (left) and 1 (right)")
    return _plain(array, np.uint8)


def _plain(array: np.ndarray, dtype: type) -> np.ndarray:
    """One memory layout only: kernels are compiled anew for each, read-only arrays included."""
    return np.require(array, dtype, ("C", "A", "W"))


def _check_size(name: str, array: np.ndarray, lows: np.ndarray) -> None:
    if array.size != lows.size:
        raise SchemaError(
            f"{name} has {array.size} entries, but min_time has {lows.size}; give one for each event"
        )


def _complaint(trouble: int, at: int, batch: Batch, lengths: np.ndarray, clock: np.ndarray) -> str:
    side = int(batch.sides[at])
    name, low, high = SIDES[side], int(batch.min_time[at]), int(batch.max_time[at])
    where = f"{name}: event {at} of this push, [{low}, {high}],"
    if trouble == OUT_OF_RANGE:
        return f"{where} reaches 2^61 ticks; use a coarser unit"
    if trouble == REVERSED:
        return f"{where} has min_time above max_time; swap the two or leave the event out"
    if trouble == TOO_LONG:
        return (
            f"{where} is {high - low} ticks long, but {name}_longest is {lengths[side, 1]};"
            f" declare a larger {name}_longest or leave the event out"
        )
    if trouble == TOO_SHORT:
        return (
            f"{where} is {high - low} ticks long, but {name}_shortest is {lengths[side, 0]};"
            f" declare a smaller {name}_shortest or leave the event out"
        )
    arrival = int(batch.arrival[at])
    if trouble == ARRIVAL:
        return f"{where} arrives at {arrival}, beyond 2^61 ticks; use a coarser unit"
    earlier = batch.arrival[:at][batch.sides[:at] == side]
    last = int(max(clock[side], earlier.max(initial=clock[side])))
    return (
        f"{where} arrives at {arrival}, before an earlier event or heartbeat of its side, at {last};"
        " push the events of a side in order of arrival"
    )
