"""Which trucks got too warm after a door was opened: two queries, from topics of Kafka into another one.

spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.3 examples/chain.py HOST:PORT
"""

import sys
import tempfile
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from coincide import border_crossing_streams, correlate_streams

TO = {"kafka.bootstrap.servers": sys.argv[1]}
STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
spark = (
    SparkSession.builder.config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.streaming.stateStore.providerClass", STORE)
    .config("spark.sql.shuffle.partitions", "2")  # a checkpoint keeps this number
    .getOrCreate()
)
READING = "truck STRING, at TIMESTAMP, celsius DOUBLE"
DOOR = "id BIGINT, truck STRING, at TIMESTAMP"
CROSSING = "limit STRING, truck STRING, event STRING, min_time TIMESTAMP, max_time TIMESTAMP"


def write(topic: str, columns: str, rows: list[Any]) -> None:
    """Some records of JSON, so that there is something to read."""
    frame = spark.createDataFrame(rows, columns.replace("TIMESTAMP", "STRING"))
    frame = frame.withColumn("at", frame["at"].cast("TIMESTAMP"))
    records = frame.selectExpr("to_json(struct(*)) AS value")
    records.write.format("kafka").options(**TO, topic=topic).save()


def events(topic: str, columns: str) -> DataFrame:
    """The records of a topic as a stream."""
    options = {**TO, "subscribe": topic, "startingOffsets": "earliest"}
    records = spark.readStream.format("kafka").options(**options).load()
    event = f"from_json(CAST(value AS STRING), '{columns}') AS event"
    return records.selectExpr(event).select("event.*")


def to_topic(rows: DataFrame, topic: str, checkpoints: str) -> StreamingQuery:
    """A query that writes rows to a topic as JSON; a service goes on for ever, without a trigger."""
    writer = rows.selectExpr("to_json(struct(*)) AS value").writeStream.format("kafka")
    options = {**TO, "topic": topic, "checkpointLocation": f"{checkpoints}/{topic}"}
    return writer.options(**options).trigger(availableNow=True).start()


DAY = "2026-05-01 12:"
write(
    "readings",
    READING,
    [
        *(("north", DAY + at, celsius) for at, celsius in (("00:00", 3.0), ("01:00", 4.5))),
        *(("north", DAY + at, celsius) for at, celsius in (("02:00", 8.5), ("03:00", 6.5))),
        *(("south", DAY + at, celsius) for at, celsius in (("00:30", 5.0), ("02:30", 9.0))),
        # What is later than all others makes them final.
        *(("last", DAY + at, celsius) for at, celsius in (("28:50", 0.0), ("29:00", 9.0))),
        ("last", DAY + "30:00", 9.0),
    ],
)
write(
    "doors",
    DOOR,
    [(1, "north", DAY + "01:10"), (2, "east", DAY + "02:00"), (3, "last", DAY + "30:00")],
)
too_warm = [{"limit": "chilled", "lower": 7.0, "upper": None}]

with tempfile.TemporaryDirectory() as checkpoints:  # a service keeps them
    crossings = border_crossing_streams(
        events("readings", READING),
        too_warm,
        stream="truck",
        time="at",
        values="celsius",
        query="limit",
        delay="10s",
    )
    to_topic(crossings, "crossings", checkpoints).awaitTermination()
    explained = correlate_streams(
        events("crossings", CROSSING).where("event = 'I'"),
        events("doors", DOOR),
        within=("-2min", "0s"),
        confidence=0.8,
        left_time=("min_time", "max_time"),
        right_time="at",
        left_columns=["limit", "min_time", "max_time"],
        right_columns=["at"],
        by="truck",
        how="left",
        left_delay="30s",
        right_delay="10s",
    )
    to_topic(explained, "explained", checkpoints).awaitTermination()
found = spark.read.format("kafka").options(**TO, subscribe="explained").load()
for record in sorted(row.value for row in found.selectExpr("CAST(value AS STRING)").collect()):
    print(record)
