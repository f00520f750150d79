"""The command line: ``python -m bench list``, ``run NAME``, ``run all``, ``report`` and ``picture``."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

from bench.catalogue import experiments
from bench.documentation import write_report
from bench.experiment import Bench, CheckFailedError, Experiment
from bench.machine import ROOT
from bench.report import Report
from bench.speed import picture
from coincide.model.errors import BackendError

RESULTS = Path(__file__).parent / "results"
"""What docs/benchmarks.md is written from: kept with the code."""
SCRATCH = ROOT / "build" / "bench"
"""Where a run leaves its figures that is not recorded."""
PAGE = ROOT / "docs" / "benchmarks.md"

OPTIONS: dict[str, tuple[Any, Any]] = {
    "quick": (
        Annotated[bool, typer.Option("--quick", help="Tiny sizes: does it run, not how fast.")],
        False,
    ),
    "rounds": (
        Annotated[int | None, typer.Option(min=1, help="Rounds to take the median of.")],
        None,
    ),
    "cores": (Annotated[int, typer.Option(min=1, help="Cores of every engine.")], 2),
    "out": (
        Annotated[Path, typer.Option(help="Folder for NAME.json.", show_default="build/bench")],
        SCRATCH,
    ),
    "record": (
        Annotated[
            bool,
            typer.Option("--record", help="Write to bench/results, from which the page is made."),
        ],
        False,
    ),
}
"""What every experiment takes: annotation and default."""

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)
run_app = typer.Typer(
    help="Run an experiment (`bench list` names them); it reports, whatever the figures.",
    no_args_is_help=True,
)


@app.command("list")
def list_experiments() -> None:
    """Name the experiments and what each measures."""
    table = Table(Column("name", no_wrap=True), "measures", "needs", "flags", box=None)
    for name, experiment in experiments().items():
        flags = " ".join(f"--{flag}" for flag in (*experiment.flags, *experiment.options))
        table.add_row(name, experiment.summary, experiment.needs, flags)
    Console().print(table)


@app.command("report")
def write_page(
    results: Annotated[
        Path,
        typer.Option(
            help="Folder of the results.",
            exists=True,
            file_okay=False,
            show_default="bench/results",
        ),
    ] = RESULTS,
    page: Annotated[
        Path,
        typer.Option(
            help="Page to write.", dir_okay=False, writable=True, show_default="docs/benchmarks.md"
        ),
    ] = PAGE,
) -> None:
    """Write docs/benchmarks.md from the results."""
    try:
        missing = write_report(experiments(), results, page)
    except (ValueError, OSError) as error:
        raise typer.BadParameter(str(error)) from error
    note = f"; without a result: {', '.join(missing)}" if missing else ""
    Console().print(f"written to {page}{note}", soft_wrap=True)


@app.command("picture")
def draw_picture(
    results: Annotated[Path, typer.Option(help="Folder of the results.")] = RESULTS,
    folder: Annotated[Path, typer.Option(help="Folder to write to.")] = ROOT / "docs" / "images",
) -> None:
    """Draw the speed of Coincide and of its peers, for README, from the results of `run peers`."""
    try:
        written = picture(results, folder)
    except (ValueError, OSError) as error:
        raise typer.BadParameter(str(error)) from error
    for path in written:
        Console().print(f"written to {path}", soft_wrap=True)


class NoBackendError(typer.Exit):
    """An experiment needs a GPU, and it is missing."""


def run_experiment(
    name: str,
    *,
    quick: bool,
    rounds: int | None,
    cores: int,
    out: Path,
    record: bool = False,
    **given: Any,
) -> Report:
    """Run one experiment, write ``NAME.json`` and print its table; exit with 1 where it fails."""
    if record and out != SCRATCH:
        raise typer.BadParameter(
            "--record writes to bench/results (found --out). Give one of them."
        )
    out = RESULTS if record else out
    try:
        # Before minutes of measuring, not after.
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(f"cannot write to --out {out}: {error.strerror}") from error
    # The stream of now: an experiment may catch what a command prints.
    console, experiment = Console(file=sys.stdout), experiments()[name]
    options = {option: given.get(option, its.default) for option, its in experiment.options.items()}
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(f"{name}: starting")
        bench = Bench(
            Report(name, quick),
            cores=cores,
            rounds=rounds,
            flags=frozenset(flag for flag in experiment.flags if given.get(flag)),
            options=options,
            tell=lambda text: console.print(text, soft_wrap=True, markup=False, highlight=False),
            say=lambda text: progress.update(task, description=f"{name}: {text}"),
            out=out,
        )
        try:
            experiment.run(bench)
        except CheckFailedError as error:
            console.print(f"[red]{name}: {error}[/red]")
            raise typer.Exit(1) from error
        except BackendError as error:
            console.print(f"{name}: {error}", soft_wrap=True)
            raise NoBackendError(1) from error
    console.print(*bench.report.tables())
    path = bench.report.write(out)
    console.print(f"written to {path}", soft_wrap=True)
    return bench.report


def _command(name: str, experiment: Experiment) -> Callable[..., None]:
    """A command whose options are those of all experiments and those of this one."""
    options = dict(OPTIONS)
    for flag, text in experiment.flags.items():
        options[flag] = Annotated[bool, typer.Option(f"--{flag}", help=text)], False
    for option, its in experiment.options.items():
        typed = typer.Option(help=its.help, min=its.least)
        options[option] = Annotated[its.kind, typed], its.default

    def command(**given: Any) -> None:
        run_experiment(name, **given)

    command.__doc__ = experiment.summary
    return _with_options(command, options)


def _with_options(
    command: Callable[..., None], options: dict[str, tuple[Any, Any]]
) -> Callable[..., None]:
    """Give a function of keywords the signature from which Typer reads its options."""
    command.__annotations__ = {option: kind for option, (kind, _) in options.items()}
    command.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter(option, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for option, (kind, default) in options.items()
        ]
    )
    return command


for _name, _experiment in experiments().items():
    run_app.command(_name)(_command(_name, _experiment))


def _run_all(**given: Any) -> None:
    """All experiments but those that run for a given time, without their flags."""
    failed = []
    for name, experiment in experiments().items():
        if experiment.options:
            continue
        start = time.perf_counter()
        gc.unfreeze()  # What the one before left
        try:
            run_experiment(name, **given)
            Console().print(f"{name} took {time.perf_counter() - start:.1f} s")
        except NoBackendError:
            Console().print(f"{name} left out")
        except Exception as error:  # the others still run, and the end says which failed
            Console().print(f"[red]{name} failed: {type(error).__name__}: {error}[/red]")
            failed.append(name)
    if failed:
        Console().print(f"[red]failed: {', '.join(failed)}[/red]")
        raise typer.Exit(1)


run_app.command("all")(_with_options(_run_all, OPTIONS))
app.add_typer(run_app, name="run")
