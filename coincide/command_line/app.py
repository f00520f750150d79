"""The commands of the command line and their options."""

from __future__ import annotations

from typing import Annotated

import typer

from coincide.command_line.help_texts import DEMO_HELP, DOCTOR_HELP
from coincide.command_line.join_commands import explore, join
from coincide.command_line.operator_commands import borders, causality, clusters, transitions
from coincide.command_line.program import app, command

__all__ = ["app", "borders", "causality", "clusters", "explore", "join", "transitions"]
"""Commands stand in the help in the order in which they are imported."""


@command(help=DEMO_HELP)
def demo(
    rows: Annotated[int, typer.Option(min=100, help="Events a side.")] = 200_000,
    seed: Annotated[int, typer.Option(help="Another seed, another sample.")] = 1,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the sample on disk.")] = False,
    engine: Annotated[str, typer.Option(metavar="auto|spark|local", help="As of join.")] = "spark",
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Join a sample."""
    from coincide.command_line.demo import run_demo

    run_demo(rows, seed, keep, engine, debug)


@command(help=DOCTOR_HELP)
def doctor() -> None:
    """Say what is here."""
    from coincide.command_line.doctor import run_doctor

    raise typer.Exit(run_doctor())
