"""Spark's generated methods stay short enough for Java to compile: longer ones are interpreted, slowly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from coincide import CorrelateOptions, TimingCondition, correlate, within

pytestmark = pytest.mark.spark
HUGE = 8000
"""Bytes of code in a method, beyond which Java's compiler leaves it alone."""
KINDS = {
    "instants": (pa.timestamp("us", "UTC"), {}),
    "integers of another unit": (pa.int64(), {"unit": "ms", "tick": "us"}),
    "floats": (pa.float64(), {"unit": "s"}),
}


@pytest.fixture
def plain(compiled_spark: SparkSession) -> Iterator[SparkSession]:
    """Without adaptive execution, which knows its stages only once it has run them."""
    compiled_spark.conf.set("spark.sql.adaptive.enabled", "false")
    yield compiled_spark
    compiled_spark.conf.unset("spark.sql.adaptive.enabled")


@pytest.mark.parametrize(("way", "how"), [("exchange", "left"), ("broadcast-right", "inner")])
@pytest.mark.parametrize("kind", KINDS)
def test_methods_are_short(
    plain: SparkSession, tmp_path: Path, kind: str, way: Any, how: Any
) -> None:
    arrow, options = KINDS[kind]
    times = pa.array([float(i) if arrow == pa.float64() else i for i in range(50)], arrow)
    table = pa.table(
        {"min_time": times, "max_time": times, "id": range(50), "key": ["a", "b"] * 25}
    )
    path = str(tmp_path / "events.parquet")
    pq.write_table(table, path)
    left, right = plain.read.parquet(path), plain.read.parquet(path)
    found = correlate(
        left, right, TimingCondition(within("-1s", "1s"), 0.5), by="key", how=how,
        options=CorrelateOptions(
            way=way, left_longest="2s", right_longest="2s", slices=6, **options
        ),
    )  # fmt: skip
    stages = found._jdf.queryExecution().debug().codegenToSeq()
    sizes = [stages.apply(i)._3().maxMethodCodeSize() for i in range(stages.size())]
    assert sizes
    assert max(sizes) < HUGE
