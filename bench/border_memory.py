"""What border monitors take, stated against measured: ``python -m bench.border_memory QUERIES STREAMS``.

In a process of its own whose allocator gives freed memory back (`measured` sees to it), so that the growth
of the resident set is what is kept.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from typing import NamedTuple

import numpy as np

from bench.borders import BorderLoad, Ranges
from bench.machine import ROOT
from coincide.model.borders.monitor import Monitor
from coincide.model.borders.options import BorderOptions
from cpu_fallback.borders import BorderSearch

_RETURNS_WHAT_IS_FREED = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


class Bytes(NamedTuple):
    """Bytes of an index and of a stream table."""

    queries: int
    streams: int


def new_monitor(ranges: Ranges, streams: int, options: BorderOptions = BorderOptions()) -> Monitor:
    """A monitor on the CPU with queries, and with room for streams."""
    threads = options.threads or 1
    monitor = Monitor(
        ranges.lower.shape[1], options, lambda *given: BorderSearch(*given, threads=threads)
    )
    monitor.add(*ranges)
    monitor.streams.resize(streams)
    return monitor


def resident() -> int:
    """Bytes of this process that are in memory."""
    import psutil

    gc.collect()
    return int(psutil.Process().memory_info().rss)


def measured(queries: int, streams: int) -> tuple[Bytes, Bytes]:
    """Stated and measured bytes of one dimension, from a process of its own."""
    command = [sys.executable, "-m", "bench.border_memory", str(queries), str(streams)]
    environment = {**os.environ, **_RETURNS_WHAT_IS_FREED}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    stated, seen = json.loads(done.stdout)
    return Bytes(*stated), Bytes(*seen)


def _measure(queries: int, streams: int) -> tuple[Bytes, Bytes]:
    warm = BorderLoad(queries=100, streams=100)
    _pushed(new_monitor(warm.ranges(), 100), 100)  # what is compiled, or loaded, is in memory
    ranges = BorderLoad(queries=queries).ranges()
    before = resident()
    monitor = new_monitor(ranges, 0)
    with_queries = resident()
    monitor.streams.resize(streams)
    _pushed(monitor, streams)
    with_streams = resident()
    stated = Bytes(monitor.ranges.nbytes, monitor.streams.nbytes)
    return stated, Bytes(with_queries - before, with_streams - with_queries)


def _pushed(monitor: Monitor, streams: int) -> None:
    values = np.linspace(0, 1, streams)[:, np.newaxis]
    for _ in monitor.push(np.arange(streams), np.zeros(streams, np.int64), values):
        pass


if __name__ == "__main__":
    print(json.dumps(_measure(*map(int, sys.argv[1:]))))
