"""Files that are partly in order: slices read row groups that few of them need where these lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from coincide import (
    CausalityCondition,
    CorrelateOptions,
    DataError,
    Spatial,
    Temporal,
    causality,
    causality_tables,
    correlate,
    correlate_tables,
    spark_errors_as_ours,
)
from coincide.engine.files import footers, planning
from spark_plugin.tasks.packed_files import FilePackTask, Staying
from spark_plugin.ways.exchange import join as exchange
from tests.helpers.planning import set_limits
from tests.helpers.rows import lists_in_order
from tests.helpers.spark_cases import jobs

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")]


def events(seed: int, rows: int = 1_200, kind: pa.DataType | None = None) -> pa.Table:
    """Events in order of time; some lack a time or a key."""
    rng = np.random.default_rng(seed)
    low = np.sort(rng.integers(-3_000, 20_000, rows))
    high = low + rng.choice([0, 2, 30, 400], rows, p=[0.5, 0.3, 0.19, 0.01])
    lacks = rng.random((3, rows)) < 0.04
    kind = kind or pa.int64()
    return pa.table({
        "id": np.arange(rows) + 10_000 * seed,
        "min_time": pa.array(low, mask=lacks[0]).cast(kind),
        "max_time": pa.array(high, mask=lacks[1]).cast(kind),
        "key": pa.array(rng.integers(0, 4, rows), mask=lacks[2]),
        "text": pa.array(np.array(["", "é", "b" * 30])[rng.integers(0, 3, rows)]),
        "value": rng.normal(size=rows), "x": rng.random(rows) * 9, "y": rng.random(rows) * 9,
    })  # fmt: skip


def stored(
    spark: SparkSession, folder: Path, table: pa.Table, ordered: float, size: int = 50
) -> DataFrame:
    """A table, the first part of its row groups in order of time, and the others in none."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(3)
    is_ordered = rng.random(table.num_rows) < ordered
    first, rest = (table.filter(pa.array(each)) for each in (is_ordered, ~is_ordered))
    pq.write_table(first, folder / "a.parquet", row_group_size=size)
    shuffled = rest.take(pa.array(rng.permutation(rest.num_rows)))
    pq.write_table(shuffled, folder / "b.parquet", row_group_size=size)
    return spark.read.parquet(str(folder))


@pytest.fixture
def stays(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Staying | None, int]]:
    """Per side: what stays, and the row groups that are packed."""
    found: list[tuple[str, Staying | None, int]] = []
    real = exchange.packs_by

    def noted(task: FilePackTask, *more: Any) -> DataFrame:
        packed = sum(len(parts.places) for parts in task.deals)
        found.append((task.pack.side, task.stays, packed))
        return real(task, *more)

    monkeypatch.setattr(exchange, "packs_by", noted)
    return found


WITHIN: dict[str, Any] = {"within": (-20, 60), "confidence": 0.3}
QUESTIONS: dict[str, dict[str, Any]] = {
    "pairs": {"probability": True},
    "by a number": {"by": "key"},
    "by both": {"by": ["text", "key"], "right_columns": ["id", "value", "text"]},
    "counts": {"emit": "counts", "by": "key"},
    "lists": {"emit": "lists"},
    "best": {"emit": "best", "by": "text"},
    "sums": {"emit": "aggregates", "aggregates": {"n": "count", "most": ("value", "max")}},
    "left": {"how": "left", "by": "text"},
    "anti": {"how": "anti"},
    "right": {"how": "right", "by": "key"},
    "where": {"where": "left_value < right_value"},
    "mutual": {"matching": "mutual"},
}


