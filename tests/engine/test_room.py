"""Pairs are counted before any is made, and those that have no room are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coincide import (
    CausalityCondition,
    ConditionError,
    CorrelateOptions,
    JoinReport,
    MemoryBudgetError,
    Temporal,
    TimingCondition,
    causality_tables,
    clock_error_tables,
    clusters,
    correlate_tables,
    coverage,
    difference,
    explore_tables,
    merged,
    overlapping,
    spans,
    stream_tables,
    within,
)
from coincide.engine import room
from coincide.engine.files import planning
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.join import TableJoin
from coincide.engine.room import bytes_words, free_memory
from cpu_fallback.causality.join import CausalityJoin
from cpu_fallback.join.event_join import EventJoin
from tests.helpers.joins import local_files_join


def test_memory_that_is_free() -> None:
    assert 1 << 20 < free_memory() < 1 << 50


@pytest.mark.parametrize(("limit", "free"), [("5000000", 4_300_000), ("400000", 0)])
def test_a_control_group_bounds_memory(
    limit: str, free: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "CONTROL_GROUP", tmp_path)
    unbounded = free_memory()
    stat = "anon 500000\ninactive_file 300000\n"
    for name, text in (("max", limit), ("current", "1000000\n"), ("stat", stat)):
        (tmp_path / f"memory.{name}").write_text(text)
    assert free_memory() == free
    (tmp_path / "memory.max").write_text("max\n")
    assert free_memory() > unbounded / 2


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 bytes"), (999, "999 bytes"), (3_200_000, "3.2 MB"), (4.2e12, "4,200.0 GB")],
)
def test_bytes_in_words(size: float, words: str) -> None:
    assert bytes_words(size) == words


def table(n: int, text: str = "") -> pa.Table:
    """Events at 0 ... n - 1, each of which lasts half a tick."""
    t = np.arange(n)
    texts = [text * (i % 7) for i in range(n)]
    return pa.table({"id": t, "t": t, "end": t + 1, "text": pa.array(texts, pa.string())})


LEFT, RIGHT = table(20), table(30)
PAIRS = 600
TIMED: dict[str, Any] = {"within": (-100, 100), "left_time": "t", "right_time": "t"}
OF_SPANS: dict[str, Any] = {
    "condition": overlapping(gap=100), "left_time": spans("t", "end"),
    "right_time": spans("t", "end"),
}  # fmt: skip
FEW = CorrelateOptions(max_pairs=PAIRS - 1)
ENOUGH = CorrelateOptions(max_pairs=PAIRS)
JOINS: dict[str, Any] = {
    "times": lambda **more: correlate_tables(LEFT, RIGHT, **TIMED, **more),
    "spans": lambda **more: correlate_tables(LEFT, RIGHT, **OF_SPANS, **more),
    "where": lambda **more: correlate_tables(
        LEFT, RIGHT, **TIMED, where="right_id >= 0", backend="cpu", **more
    ),
    "causality": lambda **more: causality_tables(
        LEFT, RIGHT, CausalityCondition(Temporal(-100, 100)), cause_time="t", **more
    ),
}


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hardly any memory is free, and every byte counts."""
    monkeypatch.setattr(room, "free_memory", lambda: 4_900)
    monkeypatch.setattr(room, "_SMALL", 0)


