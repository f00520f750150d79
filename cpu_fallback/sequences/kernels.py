"""Kernels of sequences: from links to the tuples they make, and which of these qualify."""

from __future__ import annotations

import numpy as np

from coincide.model.compiled import compiled
from coincide.model.sequences.deciding import (
    YES,
    told_by_ends,
    told_by_links,
    verdict_of,
    whole_probability,
)
from coincide.model.sequences.wholes import CHAIN


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
    n, m, k = rows.shape[0], known.shape[0], 0
    for i in range(rows.shape[1]):
        last = rows[place, i]
        begin, size = begins[last], ends[last] - begins[last]
        for each in range(n):
            _fill(new_rows, each, k, size, rows[each, i])
        _copy(new_rows, n, k, size, targets, begin)
        for each in range(m):
            _fill(new_known, each, k, size, known[each, i])
        if chances.size:
            _copy(new_known, m, k, size, chances, begin)
        if parents.size:
            for j in range(k, k + size):
                parents[j] = i
        k += size


@compiled(forceinline=True)
def _fill(table, each, k, size, value):
    for j in range(k, k + size):
        table[each, j] = value


@compiled(forceinline=True)
def _copy(table, each, k, size, values, begin):
    for j in range(size):
        table[each, k + j] = values[begin + j]


@compiled
def keep(holds, given, kept):
    """Move those columns of a table, shape (n, tuples), together for which something holds."""
    for each in range(given.shape[0]):
        k = 0
        for i in range(holds.size):
            if k < kept.shape[1]:
                kept[each, k] = given[each, i]
            k += holds[i]


@compiled(allocates=True)
def judge(
    kind, rows, chances, streams, buckets, windows, at_least, doubt, wants, work, out, verdicts
):
    """Decide tuples: verdicts, and probabilities where `out` has room for them.

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
            known = told_by_links(chances[:, k], at_least, doubt, wants)
        if known == 0.0:
            for i in range(begins.size):
                event = begins[i] + rows[i, k]
                end[i], law[i] = all_ends[event], all_laws[event]
            known = told_by_ends(kind, end, law, chances[:, k], buckets, lows, highs)
        verdict = YES
        if known == 0.0:
            known = whole_probability(kind, end, law, buckets, lows, highs, work)
            verdict = verdict_of(known, at_least, doubt)
        verdicts[k] = verdict
        if out.size:
            out[k] = known
