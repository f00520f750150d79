"""Clusters against the reference: labels, ways, threads, and the order of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from coincide import CausalityCondition, Ellipsoidal, Temporal
from coincide.model.causality.spaces import PlacedEvents
from coincide.model.units import Tick
from cpu_fallback.causality import CausalityJoin, cluster_labels
from cpu_fallback.reference import causality as reference
from tests.cpu_fallback.test_causality import WAYS, model_of, pairs_of, some_events
from tests.helpers.causality_cases import Case, plane_cases, sides_of


@settings(max_examples=60)
@given(plane_cases())
def test_labels_are_those_of_the_reference(case: Case) -> None:
    model, events = model_of(case), sides_of(case)[0]
    pairs = reference.causality_in_one(case.causes, case.exact, reference.plane_distance2)
    expected = reference.clusters(len(case.causes), pairs)
    expected = [-1 if None in e else k for e, k in zip(case.causes, expected, strict=True)]
    for way in WAYS:
        labels, counters = cluster_labels(events, model, way=way)
        assert labels.tolist() == expected
        assert counters.pairs <= counters.candidates


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_and_order_do_not_matter(threads: int) -> None:
    events = some_events(3, 4000)
    assert events.points is not None
    model = CausalityCondition(Ellipsoidal(0.2, 2000)).model(Tick())
    labels, _ = cluster_labels(events, model, threads=threads)
    pairs = pairs_of(CausalityJoin(events, None, model))
    assert labels.tolist() == smallest_reachable(len(events), pairs)
    assert 10 < np.unique(labels).size < 3990
    order = np.random.default_rng(1).permutation(len(events))
    mixed = replace(events, times=events.times[order], points=events.points[:, order])
    again, _ = cluster_labels(mixed, model, threads=threads)
    same = labels[order]
    assert np.unique(np.stack([same, again]), axis=1).shape[1] == np.unique(labels).size


def smallest_reachable(n: int, pairs: list[tuple[int, int]]) -> list[int]:
    """By a search from each row that has not been reached."""
    near: list[list[int]] = [[] for _ in range(n)]
    for i, j in pairs:
        near[i].append(j)
        near[j].append(i)
    label = [-1] * n
    for start in range(n):
        waiting = [start] if label[start] < 0 else []
        while waiting:
            i = waiting.pop()
            if label[i] < 0:
                label[i] = start
                waiting += near[i]
    return label


def test_a_chain_of_times_takes_one_look_at_each_event() -> None:
    n = 50_000
    events = PlacedEvents(np.arange(n) // 2)
    model = CausalityCondition(Temporal(0, n)).model(Tick())
    labels, counters = cluster_labels(events, model)
    assert (labels == 0).all()
    assert counters.pairs == n * (n - 1) // 2
