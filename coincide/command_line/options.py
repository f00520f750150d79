"""The options of `coincide join` with their help, as annotated types."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from coincide.command_line.panels import condition, data, result, running

_csv = partial(typer.Option, rich_help_panel="CSV")
CsvDelimiter = Annotated[
    str | None,
    _csv(
        metavar="CHARACTER",
        help="Between cells: ; or tab, and so on. Default: a comma; of .tsv a tab.",
    ),
]
CsvQuote = Annotated[
    str | None,
    _csv(metavar="CHARACTER", help='Around cells that hold the delimiter. Default: "; or none.'),
]
CsvDecimal = Annotated[
    str | None, _csv(metavar="CHARACTER", help="Before decimals. Default: a point.")
]
CsvNull = Annotated[
    list[str] | None,
    _csv(
        metavar="TEXT", help="A cell that means nothing, such as NA, as empty cells do; repeatable."
    ),
]
CsvType = Annotated[
    list[str] | None,
    _csv(
        metavar="COLUMN=TYPE",
        help="What a column holds: text, integer, float, boolean, date, timestamp (with offsets),"
        " timestamp_ntz (without) or timestamp@ZONE (without, of clocks there); repeatable."
        " Default: from the cells, and numbers that do not print as they were written, such as 007, are"
        " text.",
    ),
]
CsvNames = Annotated[
    list[str] | None,
    _csv(metavar="A,B,…", help="The columns' names, of files without a header."),
]


def _differs_in(side: str) -> Any:
    return _csv(
        metavar="'NAME=VALUE …'",
        help=f"What differs in {side}: these options without --csv-, such as 'delimiter=; null=NA'.",
    )


def _same_of(side: str) -> Any:
    return _csv(metavar="'NAME=VALUE …'", help=f"The same, of {side}.")


TimeFormat = Annotated[
    str | None,
    _csv(
        "--time-format",
        metavar="FORMAT",
        help="How times are written, such as [cyan]'%d/%m/%Y %H:%M:%S'[/cyan], with %f for decimals and %z"
        " for an offset. Default: ISO 8601, or numbers.",
    ),
]
LeftCsv = Annotated[str | None, _differs_in("LEFT")]
RightCsv = Annotated[str | None, _same_of("RIGHT")]
ReadingsCsv = Annotated[str | None, _differs_in("READINGS")]
QueriesCsv = Annotated[str | None, _same_of("QUERIES")]
CausesCsv = Annotated[str | None, _differs_in("CAUSES")]
EffectsCsv = Annotated[str | None, _same_of("EFFECTS")]
CsvSkip = Annotated[int, _csv(metavar="LINES", help="How many lines stand above the header.")]
CsvEncoding = Annotated[
    str | None, _csv(metavar="NAME", help="Such as latin-1, cp1252 or utf-16. Default: utf-8.")
]


def same_of(metavar: str, side: str) -> Any:
    """The option of the second side that has the help of the first's."""
    return data(metavar=metavar, help=f"The same, of {side}.")


def around_of(side: str, more: str = "") -> Any:  # noqa: D103
    return data(
        metavar="D",
        help=f"How far off the clock of {side} may be, such as 10ms, or BEFORE,AFTER.{more}",
    )


def around_column_of(side: str) -> Any:  # noqa: D103
    return data(
        metavar="NAME",
        help=f"The column that says how far off each stamp of {side} may be, or BEFORE,AFTER.",
    )


def around_unit() -> Any:  # noqa: D103
    return data(metavar="UNIT", help="What the numbers in that column count, such as ms.")


def resolution_of(side: str) -> Any:  # noqa: D103
    return data(
        metavar="D",
        help=f"How coarse the stamps of {side} are: with 1ms, t means some time from t to t + 1 ms.",
    )


def template_of(side: str, more: str = "") -> Any:  # noqa: D103
    return data(
        metavar="COLUMN",
        help=f"Column that names the template of each event of {side}, whose timestamps are histograms"
        f" then.{more}",
    )


def columns_of(side: str, more: str = "") -> Any:  # noqa: D103
    return result(metavar="A,B,…", help=f"Columns of {side} to hand out. Default: id.{more}")


def partners_of(events: str, partners: str) -> Any:
    """How many partners."""
    return result(
        "--k",
        metavar="K",
        help=f"With --emit best, how many {partners} of each {events}, ranked from 1.",
    )


Left = Annotated[
    str,
    typer.Argument(
        metavar="LEFT", help="Events: a file, a folder, a glob, a URI, or - for what is sent in."
    ),
]
Right = Annotated[
    str | None,
    typer.Argument(
        metavar="RIGHT",
        help="The other events; left out, those of LEFT are joined with themselves.",
    ),
]

