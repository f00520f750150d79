"""Windows without one of their ends: what a search through all pairs finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from coincide import CorrelateOptions, correlate_tables

_STEPS = (1, 10**9 + 7, 2**54)


def wrong(
    random: np.random.Generator, join: Callable[..., pa.Table] = correlate_tables
) -> str | None:
    """What differs from a search through all pairs: the k last, or first, matches of each left event."""
    step, is_backward = int(random.choice(_STEPS)), bool(random.integers(2))
    sides = [_rows(random, step) for _ in range(2)]
    bound, k = step * int(random.integers(-12, 12)), int(random.choice([1, 1, 2, 3]))
    is_one_way = bound <= 0 if is_backward else bound >= 0
    words = ["last" if is_backward else "first", *["nearest"] * is_one_way]
    prefer, how = str(random.choice(words)), str(random.choice(["inner", "left"]))
    found = join(
        *map(_table, sides), within=(None, bound) if is_backward else (bound, None), left_time="t",
        right_time="t", by="key", emit="best", prefer=prefer, k=k, how=how, right_columns=["id", "t"],
        options=CorrelateOptions(batch_pairs=int(random.integers(1, 9))),
    ).to_pylist()  # fmt: skip
    told = f"{prefer} of {k}, {how}, bound {bound}, backward {is_backward}: {sides}"
    for left in sides[0]:
        # Which of equal times is taken depends on their order: times alone are compared.
        own = [row for row in found if row["left_id"] == left["id"]]
        times = [other["t"] for other in sides[1] if _meet(left, other, bound, is_backward)]
        due = sorted(times, reverse=is_backward)[:k] or [None] * (how == "left")
        if [row["right_t"] for row in sorted(own, key=lambda row: row.get("rank") or 0)] != due:
            return f"{left} has {own}, expected times {due}, {told}"
        ids = [row["right_id"] for row in own if row["right_id"] is not None]
        if len(set(ids)) < len(ids) or any(
            sides[1][row["right_id"]]["t"] != row["right_t"] for row in own if row["right_t"]
        ):
            return f"{left} has {own}, {told}"
    return (
        None if len({row["left_id"] for row in found} - {r["id"] for r in sides[0]}) == 0 else told
    )


def _meet(left: dict[str, Any], right: dict[str, Any], bound: int, is_backward: bool) -> bool:
    values = (left["t"], right["t"], left["key"], right["key"])
    if None in values or left["key"] != right["key"]:
        return False
    delta = right["t"] - left["t"]
    return bool(delta <= bound if is_backward else delta >= bound)


def _rows(random: np.random.Generator, step: int) -> list[dict[str, Any]]:
    return [
        {
            "id": row,
            "t": None if random.random() < 0.05 else step * int(random.integers(-20, 20)),
            "key": None if random.random() < 0.05 else int(random.integers(0, 2)),
        }
        for row in range(int(random.integers(0, 14)))
    ]


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    names = ("id", "t", "key")
    return pa.table({name: pa.array([row[name] for row in rows], pa.int64()) for name in names})
