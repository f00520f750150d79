"""Reads of Delta tables: which files Spark would read, by the table's log, without a job."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from coincide.engine.files.file_constants import NO_CONSTANTS
from coincide.engine.files.lake_tables import LOG, TableFiles, delta_files
from coincide.model.errors import CoincideError, DataError
from spark_plugin.cluster.connect import context_of
from spark_plugin.cluster.spark_errors import SPARK_ERRORS

_log = logging.getLogger("coincide")
_DELTA = "org.apache.spark.sql.delta."
_FORMAT, _INDEX = f"{_DELTA}DeltaParquetFileFormat", f"{_DELTA}files.TahoeLogFileIndex"
_RELATION = f"{_DELTA}DeltaLog"
_LOCAL = "file:"


def is_delta(relation: Any) -> bool:
    """Whether a relation reads a Delta table as it is, or was in a version."""
    name: str = relation.getClass().getName()
    if not name.startswith(_RELATION):
        return False
    parts = relation.fileFormat(), relation.location()
    names = tuple(part.getClass().getName() for part in parts)
    return names == (_FORMAT, _INDEX)


def files_of_delta(relation: Any, stored: Sequence[str]) -> TableFiles | None:
    """The files of a Delta table, where tasks can read them, and what its log tells of some columns."""
    index = relation.location()
    path: str = index.path().toString()
    if not path.startswith(_LOCAL) or not index.partitionFilters().isEmpty():
        return None
    try:
        found = delta_files("event", path.removeprefix(_LOCAL), index.getSnapshot().version())
    except CoincideError as closed:  # the package is missing, or Spark alone reads such a table
        _log.info("files go through Spark: %s", closed)
        return None
    told = [name for name in stored if name in found.constants]
    if not told:
        return found._replace(constants=NO_CONSTANTS)
    return found if all(_is_plain(found.constants.values.column(name)) for name in told) else None


def _is_plain(values: pa.ChunkedArray) -> bool:
    """Whether a log tells values that mean the same to all: times need a zone, and floats digits."""
    kind, types = values.type, pa.types
    if types.is_string(kind):
        return "" not in values.to_pylist()  # a null to some
    return bool(types.is_integer(kind) or types.is_date32(kind) or types.is_boolean(kind))


def refuse_elsewhere(spark: SparkSession, side: str, uri: str) -> None:
    """Refuse a Delta table on another machine: read as Parquet, it has files that it has removed, too."""
    if context_of(spark) is None:
        return
    log = spark._jvm.org.apache.hadoop.fs.Path(f"{uri.rstrip('/')}/{LOG}")  # type: ignore[union-attr]
    with suppress(*SPARK_ERRORS):  # Spark says it again as it reads
        if log.getFileSystem(spark._jsc.hadoopConfiguration()).exists(log):
            raise DataError(
                f"{side}: {uri} is a Delta table, and only those of this machine are read. Read it by"
                " Spark and use correlate."
            )
