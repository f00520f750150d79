"""Filters of columns that folders name: which files Spark would read then, as Spark itself says."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
_UNDERSTOOD = frozenset(
    f"{_EXPRESSIONS}{name}" for name in (
        "And", "AttributeReference", "Cast", "EqualNullSafe", "EqualTo", "GreaterThan",
        "GreaterThanOrEqual", "In", "InSet", "IsNotNull", "IsNull", "LessThan", "LessThanOrEqual",
        "Literal", "Not", "Or",
    )
)  # fmt: skip
"""What a filter may be made of: with no other, its answer is the same now and when Spark reads."""
_RUN = "org.apache.spark.sql.execution."
_PROJECTED, _SCANNED = f"{_RUN}ProjectExec", f"{_RUN}FileSourceScanExec"
_BEGIN = "path: "


def uris_left(spark: SparkSession, filtered: Any) -> list[str] | None:
    """The URIs of the files that filters leave; None where they ask for more than folders tell."""
    scan = _scan(spark, filtered)
    if scan is None:
        return None
    filters = scan.partitionFilters()
    if not all(_is_understood(filters.apply(i)) for i in range(filters.size())):
        return None
    files = spark._jvm.scala.collection.immutable.ArraySeq.unsafeWrapArray(  # type: ignore[union-attr]
        scan.selectedPartitions().toPartitionArray()
    )
    if not files.size():
        return []
    # One answer for all files. A URI holds no blank, and what follows it may hold anything.
    mark = uuid4().hex
    told = files.mkString(mark).split(mark)
    return [each.removeprefix(_BEGIN).partition(" ")[0].removesuffix(",") for each in told]


def _scan(spark: SparkSession, filtered: Any) -> Any | None:
    """Spark's scan of the files, if it does all that filters ask for."""
    jvm: Any = spark._jvm
    plan = jvm.org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases.apply(filtered)
    rules = jvm.org.apache.spark.sql.catalyst.optimizer  # a BETWEEN is two comparisons then
    plan = rules.RewriteWithExpression.apply(rules.ReplaceExpressions.apply(plan))
    found = jvm.org.apache.spark.sql.execution.datasources.FileSourceStrategy.apply(plan)
    if found.size() != 1:
        return None
    planned = found.head()
    while (kind := planned.getClass().getName()) == _PROJECTED:
        planned = planned.child()
    # A FilterExec would test rows: columns of files, or chance.
    return planned if kind == _SCANNED and planned.dataFilters().isEmpty() else None


def _is_understood(condition: Any) -> bool:
    return {each["class"] for each in json.loads(condition.toJSON())} <= _UNDERSTOOD
