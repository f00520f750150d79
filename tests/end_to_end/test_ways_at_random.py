"""Joins drawn at random: every way of Spark finds what one process finds, whatever is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from coincide import CorrelateOptions, correlate, correlate_files, correlate_tables, within
from spark_plugin.tasks.slice_plan import CellPlan
from spark_plugin.ways import choosing
from spark_plugin.ways.choosing import collected_small
from tests.helpers.planning import set_limits
from tests.helpers.rows import in_order

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]
ROWS = 40


def drawn_events(random: np.random.Generator, key: str, kind: pa.DataType) -> pa.Table:
    """Few times and keys, so that much is alike: nulls, zero lengths, doubles, blanks in texts."""
    n = int(random.choice([0, 1, ROWS, ROWS]))
    low = np.sort(random.integers(-300, 300, n))
    names = np.array(["a", "A", "\u00e9", ""], object)
    return pa.table(
        {
            "id": pa.array(np.arange(n) // int(random.integers(1, 3)), pa.int64()),
            "min_time": pa.array(low, mask=random.random(n) < 0.03),
            "max_time": pa.array(low + random.choice([0, 0, 7, 40], n)),
            key: pa.array(random.integers(0, 3, n), kind, mask=random.random(n) < 0.05),
            "name": pa.array(names[random.integers(0, 4, n)], pa.string()),
            "size": pa.array(random.integers(0, 4, n))
            .cast(pa.decimal128(21, 0))
            .cast(pa.decimal128(9, 2)),
            "x": pa.array(random.normal(size=n).round(1), mask=random.random(n) < 0.1),
        }
    )


def one_stream(events: pa.Table) -> pa.Table:
    """No two events end at once: which of such is left is the rows' order, which a DataFrame has not."""
    first = np.unique(events["max_time"].to_numpy(), return_index=True)[1]
    return events.take(np.sort(first))


def drawn_words(random: np.random.Generator, right_key: str, is_one: bool) -> dict[str, Any]:
    """The question of a join of such events."""
    lo, width = int(random.integers(-60, 40)), int(random.integers(1, 90))
    closed = str(random.choice(["both", "both", "left", "right"]))
    words: dict[str, Any] = {
        "within": within(lo, lo + width, closed=closed),
        "confidence": float(random.choice([0.1, 0.5, 0.9, 1.0])),
        "probability": bool(random.random() < 0.3),
        "left_columns": ["id", "x", "name"],
        "right_columns": "*" if random.random() < 0.3 else ["id", "x", "name"],
    }
    keys: list[Any] = [[], ["k"] if is_one else [("k", right_key)], ["name"]]
    words["by"] = keys[int(random.integers(0, 3))]
    if words["by"] == ["name"]:
        words["left_columns"] = ["id", "x"]
        words["right_columns"] = ["id", "x"]
    if random.random() < 0.4:
        words["where"] = str(
            random.choice(["left_x <= right_x", "left_id <> right_id OR left_x IS NULL"])
        )
    shape = int(random.integers(0, 8))
    if shape == 0 and not is_one:
        words["matching"] = str(random.choice(["mutual", "unambiguous"]))
    elif shape in (1, 2):
        words_and_columns = ["probability", "nearest", "first", "last", "x", "-x", "+size", "-id"]
        prefer = str(random.choice(words_and_columns))
        words |= {"emit": "best", "prefer": prefer, "k": int(random.integers(1, 4))}
        if shape == 2 and not is_one:
            words["how"] = "right"
    elif shape == 3:
        words |= {"emit": "counts", "how": "left", "probability": False}
    elif shape == 4:
        words |= {"how": str(random.choice(["semi", "anti"])), "probability": False}
    elif shape >= 6 and not is_one:
        words["how"] = str(random.choice(["right", "full"]))
    if "emit" not in words and "how" not in words and random.random() < 0.3:
        words["how"] = "left"
    return words


