"""Sequences and coincidences of files in time order, whose tasks read the row groups that they need."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from coincide import (
    CorrelateOptions,
    SequenceReport,
    coincidence_tables,
    coincidences,
    sequence_tables,
    sequences,
    spark_errors_as_ours,
)
from coincide.engine.files.planning import NotDirect
from tests.helpers.sequence_spark import (
    asked_of_coincidences,
    asked_of_sequences,
    certain_rows,
    rows_of,
)
from tests.helpers.tuple_conditions import drawn_condition, with_values

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")]

FILES = CorrelateOptions(way="files")


def stored(
    spark: SparkSession, folder: Path, tables: Sequence[pa.Table], rng: random.Random
) -> list[DataFrame]:
    """Tables in two files of some row groups each, mostly in time order; one at several places once."""
    made: dict[int, DataFrame] = {}
    for table in tables:
        if id(table) not in made:
            path = folder / str(len(made))
            path.mkdir(parents=True)
            time = "stamp" if "stamp" in table.column_names else "min_time"
            rows = table.sort_by(time) if rng.random() < 0.8 else table
            end = rng.randint(0, rows.num_rows)
            for name, part in (("a", rows.slice(0, end)), ("b", rows.slice(end))):
                size = rng.choice([1, 3, 8])
                pq.write_table(part, path / f"{name}.parquet", row_group_size=size)
            made[id(table)] = spark.read.parquet(str(path))
    return [made[id(table)] for table in tables]


@pytest.mark.parametrize("seed", range(24))
def test_they_are_those_of_tables(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    is_sequence = seed % 4 > 0
    of_frames: Any = sequences if is_sequence else coincidences
    of_tables: Any = sequence_tables if is_sequence else coincidence_tables
    for attempt in range(20):
        case, asked = (asked_of_sequences if is_sequence else asked_of_coincidences)(rng)
        if not is_sequence:
            asked.words["at_least"] = len(case.names)
        if rng.random() < 0.3:
            case = with_values(case, rng)
            asked.words["where"] = drawn_condition(rng, case.names).sql
        options = replace(asked.options, way="files", slice_rows=1 << 20)
        asked = replace(asked, options=options)
        frames = stored(spark, tmp_path / str(attempt), case.tables, rng)
        report = SequenceReport()
        try:
            frame = of_frames(frames, **asked.on_spark, report=report)
        except NotDirect as closed:  # each slice would read all of few rows in no order
            if "not in order of time" in str(closed):
                continue
            raise
        break
    found, expected = frame.toArrow(), of_tables(case.tables, **asked.words)
    assert found.schema == expected.schema
    assert certain_rows(case, asked, found) == certain_rows(case, asked, expected)
    told, own = report.summary(), SequenceReport()
    of_tables(case.tables, **asked.words, report=own)
    rows = [
        {name: (each.rows, each.unmatchable) for name, each in summary.streams.items()}
        for summary in (told, own.summary())
    ]
    assert rows[0] == rows[1]
    assert told.way == "files"


def times(seed: int, size: int = 3_000) -> pa.Table:
    """Events in time order, of some keys, some without a time or a key."""
    rng = np.random.default_rng(seed)
    low = np.sort(rng.integers(0, 40_000, size))
    return pa.table({
        "id": np.arange(size) + 10_000 * seed,
        "min_time": pa.array(low, pa.int64(), mask=rng.random(size) < 0.02),
        "max_time": low + rng.integers(0, 9, size),
        "key": pa.array(rng.integers(0, 4, size), pa.int32(), mask=rng.random(size) < 0.02),
        "text": pa.array(np.array(["", "a", "é"])[rng.integers(0, 3, size)]),
    })  # fmt: skip


def written(spark: SparkSession, path: Path, table: pa.Table) -> DataFrame:
    """A table as a file of small row groups."""
    pq.write_table(table, path, row_group_size=200)
    return spark.read.parquet(str(path))


def three(spark: SparkSession, folder: Path) -> tuple[list[pa.Table], list[DataFrame]]:
    """Three streams, of keys of several widths."""
    tables = [times(seed) for seed in (1, 2, 3)]
    tables[1] = tables[1].set_column(3, "key", tables[1]["key"].cast(pa.int64()))
    frames = [written(spark, folder / f"{i}.parquet", each) for i, each in enumerate(tables)]
    return tables, frames


ASKED: dict[str, Any] = {
    "windows": [(0, 20), (-10, 20)], "confidence": 0.4, "by": "key", "columns": ["id", "text"],
}  # fmt: skip


@pytest.mark.parametrize("places", [(0, 1, 2), (0, 1, 0), (0, 0, 0), (0, 1, 1)])
@pytest.mark.parametrize("how", ["inner", "anti"])
def test_files_are_read_without_a_job(
    spark: SparkSession, tmp_path: Path, places: tuple[int, ...], how: str
) -> None:
    tables, frames = three(spark, tmp_path)
    report, own = SequenceReport(), SequenceReport()
    asked = {**ASKED, "how": how}
    options = CorrelateOptions(slices=7)
    found = sequences([frames[k] for k in places], **asked, options=options, report=report)
    assert "MapInArrow" in found._jdf.queryExecution().optimizedPlan().toString()
    assert "parquet" not in found._jdf.queryExecution().optimizedPlan().toString()
    expected = sequence_tables([tables[k] for k in places], **asked, report=own)
    assert rows_of(found.toArrow()) == rows_of(expected)
    assert expected.num_rows > 100
    told = report.summary()
    assert told.way == "files"
    assert told.why.startswith("7 slices of row groups, each row read 1.")
    rows, counted = (
        {name: (each.rows, each.unmatchable) for name, each in summary.streams.items()}
        for summary in (told, own.summary())
    )
    assert rows == counted


def test_rows_in_no_order_take_an_exchange(spark: SparkSession, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    tables = [times(seed).take(pa.array(rng.permutation(3_000))) for seed in (1, 2)]
    frames = [written(spark, tmp_path / f"{i}.parquet", each) for i, each in enumerate(tables)]
    asked: dict[str, Any] = {"windows": [(0, 20)], "confidence": 0.6}
    report = SequenceReport()
    options = CorrelateOptions(slices=9)
    found = sequences(frames, **asked, options=options, report=report).toArrow()
    assert rows_of(found) == rows_of(sequence_tables(tables, **asked))
    assert report.summary().way == "exchange"
    with pytest.raises(NotDirect, match=r"not in order of time.*Order them once"):
        sequences(frames, **asked, options=replace(options, way="files"))
    # If they are asked for, up to four reads of a row are.
    for way, taken in (("auto", "exchange"), ("files", "files")):
        report = SequenceReport()
        options = CorrelateOptions(slices=4, way=way)
        found = sequences(frames, **asked, options=options, report=report).toArrow()
        assert rows_of(found) == rows_of(sequence_tables(tables, **asked))
        assert report.summary().way == taken


def test_what_tasks_cannot_read_is_refused_if_asked_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    _, frames = three(spark, tmp_path)
    filtered = frames[1].where("id > 0")
    with pytest.raises(NotDirect, match=r"tasks cannot read b themselves.*another way"):
        sequences([frames[0], filtered], [(0, 20)], 0.6, by="key", options=FILES)
    with pytest.raises(NotDirect, match=r"tasks cannot read b themselves"):
        sequences([frames[0], filtered], [(0, 20)], 0.6, options=FILES)
    with pytest.raises(NotDirect, match=r"at_least=2 also tells of sets.*another way"):
        coincidences(frames, 20, 0.6, at_least=2, options=FILES)
    with pytest.raises(NotDirect, match=r"Remove invalid"):
        sequences(frames[:2], [(0, 20)], 0.6, options=replace(FILES, invalid="drop"))


def test_an_invalid_row_is_refused_once_it_is_read(spark: SparkSession, tmp_path: Path) -> None:
    table = times(1)
    wrong = pa.table({"id": [5], "min_time": [2_000_000], "max_time": [1_000_000]})
    lone = pa.concat_tables([table.select(["id", "min_time", "max_time"]), wrong])
    frames = [
        written(spark, tmp_path / "a.parquet", table), written(spark, tmp_path / "b.parquet", lone),
    ]  # fmt: skip
    # No first event is near it.
    found = sequences(frames, [(0, 20)], 0.6, options=FILES)
    with pytest.raises(Exception, match="min_time"), spark_errors_as_ours():
        found.collect()


def test_files_that_change_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    _, frames = three(spark, tmp_path)
    found = sequences(frames[:2], [(0, 20)], 0.6, options=FILES)
    pq.write_table(times(9), tmp_path / "1.parquet", row_group_size=100)
    with pytest.raises(Exception, match="chang"), spark_errors_as_ours():
        found.collect()
