"""Seeded sources shaped like those of lightning: flashes of many sources, close in space and time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

US = 1_000_000
PER_FLASH = 300
STORMS = 40
EXTENT_KM, STORM_KM, TOP_KM = 600.0, 12.0, 14.0
STEP_KM, GAP_US = 0.35, 800


def sources(n: int, seed: int) -> pa.Table:
    """``id``, ``time`` (microseconds) and ``x``, ``y``, ``z`` (kilometres) of sources, by time."""
    random = np.random.default_rng(seed)
    flash = np.sort(random.integers(0, max(1, n // PER_FLASH), n))
    flashes = int(flash[-1]) + 1 if n else 0
    # Four flashes a second over all storms.
    begin = random.integers(0, max(1, flashes // 4) * US + 1, flashes)
    storm = random.uniform(0, EXTENT_KM, (STORMS, 2))[random.integers(0, STORMS, flashes)]
    origin = np.column_stack(
        [storm + random.normal(0, STORM_KM, (flashes, 2)), random.uniform(3, TOP_KM, flashes)]
    )
    steps = random.normal(0, STEP_KM, (n, 3))
    later = random.exponential(GAP_US, n)
    first = np.searchsorted(flash, np.arange(flashes))
    place = _since_first(steps, first, flash) + origin[flash]
    time = begin[flash] + _since_first(later[:, None], first, flash)[:, 0].astype(np.int64)
    order = np.argsort(time, kind="stable")
    columns = dict(zip("xyz", place[order].T, strict=True))
    return pa.table({"id": np.arange(n), "time": time[order], **columns})


def _since_first(steps: np.ndarray, first: np.ndarray, flash: np.ndarray) -> np.ndarray:
    """Sums of the steps of each flash from its first source on."""
    sums = np.cumsum(steps, axis=0)
    before = sums[first] - steps[first] if first.size else sums[:0]
    return sums - before[flash]
