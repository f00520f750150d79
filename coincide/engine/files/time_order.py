"""Parquet files of which each row group is later than all before it: they can be read one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from coincide.engine.events.schemas import decoded, plain_type
from coincide.engine.files.finding import ParquetFiles
from coincide.engine.files.footers import ONLY_NULLS, Footer, read_footers


class _Group(NamedTuple):
    """A row group: its earliest and latest time as they are stored, its file, and its number there."""

    low: float
    high: float
    file: int
    number: int


@dataclass(frozen=True)
class TimeOrdered:
    """Row groups in order of time."""

    files: ParquetFiles
    schema: pa.Schema
    groups: list[_Group]

    @classmethod
    def of(cls, files: ParquetFiles, time: str, schema: pa.Schema) -> TimeOrdered | None:
        """The row groups of files, if their statistics tell that no two of them share a time."""
        footers = read_footers(files, [time])
        stored = {footer.ranges[time][0] for footer in footers if footer.rows.size}
        if not _are_alike(footers, schema) or None in stored or len(stored) > 1:
            return None
        groups = []
        for file, footer in enumerate(footers):
            for number, found in zip(footer.index.tolist(), footer.ranges[time][1], strict=True):
                low, high = found or (None, None)
                if low is None or high is None:
                    return None
                groups.append(_Group(low, high, file, number))
        timeless = [group for group in groups if (group.low, group.high) == ONLY_NULLS]
        timed = sorted(group for group in groups if (group.low, group.high) != ONLY_NULLS)
        if any(first.high >= second.low for first, second in pairwise(timed)):
            return None
        return cls(files, schema, timeless + timed)

    def tables(self) -> Iterator[pa.Table]:
        """The rows of one row group after the other."""
        for group in self.groups:
            path = self.files.paths[group.file]
            with self.files.reading(path), self.files.filesystem.open_input_file(path) as source:
                table = pq.ParquetFile(source).read_row_group(group.number, self.schema.names)
            columns = [decoded(table.column(f.name), f.type) for f in self.schema]
            yield pa.table(columns, self.schema)


def _are_alike(footers: Sequence[Footer], schema: pa.Schema) -> bool:
    """Whether the needed columns are of one type in all files, and mean what they say."""
    return all(
        field.name in footer.schema.names
        and plain_type(footer.schema.field(field.name).type) == field.type
        and field.name not in footer.int96
        and not footer.old_calendar
        for footer in footers
        for field in schema
    )
