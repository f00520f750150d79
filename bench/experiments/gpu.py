"""The GPU against the CPU: the same matches to the bit, then how fast."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from bench.charts import Chart
from bench.experiment import Bench, Experiment
from bench.gpu_clock import device_seconds, simulated
from bench.gpu_large import time_large
from bench.gpu_streams import check_streams, sweep_blocks
from bench.timing import Timing
from event_model.condition import TimingCondition, Window
from event_model.options import CorrelateOptions
from event_model.predicates import mutual_deadline
from event_model.timestamps import IntervalEvents

GPU, CPU = "GPU", "CPU"
BESIDE, WAITED = "beside the kernels", "waited for"
FILL_BAR, COUNT_BAR = 60.0, 40.0
"""Percent of the measured copy bandwidth."""
END_TO_END_BAR = 10.0
_PAIRS_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class Work:
    """A join: sizes, density, condition.

    Parameters
    ----------
    events : int
        Of each side.
    rate : float
        Events per second of each side, in each group.
    confidence : float
    deadline_us : int
    groups : int
    classes : int or None
    """

    events: int
    rate: float = 100.0
    confidence: float = 0.8
    deadline_us: int = 500_000
    groups: int = 1
    classes: int | None = None

    @property
    def window(self) -> Window:
        """The condition."""
        return Window(-self.deadline_us, self.deadline_us, self.confidence)

    def sides(self) -> tuple[IntervalEvents, IntervalEvents]:
        """Both sides, seeded."""
        left, right = (self._side(seed) for seed in (1, 2))
        return left, right

    def _side(self, seed: int) -> IntervalEvents:
        random = np.random.default_rng(seed)
        span = int(self.events / self.rate / self.groups * 1e6)
        begin = np.sort(random.integers(0, max(1, span), self.events))
        length = random.integers(20_000, 200_000, self.events, endpoint=True)
        group = random.integers(0, self.groups, self.events) if self.groups > 1 else None
        return IntervalEvents(begin, begin + length, group, self.groups)

    def tables(self) -> tuple[pa.Table, pa.Table]:
        """Both sides in Arrow."""
        left, right = (
            pa.table(
                {"id": np.arange(len(side)), "min_time": side.min_time, "max_time": side.max_time}
            )
            for side in self.sides()
        )
        return left, right


def run(bench: Bench) -> None:
    """Equality first; then throughput, sweeps and the bars."""
    backends = _backends()
    _note_device(bench)
    for name, case in _adversarial(bench.pick(20_000, 20)):
        _check(bench, backends, name, case)
    _check_arrow(bench)
    check_streams(bench)
    dense = Work(bench.pick(1_100_000, 40))
    _check_pairs(bench, backends, dense)
    bandwidth = _copy_bandwidth(bench)
    _throughput(bench, backends, dense, bandwidth)
    _overlap(bench, backends[GPU], dense)
    large = Work(bench.pick(10_000_000, 40), rate=4.0)
    time_large(bench, *large.sides(), large.window)
    _end_to_end(bench)
    _sweeps(bench, backends)
    sweep_blocks(bench)


def _backends() -> dict[str, Any]:
    """Both packages.

    Raises
    ------
    BackendError
        If there is no GPU; it says what to do.
    """
    import cpu_fallback
    import gpu_kernels
    from gpu_kernels import device

    device.require()
    return {GPU: gpu_kernels, CPU: cpu_fallback}


def _note_device(bench: Bench) -> None:
    if simulated():
        bench.note(device="Numba's CUDA simulator: no GPU, and no time means anything")
        return
    import cupy

    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    bench.note(
        device=properties["name"].decode(),
        capability=f"{properties['major']}.{properties['minor']}",
        driver=cupy.cuda.runtime.driverGetVersion(),
        runtime=cupy.cuda.runtime.runtimeGetVersion(),
        memory_gib=round(properties["totalGlobalMem"] / 2**30, 1),
    )


def _adversarial(n: int) -> Iterator[tuple[str, Callable[[], tuple[Any, Any, Window]]]]:
    """Joins on which kernels go wrong, if they do."""
    random = np.random.default_rng(7)

    def side(low: np.ndarray, length: np.ndarray, groups: int = 1) -> IntervalEvents:
        group = random.integers(-1, groups, low.size) if groups > 1 else None
        return IntervalEvents(low, low + length, group, groups)

    def drawn(size: int, span: int, longest: int, groups: int = 1) -> IntervalEvents:
        low, length = random.integers(-span, span, size), random.integers(0, longest + 1, size)
        return side(low, length, groups)

    wide, narrow = Window(-500, 500, 0.8), Window(-3, 4, 0.2)
    few = max(10, n // 20)
    yield "random", lambda: (drawn(n, 50 * n, 200), drawn(n, 50 * n, 200), wide)
    yield "narrow window", lambda: (drawn(n, 50 * n, 200), drawn(n, 50 * n, 200), narrow)
    yield (
        "certainty",
        lambda: (drawn(n, 50 * n, 200), drawn(n, 50 * n, 200), Window(-500, 500, 1.0)),
    )
    yield "many keys", lambda: (drawn(n, 5 * n, 99, n // 9), drawn(n, 5 * n, 99, n // 9), wide)
    yield "instants", lambda: (drawn(n, 20 * n, 0), drawn(n, 20 * n, 0), wide)
    yield "one burst", lambda: (drawn(few, 10, 60), drawn(few, 10, 60), wide)
    yield "empty side", lambda: (drawn(0, 9, 9), drawn(n, 50 * n, 9), wide)
    yield "huge times", lambda: (
        drawn(few, 2**60, 2**59), drawn(few, 2**60, 2**59), Window(-(2**59), 2**59, 0.5)
    )  # fmt: skip
    yield "equal events", lambda: (
        side(np.zeros(few, np.int64), np.full(few, 50)), drawn(few, 700, 90), wide
    )  # fmt: skip


def _check(bench: Bench, backends: dict[str, Any], name: str, make: Callable[[], Any]) -> None:
    bench.say(f"equal on {name}")
    left, right, window = make()
    for classes in (None, 1, 16):
        answers = {
            who: _everything(package.IntervalJoin(left, right, window, classes=classes), package)
            for who, package in backends.items()
        }
        bench.check_equal(f"{name}, classes {classes or 'chosen'}", answers)


def _everything(join: Any, package: Any) -> str:
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


def _check_arrow(bench: Bench) -> None:
    """The worker's path, from Arrow to Arrow, in every shape."""
    from spark_plugin.worker import correlate_tables

    left, right = Work(bench.pick(20_000, 20)).tables()
    condition = TimingCondition(mutual_deadline("500ms"), 0.8)
    shapes = [("inner", emit, True) for emit in ("pairs", "lists", "best")]
    shapes += [("left", "counts", False), ("semi", "pairs", False), ("anti", "pairs", False)]
    for how, emit, probability in shapes:
        bench.say(f"equal from Arrow to Arrow, {how}, {emit}")
        answers = {}
        for backend in ("gpu", "cpu"):
            found = correlate_tables(
                left, right, condition, how=how, emit=emit, probability=probability,  # type: ignore[arg-type]
                backend=backend, options=CorrelateOptions(unit="us", batch_pairs=30_000),  # type: ignore[arg-type]
            )  # fmt: skip
            answers[backend] = hashlib.sha256(repr(_bytes(found)).encode()).hexdigest()[:16]
        bench.check_equal(f"Arrow, {how}, {emit}", answers)


