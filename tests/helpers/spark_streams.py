"""Random streams for Spark: rows in the order in which they come, cut into the files of micro-batches."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from coincide import CorrelateOptions, TimingCondition, correlate_streams, correlate_tables, within
from tests.helpers.comparison import OF_ONE_STREAM, SHAPES
from tests.helpers.histogram_tables import by_device, random_templates

MANY = int(os.environ.get("COINCIDE_STREAMS", "2"))
"""How many random streams the slow tests run."""
BEGIN = 1_700_000_000_000
"""When streams begin: milliseconds since 1970."""
SPAN = 20_000
FAR = BEGIN + 10**9
"""When the last row of each side comes, which closes all slices but its own."""
SCHEMA = "id bigint, min_time bigint, seen_at bigint, device string, key string"
SHAPES_OF_PAIRS = ("inner", "pairs", True)


@dataclass(frozen=True)
class Streams:
    """A case: what comes when, and its question."""

    files: tuple[list[pa.Table], list[pa.Table]]
    join: dict[str, Any]
    delays: tuple[int, int]
    shapes: list[tuple[str, str, bool]]
    is_one_stream: bool = False
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def sides(self) -> int:
        return 1 if self.is_one_stream else 2

    def asked(self, shape: tuple[str, str, bool]) -> dict[str, Any]:
        how, emit, probability = shape
        return {**self.join, "how": how, "emit": emit, "probability": probability}

    def written(self, folder: Path) -> list[Path]:
        return [write_files(folder / str(i), self.files[i]) for i in range(self.sides)]

    def joined(self, spark: SparkSession, folders: Sequence[Path]) -> DataFrame:
        """The rows of all shapes as JSON, with the number of the shape."""
        left, *right = (stream_of(spark, folder) for folder in folders)
        delays = dict(zip(("left_delay", "right_delay"), self.delays[: self.sides], strict=False))
        found = [
            correlate_streams(
                left,
                *right,
                **self.asked(shape),
                **delays,
                **self.more,
                late="rows",
                name=f"join{i}",
            ).select(F.lit(i).alias("shape"), as_json())
            for i, shape in enumerate(self.shapes)
        ]
        return reduce(DataFrame.unionAll, found)

    def check(self, rows: Sequence[tuple[int, str]]) -> int:
        """Hold rows against the batch join of all rows that are not late; the number of late ones."""
        found: list[list[dict[str, Any]]] = [[] for _ in self.shapes]
        for shape, text in rows:
            found[shape].append(json.loads(text))
        usual = self._late_of(found[0])
        for shape, of_shape in zip(self.shapes, found, strict=True):
            late = self._late_of(of_shape) if shape[0] in ("right", "full") else usual
            self._check_late(late)
            sides = [_without(self.files[i], late[i]) for i in range(self.sides)]
            expected = correlate_tables(*sides, **self.asked(shape)).to_pylist()
            own = [row for row in of_shape if row.pop("late") is None]
            if self.is_one_stream and shape[1] == "pairs":
                self._order_ties(own)
                self._order_ties(expected)
            assert multiset(own) == multiset(expected), shape
        return sum(map(len, usual))

    def _order_ties(self, rows: list[dict[str, Any]]) -> None:
        """Put the lower id first of events at one time: on Spark a hash says which of them is left."""
        table = pa.concat_tables(self.files[0])
        times = dict(zip(table["id"].to_pylist(), table["seen_at"].to_pylist(), strict=True))
        for row in rows:
            left, right = row["left_id"], row.get("right_id")
            if right is not None and times[left] == times[right]:
                row["left_id"], row["right_id"] = sorted((left, right))

    def _late_of(self, rows: list[dict[str, Any]]) -> tuple[set[int], set[int]]:
        late: tuple[set[int], set[int]] = set(), set()
        for row in rows:
            if row["late"] is not None:
                side = ("left", "right").index(row["late"])
                number = row[f"{row['late']}_id"]
                assert number not in late[side], "a late row came out twice"
                late[side].add(number)
        return late

    def _check_late(self, late: tuple[set[int], set[int]]) -> None:
        """A row within its delay is never late."""
        slack = 100 if "device" in repr(self.join) else 0
        for side in range(self.sides):
            latest = -(2**62)
            for table in self.files[side]:
                times = table["seen_at"].to_pylist()
                for number, time in zip(table["id"].to_pylist(), times, strict=True):
                    if number in late[side]:
                        assert time < latest - self.delays[side] + slack, (side, number)
                latest = max([latest, *(time for time in times if time is not None)])


def as_json() -> Any:
    return F.to_json(F.struct("*"), {"ignoreNullFields": "false"}).alias("row")


def multiset(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Rows without an order, nor their lists with one."""
    return sorted(
        repr([sorted(v) if isinstance(v, list) else v for v in row.values()]) for row in rows
    )


