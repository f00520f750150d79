"""The options of `coincide join` with their help, as annotated types."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

_data = partial(typer.Option, rich_help_panel="Data")
_meaning = partial(typer.Option, rich_help_panel="Condition")
_result = partial(typer.Option, rich_help_panel="Result")
_running = partial(typer.Option, rich_help_panel="How it runs")

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
    _data(
        "-o",
        "--output",
        metavar="OUT",
        help="Parquet, a file, or on Spark a folder; or a file of CSV or Arrow IPC, if its name ends so;"
        " or [cyan]-[/cyan] for standard output.",
    ),
]
OutputFormat = Annotated[
    str | None,
    _data(
        metavar="parquet|csv|arrow",
        help="What OUT is, where its name does not say. Default: Parquet; CSV on standard output.",
    ),
]
Overwrite = Annotated[bool, _data("--overwrite", help="Replace OUT, once the new one stands.")]
FileFormat = Annotated[
    str | None,
    _data(
        "-f",
        "--format",
        metavar="parquet|csv|arrow",
        help="What the inputs are, where their names do not say.",
    ),
]
LeftTime = Annotated[
    str,
    _data(
        metavar="MIN,MAX",
        help="Columns with the ends of the timestamps; one column: exact times.",
    ),
]
RightTime = Annotated[str, _data(metavar="MIN,MAX", help="The same, of RIGHT.")]
LeftAround = Annotated[
    str | None,
    _data(
        metavar="D",
        help="How far off the clock of LEFT may be, such as 10ms, or BEFORE,AFTER. --left-time is the one"
        " column of its stamps.",
    ),
]
RightAround = Annotated[str | None, _data(metavar="D", help="The same, of RIGHT.")]
LeftAroundColumn = Annotated[
    str | None,
    _data(
        metavar="NAME",
        help="The column that says how far off each stamp of LEFT may be, or BEFORE,AFTER.",
    ),
]
RightAroundColumn = Annotated[str | None, _data(metavar="NAME", help="The same, of RIGHT.")]
LeftAroundUnit = Annotated[
    str | None, _data(metavar="UNIT", help="What the numbers in that column count, such as ms.")
]
RightAroundUnit = Annotated[str | None, _data(metavar="UNIT", help="The same, of RIGHT.")]
LeftResolution = Annotated[
    str | None,
    _data(
        metavar="D",
        help="How coarse the stamps of LEFT are: with 1ms, t means some time from t to t + 1 ms.",
    ),
]
RightResolution = Annotated[str | None, _data(metavar="D", help="The same, of RIGHT.")]
LeftTemplate = Annotated[
    str | None,
    _data(
        metavar="COLUMN",
        help="Column that names the template of each event of LEFT, whose timestamps are histograms then."
        " --left-time is the one column of the times at which they were seen.",
    ),
]
RightTemplate = Annotated[str | None, _data(metavar="COLUMN", help="The same, of RIGHT.")]
LeftTemplates = Annotated[
    str | None,
    _data(
        metavar="FILE",
        help="The templates: Parquet, CSV or Arrow with the columns template, lower, upper, mass;"
        " or delay_lower and delay_upper for delays of detection.",
    ),
]
RightTemplates = Annotated[str | None, _data(metavar="FILE", help="The same, of RIGHT.")]
Unit = Annotated[
    str | None,
    _data(
        metavar="ns|us|ms|s|min|h|d",
        help="What a number in the time columns counts. Timestamp columns need none.",
    ),
]
LeftUnit = Annotated[
    str | None, _data(metavar="UNIT", help="The same of LEFT alone, where the sides differ.")
]
RightUnit = Annotated[str | None, _data(metavar="UNIT", help="The same of RIGHT alone.")]
TickUnit = Annotated[
    str | None,
    _data(
        metavar="UNIT",
        help="In what times are counted. Default: us for timestamps, ns for floats, the finer unit"
        " for integers. Coarser ticks round floats, and reach further.",
    ),
]
Invalid = Annotated[
    str,
    _data(
        metavar="raise|drop",
        help="Rows whose time cannot be one: an error, or left out and counted.",
    ),
]

WithinBounds = Annotated[
    tuple[str, str] | None,
    _meaning(
        "--within",
        metavar="LO HI",
        help="LO ≤ T_right − T_left ≤ HI. Durations such as [cyan]-250ms 1.5s[/cyan], or ticks.",
    ),
]
MutualDeadline = Annotated[
    str | None, _meaning(metavar="D", help="Short for [cyan]--within -D D[/cyan].")
]
Closed = Annotated[
    str,
    _meaning(
        metavar="both|left|right|neither",
        help="Which ends belong to the window. Time is whole ticks: an end that does not is moved in by"
        " one.",
    ),
]
Confidence = Annotated[
    float | None,
    _meaning(
        metavar="CT",
        help="How probable a pair must be, 0 < CT ≤ 1. 0.5: more likely than not.",
    ),
]
By = Annotated[
    list[str] | None,
    _meaning(
        metavar="A,B,…",
        help="Columns that must be equal on both sides; [cyan]station=sta[/cyan] where the name differs.",
    ),
]
CaseFold = Annotated[
    bool, _meaning("--case-fold", help="Texts of --by that differ in case alone are equal.")
]
Where = Annotated[
    str | None,
    _meaning(
        metavar="SQL",
        help="What pairs must meet besides, such as [cyan]'left_amount = right_amount'[/cyan].",
    ),
]

How = Annotated[
    str,
    _result(
        metavar="inner|left|semi|anti",
        help="Pairs; pairs and left events without a partner; left events that have a partner;"
        " left events that have none.",
    ),
]
Emit = Annotated[
    str,
    _result(
        metavar="pairs|lists|counts|best",
        help="A row is a pair; or a left event with arrays of its partners, with their number,"
        " or with the most probable one.",
    ),
]
Prefer = Annotated[
    str,
    _result(
        metavar="probability|nearest|first|last",
        help="With --emit best or --matching, which partner is the best one: the most probable, the one"
        " whose midpoint is nearest, the earliest or the latest.",
    ),
]
Partners = Annotated[
    int,
    _result(
        "--k",
        metavar="K",
        help="With --emit best, how many partners of each left event, ranked from 1.",
    ),
]
Matching = Annotated[
    str | None,
    _result(
        metavar="mutual|optimal",
        help="Pairs one to one: of which each is the other's best; or those that are most probable"
        " together, with --prefer nearest the most pairs with the least distances.",
    ),
]
LargestGroup = Annotated[
    int,
    _result(
        metavar="N",
        help="Most events that --matching optimal may have to look at together.",
    ),
]
Probability = Annotated[bool, _result("--probability", help="Add the probability of each pair.")]
LeftColumns = Annotated[
    list[str] | None, _result(metavar="A,B,…", help="Columns of LEFT to hand out. Default: id.")
]
RightColumns = Annotated[
    list[str] | None,
    _result(
        metavar="A,B,…",
        help="Columns of RIGHT to hand out. Default: id. Of no meaning with --how semi,"
        " --how anti and --emit counts.",
    ),
]

Shifts = Annotated[
    list[str] | None,
    _result(
        metavar="D,D,…",
        help="Tell how many pairs chance alone makes: they are counted again with the times of RIGHT moved"
        " by each of these, such as [cyan]30s,-30s,47s[/cyan], all longer than the window. Their mean is"
        " what to expect among the pairs found, their standard deviation its spread.",
    ),
]

Engine = Annotated[
    str,
    _running(
        metavar="auto|spark|local",
        help="[cyan]local[/cyan]: in this process, without Java; inputs must fit its memory, unless"
        " they are Parquet files in time order. [cyan]spark[/cyan]: on Spark. [cyan]auto[/cyan]:"
        " in this process, if the inputs would take no more than half of the memory that is free,"
        " and no option is of Spark.",
    ),
]
Way = Annotated[
    str,
    _running(
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
    _running(help="Spark master. Default: what Spark's configuration says, else local[*]."),
]
Conf = Annotated[
    list[str] | None, _running(metavar="KEY=VALUE", help="A Spark setting; repeatable.")
]
Backend = Annotated[
    str,
    _running(
        metavar="auto|cpu|gpu",
        help="auto takes a GPU where a worker has one. The answer is the same.",
    ),
]
Slices = Annotated[
    int | None, _running(help="Time slices, hence Spark tasks. Default: from the data.")
]
Classes = Annotated[int | None, _running(help="Length classes a side. Default: from the data.")]
LeftLongest = Annotated[
    str | None,
    _running(metavar="D", help="Declare the longest timestamp of LEFT; a longer one is invalid."),
]
RightLongest = Annotated[str | None, _running(metavar="D", help="The same, of RIGHT.")]
BatchPairs = Annotated[
    int | None,
    _running(help="Pairs in one batch; bounds memory. Default: 65,536 on Spark, 1,000,000 else."),
]
Threads = Annotated[
    int | None, _running(help="Threads of a process. Default: all cores; on Spark one.")
]
AsJson = Annotated[bool, _running("--json", help="Print the summary as one JSON object.")]
Debug = Annotated[bool, _running("--debug", help="Show tracebacks and what Spark logs.")]
