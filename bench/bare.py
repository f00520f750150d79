"""``python -m bench run gpu`` where only NumPy, Numba, CuPy and PyArrow are installed."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.experiment import Bench, CheckFailedError
from bench.experiments.gpu import EXPERIMENT
from bench.machine import ROOT
from bench.report import Report, short
from coincide.model.errors import BackendError


def run_gpu() -> None:
    """Run the experiment for GPUs and print its figures plainly."""
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Without typer and rich there is one experiment: run gpu.",
    )
    parser.add_argument("words", nargs=2, metavar="run gpu", choices=("run", "gpu"))
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes: does it run, not how fast"
    )
    parser.add_argument("--rounds", type=int, help="rounds to take the median of")
    parser.add_argument("--cores", type=int, default=2, help="cores of the CPU backend")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench")
    parser.add_argument("--record", action="store_true", help="write to bench/results")
    given = parser.parse_args()
    if given.record:
        given.out = ROOT / "bench" / "results"
    try:
        given.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"cannot write to --out {given.out}: {error.strerror}")
    bench = Bench(
        Report("gpu", given.quick),
        cores=given.cores,
        rounds=given.rounds,
        say=lambda text: print(f"gpu: {text}", flush=True),
        out=given.out,
    )
    try:
        EXPERIMENT.run(bench)
    except (BackendError, CheckFailedError) as error:
        raise SystemExit(f"gpu: {error}") from error
    for figure in bench.report.figures:
        verdict = {True: "reached", False: "missed", None: "not judged"}[figure.reached]
        bar = "" if figure.bar is None else f" (bar {short(figure.bar)}: {verdict})"
        print(f"{figure.name}: {short(figure.value)} {figure.unit}{bar}")
    print(f"written to {bench.report.write(given.out)}")
