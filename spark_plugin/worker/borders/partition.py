"""The search for crossings among the streams of one partition, in columns of the wire."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import numpy as np
import pyarrow as pa

from coincide.borders.crossings import IN
from spark_plugin.worker.arrow.gather import Gather
from spark_plugin.worker.borders.shipped import Watch


class PartitionSearch:
    """Takes readings and hands out crossings.

    Parameters
    ----------
    watch : Watch
        Queries that no reading has been told to.
    has_streams : bool
        Whether streams are a column of the output.
    """

    def __init__(self, watch: Watch, *, has_streams: bool) -> None:
        self._has_streams = has_streams
        self._ids = Gather(watch.ids, watch.kind)
        self._monitor = watch.monitor
        self._entered = self._left = 0

    def crossings(
        self,
        numbers: np.ndarray,
        times: np.ndarray,
        values: np.ndarray,
        streams: Gather,
        *,
        in_any_order: bool = False,
    ) -> Iterator[list[pa.Array]]:
        """The output columns for some readings: query, stream if there is one, event, and times in ticks.

        Parameters
        ----------
        numbers, times : int64 arrays, shape (n,), n > 0
            Of the streams, from 0, and ticks.
        values : float64 array, shape (n, d)
        streams : Gather
            Takes the streams themselves, of these readings.
        in_any_order : bool
            Whether the readings of a stream are in any order.
        """
        self._monitor.streams.reserve(int(numbers.max()) + 1)
        for part in self._monitor.push(numbers, times, values, in_any_order=in_any_order):
            entered = int((part.events == IN).sum())
            self._entered += entered
            self._left += part.events.size - entered
            told = [part.events.astype(np.int64), part.min_times, part.max_times]
            told += [] if part.instants is None else [part.instants]
            whose = [streams(part.rows)] if self._has_streams else []
            yield [self._ids(part.queries), *whose, *map(pa.array, told)]

    def keep_only(self, stream: int) -> None:
        """Forget all streams but one, which is number 0 from now on."""
        self._monitor.keep_only(stream)

    def nulls(self, stream_kind: pa.DataType, columns: int) -> list[pa.Array]:
        """A row of nulls in the output columns, as many as there are."""
        ids = [self._ids.kind, *([stream_kind] if self._has_streams else [])]
        kinds = [*ids, *[pa.int64()] * (columns - len(ids))]
        return [pa.nulls(1, kind) for kind in kinds]

    def told(self) -> dict[str, int]:
        """Of the numbers of `spark_plugin.worker.borders.reports.COUNTED` those that are found here."""
        return {
            **asdict(self._monitor.taken),
            "entered": self._entered,
            "left": self._left,
            "retrieved": self._monitor.retrieved,
        }
