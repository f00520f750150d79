"""What `coincide doctor --gpu` does on a GPU: a join of made-up events, compared with the CPU's."""

from __future__ import annotations

import timeit
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa

from coincide.engine.join.join import correlate_tables
from coincide.model.condition import TimingCondition, within
from coincide.model.options import CorrelateOptions
from coincide.model.threads import cores

Backend = Literal["cpu", "gpu"]


class Proof(NamedTuple):
    """Whether both backends gave the same bits, and what to print about it."""

    is_equal: bool
    found: str


def prove(events: int = 1_000_000) -> Proof:
    """Join made-up events on both backends; the faster of three runs each, after one that compiles."""
    bits, seconds = {}, {}
    left, right = _events(events, 1), _events(events, 2)
    for backend in Backend.__args__:  # type: ignore[attr-defined]
        join = partial(_join, left, right, backend)
        bits[backend] = [column.to_numpy().view(np.int64) for column in join().columns]
        seconds[backend] = min(timeit.repeat(join, number=1, repeat=3))
    counts = {backend: columns[0].size for backend, columns in bits.items()}
    if not all(map(np.array_equal, bits["cpu"], bits["gpu"])):
        return Proof(
            False, "the CPU found {cpu:,} pairs, the GPU {gpu:,}: not equal".format(**counts)
        )
    return Proof(
        True,
        f"{events:,} x {events:,} events, {counts['cpu']:,} pairs: equal to the CPU's in every bit;"
        " GPU {gpu:.3f} s, {cores} cores {cpu:.3f} s".format(cores=cores(), **seconds),
    )


def _events(size: int, seed: int) -> pa.Table:
    """A made-up stream in microseconds: two of them have some five pairs an event."""
    random = np.random.default_rng(seed)
    low = random.integers(0, 100 * size, size)
    high = low + random.integers(0, 100, size)
    return pa.table({"id": np.arange(size), "min_time": low, "max_time": high})


def _join(left: pa.Table, right: pa.Table, backend: Backend) -> pa.Table:
    condition = TimingCondition(within("-250us", "250us"), 0.8)
    options = CorrelateOptions(unit="us", threads=cores())
    return correlate_tables(
        left, right, condition, probability=True, backend=backend, options=options
    )
