"""One side of a join of streams so far."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa

from coincide.streams.shared import NEVER
from spark_plugin.worker.arrow.counts import SideCounts
from spark_plugin.worker.join import TablePlan
from spark_plugin.worker.streams.live import Live
from spark_plugin.worker.streams.reading import Arrivals, read_arrivals


@dataclass(frozen=True, eq=False)
class Stream:
    """One side so far.

    Parameters
    ----------
    live : Live
        Events that are kept.
    clock : int
        Its largest max_time so far, or the time to which it was advanced, ticks.
    late : tuple of pa.Table
        Late rows that were not taken yet.
    counts : SideCounts
    late_count : int
    behind : int
        How far the latest of the rows that were late in the last push lay behind the clock, ticks.
    taken : int
        Events that were in time.
    """

    live: Live
    clock: int
    late: tuple[pa.Table, ...]
    counts: SideCounts = field(default_factory=SideCounts)
    late_count: int = 0
    behind: int = 0
    taken: int = 0

    @classmethod
    def of(cls, plan: TablePlan, number: int, schema: pa.Schema) -> Stream:
        """Before the first event."""
        none = schema.empty_table()
        arrivals = read_arrivals(plan, number, none, NEVER, 0)
        return cls(Live(arrivals.events[number % len(arrivals.events)]), NEVER, (none,))

    def after(self, arrivals: Arrivals) -> Stream:
        """The same after a push, whose events are yet to be kept."""
        late = (*self.late, arrivals.late) if arrivals.late.num_rows else self.late
        return replace(
            self,
            clock=arrivals.clock,
            late=late,
            counts=self.counts + arrivals.counts,
            late_count=self.late_count + arrivals.late.num_rows,
            behind=arrivals.behind,
            taken=self.taken + len(arrivals.events[0]),
        )

    def with_live(self, live: Live) -> Stream:
        """The same with other events."""
        return replace(self, live=live)
