"""Where the seconds of a join from Parquet to Parquet go: read, move, correlate, move, write.

The direct way is timed inside its tasks. Spark runs the steps of the other ways into each other, so there
a step is the difference of two runs, one of which goes on where the other one stops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bench.events import Load
from bench.experiment import Bench
from bench.joins import local_join
from bench.sessions import consume
from bench.timing import Timing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from coincide.engine.reports.join_report import JoinSummary

READ, MOVE_IN, CORRELATE = "read", "move in", "correlate"
STEPS = (READ, MOVE_IN, CORRELATE, "move out", "write")
_PARTITIONS = 8
_COLUMNS = ("id", "min_time", "max_time")


class PipeSteps:
    """Notes the seconds of each step of each way."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._ways: dict[str, dict[str, float]] = {}

    def direct(self, way: str, done: JoinSummary, total: Timing) -> None:
        """From the seconds inside the tasks, which use all cores; what remains is Spark's."""
        assert done.steps is not None
        within = [
            seconds / self._bench.cores
            for seconds in (done.steps.reading, done.steps.correlating, done.steps.writing)
        ]
        rest = max(0.0, total.median - sum(within))
        read, correlate, write = within
        self._note(way, read, rest, correlate, 0.0, write)

    def exchange(
        self,
        way: str,
        frames: tuple[DataFrame, DataFrame],
        load: Load,
        noop: Timing,
        files: Timing,
    ) -> None:
        """From runs that stop early, and from the same join of tables in one process."""
        left, right = load.tables()
        runs = {
            READ: lambda: [consume(frame.select(*_COLUMNS)) for frame in frames],
            MOVE_IN: lambda: consume(_moved(*frames)),
            CORRELATE: lambda: local_join(left, right, "pairs", self._bench.cores).num_rows,
        }
        read, moved, kernel = self._timed(way, runs)
        move_out = noop.median - moved - kernel
        self._note(way, read, moved - read, kernel, move_out, files.median - noop.median)

    def sql(
        self, way: str, frames: tuple[DataFrame, DataFrame], noop: Timing, files: Timing
    ) -> None:
        """From runs that stop early; the result of the join is where the writer takes it."""
        from bench.peers.spark_join import bucketed

        runs = {
            READ: lambda: [consume(frame.select(*_COLUMNS)) for frame in frames],
            MOVE_IN: lambda: [
                consume(frame.repartition(_PARTITIONS, "bucket")) for frame in bucketed(*frames)
            ],
        }
        read, moved = self._timed(way, runs)
        write = files.median - noop.median
        self._note(way, read, moved - read, noop.median - moved, 0.0, write)

    def chart(self, title: str) -> None:
        """Draw all ways as bars."""
        lines = {step: [way[step] for way in self._ways.values()] for step in STEPS}
        self._bench.chart("steps", title, "seconds", "", list(self._ways), lines, bars=True)

    def _timed(self, way: str, runs: dict[str, Callable[[], Any]]) -> list[float]:
        timings = self._bench.alternate(f"{way}, until", runs, rounds=3)
        return [timings[name].median for name in runs]

    def _note(self, way: str, *seconds: float) -> None:
        # A difference of two runs may fall below nothing where the step is small.
        steps = {step: max(0.0, s) for step, s in zip(STEPS, seconds, strict=True)}
        self._ways[way] = steps
        for step, value in steps.items():
            self._bench.figure(f"{way}, {step}", value, "s")


def _moved(left: DataFrame, right: DataFrame) -> DataFrame:
    """All events through an exchange and into Python workers, which drop them."""
    both = left.select(*_COLUMNS).unionByName(right.select(*_COLUMNS))
    slices = both.repartition(_PARTITIONS, both["min_time"])
    return slices.mapInArrow(_dropped, "id long")


def _dropped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_pydict({"id": pa.array([rows], pa.int64())})
