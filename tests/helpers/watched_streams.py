"""Operators that follow streams, and a driver of their own that runs all: FOLDER [changed]."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from coincide import (
    BorderOptions,
    CausalityCondition,
    CorrelateOptions,
    Spatial,
    Temporal,
    WindowedCausality,
    WindowOptions,
    border_crossing_streams,
    border_crossing_tables,
    transition_streams,
    transition_tables,
    windowed_causality_streams,
)
from spark_plugin.cluster.session import local_session
from spark_plugin.ways.streaming.arguments import STATE_STORE
from tests.helpers.border_tables import random_queries
from tests.helpers.spark_streams import BEGIN, FAR, SPAN, stream_of
from tests.helpers.transition_cases import stream_rows

SCHEMA = "id bigint, site string, zone bigint, event string, at bigint, x double, y double"
DELAY = 500
_CROSSINGS: dict[str, Any] = {
    "stream": "site", "time": "at", "values": "x", "query": "query",
    "options": BorderOptions(unit="ms"),
}  # fmt: skip
_TRANSITIONS: dict[str, Any] = {
    "query": "zone", "stream": "site", "time": "at", "repeated": "first",
    "options": CorrelateOptions(unit="ms"),
}  # fmt: skip
_NEAR = CausalityCondition([Temporal(0, 400), Spatial(4.0)])
_WINDOWS: dict[str, Any] = {"time": "at", "arrival": "at", "place": ("x", "y")}


def rows(random: np.random.Generator, n: int) -> pa.Table:
    """What the operators are given, in the order in which it comes; no two rows have one time."""
    at = BEGIN + random.permutation(SPAN)[:n]
    order = np.argsort(at + random.integers(0, DELAY, n), kind="stable")
    table = pa.table({
        "id": np.arange(n), "site": [f"s{k}" for k in random.integers(0, 5, n)],
        "zone": random.integers(0, 3, n), "event": [("O", "I")[k] for k in random.integers(0, 2, n)],
        "at": at, "x": np.rint(random.normal(0, 5, n)), "y": np.rint(random.normal(0, 5, n)),
    })  # fmt: skip
    return table.take(pa.array(order))


def last_row() -> pa.Table:
    """The row that closes all slices but its own."""
    return pa.table({
        "id": [-1], "site": ["last"], "zone": [9], "event": ["I"], "at": [FAR], "x": [0.0], "y": [0.0],
    })  # fmt: skip


def _queries(seed: int) -> pa.Table:
    return random_queries(seed, pa.array(range(20)), 1)


OPERATORS: dict[str, Callable[[DataFrame, bool], DataFrame]] = {
    "crossings": lambda stream, changed: border_crossing_streams(
        stream, _queries(3 if changed else 2), delay=DELAY, **_CROSSINGS
    ),
    "transitions": lambda stream, changed: transition_streams(
        stream, within=500 if changed else 400, delay=DELAY, **_TRANSITIONS
    ),
    "windows": lambda stream, changed: windowed_causality_streams(
        stream, _NEAR, by="site", delay=DELAY, options=_options(20 if changed else 30), **_WINDOWS
    ),
}
"""By name what finds something in a stream of rows; changed, with another argument."""


def _options(window: int) -> WindowOptions:
    return WindowOptions(window, unit="ms")


def expected(table: pa.Table) -> dict[str, list[dict[str, Any]]]:
    """What the operators have to find."""
    table = table.sort_by("at")
    windows: list[dict[str, Any]] = []
    for site in pc.unique(table["site"]).to_pylist():
        window = WindowedCausality(_NEAR, options=_options(30), **_WINDOWS)
        found = window.push(table.filter(pc.equal(table["site"], site)))
        windows += [{"site": site, **row} for row in found.to_pylist()]
    crossings = border_crossing_tables(table, _queries(2), **_CROSSINGS)
    transitions = transition_tables(table, within=400, until=FAR - DELAY, **_TRANSITIONS)
    return {
        "crossings": crossings.to_pylist(), "transitions": stream_rows(transitions),
        "windows": windows,
    }  # fmt: skip


def main(folder: Path, is_changed: bool) -> int:
    """Run all operators; how many of them fail."""
    spark = local_session("local[2]", "coincide-watched-streams", **STATE_STORE)
    queries = []
    for name, find in OPERATORS.items():
        found = find(stream_of(spark, folder / "0", SCHEMA), is_changed)
        writer = found.writeStream.format("parquet").option("path", str(folder / "found" / name))
        writer = writer.option("checkpointLocation", str(folder / "checkpoint" / name))
        queries.append(writer.trigger(availableNow=True).start())
    failed = 0
    for query in queries:
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            print(error)
            failed += 1
    spark.stop()
    return failed


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), "changed" in sys.argv[2:]))
