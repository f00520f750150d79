"""The commands of the other operators, and their options."""

from __future__ import annotations

from coincide.command_line import border_options as b
from coincide.command_line import causality_options as c
from coincide.command_line import options as o
from coincide.command_line import options as v
from coincide.command_line import transition_options as t
from coincide.command_line.help_texts import (
    BORDERS_EXAMPLES,
    BORDERS_HELP,
    CAUSALITY_EXAMPLES,
    CAUSALITY_HELP,
    CLUSTERS_EXAMPLES,
    CLUSTERS_HELP,
    TRANSITIONS_EXAMPLES,
    TRANSITIONS_HELP,
)
from coincide.command_line.program import answer, command


@command(help=BORDERS_HELP, epilog=BORDERS_EXAMPLES)
def borders(
    readings: b.Readings,
    queries: b.Queries,
    output: o.Output,
    output_format: o.OutputFormat = None,
    overwrite: o.Overwrite = False,
    file_format: o.FileFormat = None,
    csv_delimiter: v.CsvDelimiter = None,
    csv_quote: v.CsvQuote = None,
    csv_decimal: v.CsvDecimal = None,
    csv_null: v.CsvNull = None,
    csv_type: v.CsvType = None,
    csv_names: v.CsvNames = None,
    csv_skip: v.CsvSkip = 0,
    csv_encoding: v.CsvEncoding = None,
    csv_time_format: v.TimeFormat = None,
    readings_csv: v.ReadingsCsv = None,
    queries_csv: v.QueriesCsv = None,
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
    closed: b.Closed = "left",
    closed_column: b.ClosedColumn = None,
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
    from coincide.command_line.borders import border_request, run_borders

    answer(border_request, run_borders, words)


@command(help=CAUSALITY_HELP, epilog=CAUSALITY_EXAMPLES)
def causality(
    causes: c.Causes,
    output: o.Output,
    effects: c.Effects = None,
    output_format: o.OutputFormat = None,
    overwrite: o.Overwrite = False,
    file_format: o.FileFormat = None,
    csv_delimiter: v.CsvDelimiter = None,
    csv_quote: v.CsvQuote = None,
    csv_decimal: v.CsvDecimal = None,
    csv_null: v.CsvNull = None,
    csv_type: v.CsvType = None,
    csv_names: v.CsvNames = None,
    csv_skip: v.CsvSkip = 0,
    csv_encoding: v.CsvEncoding = None,
    csv_time_format: v.TimeFormat = None,
    causes_csv: v.CausesCsv = None,
    effects_csv: v.EffectsCsv = None,
    cause_time: c.CauseTime = "time",
    effect_time: c.EffectTime = None,
    cause_around: c.CauseAround = None,
    effect_around: c.EffectAround = None,
    cause_resolution: c.CauseResolution = None,
    effect_resolution: c.EffectResolution = None,
    cause_around_column: c.CauseAroundColumn = None,
    cause_around_unit: c.CauseAroundUnit = None,
    effect_around_column: c.EffectAroundColumn = None,
    effect_around_unit: c.EffectAroundUnit = None,
    cause_template: c.CauseTemplate = None,
    cause_templates: c.CauseTemplates = None,
    effect_template: c.EffectTemplate = None,
    effect_templates: c.EffectTemplates = None,
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
    by: c.By = None,
    case_fold: o.CaseFold = False,
    where: c.Where = None,
    how: c.How = "inner",
    emit: c.Emit = "pairs",
    probability: o.Probability = False,
    cause_columns: c.CauseColumns = None,
    effect_columns: c.EffectColumns = None,
    shifts: c.Shifts = None,
    prefer: c.Prefer = "probability",
    k: c.MostEffects = 1,
    matching: o.Matching = None,
    largest_group: o.LargestGroup = 2000,
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
    from coincide.command_line.causality import causality_request, run_causality

    answer(causality_request, run_causality, words)


@command(help=CLUSTERS_HELP, epilog=CLUSTERS_EXAMPLES)
def clusters(
    events: c.Events,
    output: o.Output,
    output_format: o.OutputFormat = None,
    overwrite: o.Overwrite = False,
    file_format: o.FileFormat = None,
    csv_delimiter: v.CsvDelimiter = None,
    csv_quote: v.CsvQuote = None,
    csv_decimal: v.CsvDecimal = None,
    csv_null: v.CsvNull = None,
    csv_type: v.CsvType = None,
    csv_names: v.CsvNames = None,
    csv_skip: v.CsvSkip = 0,
    csv_encoding: v.CsvEncoding = None,
    csv_time_format: v.TimeFormat = None,
    time: c.Time = "time",
    around: c.Around = None,
    resolution: c.Resolution = None,
    around_column: c.AroundColumn = None,
    around_unit: c.AroundUnit = None,
    template: c.Template = None,
    templates: c.Templates = None,
    place: c.Place = None,
    lat_lon: c.LatLon = False,
    sphere_radius: c.SphereRadius = None,
    scale: c.Scale = None,
    unit: o.Unit = None,
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
    by: c.ClusterBy = None,
    case_fold: o.CaseFold = False,
    where: c.Where = None,
    columns: c.Columns = None,
    threads: o.Threads = None,
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Find clusters of events."""
    words = dict(locals())
    from coincide.command_line.clusters import cluster_request, run_clusters

    answer(cluster_request, run_clusters, words)


@command(help=TRANSITIONS_HELP, epilog=TRANSITIONS_EXAMPLES)
def transitions(
    events: t.Events,
    output: o.Output,
    within: t.Within,
    output_format: o.OutputFormat = None,
    overwrite: o.Overwrite = False,
    file_format: o.FileFormat = None,
    csv_delimiter: v.CsvDelimiter = None,
    csv_quote: v.CsvQuote = None,
    csv_decimal: v.CsvDecimal = None,
    csv_null: v.CsvNull = None,
    csv_type: v.CsvType = None,
    csv_names: v.CsvNames = None,
    csv_skip: v.CsvSkip = 0,
    csv_encoding: v.CsvEncoding = None,
    csv_time_format: v.TimeFormat = None,
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
    from coincide.command_line.transitions import run_transitions, transition_request

    answer(transition_request, run_transitions, words)
