"""The GPU's answers against the CPU's: order and bits included."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from bench.experiment import Bench
from bench.gpu.works import Work
from coincide.model.condition import TimingCondition, mutual_deadline
from coincide.model.options import CorrelateOptions
from coincide.model.timestamps import IntervalPairs

PAIRS_AT_ONCE = 1 << 22


def check_join(bench: Bench, backends: dict[str, Any], name: str, make: Callable[[], Any]) -> None:
    """One join in several numbers of length classes."""
    bench.say(f"equal on {name}")
    left, right, window = make()
    for classes in (None, 1, 16):
        answers = {
            who: _everything(package.EventJoin(left, right, IntervalPairs(window), classes=classes))
            for who, package in backends.items()
        }
        bench.check_equal(f"{name}, classes {classes or 'chosen'}", answers)


def _everything(join: Any) -> str:
    """A digest of all that a join can answer, order and bits included."""
    digest = hashlib.sha256()
    n = join.left_order.size
    for array in (join.left_order, join.right_order, join.counts):
        digest.update(np.ascontiguousarray(array).tobytes())
    for start, stop in join.chunks(10_000):
        for array in join.pairs(start, stop, join.left_order, join.right_order):
            digest.update(np.ascontiguousarray(array).tobytes())
    ranks = np.random.default_rng(1).permutation(join.right_order.size)
    best, probabilities, counters = join.best(0, n, ranks)
    digest.update(best.tobytes() + probabilities.tobytes())
    digest.update(repr((counters, join.counters)).encode())
    return digest.hexdigest()[:16]


def check_arrow(bench: Bench) -> None:
    """The worker's path, from Arrow to Arrow, in every shape."""
    left, right = Work(bench.pick(20_000, 20)).tables()
    condition = TimingCondition(mutual_deadline("500ms"), 0.8)
    shapes = [("inner", emit, True) for emit in ("pairs", "lists", "best")]
    shapes += [("left", "counts", False), ("semi", "pairs", False), ("anti", "pairs", False)]
    for how, emit, probability in shapes:
        shape = {"how": how, "emit": emit, "probability": probability}
        check_tables(bench, f"Arrow, {how}, {emit}", left, right, condition, **shape)


def check_tables(
    bench: Bench,
    name: str,
    left: pa.Table,
    right: pa.Table,
    condition: TimingCondition,
    **given: Any,
) -> None:
    """Correlate two tables of microseconds on both backends: the same rows, in the same order."""
    from coincide import correlate_tables

    bench.say(f"equal on {name}")
    options = CorrelateOptions(unit="us", batch_pairs=30_000)
    found = {
        backend: correlate_tables(left, right, condition, backend=backend, options=options, **given)  # type: ignore[arg-type]
        for backend in ("gpu", "cpu")
    }
    bench.check_equal(name, {backend: _digest(table) for backend, table in found.items()})


def _digest(table: pa.Table) -> str:
    return hashlib.sha256(repr(table.combine_chunks().to_pydict()).encode()).hexdigest()[:16]


def check_pairs(bench: Bench, backends: dict[str, Any], work: Work) -> int:
    """All pairs of a dense join, 10^8 in a full run. Returns how many."""
    bench.say(f"equal on the pairs of {work.events:,} dense events")
    left, right = work.sides()
    answers, pairs = {}, 0
    for who, package in backends.items():
        join = package.EventJoin(left, right, IntervalPairs(work.window), threads=bench.cores)
        digest = hashlib.sha256()
        for run in join.chunks(PAIRS_AT_ONCE):
            for array in join.pairs(*run, join.left_order, join.right_order):
                digest.update(np.ascontiguousarray(array).tobytes())
        pairs = int(join.offsets[-1])
        answers[who] = (pairs, digest.hexdigest()[:16])
    bench.check_equal("dense pairs", answers)
    bench.figure("dense pairs, identical", pairs, "", bench.pick(1e8, 0.0))
    return pairs
