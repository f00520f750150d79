"""Spark's optimized plans: what they do with the rows that they read."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

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
"""What hands on no more rows than it is given; of anything else nobody knows."""


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
