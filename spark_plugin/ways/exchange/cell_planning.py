"""Whether two sides are exchanged by cells, without a look: each is computed once then, not twice."""

from __future__ import annotations

from coincide.engine.events.intervals import IntervalColumns
from coincide.engine.join.timing import JoinSpec
from coincide.model.bands import midpoint_reach
from coincide.model.options import CorrelateOptions
from coincide.model.units import TIME_LIMIT
from spark_plugin.frames.estimates import Estimate, estimate_of_rows, estimated_bytes
from spark_plugin.frames.events import EventFrame
from spark_plugin.tasks.broadcast import FAR_LARGER
from spark_plugin.tasks.samples import Reach
from spark_plugin.tasks.slices import CellPlan
from spark_plugin.ways.choosing import parallelism
from spark_plugin.ways.exchange.packs import takes_packs
from spark_plugin.ways.exchange.planning import MOST_TIME_SLICES

_LEAST_BYTES = 6 << 20
"""What Spark must take each side for: of less both are collected faster, or one is broadcast."""
_LEAST_FILTERED_BYTES = 14 << 20
"""And where both have a filter: of less both are counted, and collected if these leave few rows."""
_WAVES_OF_FILTERED = 16
"""Of tasks, most of which may get nothing, as slices are for all that is filtered: tenths of a second."""
_WAVES_OF_COMPUTED = 4
_PACKED = 2
"""Spark takes files for as large as they are: of rows that are stored in so many times fewer bytes."""
_SMALLEST_SLICE_ROWS = 1 << 14
"""Of fewer, a task of its own does not pay."""


def plan_cells(
    sides: tuple[EventFrame, EventFrame], spec: JoinSpec, options: CorrelateOptions
) -> CellPlan | None:
    """A plan that needs no look; None if only a look could tell what it has to know."""
    if not takes_packs(sides):
        return None
    reach = _reach(sides, spec)
    if reach is None or any(map(_is_small, sides)):
        return None
    left, right = map(estimate_of_rows, sides)
    if left is None or right is None or not _are_large(left, right):
        return None
    tasks = parallelism(sides[0].source.sparkSession)
    slices = _slices(left + right, options, tasks)
    if slices > (_WAVES_OF_FILTERED * tasks if left.is_filtered else MOST_TIME_SLICES):
        return None
    return CellPlan(slices, reach, needs_keys=bool(sides[0].by))


def plan_computed_cells(
    sides: tuple[EventFrame, EventFrame], spec: JoinSpec, options: CorrelateOptions
) -> CellPlan | None:
    """A plan of sides that are expensive to compute: of such a look would be half of all work.

    None if neither is, or only a look could tell how far pairs reach. How many rows there are nobody knows:
    slices are as many as keep all cores busy, and each is divided in its worker if it is too large.
    """
    if not any(side.is_computed for side in sides) or not takes_packs(sides):
        return None
    reach = _reach(sides, spec)
    if reach is None:
        return None
    slices = _WAVES_OF_COMPUTED * parallelism(sides[0].source.sparkSession)
    return CellPlan(slices, reach, needs_keys=bool(sides[0].by))


def _is_small(side: EventFrame) -> bool:
    """Whether all columns together are too little, which takes far less time to ask than the rest."""
    size = estimated_bytes(side)
    return size is None or size < _LEAST_BYTES


def _are_large(left: Estimate, right: Estimate) -> bool:
    """Whether both are large, and neither is likely to be small beside the other.

    What filters leave of both may be little, which an exchange moves sooner than a look is done; what one
    leaves of a single side may be better broadcast.
    """
    if left.is_filtered != right.is_filtered:
        return False
    small, large = sorted((left.bytes, right.bytes))
    least = _LEAST_FILTERED_BYTES if left.is_filtered else _LEAST_BYTES
    return small >= least and large < FAR_LARGER * small


def _reach(sides: tuple[EventFrame, EventFrame], spec: JoinSpec) -> Reach | None:
    """How far pairs reach whose lengths nobody has seen; None if that has no bound."""
    left, right = map(_shapes, sides)
    if left is not None and right is not None:
        return Reach.of(spec.pairs, left, right, spec.largest_useful)
    apart = midpoint_reach(spec.widest) if spec.are_uniform else None
    any_length = 0, 2 * TIME_LIMIT
    return None if apart is None else Reach(*apart, any_length, any_length)


def _shapes(side: EventFrame) -> tuple[int, int] | None:
    """Smallest and largest shape of a side, where no row need be seen for it."""
    times = side.times
    is_exact = isinstance(times, IntervalColumns) and len(times.names) == 1
    return (0, 0) if is_exact else times.declared


def _slices(size: Estimate, options: CorrelateOptions, tasks: int) -> int:
    """Slices of as many rows and bytes as options let them have, and enough that each core has one."""
    rows, stored = _PACKED * size.rows, _PACKED * size.bytes
    slices = max(
        1,
        -(-rows // options.slice_rows),
        -(-stored // options.slice_bytes),
        min(tasks, rows // _SMALLEST_SLICE_ROWS),
    )
    if slices > tasks:  # whole waves of tasks, so that no core idles in the last one
        slices = -(-slices // tasks) * tasks
    return slices
