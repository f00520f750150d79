"""`merged` and its kin on Spark: what one process gives, key by key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from coincide import (
    ConditionError,
    CorrelateOptions,
    DroppedRowsWarning,
    SchemaError,
    coverage,
    covered,
    difference,
    gaps,
    labelled,
    merged,
    spans,
    sweep,
)
from tests.helpers.histogram_tables import in_order

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")]


def visits(seed: int, size: int) -> pa.Table:
    """Spans of some keys, some without an end, a start or a key, in several types of times."""
    rng = np.random.default_rng(seed)
    start = rng.integers(0, 3_000, size)
    length = rng.choice([0, 1, 5, 40, 90], size)
    none, nothing = rng.random(size) < 0.05, rng.random(size) < 0.04
    end = pa.array(start + length, mask=none)
    return pa.table({
        "id": np.arange(size), "key": pa.array(rng.choice(["a", "B", "b", "c"], size), mask=nothing),
        "number": pa.array(rng.integers(0, 3, size), pa.int32()),
        "start": pa.array(start), "end": end,
        "at": pa.array(start, pa.timestamp("us", "UTC")), "until": end.cast(pa.timestamp("us", "UTC")),
        "day": pa.array(start, pa.int32()).cast(pa.date32()),
        "lasted": pa.array(length, pa.duration("us"), mask=none),
    })  # fmt: skip


LEFT, RIGHT = visits(1, 200), visits(2, 180)
RIGHT = RIGHT.append_column("wide", RIGHT["number"].cast(pa.int64()))
OPEN = spans("start", "end", open_ends=True)
TIMES = spans("at", "until", closed="left")
ASKED: dict[str, tuple[Callable[..., pa.Table], dict[str, Any]]] = {
    "merged": (merged, {"by": "key", "gap": 3}),
    "merged times": (merged, {"by": ["key", "number"], "time": TIMES, "gap": "2us"}),
    "merged, with open ends": (merged, {"by": "key", "time": OPEN}),
    "merged without keys": (merged, {}),
    "durations": (merged, {"by": "key", "time": spans("at", duration="lasted", open_ends=True)}),
    "coverage": (coverage, {"by": "number", "time": OPEN, "zeros": True, "bounds": (-5, 9_000)}),
    "gaps": (gaps, {"by": "key", "time": TIMES}),
    "difference": (
        difference, {"by": ["key", ("number", "wide")], "left_time": TIMES, "right_time": TIMES},
    ),
    "covered": (covered, {"by": "key", "left_time": OPEN, "right_time": OPEN}),
    "covered without keys": (covered, {"left_time": TIMES, "right_time": TIMES}),
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_as_in_one_process(spark: SparkSession, name: str) -> None:
    function, asked = ASKED[name]
    tables = [LEFT, RIGHT] if function in (difference, covered) else [LEFT]
    want = function(*tables, **asked)
    found = sweep(function, *map(spark.createDataFrame, tables), **asked)
    assert found.columns == want.column_names
    assert in_order(found.toArrow()) == in_order(want)
    assert want.num_rows > 3


def test_labels_of_tasks_differ(spark: SparkSession) -> None:
    """They name the same unions, by other numbers."""
    want = labelled(LEFT, by=["key", "number"])
    found = sweep(labelled, spark.createDataFrame(LEFT), by=["key", "number"]).toArrow()
    both = [each.sort_by("id") for each in (found, want)]
    own = [each.drop_columns("union") for each in both]
    assert in_order(own[0]) == in_order(own[1])
    pairs = set(zip(*(each["union"].to_pylist() for each in both), strict=True))
    unions = pc.count_distinct(want["union"]).as_py()
    assert len(pairs) == unions + 1  # and nulls
    assert len({one for one, _ in pairs}) == len({other for _, other in pairs}) == len(pairs)


def test_what_has_no_meaning_is_refused(spark: SparkSession) -> None:
    frame = spark.createDataFrame(LEFT)
    for call, kind, message in (
        (lambda: sweep(sum, frame), ConditionError, "function must be one of merged, labelled"),  # type: ignore[arg-type]
        (lambda: sweep(merged, frame, frame), ConditionError, r"merged takes one \(found two"),
        (lambda: sweep(covered, frame), ConditionError, r"covered takes two \(found one"),
        (lambda: sweep(merged, LEFT), SchemaError, "events must be a Spark DataFrame"),  # type: ignore[arg-type]
        (lambda: sweep(merged, frame, by="room"), SchemaError, "events has no column 'room'"),
        (lambda: sweep(gaps, frame, bounds=3), ConditionError, "bounds takes two times"),
    ):
        with pytest.raises(kind, match=message):
            call()
    with pytest.warns(DroppedRowsWarning, match="skips invalid rows when it is computed"):
        sweep(merged, frame, options=CorrelateOptions(invalid="drop"))
