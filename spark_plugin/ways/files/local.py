"""The direct way in one process: slice by slice, the next one being read while one is joined."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa

from spark_plugin.ways.files.planning import plan_files
from spark_plugin.ways.files.second_look import direct_summary
from spark_plugin.ways.files.worker.slice_join import (
    DirectJoin,
    SliceRows,
    join_slice,
    read_slice,
)
from spark_plugin.worker.arguments import JoinArguments
from spark_plugin.worker.files.finding import Given
from spark_plugin.worker.reports.metrics import JoinTally
from spark_plugin.worker.reports.reports import JoinSummary


class LocalFilesJoin:
    """A join of Parquet files, batch by batch, in memory bounded by ``options.slice_rows``.

    Used like `spark_plugin.worker.join.TableJoin`. Two slices are in memory at a time.

    Parameters
    ----------
    left, right : str, path or sequence of them
        Without `right` the arguments say that there is one stream.
    arguments : JoinArguments
    say : callable
        Told which slice of how many is joined.

    Raises
    ------
    NotDirect
        If the files do not lie in time order.
    """

    def __init__(
        self,
        left: Given,
        right: Given | None,
        arguments: JoinArguments,
        say: Callable[[int, int], None] = lambda number, count: None,
    ) -> None:
        join = plan_files(left, right, arguments, parallelism=1)
        self._join = join.with_tables(join.tables.in_order)
        self._say = say
        self.schema: pa.Schema = self._join.tables.schema
        self.plan = self._join.plan
        self.summary: JoinSummary | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Run the join. `summary` stands when the last batch was taken."""
        started = time.perf_counter()
        tally = JoinTally()
        for join, rows in self._slices():
            emission = join_slice(join, rows)
            yield from emission
            if join is self._join:
                tally += JoinTally(*rows.counts, emission.counters)
        seconds = time.perf_counter() - started
        self.summary = replace(direct_summary(self._join, tally), seconds=seconds)

    def _slices(self) -> Iterator[tuple[DirectJoin, SliceRows]]:
        joins = [join for join in (self._join, self._join.alone) if join is not None]
        slices = [(join, number) for join in joins for number in range(join.count)]
        with ThreadPoolExecutor(1) as pool:
            coming = pool.submit(read_slice, *slices[0], True)
            for number, (join, _) in enumerate(slices, 1):
                rows = coming.result()
                if number < len(slices):
                    coming = pool.submit(read_slice, *slices[number], True)
                self._say(number, len(slices))
                yield join, rows
