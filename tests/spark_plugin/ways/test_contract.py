"""What every way holds: the reference's answer and that of tables, invalid rows, and what is counted."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from coincide import (
    CorrelateOptions,
    JoinReport,
    TimingCondition,
    correlate_files,
    correlate_tables,
    within,
)
from coincide.model.errors import DataError
from cpu_fallback.reference.aggregates import Aggregate, aggregated, is_same
from cpu_fallback.reference.join import Asked, pairs
from spark_plugin.tasks.slice_plan import CellPlan, SlicePlan
from spark_plugin.ways import choosing
from spark_plugin.ways.broadcast import both
from spark_plugin.ways.broadcast.both import BothPlan
from spark_plugin.ways.broadcast.join import BroadcastPlan
from spark_plugin.ways.correlation import Correlation
from tests.helpers.comparison import HUGE_TOLERANCE, PROBABILITY_TOLERANCE, SHAPES
from tests.helpers.direct_layouts import write_layout
from tests.helpers.joins import plan_correlation
from tests.helpers.planning import set_limits
from tests.helpers.rows import lists_in_order
from tests.helpers.spark_cases import SPREAD, Pack, frame, pack, rows_of, settings, shape_numbers

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("any_order", "small_slices", "few_partitions"),
]

Options = dict[str, Any]
SHUFFLED = [("inner", "lists"), ("left", "pairs"), ("left", "lists"), ("full", "pairs")]
"""Shapes of which no pair would be shuffled unseen: a small left side is looked at."""


def _fits_any(cases: Pack, how: str, emit: str) -> bool:
    return True


def _fits_cells(cases: Pack, how: str, emit: str) -> bool:
    """With a lower confidence threshold, lengths that were not seen bound no pair."""
    return cases.condition.confidence >= 0.5


def _fits_unseen(cases: Pack, how: str, emit: str) -> bool:
    left, right = cases.tables()
    return (how, emit) not in SHUFFLED or right.nbytes <= left.nbytes


@dataclass(frozen=True)
class Forced:
    """How joins are made to go a way, and how one is known to have gone it."""

    is_it: Callable[[Correlation], bool]
    options: tuple[Options, ...]
    """They take turns with the questions."""
    limits: dict[str, Any] = field(default_factory=dict)
    constants: tuple[tuple[ModuleType, str, object], ...] = ()
    seed: Callable[[int], int] = int
    """The first from there on that fits the pack of a shape."""
    fits: Callable[[Pack, str, str], bool] = _fits_any
    cases: int = 15
    quick: bool = True
    """Which shapes are, as `shape_numbers` takes it."""


def _is_broadcast(small: str) -> Callable[[Correlation], bool]:
    # The sides change places for right events.
    return lambda join: (
        isinstance(join.plan, BroadcastPlan) and ((join.plan.small == small) != join.is_swapped)
    )


WAYS = {
    "slices": Forced(
        lambda join: isinstance(join.plan, SlicePlan),
        ({"slices": 3, "batch_pairs": 20}, {"slices": 1, "classes": 3}, {"slices": 2, "batch_pairs": 1},
         {"slices": 5, "slice_rows": 5, "classes": 1}, {"slices": 4, "slice_rows": 5}),
        seed=lambda number: 2010 + number, cases=25, quick=True,
    ),
    "room": Forced(
        lambda join: isinstance(join.plan, SlicePlan),
        ({"way": "exchange", "slice_rows": 8}, {"way": "exchange", "slice_rows": 30}),
        seed=lambda number: 300 + number, cases=6, quick=False,
    ),
    "cells": Forced(
        lambda join: isinstance(join.plan, CellPlan) and (join.left, join.right) == (None, None),
        ({}, {"slice_rows": 10}),
        {"large_bytes": 0, "large_filtered_bytes": 0, "waves_of_filtered": 1 << 20,
         "far_larger": 1000, "smallest_slice_rows": 10},
        # Two slices, that workers divide where they may hold few rows.
        constants=((choosing, "slices_of", lambda *_: 2),),
        seed=lambda number: 9710 + 100 * number, cases=12, fits=_fits_cells, quick=False,
    ),
    "broadcast-left": Forced(
        _is_broadcast("left"),
        ({"way": "broadcast-left", "slice_rows": 7},
         {"way": "broadcast-left", "slice_rows": 10**6, "classes": 3}),
        seed=lambda number: 4020 + number, quick=False,
    ),
    "broadcast-right": Forced(
        _is_broadcast("right"),
        ({"way": "broadcast-right", "slice_rows": 10**6},
         {"way": "broadcast-right", "slice_rows": 7, "classes": 3}),
        seed=lambda number: 4020 + number, quick=True,
    ),
    "unseen": Forced(
        lambda join: isinstance(join.plan, BroadcastPlan) and None in (join.left, join.right),
        ({},), {"far_larger": 0, "least_large": 0},
        seed=lambda number: 7310 + number, cases=12, fits=_fits_unseen, quick=True,
    ),
    "broadcast-both": Forced(
        lambda join: isinstance(join.plan, BothPlan), ({"way": "broadcast-both"},),
        constants=((both, "_SMALLEST_WORK", 1.0),), seed=lambda number: 6020 + number, quick=False,
    ),
}  # fmt: skip
"""Those of DataFrames; files are a way of their own below."""


@pytest.fixture
def few_partitions(spark: SparkSession) -> Iterator[None]:
    with settings(spark, SPREAD):
        yield


@pytest.fixture
def forced(way: str, monkeypatch: pytest.MonkeyPatch) -> Forced:
    found = WAYS[way]
    set_limits(monkeypatch, **found.limits)
    for module, name, value in found.constants:
        monkeypatch.setattr(module, name, value)
    return found


def planned(
    forced: Forced, sides: tuple[DataFrame, DataFrame], number: int, **asked: Any
) -> Correlation:
    options = CorrelateOptions(
        **forced.options[number % len(forced.options)] | asked.pop("more", {})
    )
    return plan_correlation(*sides, asked.pop("condition"), options=options, observe=True, **asked)


def on_spark(spark: SparkSession, tables: tuple[pa.Table, pa.Table]) -> tuple[DataFrame, DataFrame]:
    left, right = (frame(spark, table).repartition(2) for table in tables)
    return left, right


# --- against the reference ---


def _shapes() -> list[Any]:
    found = []
    for way, forced in WAYS.items():
        for number in shape_numbers(forced.quick):
            marks = () if isinstance(number, int) else number.marks
            plain = number if isinstance(number, int) else number.values[0]
            found.append(pytest.param(way, plain, marks=marks, id=f"{way}-{plain}"))
    return found


@pytest.mark.parametrize(("way", "number"), _shapes())
def test_packs_of_cases(spark: SparkSession, forced: Forced, number: int) -> None:
    """Null times and keys, ties, sides of nothing: as the reference, whatever is asked for."""
    how, emit, probability = SHAPES[number]
    keys = ((), ("station",), ("station", "channel"))[number % 3]
    seeds = itertools.count(forced.seed(number))
    drawn = (pack(seed, forced.cases, keys=keys) for seed in seeds)
    cases = next(each for each in drawn if forced.fits(each, how, emit))
    join = planned(
        forced, on_spark(spark, cases.tables()), number, condition=cases.condition, by=cases.by,
        how=how, emit=emit, probability=probability,
    )  # fmt: skip
    assert forced.is_it(join)
    found = rows_of(join.dataframe)
    cases.check(found, how, emit, probability, PROBABILITY_TOLERANCE)
    if (how, emit) == ("inner", "pairs"):
        counted = join.counters()
        assert counted is not None
        assert counted.pairs == len(found)


@pytest.mark.parametrize(
    ("way", "seed", "emit"),
    [
        ("slices", 1, "pairs"), ("slices", 2, "pairs"), ("slices", 3, "pairs"),
        ("broadcast-left", 5, "pairs"), ("broadcast-left", 5, "best"),
        ("broadcast-right", 5, "pairs"), ("broadcast-right", 5, "best"),
        ("unseen", 5, "best"), ("broadcast-both", 5, "best"),
    ],
)  # fmt: skip
def test_packs_of_huge_cases(spark: SparkSession, forced: Forced, seed: int, emit: str) -> None:
    """Times and bounds up to 2^61: no sum on the way may overflow."""
    cases = pack(seed, 20, huge=True)
    join = planned(
        forced, on_spark(spark, cases.tables()), seed, condition=cases.condition, by="case",
        how="left", emit=emit,
    )  # fmt: skip
    cases.check(rows_of(join.dataframe), "left", emit, False, HUGE_TOLERANCE)


AGGREGATES: dict[str, Aggregate] = {
    "n": "count", "first": ("id", "first"), "last": ("id", "last"), "ids": ("id", "sum"),
    "latest": ("max_time", "max"), "soonest": ("delta", "min"), "usual": ("delta", "mean"),
}  # fmt: skip


def packs_of_matches(seed: int, *keys: str) -> Iterator[Pack]:
    for each in itertools.count(seed):
        drawn = pack(each, 8, keys=keys)
        if sum(len(pairs(Asked(*case))) for case in drawn.cases) > 20:
            yield drawn


def check_aggregates(cases: Pack, found: list[dict[str, Any]]) -> None:
    """Compare the rows of ``how="left"`` with the reference's; rows of one id are alike in all."""
    for number, case in enumerate(cases.cases):
        own = sorted((row for row in found if row["case"] == number), key=itemgetter("left_id"))
        wanted = aggregated(Asked(*case, by_rows=False), AGGREGATES)
        numbers = sorted(range(len(wanted)), key=lambda i: case.left[i]["id"])
        assert [row["left_id"] for row in own] == [case.left[i]["id"] for i in numbers]
        for row, i in zip(own, numbers, strict=True):
            for name, asking in AGGREGATES.items():
                value = (wanted[i] or {"n": 0}).get(name)
                assert is_same(row[name], value), (number, row, asking, value)


