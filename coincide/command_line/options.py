"""The options of all commands: each is declared once, in groups that make up a command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from inspect import Parameter
from typing import Annotated, Any

import typer

from coincide.command_line.problems import in_options
from coincide.model.options import MATCHINGS, OUTPUT_ROWS, PREFERENCES, EffectChoice, MatchChoice

_KINDS: dict[str | None, Any] = {
    None: str,
    "int": int,
    "float": float,
    "list": list[str],
    "two": tuple[str, str],
}
_WRITTEN = re.compile(
    r"(?P<flags>-[\w-]+(?:, -[\w-]+)*)(?: (?P<metavar>.+?))?(?:: (?P<kind>\w+))?(?: = (?P<default>.*))?"
)
_NAMES = {
    "--format": "file_format", "--json": "as_json", "--time-format": "csv_time_format",
    "--repeated-hour": "csv_repeated_hour",
}  # fmt: skip
"""What options are called inside, where that is not as they are typed."""


def _group(panel: str, table: Mapping[str, str], **more: Any) -> list[Parameter]:
    """Options of a panel, written as ``--name METAVAR: kind = default``; without METAVAR it is a flag."""
    # Kinds are str, int, float, list (of str) and two (str). ``= !`` is of an option that must be
    # given.
    return [_option(panel, written, help, more) for written, help in table.items()]


def _option(panel: str, written: str, help: str, more: dict[str, Any]) -> Parameter:
    parts = _WRITTEN.fullmatch(written)
    assert parts is not None, written
    flags, metavar = parts["flags"].split(", "), parts["metavar"]
    name = _NAMES.get(flags[0], flags[0].lstrip("-").replace("-", "_"))
    shown = typer.Option(*flags, metavar=metavar, help=help, rich_help_panel=panel, **more)
    if metavar is None:
        return _parameter(name, False, bool, shown)
    kind, text = _KINDS[parts["kind"]], parts["default"]
    default = None if text is None else Parameter.empty if text == "!" else kind(text)
    return _parameter(name, default, kind, shown)


def _parameter(name: str, default: Any, kind: Any, shown: Any) -> Parameter:
    """A keyword of a command, as Typer reads it; with None as its default it may be left out."""
    kind = kind | None if default is None else kind
    return Parameter(
        name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, shown]
    )


def typed(name: str, options: Sequence[Parameter], words: Mapping[str, Any]) -> str:
    """What was typed, in one order, without what is as its default."""
    found = ["coincide", name]
    for each in options:
        word = words.get(each.name, each.default)
        if word == each.default:
            continue
        (shown,) = each.annotation.__metadata__
        # Typer has the first flag as `default` here; an input has none.
        flags = (shown.default, *(shown.param_decls or ()))
        flag = [each for each in flags if isinstance(each, str)][-1:]
        for one in word if isinstance(word, list) else [word]:
            values = one if isinstance(one, tuple) else () if one is True else (one,)
            found += [*flag, *map(str, values)]
    return shlex.join(found)


def _input(name: str, help: str, default: Any = Parameter.empty) -> Parameter:
    return _parameter(name, default, str, typer.Argument(metavar=name.upper(), help=help))


_CSV = {
    "--csv-delimiter CHARACTER": "Between cells: ; or tab, and so on. Default: a comma; of .tsv a tab.",
    "--csv-quote CHARACTER": 'Around cells that hold the delimiter. Default: "; or none.',
    "--csv-decimal CHARACTER": "Before decimals. Default: a point.",
    "--csv-null TEXT: list": "A cell that means nothing, such as NA, as empty cells do; repeatable.",
    "--csv-type COLUMN=TYPE: list": "What a column holds: text, integer, float,"
    " [cyan]'decimal(10,2)'[/cyan] (10 digits, 2 of them after the point), boolean, date, timestamp (with"
    " offsets), timestamp_ntz (without) or timestamp@ZONE (without, of clocks there); repeatable. Default:"
    " from the cells, and numbers that do not print as they were written, such as 007, are text.",
    "--csv-names A,B,…: list": "The columns' names, of files without a header.",
    "--csv-skip LINES: int = 0": "How many lines are above the header.",
    "--csv-comment CHARACTER": "Lines that begin with it are comments, such as # ….",
    "--csv-encoding NAME": "Such as latin-1, cp1252 or utf-16. Default: utf-8.",
    "--time-format FORMAT": "How times are written, such as [cyan]'%d/%m/%Y %H:%M:%S'[/cyan], with %f for"
    " decimals and %z for an offset. Default: ISO 8601, or numbers.",
    "--repeated-hour first|second|order": "Which of the two is meant where clocks of a zone"
    " (timestamp@ZONE) showed an hour twice. [cyan]order[/cyan]: the first one, until a line is earlier"
    " than the one before. Default: an error.",
}
_SIDED = {
    "csv 'NAME=VALUE …'": "What differs in {of}: these options without --csv-, such as 'delimiter=;"
    " null=NA'.",
    "time MIN,MAX": "Columns with the ends of the timestamps; one column: exact times.",
    "around D": "How far off the clock of {of} may be, such as 10ms, or BEFORE,AFTER. --{side}time is the"
    " one column of its stamps.",
    "resolution D": "How coarse the stamps of {of} are: with 1ms, t means some time from t to t + 1 ms.",
    "around-column NAME": "The column that says how far off each stamp of {of} may be, or BEFORE,AFTER.",
    "around-unit UNIT": "What the numbers in that column count, such as ms.",
    "clock ERRORS": "A file that coincide clocks has written: stamps of {of} are put right by it."
    " --{side}time is the one column of these stamps, or with --relation START,END.",
    "clock-by A,B,…: list": "Columns that name the clock; [cyan]unit=device[/cyan] where that of ERRORS has"
    " another name.",
    "clock-around D|fitted": "How far an event may be from its corrected time: ± D; or [cyan]fitted[/cyan],"
    " by the spread in ERRORS. Default: events are instants.",
    "duration COLUMN": "With --relation: how long each event of {of} lasts, in place of END. --{side}time"
    " is the one column of starts.",
    "duration-unit UNIT": "What the numbers in that column count, such as ms.",
    "template COLUMN": "Column that names the template of each event of {of}, whose timestamps are"
    " histograms then. --{side}time is the one column of the times at which they were seen.",
    "templates FILE": "The templates: Parquet, CSV or Arrow with the columns template, lower, upper, mass;"
    " or delay_lower and delay_upper for delays of detection.",
    "place X,Y,…: list": "Where it happened: one to three columns; a number instead of a name holds"
    " for all, such as 0 for a depth.",
    "unit UNIT": "Like --unit, for {of} alone, where the sides differ.",
    "columns A,B,…: list": "Columns of {of} in the output. Default: id; without such a column, the number"
    " of the row, from 0 (not on Spark).",
    "longest D": "Declare the longest timestamp of {of}; a longer one is invalid.",
    "schema SCHEMA": "What records of {of} hold: columns, such as [cyan]'id BIGINT, time TIMESTAMP'[/cyan],"
    " or a file with them, of Parquet or of Avro (.avsc). Records are JSON, or Avro if that is the schema.",
    "delay D": "How long after later events one of {of} may still come. One that comes even later is late,"
    " and takes no part.",
}
"""Options that each input has for itself, named after it."""
_JOIN = {"left-": "LEFT", "right-": "RIGHT"}
_CAUSALITY = {"cause-": "CAUSES", "effect-": "EFFECTS"}
_CLUSTERS = {"": "EVENTS"}
_OTHER_NAMES = {
    f"--{side}{name}": f"--{other}{name}"
    for side, other in zip(_CAUSALITY, _JOIN, strict=True)
    for name in ("unit", "longest")
}
"""Under which `coincide causality` knows options as the join has them."""
_CLOCK = ("around", "resolution", "around-column", "around-unit")
_CORRECTED = ("clock", "clock-by", "clock-around")
_HISTOGRAM = ("template", "templates")


def _sided(
    panel: str,
    sides: Mapping[str, str],
    *names: str,
    defaults: Sequence[str] = ("", ""),
    otherwise: str = "",
) -> list[Parameter]:
    """Options of each input, by what their names begin with ("" of an only one) and what it is called."""
    written = {key.partition(" ")[0]: (key.partition(" ")[2], help) for key, help in _SIDED.items()}
    found = {}
    for name in names:
        rest, help = written[name]
        for i, (side, called) in enumerate(sides.items()):
            flag = f"--{side}{name}"
            flags = ", ".join([flag, *filter(None, [_OTHER_NAMES.get(flag)])])
            same = f"The same for {called}.{otherwise}"
            found[f"{flags} {rest}{defaults[i]}"] = same if i else help.format(of=called, side=side)
    return _group(panel, found)


_OUTPUT = _group(
    "Data",
    {
        "--output, -o OUT = !": "Parquet, a file, or on Spark a folder; or a file of CSV or Arrow IPC, if"
        " its name ends so; or [cyan]-[/cyan] for standard output.",
        "--output-format parquet|csv|arrow": "What OUT is, where its name does not say. Default: Parquet;"
        " CSV on standard output.",
    },
)


def _files(*sides: str) -> list[Parameter]:
    """What the inputs are, and how CSV is written; of several sides each may differ."""
    general = {
        "--overwrite": "Replace what is there, once the new one is whole.",
        "--format, -f parquet|csv|arrow": "What the inputs are, where their names do not say.",
    }
    called = {f"{side}-": side.upper() for side in sides}
    return [*_group("Data", general), *_group("CSV", _CSV), *_sided("CSV", called, "csv")]


def _time_rules(refused: str) -> list[Parameter]:
    """What numbers in time columns count, and what becomes of rows such as those of `refused`."""
    return _group(
        "Timestamps",
        {
            "--unit ps|ns|us|ms|s|min|h|d": "What a number in the time columns counts. Timestamps need"
            " none, but ns where they are finer than 1 us.",
            "--tick UNIT": "In what times are counted. Default: us for timestamps, ns for floats, the finer"
            " unit for integers. Coarser ticks round floats, and reach further.",
            "--invalid raise|drop = raise": f"{refused}: an error, or skipped and counted.",
        },
    )


def _pairs(right: str, such_as: str) -> list[Parameter]:
    """What must be equal on both sides, the second of which is called `right`, and what else must hold."""
    return _group(
        "Condition",
        {
            "--by A,B,…: list": "Columns that must be equal on both sides; [cyan]station=sta[/cyan] where"
            f""" that of {right} has another name, [cyan]'"a=b"'[/cyan] where it has = or , in it.""",
            "--where SQL": f"What pairs must also meet, such as {such_as}.",
        },
    )


_OF_PAIRS = (
    "[cyan]'distance <= 10 * cause_magnitude'[/cyan], of cause_… and effect_… columns and delta_us"
)
_WINDOW = {
    "--within LO HI: two": "LO ≤ T_right − T_left ≤ HI. Durations such as [cyan]-250ms 1.5s[/cyan], or"
    " ticks. One duration D alone is [cyan]-D D[/cyan]. [cyan]none[/cyan] is no end:"
    " with --emit best, --prefer last or first, of exact times.",
    "--mutual-deadline D": "Short for [cyan]--within -D D[/cyan].",
    "--closed both|left|right|neither = both": "Which ends belong to the window. Time is whole ticks: an"
    " end that does not is moved in by one.",
}
_SPACE = {
    "--lat-lon": "Places are latitude and longitude in degrees, and perhaps a height in km; distances are"
    " great circles in km.",
    "--sphere-radius R: float": "With --lat-lon: the sphere's radius, in the unit of distances."
    " Default: the Earth's, in km.",
    "--height-scale H: float": "With --lat-lon: what one unit of height is worth in the unit of distances:"
    " 0.001 of metres. Default: 1.",
    "--scale A,B,…": "What one unit of each coordinate is worth in the unit of distances. Default: 1 each.",
}
_PROPAGATION = {
    "--delta LO HI: two": "LO ≤ T_effect − T_cause ≤ HI. Durations such as [cyan]0s 1.5h[/cyan], or ticks;"
    " [cyan]any[/cyan] leaves an end open.",
    "--radius R": "The distance is at most R; with --lat-lon in km, or as [cyan]500m[/cyan] says.",
    "--speed MIN MAX: two": "The effect comes when something of such a speed arrives; [cyan]any[/cyan]:"
    " however slow, or fast.",
    "--slack D = 0": "With --speed: how much earlier or later is still in time.",
    "--per UNIT = s": "Speeds are distances per ps, ns, us, ms, s, min, h, d or tick.",
    "--propagation-time D": "The effect comes D after its cause, or up to --tolerance later, however far"
    " away it is.",
    "--propagation-speed V: float": "The effect comes when something of just this speed arrives, or up to"
    " --tolerance later.",
    "--tolerance D": "With --propagation-time or --propagation-speed: how much later is still in time.",
    "--ellipsoid R D: two": "(distance / R)² + (delta / D)² ≤ 1, D a duration.",
    "--strict": "Exclude the bounds: < instead of ≤.",
    "--confidence CT: float = 1.0": "How probable a pair of uncertain times must be, such as 0.9 or 90%.",
}


def _results(
    sides: Mapping[str, str],
    event: str,
    match: str,
    matches: str,
    *,
    how: str,
    row: str,
    choice: type[MatchChoice] = MatchChoice,
    ties: Mapping[str, str] = {},
) -> list[Parameter]:
    """Which rows there are, with which columns, and which match of an event is the best one."""
    right = [*sides.values()][1]
    words = ". ".join(
        f"[cyan]{name}[/cyan]: {PREFERENCES[name].takes}" for name in choice.preferences
    )
    matchings = ". ".join(
        f"[cyan]{name}[/cyan]: {in_options(word.gives)}" for name, word in MATCHINGS.items()
    )
    rows = {
        "--how KIND = inner": how,
        f"--emit {'|'.join(OUTPUT_ROWS)} = pairs": f"A row is {row}; or a {event} with arrays of its"
        f" {matches}, with their number, or with the best one, as --prefer says.",
        "--probability": "Add the probability of each pair.",
    }
    choices = {
        "--shifts D,D,…: list": "Tell how many pairs chance alone makes: they are counted again with the"
        f" times of {right} moved by each of these, such as [cyan]30s,-30s,47s[/cyan], all longer than the"
        " window. Their mean is what to expect among the pairs found, their standard deviation its spread.",
        "--prefer WHICH = probability": f"With --emit best or --matching, which {match} is the best one."
        f" {words}. Of rows of equal time first takes the earlier row, last the later one (on Spark"
        " output columns decide)."
        " [cyan]snr[/cyan], [cyan]-snr[/cyan]: that with the least, or the greatest, value of this column"
        f" of {right}. [cyan]last,-seq[/cyan]: of equally late ones that with the greatest seq.",
        "--k K: int = 1": f"With --emit best, how many {matches} of each {event}, ranked from 1.",
        **ties,
        "--matching KIND": f"Pairs one to one. {matchings}.",
        "--largest-group N: int = 2000": "Most events of a group that --matching optimal takes.",
    }
    columns = _sided("Result", sides, "columns")
    return [*_group("Result", rows), *columns, *_group("Result", choices)]


def _engines(unless: str = "") -> dict[str, str]:
    return {
        "--engine auto|spark|local = auto": "[cyan]local[/cyan]: in this process, without Java; inputs must"
        f" fit its memory{unless}. [cyan]spark[/cyan]: on Spark. [cyan]auto[/cyan]: in this process, if the"
        " inputs would take no more than half of the memory that is free, and no option is of Spark."
    }


_IN_ORDER = ", unless they are Parquet files in time order"
_SPARK = {
    "--master URL": "Spark master. Default: what Spark's configuration says, else local[*].",
    "--conf KEY=VALUE: list": "A Spark setting; repeatable.",
}
_BACKEND = {
    "--backend auto|cpu|gpu = auto": "auto takes a GPU where a worker has one. The answer is the same."
}
_SLICES = {"--slices N: int": "Time slices, hence Spark tasks. Default: from the data."}
_BATCH_PAIRS = {
    "--batch-pairs N: int": "Pairs in one batch; bounds memory. Default: 65,536 on Spark, 1,000,000 else.",
    "--max-pairs N: int": "Most pairs that the answer may have; more end the command before they are"
    " written. Default: what fits on the disk of the output; on Spark any.",
}
_THREADS = {"--threads N: int": "Threads of a process. Default: all cores; on Spark one."}
_AT_LAST = _group(
    "How it runs",
    {
        "--json": "Print the summary as one JSON object.",
        "--debug": "Show tracebacks and what Spark logs.",
    },
)
_TWO_INPUTS = [
    _input("left", "Events: a file, a folder, a glob, a URI, or - for standard input."),
    _input("right", "The other events. Without it those of LEFT are joined with themselves.", None),
]
_TIMED_PAIRS = [
    *_files("left", "right"),
    *_sided("Timestamps", _JOIN, "time", defaults=[" = min_time,max_time"] * 2),
    *_sided("Timestamps", _JOIN, *_CLOCK, *_CORRECTED),
    *_sided("Histograms", _JOIN, *_HISTOGRAM),
    *_time_rules("Rows whose time cannot be one"),
    *_sided("Timestamps", _JOIN, "unit"),
    *_group("Condition", _WINDOW),
    *_pairs("RIGHT", "[cyan]'left_amount = right_amount'[/cyan]"),
]
_SPANS = {
    "--relation NAME": "Events last, and --left-time and --right-time are START,END. Pairs are"
    " [cyan]overlapping[/cyan]; or left is [cyan]containing[/cyan] or [cyan]inside[/cyan] right; or right"
    " is [cyan]following[/cyan] left; or one of Allen's relations holds, such as [cyan]meets[/cyan]."
    " --closed applies to both sides. Where starts and ends are uncertain, --left-around and --right-around"
    " say by how much (START,END where the two differ), and --confidence how probable a pair must be.",
    "--open-ends": "With --relation: an empty end, or duration, is that of an event that goes on.",
    "--min-overlap D": "With --relation overlapping: the least time in common.",
    "--share S": "With --relation overlapping: the least share of both that it is, such as 0.5 or 1/3, or"
    " LEFT,RIGHT.",
    "--gap D": "The most time between the two, of overlapping, following, before and after.",
    "--slack D": "With --relation containing or inside: by how much the inner one may stick out at each"
    " end.",
}
_DELTA = (
    "[cyan]delta[/cyan]: how long after the left event the right one comes, as delta_us."
    " [cyan]overlap[/cyan], of spans: the time in common, below 0 the gap; [cyan]overlap_start[/cyan] and"
    " [cyan]overlap_end[/cyan]: when it begins and ends."
)
JOIN = [
    *_TWO_INPUTS,
    *_OUTPUT,
    *_TIMED_PAIRS,
    *_group(
        "Condition",
        {
            "--confidence CT: float": "How probable a pair must be, such as 0.9 or 90%. 0.5: more likely"
            " than not. Exact times, of one column a side, need none.",
            **_SPANS,
        },
    ),
    *_sided("Timestamps", _JOIN, "duration", "duration-unit"),
    *_group(
        "Timestamps",
        {
            "--modulus M: int": "Times are counted by one clock that begins again at M, such as 4294967296"
            " of 32 bits. They go on from row to row, so inputs are in the order in which they were"
            " counted. In one process.",
            "--in-order": "With --modulus: no row of an input is before the one above it, so longer pauses"
            " are clear.",
        },
    ),
    *_results(
        _JOIN,
        "left event",
        "match",
        "matches",
        how="[cyan]inner[/cyan]: pairs. [cyan]left[/cyan]: and left events without a match."
        " [cyan]right[/cyan]: pairs, and right events without one. [cyan]full[/cyan]: both."
        " [cyan]right[/cyan] with --emit best: a row per right event, with its best left match."
        " [cyan]semi[/cyan]: left events that have a match. [cyan]anti[/cyan]: those that have none.",
        row="a pair",
        ties={
            "--ties order|all = order": "With --emit best, whether matches as good as the last of the K are"
            " in the output, too."
        },
    ),
    *_group("Result", {"--pair-columns NAME: list": _DELTA}),
    *_group(
        "How it runs",
        {
            **_engines(_IN_ORDER),
            "--way WAY = auto": "How rows get to where they are joined. [cyan]files[/cyan]: slice by slice"
            " from Parquet files that lie in time order. [cyan]broadcast[/cyan], only on Spark: the smaller"
            " side, or that of broadcast-left or broadcast-right, to every worker; broadcast-both: both."
            " [cyan]exchange[/cyan]: through Spark's shuffle, or with --engine local all at once."
            " [cyan]auto[/cyan]: the first of them that suits the data.",
            **_SPARK,
            **_BACKEND,
            **_SLICES,
            "--classes N: int": "Length classes a side. Default: from the data.",
        },
    ),
    *_sided("How it runs", _JOIN, "longest"),
    *_group("How it runs", _BATCH_PAIRS | _THREADS),
    *_AT_LAST,
]
_NOT_OF_STREAMS = {
    *("overwrite", "file_format", "output_format", "engine", "way", "slices"),
    *("shifts", "matching", "largest_group", "modulus", "in_order", "max_pairs"),  # need all events
}
"""Options of a join that a join of streams does not have, with those of CSV."""
_FEED = "kafka://HOST:PORT/TOPIC, or a folder of Parquet files that grows"
STREAM = [
    _input("left", f"Events: {_FEED}."),
    _input("right", "The other events. Without it those of LEFT are joined with themselves.", None),
    *_group(
        "Data",
        {
            "--output, -o OUT = !": "[cyan]kafka://HOST:PORT/TOPIC[/cyan], where each row becomes a record"
            " of JSON, or a folder of Parquet.",
            "--checkpoint FOLDER = !": "Where the run keeps what it has read, found and written. Run the"
            " same command again, and it goes on from there.",
        },
    ),
    *_sided("Data", _JOIN, "schema"),
    *_group(
        "Data",
        {
            "--key A,B,…: list": "Columns of the output that make the key of a record. Default: those of"
            " --by.",
            "--kafka KEY=VALUE: list": "A setting of Kafka's clients, such as"
            " [cyan]security.protocol=SSL[/cyan]; repeatable.",
            "--begin earliest|latest = earliest": "Where a topic is read from, without a checkpoint.",
        },
    ),
    *_sided("Lateness", _JOIN, "delay", defaults=[" = !", ""], otherwise=" Default: like LEFT."),
    *_group(
        "Lateness",
        {
            "--late count|rows = count": "What becomes of late events: a number, or also rows, with the"
            " column late.",
            "--left-ahead D": "An event further ahead of the median of its trigger is set aside. It makes"
            " no others late.",
            "--right-ahead D": "As --left-ahead, of RIGHT. Default: like LEFT.",
            "--idle-after D": "A side without events for so long no longer holds the other one up.",
        },
    ),
    *_group(
        "How it runs",
        {
            "--once": "End when all is read that was there at the start.",
            "--trigger D": "How often new events are taken. Default: as soon as the last ones are done.",
            "--slice-length D": "Length of the time slices in which events wait. Default: from the delays.",
        },
    ),
    *_group(
        "How it runs",
        {"--most N: int": "Most records, of a folder files, that a trigger takes of an input."},
        min=1,
    ),
    *(
        each
        for each in JOIN
        if each.name not in {"left", "right", "output"} | _NOT_OF_STREAMS
        and "csv" not in each.name
        and each not in _AT_LAST
    ),
    *_AT_LAST,
]
EXPLORE = [
    *_TWO_INPUTS,
    *_group("Data", {"--output, -o PAGE.html = explore.html": "The page to write."}),
    *_TIMED_PAIRS,
    *_group(
        "Result",
        {
            "--confidence CT: float = 0.5": "At which delays are shown, such as 0.9 or 90%.",
            "--confidences CT,CT,…": "At which matches are counted by event, at most six. Default:"
            " 0.1,0.5,0.9.",
            "--shifts D,D,…: list": "Show how many pairs chance alone makes, at each confidence: with the"
            " times of RIGHT moved by each of these, such as [cyan]30s,-30s,47s[/cyan].",
        },
    ),
    *_group(
        "How it runs",
        {"--most-pairs N: int = 20000000": "With more pairs, take a sample of the events of LEFT."},
        min=1,
    ),
    *_group("How it runs", {"--engine local = local": "In this process."}, hidden=True),
    *_group("How it runs", _BACKEND | _THREADS),
    *_AT_LAST,
]
CAUSALITY = [
    _input("causes", "Events: a file, a folder, a glob or a URI."),
    _input(
        "effects",
        "The events that they may have caused. Without it CAUSES are one stream, and each of its events"
        " may have caused every other one.",
        None,
    ),
    *_OUTPUT,
    *_files("causes", "effects"),
    *_sided(
        "Timestamps",
        _CAUSALITY,
        "time",
        defaults=[" = time", ""],
        otherwise=" Default: like CAUSES.",
    ),
    *_sided("Timestamps", _CAUSALITY, *_CLOCK),
    *_sided("Histograms", _CAUSALITY, *_HISTOGRAM),
    *_sided("Places", _CAUSALITY, "place", otherwise=" Default: like CAUSES."),
    *_group("Places", _SPACE),
    *_time_rules("Rows of an impossible time or place"),
    *_sided("Timestamps", _CAUSALITY, "unit"),
    *_group("Condition", _PROPAGATION),
    *_pairs("EFFECTS", _OF_PAIRS),
    *_results(
        _CAUSALITY,
        "cause",
        "effect",
        "effects",
        how="[cyan]inner[/cyan]: pairs. [cyan]left[/cyan]: and causes without an effect."
        " [cyan]semi[/cyan]: causes that have an effect. [cyan]anti[/cyan]: those that have none.",
        row="a pair, with delta_us (of microseconds) and distance",
        choice=EffectChoice,
    ),
    *_group(
        "How it runs",
        {
            **_engines(),
            "--way WAY = auto": "How events meet on Spark. [cyan]broadcast-left[/cyan]: CAUSES to every"
            " worker. [cyan]broadcast-right[/cyan]: EFFECTS. [cyan]broadcast[/cyan]: the smaller of them."
            " [cyan]exchange[/cyan]: both through Spark's shuffle, cut by time. [cyan]auto[/cyan]: the"
            " first of them that suits the data.",
            **_SPARK,
            **_BACKEND,
            **_SLICES,
        },
    ),
    *_sided("How it runs", _CAUSALITY, "longest"),
    *_group("How it runs", _BATCH_PAIRS | _THREADS),
    *_AT_LAST,
]
CLUSTERS = [
    _input("events", "A file, a folder, a glob or a URI."),
    *_OUTPUT,
    *_files(),
    *_sided("Timestamps", _CLUSTERS, "time", defaults=[" = time"]),
    *_sided("Timestamps", _CLUSTERS, *_CLOCK),
    *_sided("Histograms", _CLUSTERS, *_HISTOGRAM),
    *_sided("Places", _CLUSTERS, "place"),
    *_group("Places", _SPACE),
    *_time_rules("Rows of an impossible time or place"),
    *_group("Condition", _PROPAGATION),
    *_group(
        "Condition",
        {
            "--by A,B,…: list": "Columns that must be equal: a cluster has one value of each.",
            "--where SQL": f"What pairs must also meet, such as {_OF_PAIRS}.",
        },
    ),
    *_sided("Result", _CLUSTERS, "columns"),
    *_group("How it runs", _THREADS),
    *_AT_LAST,
]
CLOCKS = [
    _input("left", "Events of the clock that may be off: a file, a folder, a glob, a URI, or -."),
    _input("right", "Events of the clock that is right."),
    *_OUTPUT,
    *_files("left", "right"),
    *_group(
        "Timestamps",
        {
            "--left-time COLUMN = time": "The column of exact times of LEFT.",
            "--right-time COLUMN = time": "The same for RIGHT.",
        },
    ),
    *_time_rules("Rows whose time cannot be one"),
    *_sided("Timestamps", _JOIN, "unit"),
    *_group(
        "Condition",
        {
            "--max-offset D = !": "The largest offset to look for, such as [cyan]60s[/cyan]. Both sides"
            " must share eight times as long a time.",
            "--max-drift DRIFT = 200ppm": "The largest drift to look for. As a fraction: 0.0002.",
            "--by A,B,…: list": "Columns whose values have a clock each; [cyan]device=unit[/cyan] where"
            " that of RIGHT has another name.",
            "--match A,B,…: list": "Columns that are equal in a pair and share the clock.",
            "--chance P: float = 0.001": "How probable it may be that any answer is made by chance.",
            "--no-jumps": "Clocks were not set, and drifts are constant: one line for each.",
        },
    ),
    *_group(
        "Result",
        {
            "--page PAGE.html": "Also make a page of charts: offsets, residuals, and how they are spread."
            " It needs no network and no other file."
        },
    ),
    *_group("How it runs", _THREADS),
    *_AT_LAST,
]
_STREAM = {"--stream COLUMN|- = stream_id": "What moves. [cyan]-[/cyan]: all rows belong to one."}
BORDERS = [
    _input("readings", "Readings: a file, a folder, a glob or a URI."),
    _input("queries", "Ranges: a column of ids, and borders."),
    *_OUTPUT,
    *_files("readings", "queries"),
    *_group(
        "Data",
        {
            **_STREAM,
            "--time COLUMN = time": "When it was read.",
            "--values X,Y,…: list": "What was read: one to nine columns. Default: value.",
            "--query COLUMN = query_id": "The ids of queries.",
        },
    ),
    *_time_rules("Readings without a stream or a time, or of infinite values"),
    *_group(
        "Meaning",
        {
            "--first ignore|outside = ignore": "What a first reading inside a range says: nothing, or that"
            " the stream came in.",
            "--pass-through": "Tell of ranges that a stream goes through between two readings, by an I and"
            " an O.",
            "--interpolate": "Add crossing_time: when a straight move from reading to reading meets the"
            " border.",
            "--closed left|right|both|neither = left": "Which of its borders a range holds."
            " [cyan]both[/cyan] is SQL's BETWEEN.",
            "--closed-column COLUMN": "The same for each query: a column of QUERIES; where it is null,"
            " --closed says it.",
            "--hysteresis D = 0": "How far beyond a border a stream must be to have left; one number, or"
            " X,Y,….",
        },
    ),
    *_group(
        "How it runs",
        {
            **_engines(_IN_ORDER),
            "--way WAY = auto": "How streams get to where they are watched on Spark. [cyan]files[/cyan]:"
            " part by part from Parquet files in order of streams. [cyan]exchange[/cyan]: through Spark's"
            " shuffle. [cyan]auto[/cyan]: the first of them that suits the data.",
            **_SPARK,
            **_BACKEND,
            "--processing WAY = auto": "How borders are searched: auto, traversal or three-sided. The"
            " answer is the same.",
            "--batch-events N: int = 262144": "Crossings in one batch; at most 65,536 on Spark.",
            **_THREADS,
        },
    ),
    *_AT_LAST,
]
TRANSITIONS = [
    _input("events", "Crossings: a file, a folder, a glob or a URI."),
    *_OUTPUT,
    *_files(),
    *_group(
        "Data",
        {
            "--query COLUMN = query_id": "The region.",
            **_STREAM,
            "--event COLUMN = event": "The words I and O.",
        },
    ),
    *_sided("Timestamps", _CLUSTERS, "time", defaults=[" = min_time,max_time"]),
    *_time_rules("Events with nulls, other words or impossible times"),
    *_group(
        "Meaning",
        {
            "--within D = !": "The longest time of a transition, such as [cyan]3min[/cyan], or ticks.",
            "--confidence CT: float": "How probable a transition or a stay must be, such as 0.9 or 90%."
            " Exact times need none.",
            "--until TIME": "Up to when the data are known, which decides stays of last events: a time like"
            " those of the column, or a duration such as [cyan]90s[/cyan]. [b]coincide borders[/b] prints"
            " that of its readings. Default: the largest max_time.",
            "--repeated raise|first|last = raise": "An I after an I, or an O after an O: an error; left"
            " out; or the dwell time begins anew.",
        },
    ),
    *_group("How it runs", _engines() | _SPARK),
    *_AT_LAST,
]
DEMO = [
    *_group("Options", {"--rows N: int = 200000": "Events a side."}, min=100),
    *_group(
        "Options",
        {
            "--seed N: int = 1": "Another seed, another sample.",
            "--keep [FOLDER]": "Leave the sample, the pairs and the page there. Default: here.",
            "--engine auto|spark|local = spark": "As of join.",
            "--debug": "Show tracebacks.",
        },
    ),
]
DOCTOR = _group(
    "Options",
    {"--gpu": "Check the GPU alone: join a million events on it, and compare with the CPU."},
)
