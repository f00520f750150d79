"""From host to host: the GPU and the CPU, and copies while kernels run."""

from __future__ import annotations

from functools import partial
from typing import Any

from bench.experiment import Bench
from bench.gpu.backends import CPU, GPU
from bench.gpu.equality import PAIRS_AT_ONCE
from bench.gpu.works import Work
from bench.timing import Timing
from coincide.model.condition import TimingCondition, mutual_deadline
from coincide.model.options import CorrelateOptions
from coincide.model.timestamps import IntervalPairs

END_TO_END_BAR = 10.0
_BESIDE, _WAITED = "beside the kernels", "waited for"


def time_dense(bench: Bench, backends: dict[str, Any], work: Work) -> None:
    """Count and fill of the dense case, GPU and CPU."""
    left, right = work.sides()

    def counted(package: Any) -> Any:
        join = package.EventJoin(left, right, IntervalPairs(work.window), threads=bench.cores)
        return int(join.counts.sum())

    def filled(package: Any) -> int:
        return _filled(
            package.EventJoin(left, right, IntervalPairs(work.window), threads=bench.cores)
        )

    for name, job in (("counts", counted), ("pairs", filled)):
        jobs = {who: partial(job, package) for who, package in backends.items()}
        timings = bench.compared(f"dense, {name}", jobs, rounds=3)
        bench.ratio(f"dense, {name}: CPU / GPU, host to host", timings[CPU], timings[GPU])
        _rates(bench, f"dense, {name}", work.events, timings)


def _filled(join: Any) -> int:
    """All pairs of a join, in host memory. Returns how many."""
    return sum(
        join.pairs(*run, join.left_order, join.right_order)[0].size
        for run in join.chunks(PAIRS_AT_ONCE)
    )


def _rates(bench: Bench, label: str, events: int, timings: dict[str, Timing]) -> None:
    for who, timing in timings.items():
        bench.figure(f"{label}: {who}", 2 * events / timing.median / 1e6, "M events/s")


def time_copies(bench: Bench, package: Any, work: Work) -> None:
    """All pairs, host to host: copies while kernels run, against copies that are waited for."""
    from gpu_kernels.device import transfers

    left, right = work.sides()

    def filled(overlap: bool) -> int:
        transfers.current().overlap = overlap
        return _filled(package.EventJoin(left, right, IntervalPairs(work.window)))

    try:
        timings = bench.compared(
            "copies", {_WAITED: lambda: filled(False), _BESIDE: lambda: filled(True)}, rounds=3
        )
        bench.note(pinned=transfers.current().overlap)
    finally:
        transfers.release()
    bench.ratio(f"copies {_WAITED} / {_BESIDE}, pairs", timings[_WAITED], timings[_BESIDE])


def time_end_to_end(bench: Bench) -> None:
    """Arrow in, Arrow out, for every `emit`."""
    from coincide import correlate_tables

    work = Work(bench.pick(4_000_000, 30))
    left, right = work.tables()
    condition = TimingCondition(mutual_deadline("500ms"), 0.8)
    options = CorrelateOptions(unit="us", threads=bench.cores)

    def job(backend: str, emit: str) -> int:
        found = correlate_tables(
            left, right, condition, emit=emit, backend=backend, options=options,  # type: ignore[arg-type]
        )  # fmt: skip
        return found.num_rows

    pairs = job("gpu", "pairs")
    for emit in ("counts", "pairs", "lists", "best"):
        label = f"Arrow to Arrow, {emit}"
        jobs = {GPU: partial(job, "gpu", emit), CPU: partial(job, "cpu", emit)}
        timings = bench.compared(label, jobs, rounds=3)
        bar = END_TO_END_BAR if emit == "counts" else None
        bench.ratio(f"{label}: CPU / GPU", timings[CPU], timings[GPU], bar)
        _rates(bench, label, work.events, timings)
        if emit in ("pairs", "lists"):
            for who, timing in timings.items():
                bench.figure(f"{label}: {who}", pairs / timing.median / 1e6, "M pairs/s")
