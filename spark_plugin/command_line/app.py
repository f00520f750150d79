"""What the command line looks like: its commands and their help."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from spark_plugin.command_line import border_options as b
from spark_plugin.command_line import causality_options as c
from spark_plugin.command_line import options as o
from spark_plugin.command_line import transition_options as t
from spark_plugin.command_line.help_texts import (
    BORDERS_EXAMPLES,
    BORDERS_HELP,
    CAUSALITY_EXAMPLES,
    CAUSALITY_HELP,
    DEMO_HELP,
    DOCTOR_HELP,
    JOIN_EXAMPLES,
    JOIN_HELP,
    TRANSITIONS_EXAMPLES,
    TRANSITIONS_HELP,
)

if TYPE_CHECKING:
    from spark_plugin.command_line.summary import Told

_Request = TypeVar("_Request")

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


def _answer(
    request: Callable[..., _Request], run: Callable[[_Request], Told], words: dict[str, Any]
) -> None:
    """Do what the words of a command ask for, and tell of it."""
    from spark_plugin.command_line.summary import print_summary

    as_json = words.pop("as_json")
    print_summary(run(request(**words)), as_json)


@app.command(help=JOIN_HELP, epilog=JOIN_EXAMPLES)
def join(
    left: o.Left,
    right: o.Right,
    output: o.Output,
    overwrite: o.Overwrite = False,
    file_format: o.FileFormat = None,
    left_time: o.LeftTime = "min_time,max_time",
    right_time: o.RightTime = "min_time,max_time",
    left_around: o.LeftAround = None,
    right_around: o.RightAround = None,
    left_resolution: o.LeftResolution = None,
    right_resolution: o.RightResolution = None,
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
    shifts: o.Shifts = None,
    prefer: o.Prefer = "probability",
    k: o.Partners = 1,
    matching: o.Matching = None,
    largest_group: o.LargestGroup = 2000,
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
    from spark_plugin.command_line.arguments import join_request
    from spark_plugin.command_line.join import run_join

    _answer(join_request, run_join, words)


@app.command(help=BORDERS_HELP, epilog=BORDERS_EXAMPLES)
def borders(
    readings: b.Readings,
    queries: b.Queries,
    output: o.Output,
    overwrite: o.Overwrite = False,
    file_format: o.FileFormat = None,
    stream: b.Stream = "stream_id",
    time: b.Time = "time",
    values: b.Values = None,
    query: b.Query = "query_id",
    unit: b.Unit = None,
    tick: o.TickUnit = None,
    invalid: b.Invalid = "raise",
    first: b.First = "ignore",
    pass_through: b.PassThrough = False,
    interpolate: b.Interpolate = False,
    hysteresis: b.Hysteresis = "0",
    engine: b.Engine = "spark",
    way: b.Way = "auto",
    master: o.Master = None,
    conf: o.Conf = None,
    backend: o.Backend = "auto",
    processing: b.Processing = "auto",
    batch_events: b.BatchEvents = 1 << 18,
    threads: o.Threads = None,
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Find border crossings."""
    words = dict(locals())
    from spark_plugin.command_line.borders import border_request, run_borders

    _answer(border_request, run_borders, words)


@app.command(help=CAUSALITY_HELP, epilog=CAUSALITY_EXAMPLES)
def causality(
    causes: c.Causes,
    output: o.Output,
    effects: c.Effects = None,
    overwrite: o.Overwrite = False,
    file_format: o.FileFormat = None,
    cause_time: c.CauseTime = "time",
    effect_time: c.EffectTime = None,
    cause_around: c.CauseAround = None,
    effect_around: c.EffectAround = None,
    cause_resolution: c.CauseResolution = None,
    effect_resolution: c.EffectResolution = None,
    cause_place: c.CausePlace = None,
    effect_place: c.EffectPlace = None,
    lat_lon: c.LatLon = False,
    sphere_radius: c.SphereRadius = None,
    scale: c.Scale = None,
    unit: o.Unit = None,
    cause_unit: c.CauseUnit = None,
    effect_unit: c.EffectUnit = None,
    tick: o.TickUnit = None,
    invalid: c.Invalid = "raise",
    delta: c.Delta = None,
    radius: c.Radius = None,
    speed: c.Speed = None,
    slack: c.Slack = "0",
    per: c.Per = "s",
    propagation_time: c.PropagationTime = None,
    propagation_speed: c.PropagationSpeed = None,
    tolerance: c.Tolerance = None,
    ellipsoid: c.Ellipsoid = None,
    strict: c.Strict = False,
    confidence: c.Confidence = 1.0,
    by: o.By = None,
    how: c.How = "inner",
    emit: c.Emit = "pairs",
    cause_columns: c.CauseColumns = None,
    effect_columns: c.EffectColumns = None,
    shifts: c.Shifts = None,
    engine: c.Engine = "spark",
    way: c.Way = "auto",
    master: o.Master = None,
    conf: o.Conf = None,
    backend: o.Backend = "auto",
    slices: o.Slices = None,
    cause_longest: c.CauseLongest = None,
    effect_longest: c.EffectLongest = None,
    batch_pairs: o.BatchPairs = None,
    threads: o.Threads = None,
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Find causes and effects."""
    words = dict(locals())
    from spark_plugin.command_line.causality import run_causality
    from spark_plugin.command_line.causality_request import causality_request

    _answer(causality_request, run_causality, words)


@app.command(help=TRANSITIONS_HELP, epilog=TRANSITIONS_EXAMPLES)
def transitions(
    events: t.Events,
    output: o.Output,
    within: t.Within,
    overwrite: o.Overwrite = False,
    file_format: o.FileFormat = None,
    query: t.Query = "query_id",
    stream: b.Stream = "stream_id",
    event: t.Event = "event",
    time: t.Time = "min_time,max_time",
    unit: o.Unit = None,
    tick: o.TickUnit = None,
    invalid: t.Invalid = "raise",
    confidence: t.Confidence = None,
    until: t.Until = None,
    repeated: t.Repeated = "raise",
    engine: t.Engine = "spark",
    master: o.Master = None,
    conf: o.Conf = None,
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Find region transitions."""
    words = dict(locals())
    as_json = words.pop("as_json")

    from spark_plugin.command_line.summary import print_summary
    from spark_plugin.command_line.transitions import run_transitions, transition_request

    print_summary(run_transitions(transition_request(**words)), as_json)


@app.command(help=DEMO_HELP)
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


@app.command(help=DOCTOR_HELP)
def doctor() -> None:
    """Say what is here."""
    from spark_plugin.command_line.doctor import run_doctor

    raise typer.Exit(run_doctor())
