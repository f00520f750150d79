"""The commands that join two inputs, or look at what a join would find, and their options."""

from __future__ import annotations

from coincide.command_line import explore_options as e
from coincide.command_line import options as o
from coincide.command_line import options as v
from coincide.command_line.help_texts import (
    EXPLORE_EXAMPLES,
    EXPLORE_HELP,
    JOIN_EXAMPLES,
    JOIN_HELP,
)
from coincide.command_line.program import answer, command


@command(help=JOIN_HELP, epilog=JOIN_EXAMPLES)
def join(
    left: o.Left,
    output: o.Output,
    right: o.Right = None,
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
    left_csv: v.LeftCsv = None,
    right_csv: v.RightCsv = None,
    left_time: o.LeftTime = "min_time,max_time",
    right_time: o.RightTime = "min_time,max_time",
    left_around: o.LeftAround = None,
    right_around: o.RightAround = None,
    left_resolution: o.LeftResolution = None,
    right_resolution: o.RightResolution = None,
    left_around_column: o.LeftAroundColumn = None,
    right_around_column: o.RightAroundColumn = None,
    left_around_unit: o.LeftAroundUnit = None,
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
    from coincide.command_line.arguments import join_request
    from coincide.command_line.join import run_join

    answer(join_request, run_join, words)


@command(help=EXPLORE_HELP, epilog=EXPLORE_EXAMPLES)
def explore(
    left: o.Left,
    right: o.Right = None,
    output: e.Page = "explore.html",
    png: e.Pictures = None,
    overwrite: e.Overwrite = False,
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
    left_csv: v.LeftCsv = None,
    right_csv: v.RightCsv = None,
    left_time: o.LeftTime = "min_time,max_time",
    right_time: o.RightTime = "min_time,max_time",
    left_around: o.LeftAround = None,
    right_around: o.RightAround = None,
    left_resolution: o.LeftResolution = None,
    right_resolution: o.RightResolution = None,
    left_around_column: o.LeftAroundColumn = None,
    right_around_column: o.RightAroundColumn = None,
    left_around_unit: o.LeftAroundUnit = None,
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
    by: o.By = None,
    case_fold: o.CaseFold = False,
    where: o.Where = None,
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
    from coincide.command_line.explore import explore_request, run_explore

    answer(explore_request, run_explore, words)
