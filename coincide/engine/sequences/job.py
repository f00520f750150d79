"""What a search for sequences and one for coincidences share: streams, rows of tuples, and a summary."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import ClassVar

import numpy as np
import pyarrow as pa

from coincide.engine.events import rows as row_sizes
from coincide.engine.events.rows import Gather, cuts, total_bytes
from coincide.engine.events.sides import like_width
from coincide.engine.join.pair_filter import PairFilter
from coincide.engine.join.spec import check_output_names
from coincide.engine.join.timing import JoinSpec
from coincide.engine.sequences.arguments import Places, Streams
from coincide.engine.sequences.condition import Condition, ConditionJudge
from coincide.engine.sequences.links import Reader, TableReader
from coincide.engine.sequences.reports import SequenceSummary
from coincide.engine.sequences.walk import Judge, Maker, Sizes, maker_of
from coincide.model.remembered import remembered
from coincide.model.sequences.making import Links, StreamEvents
from coincide.model.threads import all_cores
from coincide.model.units import Tick


class TuplesJob(ABC):
    """One pass over several tables, whose output has columns of keys, of streams, and numbers of tuples."""

    links: dict[Places, Links]
    """The pairs of streams that reach the confidence, once they were looked for."""
    has_total: bool = False
    """Whether there is a window on the whole."""
    may_lack_first: ClassVar[bool] = False
    """Whether there are tuples without an event of the first stream, whose keys are the output's."""

    def __init__(
        self,
        streams: Streams,
        told: Sequence[int],
        numbers: Mapping[str, pa.DataType],
        reader: Reader | None,
    ) -> None:
        self._started = time.perf_counter()
        self._told, self._numbers = told, numbers
        self._names = streams.columns_of(len(told))
        check_output_names([*self._names, *numbers])
        self._reader = reader or TableReader(streams)
        self.streams = self._reader.streams
        self.sizes = Sizes()

    @property
    def _threads(self) -> int:
        return self.streams.options.threads or all_cores()

    @property
    def _most(self) -> int | None:
        """Tuples at once; None: as many as the maker likes."""
        return self.streams.options.batch_pairs

    @remembered
    def _are_instants(self) -> bool:
        """Whether the times of all streams are exact."""
        return all(self._reader.stream(k).side.are_instants for k in range(len(self.streams)))

    @remembered
    def _events(self) -> list[StreamEvents]:
        """The events of all streams, once links were looked for."""
        laws = None if self._are_instants else self._reader.laws[1]
        several = {k for twins in self.streams.twins for k in twins}
        found = []
        for k in range(len(self.streams)):
            stream = self._reader.stream(k)
            side = stream.side
            # Rows without a key lie elsewhere in the order of time: keys may be others there.
            numbers = stream.numbers(np.arange(len(side))) if k in several else None
            own = None if laws is None else laws[k]
            found.append(StreamEvents(side.min_time, side.max_time, numbers, own))
        return found

    @remembered
    def _edges(self) -> np.ndarray:
        """The most edges that a law of each stream has: int64 array."""
        laws, numbers = self._reader.laws
        return np.array(list(map(laws.most_edges, numbers)))

    @remembered
    def _maker(self) -> Maker:
        """What makes tuples of links."""
        buckets = None if self._are_instants else self._reader.laws[0].buckets
        return maker_of(self.streams.backend, self._events, buckets)

    @remembered
    def _keys(self) -> list[list[Gather]]:
        """The keys of each stream, in the types of the output."""
        sides = [self._reader.stream(k).side for k in range(len(self.streams))]
        each = zip(*([key.type for key in side.keys] for side in sides), strict=True)
        kinds = [
            reduce(like_width, of_all) if self.may_lack_first else of_all[0] for of_all in each
        ]
        return [
            [Gather(key, kind) for key, kind in zip(side.keys, kinds, strict=True)]
            for side in sides
        ]

    @remembered
    def _payload(self) -> list[list[Gather]]:
        """The columns of each stream."""
        sides = [self._reader.stream(k).side for k in range(len(self.streams))]
        kind = self._reader.kind
        return [[Gather(column, kind(column)) for column in side.payload] for side in sides]

    @remembered
    def _condition(self) -> Condition | None:
        """The condition on tuples, if there is one."""
        where = self.streams.where
        if where is None:
            return None
        assert isinstance(where, PairFilter)
        return Condition(where, [self._reader.stream(k).side for k in range(len(self.streams))])

    def _tested(self, judge: Judge, members: Sequence[int]) -> Judge:
        """What decides which tuples of some streams hold, and meet the condition."""
        condition = self._condition
        return judge if condition is None else ConditionJudge(judge, condition.of(members))

    @remembered
    def schema(self) -> pa.Schema:
        """The columns of the output."""
        told = [*self._keys[0], *(column for k in self._told for column in self._payload[k])]
        kinds = [column.kind for column in told]
        return pa.schema([*zip(self._names, kinds, strict=True), *self._numbers.items()])

    def _batches(
        self, members: Sequence[int], rows: np.ndarray, numbers: Sequence[pa.Array]
    ) -> list[pa.RecordBatch]:
        """Tuples of some streams as batches, each of which has room for its texts."""
        # `rows` is an int64 array of shape (members, tuples).
        size = rows.shape[1]
        of_stream = dict(zip(members, rows, strict=True))
        given: list[tuple[Gather, np.ndarray | None]] = [
            (key, rows[0]) for key in self._keys[members[0]]
        ]
        given += [(column, of_stream.get(k)) for k in self._told for column in self._payload[k]]
        sizes = total_bytes(
            None if row is None or column.sizes is None else column.sizes[row]
            for column, row in given
        )
        found = []
        for start, stop in cuts(sizes, size, row_sizes.BATCH_BYTES) if size else ():
            columns = [
                pa.nulls(stop - start, column.kind) if row is None else column(row[start:stop])
                for column, row in given
            ]
            columns += [each.slice(start, stop - start) for each in numbers]
            found.append(pa.RecordBatch.from_arrays(columns, schema=self.schema))
        return found

    @property
    def tick(self) -> Tick:
        """In what times are counted."""
        assert self._reader.tick is not None
        return self._reader.tick

    @property
    @abstractmethod
    def anchors(self) -> range:
        """The streams whose event can be the first of a tuple, by which it is known."""

    @property
    @abstractmethod
    def joins(self) -> dict[Places, JoinSpec]:
        """The joins by which links are found, by the streams that they join."""

    @abstractmethod
    def between(self, left: int, right: int) -> tuple[int, int]:
        """The window, ticks, on the time from an event of one stream to that of another of its tuple."""

    @abstractmethod
    def near(self, place: int) -> dict[int, tuple[int, int]]:
        """The window, ticks, on the time from an anchor's event to one of this stream, by anchor."""

    @abstractmethod
    def batches(self) -> Iterator[pa.RecordBatch]:
        """The answer: links are looked for at once, tuples as they are asked for."""

    @abstractmethod
    def summary(self) -> SequenceSummary:
        """What was done."""

    def run(self) -> pa.Table:
        """The whole answer."""
        return self._table(self.batches())

    def _table(self, batches: Iterator[pa.RecordBatch]) -> pa.Table:
        return pa.Table.from_batches(list(batches), schema=self.schema)

    def _summary(
        self, links: Mapping[tuple[int, int], Links], *, may_be_none: bool = False
    ) -> SequenceSummary:
        """What was done with these links, by the streams that they join."""
        names, tick = self.streams.names, self.tick
        counts = {name: self._reader.stream(k).counts for k, name in enumerate(names)}
        sizes = {f"{names[a]} to {names[b]}": each.size for (a, b), each in links.items()}
        seconds = time.perf_counter() - self._started
        return SequenceSummary(
            counts, sizes, *self.sizes, seconds, tick, may_be_none=may_be_none,
            has_condition=self.streams.where is not None, has_total=self.has_total,
        )  # fmt: skip
