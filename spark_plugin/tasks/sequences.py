"""The workers of sequences and coincidences: what is sent of each stream, and what a slice makes of all."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

import numpy as np
import pyarrow as pa

from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.events.schemas import narrow_type, one_array
from coincide.engine.events.sides import Side, tie_ranks
from coincide.engine.join.timing import JoinSpec
from coincide.engine.reports.metrics import numbers_of
from coincide.engine.sequences.arguments import Places
from coincide.engine.sequences.coincidences import CoincidenceArguments, CoincidenceJob
from coincide.engine.sequences.job import TuplesJob
from coincide.engine.sequences.links import Reader, Stream, in_order_of, links_of, order_of
from coincide.engine.sequences.tables import SequenceArguments, SequenceJob
from coincide.model.condition import Within
from coincide.model.ordering import stable_order
from coincide.model.sequences.making import Links
from coincide.model.units import Tick
from spark_plugin.tasks.blobs import blob_of, unpacked
from spark_plugin.tasks.counting import Answer, CountingTask
from spark_plugin.tasks.exchange import Room, check_shapes, divided
from spark_plugin.tasks.packing import EVENTS, STREAM, PackTask, runs_of, taken
from spark_plugin.tasks.slice_plan import CellPlan
from spark_plugin.tasks.slice_plan import Places as EventPlaces
from spark_plugin.tasks.wire import LABEL, WireLayout, read_side

IS_OWN = "is_own"
"""Column of events in packs: whether tuples begin there."""
_BATCH_ROWS = 1 << 16
"""Rows of an output batch: small ones let the JVM read one while the worker writes the next."""
LINKS = "links"
"""Beginning of the names of numbers of links."""

Question = SequenceArguments | CoincidenceArguments
"""A question of streams."""


def rows_of(number: int) -> str:
    """Beginning of the names of numbers of the rows of a stream that is sent."""
    return f"rows_{number}_"


def job_of(question: Question, reader: Reader) -> TuplesJob:
    """What answers a question of the streams of a reader."""
    if isinstance(question, SequenceArguments):
        return SequenceJob(question, reader)
    return CoincidenceJob(question, reader)


@dataclass(frozen=True)
class SentPackTask(PackTask):
    """Packs the rows of one of several streams by slice: its own one, and those of events it reaches."""

    plan: CellPlan
    number: int = field(kw_only=True)
    is_anchor: bool = field(kw_only=True)

    def groups(self, events: pa.Table, places: EventPlaces) -> Iterator[tuple[int, pa.Table]]:
        """As in `PackTask`; events of an anchor also tell whether the slice is their own."""
        order, slices = self.plan.slices_of(places, is_left=False)
        if self.is_anchor:
            rows, own = self.plan.slices_of(places, is_left=True)
            home = np.empty(rows.size, np.int64)
            home[rows] = own
            order, slices = _with_unmatchable(order, slices, home, places.matchable)
            is_own = home[order] == slices
            if IS_OWN in events.column_names:  # a slice is divided again
                before = one_array(events.column(IS_OWN)).to_numpy(zero_copy_only=False)
                is_own &= before[order]
                events = events.drop_columns(IS_OWN)
        for run in runs_of(slices):
            part = taken(events, order[run])
            if self.is_anchor:
                part = part.append_column(IS_OWN, pa.array(is_own[run]))
            yield int(slices[run.start]), part

    def origin(self, packs: int) -> dict[str, pa.Array]:
        """As in `Packing`: the number of the stream."""
        return {STREAM: pa.array(np.full(packs, self.number, np.int64))}


def _with_unmatchable(
    rows: np.ndarray, slices: np.ndarray, home: np.ndarray, matchable: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Rows by slice, in which those that match nothing are in their own slice alone."""
    if matchable is None:
        return rows, slices
    able, others = matchable[rows], np.flatnonzero(~matchable)
    rows = np.concatenate([rows[able], others])
    slices = np.concatenate([slices[able], home[others]])
    order = stable_order(slices)
    return rows[order], slices[order]


@dataclass(frozen=True, kw_only=True)
class SentStream:
    """One of the streams that are sent, which may have several places.

    Parameters
    ----------
    task : SentPackTask
        What packs it.
    layout : WireLayout
    name : str
        What messages call it.
    """

    task: SentPackTask
    layout: WireLayout
    name: str

    def events(self, packs: Sequence[pa.Buffer]) -> tuple[Side, np.ndarray | None]:
        """The events of some packs, and which are the slice's own, if tuples may begin with them."""
        schema = self.task.schema
        if self.task.is_anchor:
            schema = schema.append(pa.field(IS_OWN, pa.bool_()))
        table = unpacked(packs) if packs else schema.empty_table()
        side = read_side(table, self.layout, "left", self.task.model)
        check_shapes(self.name, side, self.task.plan.reach.right)
        if not self.task.is_anchor:
            return side, None
        return side, one_array(table.column(IS_OWN)).to_numpy(zero_copy_only=False)


Events = tuple[Side, "np.ndarray | None"]
"""Events of a stream that is sent, and with which of them tuples may begin; None: with all."""


@dataclass(frozen=True)
class Gathered:
    """The events of each stream that is sent; and what rows were where the task has read them itself."""

    streams: Sequence[Events]
    counts: Sequence[SideCounts] = ()


