"""Pairs of a finished join of which only some count: which, how many of each event, the best of them."""

from __future__ import annotations

import numpy as np

from coincide.compiled import compiled

Both = tuple[np.ndarray, np.ndarray]
"""An array of the left side, or of left rows, and one of the right side."""


def in_order_of_time(times: Both, ranks: Both, rows: Both, shift: int) -> np.ndarray:
    """Which pairs of one stream have the earlier event left: by its time, then by its rank.

    Parameters
    ----------
    times, ranks : (int64 array, int64 array)
        Of all events of both sides.
    rows : (int64 array, int64 array), shape (pairs,)
        Of the pairs.
    shift : int
        Ticks by which right times are moved.

    Returns
    -------
    bool array, shape (pairs,)
    """
    out = np.empty(rows[0].size, np.bool_)
    _in_order_of_time(*times, *ranks, *rows, np.int64(shift), out)
    return out


def passing_of_each(offsets: np.ndarray, passing: np.ndarray, counts: np.ndarray) -> None:
    """Count the pairs of each base event that pass.

    Parameters
    ----------
    offsets : int64 array, shape (events + 1,)
        Where the pairs of each event begin; only their differences matter.
    passing : bool array, shape (pairs,)
    counts : int64 array, shape (events,), written
    """
    _passing_of_each(offsets, passing, counts)


def kept(values: np.ndarray, passing: np.ndarray, out: np.ndarray) -> None:
    """Write the values of pairs that pass, in their order, to an array that has room for just these.

    Parameters
    ----------
    values : int64 array, shape (pairs,)
    passing : bool array, shape (pairs,)
    out : int64 array, shape (pairs that pass,), written
    """
    _kept(values, passing, out)


def best_of_each(
    left: np.ndarray, right: np.ndarray, merits: tuple[np.ndarray, np.ndarray], ranks: np.ndarray
) -> np.ndarray:
    """The best pair of each base event: the greatest merit, then the least distance, then the least rank.

    Parameters
    ----------
    left, right : int64 arrays, shape (pairs,)
        Base and target positions; those of a base event are together.
    merits : (float64 array, uint64 array), shape (pairs,)
        Merits and distances.
    ranks : int64 array
        By target position.

    Returns
    -------
    int64 array
        A pair for each base event that has one.
    """
    best = np.empty(left.size, np.int64)
    return best[: _best_of_each(left, right, *merits, ranks, best)]


@compiled
def _in_order_of_time(left, right, left_ranks, right_ranks, left_rows, right_rows, shift, out):
    for pair in range(out.size):
        own, other = left_rows[pair], right_rows[pair]
        apart = right[other] + shift - left[own]
        # Without a branch: which of two is earlier cannot be foreseen.
        out[pair] = (apart > 0) | ((apart == 0) & (left_ranks[own] < right_ranks[other]))


@compiled
def _passing_of_each(offsets, passing, counts):
    for event in range(counts.size):
        count = np.int64(0)
        for pair in range(offsets[event] - offsets[0], offsets[event + 1] - offsets[0]):
            count += passing[pair]
        counts[event] = count


@compiled
def _kept(values, passing, out):
    place = np.int64(0)
    for pair in range(values.size):
        if place == out.size:
            break
        # Written in any case, and again if it does not pass.
        out[place] = values[pair]
        place += passing[pair]


@compiled
def _best_of_each(left, right, merits, distances, ranks, best):
    events = np.int64(0)
    for pair in range(left.size):
        if pair == 0 or left[pair] != left[pair - 1]:
            best[events] = pair
            events += 1
            continue
        top = best[events - 1]
        if merits[pair] != merits[top]:
            is_better = merits[pair] > merits[top]
        elif distances[pair] != distances[top]:
            is_better = distances[pair] < distances[top]
        else:
            is_better = ranks[right[pair]] < ranks[right[top]]
        if is_better:
            best[events - 1] = pair
    return events
