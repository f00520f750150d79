"""Reads parts of row groups, and sees to it that the files are those that were planned with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spark_plugin.direct.files import ParquetFiles
from spark_plugin.direct.plan import Parts
from spark_plugin.direct.stamps import FileStamps, check_unchanged, open_footer, stamp_of
from spark_plugin.tables import plain_type


@dataclass(frozen=True, eq=False)
class PlannedFiles:
    """The files of one side as they were when the join was planned.

    Parameters
    ----------
    files : ParquetFiles
    schema : pa.Schema
    stamps : FileStamps
    """

    files: ParquetFiles
    schema: pa.Schema
    stamps: FileStamps

    def read(self, parts: Parts, names: Sequence[str], threads: bool) -> pa.Table:
        """Some columns of parts of row groups, file by file.

        Parameters
        ----------
        parts : Parts
        names : sequence of str
        threads : bool
            Whether PyArrow may use several.

        Raises
        ------
        DataError
            If a file cannot be read, or is another than was planned with.
        """
        order = np.lexsort((parts.places.index, parts.places.file))
        parts = parts.take(order)
        edges = np.flatnonzero(np.diff(parts.places.file)) + 1
        runs = np.split(np.arange(len(parts.places)), edges) if len(parts.places) else []
        kinds = [(name, plain_type(self.schema.field(name).type)) for name in names]
        tables = [self._of_file(parts.take(run), names, threads) for run in runs]
        # As planned, without what differs from file to file: encodings, what is said of nulls.
        wanted = pa.schema(kinds)
        return pa.concat_tables(
            [wanted.empty_table(), *(table.select(names).cast(wanted) for table in tables)]
        )

    def _of_file(self, parts: Parts, names: Sequence[str], threads: bool) -> pa.Table:
        file = int(parts.places.file[0])
        path, filesystem = self.files.paths[file], self.files.filesystem
        planned = self.stamps[file]
        with self.files.reading(path), filesystem.open_input_file(path) as source:
            metadata, digest = open_footer(source)
            check_unchanged(self.files.side, path, planned, planned.with_digest(digest))
            with pq.ParquetFile(source, metadata=metadata, pre_buffer=True) as open_file:
                table = open_file.read_row_groups(
                    parts.places.index.tolist(), list(names), use_threads=threads
                )
            # When all is read, so that no change before can have gone by unseen.
            found = stamp_of(filesystem, path, digest)
            check_unchanged(self.files.side, path, planned, found)
        return _cut_to(table, parts)


def _cut_to(table: pa.Table, parts: Parts) -> pa.Table:
    if parts.are_whole:
        return table
    begins = np.cumsum(parts.places.rows) - parts.places.rows
    starts, rows = (begins + parts.start).tolist(), (parts.stop - parts.start).tolist()
    return pa.concat_tables([table.slice(*run) for run in zip(starts, rows, strict=True)])
