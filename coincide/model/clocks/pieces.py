"""Straight pieces of a course of points."""

from __future__ import annotations

import numpy as np

from coincide.model.compiled import compiled


@compiled
def cheapest_pieces(times, values, variances, penalty, sums, costs, before):
    """Least squares by pieces that cost a penalty; before: where the last piece of each point begins."""
    n = times.size
    for i in range(n):
        g, t, x = 1.0 / variances[i], times[i], values[i]
        sums[0, i + 1] = sums[0, i] + g
        sums[1, i + 1] = sums[1, i] + g * t
        sums[2, i + 1] = sums[2, i] + g * t * t
        sums[3, i + 1] = sums[3, i] + g * x
        sums[4, i + 1] = sums[4, i] + g * x * t
        sums[5, i + 1] = sums[5, i] + g * x * x
    costs[0] = 0.0
    for j in range(1, n + 1):
        costs[j] = np.inf
        for i in range(j):
            if j - i < 2 and n > 1:  # a point alone lies on any line
                continue
            cost = costs[i] + penalty + _misfit(sums, i, j)
            if cost < costs[j]:
                costs[j] = cost
                before[j] = i


@compiled(forceinline=True)
def _misfit(sums, i, j):
    """Sum of squares about the line of points i:j."""
    weight = sums[0, j] - sums[0, i]
    t, x = sums[1, j] - sums[1, i], sums[3, j] - sums[3, i]
    size = sums[2, j] - sums[2, i] - t * t / weight
    common = sums[4, j] - sums[4, i] - t * x / weight
    whole = sums[5, j] - sums[5, i] - x * x / weight
    return max(whole - (common * common / size if size > 1e-30 else 0.0), 0.0)


def straight_pieces(
    times: np.ndarray, values: np.ndarray, variances: np.ndarray, penalty: float
) -> list[tuple[int, int]]:
    """The points of each piece, as begin and end."""
    n = times.size
    # Sums of squares lose most digits of float64 if times are far from 0.
    times, values = times - times.mean(), values - values.mean()
    sums, costs, before = np.zeros((6, n + 1)), np.zeros(n + 1), np.zeros(n + 1, np.int64)
    cheapest_pieces(times, values, variances, penalty, sums, costs, before)
    found, end = [], n
    while end > 0:
        found.append((int(before[end]), end))
        end = int(before[end])
    return found[::-1]
