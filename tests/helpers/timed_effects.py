"""Causes and effects of uncertain times, as the reference and as tables have them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from cpu_fallback.reference import causality as reference

DELTAS = range(-200, 201)
"""Far beyond all times of the cases."""

Interval = tuple[int, int, tuple[float, ...]]


def intervals(events: Sequence[reference.Event], lengths: Sequence[int]) -> list[Interval]:
    whole = [e for e in events if None not in e]
    return [
        (time - lengths[i % len(lengths)], time, where) for i, (time, where, _) in enumerate(whole)
    ]


def table(events: Sequence[Interval], names: Sequence[str]) -> pa.Table:
    columns = {n: pa.array([e[2][i] for e in events], pa.float64()) for i, n in enumerate(names)}
    times = {n: pa.array([e[i] for e in events], pa.int64()) for i, n in enumerate(("low", "high"))}
    return pa.table({"id": pa.array(range(len(events)), pa.int64()), **times, **columns})
