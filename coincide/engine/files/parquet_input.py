"""Parquet, read whole, or one row group after the other where each is later than all before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from coincide.engine.events.schemas import plain_type, with_types
from coincide.engine.files.arrow_inputs import ArrowInput
from coincide.engine.files.finding import FILENAME
from coincide.engine.files.footers import ONLY_NULLS, Footer, parsed_footers, read_footers
from coincide.engine.files.old_timestamps import (
    check_calendar,
    exact_instants,
    holds_dates,
    int96_columns,
    int96_times,
    with_instants,
)
from coincide.engine.files.slice_join import PlannedFiles
from coincide.engine.files.slices import Parts, places_of
from coincide.engine.files.source import path_columns, reading
from coincide.model.remembered import remembered

if TYPE_CHECKING:
    import pyarrow.dataset as ds


_PATH = "__filename"
"""What Arrow calls the path of each row's file."""


class Reader(ArrowInput):
    """An input of Parquet."""

    def file_schema(self, file: str) -> pa.Schema:
        """Without the columns of its path."""
        return dict(self.file_schemas)[file]

    def first_schema(self) -> pa.Schema:
        """With the columns of its path."""
        if self.source.found.folder:
            return with_instants(self._dataset.schema, int96_columns(self._footers[0]))
        return self._schema_of(self._footers[0])

    def later_schemas(self) -> Iterator[pa.Schema]:
        """As in `file_schemas`."""
        return (schema for _, schema in self.file_schemas[1:])

    @remembered
    def file_schemas(self) -> list[tuple[str, pa.Schema]]:
        """Path and schema of each file, without the columns of its path."""
        with reading(self.source):
            schemas = map(self._schema_of, self._footers)
            return list(zip(self.source.found.paths, schemas, strict=True))

    @remembered
    def _footers(self) -> list[pq.FileMetaData]:
        return parsed_footers(self.source.found)

    def whole_table(self, schema: pa.Schema) -> pa.Table:
        """The columns of a schema, in these types."""
        schema = self._with_widest_floats(schema)
        names, own, constants = (
            schema.names,
            self._dataset.schema,
            self.source.found.names.constants,
        )
        stored = pa.schema([f for f in self.own(schema) if f.name not in constants])
        is_as_stored = all(own.field(field.name).type == field.type for field in stored)
        dataset = self._dataset if is_as_stored else self._dataset_of(stored)
        if len(stored) < len(names):
            table = dataset.to_table(columns=[*stored.names, _PATH])
            of_file = pc.replace_substring_regex(table[_PATH], "^.*/", "")
            if self.lacks_name(names):
                table = table.append_column(FILENAME, of_file)
            table = constants.appended(table, _PATH).select(names)
        else:
            table = dataset.to_table(columns=names)
        if not any(holds_dates(kind) for kind in schema.types):
            return table
        check_calendar(self.source.side, table, self._footers)
        old = int96_times(table.schema, self._footers)
        if not old:
            return table
        fine = self._dataset_of(None, "ns").to_table(columns=old)
        return exact_instants(self.source.side, table, fine)

    def _schema_of(self, footer: pq.FileMetaData) -> pa.Schema:
        """The columns of a file, and of a table's log."""
        return self.source.found.names.schema(_schema_of(footer))

    def in_time_order(self, time: str, schema: pa.Schema) -> Iterator[pa.Table] | None:
        """The row groups, if their statistics tell that no two of them share a time."""
        # Floats are rounded to ticks: one may be later in its row group, and of a tick of the next.
        is_float = pa.types.is_floating(schema.field(time).type)
        if path_columns(self.source) or is_float:
            return None
        footers = read_footers(self.source.found, [time])
        order = _order_in_time(footers, time) if _are_alike(footers, schema) else None
        if order is None:
            return None
        planned = PlannedFiles.of(self.source.found, schema, footers)
        groups = Parts.whole(places_of(footers))
        each = (groups.take(np.array([group])) for group in order)
        return (planned.read(group, schema.names, threads=True) for group in each)

    @remembered
    def _dataset(self) -> ds.Dataset:
        return self._dataset_of(None)

    def _dataset_of(self, schema: pa.Schema | None, int96_unit: str = "us") -> ds.Dataset:
        """Its files; INT96 of Spark covers years that nanoseconds cannot count."""
        import pyarrow.dataset as ds  # for joins of whole tables: slices do without

        found = self.source.found
        options = ds.ParquetReadOptions(coerce_int96_timestamp_unit=int96_unit)
        # The paths of a folder's files may hold columns.
        return ds.dataset(
            found.folder or list(found.paths), schema=schema,
            format=ds.ParquetFileFormat(read_options=options),
            filesystem=found.filesystem, partitioning="hive" if found.folder else None,
        )  # fmt: skip

    def _with_widest_floats(self, schema: pa.Schema) -> pa.Schema:
        """As files with more digits have them, which a cast to fewer would lose in silence."""
        narrow = [f.name for f in schema if f.type in (pa.float16(), pa.float32())]
        widest = {}
        for name in narrow:
            kinds = [
                found.field(name).type for _, found in self.file_schemas if name in found.names
            ]
            floats = list(filter(pa.types.is_floating, kinds))
            if floats:
                widest[name] = max(floats, key=lambda kind: kind.bit_width)
        return with_types(schema, widest)


def _schema_of(footer: pq.FileMetaData) -> pa.Schema:
    """The columns of a file."""
    return with_instants(footer.schema.to_arrow_schema(), int96_columns(footer))


def _order_in_time(footers: Sequence[Footer], time: str) -> list[int] | None:
    """The row groups, numbered over all files, in order of time; None if two may share a time."""
    stored = {footer.ranges[time][0] for footer in footers if footer.rows.size}
    if None in stored or len(stored) > 1:
        return None
    ranges = [found for footer in footers for found in footer.ranges[time][1]]
    timed = []
    for group, found in enumerate(ranges):
        low, high = found or (None, None)
        if low is None or high is None:
            return None
        if found != ONLY_NULLS:
            timed.append((low, high, group))
    timed.sort()
    if any(first[1] >= second[0] for first, second in pairwise(timed)):
        return None
    timeless = [group for group, found in enumerate(ranges) if found == ONLY_NULLS]
    return timeless + [group for _, _, group in timed]


def _are_alike(footers: Sequence[Footer], schema: pa.Schema) -> bool:
    """Whether the needed columns have one type in all files, and mean what they say."""
    return all(
        field.name in footer.schema.names
        and plain_type(footer.schema.field(field.name).type) == field.type
        and field.name not in footer.int96
        and not footer.old_calendar
        for footer in footers
        for field in schema
    )
