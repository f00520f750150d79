"""Counting by density, confidence threshold, size, classes and keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from bench.experiment import Bench
from bench.gpu.backends import CPU, GPU
from bench.gpu.works import Work
from coincide.model.timestamps import IntervalPairs


def sweep_counts(bench: Bench, backends: dict[str, Any]) -> None:
    """Counts over density, confidence, size, classes and keys."""
    base = Work(bench.pick(1_000_000, 30))
    sizes = [2**k for k in range(10, 25, 2)] if not bench.quick else [2**5]
    sweeps: dict[str, tuple[str, list[float], Callable[[float], Work]]] = {
        "density": ("events per second", [0.01, 4, 25, 100, 400], lambda v: replace(base, rate=v)),
        "confidence": (
            "confidence threshold",
            [0.5, 0.7, 0.8, 0.9, 1.0],
            lambda v: replace(base, confidence=v),
        ),
        "size": (
            "events of each side",
            list(map(float, sizes)),
            lambda v: replace(base, events=int(v), rate=25.0),
        ),
        "classes": ("length classes", [1, 2, 4, 8, 16], lambda v: replace(base, classes=int(v))),
        "keys": ("keys", [1, 100, 10_000], lambda v: replace(base, groups=int(v))),
    }
    for name, (axis, values, work_at) in sweeps.items():
        chosen = bench.pick(values, values[-1:])
        rates: dict[str, list[float]] = {GPU: [], CPU: []}
        for value in chosen:
            work = work_at(value)
            left, right = work.sides()

            def job(package: Any, work: Work = work, sides: Any = (left, right)) -> int:
                join = package.EventJoin(
                    *sides, IntervalPairs(work.window), classes=work.classes, threads=bench.cores
                )
                return int(join.counts.sum())

            jobs = {who: partial(job, package) for who, package in backends.items()}
            timings = bench.compared(f"{name} {value:g}, counts", jobs, rounds=2)
            for who, timing in timings.items():
                rates[who].append(2 * work.events / timing.median / 1e6)
        bench.chart(
            name, f"Counting, host to host, by {name}", axis, "million events/s",
            list(map(float, chosen)), rates, log_x=name != "confidence", log_y=True,
        )  # fmt: skip
