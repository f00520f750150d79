"""The state of a join of streams, and what each call makes of it: nothing here is written into.

A call makes a new state beside the old one, which stands if it fails. New events are joined with the live
ones of the other side by the batch join, so that each pair is found by the later of its two arrivals; or,
where a row tells of all partners of a left event, left events once they are final.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa

from coincide.results import JoinCounters
from coincide.sides import LEFT, RIGHT
from coincide.streams.shared import NEVER
from coincide.units import TIME_LIMIT
from spark_plugin.worker.arrow.counts import SideCounts
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.join import TablePlan
from spark_plugin.worker.streams.arguments import StreamArguments
from spark_plugin.worker.streams.blocks import join_block
from spark_plugin.worker.streams.horizon import Horizon, horizon_of
from spark_plugin.worker.streams.live import joined, nbytes, parted, since
from spark_plugin.worker.streams.reading import Arrivals, read_arrivals
from spark_plugin.worker.streams.reports import StreamSummary

_END = 8 * TIME_LIMIT
"""After whatever may come."""
_LAST = 2**63 - 1


@dataclass(frozen=True, eq=False)
class Stream:
    """One side so far.

    Parameters
    ----------
    live : Side
        Events that are kept.
    clock : int
        Its largest max_time so far, or the time to which it was advanced, ticks.
    late : tuple of pa.Table
        Late rows that were not taken yet.
    counts : SideCounts
    late_count : int
    """

    live: Side
    clock: int
    late: tuple[pa.Table, ...]
    counts: SideCounts = field(default_factory=SideCounts)
    late_count: int = 0

    def after(self, arrivals: Arrivals) -> Stream:
        """The same after a push."""
        late = (*self.late, arrivals.late) if arrivals.late.num_rows else self.late
        return replace(
            self,
            live=joined(self.live, arrivals.events),
            clock=arrivals.clock,
            late=late,
            counts=self.counts + arrivals.counts,
            late_count=self.late_count + arrivals.late.num_rows,
        )


@dataclass(frozen=True, eq=False)
class Running:
    """Two streams whose columns are known.

    Parameters
    ----------
    plan : TablePlan
    delays : (int, int)
        Ticks.
    horizon : Horizon
    at_once : bool
        Whether rows are pairs, given out when the second event comes; else rows tell of left events,
        and are given out when no partner can come any more.
    streams : (Stream, Stream)
    counters : JoinCounters
    """

    plan: TablePlan
    delays: tuple[int, int]
    horizon: Horizon
    at_once: bool
    streams: tuple[Stream, Stream]
    counters: JoinCounters = field(default_factory=JoinCounters)

    @classmethod
    def of(cls, plan: TablePlan, schemas: list[pa.Schema], arguments: StreamArguments) -> Running:
        """Before the first event.

        Raises
        ------
        ConditionError
            If delays and units do not go together.
        """
        left, right = (
            Stream(plan.read(number, schema.empty_table())[0], NEVER, (schema.empty_table(),))
            for number, schema in enumerate(schemas)
        )
        return cls(
            plan,
            arguments.delays(plan.tick),
            horizon_of(plan),
            arguments.gives_pairs_at_once,
            (left, right),
        )

    @property
    def clocks(self) -> tuple[int, int]:
        """Of both sides, ticks."""
        return self.streams[LEFT].clock, self.streams[RIGHT].clock

    def pushed(self, number: int, table: pa.Table) -> tuple[Running, pa.Table]:
        """After a push of one side, and what it makes final.

        Raises
        ------
        DataError
            If rows are invalid and are to be refused.
        """
        clock, delay = self.clocks[number], self.delays[number]
        arrivals = read_arrivals(self.plan, number, table, clock, delay)
        after = self._with(number, self.streams[number].after(arrivals))
        if not self.at_once:
            return after._settled(arrivals.matchless if number == LEFT else None)
        sides = [stream.live for stream in self.streams]
        sides[number] = arrivals.events
        found, counters = join_block(self.plan, self.horizon, sides[LEFT], sides[RIGHT])
        return after._counted(counters)._trimmed(), found

    def advanced(self, clocks: tuple[int, int]) -> tuple[Running, pa.Table]:
        """After time has passed, and what that makes final."""
        streams = [replace(s, clock=c) for s, c in zip(self.streams, clocks, strict=True)]
        after = replace(self, streams=(streams[LEFT], streams[RIGHT]))
        if self.at_once:
            return after._trimmed(), self.plan.schema.empty_table()
        return after._settled(None)

    def finished(self) -> tuple[Running, pa.Table]:
        """After the last event, and what had to wait for that."""
        return self.advanced((_END, _END))

    def without_late(self, number: int) -> tuple[Running, pa.Table]:
        """The late rows of a side, taken."""
        stream = self.streams[number]
        late = pa.concat_tables(stream.late)
        return self._with(number, replace(stream, late=(late.slice(0, 0),))), late

    def summary(self) -> StreamSummary:
        """What was taken and found so far."""
        left, right = self.streams
        return StreamSummary(
            left.counts,
            right.counts,
            (left.late_count, right.late_count),
            (len(left.live), len(right.live)),
            nbytes(left.live) + nbytes(right.live),
            self.counters,
            self.plan.tick,
        )

    def _settled(self, matchless: Side | None) -> tuple[Running, pa.Table]:
        """Give out what is final of left events, those that match nothing among them."""
        left, right = self.streams
        final, waiting = parted(left.live, left.live.max_time < self._until[LEFT])
        if matchless is not None:
            final = joined(matchless, final)
        found, counters = join_block(self.plan, self.horizon, final, right.live)
        earliest = min(self._to_come[LEFT], int(waiting.max_time.min(initial=_LAST)))
        live = since(right.live, self.horizon.right_until(earliest))
        streams = replace(left, live=waiting), replace(right, live=live)
        return replace(self, streams=streams)._counted(counters), found

    def _trimmed(self) -> Running:
        """Without events that nothing to come can be a partner of."""
        left, right = (
            replace(stream, live=since(stream.live, until))
            for stream, until in zip(self.streams, self._until, strict=True)
        )
        return replace(self, streams=(left, right))

    @property
    def _to_come(self) -> tuple[int, int]:
        """The least max_time that can still come on either side."""
        (left, right), delays = self.clocks, self.delays
        return left - delays[LEFT], right - delays[RIGHT]

    @property
    def _until(self) -> tuple[int, int]:
        """The least max_time of either side that something to come can be a partner of."""
        left, right = self._to_come
        return self.horizon.left_until(right), self.horizon.right_until(left)

    def _with(self, number: int, stream: Stream) -> Running:
        left, right = self.streams
        return replace(self, streams=(stream, right) if number == LEFT else (left, stream))

    def _counted(self, counters: JoinCounters) -> Running:
        return replace(self, counters=self.counters + counters)
