"""Kernels of sequences: from links to the tuples they make, and the probability of the whole."""

from __future__ import annotations

import numpy as np

from coincide.model.compiled import compiled
from coincide.model.sequences.chain import chain_probability
from coincide.model.sequences.gathering import gathering_probability
from coincide.model.sequences.triangle import triangle_probability
from coincide.model.sequences.wholes import CHAIN, GATHERING, TRIANGLE

UNKNOWN, NO, YES = range(3)
"""Verdicts on tuples: floats cannot tell, does not qualify, qualifies."""


@compiled
def count_ways(begins, ends, targets, after, out):
    """How many ways lead on from each event: the sum of those of its targets, or the most there can be."""
    most = np.iinfo(np.int64).max
    for i in range(out.size):
        found = 0
        for link in range(begins[i], ends[i]):
            more = after[targets[link]]
            found = found + more if found <= most - more else most
        out[i] = found


@compiled
def grow(place, links, rows, known, parents, new_rows, new_known):
    """Add to each tuple each event to which a link leads from its event at a place.

    ``rows``, int64, shape (n, tuples), ``known``, float64, shape (links, tuples): chances of the links
    so far. ``new_rows`` and ``new_known`` have one more of each, and `parents` says which tuple grew.
    """
    begins, ends, targets, chances = links
    k = 0
    for i in range(rows.shape[1]):
        last = rows[place, i]
        for link in range(begins[last], ends[last]):
            for each in range(rows.shape[0]):
                new_rows[each, k] = rows[each, i]
            new_rows[rows.shape[0], k] = targets[link]
            for each in range(known.shape[0]):
                new_known[each, k] = known[each, i]
            if chances.size:
                new_known[known.shape[0], k] = chances[link]
            if parents.size:
                parents[k] = i
            k += 1


@compiled(allocates=True)
def judge(
    kind, rows, chances, streams, buckets, windows, at_least, doubt, wants, work, out, verdicts
):
    """Decide tuples: verdicts, and probabilities where these are wanted or needed, else NaN.

    ``rows``, int64, shape (n, tuples), and `streams`: where the events of each stream begin, their last
    edges and their laws. ``chances``, float64, shape (links, tuples), are those of links of a sequence,
    each of which reaches the confidence.
    """
    lows, highs = windows
    begins, all_ends, all_laws = streams
    end, law = np.empty(begins.size, np.int64), np.empty(begins.size, np.int64)
    for k in range(verdicts.size):
        known = 0.0
        if kind == CHAIN:
            known = _of_links(chances[:, k], at_least, doubt, wants)
        if known == 0.0:
            _take(begins, all_ends, all_laws, rows[:, k], end, law)
            if kind == GATHERING:
                known = 1.0 if _are_near(end, law, buckets, highs[0]) else 0.0
            elif kind == TRIANGLE:
                known = _of_total(end, law, chances[:, k], buckets, lows, highs)
        if known != 0.0:
            out[k], verdicts[k] = known, YES
            continue
        if kind == CHAIN:
            found = chain_probability(end, law, buckets, lows, highs, 1.0, work)
        elif kind == TRIANGLE:
            found = triangle_probability(end, law, buckets, lows, highs, 1.0)
        else:
            found = gathering_probability(end, law, buckets, highs[0], 1.0, work[2])
        out[k] = found
        if abs(found - at_least) < doubt:
            verdicts[k] = UNKNOWN
        else:
            verdicts[k] = YES if found > at_least else NO


_FAINT = 2.0**-51
"""More than the links lack together whose chances are rounded to 1: at most 2 ** -54 each."""


@compiled(forceinline=True)
def _of_links(chances, at_least, doubt, wants):
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
def _take(begins, all_ends, all_laws, rows, ends, laws):
    """Write the last edges and the laws of the events of a tuple."""
    for i in range(begins.size):
        event = begins[i] + rows[i]
        ends[i], laws[i] = all_ends[event], all_laws[event]


@compiled(forceinline=True)
def _of_total(end, law, chances, buckets, lows, highs):
    """The probability of three windows where all but one step hold for sure; else 0."""
    # That step reaches the confidence, and so do all three.
    found = 1.0
    for w in range(lows.size):
        first, last = (w, w + 1) if w < chances.size else (0, end.size - 1)
        least = end[last] + buckets.edges[buckets.starts[law[last]]] - end[first]
        most = end[last] - end[first] - buckets.edges[buckets.starts[law[first]]]
        if least >= lows[w] and most <= highs[w]:
            continue
        if found < 1.0 or w == chances.size:
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
