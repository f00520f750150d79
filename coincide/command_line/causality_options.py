"""The options of `coincide causality` with their help, beside those of `coincide join`."""

from __future__ import annotations

from typing import Annotated

import typer

from coincide.command_line import options as s
from coincide.command_line.panels import condition, data, result, running

Causes = Annotated[
    str, typer.Argument(metavar="CAUSES", help="Events: a file, a folder, a glob or a URI.")
]
Effects = Annotated[
    str | None,
    typer.Argument(
        metavar="[EFFECTS]",
        help="The events that they may have caused. Left out: CAUSES are one stream, of whose events each"
        " may have caused every other one.",
    ),
]

Events = Annotated[str, typer.Argument(metavar="EVENTS", help="A file, a folder, a glob or a URI.")]
Time = Annotated[
    str, data(metavar="COLUMN", help="When it happened; MIN,MAX where that is uncertain.")
]
Around = Annotated[str | None, s.around_of("EVENTS")]
Resolution = Annotated[str | None, s.resolution_of("EVENTS")]
AroundColumn = Annotated[str | None, s.around_column_of("EVENTS")]
AroundUnit = Annotated[str | None, s.around_unit()]
Template = Annotated[str | None, s.template_of("EVENTS")]
Templates = Annotated[
    str | None,
    data(metavar="FILE", help="The templates: a file as --left-templates of coincide join."),
]
Place = Annotated[
    list[str] | None,
    data(
        metavar="X,Y,…",
        help="Where it happened: one to three columns; a number in the place of a name holds for all.",
    ),
]
ClusterBy = Annotated[
    list[str] | None,
    condition(metavar="A,B,…", help="Columns that must be equal: a cluster has one value of each."),
]
Columns = Annotated[list[str] | None, s.columns_of("EVENTS")]

CauseTime = Annotated[
    str, data(metavar="COLUMN", help="When it happened; MIN,MAX where that is uncertain.")
]
EffectTime = Annotated[
    str | None, data(metavar="COLUMN", help="The same, of EFFECTS. Default: as of CAUSES.")
]
CauseAround = Annotated[str | None, s.around_of("CAUSES")]
EffectAround = Annotated[
    str | None,
    data(
        metavar="D",
        help="The same, of EFFECTS. Default: as of CAUSES, where --effect-time is, too.",
    ),
]
CauseResolution = Annotated[str | None, s.resolution_of("CAUSES")]
EffectResolution = Annotated[str | None, s.same_of("D", "EFFECTS")]
CauseAroundColumn = Annotated[str | None, s.around_column_of("CAUSES")]
EffectAroundColumn = Annotated[str | None, s.same_of("NAME", "EFFECTS")]
CauseAroundUnit = Annotated[str | None, s.around_unit()]
EffectAroundUnit = Annotated[str | None, s.same_of("UNIT", "EFFECTS")]
CauseTemplate = Annotated[str | None, s.template_of("CAUSES")]
EffectTemplate = Annotated[str | None, s.same_of("COLUMN", "EFFECTS")]
CauseTemplates = Annotated[
    str | None,
    data(metavar="FILE", help="The templates: a file as --left-templates of coincide join."),
]
EffectTemplates = Annotated[str | None, s.same_of("FILE", "EFFECTS")]
CausePlace = Annotated[
    list[str] | None,
    data(
        metavar="X,Y,…",
        help="Where it happened: one to three columns; a number in the place of a name holds for all, such"
        " as 0 for a depth.",
    ),
]
EffectPlace = Annotated[
    list[str] | None, data(metavar="X,Y,…", help="The same, of EFFECTS. Default: as of CAUSES.")
]
LatLon = Annotated[
    bool,
    data(
        "--lat-lon",
        help="Places are latitude and longitude in degrees, and perhaps a height in km; distances are great"
        " circles in km.",
    ),
]
SphereRadius = Annotated[
    float | None,
    data(metavar="R", help="With --lat-lon: of the sphere, which says in what distances are."),
]
Scale = Annotated[
    str | None,
    data(
        metavar="A,B,…",
        help="What one unit of each coordinate is worth in the unit of distances. Default: 1 each.",
    ),
]
CauseUnit = Annotated[
    str | None,
    data(
        "--cause-unit",
        "--left-unit",
        metavar="UNIT",
        help="As --unit, of CAUSES alone, where the sides differ.",
    ),
]
EffectUnit = Annotated[
    str | None,
    data("--effect-unit", "--right-unit", metavar="UNIT", help="The same, of EFFECTS alone."),
]
Invalid = Annotated[
    str,
    data(
        metavar="raise|drop",
        help="Rows of an impossible time or place: an error, or left out and counted.",
    ),
]

