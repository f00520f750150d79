"""From arguments to a planned join of files of which some are CSV or Arrow IPC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from coincide.engine.events.keys import key_pairs
from coincide.engine.events.schemas import plain_schema, with_like_keys
from coincide.engine.files.arrow_inputs import ArrowInput, Asked, Types, types_of_unknown
from coincide.engine.files.blocks import as_written
from coincide.engine.files.csv_keys import with_text_keys
from coincide.engine.files.footers import check_alike, check_present, file_schemas, read_footers
from coincide.engine.files.planning import NotDirect, check_readable
from coincide.engine.files.row_groups import NEVER, Spans, places_of
from coincide.engine.files.slice_join import PlannedFiles
from coincide.engine.files.source import Source
from coincide.engine.files.stamps import FileStamps, plain_stamp
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.join import plan_alone, plan_tables
from coincide.model.options import CorrelateOptions
from coincide.model.sides import LEFT, RIGHT
from spark_plugin.tasks.scanning import (
    ScannedFiles,
    ScannedJoin,
    ScannedRowGroups,
    ScannedSide,
    ScanPlan,
)

_MOST_TIMES = 1 << 20
"""Of the left side, in memory while slices are planned."""


def plan_scans(sources: Sequence[Source], arguments: JoinArguments) -> ScannedJoin:
    """Plan a join of files that are read block by block.

    CSV is read once for that, to learn the types of its columns, and once more for its times if there is
    more than one slice.
    """
    if arguments.shifts is not None or arguments.matching is not None:
        raise NotDirect("shifts and matchings compare what slices of files find")
    inputs = _inputs(sources, arguments)
    arguments = arguments.settled(*(plain_schema(given.schema) for given in inputs))
    types = types_of_unknown(_Asked(arguments), inputs)
    both = zip(inputs, arguments.columns, types, strict=True)
    looked = [_looked_at(*each) for each in list(both)[: len(sources)]]
    found = [looked[0], looked[-1]]
    tables = [one.files.schema.empty_table() for one in found]
    tables = with_text_keys(
        inputs, tables, key_pairs(arguments.by),
        are_whole=lambda side, name: name in found[side].wholes,
        are_empty=lambda side, name: name in found[side].empty,
    )  # fmt: skip
    schemas = with_like_keys(
        [table.schema for table in tables], arguments.keys, arguments.right_keys
    )
    sides = [_typed(one.files, schema) for one, schema in zip(found, schemas, strict=True)]
    plan = ScanPlan(np.empty(0, np.int64), (_any_time(sides[0]), _any_time(sides[1])))
    planned = plan_tables(schemas[0], schemas[1], arguments)
    slices = _slices(looked, arguments.options)
    join = _cut(ScannedJoin(planned, (sides[0], sides[1]), plan), slices)
    beside = plan_alone(schemas[0], schemas[1], arguments, planned)
    if beside is None:
        return join
    alone = ScannedJoin(beside, (sides[1], sides[0]), ScanPlan(plan.cuts, plan.spans[::-1]))
    return replace(join, alone=_cut(alone, slices))


def _cut(join: ScannedJoin, slices: int) -> ScannedJoin:
    return join if slices == 1 else replace(join, plan=_planned(join, slices))


@dataclass(frozen=True)
class _Asked(Asked):
    arguments: JoinArguments
    engine: str = "local"


@dataclass(frozen=True)
class _Looked:
    """A side; how many rows, and bytes of needed columns; its columns of whole floats, and empty ones."""

    files: ScannedSide
    rows: int
    bytes: float
    wholes: frozenset[str] = frozenset()
    empty: frozenset[str] = frozenset()


def _inputs(sources: Sequence[Source], arguments: JoinArguments) -> list[ArrowInput]:
    options = arguments.options
    found = [
        ArrowInput(source, "ns" in (options.unit_of(source.side), options.tick), tuple(times))
        for source, times in zip(sources, arguments.time_columns, strict=False)
    ]
    return [found[0], found[-1]]


def _looked_at(given: ArrowInput, columns: list[str], types: Types) -> _Looked:
    if given.source.file_format == "parquet":
        return _row_groups(given, columns)
    found = given.source.found
    stamps = []
    for path in found.paths:
        with found.reading(path):
            stamps.append(plain_stamp(found.filesystem, path))
    told = as_written(given, given.typed(columns, types))
    files = ScannedFiles(given, told.schema, plain_schema(told.schema), FileStamps.of(stamps))
    return _Looked(files, told.rows, told.bytes, told.wholes, told.empty)


def _row_groups(given: ArrowInput, columns: list[str]) -> _Looked:
    found = given.source.found
    footers = read_footers(found, (), columns)
    given.check_columns(columns)
    check_present(found.side, file_schemas(found, footers), columns)
    check_alike(found, footers, footers[0].schema, columns)
    for path, footer in zip(found.paths, footers, strict=True):
        check_readable(f"{found.side}: {path}", footer, columns)
    stamps = FileStamps.of([footer.stamp for footer in footers])
    planned = PlannedFiles(found, plain_schema(footers[0].schema), stamps)
    places = places_of(footers)
    size = sum(footer.bytes for footer in footers)
    return _Looked(ScannedRowGroups(planned, places), int(places.rows.sum()), size)


def _typed(files: ScannedSide, schema: pa.Schema) -> ScannedSide:
    if isinstance(files, ScannedRowGroups):
        return replace(files, files=replace(files.files, schema=schema))
    return replace(files, schema=schema)


def _any_time(files: ScannedSide) -> Spans:
    return Spans(np.full(len(files), -NEVER), np.full(len(files), NEVER))


def _slices(sides: Sequence[_Looked], options: CorrelateOptions) -> int:
    """As few as bound the memory of a task: each reads all pieces that may hold its rows."""
    if options.slices is not None:
        return options.slices
    rows, size = sum(side.rows for side in sides), sum(side.bytes for side in sides)
    return max(1, -(-rows // options.slice_rows), int(-(-size // options.slice_bytes)))


def _planned(join: ScannedJoin, slices: int) -> ScanPlan:
    """Slices of about as many left rows each, by a look at all times; invalid ones are refused."""
    timed, sample = join.of_times(), _Sample()
    spans = []
    for side, files in enumerate(join.files):
        first, last = np.full(len(files), NEVER), np.full(len(files), -NEVER)
        for piece in range(len(files)):
            for _, events, _ in timed.events(side, [piece]):
                low, high = events.min_time, events.min_time if side == LEFT else events.max_time
                if events.matchable is not None:
                    low, high = low[events.matchable], high[events.matchable]
                first[piece] = min(first[piece], low.min(initial=NEVER))
                last[piece] = max(last[piece], high.max(initial=-NEVER))
                if side == LEFT:
                    sample.add(low)
        spans.append(Spans(first, last))
    return ScanPlan(sample.cuts(slices), (spans[LEFT], spans[RIGHT]))


class _Sample:
    """Every so manieth of some numbers, so that not too many are kept."""

    def __init__(self) -> None:
        self._kept: list[np.ndarray] = []
        self._size, self._step = 0, 1

    def add(self, numbers: np.ndarray) -> None:
        """Take some."""
        self._kept.append(numbers[:: self._step].copy())
        self._size += self._kept[-1].size
        if self._size > _MOST_TIMES:
            every = np.concatenate(self._kept)[::2].copy()
            self._kept, self._size, self._step = [every], every.size, 2 * self._step

    def cuts(self, parts: int) -> np.ndarray:
        """Where parts of about equal size begin, but the first one: int64 array, ascending."""
        ordered = np.sort(np.concatenate([np.empty(0, np.int64), *self._kept]))
        if not ordered.size:
            return ordered
        cuts = np.unique(ordered[np.arange(1, parts) * ordered.size // parts])
        return cuts[cuts > ordered[0]]
