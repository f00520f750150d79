"""Which matches a join returns, in one process: the reference's choice, whatever the batches."""

from __future__ import annotations

import datetime as dt
import math
import os
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide import (
    ConditionError,
    CorrelateOptions,
    DataError,
    SchemaError,
    TimingCondition,
    correlate_tables,
    histograms,
    within,
)
from coincide.engine.join.timing import JoinSpec
from cpu_fallback.reference.join import PREFERENCES, Asked, pairs, place
from tests.helpers.joins import table_join
from tests.helpers.match_cases import (
    COLUMNS,
    SECONDS,
    answer,
    check_best,
    check_mutual,
    check_optimal,
    check_unambiguous,
    match_cases,
)
from tests.helpers.rows import tuples

MATCHINGS = st.sampled_from(["mutual", "optimal", "unambiguous"])
OUTPUT = st.permutations(["id", "loud", "row"]).map(lambda names: names[: names.index("row") + 1])
"""Columns of both sides: which and in which order decides nothing."""
CASES = int(os.environ.get("COINCIDE_CASES", "150"))
DRAWN = (
    match_cases(), st.sampled_from((*PREFERENCES, *COLUMNS)), st.integers(1, 4),
    st.sampled_from(["inner", "left"]), st.sampled_from([None, 1, 3, 7]),
    OUTPUT,
)  # fmt: skip


@settings(max_examples=CASES)
@given(*DRAWN)
def test_the_reference_prefers_the_same(
    asked: Asked, prefer: str, k: int, how: str, batch: int | None, names: list[str]
) -> None:
    given = {"left_columns": names, "right_columns": names}
    found = answer(asked, batch, emit="best", prefer=prefer, k=k, how=how, **given)
    check_best(found, asked, prefer, k, how)


@pytest.mark.slow
@settings(max_examples=600)
@given(*DRAWN)
def test_the_reference_prefers_the_same_at_length(
    asked: Asked, prefer: str, k: int, how: str, batch: int | None, names: list[str]
) -> None:
    given = {"left_columns": names, "right_columns": names}
    found = answer(asked, batch, emit="best", prefer=prefer, k=k, how=how, **given)
    check_best(found, asked, prefer, k, how)


@settings(max_examples=CASES)
@given(*DRAWN, st.sampled_from(SECONDS))
def test_a_second_column_decides_among_equals(
    asked: Asked, prefer: str, k: int, how: str, batch: int | None, names: list[str], second: str
) -> None:
    given = {"left_columns": names, "right_columns": names, "prefer": [prefer, second]}
    check_best(
        answer(asked, batch, emit="best", k=k, how=how, **given), asked, given["prefer"], k, how
    )
    if prefer not in COLUMNS:
        mutual = answer(asked, batch, matching="mutual", **given)
        check_mutual(mutual, asked, given["prefer"])


@settings(max_examples=CASES)
@given(*DRAWN, st.sampled_from(SECONDS))
def test_all_that_are_equal_in_both(
    asked: Asked, prefer: str, k: int, how: str, batch: int | None, names: list[str], second: str
) -> None:
    """All whose place among the matches of the event is before that of one more than k."""
    given = {"left_columns": "row", "right_columns": "row", "prefer": (prefer, second)}
    found = answer(asked, batch, emit="best", k=k, ties="all", **given)
    expected = []
    for i in range(len(asked.left)):
        own = [pair for pair in pairs(asked) if pair.left == i]
        places = [place(asked, pair, given["prefer"], "right")[:2] for pair in own]
        for pair, least in zip(own, places, strict=True):
            better = sum(other < least for other in places)
            if better < k:
                expected.append((i, pair.right, better + 1))
    ranks = found["rank"].to_pylist() if k > 1 else [1] * found.num_rows
    rows = zip(found["left_row"].to_pylist(), found["right_row"].to_pylist(), ranks, strict=True)
    assert sorted(rows) == sorted(expected)


@settings(max_examples=CASES)
@given(
    match_cases(),
    st.sampled_from((*PREFERENCES, "-loud")),
    st.sampled_from([None, 1, 3, 7]),
    OUTPUT,
)
def test_the_reference_finds_the_same_mutual_pairs(
    asked: Asked, prefer: str, batch: int | None, names: list[str]
) -> None:
    given = {"left_columns": names, "right_columns": names}
    check_mutual(answer(asked, batch, matching="mutual", prefer=prefer, **given), asked, prefer)


@settings(max_examples=150)
@given(match_cases(), st.sampled_from([None, 1, 3, 7]))
def test_the_reference_finds_the_same_unambiguous_pairs(asked: Asked, batch: int | None) -> None:
    check_unambiguous(answer(asked, batch, matching="unambiguous"), asked)