@pytest.mark.parametrize("ordered", [(1.0, 0.0), (0.5, 0.5), (0.0, 0.7), (1.0, 1.0)])
@pytest.mark.parametrize("name", QUESTIONS)
def test_partly_ordered_files_give_what_tables_give(
    spark: SparkSession, tmp_path: Path, stays: list[Any], name: str, ordered: tuple[float, float]
) -> None:
    tables = [events(seed) for seed in (1, 2)]
    frames = [stored(spark, tmp_path / str(i), tables[i], ordered[i]) for i in range(2)]
    asked = {**WITHIN, **QUESTIONS[name]}
    options = CorrelateOptions(way="exchange", slices=8)
    found = correlate(*frames, **asked, options=options)
    assert lists_in_order(found.toArrow()) == lists_in_order(correlate_tables(*tables, **asked))
    for side, staying, packed in stays[:2]:
        share = ordered[("left", "right").index(side)]
        keeps = side == "left" and asked.get("how") in ("left", "anti")
        assert (staying is not None) == (share > 0 and not keeps)
        # Groups in no order span all slices.
        groups = -(-round(1_200 * (1 - share)) // 50)
        assert packed >= groups - 3
        if share == 1 and not keeps:
            assert len(staying.places) > 20


@pytest.mark.parametrize(
    "kind", [pa.int32(), pa.timestamp("ms"), pa.timestamp("us", "UTC"), pa.float64()]
)
def test_types_and_one_column_of_time(
    spark: SparkSession, tmp_path: Path, stays: list[Any], kind: pa.DataType
) -> None:
    tables = [events(seed, kind=kind) for seed in (1, 2)]
    frames = [stored(spark, tmp_path / str(i), tables[i], 0.6) for i in range(2)]
    within = ("-20ms", "60ms") if kind == pa.timestamp("ms") else (-20, 60)
    within = ("-20us", "60us") if kind == pa.timestamp("us", "UTC") else within
    unit = "s" if pa.types.is_floating(kind) else None
    asked: dict[str, Any] = {"within": within, "left_time": "max_time", "right_time": "min_time"}
    if unit:
        asked["within"] = ("-20s", "60s")
    found = correlate(
        *frames, **asked, options=CorrelateOptions(way="exchange", slices=6, unit=unit)
    )
    expected = correlate_tables(*tables, **asked, options=CorrelateOptions(unit=unit))
    assert lists_in_order(found.toArrow()) == lists_in_order(expected)
    assert all(staying is not None for _, staying, _ in stays)


def test_causes_in_files_partly_in_order(
    spark: SparkSession, tmp_path: Path, stays: list[Any]
) -> None:
    tables = [events(seed) for seed in (1, 2)]
    frames = [stored(spark, tmp_path / str(i), tables[i], 0.6) for i in range(2)]
    condition = CausalityCondition([Temporal(0, 200), Spatial(2)])
    asked: dict[str, Any] = {"cause_time": "max_time", "cause_place": ("x", "y"), "by": "key"}
    found = causality(
        *frames, condition, **asked, options=CorrelateOptions(way="exchange", slices=6)
    )
    assert lists_in_order(found.toArrow()) == lists_in_order(
        causality_tables(*tables, condition, **asked)
    )
    assert len(stays) == 2


def test_crowded_slices_and_long_left_events(
    spark: SparkSession, tmp_path: Path, stays: list[Any]
) -> None:
    """Cells that several slices share, and buckets of keys."""
    tables = [events(seed) for seed in (1, 2)]
    burst = pa.array(np.full(1_200, 77))
    for i in range(2):
        tables[i] = pa.concat_tables([
            tables[i], tables[i].set_column(1, "min_time", burst).set_column(2, "max_time", burst),
        ])  # fmt: skip
    frames = [stored(spark, tmp_path / str(i), tables[i], 0.7) for i in range(2)]
    for more in ({}, {"by": "key"}):
        asked = {**WITHIN, **more, "emit": "counts"}
        options = CorrelateOptions(way="exchange", slice_rows=250)
        found = correlate(*frames, **asked, options=options)
        assert lists_in_order(found.toArrow()) == lists_in_order(correlate_tables(*tables, **asked))


def test_invalid_rows_of_row_groups_that_stay(
    spark: SparkSession, tmp_path: Path, stays: list[Any]
) -> None:
    tables = [events(seed) for seed in (1, 2)]
    wrong = pa.array(
        np.where(np.arange(1_200) == 700, -(10**6), tables[0]["max_time"].fill_null(0))
    )
    tables[0] = tables[0].set_column(2, "max_time", wrong)
    frames = [stored(spark, tmp_path / str(i), tables[i], 1.0) for i in range(2)]
    declared = CorrelateOptions(way="exchange", slices=6, invalid="drop")
    found = correlate(*frames, **WITHIN, options=declared)
    plain = CorrelateOptions(invalid="drop")
    assert lists_in_order(found.toArrow()) == lists_in_order(
        correlate_tables(*tables, **WITHIN, options=plain)
    )
    assert any(staying is not None for _, staying, _ in stays)


def test_a_file_that_changes_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    tables = [events(seed) for seed in (1, 2)]
    frames = [stored(spark, tmp_path / str(i), tables[i], 1.0) for i in range(2)]
    found = correlate(*frames, **WITHIN, options=CorrelateOptions(way="exchange", slices=6))
    pq.write_table(tables[0].slice(0, 600), tmp_path / "0" / "a.parquet", row_group_size=50)
    with pytest.raises(DataError, match="has changed since planning"), spark_errors_as_ours():
        found.collect()


def test_statistics_that_are_wrong_lose_no_event(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stays: list[Any]
) -> None:
    tables = [events(seed) for seed in (1, 2)]
    frames = [stored(spark, tmp_path / str(i), tables[i], 1.0, size=40) for i in range(2)]
    real = footers.chunk_range

    def wrong(chunk: Any, kind: Any) -> Any:
        low, _ = real(chunk, kind)
        return low, low  # as if all events were where the first one is

    monkeypatch.setattr(footers, "chunk_range", wrong)
    found = correlate(*frames, **WITHIN, options=CorrelateOptions(way="exchange", slices=200))
    assert any(staying is not None for _, staying, _ in stays)
    with pytest.raises(DataError, match="statistics of a file are wrong"), spark_errors_as_ours():
        found.collect()


@pytest.mark.parametrize("ordered", [0.0, 0.3, 0.6])
def test_large_files_mostly_in_order_are_cut_by_time(
    spark: SparkSession, tmp_path: Path, stays: list[Any], monkeypatch: pytest.MonkeyPatch,
    ordered: float,
) -> None:  # fmt: skip
    set_limits(
        monkeypatch, small_bytes=0, both_bytes=0, large_bytes=1, least_large=1 << 40,
        smallest_slice_rows=1 << 20,
    )  # fmt: skip
    monkeypatch.setattr(planning, "MOST_READS", 0.5)
    tables = [events(seed) for seed in (1, 2)]
    frames = [stored(spark, tmp_path / str(i), tables[i], ordered, size=8) for i in range(2)]
    asked: dict[str, Any] = {"within": (-20, 60), "confidence": 0.5, "by": "key"}
    # Spark takes files of many row groups to hold far more rows than they have.
    options = CorrelateOptions(slice_rows=700)
    with jobs(spark, "plan") as ran:
        found = correlate(*frames, **asked, options=options)
    assert not ran
    assert lists_in_order(found.toArrow()) == lists_in_order(correlate_tables(*tables, **asked))
    assert [staying is not None for _, staying, _ in stays] == [ordered > 0.4] * 2
