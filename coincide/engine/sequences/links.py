"""Links: the pairs of two streams of a sequence, by the row of the first."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.events.sides import Side, without_payload
from coincide.engine.events.timestamps import table_of
from coincide.engine.join.join import TableJoin, given_tables
from coincide.engine.join.timing import JoinSpec, TimingPairing
from coincide.engine.room import check_links
from coincide.engine.sequences.arguments import Places, Streams
from coincide.model.condition import Within, within
from coincide.model.errors import ConditionError, option
from coincide.model.ordering import ascends, stable_order
from coincide.model.remembered import remembered
from coincide.model.sequences.laws import Laws
from coincide.model.sequences.making import Links
from coincide.model.templates.template import TemplateTable
from coincide.model.threads import in_order
from coincide.model.units import Tick
from cpu_fallback.join.instants import InstantJoin

_PAIRS_OF_A_RUN = 1 << 20


@dataclass(frozen=True, eq=False)
class Stream:
    """The events of one stream, and what their rows were.

    Parameters
    ----------
    side : Side
        Events in the order of time, so that those of a tuple are near each other in memory.
    counts : SideCounts
    order : int64 array, shape (n,), or None
        Where each was among the rows that were read; None: there.
    is_own : bool array, shape (n,), or None
        Which of them tuples may begin with here; another task gives those of others. None: all.
    """

    side: Side
    counts: SideCounts
    order: np.ndarray | None
    is_own: np.ndarray | None = None

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """Where some rows were among those that were read."""
        return rows if self.order is None else self.order[rows]

    def as_read(self, rows: np.ndarray) -> np.ndarray:
        """Some rows in the order in which they were read."""
        return rows if self.order is None else rows[np.argsort(self.order[rows])]


class Reader(ABC):
    """Reads streams as the links between them need them, each once from its source."""

    def __init__(self, streams: Streams) -> None:
        self.streams = streams
        self._known: dict[int, Stream] = {}
        self.tick: Tick | None = None

    @abstractmethod
    def plan(self, left: int, right: int, window: Within) -> JoinSpec:
        """The join of two streams, checked, before a row is looked at."""

    @abstractmethod
    def links(self, left: int, right: int, spec: JoinSpec) -> Links:
        """The links of two streams by what was planned, or a narrower window."""

    def kind(self, column: pa.Array) -> pa.DataType:
        """The type that a column has in the output."""
        return column.type

    def stream(self, number: int) -> Stream:
        """One of the streams, once a link has read it."""
        return self._known[number]

    def take_tick(self, tick: Tick) -> None:
        """Note in what two streams count time; refuse any other than that of those before."""
        if self.tick is not None and self.tick != tick:
            raise ConditionError(
                f"all streams must count time in one tick (found {self.tick.unit} and"
                f" {tick.unit}). Give {option('tick', 'us')}."
            )
        self.tick = tick

    @remembered
    def laws(self) -> tuple[Laws, list[np.ndarray]]:
        """The laws of the times of all streams, and the law of each event: int64 arrays."""
        tables, numbers = [], []
        for k in range(len(self.streams)):
            side = self.stream(k).side
            table = table_of(side.model)
            shapes = side.shapes
            if table is None:
                lengths, shapes = np.unique(side.shapes, return_inverse=True)
                table = TemplateTable.of_lengths(lengths if lengths.size else np.zeros(1, np.int64))
            tables.append(table)
            numbers.append(shapes)
        laws, before = Laws.joined(tables)
        return laws, [own + shift for own, shift in zip(numbers, before, strict=True)]


class TableReader(Reader):
    """Reads tables."""

    def __init__(self, streams: Streams) -> None:
        self._tables = list(streams.tables)
        if not streams.are_typed:
            self._tables = with_needed(streams)
            streams = streams.typed([table.schema for table in self._tables])
        super().__init__(streams)
        self._joins: dict[Places, TableJoin] = {}

    def plan(self, left: int, right: int, window: Within) -> JoinSpec:  # noqa: D102
        arguments = self.streams.link(left, right, window)
        given = given_tables(self._tables[left], self._tables[right], arguments)
        for each, table in zip((left, right), given, strict=True):
            self._tables[each] = table
        self._joins[left, right] = job = TableJoin(given[0], given[1], arguments)
        self.take_tick(job.plan.tick)
        return job.plan.timing

    def links(self, left: int, right: int, spec: JoinSpec) -> Links:  # noqa: D102
        *given, counts = self._joins[left, right].read()
        sides = []
        for number, side, count in zip((left, right), given, counts, strict=True):
            assert count is not None
            if number not in self._known:
                order = order_of(side)
                self._known[number] = Stream(in_order_of(side, order), count, order)
                sides.append(self._known[number].side)
            else:
                bare = replace(without_payload(side), tested=[])
                sides.append(in_order_of(bare, self._known[number].order))
        return links_of(spec.pairing(*sides), self.streams.are_exact)


def with_needed(streams: Streams) -> list[Any]:
    """The Arrow tables of streams, with all columns that are needed, or that a condition may need."""
    found = list(streams.tables)
    for k in range(len(found) - 1):
        pair = found[k], streams.tables[k + 1]
        found[k : k + 2] = given_tables(*pair, streams.link(k, k + 1, within(0, 0)))
    return found


def order_of(side: Side) -> np.ndarray | None:
    """The order of the events in time: int64 array; None where they are in it."""
    keys = side.sort_keys
    return None if ascends(keys) else stable_order(keys)


def in_order_of(side: Side, order: np.ndarray | None) -> Side:
    """The events in another order, if one is given."""
    return side if order is None else side.rows(order)


def links_of(pairing: TimingPairing, are_exact: bool) -> Links:
    """All links by left row; of exact times the CPU finds runs of right rows, and no link is written."""
    source, spec = pairing.join, pairing.spec
    if are_exact and isinstance(source, InstantJoin):
        return Links(source.left_order, *source.row_runs(), source.right_order, None)
    offsets, order = source.offsets, source.left_order
    check_links(int(offsets[-1]), spec.max_pairs)
    begins, ends = np.empty((2, order.size), np.int64)
    begins[order], ends[order] = offsets[:-1], offsets[1:]
    targets = np.empty(offsets[-1], np.int64)
    chances = None if are_exact else np.empty(targets.size)

    def put(run: tuple[int, int]) -> tuple[()]:
        part = slice(offsets[run[0]], offsets[run[1]])
        if chances is None:
            targets[part] = source.matches(*run, source.right_order)
        else:
            rows = source.pairs(*run, order, source.right_order)
            targets[part], chances[part] = rows[1], pairing.probabilities(*rows)
        return ()

    for _ in in_order(put, source.chunks(_PAIRS_OF_A_RUN), spec.threads):
        pass
    return Links(order, begins, ends, targets, chances)