def _without(files: Sequence[pa.Table], late: set[int]) -> pa.Table:
    rows = pa.concat_tables(files[:-1])
    return rows.filter(pc.invert(pc.is_in(rows["id"], pa.array(sorted(late), pa.int64()))))


def write_files(folder: Path, tables: Sequence[pa.Table]) -> Path:
    """A file each, which Spark reads in this order."""
    folder.mkdir(parents=True, exist_ok=True)
    for i, table in enumerate(tables):
        path = folder / f"{i:03}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_600_000_000 + i, 1_600_000_000 + i))
    return folder


def stream_of(spark: SparkSession, folder: Path, schema: str = SCHEMA) -> DataFrame:
    """A folder as a stream, a file a micro-batch."""
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def streamed(found: DataFrame, name: str) -> tuple[list[tuple[Any, ...]], list[Any]]:
    """All rows that a query finds in files that are there, and its progress."""
    writer = found.writeStream.format("memory").queryName(name).outputMode("append")
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(300)
    return [tuple(row) for row in found.sparkSession.table(name).collect()], query.recentProgress


def appended(found: DataFrame, folder: Path) -> list[Any]:
    """What a query tells of its progress that appends to files, and goes on from its checkpoint."""
    writer = found.writeStream.format("parquet").option("path", str(folder / "found"))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(300)
    return list(query.recentProgress)


def random_streams(seed: int, *, shapes: int = 2, batches: int = 4, rows: int = 120) -> Streams:
    """A drawn case."""
    random = np.random.default_rng(seed)
    is_one_stream = seed % 5 == 4
    delays = tuple(int(random.choice([0, 50, 800, 3000])) for _ in range(2))
    delays = (delays[0], delays[0]) if is_one_stream else delays
    templates = random_templates(seed)
    kind = random.choice(["intervals", "instants", "histograms", "mixed"])
    times: dict[str, Any] = {
        "intervals": ("min_time", "seen_at"), "instants": "seen_at",
        "histograms": by_device(templates),
    }  # fmt: skip
    chosen = ["intervals", "histograms"] if kind == "mixed" else [kind, kind]
    chosen = chosen[:1] * 2 if is_one_stream else chosen
    ends = np.sort(random.integers(-300, 301, 2)) * int(random.choice([1, 1, 8]))
    confidence = float(random.choice([0.5, 0.8, 1.0, 0.05]))
    options = CorrelateOptions(
        unit="ms",
        left_longest=100 if chosen[0] == "intervals" else None,
        right_longest=100 if chosen[1] == "intervals" and not is_one_stream else None,
    )
    join: dict[str, Any] = {
        "condition": TimingCondition(within(int(ends[0]), int(ends[1])), confidence),
        "left_time": times[chosen[0]], "options": options,
        "by": ["key"] if random.random() < 0.6 else [],
    }  # fmt: skip
    if not is_one_stream:
        join["right_time"] = times[chosen[1]]
    of_two = [shape for shape in SHAPES if shape[:2] != ("right", "best")]
    possible = OF_ONE_STREAM if is_one_stream else of_two
    drawn = [possible[i] for i in random.integers(0, len(possible), shapes - 1)]
    case = Streams(
        tuple(arriving(random, int(random.integers(0, rows + 1)), delay, batches) for delay in delays),
        join, delays, [SHAPES_OF_PAIRS, *drawn], is_one_stream,
    )  # fmt: skip
    if random.random() < 0.3:
        case = replace(case, more={"slice_length": int(random.choice([300, 1000, 7001]))})
    return case


def arriving(
    random: np.random.Generator, n: int, delay: int, batches: int, late: float = 0.1
) -> list[pa.Table]:
    """Rows in the order in which they come, some late, with nulls, and the last row of all."""
    times = BEGIN + random.integers(0, SPAN, n) // 10 * 10
    comes = times + random.integers(0, delay + 1, n)
    is_late = random.random(n) < late
    comes = comes + np.where(is_late, random.integers(0, SPAN, n), 0)
    order = np.argsort(comes, kind="stable")
    lengths = random.choice([0, 10, 40, 100], n)
    null = random.random((2, n)) < 0.04
    table = pa.table({
        "id": np.arange(n),
        "min_time": pa.array(times - lengths, mask=null[0]),
        "seen_at": pa.array(times, mask=null[0]),
        "device": pa.array([f"d{i}" for i in random.integers(0, 4, n)], pa.string()),
        "key": pa.array([f"k{i}" for i in random.integers(0, 3, n)], pa.string(), mask=null[1]),
    }).take(pa.array(order))  # fmt: skip
    cuts = [0, *np.sort(random.integers(0, n + 1, batches - 1)).tolist(), n]
    files = [table.slice(a, b - a) for a, b in itertools.pairwise(cuts)]
    last = {"id": [-1], "min_time": [FAR], "seen_at": [FAR], "device": ["d0"], "key": ["k0"]}
    return [*files, pa.table(last, schema=table.schema)]
