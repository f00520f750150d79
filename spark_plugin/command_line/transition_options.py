"""The options of `coincide transitions` with their help, beside those of the other commands."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

_data = partial(typer.Option, rich_help_panel="Data")
_meaning = partial(typer.Option, rich_help_panel="Meaning")
_running = partial(typer.Option, rich_help_panel="How it runs")

Events = Annotated[
    str, typer.Argument(metavar="EVENTS", help="Crossings: a file, a folder, a glob or a URI.")
]
Event = Annotated[str, _data(metavar="COLUMN", help="The words I and O.")]
Time = Annotated[
    str,
    _data(
        metavar="MIN,MAX",
        help="Columns with the ends of the timestamps; one column: exact times.",
    ),
]
Query = Annotated[str, _data(metavar="COLUMN", help="The region.")]
Invalid = Annotated[
    str,
    _data(
        metavar="raise|drop",
        help="Events with nulls, other words or impossible times: an error, or left out and counted.",
    ),
]

Within = Annotated[
    str,
    _meaning(
        metavar="D", help="The longest time of a transition, such as [cyan]3min[/cyan], or ticks."
    ),
]
Confidence = Annotated[
    float | None,
    _meaning(
        metavar="CT",
        help="How probable a transition or a stay must be, 0 < CT ≤ 1. Exact times need none.",
    ),
]
Until = Annotated[
    str | None,
    _meaning(
        metavar="TIME",
        help="Up to when the data are known, which decides stays of last events. Default: the largest"
        " max_time.",
    ),
]
Repeated = Annotated[
    str,
    _meaning(
        metavar="raise|first|last",
        help="An I after an I, or an O after an O: an error; left out; or the dwell time begins anew.",
    ),
]

Engine = Annotated[
    str,
    _running(
        metavar="auto|spark|local",
        help="[cyan]local[/cyan]: in this process, without Java; events must fit its memory."
        " [cyan]spark[/cyan]: on Spark. [cyan]auto[/cyan]: in this process, if the inputs would"
        " take no more than half of the memory that is free, and no option is of Spark.",
    ),
]