def _bytes(table: pa.Table) -> list[Any]:
    columns = table.combine_chunks().columns
    return [column.to_pylist() for column in columns]


def _check_pairs(bench: Bench, backends: dict[str, Any], work: Work) -> None:
    """All pairs of a dense join, 10^8 in a full run."""
    bench.say(f"equal on the pairs of {work.events:,} dense events")
    left, right = work.sides()
    answers, pairs = {}, 0
    for who, package in backends.items():
        join = package.IntervalJoin(left, right, work.window, threads=bench.cores)
        digest = hashlib.sha256()
        for run in join.chunks(_PAIRS_AT_ONCE):
            for array in join.pairs(*run, join.left_order, join.right_order):
                digest.update(np.ascontiguousarray(array).tobytes())
        pairs = int(join.offsets[-1])
        answers[who] = (pairs, digest.hexdigest()[:16])
    bench.check_equal("dense pairs", answers)
    bench.figure("dense pairs, identical", pairs, "", bench.pick(1e8, 0.0))


def _copy_bandwidth(bench: Bench) -> float:
    """Bytes per second that a copy on the device reads and writes together; 0 in the simulator."""
    if simulated():
        return 0.0
    import cupy

    bench.say("copying on the device")
    source = cupy.zeros(bench.pick(1 << 30, 1 << 24), cupy.uint8)
    target = cupy.empty_like(source)
    seconds = [device_seconds(lambda: cupy.copyto(target, source)) for _ in range(6)][1:]
    found = 2 * source.nbytes / float(np.median(seconds))
    bench.figure("copy bandwidth of the device", found / 1e9, "GB/s")
    return found


