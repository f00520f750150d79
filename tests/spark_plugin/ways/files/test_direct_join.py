"""The direct way in one process: whatever the files look like, the join of their rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coincide import CorrelateOptions, TimingCondition, within
from coincide.engine.files.planning import LocalFilesJoin
from coincide.model.errors import DataError
from tests.helpers.comparison import SHAPES, assert_answer, condition_of, ticks_of
from tests.helpers.direct_layouts import as_stored, write_layout
from tests.helpers.joins import local_files_join, table_join
from tests.helpers.strategies import random_cases

pytestmark = pytest.mark.usefixtures("any_order")

SLICES = (None, 1, 2, 3, 7, 50)


def joined(
    *sides: Any, slices: int | None = None, **arguments: Any
) -> tuple[pa.Table, LocalFilesJoin]:
    options = CorrelateOptions(slices=slices, **arguments.pop("options", {}))
    job = local_files_join(*sides, options=options, **arguments)
    return pa.Table.from_batches(job.batches(), job.schema), job


@pytest.mark.parametrize("block", range(2))
def test_random_layouts_against_the_reference(block: int, tmp_path: Path) -> None:
    """A case of each shape with each number of slices, in 2 blocks."""
    random = np.random.default_rng(600 + block)
    for i, case in enumerate(random_cases(3000 + block, 57, max_size=16), 57 * block):
        sides = [
            write_layout(tmp_path / f"{i}-{side}", ticks_of(rows, case.by), random)
            for side, rows in (("left", case.left), ("right", case.right))
        ]
        how, emit, probability = SHAPES[i % len(SHAPES)]
        found, job = joined(
            *sides, condition_of(case), by=case.by, how=how, emit=emit, probability=probability,
            slices=SLICES[i % len(SLICES)],
        )  # fmt: skip
        assert_answer(found.to_pylist(), as_stored(case, *sides), how, emit, probability)
        rows = job.summary.left.rows, job.summary.right.rows
        assert rows == (len(case.left), len(case.right))


def stream(n: int, seed: int, span: int = 100_000) -> pa.Table:
    random = np.random.default_rng(seed)
    begin = np.sort(random.integers(0, span, n))
    return pa.table(
        {"id": np.arange(n), "min_time": begin, "max_time": begin + random.integers(0, 200, n)}
    )


@pytest.mark.parametrize("order", ["time", "shuffled"])
@pytest.mark.parametrize("slices", [1, 4, 64])
def test_counts_and_counters_of_all_rows(tmp_path: Path, order: str, slices: int) -> None:
    random = np.random.default_rng(slices)
    tables = [_spoilt(stream(5000, seed), random) for seed in (1, 2)]
    sides = [
        write_layout(tmp_path / str(i), table, random, order=order)
        for i, table in enumerate(tables)
    ]
    condition = TimingCondition(within(-300, 100), 0.7)
    found, job = joined(*sides, condition, slices=slices, options={"invalid": "drop"})
    whole = table_join(*tables, condition, options=CorrelateOptions(invalid="drop"))
    expected = pa.Table.from_batches(whole.batches(), whole.schema)
    by = [(name, "ascending") for name in expected.column_names]
    assert found.sort_by(by).equals(expected.sort_by(by))
    assert job.summary.left == whole.summary.left
    assert job.summary.right == whole.summary.right
    assert job.summary.counters.pairs == whole.summary.counters.pairs
    assert 0 < job.summary.right.dropped < 1000
    assert job.summary.right.unmatchable > 0


def _spoilt(table: pa.Table, random: np.random.Generator) -> pa.Table:
    """Some times null, some intervals the wrong way round."""
    low, high = (table[name].to_numpy() for name in ("min_time", "max_time"))
    wrong = random.random(low.size) < 0.05
    low = np.where(wrong, high + 1, low)
    null = random.random(low.size) < 0.05
    return pa.table(
        {"id": table["id"], "min_time": pa.array(low, mask=null), "max_time": table["max_time"]}
    )


def test_invalid_rows_far_from_all_matches_are_refused(tmp_path: Path) -> None:
    left, right = stream(50, 1, 1000), stream(50, 2, 1000)
    bad = pa.table({"id": [7], "min_time": [10**9], "max_time": [10**9 - 1]})
    pq.write_table(left, tmp_path / "left.parquet")
    pq.write_table(pa.concat_tables([right, bad]), tmp_path / "right.parquet", row_group_size=50)
    with pytest.raises(DataError, match="right: min above max"):
        joined(str(tmp_path / "left.parquet"), str(tmp_path / "right.parquet"),
               TimingCondition(within(0, 10), 0.5))  # fmt: skip


@pytest.mark.parametrize("empty", [0, 1])
def test_an_empty_side(tmp_path: Path, empty: int) -> None:
    tables = [stream(40, 1), stream(40, 2)]
    tables[empty] = tables[empty].slice(0, 0)
    for name, table in zip(("left", "right"), tables, strict=True):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    found, job = joined(
        tmp_path / "left.parquet", tmp_path / "right.parquet",
        TimingCondition(within(0, 10), 0.5), how="left", emit="counts",
    )  # fmt: skip
    assert found["matches"].to_pylist() == [0] * tables[0].num_rows
    assert (job.summary.left.rows, job.summary.right.rows) == tuple(t.num_rows for t in tables)


def test_ordered_files_are_read_about_once(tmp_path: Path) -> None:
    for name, seed in (("left", 1), ("right", 2)):
        pq.write_table(
            stream(100_000, seed, 10**7), tmp_path / f"{name}.parquet", row_group_size=1000
        )
    _, job = joined(
        tmp_path / "left.parquet", tmp_path / "right.parquet",
        TimingCondition(within(-500, 500), 0.8), slices=16, emit="counts",
    )  # fmt: skip
    assert len(job.plan.slices) == 16
    assert 1.0 <= job.plan.reads <= 1.2


def test_a_file_that_changes_between_plan_and_read(tmp_path: Path) -> None:
    left, right = tmp_path / "left.parquet", tmp_path / "right.parquet"
    for path in (left, right):
        pq.write_table(stream(100, 1), path)
    condition = TimingCondition(within(0, 10), 0.5)
    for change, words in (
        (lambda: pq.write_table(stream(90, 1), right), "has changed since"),
        (lambda: right.write_bytes(b"PAR1 no more"), "cannot read .*right.parquet as Parquet"),
        (right.unlink, "right.parquet is gone"),
    ):
        pq.write_table(stream(100, 1), right)
        job = local_files_join(left, right, condition)
        change()
        with pytest.raises(DataError, match=f"right: .*{words}|right: {words}"):
            list(job.batches())


def large_keys(tmp_path: Path) -> tuple[Path, Path, pa.Table]:
    """Files whose text keys are stored in two ways, one of them encoded, and the join of their rows."""
    kinds = pa.string(), pa.large_string()
    texts = pa.array(np.array(["a", "b", None], object)[np.arange(3000) % 3], pa.string())
    paths, tables = [], []
    for seed, kind in enumerate(kinds):
        table = stream(3000, seed).append_column("key", texts)
        tables.append(table)
        key = texts.dictionary_encode() if kind == pa.string() else texts.cast(kind)
        paths.append(tmp_path / f"{seed}.parquet")
        pq.write_table(table.set_column(3, "key", key), paths[-1], row_group_size=300)
    job = table_join(*tables, TimingCondition(within(-300, 100), 0.7), by="key")
    return paths[0], paths[1], pa.Table.from_batches(job.batches(), job.schema)


@pytest.mark.parametrize("turned", [False, True])
def test_text_keys_may_be_stored_in_two_ways(tmp_path: Path, turned: bool) -> None:
    left, right, want = large_keys(tmp_path)
    condition = TimingCondition(within(-300, 100), 0.7)
    if turned:
        left, right, condition = right, left, TimingCondition(within(-100, 300), 0.7)
    found, _ = joined(left, right, condition=condition, by="key", slices=4)
    assert found.num_rows == want.num_rows > 100
    assert set(found["key"].to_pylist()) == {"a", "b"}
