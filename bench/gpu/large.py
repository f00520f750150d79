"""A large sparse join on a GPU: sorted and counted, with and without the copies from and to the host."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bench.experiment import Bench
from bench.gpu.clock import device_seconds
from bench.gpu.prepared import prepared_join
from bench.gpu.works import Work
from coincide.model.timestamps import IntervalPairs

BAR_MS = 50.0
"""On the device, from arrays that are there already."""


def time_large(bench: Bench, work: Work) -> None:
    """Note both times, and check that both ways count the same."""
    from gpu_kernels import EventJoin

    bench.say("a large sparse join")
    left, right = work.sides()
    jobs: dict[str, tuple[Callable[[], int], float | None]] = {
        "sorted and counted on the device": (_on_device(work), BAR_MS),
        "copied in, sorted, counted and copied back": (
            lambda: int(EventJoin(left, right, IntervalPairs(work.window)).counts.sum()),
            None,
        ),
    }
    bench.check_equal("a large sparse join", {name: job() for name, (job, _) in jobs.items()})
    size = f"{len(left):,} x {len(right):,}"
    for name, (job, bar) in jobs.items():
        times = [1e3 * device_seconds(job) for _ in range(bench.rounds(3))]
        middle = float(np.median(times))
        bench.figure(f"{size}, {name}", middle, "ms", bar, at_least=False, spread=times)


def _on_device(work: Work) -> Callable[[], int]:
    """Sort, choose classes, fill buffers, count."""
    from gpu_kernels.join import Block

    prepare = prepared_join(work)

    def job() -> int:
        banded = prepare().banded
        counts = [Block(banded, *part).counts for part in banded.blocks(0, work.events)]
        return sum(int(each.sum()) for each in counts)

    return job
