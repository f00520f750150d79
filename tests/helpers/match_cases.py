"""Cases with many ties of matches; lengths are powers of two, so probabilities are exact."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from coincide import CorrelateOptions, TimingCondition, correlate_tables, within
from cpu_fallback.reference.join import (
    Asked,
    Preferences,
    best_matches,
    mutual_pairs,
    optimum,
    pairs,
    unambiguous_pairs,
    value,
)
from tests.helpers.rows import tuples

LENGTHS = (0, 2, 4, 8)
LOUDNESS = st.sampled_from([-1.5, -0.0, 0.0, 2.5, math.inf, -math.inf, math.nan, None])
KINDS = {"name": pa.string(), "day": pa.date32(), "cost": pa.decimal128(38, 2), "seq": pa.uint64()}
VALUES: list[list[Any]] = [
    ["b", "ab", "", "é", None], [dt.date(2024, 2, 1), dt.date(1960, 1, 1), None],
    [Decimal(10) ** 30, Decimal("-0.25"), Decimal("-0.5"), None], [3, 2**63, 0, None],
]  # fmt: skip
COLUMNS = ("loud", "-loud", "+loud")
"""By which matches are preferred."""
SECONDS = [
    f"{sign}{name}" for sign in ("", "-", "+") for name in ("loud", "name", "day", "cost", "seq")
]
"""By which they are then, among equals."""


@st.composite
def match_cases(draw: Any, most: int = 8) -> Asked:
    """Few different times, lengths, ids and keys: all kinds of ties, and events alike in all."""

    def side() -> list[dict[str, Any]]:
        times = st.none() | st.integers(-12, 12) | st.integers(-12, 12) | st.integers(-3, 3)
        ends = st.tuples(
            times,
            st.sampled_from(LENGTHS),
            st.integers(0, 3),
            keys,
            LOUDNESS,
            *map(st.sampled_from, VALUES),
        )
        drawn = draw(st.lists(ends, max_size=most))
        return [
            {
                "min_time": None if t is None else t - n, "max_time": t, "id": i, "key": key,
                "loud": loud, "name": name, "day": day, "cost": cost, "seq": seq,
            }
            for t, n, i, key, loud, name, day, cost, seq in drawn
        ]  # fmt: skip

    by = draw(st.sampled_from([(), ("key",)]))
    keys = st.sampled_from([1, 1, 2, None]) if by else st.just(1)
    lo = draw(st.integers(-12, 8))
    hi = draw(st.integers(lo, lo + 16))
    confidence = draw(st.sampled_from([1.0, 0.5, 0.125, 0.03125]))
    return Asked(side(), side(), lo, hi, confidence, by)


def condition_of(asked: Asked) -> TimingCondition:
    return TimingCondition(within(asked.lo, asked.hi), asked.confidence)


def tables_of(asked: Asked) -> tuple[pa.Table, pa.Table]:
    names = ("min_time", "max_time", "id", "key")
    left, right = (
        pa.table({
            **{name: pa.array([row[name] for row in rows], pa.int64()) for name in names},
            "loud": pa.array([row["loud"] for row in rows], pa.float64()),
            **{
                name: pa.array([row[name] for row in rows], kind) for name, kind in KINDS.items()
            },
            "row": pa.array(range(len(rows)), pa.int64()),
        })
        for rows in asked[:2]
    )  # fmt: skip
    return left, right


def answer(asked: Asked, batch: int | None = None, **arguments: Any) -> pa.Table:
    """The answer of `correlate_tables`, in batches of `batch` pairs."""
    options = CorrelateOptions(batch_pairs=batch, threads=1)
    given = {"by": asked.by, "options": options, **arguments}
    return correlate_tables(*tables_of(asked), condition_of(asked), **given)


def check_best(found: pa.Table, asked: Asked, prefer: Preferences, k: int, how: str) -> None:
    """Against the reference, rows of nulls included."""
    chosen = best_matches(asked, prefer, k)
    expected: list[tuple[int, int | None, int | None]] = list(chosen)
    if how == "left":
        alone = set(range(len(asked.left))) - {i for i, _, _ in chosen}
        expected += [(i, None, None) for i in alone]
    rows = found.to_pylist()
    if k == 1:
        rows = [{**row, "rank": None if row["right_row"] is None else 1} for row in rows]
    found_ = [(row["left_row"], row["right_row"], row["rank"]) for row in rows]
    assert Counter(found_) == Counter(expected)


def check_mutual(found: pa.Table, asked: Asked, prefer: str) -> None:
    rows = tuples(found, "left_row", "right_row")
    assert Counter(rows) == Counter(mutual_pairs(asked, prefer))


def check_unambiguous(found: pa.Table, asked: Asked) -> None:
    chosen = unambiguous_pairs(asked)
    expected = [(asked.left[i]["id"], asked.right[j]["id"]) for i, j in chosen]
    pairs = tuples(found, "left_id", "right_id")
    assert Counter(pairs) == Counter(expected)


def check_optimal(found: pa.Table, asked: Asked, prefer: str) -> None:
    """As good as the best of all assignments; each row at most once, of pairs that qualify."""
    by_rows = {(pair.left, pair.right): pair for pair in pairs(asked)}
    rows = tuples(found, "left_row", "right_row")
    assert all(len(set(side)) == len(rows) for side in zip(*rows, strict=True))
    assert value(asked, prefer, [by_rows[row] for row in rows]) == optimum(asked, prefer)
