"""The workers of a broadcast of all streams but one: each answers for the events of its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from coincide.engine.events.timestamps import SideModel
from coincide.engine.join.timing import JoinSpec
from spark_plugin.tasks.broadcast import SmallSide, chunk_rows
from spark_plugin.tasks.sequences import Gathered, TuplesTask
from spark_plugin.tasks.wire import Shipment, WireLayout, chunks, read_side


@dataclass(frozen=True, kw_only=True)
class SmallStream:
    """A stream of which every task has all events.

    Parameters
    ----------
    rows : Shipment
    layout : WireLayout
    model : SideModel
    joins : tuple of JoinSpec
        From each of its places to the stream that stays: how far events reach.
    """

    rows: Shipment
    layout: WireLayout
    model: SideModel
    joins: tuple[JoinSpec, ...]

    def side(self) -> SmallSide:
        """Its events, where they have arrived."""
        return SmallSide(self.rows.table(), self.layout, "left", self.model)


@dataclass(frozen=True, kw_only=True)
class SpreadTask(TuplesTask):
    """Answers for rows of the stream that stays, in whatever partitions they are.

    Each tuple has one event of that stream. So it is found once, wherever the rows are cut.
    """

    large: int
    layout: WireLayout
    model: SideModel
    small: Mapping[int, SmallStream]
    slice_rows: int
    slice_bytes: int

    def gathered(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Gathered]:
        """As in `TuplesTask`: some rows of the stream that stays, and what is near them."""
        small = {number: each.side() for number, each in self.small.items()}
        rows = chunk_rows(self.slice_rows, sum(map(len, small.values())))
        for table in chunks(batches, rows, self.slice_bytes):
            own = read_side(table, self.layout, "left", self.model)
            sides = {self.large: own}
            for number, each in small.items():
                pairs = [join.pairs for join in self.small[number].joins]
                sides[number] = each.near(own, *pairs)[0]
            yield Gathered([(sides[number], None) for number in sorted(sides)])
