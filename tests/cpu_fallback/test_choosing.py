"""The few pairs among which the best ones are: as sorting has them."""

from __future__ import annotations

import numpy as np
import pytest

from coincide.model.counters import offsets_of
from cpu_fallback.join.filtering import least_of_each


@pytest.mark.parametrize("k", [1, 2, 3, 4, 7, 30])
@pytest.mark.parametrize("order", ["any", "rising", "falling"])
def test_the_least_of_each(k: int, order: str) -> None:
    random = np.random.default_rng(k)
    counts = random.integers(0, 25, 60)
    offsets = offsets_of(counts)
    keys = random.integers(-9, 9, (2, offsets[-1]))
    if order != "any":
        keys.sort(axis=1)
    if order == "falling":
        keys = np.ascontiguousarray(keys[:, ::-1])
    chosen = least_of_each(offsets, (keys[0], keys[1]), k)
    pairs = list(zip(*keys.tolist(), strict=True))
    expected = []
    for first, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        own = pairs[first:stop]
        expected += [pair <= sorted(own)[:k][-1] for pair in own]
    assert chosen.tolist() == expected
    assert k > 24 or not chosen.all()
