"""A scan of starts finds what bands find: counts, pairs and best matches. It looks at no other pairs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import coincide.model.threads
from bench.hunt.relations import CLOSED, RELATIONS
from coincide.model.condition import Closed
from coincide.model.counters import JoinCounters
from coincide.model.timestamps import IntervalEvents
from coincide.model.timestamps.spans import SpanPairs
from coincide.model.units import Tick
from cpu_fallback import EventJoin
from cpu_fallback.join import kernels, scan
from cpu_fallback.join.event_join import banded_sides

ALWAYS = {"overlapping", "touching", "3 in common", "no gap", "a gap of 2"}
LEFT_INSTANTS = {"inside", "inside, as numbers", "during"}
RIGHT_INSTANTS = {"containing", "containing, off by 2", "contains"}
OF_INSTANTS = LEFT_INSTANTS | RIGHT_INSTANTS


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
    join = EventJoin(left, right, model_of(name, closed), threads=1 + seed % 2)
    return compare(join, left, right, model_of(name, closed), 50)


def model_of(name: str, closed: tuple[Closed, Closed]) -> SpanPairs:
    return SpanPairs.of(RELATIONS[name][0].window(Tick()).bounds(closed), None)


def compare(
    join: EventJoin,
    left: IntervalEvents,
    right: IntervalEvents,
    model: SpanPairs,
    batch_pairs: int,
) -> bool:
    """Whether starts were scanned; if so, bands find the same."""
    if join._kernels is not scan:
        return False
    banded = BandedJoin(left, right, model)
    assert np.array_equal(by_row(join, join.counts), by_row(banded, banded.counts))
    found, others = pairs_of(join, batch_pairs), pairs_of(banded, 10**9)
    assert np.array_equal(found, pairs_of(join, 10**9))
    # Left events in order of starts, and so the matches of each.
    rows = np.lexsort((others[1], right.min_time[others[1]], others[0]))
    places = np.argsort(join.left_order)[others[0][rows]]
    assert np.array_equal(found, others[:, rows][:, np.argsort(places, kind="stable")])
    assert join.counters == JoinCounters(found.shape[1], 0, found.shape[1])
    ranks = np.random.default_rng(len(right)).permutation(len(right))
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


FAR = 2**61 - 2**20


def many(
    random: np.random.Generator, n: int, lengths: list[int], groups: int, offset: int
) -> IntervalEvents:
    """Spans about ten ticks apart; if any last, a few do so until all have ended."""
    start = random.integers(0, 10 * n, n)
    length = random.choice(lengths, n)
    if max(lengths):
        length[random.choice(n, 5)] = 20 * n
        length[start.argmin()] = 20 * n
    group = random.integers(-1, groups, n) if groups > 1 else None
    return IntervalEvents(start + offset, start + length + offset, group, groups)


@pytest.mark.parametrize("name", sorted(ALWAYS | OF_INSTANTS))
def test_many_blocks_find_what_bands_find(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coincide.model.threads, "_SMALLEST_BLOCK", 500)
    assert len(coincide.model.threads.blocks_of(6_000, 3)) == 12
    lasting = [0, 1, 3, 9, 40]
    kinds = (
        [0] if name in LEFT_INSTANTS else lasting,
        [0] if name in RIGHT_INSTANTS else lasting,
    )
    random, scanned = np.random.default_rng([*name.encode()]), []
    for case, closed in enumerate(product(CLOSED, CLOSED)):
        groups, offset = 1 + 3 * (case % 2), (0, FAR, -FAR)[case % 3]
        left = many(random, 6_000, kinds[0], groups, offset)
        right = many(random, 5_000, kinds[1], groups, offset)
        if offset == 0 and len(kinds[1]) > 1:
            right.min_time[7], right.max_time[7] = -FAR, FAR
        model = model_of(name, closed)
        join = EventJoin(left, right, model, threads=3)
        scanned.append(compare(join, left, right, model, 2_000))
    # Instants that may be on no edge of a closed span must be looked at.
    assert all(scanned) == (name not in ("contains", "during"))
    assert any(scanned)


class Watched:
    """An array that counts the values that are read."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.reads = values, 0

    def __getitem__(self, place: int) -> np.int64:
        self.reads += 1
        value: np.int64 = self.values[place]
        return value


def test_a_block_skips_targets_that_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """One target lasts from first to last; kernels run as Python, so that reads can be counted."""
    n, size = 20_000, 32
    start = 100 * np.arange(n)
    left, right = IntervalEvents(start, start + 9), IntervalEvents(start, start + 5)
    right.max_time[0] = 100 * n
    model = model_of("overlapping", ("both", "both"))
    join, place = EventJoin(left, right, model), np.arange(n)
    # Compiled before Python takes the place of what they call.
    offsets, expected = join.offsets, join.best(0, n, place)[0]
    for name in ("_at_hand", "_first_at_hand", "_compared"):
        monkeypatch.setattr(scan, name, getattr(scan, name).py_func)
    watched = Watched(join._sides.targets.stops)
    sides = join._sides._replace(targets=join._sides.targets._replace(stops=watched))
    for begin in (n // 2, n - size):
        watched.reads, run = 0, slice(begin, begin + size)
        best, merits, out = np.empty(size, np.int64), np.empty(size), np.empty(2 * size, np.int64)
        scan.best_block.py_func(run.start, run.stop, sides, place, best, merits)
        assert np.array_equal(best, expected[run])
        values = (offsets, offsets[begin], place, place, out[:0], out)
        scan.fill_block.py_func(run.start, run.stop, sides, *values)
        assert np.array_equal(out[1::2], place[run])
        assert not out[::2].any()
        # A few for each event, and two runs at the start.
        assert watched.reads < 2 * (8 * size + 2 * scan._RUN)
