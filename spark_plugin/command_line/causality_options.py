"""The options of `coincide causality` with their help, beside those of `coincide join`."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

_data = partial(typer.Option, rich_help_panel="Data")
_meaning = partial(typer.Option, rich_help_panel="Condition")
_result = partial(typer.Option, rich_help_panel="Result")
_running = partial(typer.Option, rich_help_panel="How it runs")

Causes = Annotated[
    str, typer.Argument(metavar="CAUSES", help="Events: a file, a folder, a glob or a URI.")
]
Effects = Annotated[
    str | None,
    typer.Argument(
        metavar="[EFFECTS]",
        help="The events that they may have caused. Left out: CAUSES are one stream, of whose events the"
        " earlier may have caused the later.",
    ),
]

CauseTime = Annotated[
    str, _data(metavar="COLUMN", help="When it happened; MIN,MAX where that is uncertain.")
]
EffectTime = Annotated[
    str | None, _data(metavar="COLUMN", help="The same, of EFFECTS. Default: as of CAUSES.")
]
CauseAround = Annotated[
    str | None,
    _data(
        metavar="D", help="How far off the clock of CAUSES may be, such as 10ms, or BEFORE,AFTER."
    ),
]
EffectAround = Annotated[
    str | None,
    _data(
        metavar="D",
        help="The same, of EFFECTS. Default: as of CAUSES, where --effect-time is, too.",
    ),
]
CauseResolution = Annotated[
    str | None,
    _data(
        metavar="D",
        help="How coarse the stamps of CAUSES are: with 1ms, t means some time from t to t + 1 ms.",
    ),
]
EffectResolution = Annotated[str | None, _data(metavar="D", help="The same, of EFFECTS.")]
CauseAroundColumn = Annotated[
    str | None,
    _data(
        metavar="NAME",
        help="The column that says how far off each stamp of CAUSES may be, or BEFORE,AFTER.",
    ),
]
EffectAroundColumn = Annotated[str | None, _data(metavar="NAME", help="The same, of EFFECTS.")]
CauseAroundUnit = Annotated[
    str | None, _data(metavar="UNIT", help="What the numbers in that column count, such as ms.")
]
EffectAroundUnit = Annotated[str | None, _data(metavar="UNIT", help="The same, of EFFECTS.")]
CauseTemplate = Annotated[
    str | None,
    _data(
        metavar="COLUMN",
        help="Column that names the template of each event of CAUSES, whose timestamps are histograms"
        " then.",
    ),
]
EffectTemplate = Annotated[str | None, _data(metavar="COLUMN", help="The same, of EFFECTS.")]
CauseTemplates = Annotated[
    str | None,
    _data(metavar="FILE", help="The templates: a file as --left-templates of coincide join."),
]
EffectTemplates = Annotated[str | None, _data(metavar="FILE", help="The same, of EFFECTS.")]
CausePlace = Annotated[
    list[str] | None,
    _data(
        metavar="X,Y,…",
        help="Where it happened: one to three columns; a number in the place of a name holds for all, such"
        " as 0 for a depth.",
    ),
]
EffectPlace = Annotated[
    list[str] | None, _data(metavar="X,Y,…", help="The same, of EFFECTS. Default: as of CAUSES.")
]
LatLon = Annotated[
    bool,
    _data(
        "--lat-lon",
        help="Places are latitude and longitude in degrees, and perhaps a height in km; distances are great"
        " circles in km.",
    ),
]
SphereRadius = Annotated[
    float | None,
    _data(metavar="R", help="With --lat-lon: of the sphere, which says in what distances are."),
]
Scale = Annotated[
    str | None,
    _data(
        metavar="A,B,…",
        help="What one unit of each coordinate is worth in the unit of distances. Default: 1 each.",
    ),
]
CauseUnit = Annotated[
    str | None,
    _data(
        "--cause-unit",
        "--left-unit",
        metavar="UNIT",
        help="As --unit, of CAUSES alone, where the sides differ.",
    ),
]
EffectUnit = Annotated[
    str | None,
    _data("--effect-unit", "--right-unit", metavar="UNIT", help="The same, of EFFECTS alone."),
]
Invalid = Annotated[
    str,
    _data(
        metavar="raise|drop",
        help="Rows of an impossible time or place: an error, or left out and counted.",
    ),
]

Delta = Annotated[
    tuple[str, str] | None,
    _meaning(
        "--delta",
        metavar="LO HI",
        help="LO ≤ T_effect − T_cause ≤ HI. Durations such as [cyan]0s 1.5h[/cyan], or ticks;"
        " [cyan]any[/cyan] leaves an end open.",
    ),
]
Radius = Annotated[float | None, _meaning(metavar="R", help="The distance is at most R.")]
Speed = Annotated[
    tuple[float, float] | None,
    _meaning(
        "--speed",
        metavar="MIN MAX",
        help="The effect comes when something of such a speed arrives; [cyan]inf[/cyan]: however fast.",
    ),
]
Slack = Annotated[
    str, _meaning(metavar="D", help="With --speed: so much earlier, or later, will do.")
]
PropagationTime = Annotated[
    str | None,
    _meaning(
        metavar="D",
        help="The effect comes D after its cause, or up to --tolerance later, however far away it is.",
    ),
]
PropagationSpeed = Annotated[
    float | None,
    _meaning(
        metavar="V",
        help="The effect comes when something of just this speed arrives, or up to --tolerance later.",
    ),
]
Tolerance = Annotated[
    str | None,
    _meaning(
        metavar="D", help="With --propagation-time or --propagation-speed: so much later will do."
    ),
]
Per = Annotated[
    str, _meaning(metavar="UNIT", help="Speeds are distances per ns, us, ms, s, min, h, d or tick.")
]
Ellipsoid = Annotated[
    tuple[str, str] | None,
    _meaning(
        "--ellipsoid", metavar="R D", help="(distance / R)² + (delta / D)² ≤ 1, D a duration."
    ),
]
Strict = Annotated[
    bool, _meaning("--strict", help="No bound is part of what it bounds: < in the place of ≤.")
]
Confidence = Annotated[
    float,
    _meaning(metavar="CT", help="Of uncertain times: how probable a pair must be, 0 < CT ≤ 1."),
]
By = Annotated[
    list[str] | None,
    _meaning(
        metavar="A,B,…",
        help="Columns that must be equal on both sides; [cyan]station=sta[/cyan] where that of EFFECTS has"
        " another name.",
    ),
]
Where = Annotated[
    str | None,
    _meaning(
        metavar="SQL",
        help="What pairs must meet besides, of cause_… and effect_… columns, delta and distance, such as"
        " [cyan]'distance <= 10 * cause_magnitude'[/cyan].",
    ),
]

How = Annotated[
    str,
    _result(
        metavar="inner|left|semi|anti",
        help="Pairs; pairs and causes without an effect; causes that have an effect; causes that have"
        " none.",
    ),
]
Emit = Annotated[
    str,
    _result(
        metavar="pairs|lists|counts|best",
        help="A row is a pair, with delta in ticks and distance; or a cause with arrays of its effects,"
        " with their number, or with the best one: most probable, then nearest to the middle of its"
        " window.",
    ),
]
CauseColumns = Annotated[
    list[str] | None, _result(metavar="A,B,…", help="Columns of CAUSES to hand out. Default: id.")
]
EffectColumns = Annotated[
    list[str] | None, _result(metavar="A,B,…", help="Columns of EFFECTS to hand out. Default: id.")
]
Prefer = Annotated[
    str,
    _result(
        metavar="probability|nearest|first|last|distance",
        help="With --emit best or --matching, which effect is the best one: the most probable, the one"
        " whose midpoint is nearest, the earliest, the latest, or the nearest in space.",
    ),
]
MostEffects = Annotated[
    int,
    _result(
        "--k",
        metavar="K",
        help="With --emit best, how many effects of each cause, ranked from 1.",
    ),
]

Shifts = Annotated[
    list[str] | None,
    _result(
        metavar="D,D,…",
        help="Tell how many pairs chance alone makes: they are counted again with the times of EFFECTS"
        " moved by each of these, such as [cyan]30s,-30s,47s[/cyan], all longer than the widest window of"
        " the condition. Their mean is what to expect among the pairs found, their standard deviation its"
        " spread.",
    ),
]

Engine = Annotated[
    str,
    _running(
        metavar="auto|spark|local",
        help="[cyan]local[/cyan]: in this process, without Java; inputs must fit its memory."
        " [cyan]spark[/cyan]: on Spark. [cyan]auto[/cyan]: in this process, if the inputs would"
        " take no more than half of the memory that is free, and no option is of Spark.",
    ),
]
Way = Annotated[
    str,
    _running(
        metavar="auto|broadcast|broadcast-left|broadcast-right|exchange",
        help="How events meet on Spark: one side to every worker (left are CAUSES), or both through"
        " Spark's shuffle, cut by time. The answer is the same.",
    ),
]
CauseLongest = Annotated[
    str | None,
    _running(
        "--cause-longest",
        "--left-longest",
        metavar="D",
        help="Declare the longest timestamp of CAUSES; a longer one is invalid.",
    ),
]
EffectLongest = Annotated[
    str | None,
    _running("--effect-longest", "--right-longest", metavar="D", help="The same, of EFFECTS."),
]
