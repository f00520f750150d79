"""An exchange of sides at which nobody looks: each is computed once, where a look has it computed twice."""

from __future__ import annotations

from coincide.bands import midpoint_reach
from coincide.options import CorrelateOptions
from coincide.units import TIME_LIMIT
from spark_plugin.dataframes.estimates import estimated_bytes, keeps_all_rows
from spark_plugin.dataframes.events import EventFrame
from spark_plugin.ways.choice import declared_plan, parallelism
from spark_plugin.ways.exchange.cells import CellPlan
from spark_plugin.ways.exchange.packs import takes_packs
from spark_plugin.ways.exchange.planning import MOST_TIME_SLICES
from spark_plugin.ways.samples import Reach
from spark_plugin.worker.emission.spec import JoinSpec
from spark_plugin.worker.timestamps.intervals import IntervalColumns

_LEAST_BYTES = 4 << 20
"""What Spark must take each side for: of less a broadcast may be faster, which a look would tell."""
_ALIKE = 4
"""Beside a side of so many times as many bytes a broadcast of the other may be faster."""
_ROW_BYTES = 16
"""Bytes of a row in what Spark takes files for, which are compressed, at the least that is usual."""
_SMALLEST_SLICE_BYTES = 1 << 18
"""Of less, a task of its own does not pay."""


def plan_unseen(
    sides: tuple[EventFrame, EventFrame], spec: JoinSpec, options: CorrelateOptions
) -> CellPlan | None:
    """A plan that needs no look; None if only a look could tell what it has to know."""
    # Dropped rows are counted by their reason, and an assignment is cut where nothing meets.
    if options.way != "auto" or options.slices is not None or options.invalid == "drop":
        return None
    if spec.is_one_stream or spec.matching == "optimal" or not takes_packs(sides):
        return None
    if declared_plan(sides, spec, options) is not None:
        return None
    sizes = [_size(side) for side in sides]
    if None in sizes:
        return None
    size, larger = sorted(size for size in sizes if size is not None)
    if size < _LEAST_BYTES or larger >= _ALIKE * size:
        return None
    slices = _slices(size + larger, options, parallelism(sides[0].source.sparkSession))
    reach = _reach(sides, spec)
    if reach is None or slices > MOST_TIME_SLICES:
        return None
    return CellPlan(slices, reach, needs_keys=bool(sides[0].by))


def _size(side: EventFrame) -> int | None:
    """What Spark takes a side for, if it knows that of all its rows."""
    size = estimated_bytes(side)
    return size if size is not None and keeps_all_rows(side) else None


def _reach(sides: tuple[EventFrame, EventFrame], spec: JoinSpec) -> Reach | None:
    """How far pairs reach whose lengths nobody has seen; None if that has no bound."""
    left, right = map(_shapes, sides)
    if left is not None and right is not None:
        return Reach.of(spec.pairs, left, right)
    apart = None if spec.has_histograms else midpoint_reach(spec.widest)
    any_length = 0, 2 * TIME_LIMIT
    return None if apart is None else Reach(*apart, any_length, any_length)


def _shapes(side: EventFrame) -> tuple[int, int] | None:
    """Smallest and largest shape of a side, where no row need be seen for it."""
    times = side.times
    is_exact = isinstance(times, IntervalColumns) and len(times.names) == 1
    return (0, 0) if is_exact else times.declared


def _slices(size: int, options: CorrelateOptions, tasks: int) -> int:
    """Slices of as many bytes as options let rows have, and enough that each core has one."""
    least = min(_ROW_BYTES * options.slice_rows, options.slice_bytes)
    slices = max(1, -(-size // least), min(tasks, size // _SMALLEST_SLICE_BYTES))
    if slices > tasks:  # whole waves of tasks, so that no core idles in the last one
        slices = -(-slices // tasks) * tasks
    return slices
