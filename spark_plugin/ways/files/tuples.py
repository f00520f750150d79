"""Sequences and coincidences of DataFrames that only read Parquet in time order: tasks read row groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from coincide.engine.files.planning import (
    MOST_READS,
    REMEDY,
    NotDirect,
    rows_of_slice,
    timed_groups,
)
from coincide.engine.files.slices import direct_plans
from coincide.engine.join.timing import JoinSpec
from coincide.model.condition import Window
from coincide.model.errors import argument
from coincide.model.options import CorrelateOptions
from spark_plugin.frames.columns import wire_kind
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.plain_files import files_of
from spark_plugin.tasks.file_sequences import StreamFiles
from spark_plugin.ways.exchange.packed_files import FileSide

_MOST_READS_UNASKED = 2.0
"""Times that a row is read on average where no one asks for files: of three, an exchange is faster."""


@dataclass(frozen=True, eq=False)
class TupleFiles:
    """A search whose tasks read the row groups that they need."""

    sent: tuple[StreamFiles, ...]
    useful: int
    count: int
    why: str


def plan_tuple_files(
    frames: Sequence[EventFrame],
    given: Sequence[FileSide | None],
    joins: Sequence[Sequence[JoinSpec]],
    options: CorrelateOptions,
    tasks: int,
) -> TupleFiles:
    """Slices of the first stream; `joins` are those from it to each other place of each stream."""
    if options.invalid == "drop":
        raise NotDirect(
            f"rows that are skipped are counted by a job of Spark. Remove {argument('invalid')}, or use"
            " another way."
        )
    files = _all_files(frames, given)
    every = [join for own in joins for join in own]
    useful = max(join.largest_useful[0] for join in every)
    first = timed_groups(files[0].files.files, files[0].footers, files[0].tables, 0, useful)
    read = [i for i, own in enumerate(joins) if own]
    rights = []
    for i in read:
        longest = max(join.largest_useful[1] for join in joins[i])
        groups = timed_groups(files[i].files.files, files[i].footers, files[i].tables, 0, longest)
        rights.append((groups, _window_of(joins[i])))
    plans = direct_plans(
        first, rights, parallelism=tasks, slices=options.slices,
        slice_rows=rows_of_slice([each.footers for each in files], options),
    )  # fmt: skip
    most = MOST_READS if options.way == "files" else _MOST_READS_UNASKED
    if plans[0].reads > most:
        raise NotDirect(
            f"the files are not in order of time, so each row would be read {plans[0].reads:.1f} times on"
            f" average, and up to {most:g} times pays. Order them once, for example by {REMEDY}."
        )
    planned = {i: (plan, window) for i, plan, (_, window) in zip(read, plans, rights, strict=True)}
    sent = []
    for i, (frame, each) in enumerate(zip(frames, files, strict=True)):
        plan, window = planned.get(i, (None, None))
        names = frame.by, frame.payload, frame.tested
        kinds = tuple(tuple(wire_kind(frame.kind_of(name)) for name in own) for own in names)
        sent.append(
            StreamFiles(files=each.files, tables=each.tables, kinds=kinds, plan=plan, window=window)
        )
    return TupleFiles(tuple(sent), useful, len(plans[0].slices), plans[0].describe())


def _all_files(frames: Sequence[EventFrame], given: Sequence[FileSide | None]) -> list[FileSide]:
    """The files of all streams, whose row groups tell when their events are."""
    found = [each for each in given if each is not None]
    if len(found) < len(given):
        missing = [frame for frame, each in zip(frames, given, strict=True) if each is None]
        # With keys none is read where one cannot be.
        reasons = [frame for frame in missing if files_of(frame) is None] or missing
        raise NotDirect(
            f"tasks cannot read {' and '.join(frame.called for frame in reasons)} themselves, which does"
            " more than read local Parquet files. Use another way."
        )
    for frame, each in zip(frames, found, strict=True):
        if each.tables.times[0].beyond is None:
            raise NotDirect(
                f"{frame.called}: the times of a row group do not bound its events, as a width of each row"
                " counts too. Use another way."
            )
    return found


def _window_of(joins: Sequence[JoinSpec]) -> Window:
    """The window that holds those of all joins."""
    windows = [join.window for join in joins]
    lo, hi = min(window.lo for window in windows), max(window.hi for window in windows)
    return replace(windows[0], lo=lo, hi=hi)
