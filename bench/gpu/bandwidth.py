"""How near the kernels come to what the device's memory can move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.experiment import Bench
from bench.gpu.clock import device_seconds, simulated
from bench.gpu.prepared import prepared_join
from bench.gpu.works import Work

FILL_BAR, COUNT_BAR = 60.0, 40.0
"""Percent of the measured copy bandwidth."""

_LARGER = 16
"""Times the dense case, where memory suffices: what a launch takes then hardly shows."""
_FREE_FOR_PAIRS = 0.25
_PAIR_BYTES = 16


def copy_bandwidth(bench: Bench) -> float:
    """Bytes per second that a copy on the device reads and writes together; 0 in the simulator."""
    if simulated():
        return 0.0
    import cupy

    bench.say("copying on the device")
    source = cupy.zeros(bench.pick(1 << 30, 1 << 24), cupy.uint8)
    target = cupy.empty_like(source)
    seconds = _median_seconds(lambda: cupy.copyto(target, source))
    found = 2 * source.nbytes / seconds
    bench.figure("copy bandwidth of the device", found / 1e9, "GB/s")
    return found


def time_shares(bench: Bench, work: Work, pairs: int, bandwidth: float) -> None:
    """Time of the kernels alone, and the bytes that they must move over it.

    Parameters
    ----------
    bench : Bench
    work : Work
        The dense case; one several times as large is taken if the device can hold its pairs.
    pairs : int
        Of the dense case.
    bandwidth : float
        Of a copy; 0 in the simulator, where there is nothing to time.
    """
    from gpu_kernels import memory
    from gpu_kernels.blocks import Block

    fitting = int(_FREE_FOR_PAIRS * memory.available()) // (_PAIR_BYTES * max(1, pairs))
    work = work.times(bench.pick(min(max(1, fitting), _LARGER), 1))
    bench.say(f"counting and filling {work.events:,} dense events on the device")
    join = prepared_join(work)()
    parts = join.sides.blocks(0, work.events)

    def place() -> list[Block]:
        return [Block(join.sides, *part) for part in parts]

    def count() -> None:
        for part in parts:
            _ = Block(join.sides, *part).counts

    placed = place()
    pairs, probed = (sum(getattr(each, name) for each in placed) for name in ("matches", "probed"))

    def fill() -> None:
        for block in placed:
            block.fill(join.left_order, join.right_order)

    # Counting must read both sides' midpoints and lengths and write counts; probing reads the shells.
    # Filling must read a target's value and write two numbers for each pair.
    needed = {
        "count": (count, (2 * 16 + 8) * work.events + 16 * probed),
        "fill": (fill, 24 * pairs),
    }
    bars = {"count": COUNT_BAR, "fill": FILL_BAR}
    bench.note(dense_events=work.events, pairs=pairs, probed=probed, blocks=len(parts))
    for name, (job, moved) in needed.items():
        seconds = _median_seconds(job)
        bench.figure(f"{name}, device", seconds * 1e3, "ms")
        if bandwidth:
            share = 100 * moved / seconds / bandwidth
            bench.figure(f"{name}, of the copy bandwidth", share, "%", bars[name])
        if name == "fill":
            bench.figure("pairs filled on the device", pairs / seconds / 1e9, "G pairs/s")


def _median_seconds(job: Callable[[], Any]) -> float:
    """Of five, after one that compiles and takes memory."""
    return float(np.median([device_seconds(job) for _ in range(6)][1:]))
