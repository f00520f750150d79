"""The commands of the command line and their options."""

from __future__ import annotations

from typing import Annotated

import typer

from spark_plugin.command_line import border_options as b
from spark_plugin.command_line import causality_options as c
from spark_plugin.command_line import explore_options as e
from spark_plugin.command_line import options as o
from spark_plugin.command_line import transition_options as t
from spark_plugin.command_line.help_texts import (
    BORDERS_EXAMPLES,
    BORDERS_HELP,
    CAUSALITY_EXAMPLES,
    CAUSALITY_HELP,
    DEMO_HELP,
    DOCTOR_HELP,
    EXPLORE_EXAMPLES,
    EXPLORE_HELP,
    JOIN_EXAMPLES,
    JOIN_HELP,
    TRANSITIONS_EXAMPLES,
    TRANSITIONS_HELP,
)
from spark_plugin.command_line.program import answer, app

__all__ = ["app"]


@app.command(help=JOIN_HELP, epilog=JOIN_EXAMPLES)
def join(
    left: o.Left,
    output: o.Output,
    right: o.Right = None,
    output_format: o.OutputFormat = None,
    overwrite: o.Overwrite = False,
    file_format: o.FileFormat = None,
    csv_delimiter: o.CsvDelimiter = None,
    csv_quote: o.CsvQuote = None,
    csv_decimal: o.CsvDecimal = None,
    csv_null: o.CsvNull = None,
    csv_type: o.CsvType = None,
    csv_names: o.CsvNames = None,
    csv_skip: o.CsvSkip = 0,
    csv_encoding: o.CsvEncoding = None,
    left_time: o.LeftTime = "min_time,max_time",
    right_time: o.RightTime = "min_time,max_time",
    left_around: o.LeftAround = None,
    right_around: o.RightAround = None,
    left_resolution: o.LeftResolution = None,
    left_around_column: o.LeftAroundColumn = None,
    left_around_unit: o.LeftAroundUnit = None,
    right_resolution: o.RightResolution = None,
    right_around_column: o.RightAroundColumn = None,
    right_around_unit: o.RightAroundUnit = None,
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
    closed: o.Closed = "both",
    confidence: o.Confidence = None,
    by: o.By = None,
    case_fold: o.CaseFold = False,
    where: o.Where = None,
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
    engine: o.Engine = "auto",
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

    answer(join_request, run_join, words)


@app.command(help=EXPLORE_HELP, epilog=EXPLORE_EXAMPLES)
def explore(
    left: o.Left,
    right: o.Right,
    output: e.Page = "explore.html",
    png: e.Pictures = None,
    overwrite: e.Overwrite = False,
    file_format: o.FileFormat = None,
    csv_delimiter: o.CsvDelimiter = None,
    csv_quote: o.CsvQuote = None,
    csv_decimal: o.CsvDecimal = None,
    csv_null: o.CsvNull = None,
    csv_type: o.CsvType = None,
    csv_names: o.CsvNames = None,
    csv_skip: o.CsvSkip = 0,
    csv_encoding: o.CsvEncoding = None,
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
    by: o.By = None,
    confidence: e.Confidence = 0.5,
    confidences: e.Confidences = None,
    shifts: e.Shifts = None,
    most_pairs: e.MostPairs = 20_000_000,
    engine: e.Engine = "local",
    backend: o.Backend = "auto",
    threads: o.Threads = None,
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Choose a confidence."""
    words = dict(locals())
    from spark_plugin.command_line.explore import run_explore
    from spark_plugin.command_line.explore_request import explore_request

    answer(explore_request, run_explore, words)


@app.command(help=BORDERS_HELP, epilog=BORDERS_EXAMPLES)
def borders(
    readings: b.Readings,
    queries: b.Queries,
    output: o.Output,
    output_format: o.OutputFormat = None,
    overwrite: o.Overwrite = False,
    file_format: o.FileFormat = None,
    csv_delimiter: o.CsvDelimiter = None,
    csv_quote: o.CsvQuote = None,
    csv_decimal: o.CsvDecimal = None,
    csv_null: o.CsvNull = None,
    csv_type: o.CsvType = None,
    csv_names: o.CsvNames = None,
    csv_skip: o.CsvSkip = 0,
    csv_encoding: o.CsvEncoding = None,
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
    engine: b.Engine = "auto",
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

    answer(border_request, run_borders, words)


@app.command(help=CAUSALITY_HELP, epilog=CAUSALITY_EXAMPLES)
def causality(
    causes: c.Causes,
    output: o.Output,
    effects: c.Effects = None,
    output_format: o.OutputFormat = None,
    overwrite: o.Overwrite = False,
    file_format: o.FileFormat = None,
    csv_delimiter: o.CsvDelimiter = None,
    csv_quote: o.CsvQuote = None,
    csv_decimal: o.CsvDecimal = None,
    csv_null: o.CsvNull = None,
    csv_type: o.CsvType = None,
    csv_names: o.CsvNames = None,
    csv_skip: o.CsvSkip = 0,
    csv_encoding: o.CsvEncoding = None,
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
    engine: c.Engine = "auto",
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

    answer(causality_request, run_causality, words)


@app.command(help=TRANSITIONS_HELP, epilog=TRANSITIONS_EXAMPLES)
def transitions(
    events: t.Events,
    output: o.Output,
    within: t.Within,
    output_format: o.OutputFormat = None,
    overwrite: o.Overwrite = False,
    file_format: o.FileFormat = None,
    csv_delimiter: o.CsvDelimiter = None,
    csv_quote: o.CsvQuote = None,
    csv_decimal: o.CsvDecimal = None,
    csv_null: o.CsvNull = None,
    csv_type: o.CsvType = None,
    csv_names: o.CsvNames = None,
    csv_skip: o.CsvSkip = 0,
    csv_encoding: o.CsvEncoding = None,
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
    engine: t.Engine = "auto",
    master: o.Master = None,
    conf: o.Conf = None,
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Find region transitions."""
    words = dict(locals())
    from spark_plugin.command_line.transitions import run_transitions, transition_request

    answer(transition_request, run_transitions, words)


@app.command(help=DEMO_HELP)
def demo(
    rows: Annotated[int, typer.Option(min=100, help="Events a side.")] = 200_000,
    seed: Annotated[int, typer.Option(help="Another seed, another sample.")] = 1,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the sample on disk.")] = False,
    engine: Annotated[str, typer.Option(metavar="auto|spark|local", help="As of join.")] = "spark",
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
