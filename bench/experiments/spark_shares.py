"""How much of a job of Spark is the join, which is all that a GPU could take over."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

from bench.experiment import Bench, Experiment
from bench.sessions import consume, spark_session
from bench.spark_jobs import JOINS, WORKS, in_files, join_alone, sides, spark_job

JOB, JOIN = "job", "join alone"
_WAYS = "exchange", "files"


def run(bench: Bench) -> None:
    """Time the jobs, and their joins on as many cores in one process."""
    tables = {name: sides(bench.pick(*works)) for name, works in WORKS.items()}
    with (
        tempfile.TemporaryDirectory(prefix="coincide-bench-") as folder,
        spark_session(bench) as spark,
    ):
        frames = {
            name: in_files(spark, Path(folder) / name, *each) for name, each in tables.items()
        }
        for name, way, emit in JOINS:
            if way not in _WAYS:
                continue
            label = f"{name}, {emit}, {way}"
            job = partial(spark_job, frames[name], way, emit)
            alone = partial(join_alone, tables[name], emit, bench.cores)
            works = {
                JOB: lambda job=job: consume(job()),
                JOIN: lambda alone=alone: alone().num_rows,
            }
            times = bench.alternate(label, works, rounds=3)
            shares = [b / a for a, b in zip(times[JOB].seconds, times[JOIN].seconds, strict=True)]
            share = times[JOIN].median / times[JOB].median
            bench.figure(
                f"{label}: share of the join", 100 * share, "%", spread=[100 * s for s in shares]
            )
            bench.keep()


ABOUT = """\
Whole jobs of Spark on the CPU, Parquet in, to the noop sink, planning included, next to the same join from
Arrow to Arrow in one process with as many cores. Their quotient is about the share of the join. It may be
above 100 %, as tables of results are kept there. A GPU can take over no more than that share. *Sparse* has
4 events a second, *dense* 100, *many candidates* 4,000.
"""

EXPERIMENT = Experiment(
    summary="Spark: how much of a job is the join, which is all that a GPU could take over",
    run=run,
    title="Spark: the share of the join",
    about=ABOUT,
    needs="Java",
)
