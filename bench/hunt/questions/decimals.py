"""Conditions on float times: ``where`` and ``delta`` say what Python's decimals say."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa

from coincide import CorrelateOptions, correlate_tables

_COMPARED = {"<": "__lt__", "<=": "__le__", "=": "__eq__", ">=": "__ge__", ">": "__gt__"}
_STARTS = (0, 5, 1_238_166_017, -1_000_000)
_SIZE = 8


def wrong(
    random: np.random.Generator, join: Callable[..., pa.Table] = correlate_tables
) -> str | None:
    """What differs from Python's decimals, of times in seconds with up to seven digits."""
    digits, start = int(random.integers(0, 8)), int(random.choice(_STARTS))
    steps = random.integers(-30, 30, (2, _SIZE)) / 10**digits
    rows = [[float(f"{start + step:.{digits}f}") for step in side] for side in steps]
    limit = Decimal(int(random.integers(-20, 40))).scaleb(-digits)
    sign = str(random.choice(list(_COMPARED)))
    left, right = (pa.table({"t": side, "id": range(_SIZE)}) for side in rows)
    exact = [[Decimal(repr(time)) for time in side] for side in rows]
    wanted = {
        (i, j)
        for i, own in enumerate(exact[0])
        for j, other in enumerate(exact[1])
        if abs(other - own) <= 100 and getattr(other - own, _COMPARED[sign])(limit)
    }
    for where in (
        f"right_t - left_t {sign} {limit:f}",
        f"delta_ns {sign} {int(limit.scaleb(9))}",
    ):
        pairs = join(
            left, right, within=("-100s", "100s"), left_time="t", right_time="t", where=where,
            options=CorrelateOptions(left_unit="s", right_unit="s"),
        )  # fmt: skip
        found = set(
            zip(*(pairs[f"{side}_id"].to_pylist() for side in ("left", "right")), strict=True)
        )
        if found != wanted:
            return f"{where}: pairs {sorted(found ^ wanted)} differ, of times {rows}"
    return None
