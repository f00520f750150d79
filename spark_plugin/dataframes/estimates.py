"""What Spark takes a side for, before anything is read."""

from __future__ import annotations

from spark_plugin.cluster.connect import context_of
from spark_plugin.cluster.gateway_errors import SPARK_ERRORS
from spark_plugin.dataframes.events import EventFrame


def estimated_bytes(side: EventFrame) -> int | None:
    """Spark's estimate of all rows as the user gave them; files it takes for as large as on disk.

    None where it cannot be asked: on Spark Connect, of streams, and of a plan that cannot be, of which
    the ordinary way tells.
    """
    if context_of(side.source.sparkSession) is None or side.plain.isStreaming:
        return None
    try:
        plan = side.plain._jdf.queryExecution().optimizedPlan()
        return int(plan.stats().sizeInBytes())
    except SPARK_ERRORS:
        return None
