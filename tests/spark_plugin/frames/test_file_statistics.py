"""What threads of the driver see in files is what a query sees, and no job runs for it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
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
    DroppedRowsWarning,
    JoinReport,
    Spatial,
    Temporal,
    causality,
    causality_tables,
    correlate,
    correlate_tables,
)
from spark_plugin.frames import statistics
from spark_plugin.frames.statistics import SideStatistics, measure
from tests.helpers.spark_cases import jobs
from tests.spark_plugin.frames.test_statistics import events

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")]

KINDS: dict[str, tuple[pa.DataType, str | None]] = {
    "numbers": (pa.int64(), None),
    "narrow": (pa.int32(), None),
    "milliseconds": (pa.timestamp("ms"), None),
    "instants": (pa.timestamp("us", "UTC"), None),
    "floats": (pa.float64(), "s"),
}


def table(seed: int, rows: int, kind: pa.DataType, invalid: float = 0.0) -> pa.Table:
    """Events in no order, some without a time or a key, some that end before they begin."""
    rng = np.random.default_rng(seed)
    low = rng.integers(-4_000, 50_000, rows)
    length = rng.choice([0, 3, 40, 900], rows, p=[0.4, 0.4, 0.19, 0.01])
    length = np.where(rng.random(rows) < invalid, -5, length)
    lacks = rng.random((3, rows)) < 0.03
    if pa.types.is_floating(kind):
        low, length = low + 0.25, length + 0.0000004
    return pa.table({
        "id": np.arange(rows) + 100_000 * seed,
        "min_time": pa.array(low, mask=lacks[0]).cast(kind),
        "max_time": pa.array(low + length, mask=lacks[1]).cast(kind),
        "key": pa.array(rng.integers(0, 9, rows).astype(np.int16), mask=lacks[2]),
        "text": np.array(["a", "é", "b" * 40])[rng.integers(0, 3, rows)],
        "x": rng.random(rows) * 9, "y": rng.random(rows) * 9,
    })  # fmt: skip


def stored(spark: SparkSession, folder: Path, rows: pa.Table, size: int = 900) -> DataFrame:
    """A table in three files of several row groups."""
    folder.mkdir(parents=True)
    for i in range(3):
        part = rows.slice(
            i * rows.num_rows // 3, (i + 1) * rows.num_rows // 3 - i * rows.num_rows // 3
        )
        pq.write_table(part, folder / f"{i}.parquet", row_group_size=size)
    return spark.read.parquet(str(folder))


def by_a_query(
    monkeypatch: pytest.MonkeyPatch, *asked: Any
) -> tuple[SideStatistics, SideStatistics]:
    with monkeypatch.context() as patched:
        patched.setattr(statistics, "_MOST_READ", -1)
        return measure(*asked)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("by", [[], ["key"], ["key", "text"]])
@pytest.mark.parametrize("rows", [0, 1, 4_000, 30_000])
def test_files_are_seen_as_by_a_query(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, by: list[str],
    rows: int,
) -> None:  # fmt: skip
    kind, unit = KINDS[name]
    left = events(
        "left", stored(spark, tmp_path / "left", table(1, rows, kind, 0.02)), by, unit=unit
    )
    right = events("right", stored(spark, tmp_path / "right", table(2, 200, kind)), by, unit=unit)
    left = replace(left, longest_match=500, payload=["id", "text"])
    with jobs(spark, "files") as ran:
        found = measure(left, right)
    assert not ran
    wanted = by_a_query(monkeypatch, left, right)
    for own, other in zip(found, wanted, strict=True):
        assert own.counts == replace(other.counts, rounded=own.counts.rounded)
        assert own.counts.rounded == pytest.approx(other.counts.rounded, abs=1e-6)
        for fact in ("shortest", "longest", "first", "last", "matchable"):
            assert getattr(own, fact) == getattr(other, fact), fact
        assert own.weights.sum() == own.matchable
        assert own.longest_of_group.max(initial=0) == own.longest
        assert own.row_bytes == pytest.approx(other.row_bytes, abs=12)
        assert np.all(np.diff(own.midpoints) >= 0)
        if own.matchable <= 200:  # each is in both samples
            assert np.array_equal(own.midpoints, other.midpoints)
    if rows > 1_000:  # the same keys have the same hashes
        assert set(found[1].hashes) <= set(found[0].hashes)
        assert len(set(found[0].hashes)) == (1, 9, 27)[len(by)]


def test_many_rows_are_sampled_evenly_by_key_and_time(spark: SparkSession, tmp_path: Path) -> None:
    rows = table(3, 200_000, pa.int64())
    # Keys that follow each other in turns would be one key at a stride that is a power of two.
    keys = pa.array(np.arange(200_000) % 64)
    rows = rows.set_column(rows.column_names.index("key"), "key", keys)
    source = stored(spark, tmp_path / "left", rows, 50_000)
    found, _ = measure(events("left", source, ["key"]), events("right", source, ["key"]))
    assert found.midpoints.size < 20_000
    assert np.unique(found.hashes).size == 64
    inside = (found.midpoints >= 0) & (found.midpoints < 50_000)
    assert found.weights[inside].sum() == pytest.approx(200_000 * 25 / 54, rel=0.15)


def rows_of(found: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in found.to_pylist())


ASKED: dict[str, dict[str, Any]] = {
    "pairs": {},
    "by a key": {"by": "key", "probability": True},
    "counts": {"emit": "counts", "by": ["text", "key"]},
    "left": {"how": "left"},
    "mutual": {"matching": "mutual"},
    "optimal": {"matching": "optimal", "confidence": 0.99, "by": "key"},
}


@pytest.mark.parametrize("more", [{}, {"slices": 3}, {"slice_rows": 400}])
@pytest.mark.parametrize("name", ASKED)
def test_unknown_lengths_need_no_job(
    spark: SparkSession, tmp_path: Path, name: str, more: dict[str, int]
) -> None:
    tables = [table(seed, 1_500, pa.int64()) for seed in (1, 2)]
    frames = [stored(spark, tmp_path / str(i), each) for i, each in enumerate(tables)]
    asked: dict[str, Any] = {"within": (-20, 30), "confidence": 0.3, **ASKED[name]}
    with jobs(spark, "plan") as ran:
        found = correlate(*frames, **asked, options=CorrelateOptions(way="exchange", **more))
    assert not ran
    assert rows_of(found.toArrow()) == rows_of(correlate_tables(*tables, **asked))


def test_one_stream_and_causes_need_no_job(spark: SparkSession, tmp_path: Path) -> None:
    tables = [table(seed, 1_500, pa.int64()) for seed in (1, 2)]
    frames = [stored(spark, tmp_path / str(i), each) for i, each in enumerate(tables)]
    asked: dict[str, Any] = {"within": (-5, 9), "confidence": 0.3, "by": "key", "emit": "counts"}
    condition = CausalityCondition([Temporal(0, 200), Spatial(2)])
    places: dict[str, Any] = {"cause_time": "max_time", "cause_place": ("x", "y"), "by": "key"}
    exchange = CorrelateOptions(way="exchange")
    with jobs(spark, "plan") as ran:
        one = correlate(frames[0], **asked, options=exchange)
        causes = causality(*frames, condition, **places, options=exchange)
    assert not ran
    assert rows_of(one.toArrow()) == rows_of(correlate_tables(tables[0], **asked))
    assert rows_of(causes.toArrow()) == rows_of(causality_tables(*tables, condition, **places))


def test_what_rows_are_is_told_and_refused_at_once(spark: SparkSession, tmp_path: Path) -> None:
    tables = [table(1, 1_500, pa.int64(), 0.01), table(2, 1_500, pa.int64())]
    frames = [stored(spark, tmp_path / str(i), each) for i, each in enumerate(tables)]
    asked: dict[str, Any] = {"within": (-20, 30), "confidence": 0.3}
    with pytest.raises(DataError, match="min_time"):
        correlate(*frames, **asked, options=CorrelateOptions(way="exchange"))
    reports = JoinReport(), JoinReport()
    drop = CorrelateOptions(way="exchange", invalid="drop")
    with pytest.warns(DroppedRowsWarning):
        found = correlate(*frames, **asked, options=drop, report=reports[0])
    assert reports[0].left is not None
    plain = CorrelateOptions(invalid="drop")
    expected = correlate_tables(*tables, **asked, options=plain, report=reports[1])
    assert rows_of(found.toArrow()) == rows_of(expected)
    assert (reports[0].left, reports[0].right) == (reports[1].left, reports[1].right)


def test_a_file_that_changes_after_it_was_looked_at_is_an_error(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = table(1, 1_500, pa.int64())
    frames = [stored(spark, tmp_path / side, rows) for side in ("left", "right")]
    found = correlate(
        *frames, within=(-20, 30), confidence=0.3, options=CorrelateOptions(way="exchange")
    )
    # Longer events than those that were planned with.
    longer = rows.set_column(2, "max_time", pa.array(np.full(1_500, 10**6)))
    pq.write_table(longer.slice(0, 500), tmp_path / "left" / "0.parquet", row_group_size=900)
    with pytest.raises(Exception, match="has changed since planning"):
        found.collect()