@settings(max_examples=60)
@given(match_cases(4), st.sampled_from(["probability", "nearest"]), st.sampled_from([None, 1, 3]))
def test_no_assignment_is_better(asked: Asked, prefer: str, batch: int | None) -> None:
    given = {"left_columns": "row", "right_columns": "row"}
    check_optimal(answer(asked, batch, matching="optimal", prefer=prefer, **given), asked, prefer)


@settings(max_examples=60)
@given(match_cases(), MATCHINGS, st.sampled_from([None, 2]))
def test_left_events_that_are_in_no_pair(asked: Asked, matching: str, batch: int | None) -> None:
    found = answer(asked, batch, matching=matching)
    everyone = answer(asked, batch, matching=matching, how="left")
    pairs, ids = Counter(_pairs(found)), Counter(row["id"] for row in asked.left)
    alone = ids - Counter(found["left_id"].to_pylist())
    expected = pairs + Counter({(own, None): count for own, count in alone.items()})
    assert Counter(_pairs(everyone)) == expected


SWAPPED = {"probability": "probability", "nearest": "nearest", "first": "last", "last": "first"}


@settings(max_examples=60)
@given(match_cases(), st.sampled_from(PREFERENCES))
def test_mutual_pairs_are_the_same_from_the_other_side(asked: Asked, prefer: str) -> None:
    found = answer(asked, matching="mutual", prefer=prefer)
    other = Asked(asked.right, asked.left, -asked.hi, -asked.lo, asked.confidence, asked.by)
    mirrored = answer(other, matching="mutual", prefer=SWAPPED[prefer])
    assert Counter(_pairs(found)) == Counter((a, b) for b, a in _pairs(mirrored))


def _pairs(found: pa.Table) -> list[tuple[int, int]]:
    return tuples(found, "left_id", "right_id")


CONDITION = TimingCondition(within(-30, 40), 0.1)


def bursts(n: int, seed: int, **more: Any) -> pa.Table:
    rng = np.random.default_rng(seed)
    high = rng.integers(0, 400, n)
    low = high - rng.choice([0, 7, 20], n)
    return pa.table({"min_time": low, "max_time": high, "id": np.arange(n), **more})


def test_the_first_of_several_is_the_best_of_one() -> None:
    """Kernels that know only the most probable match choose that of rank 1, ties included."""
    left, right = bursts(300, 1), bursts(400, 2)
    given = {"emit": "best", "how": "left", "probability": True}
    one = correlate_tables(left, right, CONDITION, **given)
    several = correlate_tables(left, right, CONDITION, **given, k=4)
    is_first = pa.compute.equal(several["rank"], 1).fill_null(True)
    assert several.filter(is_first).drop_columns("rank").sort_by("left_id") == one.sort_by(
        "left_id"
    )
    ranks = several["rank"].to_numpy(zero_copy_only=False)
    assert np.nanmax(ranks) == 4


def test_histograms_are_ordered_as_by_kernels() -> None:
    table, (left, right) = histogram_sides()
    times = {
        f"{side}_time": histograms("max_time", template="kind", templates=table)
        for side in ("left", "right")
    }
    given = {"emit": "best", "probability": True, **times}
    one = correlate_tables(left, right, CONDITION, **given)
    several = correlate_tables(left, right, CONDITION, **given, k=2)
    best = several.filter(pa.compute.equal(several["rank"], 1)).drop_columns("rank")
    assert best.num_rows > 50
    assert best.sort_by("left_id") == one.sort_by("left_id")
    nearest = correlate_tables(left, right, CONDITION, **given, prefer="nearest")
    assert nearest.num_rows == one.num_rows
    assert not nearest.sort_by("left_id").equals(one.sort_by("left_id"))


def histogram_sides() -> tuple[pa.Table, tuple[pa.Table, pa.Table]]:
    table = pa.table({
        "template": ["a", "a", "b", "b", "b"], "lower": [-20, -10, -40, -20, -10],
        "upper": [-10, 0, -20, -10, 0], "mass": [0.25, 0.75, 0.125, 0.5, 0.375],
    })  # fmt: skip
    rng = np.random.default_rng(5)
    left, right = (bursts(n, n, kind=rng.choice(["a", "b"], n)) for n in (80, 90))
    return table, (left, right)


