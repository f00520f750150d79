"""With ``how="left"`` rows come in the order of left, whatever is handed out of an event."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coincide import (
    CausalityCondition,
    CorrelateOptions,
    Temporal,
    TimingCondition,
    causality_tables,
    correlate_tables,
    within,
)
from tests.helpers.joins import local_files_join

CONDITION = TimingCondition(within(-3, 12), 0.5)
ASKED: dict[str, dict[str, Any]] = {
    "pairs": {"probability": True},
    "ids alone": {},
    "counts": {"emit": "counts"},
    "lists": {"emit": "lists", "probability": True},
    "best": {"emit": "best"},
    "the three nearest": {"emit": "best", "prefer": "nearest", "k": 3},
    "mutual": {"matching": "mutual", "probability": True},
    "unambiguous": {"matching": "unambiguous"},
    "optimal": {"matching": "optimal", "prefer": "nearest"},
    "where": {"where": "left_id <> right_id"},
}


def events(n: int, seed: int, *, is_sorted: bool = False) -> pa.Table:
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 12 * n, n)
    low = np.sort(low) if is_sorted else low
    high = low + rng.choice([0, 2, 5], n)
    key = pa.array(rng.choice(["a", "b", None], n, p=[0.5, 0.4, 0.1]).tolist(), pa.string())
    return pa.table({"min_time": low, "max_time": high, "id": np.arange(n), "key": key})


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("by", [(), ("key",)], ids=["no key", "key"])
def test_rows_are_in_the_order_of_left(name: str, by: tuple[str, ...]) -> None:
    for is_sorted in (True, False):
        left, right = events(200, 1, is_sorted=is_sorted), events(150, 2)
        for threads, batch_pairs in ((1, 7), (2, None)):
            options = CorrelateOptions(threads=threads, batch_pairs=batch_pairs)
            given = {"by": by, "options": options, **ASKED[name]}
            found = correlate_tables(left, right, CONDITION, how="left", **given)
            ids = found["left_id"].to_numpy()
            assert (np.diff(ids) >= 0).all()
            assert np.unique(ids).tolist() == list(range(200))
            inner = correlate_tables(left, right, CONDITION, **given)
            has_match = pa.compute.is_in(found["left_id"], inner["left_id"].combine_chunks())
            kept = sorted(map(str, found.filter(has_match).to_pylist()))
            assert kept == sorted(map(str, inner.to_pylist()))
            assert 0 < inner.num_rows < found.num_rows + (name == "counts")


@pytest.mark.parametrize("asked", [{}, {"emit": "best"}, {"emit": "lists"}], ids=str)
def test_causes_are_in_their_order(asked: dict[str, Any]) -> None:
    found = causality_tables(
        events(80, 1), events(60, 2), CausalityCondition(Temporal(0, 9)), how="left", by="key",
        cause_time="min_time", effect_time="min_time", **asked,
    )  # fmt: skip
    ids = found["cause_id"].to_numpy()
    assert (np.diff(ids) >= 0).all()
    assert np.unique(ids).size == 80


def test_files_in_order_of_time_are_in_the_order_of_left(tmp_path: Path) -> None:
    tables = events(300, 1, is_sorted=True), events(200, 2, is_sorted=True)
    for side, table in zip(("left", "right"), tables, strict=True):
        pq.write_table(table, tmp_path / f"{side}.parquet", row_group_size=20)
    paths = str(tmp_path / "left.parquet"), str(tmp_path / "right.parquet")
    job = local_files_join(
        *paths, CONDITION, how="left", by="key", options=CorrelateOptions(slices=4)
    )
    found = pa.Table.from_batches(job.batches(), job.schema)
    assert len(job.plan.slices) == 4
    expected = correlate_tables(*tables, CONDITION, how="left", by="key")
    assert found["left_id"].to_pylist() == expected["left_id"].to_pylist()
