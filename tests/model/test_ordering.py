"""The order of whole numbers is that of NumPy's stable sort, whatever the way to it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from coincide.model.ordering import latest_so_far, stable_order

LARGEST = 2**63 - 1
Make = Callable[[np.random.Generator, int], np.ndarray]
KEYS: dict[str, Make] = {
    "one value": lambda random, n: np.full(n, 7),
    "two values": lambda random, n: random.integers(0, 2, n),
    "a digit": lambda random, n: random.integers(-100, 156, n),
    "two digits": lambda random, n: random.integers(0, 2**16, n),
    "three digits": lambda random, n: random.integers(0, 2**17, n),
    "all digits": lambda random, n: random.integers(-LARGEST - 1, LARGEST, n, endpoint=True),
    "both ends": lambda random, n: random.choice([-LARGEST - 1, LARGEST, 0], n),
    "in order": lambda random, n: np.sort(random.integers(0, 99, n)),
    "descending": lambda random, n: np.arange(n)[::-1],
    "runs": lambda random, n: np.concatenate([np.arange(n // 2), np.arange(n - n // 2)]),
    "nearly in order": lambda random, n: 10 * np.arange(n) + random.integers(0, 99, n),
    "far apart from order": lambda random, n: np.arange(n) + random.integers(0, n + 1, n),
    "every other one": lambda random, n: random.integers(0, 2**40, 2 * n)[::2],
}


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("n", [0, 1, 2, 33, 2047, 2048, 20_000, 40_000])
def test_order_is_that_of_numpy(name: str, n: int) -> None:
    for seed in range(3):
        keys = KEYS[name](np.random.default_rng(seed), n).astype(np.int64, copy=False)
        before = keys.copy()
        found = stable_order(keys)
        assert found.dtype == np.int64
        assert np.array_equal(found, np.argsort(keys, kind="stable"))
        assert np.array_equal(keys, before)
        for groups in (1, 24, 2**40):
            group = np.random.default_rng(seed).integers(0, groups, n)
            assert np.array_equal(stable_order(keys, group), np.lexsort((keys, group)))


@pytest.mark.parametrize("bits", [1, 9, 30, 52, 63])
def test_threads_change_nothing(bits: int) -> None:
    """Whether most keys are in few buckets or not, and whether they fit a word with their rows or not."""
    random = np.random.default_rng(bits)
    for keys in (
        random.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), 700_000),
        np.append(random.integers(0, 40, 700_000), 2**bits - 1)[::-1],
    ):
        expected = np.argsort(keys, kind="stable")
        group = random.integers(0, 3, keys.size)
        for threads in (1, 3):
            assert np.array_equal(stable_order(keys, threads=threads), expected)
            found = stable_order(keys, group, threads)
            assert np.array_equal(found, expected[np.argsort(group[expected], kind="stable")])


def test_the_latest_so_far_of_each_group() -> None:
    groups = np.array([0, 0, 0, 0, 1, 1, 2])
    times = np.array([5, 3, 4, 6, 1, 1, 0])
    assert latest_so_far(groups, times).tolist() == [5, 5, 5, 6, 1, 1, 0]
    far = 2**61
    times = np.array([far, -far, -far])
    assert (latest_so_far(np.array([0, 0, 1]), times) - times).tolist() == [0, 2 * far, 0]
    assert latest_so_far(groups[:0], times[:0]).tolist() == []
