"""What a join of streams tells of itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from coincide.results import JoinCounters
from coincide.units import Tick
from spark_plugin.worker.arrow.counts import SideCounts


@dataclass(frozen=True)
class StreamSummary:
    """What became of all rows so far, and what was found.

    Parameters
    ----------
    left, right : SideCounts
        What the rows were. Of one stream `left` tells of it, and `right` is None.
    late : (int, int)
        Of those: rows that came later than the delay permits, left and right. They took no part.
    live : (int, int)
        Events that are kept, left and right; of one stream for partners after them, and before them.
    nbytes : int
        Bytes that these take, and late rows that nobody has taken yet.
    counters : JoinCounters
        What was looked at and found.
    tick : Tick or None
        In what times are counted; None until the columns of both sides are known.
    """

    left: SideCounts = field(default_factory=SideCounts)
    right: SideCounts | None = field(default_factory=SideCounts)
    late: tuple[int, int] = (0, 0)
    live: tuple[int, int] = (0, 0)
    nbytes: int = 0
    counters: JoinCounters = field(default_factory=JoinCounters)
    tick: Tick | None = None
