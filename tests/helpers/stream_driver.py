"""A driver of its own that joins two folders of files, until it is done or killed: FOLDER [CONFIDENCE]."""

from __future__ import annotations

import sys
from pathlib import Path

from coincide import CorrelateOptions, correlate_streams
from spark_plugin.cluster.session import local_session
from spark_plugin.ways.streaming.arguments import STATE_STORE
from tests.helpers.spark_streams import stream_of


def main(folder: Path, confidence: float = 0.5) -> None:
    spark = local_session("local[2]", "coincide-stream-driver", **STATE_STORE)
    left, right = (stream_of(spark, folder / side) for side in ("0", "1"))
    found = correlate_streams(
        left, right, within=(-200, 200), confidence=confidence, how="full", by="key",
        left_delay=500, right_delay=500, left_time=("min_time", "seen_at"),
        right_time=("min_time", "seen_at"), options=CorrelateOptions(unit="ms"),
    )  # fmt: skip
    writer = found.writeStream.format("parquet").option("path", str(folder / "found"))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(float, sys.argv[2:]))
