"""Time against the number of events at fixed density: the exponent should be near 1."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import numpy as np

from bench.events import Load
from bench.experiment import Bench, Experiment
from bench.joins import local_join, spark_join
from bench.sessions import any_frame, consume, parquet_frames, spark_session
from bench.timing import Timing

RATE = 4.0
SIZES = (1_000_000, 2_000_000, 4_000_000, 8_000_000)
QUICK_SIZES = (2_000, 4_000, 8_000)
EXPONENT_BAR = 1.15


def run(bench: Bench) -> None:
    """Fit the exponent of counting in one process and, if asked for, on Spark."""
    loads = [Load(size, RATE) for size in bench.pick(SIZES, QUICK_SIZES)]
    bench.note(sizes=[load.events for load in loads], rate=RATE)
    _local(bench, loads)
    if "spark" in bench.flags:
        _spark(bench, loads)


def _local(bench: Bench, loads: list[Load]) -> None:
    tables = [load.tables() for load in loads]
    works = [
        lambda pair=pair: local_join(*pair, "counts", bench.cores).num_rows  # type: ignore[misc]
        for pair in tables
    ]
    _fit(bench, "one process", loads, works)


def _spark(bench: Bench, loads: list[Load]) -> None:
    with spark_session(bench) as spark, ExitStack() as stack:
        frames = [stack.enter_context(parquet_frames(bench, spark, load)) for load in loads]
        works = [
            lambda pair=pair: consume(spark_join(*map(any_frame, pair), "counts"))  # type: ignore[misc]
            for pair in frames
        ]
        _fit(bench, "Spark", loads, works)


def _fit(bench: Bench, engine: str, loads: list[Load], works: list[Callable[[], object]]) -> None:
    names = [f"{load.events:,}" for load in loads]
    times = bench.alternate(f"{engine}, counts", dict(zip(names, works, strict=True)), rounds=3)
    value, spread = exponent([load.events for load in loads], list(times.values()))
    bench.figure(f"{engine}: exponent", value, "", EXPONENT_BAR, at_least=False, spread=spread)


def exponent(sizes: list[int], times: list[Timing]) -> tuple[float, tuple[float, float]]:
    """Slope of log time over log size: of the medians, and the smallest and largest of a round."""
    each = [_slope(sizes, seconds) for seconds in zip(*(t.seconds for t in times), strict=True)]
    return _slope(sizes, [time.median for time in times]), (min(each), max(each))


def _slope(sizes: list[int], seconds: list[float] | tuple[float, ...]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


ABOUT = """\
Counting in one process at a fixed density of 4 events a second: the exponent of time over events.
"""

EXPERIMENT = Experiment(
    summary="exponent of time against the number of events",
    run=run,
    title="Growth",
    about=ABOUT,
    flags={"spark": "Fit it on Spark too; needs Java."},
)
