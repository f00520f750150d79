"""Length classes: events of one side grouped by the length of their timestamps.

Within a class the midpoint band is nearly constant, so most of a join is contiguous ranges. Where
lengths take few values, each value is a class of its own and nothing is left to probe.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coincide.shape_classes import ShapeClasses

MAX_CLASSES = 16
"""More would save hardly a probe: lengths that differ little have nearly the same bands."""

_SAMPLE = 4096
_CANDIDATES = 48


def length_classes(lengths: np.ndarray, most: int) -> ShapeClasses:
    """At most `most` classes of lengths, narrow where events are many.

    The cuts minimise the sum over classes of share times width, to which the number of pairs to probe
    is nearly proportional. Lengths of few distinct values give classes of one value each.

    Parameters
    ----------
    lengths : int64 array, shape (n,)
        Lengths of the timestamps of one side, ticks, >= 0. May be empty.
    most : int
        Upper limit on K, 1 ... MAX_CLASSES.
    """
    if lengths.size == 0:
        return ShapeClasses.one(0, 0)
    return ShapeClasses.between(lengths, class_ends(length_sample(lengths), [most])[0])


def class_ends(sample: np.ndarray, mosts: Sequence[int]) -> list[np.ndarray]:
    """The ends of the best classes for each of several limits on their number, shared work done once.

    Parameters
    ----------
    sample : int64 array, shape (n,), n > 0
        Lengths, from `length_sample`. `length_classes` says what best is.
    mosts : sequence of int
        Limits on K; above MAX_CLASSES they are taken as that.

    Returns
    -------
    list of int64 arrays
        Per limit, the longest length of each class, ascending.
    """
    candidates, weights = _candidates(sample)
    return _best_cuts(candidates, weights, [min(most, MAX_CLASSES) for most in mosts])


def length_sample(lengths: Any, xp: Any = np) -> Any:
    """Some thousand of the lengths, the shortest and the longest among them; not for none.

    Parameters
    ----------
    lengths : int64 array, shape (n,), n > 0
    xp : module
        Whose array it is: NumPy, or one with the same functions.
    """
    stride = max(1, lengths.size // _SAMPLE)
    return xp.append(lengths[::stride], xp.stack([lengths.min(), lengths.max()]))


def _candidates(sample: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ascending possible class ends, the longest length last, and the events up to each."""
    values, counts = np.unique(sample, return_counts=True)
    if values.size > _CANDIDATES:
        ranks = np.cumsum(counts)
        even = np.searchsorted(ranks, np.linspace(0, ranks[-1], _CANDIDATES - 8)[1:])
        # The tails are where one outlier would widen a whole class.
        tails = np.array([0, 1, 3, 7, values.size - 8, values.size - 4, values.size - 2])
        chosen = np.unique(
            np.concatenate([even, tails, [values.size - 1]]).clip(0, values.size - 1)
        )
        values, counts = values[chosen], np.diff(ranks[chosen], prepend=0)
    return values, counts.astype(np.float64)


def _best_cuts(values: np.ndarray, weights: np.ndarray, mosts: Sequence[int]) -> list[np.ndarray]:
    """Ends of the classes that minimise sum(weight * width): dynamic programming over candidates."""
    n = values.size
    below = np.concatenate([[0.0], np.cumsum(weights)])
    spread = values.astype(np.float64)
    # cost[i, j]: one class of candidates i ... j.
    cost = (below[None, 1:] - below[:-1, None]) * (spread[None, :] - spread[:, None])
    cost[np.tril_indices(n, -1)] = np.inf
    best = cost[0].copy()
    origins: list[np.ndarray] = []
    for _ in range(min(n, max(mosts)) - 1):
        extended = best[:-1, None] + cost[1:, :]
        origin = np.argmin(extended, axis=0)
        candidate = extended[origin, np.arange(n)]
        better = candidate < best
        origins.append(np.where(better, origin, -1))
        best = np.where(better, candidate, best)
    # As many classes as values: each is its own, also where rounded costs see no gain.
    return [
        values if n <= most else values[_walk_back(origins[: most - 1], n - 1)] for most in mosts
    ]


def _walk_back(origins: list[np.ndarray], last: int) -> np.ndarray:
    ends = [last]
    for origin in reversed(origins):
        if origin[ends[-1]] >= 0:
            ends.append(int(origin[ends[-1]]))
    return np.array(ends[::-1])
