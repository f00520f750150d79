"""Windows with one end on Spark: every way gives what one process gives."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from coincide import (
    ConditionError,
    CorrelateOptions,
    correlate,
    correlate_files,
    correlate_tables,
    within,
)
from tests.helpers.histogram_tables import in_order

pytestmark = pytest.mark.spark
CASES = int(os.environ.get("COINCIDE_CASES", "3"))
TIMES: dict[str, Any] = {"left_time": "t", "right_time": "t"}
WAYS: dict[str, dict[str, Any]] = {
    "exchange": {"way": "exchange", "slices": 4}, "small slices": {"way": "exchange", "slice_rows": 60},
    "small left": {"way": "broadcast-left"}, "small right": {"way": "broadcast-right"},
    "both": {"way": "broadcast-both"}, "auto": {},
}  # fmt: skip


def stamped(rng: np.random.Generator, size: int) -> pa.Table:
    """Instants, some of which are alike, with keys that may be missing."""
    scale, origin = [(1, 0), (10**9, 1_700_000_000 * 10**9), (1, -(2**60))][rng.integers(3)]
    return pa.table({
        "id": np.arange(size), "t": np.sort(rng.integers(0, 4 * size, size)) * scale + origin,
        "key": pa.array(rng.choice([1, 2, None], size, p=[0.5, 0.4, 0.1]).tolist(), pa.int64()),
    })  # fmt: skip


def drawn(seed: int) -> tuple[list[pa.Table], dict[str, Any]]:
    """Both sides, and the question."""
    rng = np.random.default_rng(seed)
    bound = int(rng.choice([-40, -1, 0, 1, 40]))
    is_backward = rng.random() < 0.5
    ends = (None, bound) if is_backward else (bound, None)
    words = ["last" if is_backward else "first"]
    words += ["nearest"] * (bound <= 0 if is_backward else bound >= 0)
    asked: dict[str, Any] = {
        "within": within(*ends, closed=rng.choice(["both", "neither"])), **TIMES,
        "by": [(), "key"][rng.integers(2)],
    }  # fmt: skip
    if rng.random() < 0.2:
        asked["how"] = str(rng.choice(["semi", "anti"]))
    else:
        asked |= {
            "emit": "best", "prefer": str(rng.choice(words)),
            "k": int(rng.integers(1, 4)), "how": str(rng.choice(["inner", "left"])),
            "ties": str(rng.choice(["order", "all"])), "pair_columns": "delta", "probability": True,
        }  # fmt: skip
    sides = [stamped(np.random.default_rng((seed, side)), 150) for side in range(2)]
    origin = sides[0]["t"][0].as_py() - sides[1]["t"][0].as_py()
    sides[1] = sides[1].set_column(1, "t", pa.array(sides[1]["t"].to_numpy() + origin))
    return sides, asked


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(CASES))
def test_as_in_one_process(spark: SparkSession, seed: int, way: str) -> None:
    tables, asked = drawn(100 * seed + len(way))
    want = correlate_tables(*tables, **asked)
    frames = map(spark.createDataFrame, tables)
    found = correlate(*frames, **asked, options=CorrelateOptions(**WAYS[way]))
    assert in_order(found.toArrow()) == in_order(want)


EVENT_BEFORE: dict[str, Any] = {
    **TIMES, "within": (-9, 4), "how": "left", "emit": "aggregates", "including": "previous",
    "aggregates": {"n": "count", "latest": ("t", "last"), "first": ("t", "min"), "late": ("delta", "sum")},
}  # fmt: skip
"""Any of several events of one time before the window may count: its time is the same."""


@pytest.mark.parametrize("way", [*WAYS, "files"])
def test_the_event_before_a_window(spark: SparkSession, tmp_path: Path, way: str) -> None:
    """However far back it is, also where rows are cut into slices of time."""
    rng = np.random.default_rng(len(way))
    left, right = (
        pa.table(
            {"id": np.arange(n), "t": np.sort(rng.integers(0, 90_000, n)), "key": np.arange(n) % 3}
        )
        for n in (150, 40)
    )
    asked = EVENT_BEFORE | {"by": [(), "key"][len(way) % 2]}
    want = correlate_tables(left, right, **asked)
    assert pc.sum(pc.equal(want["n"], 1)).as_py() > 100
    if way == "files":
        paths = [str(tmp_path / f"{n}.parquet") for n in range(2)]
        for table, path in zip((left, right), paths, strict=True):
            pq.write_table(table, path, row_group_size=16)
        found = correlate_files(
            spark, *paths, **asked, options=CorrelateOptions(way="files", slices=4)
        )
    elif way == "small left":
        with pytest.raises(ConditionError, match=r"last event before.*broadcast-right"):
            correlate(
                *map(spark.createDataFrame, (left, right)), **asked,
                options=CorrelateOptions(**WAYS[way]),
            )  # fmt: skip
        return
    else:
        frames = map(spark.createDataFrame, (left, right))
        found = correlate(*frames, **asked, options=CorrelateOptions(**WAYS[way]))
    assert in_order(found.toArrow()) == in_order(want)


@pytest.mark.parametrize("seed", range(CASES))
def test_files(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    tables, asked = drawn(100 * seed)
    paths = [tmp_path / f"{side}.parquet" for side in ("left", "right")]
    for table, path in zip(tables, paths, strict=True):
        pq.write_table(table, path, row_group_size=16)
    want = correlate_tables(*tables, **asked)
    options = CorrelateOptions(way="files", slices=4)
    found = correlate_files(spark, *map(str, paths), **asked, options=options)
    assert in_order(found.toArrow()) == in_order(want)
