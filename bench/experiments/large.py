"""Peak memory of a join of files that are larger than what one process should hold."""

from __future__ import annotations

import subprocess
import sys

from bench.events import Load
from bench.experiment import Bench, Experiment
from bench.experiments.pipe import parquet_files
from bench.machine import ROOT

LARGE = Load(20_000_000, 4.0)
PEAK_BAR_GB = 1.5

# The kernel's own count for this process: that of getrusage begins with what its parent held.
_CHILD = """
import sys
from pathlib import Path
from pyarrow import fs
from bench.events import Condition
from bench.joins import timing_condition
from coincide.engine.files.planning import LocalFilesJoin
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.files.result_rows import ParquetRows
left, right, out = sys.argv[1:]
job = LocalFilesJoin(left, right, JoinArguments(timing_condition(Condition())))
with ParquetRows(out, lambda: fs.LocalFileSystem().open_output_stream(out), job.schema) as rows:
    for batch in job.batches():
        rows.write(batch)
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(rows.rows, len(job.plan.slices), status["VmHWM"].split()[0], job.summary.seconds)
"""


def run(bench: Bench) -> None:
    """Join in a process of its own and ask it what it has held."""
    load = bench.pick(LARGE, Load(2_000, 4.0))
    bench.note(events=load.events, rate=load.rate)
    with parquet_files(bench, load, "ordered") as place:
        bench.say("joining")
        files = [str(place.left), str(place.right), str(place.out)]
        done = subprocess.run(
            [sys.executable, "-c", _CHILD, *files], cwd=ROOT, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
    pairs, slices, kilobytes, seconds = map(float, done.stdout.split())
    bench.figure("pairs", pairs, "")
    bench.figure("slices", slices, "")
    bench.figure("seconds, compiling included", seconds, "s")
    bench.figure("peak memory", kilobytes / 1e6, "GB", PEAK_BAR_GB, at_least=False)


ABOUT = """\
20 million events a side at 4 a second, in Parquet files in time order, joined to Parquet slice by slice in
one process.
"""

EXPERIMENT = Experiment(
    summary="peak memory of 20 million events a side in one process",
    run=run,
    title="Larger than memory",
    about=ABOUT,
)
