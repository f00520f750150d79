"""Accidental pairs of DataFrames by time shifts: those of tables, by every way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from coincide import (
    CausalityCondition,
    ConditionError,
    CorrelateOptions,
    Ellipsoidal,
    SchemaError,
    ShortShiftsWarning,
    Spatial,
    Temporal,
    TimingCondition,
    UnmatchableRowsWarning,
    accidental_pair_tables,
    accidental_pairs,
    within,
)
from spark_plugin.ways.broadcast import join as broadcast
from spark_plugin.ways.broadcast.join import NearCells, near_cells
from tests.helpers.causality_tables import XY, random_events
from tests.helpers.spark_cases import frame

pytestmark = pytest.mark.spark

CAUSES, EFFECTS = random_events(1, 120, prefix="c"), random_events(2, 150)
NEAR = CausalityCondition([Temporal(-7, 40), Spatial(3)])
SHIFTS = (50, -60, 121)
WAYS: list[dict[str, Any]] = [
    {"slices": 7},
    {"way": "exchange", "slice_rows": 40},
    {"way": "broadcast-left"},
    {"way": "broadcast-right"},
]


@pytest.mark.parametrize(
    "options",
    [WAYS[0], WAYS[2], *(pytest.param(way, marks=pytest.mark.slow) for way in (WAYS[1], WAYS[3]))],
)
def test_causality(spark: SparkSession, options: dict[str, Any]) -> None:
    asked: dict[str, Any] = {
        **XY, "by": "key", "how": "left", "effect_columns": ("name", "id"), "shifts": SHIFTS,
    }  # fmt: skip
    found = accidental_pairs(
        frame(spark, CAUSES),
        frame(spark, EFFECTS),
        NEAR,
        options=CorrelateOptions(**options),
        **asked,
    )
    assert found == accidental_pair_tables(CAUSES, EFFECTS, NEAR, **asked)
    assert min(found.counts) > 5


@pytest.mark.parametrize("way", ["broadcast-left", "broadcast-right"])
def test_what_is_far_from_the_small_side_unless_it_is_moved(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, way: Any
) -> None:
    """A broadcast sends rows near the small side alone to Python: near is, where they are moved to."""
    cells = []

    def seen(*asked: Any, **words: Any) -> NearCells:
        cells.append(near_cells(*asked, **words))
        return cells[-1]

    monkeypatch.setattr(broadcast, "near_cells", seen)
    causes = np.arange(40) * 100_000
    effects = np.concatenate([causes + 3, causes + 3_000 + 2, causes - 5_000 + 4, causes + 9])
    sides = [
        frame(spark, pa.table({"id": times, "time": times, "x": np.zeros(times.size)}))
        for times in (causes, effects)
    ]
    condition = CausalityCondition([Temporal(-7, 40), Spatial(3)])
    places: dict[str, Any] = {"cause_place": ["x"], "effect_place": ["x"]}
    found = accidental_pairs(
        *sides,
        condition,
        **places,
        shifts=(-3_000, 5_000, 70_000),
        options=CorrelateOptions(way=way),
    )
    assert found.counts == (40, 40, 0)
    assert [each.words.size > 1 for each in cells] == [True] * 3


def test_one_stream(spark: SparkSession) -> None:
    oval = CausalityCondition([Ellipsoidal(4, 25)])
    asked: dict[str, Any] = {"cause_place": ("x", "y"), "shifts": (51, -51, -60, 70)}
    options = CorrelateOptions(slices=5)
    found = accidental_pairs(frame(spark, CAUSES), None, oval, **asked, options=options)
    assert found == accidental_pair_tables(CAUSES, None, oval, **asked)
    assert min(found.counts) > 20


TIMES: dict[str, Any] = {"left_time": ("low", "time"), "right_time": "time"}


def intervals(table: pa.Table) -> pa.Table:
    return table.append_column("low", pa.compute.subtract(table["time"], 10))


@pytest.mark.parametrize("options", [WAYS[1], WAYS[2]])
def test_correlate(spark: SparkSession, options: dict[str, Any]) -> None:
    condition = TimingCondition(within(-5, 9), 0.4)
    left = intervals(CAUSES)
    asked: dict[str, Any] = {**TIMES, "by": "key", "emit": "best", "shifts": (20, -40)}
    with pytest.warns(ShortShiftsWarning, match="shifts 20 are"):
        wanted = accidental_pair_tables(left, EFFECTS, condition, **asked)
    with pytest.warns(ShortShiftsWarning, match="shifts 20 are"):
        found = accidental_pairs(
            frame(spark, left), frame(spark, EFFECTS), condition, **asked,
            options=CorrelateOptions(**options),
        )  # fmt: skip
    assert found == wanted
    assert min(found.counts) > 20


def test_what_cannot_be_counted(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("value AS id", "value AS time")
    instants = CausalityCondition([Temporal(0, 5)])
    exact: dict[str, Any] = {"within": (0, 5), "left_time": "time", "right_time": "time"}
    words = (
        "accidental pairs are counted at once, but a streaming side has no rows yet. Give static"
    )
    for asked in ({"condition": instants}, exact):
        for sides in (
            (stream, frame(spark, EFFECTS)),
            (frame(spark, EFFECTS), stream),
            (stream, None),
        ):
            with pytest.raises(ConditionError, match=words):
                accidental_pairs(*sides, shifts=(20,), **asked)
    late = frame(spark, pa.table({"id": [1], "time": [2**61 - 10]}))
    with pytest.raises(ConditionError, match=r"moves times beyond 2\^61 ticks"):
        accidental_pairs(late, late, instants, shifts=(20,))
    with pytest.raises(ConditionError, match=r"by a broadcast or an exchange .found way='files'"):
        accidental_pairs(late, late, instants, shifts=(20,), options=CorrelateOptions(way="files"))
    events = frame(spark, CAUSES), frame(spark, EFFECTS)
    with pytest.raises(ConditionError, match=r"events by their output columns\. Add 'x'"):
        accidental_pairs(*events, NEAR, **XY, shifts=(50,), matching="mutual")
    with pytest.raises(
        SchemaError, match=r"left must be a Spark DataFrame .* or accidental_pair_tables"
    ):
        accidental_pairs(EFFECTS, late, instants, shifts=(20,))  # type: ignore[arg-type]


def test_rows_that_a_planning_job_has_seen_are_told_of(spark: SparkSession) -> None:
    rows = frame(spark, pa.table({"id": [1, 2], "time": [None, 5]}))
    with pytest.warns(UnmatchableRowsWarning, match="left, 2 rows: 1 without time or key"):
        accidental_pairs(
            rows, frame(spark, EFFECTS), within=3, shifts=(20,), left_time="time", right_time="time"
        )


@pytest.mark.parametrize(
    ("matching", "prefer", "way"),
    [("mutual", "nearest", "exchange"), ("mutual", "last", "broadcast-right"),
     ("unambiguous", "probability", "auto"), ("optimal", "nearest", "exchange")],
)  # fmt: skip
def test_matched_pairs(spark: SparkSession, matching: Any, prefer: str, way: Any) -> None:
    """Counted after matching, as many as tables have."""
    rng = np.random.default_rng(6)
    sides = []
    for _ in range(2):
        low = rng.integers(0, 4000, 200)
        sides.append(
            pa.table(
                {"id": np.arange(200), "min_time": low, "max_time": low + rng.integers(0, 9, 200)}
            )
        )
    asked: dict[str, Any] = {"matching": matching, "prefer": prefer, "shifts": (60, -75, 101)}
    condition = TimingCondition(within(-12, 20), 0.5)
    wanted = accidental_pair_tables(*sides, condition, **asked)
    frames = [frame(spark, side) for side in sides]
    columns = ("id", "min_time", "max_time")
    found = accidental_pairs(
        *frames, condition, **asked, left_columns=columns, right_columns=columns,
        options=CorrelateOptions(way=way),
    )  # fmt: skip
    assert found == wanted
    assert min(found.counts) > 10
