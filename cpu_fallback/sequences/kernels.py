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
def follow(rows, begins, ends, parents, links):
    """Write each link of each row, and the number of the row: a tuple grows by one event."""
    k = 0
    for i in range(rows.size):
        for link in range(begins[rows[i]], ends[rows[i]]):
            parents[k], links[k] = i, link
            k += 1


@compiled
def judge(kind, ends, laws, chances, buckets, windows, at_least, doubt, wants, work, out, verdicts):
    """Decide tuples: verdicts, and probabilities where these are wanted or needed, else NaN.

    ``ends`` and ``laws``, int64, shape (tuples, n), are last edges and laws. ``chances``, float64,
    shape (tuples, links), are those of links of a sequence, each of which reaches the confidence.
    """
    lows, highs = windows
    for k in range(verdicts.size):
        end, law, own = ends[k], laws[k], chances[k]
        if kind == GATHERING:
            known = 1.0 if _are_near(end, law, buckets, highs[0]) else 0.0
        else:
            known = _known(end, law, own, buckets, lows, highs)
        if known > 0.0:
            out[k], verdicts[k] = known, YES
            continue
        if kind == CHAIN and not wants:
            lost = 0.0
            for link in range(own.size):
                lost += 1.0 - own[link]
            if 1.0 - lost >= at_least + doubt:
                out[k], verdicts[k] = np.nan, YES
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


@compiled(forceinline=True)
def _known(end, law, chances, buckets, lows, highs):
    """The probability of a sequence of which at most one link is uncertain, and nothing else; else 0."""
    # That link reaches the confidence, and so does the whole.
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
