"""What the command line looks like: the program, its help, and what each command does in the end."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from spark_plugin.command_line.parsing import Command, Group

if TYPE_CHECKING:
    from spark_plugin.command_line.summary import Told

_Request = TypeVar("_Request")

app = typer.Typer(
    name="coincide",
    cls=Group,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Join event streams whose timestamps are uncertain.\n\n"
    "A pair of events qualifies when the [b]probability[/b] that it meets a timing condition,"
    ' such as "within 250 ms of each other", reaches a confidence threshold.',
    epilog="Start with [b]coincide demo[/b], then [b]coincide join --help[/b]."
    " If something is missing, [b]coincide doctor[/b] says what to do.",
)

command = partial(app.command, cls=Command)
"""Makes a command of a function."""


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"coincide {version('coincide')}")
        except PackageNotFoundError:
            typer.echo("coincide, not installed: running from its sources")
        raise typer.Exit


@app.callback()
def coincide(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of the program itself."""


def answer(
    request: Callable[..., _Request], run: Callable[[_Request], Told], words: dict[str, Any]
) -> None:
    """Do what the words of a command ask for, and tell of it."""
    from spark_plugin.command_line.standard_output import ReaderGone
    from spark_plugin.command_line.summary import print_summary

    as_json = words.pop("as_json")
    # Standard output is for the rows then.
    to = sys.stderr if words["output"] == "-" else sys.stdout
    done = run(request(**words))
    try:
        print_summary(done, as_json, to)
        to.flush()
    except BrokenPipeError:
        raise ReaderGone from None
