"""How near the kernels come to what the device's memory can move."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from bench.experiment import Bench
from bench.gpu.clock import device_seconds, simulated
from bench.gpu.launches import recorded
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
    seconds = _median_seconds(lambda: cupy.copyto(target, source), bench.pick(5, 1))
    found = 2 * source.nbytes / seconds
    bench.figure("copy bandwidth of the device", found / 1e9, "GB/s")
    return found


def time_shares(bench: Bench, work: Work, pairs: int, bandwidth: float) -> None:
    """Time of the kernels alone for each `emit`, and the bytes that they must move over it."""
    from gpu_kernels.device import memory

    fitting = int(_FREE_FOR_PAIRS * memory.available()) // (_PAIR_BYTES * max(1, pairs))
    work = work.times(bench.pick(min(max(1, fitting), _LARGER), 1))
    bench.say(f"counting and filling {work.events:,} dense events on the device")
    resident = _Resident(work)
    bench.note(
        dense_events=work.events, pairs=resident.pairs, probed=resident.probed,
        blocks=len(resident.parts),
    )  # fmt: skip
    # Counting must read both sides' midpoints and lengths and write counts; probing reads the shells.
    # Filling must read a target's value and write one or two numbers for each pair.
    jobs: dict[str, tuple[Callable[[], Any], int | None, float | None]] = {
        "count": (resident.count, 40 * work.events + 16 * resident.probed, COUNT_BAR),
        "fill": (resident.fill, 24 * resident.pairs, FILL_BAR),
        "fill for lists": (resident.fill_lists, 16 * resident.pairs, None),
        "best": (resident.best, None, None),
    }
    for name, (job, moved, bar) in jobs.items():
        seconds = _median_seconds(job, bench.pick(5, 1))
        bench.figure(f"{name}, on the device", seconds * 1e3, "ms")
        bench.figure(f"{name}, events on the device", 2e-6 * work.events / seconds, "M events/s")
        bench.figure(f"{name}, pairs on the device", 1e-9 * resident.pairs / seconds, "G pairs/s")
        if bandwidth and moved is not None:
            share = 100 * moved / seconds / bandwidth
            bench.figure(f"{name}, of the copy bandwidth", share, "%", bar)
    _time_kernels(bench, resident)


def _time_kernels(bench: Bench, resident: _Resident) -> None:
    """Each kernel alone, on what it was last given."""
    with recorded() as launches:
        resident.count()
        resident.fill()
    # The last first: what a kernel writes is scanned in place, and read so by those after it.
    for name, (kernel, blocks, arguments) in reversed(launches.items()):
        seconds = _median_seconds(partial(kernel.launch, blocks, *arguments), bench.pick(5, 1))
        bench.figure(f"{name}, on the device", seconds * 1e3, "ms")


class _Resident:
    """A join whose sides, and placed blocks, are in device memory."""

    def __init__(self, work: Work) -> None:
        from gpu_kernels.device.arrays import on_device

        self._join = prepared_join(work)()
        self._ranks = on_device(np.arange(work.events))
        self.parts = self._join.banded.blocks(0, work.events)
        self._placed = [self._block(part) for part in self.parts]
        self.pairs = sum(block.matches for block in self._placed)
        self.probed = sum(block.probed for block in self._placed)

    def _block(self, part: tuple[int, int]) -> Any:
        from gpu_kernels.join import Block

        return Block(self._join.banded, *part)

    def count(self) -> None:
        """Counts of all events, from the sorted sides on."""
        for part in self.parts:
            _ = self._block(part).counts

    def fill(self) -> None:
        """Both numbers of all pairs, once counted."""
        for block in self._placed:
            block.fill(self._join.left_order, self._join.right_order)

    def fill_lists(self) -> None:
        """The right numbers of all pairs, once counted."""
        for block in self._placed:
            block.fill(None, self._join.right_order)

    def best(self) -> None:
        """The most probable matches."""
        from gpu_kernels.join import find_best

        for part in self.parts:
            find_best(self._join.banded, self._ranks, *part)


def _median_seconds(job: Callable[[], Any], rounds: int) -> float:
    """The median of some rounds, after one that compiles and takes memory."""
    return float(np.median([device_seconds(job) for _ in range(1 + rounds)][1:]))