@pytest.mark.parametrize("name", JOINS)
@pytest.mark.parametrize("asked", [{}, {"emit": "lists"}, {"how": "left"}], ids=str)
def test_pairs_that_memory_cannot_hold_are_refused(
    name: str, asked: dict[str, Any], little: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name != "where":  # which looks at pairs to count them
        for kind in (EventJoin, CausalityJoin):
            monkeypatch.setattr(kind, "_fill", None)  # what would make them
    words = r"the 600 pairs of this join would take about .* of memory \(found 4.9 kB\)"
    with pytest.raises(MemoryBudgetError, match=words) as told:
        JOINS[name](**asked)
    assert "or allow them by options=CorrelateOptions(max_pairs=600)." in str(told.value)


@pytest.mark.parametrize("name", JOINS)
def test_more_pairs_than_are_allowed_are_refused(name: str) -> None:
    words = r"more pairs than options=CorrelateOptions\(max_pairs=599\) allows \(found 600\)"
    for asked in ({}, {"emit": "lists"}, {"how": "left"}):
        with pytest.raises(MemoryBudgetError, match=words):
            JOINS[name](options=FEW, **asked)
    for asked in ({"emit": "counts"}, {"emit": "best"}, {"how": "semi"}, {"how": "anti"}):
        assert JOINS[name](options=FEW, **asked).num_rows in (0, 20)


@pytest.mark.parametrize("name", JOINS)
def test_pairs_that_are_allowed_need_no_free_memory(name: str, little: None) -> None:
    assert JOINS[name](options=ENOUGH).num_rows == PAIRS
    assert JOINS[name](options=ENOUGH, emit="lists").num_rows == 20


def test_nothing_is_refused_that_fits(little: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "free_memory", lambda: PAIRS * 16)
    assert JOINS["times"]().num_rows == PAIRS
    monkeypatch.setattr(room, "free_memory", lambda: PAIRS * 16 - 1)
    with pytest.raises(MemoryBudgetError, match=r"about 9\.6 kB of memory"):
        JOINS["times"]()


def test_a_month_around_each_event_is_refused_at_once() -> None:
    rng = np.random.default_rng(1)
    n, day = 300_000, 86_400 * 10**6
    times = [pa.array(rng.integers(0, 20 * day, n), pa.timestamp("us")) for _ in range(2)]
    sides = [pa.table({"id": np.arange(n), "t": each}) for each in times]
    with pytest.raises(MemoryBudgetError, match=r"the 90,000,000,000 pairs .* about 1,440\.0 GB"):
        correlate_tables(*sides, within="30d", left_time="t", right_time="t", backend="cpu")


@pytest.mark.parametrize("most", [-1, 1.5, True, "9"])
def test_what_is_no_number_of_pairs(most: Any) -> None:
    with pytest.raises(ConditionError, match="max_pairs must be an int of at least 0"):
        CorrelateOptions(max_pairs=most)


NO_PAIRS: dict[str, Any] = {
    "stream": lambda **more: stream_tables(
        within=5, confidence=0.5, left_delay=0, right_delay=0, **more
    ),
    "clusters": lambda **more: clusters(LEFT, CausalityCondition(Temporal(0, 5)), time="t", **more),
    "clocks": lambda **more: clock_error_tables(
        LEFT, RIGHT, left_time="t", right_time="t", max_offset=50, **more
    ),
    "explore": lambda **more: explore_tables(
        LEFT, RIGHT, within=5, left_time="t", right_time="t", **more
    ),
    "coverage": lambda **more: coverage(LEFT, time=spans("t", "end"), **more),
    "merged": lambda **more: merged(LEFT, time=spans("t", "end"), **more),
    "difference": lambda **more: difference(
        LEFT, RIGHT, left_time=spans("t", "end"), right_time=spans("t", "end"), **more
    ),
}


@pytest.mark.parametrize("name", NO_PAIRS)
def test_a_bound_on_pairs_is_refused_where_there_are_none(name: str) -> None:
    with pytest.raises(ConditionError, match=r"max_pairs=9\) bounds the pairs .* Remove it\."):
        NO_PAIRS[name](options=CorrelateOptions(max_pairs=9))


def test_pairs_that_a_matching_chooses_from_have_room(
    little: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {**TIMED, "matching": "optimal", "prefer": "nearest"}
    with pytest.raises(
        MemoryBudgetError, match=r"the 600 pairs to choose from .* 66\.0 kB of memory"
    ):
        correlate_tables(LEFT, RIGHT, **asked)
    monkeypatch.setattr(room, "free_memory", lambda: 66_000)
    assert correlate_tables(LEFT, RIGHT, **asked).num_rows == 20
    with pytest.raises(MemoryBudgetError, match=r"max_pairs=599\) allows \(found 600\)"):
        correlate_tables(LEFT, RIGHT, **asked, options=FEW)
    assert correlate_tables(LEFT, RIGHT, **asked, options=ENOUGH).num_rows == 20


def test_no_pairs_may_be_allowed() -> None:
    none = CorrelateOptions(max_pairs=0)
    far = {**TIMED, "within": (1000, 2000)}
    assert correlate_tables(LEFT, RIGHT, **far, options=none, how="left").num_rows == 20
    with pytest.raises(MemoryBudgetError):
        JOINS["times"](options=none)


@pytest.mark.parametrize(
    "asked",
    [
        {}, {"emit": "lists"}, {"how": "left", "within": (0, 3)}, {"probability": True},
        {"left_columns": ["id", "text"], "right_columns": "text"},
        {"left_columns": "text", "right_columns": ["id", "text"], "emit": "lists"},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_expected_is_what_comes(asked: dict[str, Any]) -> None:
    given = {"options": CorrelateOptions(batch_pairs=100), **TIMED, **asked}
    sides = table(200, "abc"), table(300, "defgh")
    asked_for = given.pop("within")
    job = TableJoin(*sides, JoinArguments(TimingCondition(within(*asked_for), 1.0), **given))
    found = pa.Table.from_batches(job.batches(), job.schema)
    expected = job.limit.expected
    assert job.summary is not None
    assert job.summary.counters is not None
    assert expected.pairs == job.summary.counters.pairs
    assert expected.rows == job.limit.rows == found.num_rows
    assert expected.size == pytest.approx(found.nbytes, rel=0.2)


def files(folder: Path, n: int) -> tuple[str, str]:
    """Two files of row groups of 10 events, in order of time."""
    for side in ("left", "right"):
        pq.write_table(table(n), folder / f"{side}.parquet", row_group_size=10)
    return str(folder / "left.parquet"), str(folder / "right.parquet")


def of_files(folder: Path, width: int, **options: Any) -> Any:
    return local_files_join(
        *files(folder, 400), TimingCondition(within(-width, width), 1.0), left_time="t",
        right_time="t", options=CorrelateOptions(slices=4, **options),
    )  # fmt: skip


def test_slices_of_many_pairs_are_all_counted_first(tmp_path: Path) -> None:
    job = of_files(tmp_path, 100)
    batches = job.batches()
    first = next(batches)
    assert job.limit.is_all
    found = pa.Table.from_batches([first, *batches], job.schema)
    assert job.limit.rows == job.limit.expected.pairs == found.num_rows == 70_300
    with pytest.raises(MemoryBudgetError, match=r"max_pairs=70299\) allows \(found 70,300\)"):
        next(of_files(tmp_path, 100, max_pairs=70_299).batches())
    allowed = of_files(tmp_path, 100, max_pairs=70_300)
    assert sum(batch.num_rows for batch in allowed.batches()) == 70_300


def test_slices_of_few_pairs_are_counted_as_they_are_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "counted_slice", None)
    job = of_files(tmp_path, 1)
    batches = job.batches()
    next(batches)
    assert job.limit.rows is None
    rows = sum(batch.num_rows for batch in batches)
    assert rows > 800
    assert job.limit.rows == job.limit.expected.pairs == 1198
    with pytest.raises(MemoryBudgetError, match=r"max_pairs=700\) allows"):
        list(of_files(tmp_path, 1, max_pairs=700).batches())


def test_a_refused_join_tells_no_report(little: None) -> None:
    report = JoinReport()
    with pytest.raises(MemoryBudgetError):
        JOINS["times"](report=report)
