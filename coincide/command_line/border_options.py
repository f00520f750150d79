"""The options of `coincide borders` with their help, beside those of `coincide join`."""

from __future__ import annotations

from typing import Annotated

import typer

from coincide.command_line.panels import data, meaning, running

Readings = Annotated[
    str, typer.Argument(metavar="READINGS", help="Readings: a file, a folder, a glob or a URI.")
]
Queries = Annotated[
    str, typer.Argument(metavar="QUERIES", help="Ranges: a column of ids, and borders.")
]

Stream = Annotated[
    str, data(metavar="COLUMN|-", help="What moves. [cyan]-[/cyan]: all rows are of one.")
]
Time = Annotated[str, data(metavar="COLUMN", help="When it was read.")]
Values = Annotated[
    list[str] | None,
    data(metavar="X,Y,…", help="What was read: one to nine columns. Default: value."),
]
Query = Annotated[str, data(metavar="COLUMN", help="The ids of queries.")]
Unit = Annotated[
    str | None,
    data(
        metavar="ns|us|ms|s|min|h|d",
        help="What a number in the time column counts. Timestamps need none, but ns where they are"
        " finer than 1 us.",
    ),
]
Invalid = Annotated[
    str,
    data(
        metavar="raise|drop",
        help="Readings without a stream or a time, or of infinite values: an error, or left out and"
        " counted.",
    ),
]

First = Annotated[
    str,
    meaning(
        metavar="ignore|outside",
        help="What a first reading inside a range says: nothing, or that the stream came in.",
    ),
]
PassThrough = Annotated[
    bool,
    meaning(
        "--pass-through",
        help="Tell of ranges that a stream goes through between two readings, by an I and an O.",
    ),
]
Interpolate = Annotated[
    bool,
    meaning(
        "--interpolate",
        help="Add crossing_time: when a straight move from reading to reading meets the border.",
    ),
]
Closed = Annotated[
    str,
    meaning(
        metavar="left|right|both|neither",
        help="Which of its borders a range holds. [cyan]both[/cyan] is SQL's BETWEEN.",
    ),
]
ClosedColumn = Annotated[
    str | None,
    meaning(
        metavar="COLUMN",
        help="The same for each query: a column of QUERIES; where it is null, --closed says it.",
    ),
]
Hysteresis = Annotated[
    str,
    meaning(
        metavar="D",
        help="How far beyond a border a stream must be to have left; one number, or X,Y,….",
    ),
]

Engine = Annotated[
    str,
    running(
        metavar="auto|spark|local",
        help="[cyan]local[/cyan]: in this process, without Java; readings must fit its memory, unless"
        " they are Parquet files in time order. [cyan]spark[/cyan]: on Spark. [cyan]auto[/cyan]:"
        " in this process, if the inputs would take no more than half of the memory that is free,"
        " and no option is of Spark.",
    ),
]
Way = Annotated[
    str,
    running(
        metavar="auto|direct|exchange",
        help="How streams get to where they are watched on Spark. [cyan]direct[/cyan]: part by part"
        " from Parquet files in order of streams. [cyan]exchange[/cyan]: through Spark's shuffle."
        " [cyan]auto[/cyan]: the first of them that suits the data.",
    ),
]
Processing = Annotated[
    str,
    running(
        metavar="auto|traversal|three-sided",
        help="How borders are searched. The answer is the same.",
    ),
]
BatchEvents = Annotated[int, running(help="Crossings in one batch; at most 65,536 on Spark.")]
