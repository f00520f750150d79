"""DataFrames that are nothing but a read of Parquet files, and which files these are."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, NamedTuple
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession

from coincide.engine.files.finding import HIDDEN, ColumnNames
from coincide.model.errors import first_line
from spark_plugin.cluster.connect import context_of
from spark_plugin.cluster.spark_errors import SPARK_ERRORS
from spark_plugin.frames.delta_reads import files_of_delta, is_delta
from spark_plugin.frames.folder_columns import told_by_folders
from spark_plugin.frames.folder_filters import uris_left

_log = logging.getLogger("coincide")
LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
"""Where the classes of operators are."""
KEEPING_ROWS = frozenset((
    "Project", "Sort", "Union", "Repartition", "RepartitionByExpression", "RebalancePartitions",
    "SubqueryAlias", "View", "BatchEvalPython", "ArrowEvalPython", "CollectMetrics",
))  # fmt: skip
"""Operators that hand on just the rows that they are given, as Spark's logical plans call them."""
NO_MORE_ROWS = KEEPING_ROWS | {
    "Filter", "Aggregate", "Window", "GlobalLimit", "LocalLimit", "Offset",
}  # fmt: skip
"""What hands on no more rows than it is given; anything else may."""


def class_of(of: Any) -> str:
    """The name of an object's class in the JVM."""
    name: str = of.getClass().getName()
    return name


def is_made_of(plan: Any, names: frozenset[str]) -> bool:
    """Whether all that a plan does, after it has read its input, is among these operators."""
    children = plan.children()
    count = children.size()
    if not count:
        return True
    name = class_of(plan).removeprefix(LOGICAL)
    return name in names and all(is_made_of(children.apply(i), names) for i in range(count))


def plan_of(frame: DataFrame) -> Any:
    """Spark's optimized plan."""
    if frame.is_cached:  # what it was computed from before has no cache in its plan
        frame = frame.select("*")
    return frame._jdf.queryExecution().optimizedPlan()


_SOURCES = "org.apache.spark.sql.execution.datasources"
_NAMED = f"{LOGICAL}SubqueryAlias"
_PROJECT, _FILTER = f"{LOGICAL}Project", f"{LOGICAL}Filter"
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
_COLUMN, _RENAMED = f"{_EXPRESSIONS}.AttributeReference", f"{_EXPRESSIONS}.Alias"
_SEQUENCE = "scala.collection.immutable.ArraySeq"
_NOWHERE = -1
_PARTS = {
    "relation": f"{_SOURCES}.HadoopFsRelation",
    "fileFormat": f"{_SOURCES}.parquet.ParquetFileFormat",
    "location": f"{_SOURCES}.InMemoryFileIndex",
}
_PLAIN_SETTINGS = {
    "spark.sql.files.ignoreCorruptFiles": {"FALSE"},
    "spark.sql.files.ignoreMissingFiles": {"FALSE"},
    "spark.sql.parquet.datetimeRebaseModeInRead": {"CORRECTED"},
}
"""Settings by which Spark reads what the files say; with others it takes them for something else."""
_FIELD_ID = "parquet.field.id"
"""What a column's metadata has whose files are looked through for an id."""
_OF_FINDING = "path", "recursiveFileLookup"
"""Options of a reader that only say where files are: Spark has found these."""
_SUMMARIES = {"_metadata", "_common_metadata"}
"""Files that tell of all others of a folder; Spark lists them, and reads none of their rows."""
GLOB = frozenset("*?[]{}\\")
"""Characters by which Spark takes a path for a pattern."""


@dataclass(frozen=True)
class PlainRead:
    """What a DataFrame reads."""

    paths: tuple[str, ...]
    names: ColumnNames


def plain_read(frame: DataFrame, needed: Sequence[str]) -> PlainRead | None:
    """The Parquet files of this machine that a DataFrame reads, each whole and once, and nothing else."""
    # Columns may be renamed, or computed next to the needed ones, and a filter may choose folders;
    # other filters, caches and options say no.
    spark = frame.sparkSession
    if context_of(spark) is None or frame.isStreaming:
        return None
    columns = frame.columns
    lowered = {name.lower() for name in columns}
    if len(lowered) < len(columns) or not set(needed) <= set(columns):
        return None
    try:
        traced = _traced(_with_cached_data(frame), columns, needed)
        if traced is None or not _reads_plainly(spark, traced.relation):
            return None
        relation, stored = traced.relation, traced.stored
        if is_delta(relation):
            # Delta would look for the files that a filter leaves by a job.
            told = files_of_delta(relation, stored) if traced.filtered is None else None
            if told is None:
                return None
            paths, constants = tuple(sorted(told.paths)), told.constants
        else:
            of_read, of_folders = _files(spark, traced), None
            if of_read is not None:
                of_folders = told_by_folders(relation, stored, of_read)
            if of_read is None or of_folders is None:
                return None
            paths, constants = of_read, of_folders
        names = ColumnNames.of(dict(zip(needed, stored, strict=True)), constants)
        return PlainRead(paths, names)
    except SPARK_ERRORS as error:  # a release of Spark with other classes, or without a setting
        _log.warning(
            "files go through Spark, since a plan cannot be taken apart: %s", first_line(error)
        )
        return None


