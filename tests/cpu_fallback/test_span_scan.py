"""A scan of starts finds what bands find: counts, pairs and best matches. It looks at no other pairs."""

from __future__ import annotations

import numpy as np
import pytest

from coincide.model.condition import Closed
from coincide.model.counters import JoinCounters
from coincide.model.timestamps import IntervalEvents
from coincide.model.timestamps.spans import SpanPairs
from coincide.model.units import Tick
from cpu_fallback import EventJoin
from cpu_fallback.join import kernels, scan
from cpu_fallback.join.event_join import banded_sides
from tests.engine.test_spans import CLOSED, RELATIONS

ALWAYS = {"overlapping", "touching", "3 in common", "no gap", "a gap of 2"}
OF_INSTANTS = {"containing", "inside", "contains", "during"}


class BandedJoin(EventJoin):
    """The same join by bands, whatever the relation."""

    def __init__(self, left: IntervalEvents, right: IntervalEvents, model: SpanPairs) -> None:
        super().__init__(left, right, model)
        self._sides, self._kernels = banded_sides(left, right, model, 3, 1), kernels


def drawn(
    random: np.random.Generator, n: int, lengths: list[int], groups: int, scale: int
) -> IntervalEvents:
    length = scale * random.choice(lengths, n)
    start = scale * random.integers(-6, 40, n) + random.integers(0, scale, n)
    group = random.integers(-1, groups, n) if groups > 1 else None
    return IntervalEvents(start, start + length, group, groups)


def pairs_of(join: EventJoin, batch_pairs: int) -> np.ndarray:
    runs = join.chunks(batch_pairs)
    parts = [join.pairs(*run, join.left_order, join.right_order) for run in runs]
    found = np.concatenate([np.empty((2, 0), np.int64), *map(np.stack, parts)], axis=1)
    return found


def by_row(join: EventJoin, values: np.ndarray) -> np.ndarray:
    found = np.empty_like(values)
    found[join.left_order] = values
    return found


def check(name: str, closed: tuple[Closed, Closed], seed: int) -> bool:
    """Whether starts were scanned."""
    random = np.random.default_rng([seed, *name.encode()])
    groups, scale = [1, 1, 3][seed % 3], [1, 1, 2**52][seed % 3]
    kinds = [[0, 0, 1, 2, 5, 30], [0]] if seed % 2 else [[0, 1, 3, 9], [1, 2, 20]]
    sizes = random.choice([0, 1, 40, 300], 2)
    left, right = (
        drawn(random, n, kinds[(seed // 4 + side) % 2], groups, scale)
        for side, n in enumerate(sizes.tolist())
    )
    model = SpanPairs.of(RELATIONS[name][0].window(Tick()).bounds(closed), None)
    join, banded = (
        EventJoin(left, right, model, threads=1 + seed % 2),
        BandedJoin(left, right, model),
    )
    if join._kernels is not scan:
        return False
    assert np.array_equal(by_row(join, join.counts), by_row(banded, banded.counts))
    found, others = pairs_of(join, 50), pairs_of(banded, 10**9)
    assert np.array_equal(found, pairs_of(join, 10**9))
    # Left events in order of starts, and so the matches of each.
    rows = np.lexsort((others[1], right.min_time[others[1]], others[0]))
    places = np.argsort(join.left_order)[others[0][rows]]
    assert np.array_equal(found, others[:, rows][:, np.argsort(places, kind="stable")])
    assert join.counters == JoinCounters(found.shape[1], 0, found.shape[1])
    ranks = random.permutation(len(right))
    bests = [each.best(0, len(left), ranks[each.right_order]) for each in (join, banded)]
    for each, (best, merits, _) in zip((join, banded), bests, strict=True):
        best[best >= 0] = each.right_order[best[best >= 0]]
        best[:], merits[:] = by_row(each, best), by_row(each, merits)
    assert np.array_equal(bests[0][0], bests[1][0])
    assert bests[0][1].tobytes() == bests[1][1].tobytes()
    assert bests[0][2].pairs == join.counters.pairs
    return True


@pytest.mark.parametrize("name", RELATIONS)
def test_scans_find_what_bands_find(name: str) -> None:
    scanned = [check(name, (CLOSED[seed % 4], CLOSED[seed // 4 % 4]), seed) for seed in range(48)]
    assert all(scanned) == (name in ALWAYS)
    assert any(scanned) == (name in ALWAYS | OF_INSTANTS)
