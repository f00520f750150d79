"""DataFrames that are nothing but a read of Parquet files, and which files these are.

A classic session's plan says so, through private classes of its JVM: whatever is not known for sure is no
plain read, and is joined as any other DataFrame.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession

from spark_plugin.cluster.connect import context_of
from spark_plugin.cluster.gateway_errors import SPARK_ERRORS

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical"
_SOURCES = "org.apache.spark.sql.execution.datasources"
_NAMING = (f"{_LOGICAL}.SubqueryAlias", f"{_LOGICAL}.View")
_PROJECT = f"{_LOGICAL}.Project"
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
_COLUMN, _RENAMED = f"{_EXPRESSIONS}.AttributeReference", f"{_EXPRESSIONS}.Alias"
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


@dataclass(frozen=True)
class PlainRead:
    """What a DataFrame reads.

    Parameters
    ----------
    paths : tuple of str
        Absolute ones.
    names : dict of str to str
        What its columns are called in the files.
    """

    paths: tuple[str, ...]
    names: dict[str, str]


def plain_read(frame: DataFrame, needed: Sequence[str]) -> PlainRead | None:
    """The Parquet files of this machine that a DataFrame reads, each whole and once, and nothing else.

    Its columns may have been chosen and renamed, and others computed beside those that are needed. The
    DataFrame may have a name. None of what has a filter, a limit, a sample, a hint, a partition column, an
    option of the reader; of what is cached; of tables of a catalog; of a client of Spark Connect.

    Parameters
    ----------
    frame : DataFrame
    needed : sequence of str
        Columns of it.
    """
    spark = frame.sparkSession
    if context_of(spark) is None or frame.isStreaming or not _reads_plainly(spark):
        return None
    columns = frame.columns
    lowered = {name.lower() for name in columns}
    if len(lowered) < len(columns) or not set(needed) <= set(columns):
        return None
    try:
        traced = _traced(_with_cached_data(frame), columns, needed)
        if traced is None:
            return None
        paths = _files(traced[0])
        return (
            None if paths is None else PlainRead(paths, dict(zip(needed, traced[1], strict=True)))
        )
    except SPARK_ERRORS:  # a release of Spark with other classes
        return None


def _reads_plainly(spark: SparkSession) -> bool:
    return all(
        (spark.conf.get(name, None) or plain[0]) in plain for name, plain in _PLAIN_SETTINGS.items()
    )


def _with_cached_data(frame: DataFrame) -> Any:
    """The plan in which what is cached shows, and hints do: that of the optimizer has none any more.

    A DataFrame that was run before remembers what was cached then.
    """
    manager = frame._jdf.sparkSession().sharedState().cacheManager()
    return manager.useCachedData(frame._jdf.queryExecution().normalized())


def _traced(
    plan: Any, columns: Sequence[str], needed: Sequence[str]
) -> tuple[Any, list[str]] | None:
    """The relation whose rows a plan hands on, and what needed ones of the plan's columns are called there.

    Each question to the JVM takes a part of a millisecond, and few are asked where nothing is renamed.
    """
    ids: list[int] | None = None
    while _class(plan) != f"{_SOURCES}.LogicalRelation":
        if _class(plan) == _PROJECT:
            given = plan.projectList()
            if ids is None:
                chosen = [given.apply(columns.index(name)) for name in needed]
            else:
                by_id = {_id(column): column for column in _items(given)}
                chosen = [by_id[each] for each in ids if each in by_id]
            ids = [source for source in map(_source, chosen) if source is not None]
            if len(ids) < len(needed):
                return None
        elif _class(plan) not in _NAMING:
            return None
        plan = plan.child()
    relation = plan.relation()
    if _class(relation) != _PARTS["relation"] or plan.catalogTable().isDefined():
        return None
    if ids is None:
        return relation, list(needed)
    names = {_id(column): column for column in _items(plan.output())}
    if not names.keys() >= set(ids):
        return None
    return relation, [names[each].name() for each in ids]


def _source(column: Any) -> int | None:
    """Of what column given to a projection one of it is, renamed or not: its id there; None: of none."""
    kind = _class(column)
    if kind == _RENAMED:
        column = column.child()
        kind = _class(column)
    return _id(column) if kind == _COLUMN else None


def _items(sequence: Any) -> Iterator[Any]:
    return map(sequence.apply, range(sequence.size()))


def _id(column: Any) -> int:
    number: int = column.exprId().id()
    return number


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
