"""Two small streams, a condition, and the pairs that they should give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from coincide import CorrelateOptions, TimingCondition, correlate_tables, within
from tests.helpers.rows import pair_ids

CONDITION = TimingCondition(within(-40, 60), 0.5)


def stream(seed: int, n: int = 300) -> pa.Table:
    rng = np.random.default_rng(seed)
    low = np.sort(rng.integers(0, 6000, n))
    return pa.table({
        "min_time": low, "max_time": low + rng.choice([0, 5, 30, 200], n), "id": np.arange(n) + 1,
        "key": rng.choice(["a", "b"], n, p=[0.9, 0.1]),
    })  # fmt: skip


LEFT, RIGHT = stream(1), stream(2)


def expected_pairs(**arguments: Any) -> list[tuple[int, int]]:
    table = correlate_tables(LEFT, RIGHT, CONDITION, **arguments)
    return pair_ids(table)


def declared(**more: Any) -> CorrelateOptions:
    """Lengths that are known, and few slices."""
    known = {"left_longest": 2**50, "right_longest": 2**50, "slices": 2}
    return CorrelateOptions(**known | more)


def unseen(**more: Any) -> CorrelateOptions:
    """Options of a join without a planning job."""
    return declared(**{"slices": None, "way": "broadcast-left"} | more)
