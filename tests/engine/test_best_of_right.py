"""The best left match of each right event: what the join with its sides swapped finds, and the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from coincide import (
    ConditionError,
    CorrelateOptions,
    JoinReport,
    NoPairsWarning,
    SchemaError,
    TimingCondition,
    containing,
    correlate_tables,
    deadline,
    inside,
    spans,
    within,
)
from tests.helpers.comparison import assert_answer, condition_of, ticks_of
from tests.helpers.rows import tuples
from tests.helpers.strategies import random_cases

LEFT = pa.table({
    "id": ["a", "b", "c"], "t": [10, 20, 3], "k": [1, 1, 1], "amount": [5, 1, 9],
})  # fmt: skip
RIGHT = pa.table({
    "id": ["q1", "q2", "q3", "q4"], "t": [5, 15, 20, 90], "kk": [1, 1, 1, 1], "x": [1, 2, 3, 4],
})  # fmt: skip
ASKED: dict[str, Any] = {
    "within": (-20, 20), "left_time": "t", "right_time": "t", "by": [("k", "kk")], "emit": "best",
    "how": "right", "left_columns": ["id", "amount"], "right_columns": "id",
}  # fmt: skip


def found(**more: Any) -> list[tuple[Any, ...]]:
    return tuples(correlate_tables(LEFT, RIGHT, **ASKED | more))


def test_rows_have_the_columns_of_pairs() -> None:
    table = correlate_tables(
        LEFT, RIGHT, prefer="last", pair_columns="delta", probability=True, **ASKED
    )
    assert table.column_names == [
        "k", "left_id", "left_amount", "right_id", "delta", "probability",
    ]  # fmt: skip
    assert tuples(table) == [
        (1, "b", 1, "q1", -15, 1.0), (1, "b", 1, "q2", -5, 1.0), (1, "b", 1, "q3", 0, 1.0),
        (1, None, None, "q4", None, None),
    ]  # fmt: skip
    assert found(prefer="first")[0] == (1, "c", 9, "q1")
    assert found(prefer="amount")[1] == (1, "b", 1, "q2")
    assert found(prefer="nearest", k=2)[:2] == [(1, "c", 9, "q1", 1), (1, "a", 5, "q1", 2)]
    assert found(prefer="last", where="left_amount > right_x")[:2] == [
        (1, "a", 5, "q1"), (1, "a", 5, "q2"),
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
def test_drawn_cases() -> None:
    """Against the oracle of the mirrored question."""
    rows = 0
    for number, case in enumerate(random_cases(18, 300, max_size=30)):
        mirrored = case._replace(left=case.right, right=case.left, lo=-case.hi, hi=-case.lo)
        table = correlate_tables(
            ticks_of(case.left, case.by), ticks_of(case.right, case.by), condition_of(case),
            by=case.by, how="right", emit="best", probability=True,
            options=CorrelateOptions(threads=1 + number % 2, batch_pairs=1 + number % 7),
        )  # fmt: skip
        answer = [
            {**row, "left_id": row["right_id"], "right_id": row["left_id"]}
            for row in table.to_pylist()
        ]
        assert_answer(answer, mirrored, "left", "best", True)
        rows += len(answer)
    assert rows > 1000


def test_spans_and_uncertain_times() -> None:
    rng = np.random.default_rng(5)
    sides = [
        pa.table({"id": range(40), "start": start, "end": start + rng.integers(0, 9, 40)})
        for start in (rng.integers(0, 60, 40), rng.integers(0, 60, 40))
    ]
    time = spans("start", "end")
    asked = {"left_time": time, "right_time": time, "emit": "best", "prefer": "first"}
    own = correlate_tables(*sides, containing(), how="right", pair_columns="overlap", **asked)
    other = correlate_tables(*sides[::-1], inside(), how="left", pair_columns="overlap", **asked)
    assert own["right_id"].equals(other["left_id"])
    assert own["left_id"].equals(other["right_id"])
    assert own["overlap"].equals(other["overlap"])
    assert own["left_id"].null_count < 40


def test_reports_and_messages_name_the_sides_as_they_were_given() -> None:
    report = JoinReport()
    with pytest.warns(NoPairsWarning, match="left has 1, right 2"):
        correlate_tables(
            LEFT, RIGHT.set_column(2, "kk", pa.array([1, 1, 1, 2])),
            **ASKED | {"within": (2000, 2100)}, report=report,
        )  # fmt: skip
    told = report.summary()
    assert (told.left.rows, told.right.rows, told.sides) == (3, 4, ("left", "right"))
    assert told.no_pairs is not None
    assert told.no_pairs.left_times == ("3", "20")
    with pytest.raises(SchemaError, match="right has no column 'x2'"):
        found(right_columns="x2")
    with pytest.raises(SchemaError, match="left must be a"):
        correlate_tables(7, RIGHT, **ASKED)


SHAPES: list[dict[str, Any]] = [
    {"prefer": ("last", "-amount")}, {"prefer": "amount", "k": 2, "ties": "all"}, {"prefer": "nearest"},
    {"prefer": "first"}, {"k": 3}, {"where": "left_amount <> right_amount"},
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_edges_are_those_of_the_swapped_join(shape: dict[str, Any]) -> None:
    """Rows of equal time, null keys, sides without rows and without ids."""
    swapped = dict(shape)
    if "where" in shape:
        swapped["where"] = "right_amount <> left_amount"
    for seed in range(40):
        random = np.random.default_rng(seed)
        sides = [
            pa.table({
                "t": pa.array(random.integers(0, 8, size), pa.int64()),
                "key": pa.array([None if k == 2 else k for k in random.integers(0, 3, size).tolist()],
                                pa.int64()),
                "amount": pa.array(random.integers(0, 3, size), pa.int64()),
            })
            for size in random.choice([0, 1, 12, 30], 2)
        ]  # fmt: skip
        asked: dict[str, Any] = {"left_time": "t", "right_time": "t", "by": "key", "emit": "best"}
        own = correlate_tables(*sides, within=(-2, 3), how="right", **asked, **shape)
        other = correlate_tables(*sides[::-1], within=(-3, 2), how="left", **asked, **swapped)
        names = [name for name in own.column_names if name not in ("left_id", "right_id")]
        assert own.select(names).equals(other.select(names))
        assert own["left_id"].equals(other["right_id"])
        assert own["right_id"].equals(other["left_id"])


def test_names_that_clash_are_refused() -> None:
    left = pa.table({"delta": [7], "t": [0], "id": [1]})
    right = pa.table({"kk": [7], "t": [1], "id": [2]})
    asked = {key: value for key, value in ASKED.items() if "columns" not in key}
    with pytest.raises(ConditionError, match="would be named delta"):
        correlate_tables(left, right, **asked | {"by": [("delta", "kk")]}, pair_columns="delta")


def test_refused() -> None:
    asked = {key: value for key, value in ASKED.items() if key != "within"}
    with pytest.raises(ConditionError, match=r"one of its ends\. Swap the sides"):
        correlate_tables(LEFT, RIGHT, TimingCondition(deadline(0), 1.0), prefer="last", **asked)
    with pytest.raises(ConditionError, match="needs two sides"):
        correlate_tables(LEFT, None, TimingCondition(within(0, 5), 1.0), how="right", emit="best")
    with pytest.raises(ConditionError, match="use how='right'"):
        found(how="full")
