"""Satisfaction times of wide windows: where the tails of the difference of two templates fall to a bound.

Lee, Mok & Woo's satisfaction time (Definition 8) for every pair of templates, as an integer: the least z
with P(Y - X > z) <= bound. A window that is no narrower than both templates together cuts one tail at a
time, so these integers are its decision, whatever its ends are.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from coincide.compiled import compiled
from coincide.templates.tails import UNIT, relative_error, tail

_STEPS_BEFORE_HALVING = 8


class Guess(NamedTuple):
    """Where to begin: as if times were normal.

    Parameters
    ----------
    x_means, x_squares, y_means, y_squares : float64 arrays
        Means and variances of templates.
    deviates : float
        Where a normal variable's tail is the bound, in standard deviations.
    """

    x_means: np.ndarray
    x_squares: np.ndarray
    y_means: np.ndarray
    y_squares: np.ndarray
    deviates: float


@compiled
def least_beyond(x, y, bound, guess, first, last, least, unsure):
    """The least z with P(Y - X > z) <= bound, for some templates of X and all of Y.

    Parameters
    ----------
    x, y : Buckets
    bound : float64
        As rounded from an exact number: its error is half a unit.
    guess : Guess
    first, last : int64
        Templates of X.
    least : int64 array, shape (X, Y), written
    unsure : int64 array, shape (X, Y), written
        0, or how far below `least` the answer may be.
    """
    for i in range(first, last):
        for j in range(y.starts.size - 1):
            start = (
                guess.y_means[j]
                - guess.x_means[i]
                + guess.deviates * math.sqrt(guess.x_squares[i] + guess.y_squares[j])
            )
            low, high = _bracketed(x, i, y, j, bound, start)
            least[i, j] = high
            unsure[i, j] = high - low - 1


@compiled
def _bracketed(x, i, y, j, bound, start):
    """Two integers between which floats see no more: the tail is above the bound at the first only.

    They are neighbours, unless the tail at some integer between cannot be told from the bound.
    """
    low = y.edges[y.starts[j]] - 1
    high = -x.edges[x.starts[i]]
    doubt = 2.0 * relative_error(x, i, y, j) + 2.0 * UNIT
    z = _within(start, low, high)
    steps = 0
    while high - low > 1:
        value, density = tail(x, i, y, j, z)
        if value <= bound * (1.0 - doubt):
            high = z
        elif value > bound * (1.0 + doubt):
            low = z
        else:
            return _narrowed(x, i, y, j, bound, doubt, low, high, z)
        steps += 1
        aim = (low + high) >> 1
        if density > 0.0 and steps % _STEPS_BEFORE_HALVING:
            step = (value - bound) / density
            if abs(step) < high - low:
                aim = z + math.ceil(step)
        z = _within(aim, low, high)
    return low, high


@compiled(forceinline=True)
def _within(z, low, high):
    return min(max(int(z), low + 1), high - 1)


@compiled
def _narrowed(x, i, y, j, bound, doubt, low, high, unclear):
    """The bracket, made as narrow as floats can, around an integer that they cannot decide."""
    below, above = unclear, unclear
    while below - low > 1:
        z = (low + below) >> 1
        if tail(x, i, y, j, z)[0] > bound * (1.0 + doubt):
            low = z
        else:
            below = z
    while high - above > 1:
        z = (above + high) >> 1
        if tail(x, i, y, j, z)[0] <= bound * (1.0 - doubt):
            high = z
        else:
            above = z
    return low, high