@dataclass(frozen=True)
class StreamPlace:
    """Where a stream of a question is: the number of what is sent, and which of its columns it has.

    `tested` are those that a condition needs.
    """

    sent: int
    columns: tuple[int, ...]
    tested: tuple[int, ...]


class SliceReader(Reader):
    """Gives the streams of a slice, planned elsewhere."""

    def __init__(
        self,
        question: Question,
        specs: Mapping[Places, JoinSpec],
        tick: Tick,
        streams: Sequence[Events],
        places: Sequence[StreamPlace],
    ) -> None:
        super().__init__(question.streams)
        self._specs, self.tick = specs, tick
        ranks_by_columns = isinstance(question, SequenceArguments) and question.emit == "best"
        orders = [order_of(side) for side, _ in streams]
        # A task that is tried again has its rows in another order, so columns decide.
        numbers = [
            (tie_ranks(side) if ranks_by_columns else np.arange(len(side))) for side, _ in streams
        ]
        for k, place in enumerate(places):
            (side, is_own), order = streams[place.sent], orders[place.sent]
            payload = [side.payload[i] for i in place.columns]
            tested = [side.tested[i] for i in place.tested]
            own = in_order_of(replace(side, payload=payload, tested=tested), order)
            ranks = numbers[place.sent] if order is None else numbers[place.sent][order]
            if is_own is not None and order is not None:
                is_own = is_own[order]
            self._known[k] = Stream(own, SideCounts(rows=len(side)), ranks, is_own)

    def plan(self, left: int, right: int, window: Within) -> JoinSpec:
        """As in `Reader`: it was planned."""
        return self._specs[left, right]

    def links(self, left: int, right: int, spec: JoinSpec) -> Links:  # noqa: D102
        sides = self._known[left].side, self._known[right].side
        return links_of(spec.pairing(*sides), self.streams.are_exact)

    def kind(self, column: pa.Array) -> pa.DataType:
        """As in `Reader`: Spark takes columns of short offsets."""
        return narrow_type(column.type)


@dataclass(frozen=True, kw_only=True)
class TuplesTask(CountingTask):
    """Answers a question of streams, some of whose events it gathers at once."""

    question: Question
    specs: Mapping[Places, JoinSpec]
    tick: Tick
    places: tuple[StreamPlace, ...]
    names: tuple[str, ...]
    metrics: str | None = None

    @abstractmethod
    def gathered(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Gathered]:
        """Events of all streams, part by part: each tuple is in one of these."""

    @property
    def counted(self) -> tuple[str, ...]:
        """As in `CountingTask`."""
        return "tried", "doubted", "found", *(f"{LINKS}_{i}_{j}" for i, j in self.specs)

    def answers(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Answer]:
        """The rows of all parts."""
        told, schema = dict.fromkeys(self.counted, 0), None
        counts: list[SideCounts] = []
        for part in self.gathered(batches):
            reader = SliceReader(self.question, self.specs, self.tick, part.streams, self.places)
            job = job_of(self.question, reader)
            for batch in job.batches():
                schema = batch.schema
                for start in range(0, batch.num_rows, _BATCH_ROWS):
                    yield batch.slice(start, _BATCH_ROWS).columns, None
            for name, number in zip(self.counted, job.sizes, strict=False):
                told[name] += number
            for (i, j), links in job.links.items():
                told[f"{LINKS}_{i}_{j}"] += links.size
            counts = [
                sum(both, SideCounts())
                for both in zip_longest(counts, part.counts, fillvalue=SideCounts())
            ]
            schema = job.schema
        for number, each in enumerate(counts):
            told |= numbers_of(each, rows_of(number))
        if schema is not None:
            yield [pa.nulls(1, kind) for kind in schema.types], told


@dataclass(frozen=True, kw_only=True)
class SequenceTask(TuplesTask):
    """Gathers the packs of each slice of a partition, mostly one."""

    sent: tuple[SentStream, ...]
    room: Room

    def gathered(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Gathered]:
        """As in `TuplesTask`."""
        for packs in self._slices(batches):
            yield Gathered([each.events(own) for each, own in zip(self.sent, packs, strict=True)])

    def _slices(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Sequence[list[pa.Buffer]]]:
        """The packs of each slice, or of a part of one, by stream."""
        of_slices: dict[int, list[list[pa.Buffer]]] = {}
        for batch in batches:
            columns = (batch.column(name) for name in (LABEL, STREAM, EVENTS))
            for label, number, blob in zip(*columns, strict=True):
                packs = of_slices.setdefault(label.as_py(), [[] for _ in self.sent])
                packs[number.as_py()].append(blob_of(blob))
        for label in sorted(of_slices):
            yield from self._parts(of_slices.pop(label))

    def _parts(self, packs: list[list[pa.Buffer]]) -> Iterable[Sequence[list[pa.Buffer]]]:
        """A slice, in parts that can be answered one after the other if it is too large."""
        count = self.room.parts(packs)
        return [packs] if count == 1 else divided(packs, self._finer(count), count)

    def _finer(self, count: int) -> list[SentPackTask]:
        """What divides a slice again, each stream by its own reach."""
        tasks = []
        for each in self.sent:
            task, schema = each.task, each.task.schema
            if task.is_anchor:
                schema = schema.append(pa.field(IS_OWN, pa.bool_()))
            plan, labels = task.plan.finer(count), np.arange(count)
            tasks.append(replace(task, schema=schema, plan=plan, labels=labels, as_numbers=False))
        return tasks
