"""Clusters: connected components of a self-join, whose pairs are not kept."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from coincide.model.causality.condition import CausalityModel
from coincide.model.causality.deciding import squared_gap
from coincide.model.causality.places import LayoutKind
from coincide.model.causality.spaces import H, PlacedEvents, X, Y, Z
from coincide.model.compiled import compiled
from coincide.model.counters import JoinCounters
from cpu_fallback.causality.join import CausalityJoin
from cpu_fallback.causality.kernels import RUN, first_bucket, links_of, new_memory, place
from cpu_fallback.union_find import connect, connect_pairs, flatten, merge, root_of

_BLOCKS_PER_THREAD = 16


def cluster_labels(
    events: PlacedEvents, model: CausalityModel, *, way: LayoutKind | None = None, threads: int = 1
) -> tuple[np.ndarray, JoinCounters]:
    """The smallest row of each event's cluster, -1 of no group: int64 array, shape (n,)."""
    # Memory is that of the sorted events and one number an event for each thread, however many
    # pairs there are.
    is_exact = events.lengths is None and events.templates is None
    # Else a pair may qualify in one of its orders only.
    is_halved = model.is_symmetric or (is_exact and model.is_forward)
    join = CausalityJoin(events, None if is_halved else events, model, way=way, threads=threads)
    sides, n = join.sides, len(events)
    parents = [np.arange(n) for _ in range(threads)]
    tallies = [np.zeros(3, np.int64) for _ in range(threads)]
    blocks = threads * _BLOCKS_PER_THREAD if threads > 1 else 1
    edges = [n * k // blocks for k in range(blocks + 1)]

    def work(thread: int) -> None:
        for k in range(thread, blocks, threads):
            connect_block(edges[k], edges[k + 1], sides, parents[thread], tallies[thread])

    if threads == 1:
        work(0)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(threads)))
    for other in parents[1:]:
        merge(parents[0], other)
    labels = smallest_rows(parents[0], sides.base.order)
    if events.group is not None:
        labels[events.group < 0] = -1
    candidates, probed, pairs = np.sum(tallies, axis=0).tolist()
    return labels, JoinCounters(candidates, probed, pairs)


def labels_of_pairs(
    n: int, group: np.ndarray | None, pairs: Iterable[tuple[np.ndarray, np.ndarray]]
) -> np.ndarray:
    """As `cluster_labels`, for pairs of rows that come run by run and are not kept."""
    labels = np.arange(n)
    for own, others in pairs:
        connect_pairs(own, others, labels)
    flatten(labels)
    if group is not None:
        labels[group < 0] = -1
    return labels


@compiled(allocates=True)
def connect_block(start, stop, sides, parent, tally):
    """Connect the events start ... stop with their matches."""
    base, found = sides.base, new_memory(sides.layout)
    bucket, begin = first_bucket(base, start), start
    while bucket < base.numbers.size and begin < stop:
        last = min(min(stop, begin + RUN), base.offsets[bucket + 1])
        link, links = np.int64(0), links_of(sides, bucket, found)  # a literal is compiled apart
        while link < links:
            link, spans = place(sides, begin, last, link, links, found)
            if sides.layout.sure:
                _connect_all(found.spans, spans, parent, tally)
            else:
                _connect_met(sides, found, spans, parent, tally)
        begin = last
        if last == base.offsets[bucket + 1]:
            bucket += 1


@compiled(allocates=True)
def _connect_all(spans, count, parent, tally):
    """Connect some events with all that are in their windows."""
    done, bucket = 0, -1
    for k in range(count):
        i, first, past = spans[k, 0], spans[k, 1], spans[k, 2]
        if spans[k, 3] != bucket:
            bucket, done = spans[k, 3], 0
        # Up to `done` all are connected with the first, by the event before.
        own = connect(parent, root_of(parent, i), root_of(parent, first))
        for j in range(max(first + 1, done), past):
            own = connect(parent, own, root_of(parent, j))
        done = past
        tally[0] += past - first
        tally[2] += past - first


@compiled(allocates=True)
def _connect_met(sides, found, spans, parent, tally):
    """Connect some events with those in their windows that qualify."""
    # Taken out of their tuples here: inside the loops that would cost more than a test does.
    rule, noted = sides.rule, found.spans
    times, lengths, points = sides.base.times, sides.base.lengths, sides.base.points
    placed, high = points.shape[0] > 0, points.shape[0] > H
    candidates, tested, connected, gap, dh = 0, 0, 0, 0.0, 0.0
    for k in range(spans):
        i, first, past = noted[k, 0], noted[k, 1], noted[k, 2]
        left, own = lengths[i] if lengths.size else 0, parent[i]
        while parent[own] != own:
            own = parent[own]
        candidates += past - first
        for j in range(first, past):
            if parent[j] == own:
                continue
            if placed:
                dx, dy, dz = (
                    points[X, j] - points[X, i], points[Y, j] - points[Y, i], points[Z, j] - points[Z, i]
                )  # fmt: skip
                gap, dh = squared_gap(dx, dy, dz), points[H, j] - points[H, i] if high else 0.0
            right = lengths[j] if lengths.size else 0
            tested += 1
            if rule.meets(gap, dh, times[j] - times[i], left, right):
                # Rare: each call of these lowers the number of clusters, or shortens a way.
                own = connect(parent, root_of(parent, i), root_of(parent, j))
                parent[j] = own
                connected += 1
    tally[0] += candidates
    tally[1] += tested
    tally[2] += connected


@compiled(allocates=True)
def smallest_rows(parent, order):
    """The smallest row of each cluster, by row."""
    least = np.full(parent.size, parent.size, np.int64)
    for i in range(parent.size):
        root = root_of(parent, i)
        least[root] = min(least[root], order[i])
    labels = np.empty(parent.size, np.int64)
    for i in range(parent.size):
        labels[order[i]] = least[root_of(parent, i)]
    return labels
