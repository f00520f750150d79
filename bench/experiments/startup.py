"""How long the first join takes, when kernels must be compiled, and how long the next."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.events import CONFIDENCE, DEADLINE_US, Load
from bench.experiment import Bench, Experiment
from bench.machine import ROOT
from bench.timing import Timing, timed

LOAD = Load(100, 100.0)
BARS_S = {"first join": 15.0, "next join": 3.0, "imports of numba and pyarrow": None}
"""What is timed, each a whole process, and the bar of each."""


def run(bench: Bench) -> None:
    """Time whole processes: with an empty cache of kernels, then with a full one."""
    bench.note(events=LOAD.events)
    rounds = bench.rounds(3)
    with tempfile.TemporaryDirectory(prefix="coincide-bench-") as name:
        folder = Path(name)
        LOAD.write(folder)
        times = []
        for i in range(rounds):
            bench.say(f"round {i + 1} of {rounds}")
            join = _join(folder)
            # Quick runs do not wait for the compiler.
            cache = bench.pick({"NUMBA_CACHE_DIR": str(folder / f"cache-{i}")}, {})
            commands = join, join, ["-c", "import numba, pyarrow"]
            times.append([_process_seconds(command, cache) for command in commands])
    for (label, bar), of_rounds in zip(BARS_S.items(), zip(*times, strict=True), strict=True):
        wall, processor = (Timing(seconds) for seconds in zip(*of_rounds, strict=True))
        bench.report.timings[label] = wall
        bench.figure(label, wall.median, "s", bar, at_least=False, spread=wall.seconds)
        told = f"{label}: processor time"
        bench.figure(told, processor.median, "s", spread=processor.seconds)


def _join(folder: Path) -> list[str]:
    """Arguments of Python to join two small files in one process."""
    return [
        *("-m", "coincide.command_line", "join"),
        *(str(folder / "left.parquet"), str(folder / "right.parquet")),
        *("-o", str(folder / "pairs.parquet"), "--overwrite", "--engine", "local"),
        *("--mutual-deadline", f"{DEADLINE_US}us", "--confidence", str(CONFIDENCE)),
    ]


def _process_seconds(arguments: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Wall and processor time of a Python process."""
    before = _children_seconds()
    wall, _ = timed(lambda: _python(arguments, environment))
    return wall, _children_seconds() - before


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _python(arguments: list[str], environment: dict[str, str]) -> None:
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)} failed: {done.stderr.strip()}")


ABOUT = """\
A 100-row `coincide join --engine local` in a new process: right after installation, when kernels are
compiled, and from then on.
"""

EXPERIMENT = Experiment(
    summary="wall time of a first join and of the next, compilation included",
    run=run,
    title="Start-up",
    about=ABOUT,
)
