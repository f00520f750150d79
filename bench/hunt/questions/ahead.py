"""Streams with rows of fast clocks: late and set aside by definition, others joined as in a batch."""

from __future__ import annotations

import statistics
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from coincide import CoincideWarning, TimingCondition, stream_tables, within
from coincide.model.sides import SIDES
from cpu_fallback.reference.join import Row, correlate

_REMEMBERED = 31
_HOWS = ("inner", "left", "anti")


def late_and_ahead(rows: list[Row], delay: int, ahead: int | None) -> tuple[set[int], set[int]]:
    """Ids of the late rows, and of those farther ahead of the median of the last rows, one by one."""
    clock, late, beyond = -(2**62), set(), set()
    before: list[int] = []
    for row in rows:
        time, last = row["max_time"], before[-_REMEMBERED:]
        before.append(time)
        if ahead is not None and last and time - statistics.median_low(last) > ahead:
            beyond.add(row["id"])
            continue
        clock = max(clock, time)
        if time < clock - delay:
            late.add(row["id"])
    return late, beyond


def wrong(random: np.random.Generator) -> str | None:
    """What differs from the definition, row by row, and from the oracle of the rows that are left."""
    sides = [_rows(random) for _ in SIDES]
    delays = [int(random.choice([0, 3, 40])) for _ in SIDES]
    aheads = [int(random.choice([0, 20, 500, 10_000])) for _ in SIDES]
    lo = int(random.integers(-30, 20))
    condition = (lo, lo + int(random.integers(0, 40)), float(random.choice([0.1, 0.5, 0.9, 1.0])))
    how = str(random.choice(_HOWS))
    stream = stream_tables(
        TimingCondition(within(*condition[:2]), condition[2]), by="key", how=how,  # type: ignore[arg-type]
        left_delay=delays[0], right_delay=delays[1], left_ahead=aheads[0], right_ahead=aheads[1],
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoincideWarning)
        found = _pushed(random, stream, sides)
    gone = [late_and_ahead(*each) for each in zip(sides, delays, aheads, strict=True)]
    kept = [
        [row for row in rows if row["id"] not in late | ahead]
        for rows, (late, ahead) in zip(sides, gone, strict=True)
    ]
    due = correlate(*kept, *condition, how=how, by=["key"])
    told = f"{how} of {condition}, delays {delays}, ahead {aheads}: {sides}"
    counts = [tuple(len(side[i]) for side in gone) for i in range(2)]
    if [stream.summary().late, stream.summary().ahead] != counts:
        return f"late, ahead {stream.summary().late, stream.summary().ahead}, expected {counts}: {told}"
    for side, (_, ahead) in zip(SIDES, gone, strict=True):
        aside = stream.take_ahead(side)
        # A stream keeps times and keys alone of a side without output columns.
        ids = set(aside["id"].to_pylist()) if "id" in aside.column_names else ahead
        if aside.num_rows != len(ahead) or ids != ahead:
            return f"other rows of {side} are set aside than {ahead}: {told}"
    if (got := _counted(found)) != (expected := _counted(due)):
        return f"rows {got - expected} too many, {expected - got} too few: {told}"
    return None


def _counted(rows: list[dict[str, Any]]) -> Counter[Any]:
    return Counter(tuple(sorted(row.items(), key=lambda item: item[0])) for row in rows)


def _rows(random: np.random.Generator) -> list[Row]:
    """Rows nearly in order of time, now and then of a clock that is fast."""
    size = int(random.integers(0, 60))
    ends = np.sort(random.integers(0, 300, size)) - random.choice([0, 0, 2, 10, 60], size)
    fast = random.choice([0, 25, 600, 20_000], size) * (random.random(size) < 0.1)
    lengths, keys = random.choice([0, 0, 1, 7], size), random.integers(0, 2, size)
    return [
        {"id": row, "min_time": end - length, "max_time": end, "key": key}
        for row, (end, length, key) in enumerate(
            zip((ends + fast).tolist(), lengths.tolist(), keys.tolist(), strict=True)
        )
    ]


def _pushed(
    random: np.random.Generator, stream: Any, sides: list[list[Row]]
) -> list[dict[str, Any]]:
    """All rows that come out, of pushes of any size that come among each other."""
    waiting, found = [list(rows) for rows in sides], []
    for name in SIDES:
        found += stream.push(name, _table([])).to_pylist()
    while any(waiting):
        side = int(random.integers(2))
        size = int(random.integers(0, 8))
        piece, waiting[side] = waiting[side][:size], waiting[side][size:]
        found += stream.push(SIDES[side], _table(piece)).to_pylist()
    return found + stream.flush().to_pylist()


def _table(rows: list[Row]) -> pa.Table:
    names = ("id", "min_time", "max_time", "key")
    return pa.table({name: pa.array([row[name] for row in rows], pa.int64()) for name in names})