def more_than_a_read(frame: DataFrame) -> DataFrame:
    return frame.select(*(F.coalesce(F.col(name)).alias(name) for name in frame.columns))


@pytest.mark.parametrize("seed", range(24))
def test_every_way(
    spark: SparkSession, small_slices: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    seed: int,
) -> None:  # fmt: skip
    random = np.random.default_rng(31_000 + seed)
    is_one, right_key = bool(random.random() < 0.25), str(random.choice(["k", "other"]))
    kinds = [pa.int32(), pa.int64()]
    left = drawn_events(random, "k", kinds[int(random.integers(0, 2))])
    left = one_stream(left) if is_one else left
    right = None if is_one else drawn_events(random, right_key, kinds[int(random.integers(0, 2))])
    words = drawn_words(random, right_key, is_one)
    expected = correlate_tables(left, right, **words)
    paths, reads, renamed = [], [], []
    for i, table in enumerate([left] if right is None else [left, right]):
        paths.append(str(tmp_path / f"{i}.parquet"))
        pq.write_table(table, paths[-1], row_group_size=11)
        reads.append(spark.read.parquet(paths[-1]))
        names = table.column_names  # each column is called as another one is in the files
        stored = str(tmp_path / f"{i} renamed.parquet")
        pq.write_table(table.rename_columns([*names[1:], names[0]]), stored, row_group_size=11)
        renamed.append(spark.read.parquet(stored).toDF(*names))
    frames = [more_than_a_read(each) for each in reads]
    direct = [*paths, None] if is_one else paths
    ways: dict[str, Any] = {
        "plain reads": lambda: correlate(*reads, **words),
        "renamed reads": lambda: correlate(*renamed, **words),
        "files": lambda: correlate_files(spark, direct[0], direct[1], **words),
    }
    of_two = () if is_one else ("broadcast-left", "broadcast-right")
    for way in ("broadcast-both", "exchange", *of_two):
        options = CorrelateOptions(way=way, slices=3 if way == "exchange" else None)  # type: ignore[arg-type]
        ways[way] = lambda options=options: correlate(*frames, options=options, **words)
    small, plans = str(random.choice(["left", "right"])), []
    if not is_one:

        def planned(*asked: Any) -> Any:
            plans.append(collected_small(*asked))
            return plans[-1]

        set_limits(monkeypatch, both_bytes=-1, least_large=0)
        monkeypatch.setattr(choosing, "estimated_bytes", lambda side: 1 + 9 * (side.side != small))
        monkeypatch.setattr(choosing, "collected_small", planned)
        ways["no planning job"] = lambda: correlate(*frames, **words)
    slices, cells = int(random.integers(1, 6)), []
    slice_rows = int(random.choice([4, 1_000_000]))

    def in_cells() -> DataFrame:
        """Both sides pass for large, and slices for smaller than they are."""
        with monkeypatch.context() as patched:
            set_limits(patched, small_bytes=-1, both_bytes=-1, large_bytes=0, far_larger=10**9)
            patched.setattr(choosing, "slices_of", lambda *_: slices)
            patched.setattr(choosing, "CellPlan", lambda *a, **k: recorded(CellPlan(*a, **k)))
            return correlate(*frames, options=CorrelateOptions(slice_rows=slice_rows), **words)

    def recorded(plan: CellPlan) -> CellPlan:
        cells.append(plan)
        return plan

    ways["in cells"] = in_cells
    for name, join in ways.items():
        found = join().toArrow()
        assert found.column_names == expected.column_names, (name, words)
        assert in_order(found) == in_order(expected), (name, words)
    if not is_one:
        # Whose pairs would be shuffled.
        how, is_pairs = words.get("how"), "emit" not in words
        is_looked_at = small == "left" and how in ("left", "full") and is_pairs
        assert is_looked_at or any(plans), words
        joins = 1 + (words.get("how") in ("right", "full") and is_pairs)
        assert len(cells) == joins * (words["confidence"] >= 0.5), words
