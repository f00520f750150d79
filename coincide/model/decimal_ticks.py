"""Floats as ticks: each means the shortest decimal that reads as it, of at most nine places.

``whole + part`` is a float, ``whole`` the nearest whole number. Both are exact, and so is all that follows
but for a division, which is rounded correctly: SQL on doubles gives the same bits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from coincide.model.compiled import compiled

MOST_PLACES = 9


EXACT = 2.0**51
"""Below this many units of the last place at most one decimal reads as a float, and it is the nearest."""


EXACT_SINGLE = 2.0**22
"""The same for floats of 32 bits."""


class Places(NamedTuple):
    """Decimals of 0 to 9 places, where one is a whole number of ticks: float64 arrays, shape (10,)."""

    powers: np.ndarray  # float64: units of the last place in one
    over: np.ndarray  # float64: ticks of such a unit: two whole numbers without a common divisor
    under: np.ndarray  # float64: ticks of such a unit: two whole numbers without a common divisor


def places_of(ticks: int) -> Places:
    """How units of the last place become ticks, given the ticks of one."""
    powers = [10**places for places in range(MOST_PLACES + 1)]
    shared = [math.gcd(power, ticks) for power in powers]
    over = [ticks // each for each in shared]
    under = [power // each for power, each in zip(powers, shared, strict=True)]
    return Places(*(np.array(each, np.float64) for each in (powers, over, under)))


def decimal_ticks(values: np.ndarray, ticks: int, *, is_single: bool) -> np.ndarray:
    """Floats in ticks, each as the shortest decimal that reads as it, rounded half to even."""
    # Where none of nine places does, what the float itself is, is rounded.
    found = np.empty(values.size, np.int64)
    if values.size:
        exact = EXACT_SINGLE if is_single else EXACT
        largest = max(abs(float(values.min())), abs(float(values.max())))
        powers = places_of(ticks).powers.tolist()
        # What has fewer places is a decimal of this many, too.
        first = max((n for n, power in enumerate(powers) if largest < exact / power), default=1)
        _fill(values, np.int64(ticks), places_of(ticks), np.int64(max(first, 1)), is_single, found)
    return found


@compiled
def _fill(
    values: np.ndarray, ticks: int, places: Places, first: int, is_single: bool, found: np.ndarray
) -> None:
    for i in range(values.size):
        value = values[i]
        whole = np.rint(value)
        part = value - whole
        found[i] = np.int64(whole) * ticks
        if part != 0.0:
            found[i] += np.int64(_part(value, whole, part, ticks, places, first, is_single))


@compiled
def _part(
    value: float, whole: float, part: float, ticks: int, places: Places, first: int, is_single: bool
) -> float:
    for n in range(first, MOST_PLACES + 1):
        power = places.powers[n]
        units = np.rint(part * power)
        if is_single:
            read = np.float64(np.float32((whole * power + units) / power))
        elif abs(value) < EXACT / power:
            read = (whole * power + units) / power
        else:
            read = whole + units / power
        if read == value:
            return np.rint(units * places.over[n] / places.under[n])
    return np.rint(part * ticks)
