"""Reads parts of row groups, and sees to it that the files are those that were planned with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spark_plugin.ways.files.plan import Parts
from spark_plugin.ways.files.stamps import FileStamps, check_unchanged, open_footer, stamp_of
from spark_plugin.worker.arrow.schemas import plain_type
from spark_plugin.worker.arrow.wide_columns import decoded
from spark_plugin.worker.files.file_names import FILENAME, lacks_name, named
from spark_plugin.worker.files.finding import ParquetFiles
from spark_plugin.worker.one_stream import ROW_NUMBERS

_FEW_ROWS = 256
"""Rows read at once of what is too large to be read whole."""


@dataclass(frozen=True, eq=False)
class PlannedFiles:
    """The files of one side as they were when the join was planned."""

    files: ParquetFiles
    schema: pa.Schema
    stamps: FileStamps

    def read(
        self, parts: Parts, names: Sequence[str], threads: bool, is_numbered: bool = False
    ) -> pa.Table:
        """Some columns of parts of row groups, file by file.

        Parameters
        ----------
        parts : Parts
        names : sequence of str
        threads : bool
            Whether PyArrow may use several.
        is_numbered : bool
            Whether `ROW_NUMBERS` are added, which say where a row is.

        Raises
        ------
        DataError
            If a file cannot be read, or is another than was planned with.
        """
        order = np.lexsort((parts.places.index, parts.places.file))
        parts = parts.take(order)
        edges = np.flatnonzero(np.diff(parts.places.file)) + 1
        runs = np.split(np.arange(len(parts.places)), edges) if len(parts.places) else []
        wanted = pa.schema([(name, plain_type(self.schema.field(name).type)) for name in names])
        tables = [
            plain_table(self._of_file(parts.take(run), names, threads), wanted) for run in runs
        ]
        table = pa.concat_tables([wanted.empty_table(), *tables])
        if not is_numbered:
            return table
        for name, numbers in zip(ROW_NUMBERS, _row_numbers(parts), strict=True):
            table = table.append_column(name, pa.array(numbers))
        return table

    def _of_file(self, parts: Parts, names: Sequence[str], threads: bool) -> pa.Table:
        file = int(parts.places.file[0])
        path, filesystem = self.files.paths[file], self.files.filesystem
        planned = self.stamps[file]
        with self.files.reading(path), filesystem.open_input_file(path) as source:
            metadata, digest = open_footer(source)
            check_unchanged(self.files.side, path, planned, planned.with_digest(digest))
            with pq.ParquetFile(source, metadata=metadata, pre_buffer=True) as open_file:
                stored = self.files.names.in_files(names)
                is_named = lacks_name(stored, open_file.schema_arrow.names)
                stored = [name for name in stored if not is_named or name != FILENAME]
                table = _row_groups(open_file, parts.places.index.tolist(), stored, threads)
            # When all is read, so that no change before can have gone by unseen.
            found = stamp_of(filesystem, path, digest)
            check_unchanged(self.files.side, path, planned, found)
        table = named(table, path, names) if is_named else self.files.names.table(table, names)
        return _cut_to(table, parts)


def _row_numbers(parts: Parts) -> tuple[np.ndarray, np.ndarray]:
    """The row group of each row, ascending in order of files, and its number there."""
    groups = (parts.places.file.astype(np.int64) << 32) + parts.places.index
    counts = parts.stop - parts.start
    before = np.cumsum(counts) - counts
    within = np.arange(counts.sum()) + np.repeat(parts.start - before, counts)
    return np.repeat(groups, counts), within


def _row_groups(
    file: pq.ParquetFile, groups: list[int], names: list[str], threads: bool
) -> pa.Table:
    try:
        return file.read_row_groups(groups, names, use_threads=threads)
    except pa.ArrowNotImplementedError:
        # Of texts in lists and structs PyArrow reads 2 GiB at once, and no more.
        few = file.iter_batches(_FEW_ROWS, groups, names, use_threads=threads)
        return pa.Table.from_batches(list(few))


def plain_table(table: pa.Table, wanted: pa.Schema) -> pa.Table:
    """Columns as planned, without what may differ from file to file: encodings, what is said of nulls."""
    pairs = zip(wanted.names, wanted.types, strict=True)
    return pa.table([decoded(table.column(name), kind) for name, kind in pairs], wanted)


def _cut_to(table: pa.Table, parts: Parts) -> pa.Table:
    if parts.are_whole:
        return table
    begins = np.cumsum(parts.places.rows) - parts.places.rows
    starts, rows = (begins + parts.start).tolist(), (parts.stop - parts.start).tolist()
    return pa.concat_tables([table.slice(*run) for run in zip(starts, rows, strict=True)])
