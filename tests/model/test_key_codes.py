"""Codes of whole numbers are those of Arrow's dictionaries, or they are missing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from coincide.engine.events.sides import _dense
from coincide.model.key_codes import codes_of

LARGEST = 2**63 - 1


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (-5, 20), (-LARGEST - 1, -LARGEST + 300), (LARGEST - 300, LARGEST)]
)
def test_codes_are_those_of_dictionaries(low: int, high: int) -> None:
    numbers = np.random.default_rng(1).integers(low, high, 1_000)
    encoded = pc.dictionary_encode(pa.array(numbers))
    for found in (codes_of(numbers), _dense(pa.array(numbers))):
        assert found is not None
        assert found[0].tolist() == encoded.indices.to_pylist()
        assert found[1] == len(encoded.dictionary)


@pytest.mark.parametrize("numbers", [[], [0, 2], [-LARGEST - 1, LARGEST]])
def test_numbers_that_are_few_or_far_apart_have_no_table(numbers: list[int]) -> None:
    assert codes_of(np.array(numbers, np.int64)) is None
    codes, distinct = _dense(pa.array(numbers, pa.int64()))
    assert codes.tolist() == list(range(len(numbers)))
    assert distinct == max(1, len(numbers))
