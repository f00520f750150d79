"""Sequences where all streams but one are small: these go to every worker, and that one stays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from coincide.engine.events.sides import Side
from coincide.model.errors import ConditionError, argument
from coincide.model.options import CorrelateOptions
from spark_plugin.cluster.connect import parallelism
from spark_plugin.cluster.rapids import is_accelerated
from spark_plugin.frames.estimates import estimated_bytes, is_surely_larger
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.queries import ship
from spark_plugin.frames.statistics import SideStatistics, refuse_invalid
from spark_plugin.tasks.broadcast import sorted_table
from spark_plugin.tasks.samples import Reach, expected_matches
from spark_plugin.tasks.wire import Shipment, WireLayout
from spark_plugin.ways.broadcast.collecting import CollectedSide, collected_streams, wire_table
from spark_plugin.ways.limits import PlannerLimits
from spark_plugin.ways.planning_job import (
    are_even,
    as_transported,
    candidate,
    described_size,
    most_small_rows,
    prepared_rows,
)


@dataclass(frozen=True, eq=False)
class SentFrame:
    """A stream that is sent, and why it cannot be the one that stays; nothing if it can."""

    frame: EventFrame
    why_not: str


@dataclass(frozen=True, eq=False)
class SpreadPlan:
    """A search in which one stream stays in its partitions."""

    large: int
    small: Mapping[int, CollectedSide] = field(repr=False)

    @property
    def bytes(self) -> int:
        """Those of what goes to every worker."""
        return sum(each.statistics.own_bytes for each in self.small.values())

    def rows_of(self, number: int) -> int:
        """How many events a small stream has."""
        return self.small[number].statistics.matchable

    def without_events(self) -> SpreadPlan:
        """What it tells, without what is sent."""
        none = np.empty(0, np.int64)
        small = {i: replace(each, events=each.events.rows(none)) for i, each in self.small.items()}
        return replace(self, small=small)

    def describe(self, sent: Sequence[SentFrame]) -> str:
        """The plan in words."""
        names = " and ".join(sent[number].frame.called for number in self.small)
        size, stays = described_size(self.bytes), sent[self.large].frame.called
        return f"{names} to every worker, {size}, and {stays} stays where it is"


class SpreadChoice:
    """Chooses the stream that stays, if one does."""

    def __init__(
        self, sent: Sequence[SentFrame], options: CorrelateOptions, limits: PlannerLimits
    ) -> None:
        self._sent, self._options, self._limits = sent, options, limits
        self._spark = sent[0].frame.spark
        self.refused = ""
        """Why no stream stays though the others are small."""

    @property
    def is_asked(self) -> bool:
        """Whether an option says that one stays, whatever the sizes."""
        return self._options.way == "broadcast"

    @property
    def _is_open(self) -> bool:
        is_free = self._options.way == "auto" and self._options.slices is None
        return is_free and len(self._sent) > 1 and not self.refused

    def check(self) -> None:
        """Refuse to keep one where none can stay."""
        if not self.is_asked or any(self._stays):
            return
        why = "; ".join(dict.fromkeys(each.why_not for each in self._sent))
        raise ConditionError(
            f"{argument('way', 'broadcast')} leaves one stream in its partitions, and here each has to"
            f" come together (found that {why}). Remove {argument('way')}, and an exchange does that."
        )

    @property
    def _stays(self) -> list[bool]:
        """Which streams can be the one that stays."""
        return [len(self._sent) > 1 and not each.why_not for each in self._sent]

    def by_estimates(self) -> SpreadPlan | None:
        """The plan, if Spark's estimates tell; the small streams are collected."""
        if self._options.invalid == "drop":  # a job looks at the rows of all streams
            return None
        if self.is_asked:
            large = self._asked([estimated_bytes(each.frame) for each in self._sent])
            return None if large is None else self._collected(large, None)
        if not self._is_open or is_accelerated(self._spark):
            return None
        found = [estimated_bytes(each.frame) for each in self._sent]
        sizes = [size for size in found if size is not None]
        if len(sizes) < len(found):
            return None
        limits, options = self._limits, self._options
        large = sizes.index(max(sizes))
        small = sum(sizes) - sizes[large]
        least = max(limits.far_larger * small, limits.least_large)
        if small > min(limits.small_bytes, options.broadcast_bytes) or sizes[large] < least:
            return None
        if not is_surely_larger(self._sent[large].frame, least):
            return None
        most = (
            min(options.broadcast_bytes, options.slice_bytes),
            min(limits.small_rows, options.slice_rows),
        )
        return self._collected(large, most)

    def by_rows(
        self, statistics: Sequence[SideStatistics], reach: Callable[[int, int], Reach]
    ) -> SpreadPlan | None:
        """The plan, if what a job has counted tells; `reach` is that from one stream to another."""
        if self.is_asked:
            large = self._asked([each.matchable for each in statistics])
            assert large is not None
            return self._collected(large, None)
        if not self._is_open or all(each.frame.is_computed for each in self._sent):
            return None
        options, limits = as_transported(self._spark, self._options), self._limits
        sides = [
            candidate(sent.frame, each.sample(), each)
            for sent, each in zip(self._sent, statistics, strict=True)
        ]
        rows = [side.sample.rows for side in sides]
        large = rows.index(max(rows))
        stays, small = sides[large], [i for i in range(len(sides)) if i != large]
        size = sum(sides[i].bytes or 0 for i in small)
        most = most_small_rows(stays, limits)
        count = sum(rows[i] for i in small)
        if any(sides[i].bytes is None for i in small) or size > options.broadcast_bytes:
            return None
        towards = [(sides[i], reach(large, i)) for i in small]
        prepared = sum(prepared_rows(side, stays, to, options.slice_rows) for side, to in towards)
        if count > most or limits.prepared_row * prepared > sum(rows):
            return None
        matches = [expected_matches(stays.sample, side.sample, to) for side, to in towards]
        work = 1.0 + np.sum(matches, axis=0)
        if not are_even(stays, work, limits, parallelism(self._spark)):
            return None
        return self._collected(large, (options.broadcast_bytes, most))

    def _asked(self, sizes: Sequence[int | None]) -> int | None:
        """The largest stream of those that can stay; None where that takes sizes that are not known."""
        able = [i for i, stays in enumerate(self._stays) if stays]
        known = [(size, -i) for i in able if (size := sizes[i]) is not None]
        if len(able) == 1:
            return able[0]
        return -max(known)[1] if len(known) == len(able) else None

    def _collected(self, large: int, most: tuple[int, int] | None) -> SpreadPlan | None:
        """The plan with the rows of the small streams; None if they are not as small as they seemed."""
        if not self._stays[large]:
            self.refused = self._sent[large].why_not
            return None
        small = [i for i in range(len(self._sent)) if i != large]
        frames = [self._sent[i].frame for i in small]
        found = collected_streams(frames, most)
        if found is None:
            return None
        if self._options.invalid == "raise":
            refuse_invalid(frames, [each.statistics for each in found])
        return SpreadPlan(large, dict(zip(small, found, strict=True)))


def shipped(events: Side, frame: EventFrame, layout: WireLayout) -> Shipment:
    """Events on their way to every worker, in order of time."""
    table: pa.Table = wire_table(events, frame, layout)
    table = sorted_table(table, layout, "left", frame.times.model)
    return ship(table, frame.spark, "what is broadcast", f"remove {argument('way')}")
