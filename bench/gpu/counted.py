"""What kernels do, by the counters of the virtual GPU: instructions, bytes, launches, waits."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest import mock

import numpy as np

from bench.events import Condition
from bench.experiment import Bench
from bench.gpu.prepared import prepared_join
from bench.gpu.works import Work
from bench.joins import timing_condition
from bench.report import short
from bench.spark_jobs import AGGREGATES, sides
from coincide import (
    CorrelateOptions,
    SequenceReport,
    coincidence_tables,
    correlate_tables,
    sequence_tables,
)
from coincide.model.errors import BackendError

if TYPE_CHECKING:
    from coincide.model.options import Emit

COPY_BAR, PROBE_BAR = 70.0, 200.0
"""PTX instructions a pair and a candidate."""

MOST_GROWTH = 1.1
"""By how much a count may exceed the recorded one."""

EMITS: tuple[Emit, ...] = ("pairs", "counts", "best", "aggregates")

_BARS = {"copy": COPY_BAR, "probe": PROBE_BAR}


class Counts(NamedTuple):
    """Numbers of kernels since the process started."""

    instructions: int
    loaded: int  # Bytes
    stored: int  # Bytes


class Traffic(NamedTuple):
    """What passed between the host and the device since the process started."""

    waits: int  # The host's
    launches: int
    sent: int  # Bytes
    fetched: int  # Bytes


class Counters:
    """The counters of the virtual GPU's driver."""

    def __init__(self) -> None:
        try:
            self._driver = ctypes.CDLL("libcuda.so.1")
            self._driver.virtual_counts  # noqa: B018
        except (OSError, AttributeError) as error:
            raise BackendError(
                "there is no virtual GPU to count on: set the environment that"
                " `python -m tests.virtual_gpu` prints, with VIRTUAL_GPU_COUNTS=1"
            ) from error

    def now(self) -> Counts:
        """What was counted so far."""
        found = (ctypes.c_uint64 * 4)()
        self._driver.virtual_counts(found)
        return Counts(*found[:3])

    def traffic(self) -> Traffic:
        """Likewise."""
        driver = self._driver
        for name in ("waits", "launches", "bytes"):
            getattr(driver, f"virtual_{name}").restype = ctypes.c_uint64
        sent, fetched = map(driver.virtual_bytes, (False, True))
        return Traffic(driver.virtual_waits(), driver.virtual_launches(), sent, fetched)


def count_kernels(bench: Bench, name: str, work: Work) -> None:
    """Each kernel of a join's blocks, and of best matches: for an entry, a candidate or a pair."""
    from gpu_kernels.device.arrays import on_device
    from gpu_kernels.join import Block, Candidates
    from gpu_kernels.kernels.compilation import Kernel

    counters, found = Counters(), dict[str, np.ndarray]()
    real = Kernel.launch

    def launch(kernel: Any, blocks: int, *arguments: Any) -> None:
        before = counters.now()
        real(kernel, blocks, *arguments)
        counted = np.subtract(counters.now(), before)
        own = found.setdefault(kernel.py_func.__name__, np.zeros(4, np.int64))
        own += [*counted, 1]

    bench.say(f"counting, {name}")
    prepared = prepared_join(work)()
    candidates = Candidates(prepared.banded, 0, work.events)
    with mock.patch.object(Kernel, "launch", launch):
        block = Block(prepared.banded, 0, work.events)
        block.fill(prepared.left_order, prepared.right_order)
        launches = int(sum(each[3] for each in found.values()))
        candidates.best(on_device(np.arange(work.events)))
    entries = work.events * prepared.banded.classes
    items = {
        "place": entries,
        "probe": block.probed,
        "scatter": block.probed,
        "copy": block.matches,
        **dict.fromkeys(("most_probable", "nearest", "foremost"), candidates.count),
    }
    bench.note(**{name: {"entries": entries, "candidates": block.probed, "pairs": block.matches}})
    for kernel, count in items.items():
        instructions, loaded, stored, _ = (found[kernel] / count).tolist()
        label = f"{name}, {kernel}"
        bench.figure(
            label,
            instructions,
            "PTX instructions",
            bench.pick(_BARS.get(kernel), None),
            at_least=False,
        )
        bench.figure(label, loaded + stored, "bytes")
    bench.figure(f"{name}, kernels of a block", launches, "launches")


def count_joins(bench: Bench, name: str, work: Work) -> None:
    """A whole join from Arrow to Arrow: what the host waits for, launches and copies."""
    counters = Counters()
    left, right = sides(work)
    condition = timing_condition(Condition(work.deadline_us, work.confidence))
    for emit in EMITS:
        label = f"{name}, {emit}"
        more: Any = {"aggregates": AGGREGATES} if emit == "aggregates" else {}
        bench.say(f"counting, {label}")
        # What a process does once, such as pinning buffers, is not counted.
        for _ in range(2):
            before, instructions = counters.traffic(), counters.now().instructions
            correlate_tables(
                left, right, condition, emit=emit, backend="gpu",
                options=CorrelateOptions(unit="us", threads=1), **more,
            )  # fmt: skip
        found = Traffic(*np.subtract(counters.traffic(), before).tolist())
        events, instructions = 2 * work.events, counters.now().instructions - instructions
        bench.figure(label, found.waits, "waits of the host")
        bench.figure(label, found.launches, "launches")
        bench.figure(label, instructions / events, "PTX instructions an event")
        bench.figure(label, found.sent / events, "bytes sent an event")
        bench.figure(label, found.fetched / events, "bytes fetched an event")


def count_sequences(bench: Bench) -> None:
    """Sequences and sets of three streams of intervals, from Arrow to Arrow: for each that links make."""
    counters = Counters()
    events, gap = bench.pick(4000, 200), 1000
    rng, streams = np.random.default_rng(5), []
    for _ in range(3):
        times = np.sort(rng.integers(0, events * gap, events))
        streams.append({"id": np.arange(events), "min_time": times, "max_time": times + gap})
    windows, longest = [(0, 2 * gap)] * 2, 3 * gap
    for name, ask in (
        ("chains", partial(sequence_tables, streams, windows)),
        ("triangles", partial(sequence_tables, streams, windows, total=(0, longest))),
        ("gatherings", partial(coincidence_tables, streams, 2 * gap)),
    ):
        bench.say(f"counting, {name}")
        report = SequenceReport()
        for _ in range(2):  # As for joins
            before, instructions = counters.traffic(), counters.now().instructions
            ask(
                confidence=0.5, probability=True, backend="gpu", report=report,
                options=CorrelateOptions(threads=1),
            )  # fmt: skip
        found = Traffic(*np.subtract(counters.traffic(), before).tolist())
        tried, instructions = report.summary().tried, counters.now().instructions - instructions
        assert tried
        bench.note(**{name: {"links make": tried, "found": report.summary().found}})
        bench.figure(name, found.waits, "waits of the host")
        bench.figure(name, found.launches, "launches")
        bench.figure(name, instructions / tried, "PTX instructions a tuple")
        bench.figure(name, found.sent / (3 * events), "bytes sent an event")
        bench.figure(name, found.fetched / tried, "bytes fetched a tuple")


def grown(kept: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Figures of a result of `run gpu-counted` that are more than in an earlier one: a line each."""
    before, now = (
        {(each["name"], each["unit"]): each["value"] for each in result["figures"]}
        for result in (kept, found)
    )
    return [
        f"{name}: {short(value)} {unit}, was {short(before.get((name, unit), 0))}"
        for (name, unit), value in now.items()
        if value > MOST_GROWTH * before.get((name, unit), 0)
    ]
