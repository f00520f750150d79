"""A join of collected rows, planned."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from spark_plugin.dataframes.output_columns import ResultColumns
from spark_plugin.dataframes.shipping import ship
from spark_plugin.dataframes.stage import Stage
from spark_plugin.ways.collect.plan import CollectPlan
from spark_plugin.ways.collect.worker.task import CollectedTask
from spark_plugin.worker.emission.spec import AnySpec
from spark_plugin.worker.wire.shipment import Shipment


def collect_join(
    spark: SparkSession, spec: AnySpec, result: ResultColumns, plan: CollectPlan, stage: Stage
) -> tuple[DataFrame, Shipment]:
    """The result in wire types, and what it needs."""
    shipment = ship(plan.rows, spark, "both sides", "leave way= to us")
    parts = len(plan.bounds) - 1
    task = CollectedTask(
        spec, result.layout, result.names, stage.metrics, rows=shipment, left_rows=plan.left_rows,
        bounds=plan.bounds,
    )  # fmt: skip
    return stage.run(spark.range(0, parts, 1, parts), task, result.wire_schema), shipment
