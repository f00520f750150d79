"""Sorting by small whole numbers, stably: equal ones keep their order."""

from __future__ import annotations

import numpy as np

from coincide.compiled import compiled

_DIGIT_BITS = 11


@compiled(allocates=True)
def sorted_rows(order, numbers, most):
    """Sort rows by a number, those of equal numbers as they are in `order`.

    Parameters
    ----------
    order : int64 array, shape (n,)
        Rows; overwritten.
    numbers : int64 array, shape (rows,)
        At least 0.
    most : int64
        The largest number.

    Returns
    -------
    int64 array, shape (n,)
        The rows in order.
    """
    other = np.empty_like(order)
    shift = 0
    while most >> shift > 0:
        starts = np.zeros((1 << _DIGIT_BITS) + 1, np.int64)
        mask = (1 << _DIGIT_BITS) - 1
        for row in order:
            starts[((numbers[row] >> shift) & mask) + 1] += 1
        for digit in range(1 << _DIGIT_BITS):
            starts[digit + 1] += starts[digit]
        for row in order:
            digit = (numbers[row] >> shift) & mask
            other[starts[digit]] = row
            starts[digit] += 1
        order, other = other, order
        shift += _DIGIT_BITS
    return order


@compiled(allocates=True)
def is_ascending(times):
    """Whether an int64 array is in order."""
    for i in range(1, times.size):  # noqa: SIM110 - a generator is not compiled
        if times[i] < times[i - 1]:
            return False
    return True


def rows_by_time(times: np.ndarray) -> np.ndarray:
    """Rows in order of time, equal ones by row: int64 array, shape (n,)."""
    if is_ascending(times):
        return np.arange(times.size)
    return np.argsort(times, kind="stable")
