"""A large sparse join on a GPU: sorted and counted, with and without the copies from and to the host."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bench.experiment import Bench
from bench.gpu_clock import device_seconds
from event_model.condition import Window
from event_model.timestamps import IntervalEvents

BAR_MS = 50.0
"""On the device, from arrays that are there already."""


def time_large(bench: Bench, left: IntervalEvents, right: IntervalEvents, window: Window) -> None:
    """Note both times, and check that both ways count the same."""
    from gpu_kernels import IntervalJoin

    bench.say("a large sparse join")
    jobs: dict[str, tuple[Callable[[], int], float | None]] = {
        "sorted and counted on the device": (_on_device(left, right, window), BAR_MS),
        "copied in, sorted, counted and copied back": (
            lambda: int(IntervalJoin(left, right, window).counts.sum()),
            None,
        ),
    }
    bench.check_equal("a large sparse join", {name: job() for name, (job, _) in jobs.items()})
    size = f"{len(left):,} x {len(right):,}"
    for name, (job, bar) in jobs.items():
        times = [1e3 * device_seconds(job) for _ in range(bench.rounds(3))]
        bench.figure(
            f"{size}, {name}", float(np.median(times)), "ms", bar, at_least=False,
            spread=(min(times), max(times)),
        )  # fmt: skip


def _on_device(left: IntervalEvents, right: IntervalEvents, window: Window) -> Callable[[], int]:
    """Sort, choose classes, fill buffers, count; from a copy that the device keeps."""
    from gpu_kernels.arrays import on_device
    from gpu_kernels.blocks import Block
    from gpu_kernels.buffers import by_midpoint
    from gpu_kernels.preparation import prepared

    copies = [[on_device(side.min_time), on_device(side.max_time)] for side in (left, right)]

    def job() -> int:
        bases, targets = (by_midpoint(*times) for times in copies)
        join = prepared(bases, targets, 1, window, None)
        counts = [Block(join.sides, *part).counts for part in join.sides.blocks(0, bases.size)]
        return sum(int(each.sum()) for each in counts)

    return job
