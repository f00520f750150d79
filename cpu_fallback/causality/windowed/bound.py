"""What no policy can exceed, not even one that knows the future.

Let a tuple that arrived at position i match those that arrive at j1 < j2 < ... after it. It finds k of
them only if it stays in the window from i to jk, through jk - i arrivals; and after every arrival at most n
tuples stay. Put a price p(t) >= 0 on a stay after arrival t. Whatever a policy finds, it is

    sum over tuples of (found - price of the stay) + sum over tuples of the price of the stay
    <= sum over tuples of max over k of (k - (p(i) + ... + p(jk - 1))) + n · (p(0) + ... + p(T - 2)),

since no stay is worth more than the best one, and no moment holds more than n stays. So every choice of
prices gives a bound: it is the Lagrangian dual of the problem that a clairvoyant has to solve, without the
rule that a tuple which has gone does not come back being needed. Prices are improved step by step, in whole
numbers, so that rounding takes nothing from the bound. That any price bounds is exact; that ours are
the best is not claimed, nor that a policy reaches the bound.
"""

from __future__ import annotations

import numpy as np

from coincide.compiled import compiled

ONE = 1 << 24
"""Prices are counted in so many parts of a match."""

_STEPS = 60
_SCALES = 24


def most_pairs(first: np.ndarray, second: np.ndarray, tuples: int, window: int) -> int:
    """An upper bound on the pairs that any policy finds with a window.

    Parameters
    ----------
    first, second : int64 arrays, shape (pairs,)
        All pairs: positions of arrival of the earlier and of the later tuple.
    tuples : int
        How many arrive.
    window : int
        How many stay.
    """
    if not first.size:
        return 0
    order = np.lexsort((second, first))
    starts = np.searchsorted(first[order], np.arange(tuples + 1))
    later = np.ascontiguousarray(second[order])
    block = max(1, window // 4)
    blocks = -(-(tuples - 1) // block)
    capacity = np.full(blocks, window * block, np.int64)
    capacity[-1] = window * (tuples - 1 - block * (blocks - 1))
    used = np.zeros(tuples, np.int64)

    def bound_of(prices: np.ndarray) -> int:
        costs = np.concatenate([[0], np.cumsum(np.repeat(prices, block)[: tuples - 1])])
        # Of long streams the sum is beyond 64 bits.
        paid = sum(p * c for p, c in zip(prices.tolist(), capacity.tolist(), strict=True))
        return int(_best_stays(starts, later, costs, used)) + paid

    best, prices = bound_of(np.zeros(blocks, np.int64)), np.zeros(blocks, np.int64)
    for scale in range(_SCALES):  # one price for all, from a match for one arrival down
        flat = np.full(blocks, ONE >> scale, np.int64)
        found = bound_of(flat)
        if found < best:
            best, prices = found, flat
    step, current = max(1.0, prices.mean() / 2), prices.astype(np.float64)
    bound_of(prices)
    for _ in range(_STEPS):
        stays = np.cumsum(used)[: tuples - 1]
        load = np.add.reduceat(stays, np.arange(0, tuples - 1, block))
        current = np.maximum(0.0, current + step * (load / capacity - 1.0).clip(-1.0, 1.0))
        candidate = np.rint(current).astype(np.int64)
        found = bound_of(candidate)
        if found < best:
            best = found
        else:
            step *= 0.9
    return min(first.size, best // ONE)


@compiled(allocates=True)
def _best_stays(starts, later, costs, used):
    """What all stays are worth at most beyond their price, and where they begin and end.

    Parameters
    ----------
    starts : int64 array, shape (tuples + 1,)
    later : int64 array, shape (pairs,)
        Partners of each tuple that arrive after it, ascending.
    costs : int64 array, shape (tuples,)
        Price of a stay from the first arrival to each.
    used : int64 array, shape (tuples,), written
        +1 where a best stay begins, -1 where it ends.
    """
    total = 0
    used[:] = 0
    for i in range(starts.size - 1):
        best, end = 0, i
        for at in range(starts[i], starts[i + 1]):
            worth = (at + 1 - starts[i]) * ONE - (costs[later[at]] - costs[i])
            if worth > best:
                best, end = worth, later[at]
        total += best
        used[i] += 1
        used[end] -= 1
    return total