Output = Annotated[
    str,
    data(
        "-o",
        "--output",
        metavar="OUT",
        help="Parquet, a file, or on Spark a folder; or a file of CSV or Arrow IPC, if its name ends so;"
        " or [cyan]-[/cyan] for standard output.",
    ),
]
OutputFormat = Annotated[
    str | None,
    data(
        metavar="parquet|csv|arrow",
        help="What OUT is, where its name does not say. Default: Parquet; CSV on standard output.",
    ),
]
Overwrite = Annotated[bool, data("--overwrite", help="Replace OUT, once the new one stands.")]
FileFormat = Annotated[
    str | None,
    data(
        "-f",
        "--format",
        metavar="parquet|csv|arrow",
        help="What the inputs are, where their names do not say.",
    ),
]
LeftTime = Annotated[
    str,
    data(
        metavar="MIN,MAX",
        help="Columns with the ends of the timestamps; one column: exact times.",
    ),
]
RightTime = Annotated[str, same_of("MIN,MAX", "RIGHT")]
LeftAround = Annotated[
    str | None, around_of("LEFT", " --left-time is the one column of its stamps.")
]
RightAround = Annotated[str | None, same_of("D", "RIGHT")]
LeftAroundColumn = Annotated[str | None, around_column_of("LEFT")]
RightAroundColumn = Annotated[str | None, same_of("NAME", "RIGHT")]
LeftAroundUnit = Annotated[str | None, around_unit()]
RightAroundUnit = Annotated[str | None, same_of("UNIT", "RIGHT")]
LeftResolution = Annotated[str | None, resolution_of("LEFT")]
RightResolution = Annotated[str | None, same_of("D", "RIGHT")]
LeftTemplate = Annotated[
    str | None,
    template_of("LEFT", " --left-time is the one column of the times at which they were seen."),
]
RightTemplate = Annotated[str | None, same_of("COLUMN", "RIGHT")]
LeftTemplates = Annotated[
    str | None,
    data(
        metavar="FILE",
        help="The templates: Parquet, CSV or Arrow with the columns template, lower, upper, mass;"
        " or delay_lower and delay_upper for delays of detection.",
    ),
]
RightTemplates = Annotated[str | None, same_of("FILE", "RIGHT")]
Unit = Annotated[
    str | None,
    data(
        metavar="ns|us|ms|s|min|h|d",
        help="What a number in the time columns counts. Timestamps need none, but ns where they are"
        " finer than 1 us.",
    ),
]
LeftUnit = Annotated[
    str | None, data(metavar="UNIT", help="The same of LEFT alone, where the sides differ.")
]
RightUnit = Annotated[str | None, data(metavar="UNIT", help="The same of RIGHT alone.")]
TickUnit = Annotated[
    str | None,
    data(
        metavar="UNIT",
        help="In what times are counted. Default: us for timestamps, ns for floats, the finer unit"
        " for integers. Coarser ticks round floats, and reach further.",
    ),
]
Invalid = Annotated[
    str,
    data(
        metavar="raise|drop",
        help="Rows whose time cannot be one: an error, or left out and counted.",
    ),
]

WithinBounds = Annotated[
    tuple[str, str] | None,
    condition(
        "--within",
        metavar="LO HI",
        help="LO ≤ T_right − T_left ≤ HI. Durations such as [cyan]-250ms 1.5s[/cyan], or ticks."
        " One duration D alone is [cyan]-D D[/cyan].",
    ),
]
MutualDeadline = Annotated[
    str | None, condition(metavar="D", help="Short for [cyan]--within -D D[/cyan].")
]
Closed = Annotated[
    str,
    condition(
        metavar="both|left|right|neither",
        help="Which ends belong to the window. Time is whole ticks: an end that does not is moved in by"
        " one.",
    ),
]
Confidence = Annotated[
    float | None,
    condition(
        metavar="CT",
        help="How probable a pair must be, 0 < CT ≤ 1. 0.5: more likely than not. Exact times, of one"
        " column a side, need none.",
    ),
]
By = Annotated[
    list[str] | None,
    condition(
        metavar="A,B,…",
        help="Columns that must be equal on both sides; [cyan]station=sta[/cyan] where the name differs,"
        """ [cyan]'"a=b"'[/cyan] where it has = or , in it.""",
    ),
]
CaseFold = Annotated[
    bool, condition("--case-fold", help="Texts of --by that differ in case alone are equal.")
]
Where = Annotated[
    str | None,
    condition(
        metavar="SQL",
        help="What pairs must meet besides, such as [cyan]'left_amount = right_amount'[/cyan].",
    ),
]

