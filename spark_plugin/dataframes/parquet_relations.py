"""Relations of Spark's plans that read Parquet files of this machine.

Plans say so through private classes of the JVM: whatever is not known for sure is no such relation.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from spark_plugin.cluster.gateway_errors import SPARK_ERRORS
from spark_plugin.dataframes.estimates import class_name

_SOURCES = "org.apache.spark.sql.execution.datasources"
LOGICAL_RELATION = f"{_SOURCES}.LogicalRelation"
_RELATION = f"{_SOURCES}.HadoopFsRelation"
_PARTS = {
    "fileFormat": f"{_SOURCES}.parquet.ParquetFileFormat",
    "location": f"{_SOURCES}.InMemoryFileIndex",
}
_MOST_FILES = 16
"""Of more files footers are not read: a job that bounds its rows costs no more by then."""


def parquet_relation(leaf: Any) -> Any | None:
    """What a leaf of a plan reads, if it is Parquet files that the plan has listed."""
    if class_name(leaf) != LOGICAL_RELATION:
        return None
    relation = leaf.relation()
    if class_name(relation) != _RELATION:
        return None
    are_as_known = (class_name(getattr(relation, part)()) == _PARTS[part] for part in _PARTS)
    return relation if all(are_as_known) else None


def local_paths(relation: Any, most: int | None = None) -> tuple[str, ...] | None:
    """Absolute paths of the files of a relation, each as often as it is read.

    None if they are of another file system, or there are more than `most`.
    """
    uris = relation.location().inputFiles()
    if most is not None and len(uris) > most:
        return None
    uris = list(uris)  # each look at one asks the JVM
    if not all(uri.startswith("file:/") for uri in uris):
        return None
    return tuple("/" + unquote(uri.removeprefix("file:")).lstrip("/") for uri in uris)


def rows_of_files(plan: Any) -> int | None:
    """Rows of the few Parquet files that are all that a plan reads, as their footers count them.

    None if it reads anything else, or many files. Runs no job.
    """
    try:
        leaves = plan.collectLeaves()
        relations = [parquet_relation(leaves.apply(i)) for i in range(leaves.size())]
        read = [each and local_paths(each, _MOST_FILES) for each in relations]
    except SPARK_ERRORS:  # a release of Spark with other classes
        return None
    paths = [path for each in read for path in each or ()]
    if None in read or len(paths) > _MOST_FILES:
        return None
    try:
        return sum(pq.read_metadata(path).num_rows for path in paths)
    except (OSError, pa.ArrowException):  # of such files Spark itself is to tell
        return None
