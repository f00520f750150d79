"""What a launch takes the host, and what a block of a join does, whatever its size."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest import mock

from bench.experiment import Bench
from bench.gpu.clock import simulated
from bench.gpu.prepared import prepared_join
from bench.gpu.works import Work

LAUNCH_BAR = 15.0
"""Microseconds of host time."""


def time_launches(bench: Bench) -> None:
    """Host time of a launch of each kernel of a join, and of a block with all that it does.

    A block waits for the device where its size is not known before: those waits are in its time.
    """
    from gpu_kernels.join import Block

    bench.say("launching")
    events = bench.pick(1000, 20)
    prepared = prepared_join(Work(events))()

    def one() -> None:
        block = Block(prepared.banded, 0, events)
        block.fill(prepared.left_order, prepared.right_order)

    with recorded() as launches:
        one()
    # The last first: what a kernel writes is scanned in place, and read so by those after it.
    for name, (kernel, blocks, arguments) in reversed(launches.items()):
        seconds = seconds_of(partial(kernel.launch, blocks, *arguments), bench.pick(200, 1))
        bench.figure(
            f"host time of a launch, {name}", 1e6 * seconds, "µs", LAUNCH_BAR, at_least=False
        )
    bench.figure("host time of a block", 1e6 * seconds_of(one, bench.pick(50, 1)), "µs")


Launch = tuple[Any, int, tuple[Any, ...]]


@contextmanager
def recorded() -> Iterator[dict[str, Launch]]:
    """The last launch of each kernel, by name."""
    from gpu_kernels.kernels.compilation import Kernel

    launches: dict[str, Launch] = {}
    real = Kernel.launch

    def launch(kernel: Any, blocks: int, *arguments: Any) -> None:
        launches[kernel.py_func.__name__] = kernel, blocks, arguments
        real(kernel, blocks, *arguments)

    with mock.patch.object(Kernel, "launch", launch):
        yield launches


def seconds_of(job: Callable[[], Any], times: int) -> float:
    """The time of one of several runs, once the device has nothing else to do."""
    job()
    _wait()
    started = time.perf_counter()
    for _ in range(times):
        job()
    taken = time.perf_counter() - started
    _wait()
    return taken / times


def _wait() -> None:
    if not simulated():
        import cupy

        cupy.cuda.get_current_stream().synchronize()
