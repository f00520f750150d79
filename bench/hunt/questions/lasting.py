"""Spans as data have them: without an end while they go on, or with a column of how long they last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.hunt.relations import CLOSED, RELATIONS, wanted
from coincide import CorrelateOptions, Tick, correlate_tables, spans
from cpu_fallback.reference.spans import Span, common, lasting, overlap

LAST = 60
"""After all times of drawn events."""
Drawn = tuple[int | None, int | None, int | None]
"""Start, length and key; a null length is that of an event that goes on."""
_STEPS = ((1, 0), (1000, 1_700_000_000_000), (10**9 + 7, -(2**59)))
_SHARES = ("half of both", "0.3 of left", "all of right")
_NAMES = [name for name in RELATIONS if name not in _SHARES]


def drawn_rows(random: np.random.Generator) -> list[Drawn]:
    """A few events, some of which go on, or have no start or key."""
    return [
        (
            None if random.random() < 0.06 else int(random.integers(-6, 14)),
            None if random.random() < 0.3 else int(random.choice([0, 0, 1, 2, 3, 5, 9, 15])),
            None if random.random() < 0.06 else int(random.integers(0, 2)),
        )
        for _ in range(int(random.integers(0, 9)))
    ]


def as_table(
    rows: list[Drawn], kind: str, step: int = 1, origin: int = 0
) -> tuple[pa.Table, dict[str, Any]]:
    """Events in a table with a column ``end`` or ``len``, and what `spans` takes of it."""
    starts = [None if s is None else s * step + origin for s, _, _ in rows]
    lengths = [None if n is None else n * step for _, n, _ in rows]
    given = {
        "end": [None if None in each else sum(each) for each in zip(starts, lengths, strict=True)],
        "len": lengths,
    }
    columns = {
        "id": range(len(rows)), "key": [key for _, _, key in rows], "start": starts, kind: given[kind],
    }  # fmt: skip
    table = pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
    return table, {"end": "end"} if kind == "end" else {"duration": "len"}


def events_of(
    rows: list[Drawn], closed: str, is_open: bool, side: int
) -> tuple[list[Span], list[int]]:
    """What rows mean: spans and keys; an event that can match nothing has a key of its own."""
    spans_of = [lasting(start or 0, length, closed, LAST) for start, length, _ in rows]
    keys = [
        -1 - row - len(rows) * side * 100
        if start is None or key is None or (length is None and not is_open)
        else key
        for row, (start, length, key) in enumerate(rows)
    ]
    return spans_of, keys


def wrong(
    random: np.random.Generator,
    join: Callable[..., pa.Table] = correlate_tables,
    options: dict[str, Any] | None = None,
    relation: str | None = None,
) -> str | None:
    """What differs from sets of points: pairs, those left over, and the time in common."""
    name = relation or str(random.choice(_NAMES))
    asked, test = RELATIONS[name]
    step, origin = _STEPS[random.integers(len(_STEPS))]
    if asked.window(Tick()).amount is not None:
        step = 1  # the bounds of relations are ticks
    sides, times, events = [], [], []
    for side in range(2):
        closed, is_open = str(random.choice(CLOSED)), bool(random.random() < 0.8)
        rows = drawn_rows(random)
        table, columns = as_table(rows, str(random.choice(["end", "len"])), step, origin)
        sides.append(table)
        times.append(spans("start", **columns, closed=closed, open_ends=is_open))  # type: ignore[arg-type]
        events.append(events_of(rows, closed, is_open, side))
    if options is None:
        batch_pairs = int(random.integers(1, 6))
        options = {"classes": [None, 1, 3][random.integers(3)], "batch_pairs": batch_pairs}
    found = join(
        *sides, asked, left_time=times[0], right_time=times[1], by="key", how="left",
        pair_columns=("overlap", "overlap_start", "overlap_end"), options=CorrelateOptions(**options),
    )  # fmt: skip
    pairs = found.filter(pc.is_valid(found["right_id"])).to_pylist()
    alone = found.filter(pc.is_null(found["right_id"]))["left_id"].to_pylist()
    due, told = wanted(events[0], events[1], test), f"{name} of {events}"
    if (got := sorted((row["left_id"], row["right_id"]) for row in pairs)) != due:
        return f"pairs {got}, expected {due}: {told}"
    if set(alone) != set(range(len(events[0][0]))) - {i for i, _ in due}:
        return f"without a match are {alone}, and pairs are {due}: {told}"
    for row in pairs:
        own, other = events[0][0][row["left_id"]], events[1][0][row["right_id"]]
        go_on, ends = own.end == other.end == LAST, common(own, other)
        first, last = (None, None) if ends is None else (t * step + origin for t in ends)
        expected = (None if go_on else overlap(own, other) * step, first, None if go_on else last)
        if (row["overlap"], row["overlap_start"], row["overlap_end"]) != expected:
            return f"{row}, expected {expected}: {told}"
    return None
