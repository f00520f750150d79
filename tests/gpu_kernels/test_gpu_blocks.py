"""Blocks of base events: as large as memory allows; launches that are refused; threads that fail.

Runs where there is a GPU, or in the CUDA simulator (``NUMBA_ENABLE_CUDASIM=1``), in which
`test_gpu_simulator` runs it.
"""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from coincide.model.class_choice import HostPopulation
from coincide.model.classes import MOST_CLASSES
from coincide.model.timestamps.intervals import IntervalTimes
from tests.helpers.simulator import gpu_problem

if problem := gpu_problem():
    pytest.skip(problem, allow_module_level=True)

from gpu_kernels import join
from gpu_kernels import sides as placing
from gpu_kernels.device import memory
from gpu_kernels.device.arrays import on_device, on_host
from gpu_kernels.kernels import join as placement
from gpu_kernels.kernels.compilation import launch_each
from gpu_kernels.kernels.join import MOST_ENTRIES, RECIPROCAL_BITS, Run


@pytest.mark.parametrize(
    ("free", "step"),
    [(0, 10), (90 * 128 * 4, 30), (1 << 40, 100)],
    ids=["full", "a quarter of what is free", "plenty"],
)
def test_blocks_take_a_share_of_memory(
    free: int, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join, "_FEW_ENTRIES", 30)
    monkeypatch.setattr(join, "_MANY_ENTRIES", 300)
    monkeypatch.setattr(join, "available", lambda: free)
    sides = join.BandedSides(None, np.zeros((1, 3, 4)))
    cut = sides.blocks(5, 1005)
    assert cut[0] == (5, 5 + step)
    assert cut[-1][1] == 1005
    assert all(a[1] == b[0] for a, b in itertools.pairwise(cut))
    assert sides.blocks(5, 15) == [(5, 15)]
    assert sides.blocks(5, 5) == []


def test_few_entries_ask_for_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking takes the driver longer than a small block does."""
    monkeypatch.setattr(join, "available", lambda: 1 / 0)
    assert join.BandedSides(None, np.zeros((1, 3, 4))).blocks(0, 1000) == [(0, 1000)]


@pytest.mark.parametrize("classes", [*range(1, 18), 100, 513, *range(1020, MOST_CLASSES + 1)])
def test_a_product_divides_entries_as_a_division(classes: int) -> None:
    assert join._MANY_ENTRIES <= MOST_ENTRIES
    last = np.arange(MOST_ENTRIES - 3 * MOST_CLASSES, MOST_ENTRIES, dtype=np.int64)
    run = Run.of(0, classes)
    assert np.array_equal((last * run.reciprocal) >> RECIPROCAL_BITS, last // classes)


def pool(free: int, used: int, limit: int) -> SimpleNamespace:
    """CuPy's memory pool."""
    return SimpleNamespace(
        free_bytes=lambda: free, used_bytes=lambda: used, get_limit=lambda: limit
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (pool(30, 50, 0), 130),
        (pool(30, 50, 200), 130),
        (pool(30, 50, 90), 40),
        (pool(0, 50, 50), 0),
    ],
    ids=["no limit", "limit beyond the device", "limit", "all used"],
)
def test_memory_that_is_left(
    given: SimpleNamespace, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = SimpleNamespace(memGetInfo=lambda: (100, 1 << 40))
    cupy = SimpleNamespace(
        get_default_memory_pool=lambda: given, cuda=SimpleNamespace(runtime=runtime)
    )
    monkeypatch.setattr(memory, "array_module", lambda: cupy)
    monkeypatch.setattr(memory, "SIMULATED", False)
    assert memory.available() == expected


def test_a_launch_refuses_what_the_kernel_does_not_take() -> None:
    scan = np.zeros(8, np.int64)
    with pytest.raises(TypeError, match="C-contiguous int64 array"):
        launch_each(placement.tile_owners, 4, scan[::2], scan)


def drawn_side(random: np.random.Generator, n: int, *, are_instants: bool, groups: int) -> Any:
    low = on_device(random.integers(0, 10_000, n))
    high = low if are_instants else low + on_device(random.choice(random.integers(0, 99, 9), n))
    group = on_device(random.integers(-1, groups, n)) if groups > 1 else None
    return placing.by_key(IntervalTimes(low, high), group)


@pytest.mark.parametrize("are_instants", [True, False], ids=["instants", "lengths"])
@pytest.mark.parametrize("groups", [1, 7])
def test_a_sample_tells_of_all_events(
    are_instants: bool, groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Classes and groups are those of all events; only ends beyond the sample are asked for."""
    random = np.random.default_rng(4)
    asked = []
    real = placing.OrderedEvents.classes_between

    def classes_between(self: Any, highest: np.ndarray) -> Any:
        asked.append(highest)
        return real(self, highest)

    monkeypatch.setattr(placing.OrderedEvents, "classes_between", classes_between)
    for n in (1, 50, 9000):  # the sample has every second one of 9000
        sides = [
            drawn_side(random, n, are_instants=each, groups=groups)
            for each in (are_instants, False)
        ]
        for side, found in zip(sides, placing.sampled(*sides, groups, None), strict=True):
            shapes, sample = on_host(side.shapes), found.shape_sample()
            for _ in range(20):
                ends = np.append(random.choice(sample, 3), sample.max() + 5 * random.integers(2))
                known, expected = (
                    each.classes_between(np.unique(ends))
                    for each in (found, HostPopulation(shapes, shapes, None))
                )
                for name in ("lowest", "highest", "share"):
                    assert np.array_equal(getattr(known, name), getattr(expected, name)), name
            assert not asked
            shares = found.group_shares(groups)
            if groups > 1:
                codes = on_host(side.group)
                assert shares.tolist() == [np.mean(codes == g) for g in range(groups)]
            else:
                assert shares is None
    other = np.setdiff1d(np.arange(sample.min(), sample.max()), sample)[-1]
    ends = np.array([other, sample.max()])
    known, expected = (
        each.classes_between(ends) for each in (found, HostPopulation(shapes, shapes, None))
    )
    assert known.lowest.tolist() == expected.lowest.tolist()
    assert known.highest.tolist() == expected.highest.tolist()
    assert len(asked) == 1