How = Annotated[
    str,
    result(
        metavar="inner|left|right|full|semi|anti",
        help="Pairs; pairs and left events without a partner; right ones; both; left events that have a"
        " partner; left events that have none.",
    ),
]
Emit = Annotated[
    str,
    result(
        metavar="pairs|lists|counts|best",
        help="A row is a pair; or a left event with arrays of its partners, with their number,"
        " or with the most probable one.",
    ),
]
Prefer = Annotated[
    str,
    result(
        metavar="probability|nearest|first|last|COLUMN|-COLUMN",
        help="With --emit best or --matching, which partner is the best one: the most probable, the one"
        " whose midpoint is nearest, the earliest or the latest; or that with the least value of a column"
        " of RIGHT, or, as [cyan]-snr[/cyan], the greatest.",
    ),
]
Partners = Annotated[int, partners_of("left event", "partners")]
Matching = Annotated[
    str | None,
    result(
        metavar="mutual|optimal|unambiguous",
        help="Pairs one to one: of which each is the other's best; or those that are most probable"
        " together, with --prefer nearest the most pairs with the least distances; or those of which"
        " neither has another.",
    ),
]
LargestGroup = Annotated[
    int,
    result(
        metavar="N",
        help="Most events that --matching optimal may have to look at together.",
    ),
]
Probability = Annotated[bool, result("--probability", help="Add the probability of each pair.")]
LeftColumns = Annotated[list[str] | None, columns_of("LEFT")]
RightColumns = Annotated[
    list[str] | None,
    columns_of("RIGHT", " Of no meaning with --how semi, --how anti and --emit counts."),
]

Shifts = Annotated[
    list[str] | None,
    result(
        metavar="D,D,…",
        help="Tell how many pairs chance alone makes: they are counted again with the times of RIGHT moved"
        " by each of these, such as [cyan]30s,-30s,47s[/cyan], all longer than the window. Their mean is"
        " what to expect among the pairs found, their standard deviation its spread.",
    ),
]

Engine = Annotated[
    str,
    running(
        metavar="auto|spark|local",
        help="[cyan]local[/cyan]: in this process, without Java; inputs must fit its memory, unless"
        " they are Parquet files in time order. [cyan]spark[/cyan]: on Spark. [cyan]auto[/cyan]:"
        " in this process, if the inputs would take no more than half of the memory that is free,"
        " and no option is of Spark.",
    ),
]
Way = Annotated[
    str,
    running(
        metavar="auto|direct|broadcast|broadcast-left|broadcast-right|collect|exchange",
        help="How rows get to where they are joined. [cyan]direct[/cyan]: slice by slice from Parquet"
        " files that lie in time order. [cyan]broadcast[/cyan], only on Spark: the smaller side, or"
        " the one that is named, to every worker. [cyan]collect[/cyan]: both. [cyan]exchange[/cyan]:"
        " through Spark's shuffle, or with --engine local all at once."
        " [cyan]auto[/cyan]: the first of them that suits the data.",
    ),
]
Master = Annotated[
    str | None,
    running(help="Spark master. Default: what Spark's configuration says, else local[*]."),
]
Conf = Annotated[
    list[str] | None, running(metavar="KEY=VALUE", help="A Spark setting; repeatable.")
]
Backend = Annotated[
    str,
    running(
        metavar="auto|cpu|gpu",
        help="auto takes a GPU where a worker has one. The answer is the same.",
    ),
]
Slices = Annotated[
    int | None, running(help="Time slices, hence Spark tasks. Default: from the data.")
]
Classes = Annotated[int | None, running(help="Length classes a side. Default: from the data.")]
LeftLongest = Annotated[
    str | None,
    running(metavar="D", help="Declare the longest timestamp of LEFT; a longer one is invalid."),
]
RightLongest = Annotated[str | None, running(metavar="D", help="The same, of RIGHT.")]
BatchPairs = Annotated[
    int | None,
    running(help="Pairs in one batch; bounds memory. Default: 65,536 on Spark, 1,000,000 else."),
]
Threads = Annotated[
    int | None, running(help="Threads of a process. Default: all cores; on Spark one.")
]
AsJson = Annotated[bool, running("--json", help="Print the summary as one JSON object.")]
Debug = Annotated[bool, running("--debug", help="Show tracebacks and what Spark logs.")]
