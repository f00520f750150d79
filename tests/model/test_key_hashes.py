"""Hashes of keys: the same in every process, and for equal values of any encoding."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from coincide.model.key_hashes import hashes_of, mixed

KEYS = {
    "numbers": pa.array([5, -1, 5, 2**62, None]),
    "texts": pa.array(["a", "", "a", "é", None]),
    "bytes": pa.array([b"a", b"", b"a", b"\xff", None]),
    "decimals": pa.array([1, 2, 1, 3, None], pa.decimal128(9, 2)),
}


@pytest.mark.parametrize("name", KEYS)
def test_equal_keys_have_equal_hashes_and_others_have_others(name: str) -> None:
    key = KEYS[name]
    found = hashes_of([key])
    assert found[0] == found[2]
    assert len(set(found.tolist())) == 4
    assert (found >= 0).all()
    # Wherever the rows lie, and however they are encoded.
    assert (hashes_of([key.take(pa.array([3, 0]))]) == found[[3, 0]]).all()
    if not pa.types.is_integer(key.type):
        assert (hashes_of([key.dictionary_encode().cast(key.type)]) == found).all()


def test_the_order_of_keys_counts() -> None:
    one, two = pa.array([1, 2]), pa.array([2, 1])
    first, second = hashes_of([one, two]).tolist()
    assert first != second


def test_hashes_of_numbers_in_a_row_fill_buckets_evenly() -> None:
    for step in (1, 8, 1 << 20):
        buckets = np.bincount(mixed(np.arange(8_000) * step) % 8, minlength=8)
        assert buckets.min() > 900
