"""The options of `coincide transitions` with their help, beside those of the other commands."""

from __future__ import annotations

from typing import Annotated

import typer

from coincide.command_line.panels import data, meaning, running

Events = Annotated[
    str, typer.Argument(metavar="EVENTS", help="Crossings: a file, a folder, a glob or a URI.")
]
Event = Annotated[str, data(metavar="COLUMN", help="The words I and O.")]
Time = Annotated[
    str,
    data(
        metavar="MIN,MAX",
        help="Columns with the ends of the timestamps; one column: exact times.",
    ),
]
Query = Annotated[str, data(metavar="COLUMN", help="The region.")]
Invalid = Annotated[
    str,
    data(
        metavar="raise|drop",
        help="Events with nulls, other words or impossible times: an error, or left out and counted.",
    ),
]

Within = Annotated[
    str,
    meaning(
        metavar="D", help="The longest time of a transition, such as [cyan]3min[/cyan], or ticks."
    ),
]
Confidence = Annotated[
    float | None,
    meaning(
        metavar="CT",
        help="How probable a transition or a stay must be, 0 < CT ≤ 1. Exact times need none.",
    ),
]
Until = Annotated[
    str | None,
    meaning(
        metavar="TIME",
        help="Up to when the data are known, which decides stays of last events. Default: the largest"
        " max_time.",
    ),
]
Repeated = Annotated[
    str,
    meaning(
        metavar="raise|first|last",
        help="An I after an I, or an O after an O: an error; left out; or the dwell time begins anew.",
    ),
]

Engine = Annotated[
    str,
    running(
        metavar="auto|spark|local",
        help="[cyan]local[/cyan]: in this process, without Java; events must fit its memory."
        " [cyan]spark[/cyan]: on Spark. [cyan]auto[/cyan]: in this process, if the inputs would"
        " take no more than half of the memory that is free, and no option is of Spark.",
    ),
]