def test_a_group_that_is_too_large_is_named() -> None:
    left, right = bursts(60, 1), bursts(60, 2)
    with pytest.raises(
        DataError, match=r"largest_group=20 events .found one of 1\d\d, .*ticks -?\d+ to \d+"
    ):
        correlate_tables(left, right, CONDITION, matching="optimal", largest_group=20)
    found = correlate_tables(left, right, CONDITION, matching="optimal", largest_group=120)
    assert 40 < found.num_rows <= 60


def test_nothing_is_matched_of_nothing() -> None:
    left, right = bursts(5, 1), bursts(0, 2)
    for matching in ("mutual", "optimal", "unambiguous"):
        found = correlate_tables(left, right, CONDITION, matching=matching, probability=True)
        assert found.num_rows == 0
        assert found.column_names == ["left_id", "right_id", "probability"]


@pytest.mark.parametrize(
    ("given", "cure"),
    [
        ({"prefer": "nearst"}, "prefer must be one of probability, nearest, first, last"),
        ({"prefer": "first"}, "Add emit='best'"),
        ({"prefer": "first", "emit": "lists"}, "Add emit='best'"),
        ({"k": 2}, "Add emit='best'"),
        ({"k": 0, "emit": "best"}, "k must be an int of at least 1"),
        ({"k": 10_001, "emit": "best"}, "k must be at most 10,000"),
        ({"k": None, "emit": "best"}, "k must be an int of at least 1"),
        ({"k": 2, "matching": "mutual"}, "Remove k=2"),
        ({"matching": "best"}, "matching must be one of mutual, optimal"),
        ({"k": 2, "matching": "unambiguous"}, "Remove k=2"),
        ({"prefer": "-id", "matching": "unambiguous"}, "Remove prefer='-id'"),
        ({"prefer": "-id", "matching": "optimal"}, "or matching='mutual'"),
        ({"prefer": "-", "emit": "best"}, "found '-'"),
        ({"prefer": "lastt", "emit": "best"}, "lastt'"),
        ({"prefer": ["last", "first"], "emit": "best"}, "write '+first'"),
        ({"prefer": ["last", 3], "emit": "best"}, "the second of prefer must be a column"),
        ({"prefer": ["last", "-"], "emit": "best"}, "the second of prefer must be a column"),
        ({"prefer": ["lastt", "-id"], "emit": "best"}, "lastt'"),
        ({"prefer": ["last", "-id", "id"], "emit": "best"}, "Give one or two"),
        ({"prefer": [], "emit": "best"}, "Give one or two"),
        ({"prefer": ["last", "-id"]}, "Add emit='best'"),
        (
            {"prefer": ["probability", "-id"]},
            "Add emit='best', or remove prefer=['probability', '-id']",
        ),
        ({"prefer": ["nearest", "-id"], "matching": "optimal"}, "or matching='mutual'"),
        ({"prefer": ["probability", "-id"], "matching": "unambiguous"}, "Remove prefer=["),
        ({"how": "right", "matching": "mutual"}, "or swap the sides and mirror the window"),
        ({"how": "right", "emit": "counts"}, "swap the sides and mirror the window"),
        ({"how": "full", "emit": "best"}, "gives a row for each left event"),
        ({"matching": "mutual", "how": "anti"}, "Remove how='anti'"),
        ({"matching": "mutual", "emit": "counts"}, "Remove emit='counts'"),
        ({"matching": "optimal", "prefer": "last"}, "or matching='mutual'"),
        ({"largest_group": 1}, "largest_group must be an int of at least 2"),
        ({"largest_group": 50_000}, "largest_group must be at most 20,000"),
    ],
    ids=str,
)
def test_errors_name_the_cure(given: dict[str, Any], cure: str) -> None:
    with pytest.raises(ConditionError) as raised:
        correlate_tables(bursts(2, 1), bursts(2, 2), CONDITION, **given)
    assert cure in str(raised.value)
    assert "\n" not in str(raised.value)


