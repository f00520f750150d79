"""Both sides to the driver, where they are small: then nobody need read them a second time."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T

from coincide.engine.events.schemas import narrow_type
from coincide.engine.events.sides import Side, SideCounts, grouped_events, read_side
from coincide.engine.join.timing import JoinSpec
from coincide.model.errors import SchemaError
from coincide.model.options import CorrelateOptions
from spark_plugin.cluster.gateway_errors import SPARK_ERRORS
from spark_plugin.cluster.jobs import at_once
from spark_plugin.frames import columns as frames
from spark_plugin.frames.columns import field_of
from spark_plugin.frames.estimates import estimated_bytes
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.queries import tell_query
from spark_plugin.frames.statistics import SideStatistics
from spark_plugin.tasks.wire import CODED, TIME, UNMATCHED, WireLayout
from spark_plugin.ways.collect.rows import (
    Wanted,
    collected_rows,
    counted,
    must_be_counted,
)
from spark_plugin.ways.files.wire import on_the_wire, wire_kind

_log = logging.getLogger("coincide")
MOST_ROWS = 1 << 20
"""Of each side that are collected by themselves: more are read faster by many tasks."""
MOST_BYTES = 28 * MOST_ROWS
"""What Spark may take both sides for; files it takes for as large as they are on disk."""
_COUNTED_ABOVE = 12 << 20
"""Where it takes them for more, they are counted: of few bytes a row they may be far too many."""
_STRANGE = "the column {!r} cannot be sent on by the driver"
_TOO_LARGE = "there are more than {1:,} rows a side or {0:,} bytes"


@dataclass(frozen=True, eq=False)
class CollectedSide:
    """A side in memory."""

    events: Side
    statistics: SideStatistics


def collected_sides(
    sides: tuple[EventFrame, EventFrame],
    spec: JoinSpec,
    options: CorrelateOptions,
    *,
    any_computed: bool = False,
) -> tuple[CollectedSide, CollectedSide] | None:
    """Both sides, if that is asked for, or Spark takes them for small and they are; else None.

    Runs eagerly, and reads one stream once. Invalid rows are left out, and counted. `any_computed` is as
    of `may_be_collected`.
    """
    most, size = None, 0.0
    if options.way != "collect":
        most = min(options.broadcast_bytes, options.slice_bytes), min(MOST_ROWS, options.slice_rows)
        if not may_be_collected(sides, options, any_computed=any_computed):
            return None
        size = _estimated([side for side in sides if not side.is_computed])
    streams = sides[:1] if spec.is_one_stream else sides
    needed = [side.needed for side in streams]
    if spec.is_one_stream:
        needed = [list(dict.fromkeys(sides[0].needed + sides[1].needed))]
    called = " and ".join(side.called for side in streams) + (
        " were" if len(streams) > 1 else " was"
    )
    wanted = [
        Wanted(side.plain, names, side.called, side.is_computed)
        for side, names in zip(streams, needed, strict=True)
    ]
    tables = _collected(wanted, most, called, are_many=size > _COUNTED_ABOVE)
    if tables is None:
        return None
    strange = [
        name
        for side, table in zip(sides, (tables[0], tables[-1]), strict=True)
        for name in _strange(side, table)
    ]
    if strange and most is None:
        raise SchemaError(
            f"way='collect' cannot take the column {strange[0]!r} along; leave way= or the column out"
        )
    if strange:
        _tell_in_vain(called, "collected", _STRANGE.format(strange[0]))
        return None
    return _read(sides, (tables[0], tables[-1]), spec)


def may_be_collected(
    sides: tuple[EventFrame, EventFrame], options: CorrelateOptions, *, any_computed: bool = False
) -> bool:
    """Whether Spark takes both sides for so small that they are collected, unless they turn out larger.

    With `any_computed` its estimate of those counts alone that are not computed.
    """
    known = [side for side in sides if not (any_computed and side.is_computed)]
    return _estimated(known) <= min(MOST_BYTES, options.broadcast_bytes, options.slice_bytes)


def collected_side(side: EventFrame, spec: JoinSpec, most: tuple[int, int]) -> CollectedSide | None:
    """One of two sides, if it has no more bytes and rows than that, as `collected_sides`; else None."""
    called = f"{side.called} was"
    tables = _collected(
        [Wanted(side.plain, side.needed, side.called, side.is_computed)], most, called
    )
    if tables is None:
        return None
    strange = _strange(side, tables[0])
    if strange:
        _tell_in_vain(called, "collected", _STRANGE.format(strange[0]))
        return None
    events, counts = _events(side, tables[0], spec)
    statistics = _statistics(events, counts, None, tables[0])
    if side.side == "right" or not spec.keeps_unmatched:
        events = _matchable(events)
    return CollectedSide(events, statistics)


def _collected(
    wanted: Sequence[Wanted], most: tuple[int, int] | None, called: str, *, are_many: bool = False
) -> list[pa.Table] | None:
    """Columns of all rows of DataFrames; None if all have more bytes than `most`, or one more rows."""
    if most is None:
        return _whole(wanted, None)
    uncertain = [
        each for each in wanted if must_be_counted(each) or (are_many and not each.is_computed)
    ]
    if _are_counted_too_large(uncertain, most, called):
        return None
    try:
        tables = _whole(wanted, most)
        if tables is None:
            if _are_counted_too_large(wanted, most, called):
                return None
            tables = _whole(wanted, None)
    except SPARK_ERRORS as error:
        # That of what Spark has taken for small: its driver has a bound of its own.
        if "maxResultSize" not in str(error):
            raise
        why = "spark.driver.maxResultSize bounds what the driver takes"
        _tell_in_vain(called, "collected", why)
        return None
    if tables is None or _are_too_large([(t.nbytes, t.num_rows) for t in tables], most):
        _tell_in_vain(called, "collected", _TOO_LARGE.format(*most))
        return None
    return tables


def _whole(wanted: Sequence[Wanted], most: tuple[int, int] | None) -> list[pa.Table] | None:
    """All rows, up to bounds of each partition if there are any; None if texts are withheld by these."""
    for each in wanted:
        tell_query(f"{each.called} collected")
    jobs = [partial(collected_rows, each, most) for each in wanted]
    found = at_once(wanted[0].frame.sparkSession, jobs)
    tables = [table for table in found if table is not None]
    return tables if len(tables) == len(found) else None


def _are_counted_too_large(wanted: Sequence[Wanted], most: tuple[int, int], called: str) -> bool:
    for each in wanted:
        tell_query(f"{each.called} counted")
    jobs = [partial(counted, each) for each in wanted]
    if not jobs or not _are_too_large(at_once(wanted[0].frame.sparkSession, jobs), most):
        return False
    _tell_in_vain(called, "counted", _TOO_LARGE.format(*most))
    return True


def _are_too_large(sizes: Sequence[tuple[int, int]], most: tuple[int, int]) -> bool:
    """Whether all have more bytes than `most`, or one more rows."""
    return sum(size for size, _ in sizes) > most[0] or any(rows > most[1] for _, rows in sizes)


def _tell_in_vain(called: str, done: str, why: str) -> None:
    _log.info(
        "correlate: %s %s in vain: Spark estimates few bytes, but %s; naming a way= spares this",
        called,
        done,
        why,
    )


def _estimated(sides: Sequence[EventFrame]) -> float:
    """What Spark takes sides for, before anything is read; infinite where it cannot be asked."""
    sizes = map(estimated_bytes, sides)
    return sum(math.inf if size is None else size for size in sizes)


def _strange(side: EventFrame, table: pa.Table) -> list[str]:
    """Columns that come in other types than those in which tasks would get them."""
    return [
        name
        for name, kind in _kinds(side)
        if not frames.crosses_as_int64(kind)
        and narrow_type(table.column(name).type) != wire_kind(kind)
    ]


def _kinds(side: EventFrame) -> list[tuple[str, T.DataType]]:
    names = (*side.by, *side.payload, *side.tested)
    return [(name, field_of(side.plain, side.called, name).dataType) for name in names]


def _read(
    sides: tuple[EventFrame, EventFrame], tables: tuple[pa.Table, pa.Table], spec: JoinSpec
) -> tuple[CollectedSide, CollectedSide]:
    (left, own), (right, others) = (
        _events(side, table, spec) for side, table in zip(sides, tables, strict=True)
    )
    groups = [
        getattr(e, "group", None) for e in grouped_events(left, right, case_fold=spec.case_fold)
    ]
    statistics = [
        _statistics(side, counts, group, table)
        for side, counts, group, table in zip(
            (left, right), (own, others), groups, tables, strict=True
        )
    ]
    if not spec.keeps_unmatched:
        left = _matchable(left)
    return CollectedSide(left, statistics[0]), CollectedSide(_matchable(right), statistics[1])


def _events(side: EventFrame, table: pa.Table, spec: JoinSpec) -> tuple[Side, SideCounts]:
    names = [*side.payload, *side.tested]
    if spec.is_one_stream:
        numbers = pa.array(np.arange(table.num_rows))
        table = table.append_column(_NUMBER, numbers)
        names.append(_NUMBER)
    events, counts = read_side(table, side.times, side.by, names, "drop")
    kinds = iter(_kinds(side))
    keys, columns = (
        [on_the_wire(name, column, kind) for column, (name, kind) in zip(each, kinds, strict=False)]
        for each in (events.keys, events.payload[: len(side.payload) + len(side.tested)])
    )
    identity = events.payload[len(columns) :] * 2
    rest = iter(columns)
    payload, tested = (list(islice(rest, len(n))) for n in (side.payload, side.tested))
    events = replace(events, keys=keys, payload=payload, tested=tested, identity=identity)
    return events, counts


_NUMBER = "\0row"


def _matchable(events: Side) -> Side:
    if events.matchable is None:
        return events
    return replace(events.rows(np.flatnonzero(events.matchable)), matchable=None)


def _statistics(
    events: Side, counts: SideCounts, group: np.ndarray | None, table: pa.Table
) -> SideStatistics:
    rows = slice(None) if events.matchable is None else np.flatnonzero(events.matchable)
    midpoints, lengths, shapes = events.sort_keys[rows], events.lengths[rows], events.shapes[rows]
    first, last = events.min_time[rows], events.max_time[rows]
    hashes = np.zeros(midpoints.size, np.int64) if group is None else group[rows]
    if (midpoints[1:] < midpoints[:-1]).any():
        order = np.argsort(midpoints, kind="stable")
        midpoints, hashes, shapes = midpoints[order], hashes[order], shapes[order]
    has_events = bool(midpoints.size)
    return SideStatistics(
        counts,
        shortest=int(lengths.min()) if has_events else 0,
        longest=int(lengths.max(initial=0)),
        midpoints=midpoints,
        weights=np.ones(midpoints.size),
        hashes=hashes,
        partitions=np.zeros(midpoints.size, np.int64),
        shapes=shapes,
        longest_of_group=lengths,
        row_bytes=table.nbytes / max(1, table.num_rows),
        own_bytes=table.nbytes,
        first=int(first.min()) if has_events else 0,
        last=int(last.max()) if has_events else 0,
    )


def wire_table(events: Side, side: EventFrame, layout: WireLayout) -> pa.Table:
    """Events in the columns of the wire that their side has."""
    coded = events.shapes if side.side == "left" else -1 - events.shapes
    if events.matchable is not None:
        coded = np.where(events.matchable, coded, UNMATCHED)
    columns = {TIME: pa.array(events.max_time), CODED: pa.array(coded)}
    for names, arrays in (
        (layout.keys, events.keys),
        (layout.identity, events.identity),
        (layout.payload(side.side), events.payload),
        (layout.tested(side.side), events.tested),
    ):
        columns.update(zip(names, arrays, strict=True))
    return pa.table(columns)