Delta = Annotated[
    tuple[str, str] | None,
    condition(
        "--delta",
        metavar="LO HI",
        help="LO ≤ T_effect − T_cause ≤ HI. Durations such as [cyan]0s 1.5h[/cyan], or ticks;"
        " [cyan]any[/cyan] leaves an end open.",
    ),
]
Radius = Annotated[
    str | None,
    condition(
        metavar="R",
        help="The distance is at most R; with --lat-lon in km, or as [cyan]500m[/cyan] says.",
    ),
]
Speed = Annotated[
    tuple[str, str] | None,
    condition(
        "--speed",
        metavar="MIN MAX",
        help="The effect comes when something of such a speed arrives; [cyan]any[/cyan]: however slow, or"
        " fast.",
    ),
]
Slack = Annotated[
    str, condition(metavar="D", help="With --speed: so much earlier, or later, will do.")
]
PropagationTime = Annotated[
    str | None,
    condition(
        metavar="D",
        help="The effect comes D after its cause, or up to --tolerance later, however far away it is.",
    ),
]
PropagationSpeed = Annotated[
    float | None,
    condition(
        metavar="V",
        help="The effect comes when something of just this speed arrives, or up to --tolerance later.",
    ),
]
Tolerance = Annotated[
    str | None,
    condition(
        metavar="D", help="With --propagation-time or --propagation-speed: so much later will do."
    ),
]
Per = Annotated[
    str,
    condition(metavar="UNIT", help="Speeds are distances per ns, us, ms, s, min, h, d or tick."),
]
Ellipsoid = Annotated[
    tuple[str, str] | None,
    condition(
        "--ellipsoid", metavar="R D", help="(distance / R)² + (delta / D)² ≤ 1, D a duration."
    ),
]
Strict = Annotated[
    bool, condition("--strict", help="No bound is part of what it bounds: < in the place of ≤.")
]
Confidence = Annotated[
    float,
    condition(metavar="CT", help="Of uncertain times: how probable a pair must be, 0 < CT ≤ 1."),
]
By = Annotated[
    list[str] | None,
    condition(
        metavar="A,B,…",
        help="Columns that must be equal on both sides; [cyan]station=sta[/cyan] where that of EFFECTS has"
        """ another name, [cyan]'"a=b"'[/cyan] where it has = or , in it.""",
    ),
]
Where = Annotated[
    str | None,
    condition(
        metavar="SQL",
        help="What pairs must meet besides, of cause_… and effect_… columns, delta_us and distance, such as"
        " [cyan]'distance <= 10 * cause_magnitude'[/cyan].",
    ),
]

How = Annotated[
    str,
    result(
        metavar="inner|left|semi|anti",
        help="Pairs; pairs and causes without an effect; causes that have an effect; causes that have"
        " none.",
    ),
]
Emit = Annotated[
    str,
    result(
        metavar="pairs|lists|counts|best",
        help="A row is a pair, with delta_us (of microseconds) and distance; or a cause with arrays of its"
        " effects,"
        " with their number, or with the best one: most probable, then nearest to the middle of its"
        " window.",
    ),
]
CauseColumns = Annotated[list[str] | None, s.columns_of("CAUSES")]
EffectColumns = Annotated[list[str] | None, s.columns_of("EFFECTS")]
Prefer = Annotated[
    str,
    result(
        metavar="probability|nearest|first|last|distance|COLUMN|-COLUMN",
        help="With --emit best or --matching, which effect is the best one: the most probable, the one"
        " whose midpoint is nearest, the earliest, the latest, or the nearest in space; or that with the"
        " least value of a column of EFFECTS, or, as [cyan]-snr[/cyan], the greatest.",
    ),
]
MostEffects = Annotated[int, s.partners_of("cause", "effects")]

Shifts = Annotated[
    list[str] | None,
    result(
        metavar="D,D,…",
        help="Tell how many pairs chance alone makes: they are counted again with the times of EFFECTS"
        " moved by each of these, such as [cyan]30s,-30s,47s[/cyan], all longer than the widest window of"
        " the condition. Their mean is what to expect among the pairs found, their standard deviation its"
        " spread.",
    ),
]

Engine = Annotated[
    str,
    running(
        metavar="auto|spark|local",
        help="[cyan]local[/cyan]: in this process, without Java; inputs must fit its memory."
        " [cyan]spark[/cyan]: on Spark. [cyan]auto[/cyan]: in this process, if the inputs would"
        " take no more than half of the memory that is free, and no option is of Spark.",
    ),
]
Way = Annotated[
    str,
    running(
        metavar="auto|broadcast|broadcast-left|broadcast-right|exchange",
        help="How events meet on Spark: one side to every worker (left are CAUSES), or both through"
        " Spark's shuffle, cut by time. The answer is the same.",
    ),
]
CauseLongest = Annotated[
    str | None,
    running(
        "--cause-longest",
        "--left-longest",
        metavar="D",
        help="Declare the longest timestamp of CAUSES; a longer one is invalid.",
    ),
]
EffectLongest = Annotated[
    str | None,
    running("--effect-longest", "--right-longest", metavar="D", help="The same, of EFFECTS."),
]
