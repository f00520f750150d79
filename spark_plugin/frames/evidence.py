"""What is known of two DataFrames whose join finds nothing, or will find nothing."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from coincide.engine.events.sides import Side
from coincide.engine.events.timestamps import INTERVALS
from coincide.engine.join.spec import AnySpec
from coincide.engine.reports.emptiness import (
    Evidence,
    Instants,
    KeyOverlap,
    NearestMiss,
    NoPairs,
    explain_emptiness,
    holds_no_instant,
    key_overlap,
    nearest_miss,
)
from spark_plugin.frames.columns import quoted
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.statistics import SideStatistics, measure

_log = logging.getLogger("coincide")
_MOST_KEYS = 20_000
"""Distinct keys of a side to look at."""


@dataclass(frozen=True)
class FrameEvidence:
    """Two sides, and what the planning job has shown of them."""

    sides: tuple[EventFrame, EventFrame]
    spec: AnySpec
    statistics: tuple[SideStatistics, SideStatistics] | None

    def foreseen(self) -> NoPairs | None:
        """Why there will be no pair, if the planning job shows it: runs a job only where keys are why."""
        if self.statistics is None:
            return None
        found = self._explained(self.statistics, None)
        if not found.reasons and self._shares_no_key(self.statistics):
            found = self._explained(self.statistics, self._keys())
        return found if found.reasons else None

    def no_pairs(self) -> NoPairs:
        """Why there was no pair. Runs the planning job if it did not, and one for matchable keys."""
        if self.statistics is None or self.sides[0].by:
            _log.info(
                "correlate: there is no pair, so both sides are computed once more to find out why"
            )
        statistics = self.statistics or measure(*self.sides, self.spec.is_one_stream)
        can_match = all(side.matchable for side in statistics)
        return self._explained(statistics, self._keys() if can_match else None)

    def _explained(
        self, statistics: tuple[SideStatistics, SideStatistics], keys: KeyOverlap | None
    ) -> NoPairs:
        left, right = (
            Evidence(
                side.times.scales[0],
                s.matchable,
                s.shortest,
                s.first,
                s.last,
                empty=_empty(s) if holds_no_instant(side.times.model) else None,
            )
            for side, s in zip(self.sides, statistics, strict=True)
        )
        return explain_emptiness(left, right, self.spec, keys, self._nearest(statistics))

    def _nearest(self, statistics: tuple[SideStatistics, SideStatistics]) -> NearestMiss | None:
        """The pair that is nearest to the window, of exact times that were looked at."""
        spec = self.spec
        is_exact = spec.shapes_are_lengths and not any(side.longest for side in statistics)
        if not is_exact or spec.shift:
            return None
        left, right = (Instants(side.hashes, side.midpoints // 2) for side in statistics)
        is_all = all(side.midpoints.size == side.matchable for side in statistics)
        others = None if spec.is_one_stream else right
        return nearest_miss(left, others, spec.widest, is_all=is_all)

    def _shares_no_key(self, statistics: tuple[SideStatistics, SideStatistics]) -> bool:
        """Whether the sample holds all events, and no key of one side is on the other."""
        is_whole = all(s.midpoints.size == s.matchable for s in statistics)
        left, right = (s.hashes for s in statistics)
        return is_whole and bool(self.sides[0].by) and not np.isin(left, right).any()

    def _keys(self) -> KeyOverlap | None:
        by = self.sides[0].by
        if not by or self.spec.is_one_stream:
            return None
        frames = [_distinct_keys(side) for side in self.sides]
        tables = [frame.limit(_MOST_KEYS + 1).toArrow() for frame in frames]
        found = key_overlap(_side_of(tables[0]), _side_of(tables[1]), by)
        if found is None or max(table.num_rows for table in tables) <= _MOST_KEYS:
            return found
        shared = frames[0].intersect(frames[1]).count()
        left, right = (frame.count() for frame in frames)
        return KeyOverlap(found.names, left, right, shared, True)


def _empty(side: SideStatistics) -> int | None:
    """How many events have no length, where that is known: all, none, or each was looked at."""
    if side.longest == 0 or side.shortest > 0:
        return side.matchable if side.longest == 0 else 0
    is_all = side.shapes.size == side.matchable
    return int((side.shapes == 0).sum()) if is_all else None


def _distinct_keys(side: EventFrame) -> DataFrame:
    names = [quoted(name) for name in side.by]
    rows = side.source.selectExpr(
        *side.columns, *(f"{name} AS key{i}" for i, name in enumerate(names))
    )
    return rows.where(side.is_ok).select(*(f"key{i}" for i in range(len(names)))).distinct()


def _side_of(keys: pa.Table) -> Side:
    times = np.zeros(keys.num_rows, np.int64)
    columns = [column.combine_chunks() for column in keys.columns]
    return Side(times, times, INTERVALS, None, columns, [])
