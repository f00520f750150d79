"""DataFrames joined on Spark, and what the join looked at."""

import os
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from coincide import JoinReport, TimingCondition, correlate, within

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()

seconds = F.timestamp_seconds(F.col("id") * 10)
events = spark.range(2_000).select("id", (F.col("id") % 4).alias("station"), seconds.alias("t"))
left = events.select("id", "station", F.col("t").alias("min_time"), F.col("t").alias("max_time"))
right = left.withColumn("min_time", F.expr("min_time + INTERVAL 1 SECOND")).withColumn(
    "max_time", F.expr("max_time + INTERVAL 4 SECONDS")
)
report = JoinReport()
pairs = correlate(
    left,
    right,
    TimingCondition(within("0s", "3s"), confidence=0.5),
    by="station",
    probability=True,
    report=report,
)
((count, highest),) = pairs.agg(F.count("*"), F.round(F.max("probability"), 3)).collect()
print(count, "pairs of probability", highest)
print("way:", report.summary().way.split(":")[0].split(",")[0])
spark.stop()