KINDS = {
    "text": pa.array(["b", "a", None, "b"], pa.large_string()),
    "bytes": pa.array([b"b", b"a", None, b"b"]),
    "fixed": pa.array([b"bb", b"ab", None, b"bb"], pa.binary(2)),
    "long decimal": pa.array([Decimal(10) ** 30, Decimal(1), None, Decimal(10) ** 30]),
    "int8": pa.array([3, -2, None, 3], pa.int8()),
    "uint64": pa.array([2**63 + 5, 0, None, 2**63 + 5], pa.uint64()),
    "int64": pa.array([2**63 - 1, -(2**63), None, 2**63 - 1]),
    "float16": pa.array(np.array([1.5, -1.5, np.nan, 1.5], np.float16)),
    "float32": pa.array([math.inf, -math.inf, math.nan, math.inf], pa.float32()),
    "decimal": pa.array([Decimal("0.50"), Decimal("-12.25"), None, Decimal("0.50")]),
    "bool": pa.array([True, False, None, True]),
    "date": pa.array([dt.date(2024, 2, 1), dt.date(1960, 1, 1), None, dt.date(2024, 2, 1)]),
    "time": pa.array([dt.time(9), dt.time(8), None, dt.time(9)], pa.time32("s")),
    "timestamp": pa.array([5, -5, None, 5], pa.timestamp("ns", "UTC")),
    "duration": pa.array([5, -5, None, 5], pa.duration("ms")),
    "dictionary": pa.array([5, -5, None, 5]).dictionary_encode(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_of_any_kind_says_who_is_best(kind: str) -> None:
    """The largest, of two the one nearest to the middle of the window; missing ones are last."""
    left = pa.table({"id": [1], "t": [0]})
    right = pa.table({"id": [7, 8, 9, 10], "t": [1, 2, 3, 4], "last": KINDS[kind]})
    times = {"left_time": "t", "right_time": "t", "within": (0, 8), "confidence": 1.0}
    for prefer, order in (("-last", [10, 7, 8, 9]), ("+last", [8, 10, 7, 9])):
        found = correlate_tables(left, right, prefer=prefer, emit="best", k=4, **times)
        assert found["right_id"].to_pylist() == order
        assert found["rank"].to_pylist() == [1, 2, 3, 4]


def test_small_unsigned_numbers_are_told_apart() -> None:
    """In either order, before missing ones."""
    left = pa.table({"id": [1], "t": [0]})
    numbers = pa.array([0, None, 1, 2, 3, 4], pa.uint64())
    right = pa.table({"id": range(6), "t": [4] * 6, "seq": numbers})
    times = {"left_time": "t", "right_time": "t", "within": (0, 8), "confidence": 1.0}
    for prefer, order in (("-seq", [5, 4, 3, 2, 0, 1]), ("seq", [0, 2, 3, 4, 5, 1])):
        for words in (prefer, ["last", prefer]):
            found = correlate_tables(left, right, prefer=words, emit="best", k=6, **times)
            assert found["right_id"].to_pylist() == order


def test_a_column_that_has_no_order_is_refused() -> None:
    right = bursts(1, 2).append_column("loud", pa.array([[1]]))
    for prefer in ("-loud", ["last", "-loud"], ["-loud", "id"]):
        with pytest.raises(SchemaError, match=r"numbers, times or texts .*right.loud.* Cast it"):
            correlate_tables(bursts(1, 1), right, CONDITION, emit="best", prefer=prefer)
    with pytest.raises(SchemaError, match="right has no column 'louder'"):
        correlate_tables(bursts(1, 1), bursts(1, 2), CONDITION, emit="best", prefer="louder")


@pytest.mark.parametrize("how", ["right", "full"])
@pytest.mark.parametrize("columns", [["id"], ["id", "name"]], ids=["direct", "gathered"])
@pytest.mark.parametrize("where", [None, "left_id <> 3"])
def test_right_events_without_a_match_are_last_in_their_order(
    how: str, columns: list[str], where: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    sides = [
        pa.table({
            "id": np.arange(50), "t": pa.array(rng.integers(0, 200, 50), mask=rng.random(50) < 0.1),
            "name": [f"n{k}" for k in range(50)],
        })
        for _ in range(2)
    ]  # fmt: skip
    asked: dict[str, Any] = {
        "condition": TimingCondition(within(0, 2), 1.0), "left_time": "t", "right_time": "t",
        "where": where, "left_columns": columns, "right_columns": columns,
        "options": CorrelateOptions(threads=2, batch_pairs=3),
    }  # fmt: skip
    sorts: list[int] = []
    joins = JoinSpec.pairing
    monkeypatch.setattr(JoinSpec, "pairing", lambda *given: (sorts.append(1), joins(*given))[1])
    found = correlate_tables(*sides, **asked, how=how)
    assert len(sorts) == 1
    pairs = correlate_tables(*sides, **asked)
    met = set(pairs["right_id"].to_pylist())
    assert 5 < len(met) < 45
    alone = [i for i in range(50) if i not in met]
    assert found["right_id"].to_pylist()[-len(alone) :] == alone
    assert found.slice(found.num_rows - len(alone))["left_id"].null_count == len(alone)
    batches = table_join(*sides, **asked, how=how).batches()
    assert max(batch.num_rows for batch in batches if batch["left_id"].null_count) <= 3
    assert found["left_id"].drop_null().unique().to_pylist() == (
        list(range(50)) if how == "full" else pairs["left_id"].unique().to_pylist()
    )
