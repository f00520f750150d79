"""Spark whose Python workers use the GPU: the CPU's rows to the bit, and how fast."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.events import Condition
from bench.experiment import Bench, Experiment
from bench.gpu.backends import CPU, GPU, backends, note_device
from bench.gpu.workers import launched, settings
from bench.joins import timing_condition
from bench.sessions import consume, spark_session
from bench.spark_jobs import DENSE, JOINS, WORKS, in_files, sides, spark_job
from coincide import (
    CausalityCondition,
    CorrelateOptions,
    Temporal,
    causality,
    correlate_tables,
    histograms,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from bench.spark_jobs import Frames
    from coincide.model.options import Backend

KEYS = 16
"""Groups that a user's own function joins, one at a time."""
BACKENDS: dict[str, Backend] = {GPU: "gpu", CPU: "cpu"}
_MEMORY = {"spark.driver.memory": "8g", "spark.driver.maxResultSize": "8g"}
"""All rows of a join come to the driver, to be compared."""


def run(bench: Bench) -> None:
    """Equality, case by case, each timed once it is equal."""
    backends()
    note_device(bench)
    with tempfile.TemporaryDirectory(prefix="coincide-bench-") as name:
        told, data = (Path(name) / part for part in ("told", "data"))
        told.mkdir()
        data.mkdir()
        with spark_session(bench, _MEMORY | settings(told)) as spark:
            for case in _cases(bench, spark, data):
                _contest(bench, case, told)
                bench.keep()


@dataclass(frozen=True)
class Case:
    """A job of Spark: what it gives on a backend."""

    name: str
    rows: Callable[[Backend], DataFrame]


def _cases(bench: Bench, spark: SparkSession, folder: Path) -> Iterator[Case]:
    works = {name: bench.pick(*sizes) for name, sizes in WORKS.items()}
    bench.note(**{name: {"events": work.events, "rate": work.rate} for name, work in works.items()})
    frames = {name: in_files(spark, folder / name, *sides(work)) for name, work in works.items()}
    for name, way, emit in JOINS:
        yield Case(f"{name}, {emit}, {way}", partial(spark_job, frames[name], way, emit))
    own = in_files(spark, folder / "own", *map(_with_keys, sides(works[DENSE])))
    yield Case("a function of one's own, applyInArrow", partial(_own_function, own))
    traces = _traces(spark, bench.pick(200_000, 400))
    yield Case("causes and effects, histogram timestamps", partial(_causes, traces))


def _contest(bench: Bench, case: Case, told: Path) -> None:
    """The same rows by both backends, where the workers of one launch kernels and the other's none."""
    answers, users = {}, []
    for who, backend in BACKENDS.items():
        bench.say(f"{case.name}, {who}")
        before = launched(told)
        rows = case.rows(backend).toArrow()
        answers[who] = (rows.num_rows, digest(rows))
        new = launched(told) - before
        users += [who] if new else []
        workers = len({launch.worker for launch in new})
        counts = {"rows": rows.num_rows, "launches": new.total(), "workers": workers}
        bench.note(**{f"{case.name}: {who}": counts})
        del rows
    bench.check_equal(f"{case.name}: rows", answers)
    bench.check_equal(
        f"{case.name}: jobs whose workers launch kernels", {"asked": [GPU], "seen": users}
    )
    works = {who: partial(_consumed, case, backend) for who, backend in BACKENDS.items()}
    times = bench.alternate(case.name, works, rounds=3, warmups=0)
    bench.ratio(f"{case.name}: CPU / GPU", times[CPU], times[GPU])


def _consumed(case: Case, backend: Backend) -> None:
    consume(case.rows(backend))


def digest(rows: pa.Table) -> str:
    """A digest of all rows, floats by their bits: in the order of ids, since Spark's rows have none."""
    ids = [name for name in rows.column_names if name.endswith("_id")]
    rows = rows.sort_by([(name, "ascending") for name in ids])
    found = hashlib.sha256()
    for name in rows.column_names:
        missing = rows[name].is_null().to_numpy()
        values = pc.fill_null(rows[name], pa.scalar(0, rows[name].type)).to_numpy()
        for array in (missing, values):
            found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def _with_keys(table: pa.Table) -> pa.Table:
    return table.append_column("key", pa.array(np.arange(table.num_rows) % KEYS))


def _own_function(frames: Frames, backend: Backend) -> DataFrame:
    condition = timing_condition(Condition())

    def join(left: pa.Table, right: pa.Table) -> pa.Table:
        options = CorrelateOptions(unit="us", threads=1)
        return correlate_tables(
            left, right, condition, probability=True, backend=backend, options=options
        )

    left, right = (frame.groupBy("key") for frame in frames)
    schema = "left_id long, right_id long, probability double"
    return left.cogroup(right).applyInArrow(join, schema)


def _traces(spark: SparkSession, events: int) -> Frames:
    """Causes and effects of two devices, some 40 within reach of each."""
    random = np.random.default_rng(6)
    sides = (
        pa.table({
            "id": np.arange(events),
            "device": pa.array(["quick", "slow"]).take(random.integers(0, 2, events)),
            "seen_at": np.sort(random.integers(0, 8 * events, events)),
        })
        for _ in range(2)
    )  # fmt: skip
    causes, effects = (spark.createDataFrame(side) for side in sides)
    return causes, effects


def _causes(frames: Frames, backend: Backend) -> DataFrame:
    """Effects up to 300 after their causes, both seen with the delays of their devices."""
    delays = pa.table({
        "template": ["quick", "quick", "slow", "slow", "slow"],
        "delay_lower": [3, 10, 5, 40, 70],
        "delay_upper": [10, 40, 40, 70, 90],
        "mass": [0.75, 0.25, 0.5, 0.125, 0.375],
    })  # fmt: skip
    seen = histograms("seen_at", template="device", templates=delays)
    later = CausalityCondition((Temporal(0, 300),), confidence=0.6)
    return causality(*frames, later, cause_time=seen, effect_time=seen, backend=backend)


ABOUT = """\
Joins on Spark by every way and in several shapes, a user's own `applyInArrow`, and causes and effects with
histogram timestamps, with `backend="gpu"` and with `"cpu"`. All rows must be equal, floats bit by bit. The
workers of the GPU's jobs tell which kernels they launch; a job without a launch fails. Times are of whole
jobs, Parquet in, to the noop sink, planning included. *Sparse* has 4 events a second, *dense* 100, *many
candidates* 4,000.
"""

EXPERIMENT = Experiment(
    summary="Spark whose workers use the GPU: equal to the CPU, and how fast",
    run=run,
    title="Spark on a GPU",
    about=ABOUT,
    needs="an NVIDIA GPU, cupy, numba-cuda, Java",
)
