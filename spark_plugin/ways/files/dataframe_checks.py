"""Files that Spark is to read: what it would misread, or refuse in words of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from coincide.errors import SchemaError
from spark_plugin.cluster.spark_errors import as_ours
from spark_plugin.ways.files.columns import check_present
from spark_plugin.ways.files.footers import file_schemas, read_footers
from spark_plugin.worker.files.finding import Given, find_files

_NANOS_AS_LONG = "spark.sql.legacy.parquet.nanosAsLong"


def check_for_dataframes(
    spark: SparkSession, side: str, given: Given, names: Sequence[str]
) -> None:
    """Refuse files that lack a needed column, or have times that Spark cannot read.

    Raises
    ------
    SchemaError, DataError
        That names the file.
    """
    files = find_files(side, given)
    schemas = file_schemas(files, read_footers(files))
    check_present(side, schemas, names)
    if spark.conf.get(_NANOS_AS_LONG) != "true":
        _refuse_nanoseconds(side, schemas)


def _refuse_nanoseconds(side: str, schemas: Sequence[tuple[str, pa.Schema]]) -> None:
    # Also in columns that nobody needs: Spark takes its schema from all columns of some file.
    for path, schema in schemas:
        for field in schema:
            if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
                raise SchemaError(
                    f"{side}: the column {field.name!r} is {field.type} in {path}, and Spark reads no"
                    " nanoseconds; write it in microseconds, or the files so that the direct way is"
                    " open, which takes them"
                )


@contextmanager
def spark_errors_as_ours() -> Iterator[None]:
    """Raise what Spark says of the data as errors of this package; others pass.

    Raises
    ------
    CoincideError
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        ours = as_ours(error)
        if ours is None:
            raise
        raise ours from error
