"""Random readings and queries as tables, with all that can happen to readings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from coincide import BorderSummary


def random_readings(
    seed: int, n: int, streams: pa.Array, times: pa.DataType, dimensions: int = 1
) -> pa.Table:
    """Readings in random order: gaps, repeated times; walks of small steps, with jumps.

    Parameters
    ----------
    seed, n : int
    streams : pa.Array
        The ids.
    times : pa.DataType
    dimensions : int
        Columns x, y, ...
    """
    random = np.random.default_rng(seed)
    whose = random.integers(0, len(streams), n)
    when = random.integers(0, 3 * n // len(streams), n) * 1000
    columns: dict[str, Any] = {
        "stream": streams.take(pa.array(whose)),
        "at": pa.array(when, pa.int64()).cast(times),
    }
    for name in "xyz"[:dimensions]:
        values = np.rint(random.normal(0, 4, n) + 5 * np.sin(when / 9000))
        values[random.random(n) < 0.05] = np.nan
        columns[name] = pa.array(values, mask=random.random(n) < 0.05)
    return pa.table(columns)


def least_last(readings: pa.Table) -> pa.Table:
    """Readings in an order in which the last of a time is the one that counts on Spark: the least."""
    values = [name for name in "xyz" if name in readings.column_names]
    return readings.sort_by([("at", "ascending"), *((name, "descending") for name in values)])


def random_queries(seed: int, ids: pa.Array, dimensions: int = 1) -> pa.Table:
    """Ranges on the grid of the readings: open, empty and equal ones among them."""
    random = np.random.default_rng(seed)
    columns: dict[str, Any] = {"query": ids}
    for name in "xyz"[:dimensions]:
        ends = np.sort(random.integers(-9, 9, (len(ids), 2)), axis=1).astype(float)
        columns[f"lower_{name}"] = pa.array(ends[:, 0], mask=random.random(len(ids)) < 0.2)
        columns[f"upper_{name}"] = pa.array(ends[:, 1], mask=random.random(len(ids)) < 0.2)
    return pa.table(columns)


NAMES: dict[str, Any] = {"stream": "stream", "time": "at", "query": "query"}
"""What the columns are called."""


def counts_of(summary: BorderSummary) -> dict[str, Any]:
    """What must depend neither on batches nor on the way."""
    unlike = "retrieved", "way", "why"
    return {name: value for name, value in vars(summary).items() if name not in unlike}
