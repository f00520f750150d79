"""Whether a tuple qualifies: by its links or its ends if they tell, else by the whole's probability."""

from __future__ import annotations

import numpy as np

from coincide.model.compiled import compiled
from coincide.model.sequences.chain import chain_probability
from coincide.model.sequences.gathering import gathering_probability
from coincide.model.sequences.triangle import triangle_probability
from coincide.model.sequences.wholes import CHAIN, GATHERING, TRIANGLE

UNKNOWN, NO, YES = range(3)
"""Verdicts on tuples: floats cannot tell, does not qualify, qualifies."""

_FAINT = 2.0**-51
"""More than the links lack together whose chances are rounded to 1: at most 2 ** -54 each."""


@compiled(forceinline=True)
def told_by_links(chances, at_least, doubt, wants):
    """The probability of a chain with one uncertain link at most; NaN of another that qualifies; else 0."""
    lost, uncertain, lowest = 0.0, 0, 1.0
    for link in range(chances.size):
        if chances[link] < 1.0:
            uncertain += 1
            lost += 1.0 - chances[link]
            lowest = chances[link]
    if uncertain == 0 or (uncertain == 1 and lowest > at_least + _FAINT):
        return lowest
    # The whole lacks no more than all links together.
    return np.nan if not wants and 1.0 - lost >= at_least + doubt else 0.0


@compiled(forceinline=True)
def told_by_ends(kind, end, law, chances, buckets, lows, highs):
    """The probability of what the ends of all times tell, and in a triangle one link; else 0."""
    if kind == GATHERING:
        return 1.0 if _are_near(end, law, buckets, highs[0]) else 0.0
    if kind == TRIANGLE:
        return _of_total(end, law, chances, buckets, lows, highs)
    return 0.0


@compiled(forceinline=True)
def whole_probability(kind, end, law, buckets, lows, highs, work):
    """The probability of the whole, in floats."""
    if kind == CHAIN:
        return chain_probability(end, law, buckets, lows, highs, 1.0, work)
    if kind == TRIANGLE:
        return triangle_probability(end, law, buckets, lows, highs, 1.0)
    return gathering_probability(end, law, buckets, highs[0], 1.0, work[2])


@compiled(forceinline=True)
def verdict_of(probability, at_least, doubt):
    """What a probability tells."""
    if abs(probability - at_least) < doubt:
        return UNKNOWN
    return YES if probability > at_least else NO


@compiled(forceinline=True)
def _of_total(end, law, chances, buckets, lows, highs):
    """The probability of three windows where all but one step hold for sure; else 0."""
    # That step reaches the confidence, and so do all three.
    found = 1.0
    for w in range(lows.size):
        is_total = w + 1 == end.size
        first, last = (0, w) if is_total else (w, w + 1)
        least = end[last] + buckets.edges[buckets.starts[law[last]]] - end[first]
        most = end[last] - end[first] - buckets.edges[buckets.starts[law[first]]]
        if least >= lows[w] and most <= highs[w]:
            continue
        if found < 1.0 or is_total or chances.size == 0:
            return 0.0
        found = chances[w]
    return found


@compiled(forceinline=True)
def _are_near(end, law, buckets, width):
    """Whether events are within a width of each other, wherever in their buckets they are."""
    first, last = end[0] + buckets.edges[buckets.starts[law[0]]], end[0]
    for i in range(1, end.size):
        first = min(first, end[i] + buckets.edges[buckets.starts[law[i]]])
        last = max(last, end[i])
    return last - first <= width
