"""DataFrames that are nothing but a read of Parquet files, and which files these are.

A classic session's plan says so, through private classes of its JVM: whatever is not known for sure is no
plain read, and is joined as any other DataFrame.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession

from spark_plugin.cluster.connect import context_of
from spark_plugin.cluster.gateway_errors import SPARK_ERRORS

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical"
_SOURCES = "org.apache.spark.sql.execution.datasources"
_NAMING = (f"{_LOGICAL}.SubqueryAlias", f"{_LOGICAL}.View")
_PROJECT = f"{_LOGICAL}.Project"
_COLUMN = "org.apache.spark.sql.catalyst.expressions.AttributeReference"
_PARTS = {
    "relation": f"{_SOURCES}.HadoopFsRelation",
    "fileFormat": f"{_SOURCES}.parquet.ParquetFileFormat",
    "location": f"{_SOURCES}.InMemoryFileIndex",
}
_PLAIN_SETTINGS = {
    "spark.sql.files.ignoreCorruptFiles": ("false",),
    "spark.sql.files.ignoreMissingFiles": ("false",),
    "spark.sql.parquet.fieldId.read.enabled": ("false",),
    "spark.sql.parquet.datetimeRebaseModeInRead": ("CORRECTED", "EXCEPTION"),
}
"""Settings by which Spark reads what the files say; with others it takes them for something else."""
_GLOB = frozenset("*?[]{}\\")


def plain_read(frame: DataFrame) -> tuple[str, ...] | None:
    """The Parquet files of this machine that a DataFrame reads, each whole and once, and nothing else.

    Plain columns may have been selected, and the DataFrame may have a name. None of what has a filter,
    a limit, a sample, a hint, a computed or renamed column, a partition column, an option of the reader;
    of what is cached; of tables of a catalog; of a client of Spark Connect.

    Parameters
    ----------
    frame : DataFrame

    Returns
    -------
    tuple of str or None
        Absolute paths.
    """
    spark = frame.sparkSession
    if context_of(spark) is None or frame.isStreaming or not _reads_plainly(spark):
        return None
    names = [name.lower() for name in frame.columns]
    if len(set(names)) < len(names):
        return None
    try:
        # Cached data and hints show in this plan; the optimizer's has no hints any more.
        relation = _relation(frame._jdf.queryExecution().withCachedData())
        return None if relation is None else _files(relation)
    except SPARK_ERRORS:  # a release of Spark with other classes
        return None


def _reads_plainly(spark: SparkSession) -> bool:
    return all(
        (spark.conf.get(name, None) or plain[0]) in plain for name, plain in _PLAIN_SETTINGS.items()
    )


def _relation(plan: Any) -> Any | None:
    """The relation that a plan hands on, row by row and column by column."""
    while _class(plan) != f"{_SOURCES}.LogicalRelation":
        if _class(plan) == _PROJECT:
            columns = plan.projectList()
            if any(_class(columns.apply(i)) != _COLUMN for i in range(columns.size())):
                return None
        elif _class(plan) not in _NAMING:
            return None
        plan = plan.child()
    relation = plan.relation()
    known = _class(relation) == _PARTS["relation"] and not plan.catalogTable().isDefined()
    return relation if known else None


def _files(relation: Any) -> tuple[str, ...] | None:
    for part in ("fileFormat", "location"):
        if _class(getattr(relation, part)()) != _PARTS[part]:
            return None
    options = relation.options()
    if options.size() > int(options.contains("path")):
        return None
    if relation.partitionSchema().length() or relation.bucketSpec().isDefined():
        return None
    uris = list(relation.location().inputFiles())
    paths = tuple(unquote(uri.removeprefix("file:")) for uri in uris)
    if not paths or len(set(paths)) < len(paths):
        return None
    if not all(uri.startswith("file:/") for uri in uris) or any(_GLOB & set(p) for p in paths):
        return None
    return tuple("/" + path.lstrip("/") for path in paths)


def _class(of: Any) -> str:
    name: str = of.getClass().getName()
    return name