def _reads_plainly(spark: SparkSession, relation: Any) -> bool:
    # Asked with a default of ours, Spark would not look for older names of a setting.
    if not all(
        str(spark.conf.get(name)).upper() in plain for name, plain in _PLAIN_SETTINGS.items()
    ):
        return False
    # Delta's extension sets it in each session; columns without ids are still found by their names.
    by_ids = str(spark.conf.get("spark.sql.parquet.fieldId.read.enabled")).upper() != "FALSE"
    return not by_ids or _FIELD_ID not in relation.schema().json()


def _with_cached_data(frame: DataFrame) -> Any:
    """The plan in which what is cached shows, and hints do."""
    # A DataFrame remembers an earlier state, so the plan is that of a new one.
    return frame.select("*")._jdf.queryExecution().withCachedData()


class _Traced(NamedTuple):
    """The relation whose rows a plan gives, and what needed columns of it are called there."""

    relation: Any
    stored: list[str]
    filtered: Any | None
    """The part of the plan from its first filter on; None without one."""


def _traced(plan: Any, columns: Sequence[str], needed: Sequence[str]) -> _Traced | None:
    # Each question to the JVM takes a part of a millisecond, and none is asked of other columns.
    places: list[int] | None = None
    filtered: Any | None = None
    while (kind := class_of(plan)) != f"{_SOURCES}.LogicalRelation":
        if kind == _PROJECT:
            given, below = plan.projectList(), plan.allAttributes()
            places = [columns.index(name) for name in needed] if places is None else places
            found = (_place(given.apply(place), below) for place in places)
            places = list(takewhile(lambda place: place != _NOWHERE, found))
            if len(places) < len(needed):
                return None
        elif kind == _FILTER:
            filtered = plan if filtered is None else filtered
        elif kind != _NAMED:
            return None
        plan = plan.child()
    relation = plan.relation()
    is_known = class_of(relation) == _PARTS["relation"] or is_delta(relation)
    if not is_known or plan.catalogTable().isDefined():
        return None
    if places is None:
        return _Traced(relation, list(needed), filtered)
    output = plan.output()
    return _Traced(relation, [output.apply(place).name() for place in places], filtered)


def _place(column: Any, below: Any) -> int:
    """Which of the columns below one of a projection is, as it is or renamed."""
    kind = class_of(column)
    if kind == _RENAMED:
        column = column.child()
        kind = class_of(column)
    place: int = below.indexOf(column.exprId()) if kind == _COLUMN else _NOWHERE
    return place


def _files(spark: SparkSession, traced: _Traced) -> tuple[str, ...] | None:
    relation = traced.relation
    for part in ("fileFormat", "location"):
        if class_of(getattr(relation, part)()) != _PARTS[part]:
            return None
    options = relation.options()
    if options.size() > sum(bool(options.contains(name)) for name in _OF_FINDING):
        return None
    if relation.bucketSpec().isDefined():
        return None
    uris = _uris(spark, relation) if traced.filtered is None else uris_left(spark, traced.filtered)
    if uris is None:
        return None
    paths = [unquote(uri.removeprefix("file:")) for uri in uris]
    paths = [path for path in paths if _name(path) not in _SUMMARIES]
    if not paths or any(_name(path).startswith(HIDDEN) for path in paths):
        return None
    if len(set(paths)) < len(paths):
        return None
    if not all(uri.startswith("file:/") for uri in uris) or any(GLOB & set(p) for p in paths):
        return None
    return tuple("/" + path.lstrip("/") for path in paths)


def _uris(spark: SparkSession, relation: Any) -> list[str]:
    sequence = getattr(spark._jvm, _SEQUENCE).unsafeWrapArray(relation.location().inputFiles())
    # One answer for all files, which may be thousands; what ends a line is encoded in them.
    uris: list[str] = sequence.mkString("\n").split("\n")
    return uris


def _name(path: str) -> str:
    return path.rpartition("/")[2]
