"""Sides of a join in memory, from the ends of intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from coincide.engine.events.sides import Side
from coincide.engine.events.timestamps import INTERVALS


def interval_side(
    low: Any, high: Any, matchable: np.ndarray | None = None, keys: list[pa.Array] | None = None
) -> Side:
    """Events of intervals, without output columns."""
    low, high = np.asarray(low, np.int64), np.asarray(high, np.int64)
    return Side(high, high - low, INTERVALS, matchable, keys or [], [])
