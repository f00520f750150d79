"""Java's options in tests, and its archive of Spark's classes, which halves the start of a session.

``python -m tests.helpers.shared_classes`` writes the archive. Without it, or with another Java, classes
come from Spark's jars.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.helpers.places import ROOT

ARCHIVE = ROOT / ".cache" / "spark-classes.jsa"
# Tests are too short for Java's second compiler, and for threads that collect garbage: without them
# Spark's tests take a third less time. The default room for code is then a fifth, too little for a session.
# In the default rooms for classes and new objects garbage would be collected all the time.
_OPTIONS = (
    *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
    *("-XX:ReservedCodeCacheSize=240m", "-XX:MetaspaceSize=256m", "-Xmn512m"),
    *("-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off"),
)


def jvm_options() -> str:
    """For SPARK_SUBMIT_OPTS."""
    return " ".join(
        [*_OPTIONS, f"-XX:SharedArchiveFile={ARCHIVE}"] if ARCHIVE.exists() else _OPTIONS
    )


def main() -> None:
    """Join a few rows by each way, and a few streams, and archive the classes that were loaded."""
    ARCHIVE.parent.mkdir(exist_ok=True)
    written = ARCHIVE.with_suffix(f".{os.getpid()}")
    options = [*_OPTIONS, f"-XX:ArchiveClassesAtExit={written}"]
    os.environ.update(SPARK_SUBMIT_OPTS=" ".join(options), PYTHONPATH=str(ROOT))

    from coincide import CorrelateOptions, correlate, correlate_streams
    from spark_plugin.cluster.session import local_session
    from spark_plugin.ways.streaming.arguments import STATE_STORE
    from tests.helpers.spark_process import DAEMON, QUICK

    spark = local_session("local[2]", "coincide-classes", **STATE_STORE, **QUICK, **DAEMON)
    rows = pa.table({
        "id": [1, 2], "min_time": pa.array([0, 5], pa.timestamp("us", "UTC")),
        "max_time": pa.array([3, 9], pa.timestamp("us", "UTC")), "key": ["a", "b"],
    })  # fmt: skip
    asked = {"within": ("0s", "1s"), "confidence": 0.5, "by": "key"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pq.write_table(rows, folder / "rows.parquet")
        frames = spark.createDataFrame(rows), spark.read.parquet(name)
        for way in ("exchange", "broadcast-right", "files"):
            for frame in frames if way != "files" else frames[1:]:
                correlate(frame, frame, **asked, options=CorrelateOptions(way=way)).toArrow()
        stream = spark.readStream.schema(frames[1].schema).parquet(name)
        longest = CorrelateOptions(left_longest="1s", right_longest="1s")
        found = correlate_streams(
            stream, stream, **asked, left_delay="1s", right_delay="1s", options=longest
        )
        writer = found.writeStream.format("noop").trigger(availableNow=True)
        writer.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()
    java = spark.sparkContext._gateway.proc
    spark.stop()
    java.stdin.close()
    java.wait()
    written.replace(ARCHIVE)


if __name__ == "__main__":
    main()
