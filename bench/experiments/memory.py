"""Memory of Spark's Python workers, on many events and on more than 10^9 pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.events import Load
from bench.experiment import Bench, Experiment
from bench.joins import spark_join
from bench.processes import PeakMemory, peak_memory
from bench.sessions import any_frame, consume, parquet_frames, rows_and_pairs, spark_session
from bench.timing import timed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MANY_EVENTS = Load(4_000_000, 4.0)
MANY_PAIRS = Load(400_000, 3_500.0)
QUICK_EVENTS = Load(4_000, 4.0)
QUICK_PAIRS = Load(2_000, 200.0)
WORKER_BAR_GB = 1.5
PAIRS_BAR = 1e9


def run(bench: Bench) -> None:
    """Watch the workers while both loads are counted and their pairs streamed to a consumer."""
    with spark_session(bench) as spark:
        events = bench.pick(MANY_EVENTS, QUICK_EVENTS)
        _watch(bench, spark, "many events", events, WORKER_BAR_GB)
        pairs = _watch(bench, spark, "many pairs", bench.pick(MANY_PAIRS, QUICK_PAIRS))
    bench.figure("many pairs: pairs", pairs, "", PAIRS_BAR)


def _watch(
    bench: Bench, spark: SparkSession, label: str, load: Load, bar: float | None = None
) -> int:
    """Note peak memory of counts and pairs of a load; the number of pairs."""
    bench.note(**{label: {"events": load.events, "rate": load.rate}})
    with parquet_frames(bench, spark, load) as frames:
        left, right = map(any_frame, frames)
        bench.say(f"{label}, counts")
        with peak_memory() as peak:
            seconds, counted = timed(
                lambda: rows_and_pairs(spark_join(left, right, "counts"), "counts")
            )
        _note(bench, f"{label}, counts", peak, seconds, bar)
        bench.say(f"{label}, pairs")
        with peak_memory() as peak:
            seconds, streamed = timed(lambda: _stream(spark_join(left, right, "pairs")))
        _note(bench, f"{label}, pairs", peak, seconds, bar)
    bench.check_equal(f"{label}: pairs", {"counted": counted[1], "streamed": streamed})
    bench.figure(f"{label}, pairs: rate", streamed / seconds / 1e6, "M/s")
    return streamed


def _stream(pairs: DataFrame) -> int:
    """Send all pairs to a sink that drops them; how many there were."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    seen = Observation()
    consume(pairs.observe(seen, F.count(F.lit(1)).alias("n")))
    return int(seen.get["n"])


def _note(bench: Bench, label: str, peak: PeakMemory, seconds: float, bar: float | None) -> None:
    bench.figure(f"{label}: largest worker", peak.worker / 1e9, "GB", bar, at_least=False)
    bench.figure(f"{label}: JVM", peak.jvm / 1e9, "GB")
    bench.figure(f"{label}: time", seconds, "s")


ABOUT = """\
The largest resident set of a Python worker while Spark joins, and while it passes on more pairs than fit.
"""

EXPERIMENT = Experiment(
    summary="peak memory of Spark's Python workers",
    run=run,
    title="Memory",
    about=ABOUT,
    needs="Java",
)
