"""The matches of events in arrays of a GPU, which stay there."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from coincide.engine.arrays.asked import (
    ArrayAggregates,
    ArrayMatches,
    Asked,
    has_values,
    said,
    with_tick,
)
from coincide.engine.arrays.events import EventArrays, check_lengths, invalid_event
from coincide.engine.events.time_columns import TimeScale
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.join import TableJoin, TablePlan
from coincide.engine.reports.join_report import JoinReport
from coincide.engine.room import check_most
from coincide.model.errors import (
    BackendError,
    ConditionError,
    NoPairsWarning,
    SchemaError,
    argument,
    brief,
    option,
)
from coincide.model.options import Backend, CorrelateOptions
from coincide.model.sides import SIDES
from coincide.model.timestamps.intervals import IntervalPairs, IntervalTimes

_NO_PAIRS = "no pair is found. correlate_arrays of the same arrays in the host's memory says why."
_BACK = "bring the arrays to the host's memory with .get()."


def check_backend(backend: Backend) -> None:
    """Refuse a backend that is not where the arrays are, and a GPU that cannot be used."""
    if backend == "cpu":
        raise BackendError(
            f"{argument('backend', 'cpu')} joins arrays of the host's memory (found some of a GPU)."
            f" Remove it, or {_BACK}"
        )
    from gpu_kernels.device import usable

    usable.require()


def check_devices(options: CorrelateOptions) -> None:
    """Refuse several GPUs for arrays that lie on one."""
    if options.devices != "one":
        raise ConditionError(
            f"arrays of a GPU are joined on that GPU (found {option('devices', options.devices)})."
            f" Remove it, or {_BACK}"
        )


def check_report(report: JoinReport | None) -> None:
    """Refuse a report, for which a join would have to be counted on the host."""
    if report is not None:
        raise ConditionError(
            f"a join of arrays on a GPU gives no report (found {argument('report')}). Remove it, or"
            f" {_BACK}"
        )


def on_device(
    sides: Sequence[EventArrays],
    arguments: Callable[..., JoinArguments],
    asked: Asked,
    options: CorrelateOptions,
) -> ArrayMatches:
    """The matches of two sides."""
    if len(sides) == 1:
        raise ConditionError(
            f"a join of arrays on a GPU has two sides (found one stream). Give two, or {_BACK}"
        )
    from gpu_kernels import arrays

    given = [_given(side, events) for side, events in zip(SIDES, sides, strict=True)]
    try:
        arrays.check_devices([array for columns in given for array, _ in columns.values()])
    except ValueError as error:
        raise SchemaError(
            f"arrays must lie on the GPU that this process uses (found {error}). Move them there, or"
            " start the process with CUDA_VISIBLE_DEVICES."
        ) from error
    with arrays.callers_turn():
        tables = [_schema_of(columns).empty_table() for columns in given]
        options = with_tick(options, tables)
        plan = _plan(tables, arguments, options, asked)
        left, right, check = _checked(given, plan)
        model = IntervalPairs(plan.timing.window)
        join = arrays.ArrayJoin(left, right, model, options.classes, check)
        sizes = [each.times.max_time.size for each in (left, right)]
        found = _matches(join, asked, sizes, options)
    if asked.emit in ("pairs", "lists") and not found.right.size:
        warnings.warn(_NO_PAIRS, NoPairsWarning, stacklevel=3)
    return found


_Column = tuple[Any, np.dtype | None]
"""An array, and the type of its times if it holds such."""


def events_on_host(side: str, events: EventArrays) -> EventArrays:
    """Copies of the arrays of a side."""
    named = zip(EventArrays._fields, events, strict=True)
    return EventArrays(
        *(None if each is None else _on_host(f"{side}.{field}", each) for field, each in named)
    )


def values_on_host(aggregates: ArrayAggregates) -> ArrayAggregates:
    """The same aggregates, of copies of the arrays of values."""
    return {
        name: (_on_host(said(name), each[0]), *each[1:]) if has_values(each) else each
        for name, each in aggregates.items()
    }


def aggregates_on_device(found: ArrayMatches) -> ArrayMatches:
    """Counts and aggregates, copied to the GPU; times as int64, since CuPy has none."""
    from gpu_kernels.device.arrays import on_device as copied

    made = {
        name: copied(each.view(np.int64) if each.dtype.kind in "mM" else each)
        for name, each in (found.aggregates or {}).items()
    }
    return found._replace(counts=copied(found.counts), aggregates=made)


def _on_host(name: str, given: Any) -> np.ndarray:
    array, kind = _array_of(name, given)
    found: np.ndarray = array.get()
    return found if kind is None else found.view(kind)


def _array_of(name: str, given: Any) -> _Column:
    from gpu_kernels import arrays

    try:
        return arrays.as_array(given)
    except (TypeError, ValueError, BufferError, NotImplementedError) as error:
        raise SchemaError(
            f"{name} cannot be taken as it is (found {brief(str(error))}). Leave nulls out, and"
            " give whole numbers or times in one dimension."
        ) from error


def _given(side: str, events: EventArrays) -> dict[str, _Column]:
    """The arrays of one side by field, whole numbers in one dimension each."""
    found: dict[str, _Column] = {}
    for field, given in zip(EventArrays._fields, events, strict=True):
        if given is None:
            continue
        name = f"{side}.{field}"
        array, kind = _array_of(name, given)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise SchemaError(
                f"{name} must be whole numbers of shape (n,) on a GPU (found {array.dtype} of"
                f" {array.ndim} dimensions). Cast it, for example to int64 ticks."
            )
        if field == "key" and (kind is not None or array.dtype == np.uint64):
            raise SchemaError(
                f"{name} must be whole numbers with a sign (found {kind or array.dtype}). Cast it to"
                " int64."
            )
        found[field] = array, kind
    check_lengths(side, {field: array.size for field, (array, _) in found.items()})
    return found


def _schema_of(columns: dict[str, _Column]) -> pa.Schema:
    kinds = {
        field: pa.int64() if kind is None else _arrow_kind(field, kind)
        for field, (_, kind) in columns.items()
    }
    return pa.schema(kinds)


def _arrow_kind(field: str, kind: np.dtype) -> pa.DataType:
    unit, count = np.datetime_data(kind)
    if unit not in ("s", "ms", "us", "ns") or count != 1:
        raise SchemaError(
            f"{field} on a GPU counts s, ms, us or ns (found {kind}). Cast it to one."
        )
    return pa.from_numpy_dtype(kind)


def _plan(
    tables: list[pa.Table],
    arguments: Callable[..., JoinArguments],
    options: CorrelateOptions,
    asked: Asked,
) -> TablePlan:
    """The plan of a join of tables with such columns."""
    given = arguments(
        options=options, emit=asked.emit, left_columns="min_time", right_columns="min_time"
    )
    return TableJoin(tables[0], tables[1], given).plan


def _checked(given: Sequence[dict[str, _Column]], plan: TablePlan) -> tuple[Any, Any, Any]:
    """Events of both sides in ticks, and the check of their times, which the join looks at as it may."""
    from gpu_kernels import arrays

    raw, scales = [], [times.scales for times in plan.times]
    for columns, (scale, _) in zip(given, scales, strict=True):
        low = _whole(columns["min_time"][0])
        high = _whole(columns["max_time"][0]) if "max_time" in columns else low
        raw.append((low, high, scale.limit))

    def look(first: np.ndarray) -> None:
        for side, row, (low, high, _) in zip(SIDES, first.tolist(), raw, strict=True):
            if row != arrays.NO_ROW:
                times = {"min_time": int(low[row]), "max_time": int(high[row])}
                raise invalid_event(side, "order" if low[row] > high[row] else "range", row, times)

    left, right = (
        arrays.ArrayEvents(_ticks(low, high, scale), _key_of(columns))
        for (low, high, _), (scale, _), columns in zip(raw, scales, given, strict=True)
    )
    return left, right, (arrays.first_invalid(raw), look)


def _whole(array: Any) -> Any:
    """An array as int64, C-contiguous; what has no room is out of range."""
    from gpu_kernels.device.arrays import array_module

    xp = array_module()
    if array.dtype == np.uint64:
        array = xp.minimum(array, np.uint64(np.iinfo(np.int64).max))
    return xp.ascontiguousarray(array.astype(np.int64, copy=False))


def _ticks(low: Any, high: Any, scale: TimeScale) -> IntervalTimes:
    if scale.factor.denominator != 1:
        raise ConditionError(
            f"a tick of {scale.tick.unit} is longer than what arrays on a GPU count (found"
            f" {scale.factor.denominator} of these in one). Remove {argument('tick')}."
        )
    if scale.factor == 1:
        return IntervalTimes(low, high)
    factor = scale.factor.numerator
    scaled = low * factor
    return IntervalTimes(scaled, scaled if high is low else high * factor)


def _key_of(columns: dict[str, _Column]) -> Any | None:
    return _whole(columns["key"][0]) if "key" in columns else None


def _matches(
    join: Any, asked: Asked, sizes: Sequence[int], options: CorrelateOptions
) -> ArrayMatches:
    from gpu_kernels.device.arrays import array_module

    if asked.emit == "counts":
        return ArrayMatches(counts=join.counts)
    row_type = asked.row_type(*sizes, default=np.int32)
    if asked.emit == "best":
        right = join.best(row_type)
        left = array_module().arange(right.size)
        return ArrayMatches(right=right, **_of_pairs(join, asked, left, right))
    if options.max_pairs is not None:
        check_most(join.size, options.max_pairs)
    in_lists = asked.emit == "lists"
    left, right = join.pairs(row_type, in_left_order=in_lists or asked.order == "left")
    found = ArrayMatches(left, right, **_of_pairs(join, asked, left, right))
    return found._replace(left=None, offsets=join.offsets) if in_lists else found


def _of_pairs(join: Any, asked: Asked, left: Any, right: Any) -> dict[str, Any]:
    from gpu_kernels.device.arrays import array_module

    found: dict[str, Any] = {}
    if asked.probability:
        found["probability"] = join.probabilities(left, right)
        if asked.emit == "best":
            xp = array_module()
            found["probability"] = xp.where(right < 0, np.nan, found["probability"])
    if asked.delta:
        found["delta"] = join.deltas(left, right)
    return found
