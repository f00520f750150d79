"""Which requests no answer followed within two seconds: from two topics of Kafka into a third one.

spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.3 examples/topics.py HOST:PORT
"""

import sys
import tempfile

from pyspark.sql import DataFrame, SparkSession

from coincide import around, correlate_streams

TO = {"kafka.bootstrap.servers": sys.argv[1]}
STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
spark = (
    SparkSession.builder.config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.streaming.stateStore.providerClass", STORE)
    .config("spark.sql.shuffle.partitions", "2")  # a checkpoint keeps this number
    .getOrCreate()
)


def write(topic: str, rows: list[tuple[int, str, str]]) -> None:
    """Some records of JSON, so that there is something to read."""
    frame = spark.createDataFrame(rows, "id BIGINT, session STRING, at STRING")
    records = frame.selectExpr(
        "to_json(struct(id, session, '2026-05-01T12:' || at AS at)) AS value"
    )
    records.write.format("kafka").options(**TO, topic=topic).save()


def events(topic: str) -> DataFrame:
    """The records of a topic as a stream."""
    options = {**TO, "subscribe": topic, "startingOffsets": "earliest"}
    records = spark.readStream.format("kafka").options(**options).load()
    columns = "'id BIGINT, session STRING, at TIMESTAMP'"
    event = f"from_json(CAST(value AS STRING), {columns}) AS event"
    return records.selectExpr(event).select("event.*")


write("requests", [(1, "a", "00:00Z"), (2, "b", "00:00.4Z"), (3, "c", "00:00.2Z")])
write("answers", [(11, "a", "00:01.1Z"), (12, "c", "00:01.995Z")])
# What is later than all others makes them final.
write("requests", [(4, "d", "01:00Z")])
write("answers", [(13, "x", "01:00Z")])
missed = correlate_streams(
    events("requests"),
    events("answers"),
    within=("-40ms", "2s"),  # a fast answer may be stamped before its request
    confidence=0.5,
    left_time=around("at", "10ms"),
    right_time=around("at", "10ms"),
    by="session",
    how="anti",
    left_delay="5s",
    right_delay="5s",
)
with tempfile.TemporaryDirectory() as checkpoint:  # a service keeps it
    query = (
        missed.selectExpr("to_json(struct(*)) AS value")
        .writeStream.format("kafka")
        .options(**TO, topic="missed", checkpointLocation=checkpoint)
        .trigger(availableNow=True)  # a service goes on for ever
        .start()
    )
    query.awaitTermination()
found = spark.read.format("kafka").options(**TO, subscribe="missed").load()
for record in found.selectExpr("CAST(value AS STRING)").collect():
    print(record.value)
