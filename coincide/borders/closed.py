"""Which ends a range holds, and the range [lower, upper) that holds the same floats.

Values and borders are float64, so "above a" is "from the next float after a on". The index and the kernels
therefore know half-open ranges alone. A straight move meets the border itself, and not the float after it.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

Closed = Literal["left", "right", "both", "neither"]

CLOSED: tuple[str, ...] = get_args(Closed)

OPEN_BELOW, CLOSED_ABOVE = 1, 2
"""Bits of a range that does not hold its lower border, and of one that holds its upper one."""

_BITS = dict(zip(CLOSED, (0, OPEN_BELOW | CLOSED_ABOVE, CLOSED_ABOVE, OPEN_BELOW), strict=True))


def closed_bits(words: list[str]) -> np.ndarray:
    """The bits of words of `CLOSED`: uint8 array, shape (n,)."""
    return np.array([_BITS[word] for word in words], np.uint8)


def half_open(
    lower: np.ndarray, upper: np.ndarray, closed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Borders of the ranges [lower, upper) that hold the same floats.

    Parameters
    ----------
    lower, upper : float64 arrays, shape (n, d)
        lower <= upper.
    closed : uint8 array, shape (n,)

    Returns
    -------
    float64 arrays, shape (n, d)
        lower <= upper; equal where a range holds no float.
    """
    if not closed.any():
        return lower, upper
    lower = _stepped(lower, closed & OPEN_BELOW)
    return lower, np.maximum(lower, _stepped(upper, closed & CLOSED_ABOVE))


def as_given(
    lower: np.ndarray, upper: np.ndarray, closed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The borders of which `half_open` has made these, of ranges that hold some float."""
    if not closed.any():
        return lower, upper
    return (
        _stepped(lower, closed & OPEN_BELOW, -np.inf),
        _stepped(upper, closed & CLOSED_ABOVE, -np.inf),
    )


def _stepped(borders: np.ndarray, steps: np.ndarray, towards: float = np.inf) -> np.ndarray:
    """The next float of borders, where there is to be a step. No value is infinite, so infinity stays."""
    moves = (steps != 0)[:, np.newaxis] & np.isfinite(borders)
    with np.errstate(over="ignore", under="ignore"):
        return np.where(moves, np.nextafter(borders, towards), borders)
