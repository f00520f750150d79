"""Pairs of a finished join of which only some count: which, how many of each event, the best of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coincide.compiled import compiled

Both = tuple[np.ndarray, np.ndarray]
"""An array of the left side, or of left rows, and one of the right side."""


SAME, EARLIER, LATER, UNSURE = range(4)
"""Of a pair of one stream: an event with itself; left is the earlier; left is the later, and the other
order qualifies, too; left is the later, and the other order is yet to be decided."""
NEVER, NESTED, ALWAYS = range(3)
"""When the other order is to be decided, of a pair whose left event is the later one: never, as it
qualifies as well; only where its midpoint is the earlier one; always."""


class Stamps(NamedTuple):
    """Events of one side of a stream that is joined with itself: int64 arrays, shape (n,).

    Parameters
    ----------
    max_time, lengths : int64 arrays
        Ticks.
    ranks : int64 array
        Which event it is, on either side.
    """

    max_time: np.ndarray
    lengths: np.ndarray
    ranks: np.ndarray


def order_of_pairs(
    left: Stamps, right: Stamps, rows: Both, doubt: int, shift: int = 0
) -> np.ndarray:
    """In what order the events of pairs of one stream are: by the later ends, the earlier ends, the ranks.

    Parameters
    ----------
    left, right : Stamps
        All events of both sides.
    rows : (int64 array, int64 array), shape (pairs,)
        Of the pairs.
    doubt : int
        `NEVER`, `NESTED` or `ALWAYS`.
    shift : int
        Ticks by which right times have been moved: then, of equal timestamps, what was earlier is so.

    Returns
    -------
    uint8 array, shape (pairs,)
        `SAME`, `EARLIER`, `LATER` or `UNSURE`.
    """
    out = np.empty(rows[0].size, np.uint8)
    _order_of_pairs(left, right, rows[0], rows[1], np.int64(doubt), np.int64(shift), out)
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


def runs_taken(
    values: np.ndarray, places: np.ndarray, firsts: np.ndarray, counts: np.ndarray
) -> np.ndarray:
    """Values at the places of some runs, one run after the other.

    Parameters
    ----------
    values : array, shape (n,)
    places : int64 array
    firsts, counts : int64 arrays, shape (runs,)
        Where each run begins among the places, and how many it has.

    Returns
    -------
    array, shape (counts.sum(),)
    """
    out = np.empty(int(counts.sum()), values.dtype)
    _runs_taken(values, places, firsts, counts, out)
    return out


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
def _order_of_pairs(left, right, left_rows, right_rows, doubt, shift, out):
    for pair in range(out.size):
        own, other = left_rows[pair], right_rows[pair]
        later = right.max_time[other] - left.max_time[own]
        # Of equal later ends the longer timestamp begins earlier.
        longer = left.lengths[own] - right.lengths[other]
        ranked = right.ranks[other] - left.ranks[own]
        tied = -shift if shift else ranked
        # Without a branch: which of two is earlier cannot be foreseen.
        is_earlier = (later > 0) | ((later == 0) & ((longer > 0) | ((longer == 0) & (tied > 0))))
        is_nested = 2 * later + longer > 0
        is_unsure = (doubt == ALWAYS) | ((doubt == NESTED) & is_nested)
        code = np.uint8(EARLIER) if is_earlier else np.uint8(LATER) + np.uint8(is_unsure)
        out[pair] = np.uint8(SAME) if ranked == 0 else code


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
def _runs_taken(values, places, firsts, counts, out):
    at = 0
    for run in range(firsts.size):
        for place in range(firsts[run], firsts[run] + counts[run]):
            out[at] = values[places[place]]
            at += 1


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
