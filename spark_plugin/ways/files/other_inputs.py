"""What the data source does not read, and what does: other formats, tables and views."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyarrow import fs

from coincide.errors import DataError
from coincide.sides import SIDES
from spark_plugin.worker.files.finding import PARQUET_ENDINGS, find_files
from spark_plugin.worker.pair_arguments import EVENT

_PARQUET_MAGIC = b"PAR1"
_TABLE = re.compile(r"`?\w+`?(\.`?\w+`?){0,2}")
_NO_TABLES = (
    "it names no file, and of tables and views Spark tells a data source nothing. In Python,"
    " correlate(spark.table('{}'), ...).createOrReplaceTempView('pairs') joins one for SQL"
)


@contextmanager
def told_of_other_inputs(left: list[str], right: list[str] | None) -> Iterator[None]:
    """A file that never was Parquet is not corrupt, and a table is no file: say what takes it."""
    try:
        yield
    except DataError as error:
        inputs = [(EVENT, left)] if right is None else zip(SIDES, (left, right), strict=True)
        for side, given in inputs:
            for word in filter(_TABLE.fullmatch, given):
                if str(error) == f"{side}: {word} does not exist":
                    raise DataError(f"{error}; {_NO_TABLES.format(word)}") from None
            if (path := _no_parquet(side, given, str(error))) is not None:
                raise DataError(
                    f"{side}: {path} is no Parquet, as which files of unknown names are read; say format"
                    " 'csv' or 'arrow' if it is such, or name it so, as .csv, .tsv, .arrow or .feather"
                ) from None
        raise


def _no_parquet(side: str, given: list[str], told: str) -> str | None:
    """The file that could not be read, if it does not even look like Parquet."""
    begin = f"{side}: cannot read "
    if not told.startswith(begin):
        return None
    files = find_files(side, given)
    failed = (path for path in files.paths if told.startswith(f"{begin}{path} as Parquet"))
    return next((path for path in failed if not _is_parquet(files.filesystem, path)), None)


def _is_parquet(filesystem: fs.FileSystem, path: str) -> bool:
    """By its name, or else by its first bytes."""
    if path.lower().endswith(PARQUET_ENDINGS):
        return True
    try:
        with filesystem.open_input_file(path) as file:
            return bytes(file.read(len(_PARQUET_MAGIC))) == _PARQUET_MAGIC
    except (pa.ArrowException, OSError):
        return True
