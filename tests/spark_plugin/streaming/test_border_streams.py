"""Border crossings of streams: those of the tables of all readings that are not late."""

from __future__ import annotations

import itertools
import json
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from coincide import BorderOptions, border_crossing_streams, border_crossing_tables
from spark_plugin.ways.streaming.arguments import STATE_STORE
from tests.helpers.border_tables import least_last, random_queries
from tests.helpers.spark_streams import (
    BEGIN,
    appended,
    as_json,
    stream_of,
    write_files,
)

pytestmark = pytest.mark.spark
SCHEMA = "truck string, at timestamp, x double, y double"
NAMES: dict[str, Any] = {"stream": "truck", "time": "at", "query": "query"}
CASES: dict[str, dict[str, Any]] = {
    "hysteresis": {
        "values": ["x", "y"],
        "options": BorderOptions(hysteresis=1.5, first="outside", interpolate=True),
    },
}
DELAY, SPAN = 800, 20_000


def readings(random: np.random.Generator, n: int, batches: int) -> list[pa.Table]:
    """Readings of a stream within their delay, cut into files, and the last one of all."""
    times = BEGIN + random.integers(0, SPAN, n) // 20 * 20
    order = np.argsort(times + random.integers(0, DELAY, n), kind="stable")
    null = random.random(n) < 0.05
    table = pa.table({
        "truck": pa.array([f"t{k}" for k in random.integers(0, 7, n)]),
        "at": pa.array(times * 1000, pa.timestamp("us", "UTC")),
        "x": pa.array(np.rint(random.normal(0, 5, n)), mask=null),
        "y": np.rint(random.normal(0, 5, n)),
    }).take(pa.array(order))  # fmt: skip
    cuts = np.linspace(0, n, batches + 1).astype(int)
    files = [table.slice(a, b - a) for a, b in itertools.pairwise(cuts.tolist())]
    last = {"truck": ["last"], "at": [(BEGIN + 10**9) * 1000], "x": [0.0], "y": [0.0]}
    return [*files, pa.table(last, schema=table.schema)]


def crossings(stream: DataFrame, name: str, **more: Any) -> DataFrame:
    dimensions = len(CASES[name]["values"])
    queries = random_queries(2, pa.array(range(25)), dimensions)
    return border_crossing_streams(
        stream, queries, **NAMES, **CASES[name], delay=f"{DELAY}ms", name=name, **more
    )


def expected(tables: list[pa.Table], name: str) -> pa.Table:
    queries = random_queries(2, pa.array(range(25)), len(CASES[name]["values"]))
    return border_crossing_tables(
        least_last(pa.concat_tables(tables)), queries, **NAMES, **CASES[name]
    )


@pytest.mark.slow
def test_crossings_are_those_of_tables_but_for_late_readings(
    spark: SparkSession, tmp_path: Path
) -> None:
    for name, value in {**STATE_STORE, "spark.sql.session.timeZone": "UTC"}.items():
        spark.conf.set(name, value)
    files = readings(np.random.default_rng(1), 600, 4)
    late = files[0].slice(0, 3)
    folder, progress = tmp_path / "readings", []

    def joined(slice_length: str | None = None) -> DataFrame:
        stream = stream_of(spark, folder, SCHEMA)
        found = [
            crossings(stream, name, slice_length=slice_length).select(
                F.lit(name).alias("name"), as_json()
            )
            for name in CASES
        ]
        return reduce(DataFrame.unionAll, found)

    for until in (3, 6):  # the second query goes on where the first one has ended
        write_files(folder, [*files, late][:until])
        progress += appended(joined(), tmp_path)
    rows = [tuple(row) for row in spark.read.parquet(str(tmp_path / "found")).collect()]
    for name in CASES:
        own = [json.loads(text) for case, text in rows if case == name]
        wanted = expected(files[:-1], name)
        assert wanted.num_rows > 100
        assert sorted(map(str, own)) == sorted(map(str, as_strings(wanted)))
        counted = [each["observedMetrics"][f"{name}_late"]["readings"] for each in progress]
        assert sum(counted) == late.num_rows
        seen = [each["observedMetrics"][f"{name}_readings"]["rows"] for each in progress]
        assert sum(seen) == 604
    write_files(folder, [*files, late, late])  # without new rows nothing would run
    with pytest.raises(
        StreamingQueryException, match=r"slice_length was '1000000 us' and is '3000000 us'"
    ):
        appended(joined("3s"), tmp_path)


def as_strings(table: pa.Table) -> list[dict[str, Any]]:
    """Rows as Spark writes them in JSON."""
    rows = table.to_pylist()
    for row in rows:
        for name, value in row.items():
            if hasattr(value, "isoformat"):
                row[name] = f"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03}Z"
    return rows
