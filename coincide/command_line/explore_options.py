"""The options that `coincide explore` has of its own, with their help; the others are those of the join."""

from __future__ import annotations

from typing import Annotated

from coincide.command_line.panels import data, result, running

Page = Annotated[str, data("-o", "--output", metavar="PAGE.html", help="The page to write.")]
Pictures = Annotated[
    str | None,
    data(
        "--png",
        metavar="PATH",
        help="Write the charts as pictures, too: all in one [cyan]NAME.png[/cyan], or each into a folder.",
    ),
]
Overwrite = Annotated[bool, data("--overwrite", help="Replace what is there.")]
Confidence = Annotated[float, result(metavar="CT", help="At which delays are shown, 0 < CT ≤ 1.")]
Confidences = Annotated[
    str | None,
    result(
        metavar="CT,CT,…",
        help="At which partners are counted by event, at most six. Default: 0.1,0.5,0.9.",
    ),
]
Shifts = Annotated[
    list[str] | None,
    result(
        metavar="D,D,…",
        help="Show how many pairs chance alone makes, at each confidence: with the times of RIGHT moved"
        " by each of these, such as [cyan]30s,-30s,47s[/cyan].",
    ),
]
MostPairs = Annotated[
    int,
    running(
        metavar="N",
        min=1,
        help="Of more pairs, those of a sample of the events of LEFT are looked at.",
    ),
]
Engine = Annotated[
    str, running(metavar="local", help="In this process; there is no other engine.", hidden=True)
]
