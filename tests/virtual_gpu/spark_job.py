"""Jobs of Spark whose workers have a virtual GPU: print how many rows both backends find, if the same.

``python -m tests.virtual_gpu.spark_job`` in the environment of one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from bench.gpu.works import Work
from coincide import (
    CausalityCondition,
    CorrelateOptions,
    Temporal,
    TimingCondition,
    causality,
    correlate,
    mutual_deadline,
)
from spark_plugin.cluster.session import local_session
from tests.helpers.histogram_tables import by_device, events, random_templates


def main() -> None:
    """Join on both backends: intervals, then causes and effects with histograms as timestamps."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = local_session("local[2]", "coincide-virtual-gpu")
    left, right = map(spark.createDataFrame, Work(3000).tables())
    condition = TimingCondition(mutual_deadline("500ms"), 0.8)
    options = CorrelateOptions(unit="us")
    _print_both(lambda who: correlate(left, right, condition, backend=who, options=options))
    causes, effects = (spark.createDataFrame(events(seed, 400)) for seed in (1, 2))
    later = CausalityCondition(Temporal(0, 300), confidence=0.6)
    times: Any = dict.fromkeys(("cause_time", "effect_time"), by_device(random_templates(3)))
    _print_both(lambda who: causality(causes, effects, later, backend=who, **times))
    spark.stop()


def _print_both(join: Callable[[Any], Any]) -> None:
    found = []
    for backend in ("gpu", "cpu"):
        rows: pa.Table = join(backend).toArrow()
        found.append(rows.sort_by([(name, "ascending") for name in rows.column_names[:2]]))
    assert found[0].equals(found[1])
    print(found[0].num_rows)


if __name__ == "__main__":
    main()
