"""A job of Spark whose workers have a virtual GPU: prints how many rows both backends find, if the same.

``python -m tests.virtual_gpu.spark_job`` in the environment of one.
"""

from __future__ import annotations

import os
import sys

import pyarrow as pa

from bench.gpu.works import Work
from coincide import CorrelateOptions, TimingCondition, correlate, mutual_deadline
from spark_plugin.cluster.session import local_session


def main() -> None:
    """Join on both backends."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = local_session("local[2]", "coincide-virtual-gpu")
    left, right = map(spark.createDataFrame, Work(3000).tables())
    condition = TimingCondition(mutual_deadline("500ms"), 0.8)
    found = [
        correlate(left, right, condition, backend=backend, options=CorrelateOptions(unit="us"))
        .toArrow()
        .sort_by([("left_id", "ascending"), ("right_id", "ascending")])
        for backend in ("gpu", "cpu")
    ]
    assert found[0].equals(found[1])
    assert isinstance(found[0], pa.Table)
    print(found[0].num_rows)
    spark.stop()


if __name__ == "__main__":
    main()