def _throughput(bench: Bench, backends: dict[str, Any], work: Work, bandwidth: float) -> None:
    """Count and fill of the dense case, GPU and CPU; with the share of the copy bandwidth."""
    left, right = work.sides()

    def counted(package: Any) -> Any:
        join = package.IntervalJoin(left, right, work.window, threads=bench.cores)
        return int(join.counts.sum())

    def filled(package: Any) -> Any:
        join = package.IntervalJoin(left, right, work.window, threads=bench.cores)
        return sum(
            join.pairs(*run, join.left_order, join.right_order)[0].size
            for run in join.chunks(_PAIRS_AT_ONCE)
        )

    for name, job in (("counts", counted), ("pairs", filled)):
        timings = bench.alternate(
            f"dense, {name}",
            {who: partial(job, package) for who, package in backends.items()},
            rounds=3,
        )
        bench.check_equal(f"dense, {name}", {who: t.answer for who, t in timings.items()})
        bench.ratio(f"dense, {name}: CPU / GPU, host to host", timings[CPU], timings[GPU])
        _rates(bench, f"dense, {name}", work.events, timings)
    _device_share(bench, backends[GPU], work, bandwidth)


def _rates(bench: Bench, label: str, events: int, timings: dict[str, Timing]) -> None:
    for who, timing in timings.items():
        bench.figure(f"{label}: {who}", 2 * events / timing.median / 1e6, "M events/s")


def _device_share(bench: Bench, package: Any, work: Work, bandwidth: float) -> None:
    """Time of the kernels alone, and the bytes that they must move over it."""
    from gpu_kernels.blocks import Block

    if not bandwidth:
        return
    left, right = work.sides()
    join = package.IntervalJoin(left, right, work.window)
    pairs, n = int(join.offsets[-1]), join.left_order.size
    candidates = join.counters.candidates
    import cupy

    left_values, right_values = (cupy.asarray(o) for o in (join.left_order, join.right_order))
    sides = join._sides
    parts = list(sides.blocks(0, n))

    def count() -> None:
        for part in parts:
            _ = Block(sides, *part).counts

    def fill() -> None:
        for part in parts:
            Block(sides, *part).fill(left_values, right_values)

    count()
    count_seconds = float(np.median([device_seconds(count) for _ in range(5)]))
    fill_seconds = float(np.median([device_seconds(fill) for _ in range(5)]))
    # Counting must read both sides' midpoints and lengths and write counts; probing reads the shells.
    count_bytes = 16 * (n + join.right_order.size) + 8 * n + 16 * join.counters.probed
    # Filling must read a target's value and write two numbers for each pair.
    fill_bytes = 24 * pairs
    bench.note(candidates=candidates, pairs=pairs)
    bench.figure("count, device", count_seconds * 1e3, "ms")
    bench.figure("fill with its count, device", fill_seconds * 1e3, "ms")
    count_share = 100 * count_bytes / count_seconds / bandwidth
    fill_share = 100 * fill_bytes / fill_seconds / bandwidth
    bench.figure("count, of the copy bandwidth", count_share, "%", COUNT_BAR)
    bench.figure("fill, of the copy bandwidth", fill_share, "%", FILL_BAR)
    bench.figure("pairs filled on the device", pairs / fill_seconds / 1e9, "G pairs/s")


