"""The join with NCLS for the candidates and the closed form in NumPy."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from ncls import NCLS

from bench.events import Condition


def ncls_pairs(left: pa.Table, right: pa.Table, condition: Condition) -> pa.Table:
    """All pairs of ids of two tables of microseconds."""
    low1, high1, low2, high2 = (
        table[name].to_numpy() for table in (left, right) for name in ("min_time", "max_time")
    )
    # NCLS takes half-open intervals of numbers that are not negative.
    origin = min(low1.min(), low2.min()) - condition.deadline_us
    index = NCLS(low2 - origin, high2 + 1 - origin, np.arange(low2.size))
    starts = low1 - condition.deadline_us - origin
    ends = high1 + condition.deadline_us + 1 - origin
    i, j = index.all_overlaps_both(starts, ends, np.arange(low1.size))
    shift = (high2[j] - high1[i]).astype(np.float64)
    l1, l2 = (high1 - low1)[i].astype(np.float64), (high2 - low2)[j].astype(np.float64)
    deadline = float(condition.deadline_us)
    p = _cdf(deadline - shift, l1, l2) - _cdf(-deadline - shift, l1, l2)
    found = p >= condition.confidence - 2.0**-50
    ids = left["id"].to_numpy()[i[found]], right["id"].to_numpy()[j[found]]
    return pa.table(ids, names=["left_id", "right_id"])


def _cdf(z: np.ndarray, l1: np.ndarray, l2: np.ndarray) -> np.ndarray:
    u, v = z + l2, l1 - z
    shorter, longer, area = np.minimum(l1, l2), np.maximum(l1, l2), 2.0 * (l1 * l2)
    return np.select(
        [u <= 0.0, v <= 0.0, u <= shorter, u <= longer],
        [0.0, 1.0, u * u / area, (2.0 * u - shorter) / (2.0 * longer)],
        1.0 - v * v / area,
    )
