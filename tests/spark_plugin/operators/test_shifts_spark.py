"""Accidental pairs of DataFrames by time shifts: those of tables, by every way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from coincide import (
    CausalityCondition,
    ConditionError,
    CorrelateOptions,
    Ellipsoidal,
    JoinReport,
    ShortShiftsWarning,
    Spatial,
    Temporal,
    TimingCondition,
    causality,
    causality_tables,
    correlate,
    correlate_files,
    correlate_tables,
    within,
)
from spark_plugin.ways.broadcast import join as broadcast
from spark_plugin.ways.broadcast.join import NearCells, near_cells
from tests.helpers.causality_tables import XY, answer, random_events
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
    expected, report = JoinReport(), JoinReport()
    asked: dict[str, Any] = {**XY, "by": "key", "how": "left", "effect_columns": ("name", "id")}
    wanted = causality_tables(CAUSES, EFFECTS, NEAR, **asked, shifts=SHIFTS, report=expected)
    found = causality(
        frame(spark, CAUSES), frame(spark, EFFECTS), NEAR, **asked, shifts=SHIFTS, report=report,
        options=CorrelateOptions(**options),
    )  # fmt: skip
    assert report.accidental == expected.accidental
    assert report.accidental is not None
    assert min(report.accidental.counts) > 5
    assert answer(found.toArrow()) == answer(wanted)
    assert report.summary().accidental == expected.accidental


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
    report = JoinReport()
    found = causality(
        *sides, condition, **places, shifts=(-3_000, 5_000, 70_000), report=report,
        options=CorrelateOptions(way=way),
    )  # fmt: skip
    assert found.count() == 80
    assert report.accidental is not None
    assert report.accidental.counts == (40, 40, 0)
    assert [each.words.size > 1 for each in cells] == [True] * 4


def test_one_stream(spark: SparkSession) -> None:
    oval = CausalityCondition([Ellipsoidal(4, 25)])
    expected, report = JoinReport(), JoinReport()
    asked: dict[str, Any] = {"cause_place": ("x", "y"), "shifts": (51, -51, -60, 70)}
    causality_tables(CAUSES, None, oval, **asked, report=expected)
    options = CorrelateOptions(slices=5)
    causality(frame(spark, CAUSES), None, oval, **asked, report=report, options=options)
    assert report.accidental == expected.accidental
    assert report.accidental is not None
    assert min(report.accidental.counts) > 20


TIMES: dict[str, Any] = {"left_time": ("low", "time"), "right_time": "time"}


def intervals(table: pa.Table) -> pa.Table:
    return table.append_column("low", pa.compute.subtract(table["time"], 10))


@pytest.mark.parametrize("options", [WAYS[1], WAYS[2]])
def test_correlate(spark: SparkSession, options: dict[str, Any]) -> None:
    condition = TimingCondition(within(-5, 9), 0.4)
    left, expected, report = intervals(CAUSES), JoinReport(), JoinReport()
    asked: dict[str, Any] = {**TIMES, "by": "key", "emit": "best", "shifts": (20, -40)}
    with pytest.warns(ShortShiftsWarning, match="shifts 20 are"):
        correlate_tables(left, EFFECTS, condition, **asked, report=expected)
    with pytest.warns(ShortShiftsWarning, match="shifts 20 are"):
        correlate(
            frame(spark, left), frame(spark, EFFECTS), condition, **asked, report=report,
            options=CorrelateOptions(**options),
        )  # fmt: skip
    assert report.accidental == expected.accidental
    assert report.accidental is not None
    assert min(report.accidental.counts) > 20


def test_files_are_counted_by_dataframes(spark: SparkSession, tmp_path: Any) -> None:
    for name, table in (("left", CAUSES), ("right", EFFECTS)):
        pq.write_table(table.sort_by("time"), tmp_path / f"{name}.parquet")
    asked: dict[str, Any] = {
        "left_time": "time", "right_time": "time", "shifts": (20,), "report": JoinReport(),
    }  # fmt: skip
    condition = TimingCondition(within(-5, 5), 1)
    correlate_tables(CAUSES, EFFECTS, condition, **asked)
    expected = asked["report"].accidental
    paths = str(tmp_path / "left.parquet"), str(tmp_path / "right.parquet")
    done = correlate_files(spark, *paths, condition, output=tmp_path / "out", **asked)
    assert done.accidental == expected
    assert "not by files: shifts count the pairs of all slices again" in done.why
    options = CorrelateOptions(way="files")
    with pytest.raises(ValueError, match="shifts count the pairs of all slices again, which needs"):
        correlate_files(spark, *paths, condition, options=options, **asked)
    with pytest.raises(ConditionError, match="shifts needs a report"):
        correlate_files(spark, *paths, condition, **{**asked, "report": None})


def test_what_cannot_be_counted(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("value AS id", "value AS time")
    arguments: dict[str, Any] = {"shifts": (20,), "report": JoinReport()}
    instants = CausalityCondition([Temporal(0, 5)])
    with pytest.raises(
        ConditionError, match="planning counts shifts, but a streaming side has no rows"
    ):
        causality(stream, frame(spark, EFFECTS), instants, **arguments)
    late = frame(spark, pa.table({"id": [1], "time": [2**61 - 10]}))
    with pytest.raises(ConditionError, match=r"moves times beyond 2\^61 ticks"):
        causality(late, late, instants, **arguments)


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
    wanted, report = JoinReport(), JoinReport()
    correlate_tables(*sides, condition, **asked, report=wanted)
    options = CorrelateOptions(way=way)
    frames = [frame(spark, side) for side in sides]
    correlate(*frames, condition, **asked, report=report, options=options).count()
    assert report.accidental == wanted.accidental
    assert wanted.accidental is not None
    assert min(wanted.accidental.counts) > 10
