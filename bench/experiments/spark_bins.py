"""Spans, and causes and effects, on Spark: against SQL that joins by bins of time."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.experiment import Bench, Experiment
from bench.experiments import causality, spans
from bench.sessions import consume, rows_and_pairs, spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from coincide.model.options import Emit

Join = Callable[["DataFrame", "DataFrame", "Emit"], "DataFrame"]
BINS = (600, 3_600, 21_600)
"""Seconds of a bin of spans."""
SPARSE, LONG = "1 M x 1 M spans", "1 M x 1 M spans, ten of a month each"
CASES = {
    SPARSE: replace(spans.CASES[1], name=SPARSE),
    LONG: replace(spans.CASES[4], name=LONG, sizes=(1_000_000, 1_000_000)),
}
BARS: dict[Emit, float] = {"counts": 1.3, "pairs": 1.0}
SCENE = replace(causality.SCENES[0], name="1 M causes x 1 M effects", bar=1.5)
REACHES = (1, 2, 4)
"""Bins in a window of time."""


def run(bench: Bench) -> None:
    """Time both joins against their best bins."""
    with spark_session(bench) as spark:
        for case in CASES.values():
            sides = [_seconds(side.table()) for side in case.sides(bench.pick(1, 1_000))]
            with _files(spark, sides) as frames:
                for emit, bar in BARS.items():
                    _compare(bench, f"{case.name}, {emit}", frames, emit, _of_spans, _bins(), bar)
        n = bench.pick(SCENE.events, 3_000)
        with _files(spark, [_shuffled(n, seed) for seed in (1, 2)]) as frames:
            ours, theirs = _of_causes(n)
            _compare(bench, SCENE.name, frames, "pairs", ours, theirs, SCENE.bar)


def _seconds(table: pa.Table) -> pa.Table:
    """With times as timestamps."""
    for name in ("start", "end"):
        times = table[name].cast(pa.timestamp("s")).cast(pa.timestamp("us", "UTC"))
        table = table.set_column(table.column_names.index(name), name, times)
    return table.drop_columns("key")


def _shuffled(n: int, seed: int) -> pa.Table:
    table = causality.random_events(n, False, seed)
    return table.take(pa.array(np.random.default_rng(seed).permutation(n)))


@contextmanager
def _files(spark: SparkSession, sides: list[pa.Table]) -> Iterator[tuple[DataFrame, DataFrame]]:
    with tempfile.TemporaryDirectory(prefix="coincide-bench-") as folder:
        paths = [Path(folder) / f"{i}.parquet" for i in range(2)]
        for path, table in zip(paths, sides, strict=True):
            pq.write_table(table, path, row_group_size=1 << 17)
        left, right = (spark.read.parquet(str(path)) for path in paths)
        yield left, right


def _of_spans(left: DataFrame, right: DataFrame, emit: Emit) -> DataFrame:
    from coincide import correlate, overlapping
    from coincide import spans as lasting

    time = lasting("start", "end")
    return correlate(left, right, overlapping(), left_time=time, right_time=time, emit=emit)


def _bins() -> dict[str, Join]:
    from bench.peers.spark_bins import overlaps

    return {f"bins of {width:,} s": partial(overlaps, width=width) for width in BINS}


def _of_causes(n: int) -> tuple[Join, dict[str, Join]]:
    from bench.peers.spark_bins import causes_and_effects
    from coincide import CausalityCondition, CorrelateOptions, Spatial, Temporal
    from coincide import causality as joined

    window, place = min(SCENE.by_time, n) * causality.TICKS_APART, ("x", "y")
    condition = CausalityCondition([Temporal(0, window), Spatial(SCENE.radius)])

    def ours(causes: DataFrame, effects: DataFrame, emit: Emit) -> DataFrame:
        return joined(
            causes, effects, condition, cause_time="time", effect_time="time", cause_place=place,
            effect_place=place, cause_columns=["id"], effect_columns=["id"],
            options=CorrelateOptions(unit="us"),
        )  # fmt: skip

    theirs = {
        f"{reach + 1} bins of time": partial(
            causes_and_effects, window=window, radius=SCENE.radius, reach=reach
        )
        for reach in REACHES
    }
    return ours, theirs


def _compare(
    bench: Bench,
    label: str,
    frames: tuple[DataFrame, DataFrame],
    emit: Emit,
    ours: Join,
    theirs: dict[str, Join],
    bar: float | None,
) -> None:
    names = bench.pick(list(theirs), list(theirs)[-1:])
    works = {name: partial(_consumed, theirs[name], frames, emit) for name in names}
    best = bench.fastest(f"{label}, Spark SQL", works, rounds=1)
    joins = {"Coincide": ours, f"Spark SQL, {best}": theirs[best]}
    bench.check_equal(
        label, {name: rows_and_pairs(join(*frames, emit), emit) for name, join in joins.items()}
    )
    mine, sql = bench.alternate(
        label, {name: partial(_consumed, join, frames, emit) for name, join in joins.items()},
        rounds=5, warmups=2,
    ).values()  # fmt: skip
    bench.ratio(f"{label}: best Spark SQL", sql, mine, bar)


def _consumed(join: Join, frames: tuple[DataFrame, DataFrame], emit: Emit) -> None:
    consume(join(*frames, emit))


ABOUT = """\
`local[2]`, one session, Parquet in no order of time in, to the noop sink, planning included. Spark SQL puts
each span into all bins of time that it touches, joins bins, and finds a pair in the bin where the later one
begins. For causes and effects each effect is in the bins of all causes that can reach it. The best of three
widths of bins is compared.
"""

EXPERIMENT = Experiment(
    summary="spans, causes and effects on Spark, against SQL by bins of time",
    run=run,
    title="Spans and causes on Spark",
    about=ABOUT,
    needs="Java",
)
