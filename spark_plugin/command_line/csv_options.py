"""Options of commands that say how inputs of CSV are written."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

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