@pytest.mark.parametrize("way", WAYS)
def test_packs_of_aggregates(spark: SparkSession, forced: Forced) -> None:
    """With and without making pairs, as tasks divide the right events."""
    drawn = packs_of_matches(forced.seed(0), "station")
    cases = next(each for each in drawn if forced.fits(each, "left", "lists"))
    join = planned(
        forced, on_spark(spark, cases.tables()), 0, condition=cases.condition, by=cases.by,
        how="left", emit="aggregates", aggregates=AGGREGATES,
    )  # fmt: skip
    assert forced.is_it(join)
    check_aggregates(cases, rows_of(join.dataframe))


# --- as tables ---


def events(n: int, seed: int) -> pa.Table:
    """Equal times, midpoints, names and weights, nulls and NaN among them; long pauses between bursts."""
    rng = np.random.default_rng(seed)
    low = np.sort(rng.integers(0, 5, n) * 1000 + rng.integers(0, 9, n) * 10)
    table = pa.table({
        "min_time": pa.array(low, mask=rng.random(n) < 0.04),
        "max_time": low + rng.choice([0, 10, 20], n),
        "name": pa.array(rng.choice(["b", "ab", "", "é", None], n)),
        "weight": pa.array(rng.choice([np.nan, -1.0, 0.5, None], n).tolist(), pa.float64()),
        "day": pa.array(np.arange(n) % 9, pa.int32()).cast(pa.date32()),
        "key": pa.array(rng.choice([1, 2, None], n, p=[0.5, 0.4, 0.1]).tolist(), pa.int64()),
        "id": np.arange(n) // 2, "is_odd": np.arange(n) % 2 == 1, "nested": [[i, -i] for i in range(n)],
    })  # fmt: skip
    # Some events are alike in all.
    return pa.concat_tables([table, table.slice(3, 12)])


