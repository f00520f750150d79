"""Files that Spark is to read: what it would misread, or refuse in words of its own."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from coincide.engine.files.finding import Given, ParquetFiles, find_files
from coincide.engine.files.footers import Footer, check_present, file_schemas, read_footers
from coincide.model.errors import SchemaError
from coincide.model.units import NANOSECONDS_PER_UNIT
from spark_plugin.cluster.spark_errors import SPARK_COUNTS, BeyondMicroseconds

_NANOS_AS_LONG = "spark.sql.legacy.parquet.nanosAsLong"
_MOST_MILLISECONDS = (2**63 - 1) // 1000
_DIRECTLY = "write the files so that way='files' is possible, which reads it"


def check_for_dataframes(
    spark: SparkSession, side: str, given: Given, names: Sequence[str]
) -> None:
    """Refuse files that lack a needed column, or have times that Spark cannot read."""
    files = find_files(side, given)
    footers = read_footers(files, names)
    schemas = file_schemas(files, footers)
    check_present(side, schemas, names)
    reads_nanoseconds = spark.conf.get(_NANOS_AS_LONG) == "true"
    for path, schema in schemas:
        for field in schema:
            if field.name in names and pa.types.is_duration(field.type):
                raise SchemaError(
                    f"{side}: Spark reads the column {field.name!r} as plain numbers (found"
                    f" {field.type} in {path}). Cast it, or {_DIRECTLY}."
                )
            is_fine = pa.types.is_timestamp(field.type) and field.type.unit == "ns"
            # Also in columns that are not needed: Spark takes its schema from all columns of some file.
            if is_fine and not reads_nanoseconds:
                raise SchemaError(
                    f"{side}: Spark reads no nanoseconds, which the column {field.name!r} has"
                    f" (found {field.type} in {path}). Write it in microseconds, or {_DIRECTLY}."
                )
    refuse_beyond_microseconds(files, footers, names, _DIRECTLY)


def refuse_beyond_microseconds(
    files: ParquetFiles, footers: Sequence[Footer], names: Sequence[str], instead: str
) -> None:
    """Refuse milliseconds that Spark fails to turn into microseconds, as far as statistics tell of them."""
    for path, footer in zip(files.paths, footers, strict=True):
        for name in names:
            stored, ranges = footer.ranges[name]
            if stored is None or stored.nanoseconds != NANOSECONDS_PER_UNIT["ms"]:
                continue
            if any(is_beyond_microseconds(end) for ends in ranges for end in ends or ()):
                raise BeyondMicroseconds(
                    f"{files.side}: the column {name!r} holds times in milliseconds beyond"
                    f" ±{_MOST_MILLISECONDS:,} in {path}, and {SPARK_COUNTS}. Remove such rows"
                    f" from the file, or {instead}."
                )


def is_beyond_microseconds(milliseconds: int | float | None) -> bool:
    """Whether a time in milliseconds is none in microseconds; infinity stands for no value."""
    return isinstance(milliseconds, int) and abs(milliseconds) > _MOST_MILLISECONDS