def _overlap(bench: Bench, package: Any, work: Work) -> None:
    """All pairs, host to host: copies beside the kernels, against copies that are waited for."""
    from gpu_kernels import transfers

    left, right = work.sides()

    def filled(overlap: bool) -> int:
        transfers.current().overlap = overlap
        join = package.IntervalJoin(left, right, work.window)
        return sum(
            join.pairs(*run, join.left_order, join.right_order)[0].size
            for run in join.chunks(_PAIRS_AT_ONCE)
        )

    try:
        timings = bench.alternate(
            "copies", {WAITED: lambda: filled(False), BESIDE: lambda: filled(True)}, rounds=3
        )
        bench.note(pinned=transfers.current().overlap)
    finally:
        transfers.release()
    bench.check_equal("copies", {who: t.answer for who, t in timings.items()})
    bench.ratio(f"copies {WAITED} / {BESIDE}, pairs", timings[WAITED], timings[BESIDE])


def _end_to_end(bench: Bench) -> None:
    """Arrow in, Arrow out."""
    from spark_plugin.worker import correlate_tables

    left, right = Work(bench.pick(4_000_000, 30)).tables()
    condition = TimingCondition(mutual_deadline("500ms"), 0.8)
    options = CorrelateOptions(unit="us", threads=bench.cores)
    for emit, bar in (("counts", END_TO_END_BAR), ("lists", None), ("best", None)):

        def job(backend: str, emit: str = emit) -> int:
            return correlate_tables(
                left,
                right,
                condition,
                emit=emit,
                backend=backend,
                options=options,  # type: ignore[arg-type]
            ).num_rows

        timings = bench.alternate(
            f"Arrow to Arrow, {emit}", {GPU: lambda: job("gpu"), CPU: lambda: job("cpu")}, rounds=3
        )
        bench.check_equal(f"Arrow to Arrow, {emit}", {w: t.answer for w, t in timings.items()})
        bench.ratio(f"Arrow to Arrow, {emit}: CPU / GPU", timings[CPU], timings[GPU], bar)


def _sweeps(bench: Bench, backends: dict[str, Any]) -> None:
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
                join = package.IntervalJoin(
                    *sides, work.window, classes=work.classes, threads=bench.cores
                )
                return int(join.counts.sum())

            timings = bench.alternate(
                f"{name} {value:g}, counts",
                {who: partial(job, package) for who, package in backends.items()},
                rounds=2,
            )
            bench.check_equal(f"{name} {value:g}", {who: t.answer for who, t in timings.items()})
            for who, timing in timings.items():
                rates[who].append(2 * work.events / timing.median / 1e6)
        bench.chart(
            Chart(
                name, f"Counting, host to host, by {name}", axis, "million events/s",
                list(map(float, chosen)), rates, log_x=name != "confidence", log_y=True,
            )
        )  # fmt: skip


ABOUT = """\
The GPU kernels against the CPU's in one process, no Spark: first the same matches, order and probability
bits on random and adversarial joins, on 10^8 pairs, and from Arrow to Arrow, and the same pairs and
counters of stream correlators; then times, of streams by the size of the block. The share of the copy
bandwidth is the bytes that a kernel must move over its time, against a copy on the device in the same
run. Needs an NVIDIA GPU and Python, NumPy, Numba-CUDA, CuPy and PyArrow, nothing else.
"""

EXPERIMENT = Experiment(
    summary="GPU kernels: equal to the CPU, and how fast",
    run=run,
    title="GPU",
    about=ABOUT,
    needs="an NVIDIA GPU, cupy, numba-cuda",
)
