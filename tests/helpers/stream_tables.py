"""Streams of tables for the tests: rows in an order of arrival, cut into pushes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pyarrow as pa

from bench.hunt.questions.ahead import late_and_ahead
from coincide import StreamJoin
from coincide.model.sides import SIDES
from tests.helpers.strategies import JoinCase, Row

SCHEMA = pa.schema([
    ("id", pa.int64()), ("min_time", pa.int64()), ("max_time", pa.int64()),
    ("station", pa.string()), ("channel", pa.int64()),
])  # fmt: skip


def table_of(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist([{n: row.get(n) for n in SCHEMA.names} for row in rows], SCHEMA)


def is_whole(row: Row) -> bool:
    """Whether a row has both times, in their order, and all keys."""
    has_all = all(value is not None for value in row.values())
    return has_all and row["min_time"] <= row["max_time"]


def spoilt(rows: list[Row], rng: np.random.Generator) -> list[Row]:
    """Some rows with their times the wrong way round."""
    return [
        {**row, "min_time": row["max_time"] + 1}
        if row["max_time"] is not None and rng.random() < 0.1
        else row
        for row in rows
    ]


def as_arriving(rows: list[Row], delay: int, rng: np.random.Generator) -> list[Row]:
    """Rows in an order in which some come as late as the delay permits, and a few later."""
    ends = [0 if row["max_time"] is None else row["max_time"] for row in rows]
    share = rng.choice([0.0, 0.5, 1.0, 1.0, 1.5], len(rows))
    arrival = [end + int(delay * each) for end, each in zip(ends, share, strict=True)]
    order = sorted(range(len(rows)), key=lambda i: (arrival[i], rng.random()))
    return [rows[i] for i in order]


def late_ids(rows: list[Row], delay: int) -> set[int]:
    """Those whose max_time is more than the delay below the largest one that came before."""
    return late_and_ahead(list(filter(is_whole, rows)), delay, None)[0]


def cut(rows: list[Row], rng: np.random.Generator) -> list[list[Row]]:
    """Pushes of any size, also of none."""
    edges = np.sort(rng.integers(0, len(rows), rng.integers(0, len(rows) + 2), endpoint=True))
    ends = [0, *edges.tolist(), len(rows)]
    return [rows[a:b] for a, b in pairwise(ends)]


def pushed(
    stream: StreamJoin,
    sides: list[list[Row]],
    rng: np.random.Generator,
    made: Callable[[int, pa.Table], pa.Table] = lambda number, table: table,
) -> pa.Table:
    """All that a stream gives out of both sides, whose pushes come among each other.

    `made` makes of the number of a side, and of its rows, what is pushed.
    """
    waiting = [cut(rows, rng) for rows in sides]
    found = []
    while any(waiting):
        number = int(rng.integers(2))
        if waiting[number]:
            rows = waiting[number].pop(0)
            found.append(stream.push(SIDES[number], made(number, table_of(rows))))
    return all_of([*found, stream.flush()])


def all_of(found: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(part for part in found if part.num_columns)


def stream_sides(case: JoinCase, rng: np.random.Generator) -> tuple[list[list[Row]], list[int]]:
    """The rows of a case as they arrive, and the delays of both sides."""
    sides, delays = [], []
    for rows in (case.left, case.right):
        ends = [row["max_time"] for row in rows if row["max_time"] is not None]
        span = max(ends, default=0) - min(ends, default=0)
        delay = min(int(rng.choice([0, 1, span // 20, span // 4, span])), 2**58)
        own = [{**row, "id": i} for i, row in enumerate(rows)]
        sides.append(as_arriving(own, delay, rng))
        delays.append(delay)
    return sides, delays