SIDES = events(120, 1), events(90, 2)
CONDITION = TimingCondition(within(-15, 25), 0.05)
COLUMNS: dict[str, Any] = {
    "by": "key", "left_columns": ["name", "id"], "right_columns": ["weight", "name", "id"],
}  # fmt: skip
ASKED: dict[str, dict[str, Any]] = {
    "columns of any kind": {
        "left_columns": ["id", "name", "is_odd", "day", "nested"],
        "right_columns": ["id", "day", "name", "weight"],
    },
    "keys of any kind": {"by": ("name", "is_odd"), "left_columns": ["id"], "how": "left", "emit": "counts"},
    "pairs where": {"where": "left_name <= right_name", "probability": True, "how": "left"},
    "lists": {"emit": "lists", "right_columns": ["id", "day"]},
    "counts where": {"emit": "counts", "where": "left_name = right_name"},
    "right": {"how": "right", "probability": True},
    "full": {"how": "full"},
    "best of right": {"how": "right", "emit": "best", "k": 2, "prefer": "first"},
    "best by a column": {"emit": "best", "prefer": "-weight", "k": 3, "how": "left"},
    "the last": {"emit": "best", "prefer": "last", "probability": True},
    "best by two": {"emit": "best", "prefer": ["probability", "-weight"], "k": 2, "probability": True},
    "best with ties": {"emit": "best", "prefer": "nearest", "ties": "all", "how": "left"},
    "mutual": {"matching": "mutual", "prefer": "nearest", "how": "left"},
    "mutual by two": {"matching": "mutual", "prefer": ["last", "-weight"]},
    "unambiguous": {
        "matching": "unambiguous", "how": "left", "condition": TimingCondition(within(-2, 4), 0.05),
    },
    "optimal": {"matching": "optimal", "prefer": "nearest", "probability": True, "how": "left"},
    "aggregates": {
        "emit": "aggregates", "how": "left",
        "aggregates": {
            "n": "count", "heavy": ("weight", "max"), "weight": ("weight", "sum"),
            "odd": ("is_odd", "any"), "word": ("name", "last"), "days": ("day", "min"),
        },
    },
    "aggregates by probability": {
        "emit": "aggregates", "how": "left", "weights": "probability",
        "aggregates": {
            "n": "count", "heavy": ("weight", "count"), "weight": ("weight", "mean"), "ids": ("id", "sum"),
        },
    },
    "aggregates where": {
        "emit": "aggregates", "where": "left_name <= right_name",
        "aggregates": {"n": ("weight", "count"), "sure": ("probability", "sum"), "ids": ("id", "std")},
    },
}  # fmt: skip

