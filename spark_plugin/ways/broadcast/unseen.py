"""A small side that is collected and broadcast without a look at the other one."""

from __future__ import annotations

from coincide.options import CorrelateOptions
from spark_plugin.cluster.accelerator import is_accelerated
from spark_plugin.dataframes.estimates import estimated_bytes, is_surely_larger
from spark_plugin.dataframes.events import EventFrame
from spark_plugin.dataframes.statistics import Looks, refuse_invalid
from spark_plugin.ways.broadcast.plan import (
    FAR_LARGER,
    SMALLEST_CHUNK,
    BroadcastPlan,
    described_size,
    is_two_step,
)
from spark_plugin.ways.collect.collecting import collected_side
from spark_plugin.worker.emission.spec import JoinSpec

MOST_BYTES = 12 << 20
"""What Spark may take the small side for."""
_LEAST_LARGE = 2 << 20
"""And for so many bytes: of less, both sides are collected faster."""


def plan_unseen(
    small: EventFrame, other: EventFrame, spec: JoinSpec, options: CorrelateOptions
) -> tuple[Looks, BroadcastPlan] | None:
    """What the rows of the small side are, and its broadcast; None if it is not as small as it seemed.

    Invalid rows of the large side fail the job that meets them. Runs eagerly.

    Raises
    ------
    DataError
        If rows of the small side are invalid.
    """
    # Of more rows each chunk of the large side would prepare more than it has itself.
    most = (
        min(options.broadcast_bytes, options.slice_bytes),
        min(SMALLEST_CHUNK, options.slice_rows),
    )
    found = collected_side(small, spec, most)
    if found is None:
        return None
    refuse_invalid([small], [found.statistics])
    statistics = found.statistics
    why = f"{described_size(statistics.own_bytes)}, no look at {other.called}"
    plan = BroadcastPlan(small.side, why, found.events)
    return ((statistics, None) if small.side == "left" else (None, statistics)), plan


def computed_and_other(
    sides: tuple[EventFrame, EventFrame], spec: JoinSpec
) -> tuple[EventFrame, EventFrame] | None:
    """The side that is computed, whose size nobody knows, and the other one; None if there is no such."""
    left, right = (side.is_computed for side in sides)
    if left == right or is_accelerated(sides[0].source.sparkSession):
        return None
    small, other = sides if left else sides[::-1]
    shuffles = is_two_step(small.side, spec) and spec.emit in ("pairs", "lists")
    return None if shuffles and not spec.one_row_per_event else (small, other)


def small_and_large(
    sides: tuple[EventFrame, EventFrame], spec: JoinSpec, options: CorrelateOptions
) -> tuple[EventFrame, EventFrame] | None:
    """The side that Spark takes for small, and the other one; None if only a look could tell more."""
    left, right = map(estimated_bytes, sides)
    # RAPIDS' plans are not observed, so that the rows of the other side could not be counted.
    if left is None or right is None or is_accelerated(sides[0].source.sparkSession):
        return None
    small, other = (sides[1], sides[0]) if right <= left else sides
    size, larger = min(left, right), max(left, right)
    least = max(FAR_LARGER * size, _LEAST_LARGE)
    if size > min(MOST_BYTES, options.broadcast_bytes) or larger < least:
        return None
    if not is_surely_larger(other, least):
        return None
    # Whether there are few pairs is not known, and these would all be shuffled.
    shuffles = is_two_step(small.side, spec) and spec.emit in ("pairs", "lists")
    return None if shuffles and not spec.one_row_per_event else (small, other)
