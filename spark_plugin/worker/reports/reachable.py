"""The highest probability that a pair can reach, whatever its times are."""

from __future__ import annotations

import numpy as np

from coincide.timestamps import HistogramEvents, HistogramPairs
from cpu_fallback import event_probabilities

_MOST_POINTS = 1 << 19


def highest_of_templates(pairs: HistogramPairs) -> float | None:
    """The highest probability of any pair of templates; None if they are too many to look at.

    As a function of s = max_right - max_left it is a quadratic between the points at which an edge of
    one template passes an end of the window from an edge of the other: three values tell each.
    """
    left, right, window = pairs.left, pairs.right, pairs.window
    if 2 * left.edges.size * right.edges.size > _MOST_POINTS:
        return None
    own, others = (
        np.repeat(np.arange(len(table)), np.diff(table.starts)) for table in (left, right)
    )
    apart = np.subtract.outer(left.edges, right.edges).ravel()
    pair = np.add.outer(own * len(right), others).ravel()
    places = np.concatenate([window.lo + apart, window.hi + apart])
    order = np.lexsort((places, np.tile(pair, 2)))
    pair, places = np.tile(pair, 2)[order], places[order]
    # Ends of stretches lie just inside: where a template has an instant, there is a jump.
    inside = np.flatnonzero((pair[1:] == pair[:-1]) & (places[1:] - places[:-1] >= 4))
    first, last = places[inside] + 1, places[inside + 1] - 1
    middle = first + (last - first) // 2
    points = np.concatenate([places - 1, places, places + 1, first, middle, last])
    of = np.concatenate([pair, pair, pair, *[pair[inside]] * 3])
    found = _probabilities(pairs, points, of)
    best = float(found.max(initial=0.0))
    ends = found[3 * pair.size :].reshape(3, -1)
    return min(1.0, max(best, _peak(first, middle, last, ends)))


def _peak(first: np.ndarray, middle: np.ndarray, last: np.ndarray, values: np.ndarray) -> float:
    """The highest value of quadratics, each by three of its values, inside of its stretch."""
    a, b = (middle - first).astype(float), (last - first).astype(float)
    at_a, at_b = values[1] - values[0], values[2] - values[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        bend = (at_b / b - at_a / a) / (b - a)
        slope = at_a / a - bend * a
        place = -slope / (2.0 * bend)
        peak = values[0] + (slope + bend * place) * place
    is_inside = (bend < 0.0) & (place > 0.0) & (place < b)
    return float(peak[is_inside].max(initial=0.0))


def _probabilities(pairs: HistogramPairs, s: np.ndarray, pair: np.ndarray) -> np.ndarray:
    number, rows = len(pairs.right), np.arange(s.size)
    left = HistogramEvents(np.zeros(s.size, np.int64), pair // number, pairs.left)
    right = HistogramEvents(s, pair % number, pairs.right)
    return event_probabilities(left, rows, right, rows, pairs)