ELSEWHERE = {(way, "optimal") for way in ("slices", "room", "cells", "unseen")}
"""What another way than the forced one answers."""
MORE: dict[str, Options] = {"cells": {"left_longest": 20, "right_longest": 20}}
"""Without it only a planning job knows how far pairs of a low threshold reach."""


def _asked() -> list[Any]:
    """Each way with each question; every third one is quick, and each has a way."""
    return [
        pytest.param(
            way, asked, marks=[] if (i + j) % 3 == 0 else pytest.mark.slow, id=f"{way}-{asked}"
        )
        for i, way in enumerate(WAYS)
        for j, asked in enumerate(ASKED)
        if not (asked == "optimal" and way in ("broadcast-left", "broadcast-right"))
    ]


@pytest.mark.parametrize(("way", "asked"), _asked())
def test_as_tables(spark: SparkSession, forced: Forced, way: str, asked: str) -> None:
    """Columns, rows and what is counted."""
    given = {"condition": CONDITION, **COLUMNS, **ASKED[asked]}
    told, number = JoinReport(), list(ASKED).index(asked)
    more = MORE.get(way, {})
    expected = correlate_tables(*SIDES, report=told, options=CorrelateOptions(**more), **given)
    assert expected.num_rows > 20
    join = planned(forced, on_spark(spark, SIDES), number, more=more, **given)
    assert forced.is_it(join) == ((way, asked) not in ELSEWHERE), join.plan
    found = join.dataframe.toArrow()
    assert found.column_names == expected.column_names
    assert lists_in_order(found) == lists_in_order(expected)
    summary, wanted = join.summary(), told.summary()
    assert (summary.left, summary.right) == (wanted.left, wanted.right)
    assert summary.counters is not None
    assert wanted.counters is not None
    assert summary.counters.pairs == wanted.counters.pairs


