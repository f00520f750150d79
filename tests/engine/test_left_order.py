"""With ``how="left"`` rows come in the order of left, whatever the output columns are."""

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
from coincide.engine.join import derived_joins
from tests.helpers.joins import local_files_join
from tests.helpers.rows import in_order, lists_in_order

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
PLAIN: dict[str, Any] = {"probability": False, "prefer": "probability", "k": 1, "emit": "counts"}


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
            kept = in_order(found.filter(has_match))
            assert kept == in_order(inner)
            assert 0 < inner.num_rows < found.num_rows + (name == "counts")


MOST = 40


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The pairs that are put in order at a time, which are few; an entry for each time."""
    found: list[int] = []
    targets = derived_joins._Targets
    made = targets.of.__func__  # type: ignore[attr-defined]

    def of(kind: Any, *given: Any) -> Any:
        one = made(kind, *given)
        found.append(one.positions.size)
        return one

    monkeypatch.setattr(derived_joins, "MOST_ORDERED", MOST)
    monkeypatch.setattr(targets, "of", classmethod(of))
    return found


IN_RUNS: dict[str, Any] = {name: ASKED[name] for name in ASKED if "matching" not in ASKED[name]}
NOT_IN_RUNS = ("counts", "best")
"""What takes no pair from the join."""


@pytest.mark.parametrize("name", IN_RUNS)
@pytest.mark.parametrize("by", [(), ("key",)], ids=["no key", "key"])
@pytest.mark.parametrize("streams", [1, 2])
def test_no_more_pairs_are_held_than_of_a_run_of_left_rows(
    name: str, by: tuple[str, ...], streams: int, held: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = [events(200, 1), events(150, 2)][:streams]
    given: dict[str, Any] = {"by": by, **ASKED[name]}
    few = CorrelateOptions(threads=1, batch_pairs=7)
    in_runs = correlate_tables(*tables, condition=CONDITION, how="left", options=few, **given)
    if name in NOT_IN_RUNS:
        assert held == []
        return
    most = int(
        correlate_tables(*tables, condition=CONDITION, **given | PLAIN)["matches"].to_numpy().max()
    )
    assert len(held) > 4
    assert max(held) <= MOST + most
    monkeypatch.setattr(derived_joins, "MOST_ORDERED", 1 << 30)
    held.clear()
    whole = correlate_tables(*tables, condition=CONDITION, how="left", **given)
    assert len(held) == 1
    assert in_runs["left_id"].to_pylist() == whole["left_id"].to_pylist()
    assert lists_in_order(in_runs) == lists_in_order(whole)


def test_runs_are_joined_by_several_threads(held: list[int]) -> None:
    left, right = events(2_000, 1), events(1_500, 2)
    options = CorrelateOptions(threads=4, batch_pairs=10)
    found = correlate_tables(left, right, CONDITION, how="left", by="key", options=options)
    assert len(held) > 20
    assert (np.diff(found["left_id"].to_numpy()) >= 0).all()
    inner = correlate_tables(left, right, CONDITION, by="key")
    assert lists_in_order(found.filter(pa.compute.is_valid(found["right_id"]))) == lists_in_order(
        inner
    )


def test_matched_pairs_are_not_held_twice(held: list[int]) -> None:
    for matching in ("mutual", "unambiguous"):
        correlate_tables(events(200, 1), events(150, 2), CONDITION, how="left", matching=matching)
    assert held == []


@pytest.mark.parametrize("asked", [{}, {"emit": "lists"}], ids=str)
def test_causes_are_in_their_order_in_runs(asked: dict[str, Any], held: list[int]) -> None:
    def found(**more: Any) -> pa.Table:
        return causality_tables(
            events(80, 1), events(60, 2), CausalityCondition(Temporal(0, 90)), by="key",
            cause_time="min_time", effect_time="min_time", **asked, **more,
        )  # fmt: skip

    options = CorrelateOptions(threads=1, batch_pairs=7)
    in_runs = found(how="left", options=options)
    assert len(held) > 4
    assert (np.diff(in_runs["cause_id"].to_numpy()) >= 0).all()
    has_match = pa.compute.is_in(in_runs["cause_id"], found()["cause_id"].combine_chunks())
    assert lists_in_order(in_runs.filter(has_match)) == lists_in_order(found())


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
