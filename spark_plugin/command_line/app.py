"""What the command line looks like: its commands and their help."""

from __future__ import annotations

from typing import Annotated

import typer

from spark_plugin.command_line import options as o

app = typer.Typer(
    name="coincide",
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

_JOIN_HELP = (
    "Join two files of events by the probability of a timing condition.\n\n"
    "Inputs are Parquet, CSV with a header, or Arrow IPC. LEFT and RIGHT each need an id and the"
    " two ends of their timestamps; --left-time, --left-columns and so on say what these columns"
    " are called. A column of CSV is numbers where all of them print as they were written; else,"
    " as with 007 or 1e3, it is text, unless it is a time. On Spark, CSV and Arrow IPC pass through"
    " the memory of this process: make large ones Parquet."
)
_JOIN_EXAMPLES = """
[b]Examples[/b]

Picks of two seismic detectors at the same station, more likely than not
within 250 ms of each other:

    [cyan]coincide join stalta.parquet phasenet.parquet -o pairs \\
      --by station,phase --within -250ms 250ms --confidence 0.5[/cyan]

Orders without a parcel that was, with 90 % probability, packed within two
days; from CSV, without Java:

    [cyan]coincide join orders.csv parcels.csv -o late.parquet --how anti \\
      --by order --left-time placed --right-time seen_first,seen_last \\
      --within 0h 48h --confidence 0.9 --engine local[/cyan]

How many alarms follow each reading; times are integers in milliseconds:

    [cyan]coincide join 'readings/*.parquet' alarms.arrow -o counts \\
      --unit ms --within 0s 30s --confidence 0.8 --emit counts[/cyan]

[b]Exit codes[/b]: 0 done; 2 bad usage or bad data, one line says what;
1 a failure of ours; 130 interrupted. No failure leaves output behind.
"""
_DEMO_HELP = (
    "Make a sample of badge readers and door sensors, join it, and say what was found.\n\n"
    "The sample knows when everything really happened, the join does not. So the answer can be"
    " marked: right pairs found and wrong ones let in, beside a plain join on the middles of the"
    " timestamps."
)
_DOCTOR_HELP = (
    "Say what is here: Java, Spark, Python, GPU, backends; and what to do about what is"
    " missing.\n\n"
    "Exit code 0 if joins run on the CPU, on Spark and in one process; 1 if not."
)


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


@app.command(help=_JOIN_HELP, epilog=_JOIN_EXAMPLES)
def join(
    left: o.Left,
    right: o.Right,
    output: o.Output,
    overwrite: o.Overwrite = False,
    file_format: o.FileFormat = None,
    left_time: o.LeftTime = "min_time,max_time",
    right_time: o.RightTime = "min_time,max_time",
    left_template: o.LeftTemplate = None,
    right_template: o.RightTemplate = None,
    left_templates: o.LeftTemplates = None,
    right_templates: o.RightTemplates = None,
    unit: o.Unit = None,
    left_unit: o.LeftUnit = None,
    right_unit: o.RightUnit = None,
    tick: o.TickUnit = None,
    invalid: o.Invalid = "raise",
    within: o.WithinBounds = None,
    mutual_deadline: o.MutualDeadline = None,
    confidence: o.Confidence = None,
    by: o.By = None,
    how: o.How = "inner",
    emit: o.Emit = "pairs",
    probability: o.Probability = False,
    left_columns: o.LeftColumns = None,
    right_columns: o.RightColumns = None,
    engine: o.Engine = "spark",
    way: o.Way = "auto",
    master: o.Master = None,
    conf: o.Conf = None,
    backend: o.Backend = "auto",
    slices: o.Slices = None,
    classes: o.Classes = None,
    left_longest: o.LeftLongest = None,
    right_longest: o.RightLongest = None,
    batch_pairs: o.BatchPairs = None,
    threads: o.Threads = None,
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Join two files of events."""
    words = dict(locals())
    as_json = words.pop("as_json")

    from spark_plugin.command_line.arguments import join_request
    from spark_plugin.command_line.join import run_join
    from spark_plugin.command_line.summary import print_summary

    print_summary(run_join(join_request(**words)), as_json)


@app.command(help=_DEMO_HELP)
def demo(
    rows: Annotated[int, typer.Option(min=100, help="Events a side.")] = 200_000,
    seed: Annotated[int, typer.Option(help="Another seed, another sample.")] = 1,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the sample on disk.")] = False,
    engine: Annotated[str, typer.Option(metavar="spark|local", help="As of join.")] = "spark",
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Join a sample."""
    from spark_plugin.command_line.demo import run_demo

    run_demo(rows, seed, keep, engine, debug)


@app.command(help=_DOCTOR_HELP)
def doctor() -> None:
    """Say what is here."""
    from spark_plugin.command_line.doctor import run_doctor

    raise typer.Exit(run_doctor())