@pytest.mark.parametrize("way", ["slices", "broadcast-both"])
def test_one_stream(spark: SparkSession, forced: Forced) -> None:
    given: dict[str, Any] = {
        "by": "key",
        "how": "left",
        "emit": "counts",
        "left_columns": ["id", "name"],
    }
    expected = correlate_tables(SIDES[0], condition=CONDITION, **given)
    events = frame(spark, SIDES[0]).repartition(2)
    options = CorrelateOptions(**forced.options[0])
    join = plan_correlation(
        events, None, CONDITION, is_one_stream=True, options=options, observe=True, **given
    )
    assert forced.is_it(join)
    assert lists_in_order(join.dataframe.toArrow()) == lists_in_order(expected)
    assert join.summary().right is None


WRONG = (
    SIDES[0]
    .slice(1, 1)
    .set_column(0, "min_time", pa.array([5]))
    .set_column(1, "max_time", pa.array([4]))
)


@pytest.mark.parametrize("way", WAYS)
def test_invalid_rows(spark: SparkSession, forced: Forced, way: str) -> None:
    """They are refused by planning or by the job that meets them; or dropped and counted."""
    tables = pa.concat_tables([SIDES[0], WRONG]), SIDES[1]
    more = MORE.get(way, {})
    given = {"condition": CONDITION, **COLUMNS, "how": "left", "emit": "counts"}
    with pytest.raises(
        (DataError, PySparkException), match=r"left: .*found min_time=5, max_time=4"
    ):
        planned(forced, on_spark(spark, tables), 0, more=more, **given).dataframe.collect()
    told, dropping = JoinReport(), {**more, "invalid": "drop"}
    expected = correlate_tables(*tables, report=told, options=CorrelateOptions(**dropping), **given)
    join = planned(forced, on_spark(spark, tables), 0, more=dropping, **given)
    assert lists_in_order(join.dataframe.toArrow()) == lists_in_order(expected)
    counted = join.summary().left
    assert counted == told.summary().left
    assert counted is not None
    assert counted.invalid == {"order": 1}


# --- files ---


def test_files_of_packs_of_aggregates(spark: SparkSession, tmp_path: Path) -> None:
    cases = next(packs_of_matches(2))
    paths = [
        write_layout(tmp_path / name, table, np.random.default_rng(2), order="given")
        for name, table in zip(("left", "right"), cases.tables(), strict=True)
    ]
    found = correlate_files(
        spark, *map(str, paths), cases.condition, by=cases.by, how="left", emit="aggregates",
        aggregates=AGGREGATES, options=CorrelateOptions(way="files", slices=3),
    )  # fmt: skip
    check_aggregates(cases, rows_of(found))


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(asked, marks=pytest.mark.slow if number % 2 else [])
        for number, asked in enumerate(ASKED)
        if asked != "optimal"
    ],
)
def test_files_as_tables(spark: SparkSession, tmp_path: Path, asked: str) -> None:
    given = {"condition": CONDITION, **COLUMNS, **ASKED[asked]}
    if "matching" in given:
        given["how"] = "inner"  # with other rows it is refused of files
    random = np.random.default_rng(list(ASKED).index(asked))
    paths = [
        write_layout(tmp_path / name, table, random, order="given")
        for name, table in zip(("left", "right"), SIDES, strict=True)
    ]
    report, told = JoinReport(), JoinReport()
    options = CorrelateOptions(way="files", slices=4)
    found = correlate_files(spark, *map(str, paths), options=options, report=report, **given)
    expected = correlate_tables(*SIDES, report=told, **given)
    assert found.columns == expected.column_names
    assert lists_in_order(found.toArrow()) == lists_in_order(expected)
    summary = report.summary()
    assert summary.way == "files"
    assert (summary.left, summary.right) == (told.summary().left, told.summary().right)
