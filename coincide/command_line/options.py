"""The options of all commands: each is declared once, in groups that make up a command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import Parameter
from typing import get_args

from coincide.command_line.flags import LIST, TWO, TWOS, Flag, group, input_of, switch
from coincide.command_line.problems import in_options
from coincide.model.aggregates import FUNCTIONS, PAIR_VALUES, Including, Weights
from coincide.model.options import MATCHINGS, OUTPUT_ROWS, PREFERENCES, EffectChoice, MatchChoice

_CSV = [
    Flag(
        "--csv-delimiter",
        "CHARACTER",
        "Between cells: ; or tab, and so on. Default: a comma; of .tsv a tab.",
    ),
    Flag("--csv-quote", "CHARACTER", 'Around cells that hold the delimiter. Default: "; or none.'),
    Flag("--csv-decimal", "CHARACTER", "Before decimals. Default: a point."),
    Flag(
        "--csv-null",
        "TEXT",
        "A cell that means nothing, such as NA, as empty cells do; repeatable.",
        LIST,
    ),
    Flag(
        "--csv-type",
        "COLUMN=TYPE",
        "What a column holds: text, integer, float,"
        " [cyan]'decimal(10,2)'[/cyan] (10 digits, 2 of them after the point), boolean, date, timestamp"
        " (with offsets), timestamp_ntz (without) or timestamp@ZONE (without, of clocks there);"
        " repeatable. Default: from the cells, and numbers that do not print as they were written, such"
        " as 007, are text.",
        LIST,
    ),
    Flag("--csv-names", "A,B,…", "The columns' names, of files without a header.", LIST),
    Flag("--csv-skip", "LINES", "How many lines are above the header.", int, default=0),
    Flag("--csv-comment", "CHARACTER", "Lines that begin with it are comments, such as # …."),
    Flag("--csv-encoding", "NAME", "Such as latin-1, cp1252 or utf-16. Default: utf-8."),
    Flag(
        "--time-format",
        "FORMAT",
        "How times are written, such as [cyan]'%d/%m/%Y %H:%M:%S'[/cyan], with %f for"
        " decimals and %z for an offset. Default: ISO 8601, or numbers.",
    ),
    Flag(
        "--repeated-hour",
        "first|second|order",
        "Which of the two is meant where clocks of a zone"
        " (timestamp@ZONE) showed an hour twice. [cyan]order[/cyan]: the first one, until a line is earlier"
        " than the one before. Default: an error.",
    ),
]
_SIDED = [
    Flag(
        "csv",
        "'NAME=VALUE …'",
        "What differs in {of}: these options without --csv-, such as 'delimiter=; null=NA'.",
    ),
    Flag("time", "MIN,MAX", "Columns with the ends of the timestamps; one column: exact times."),
    Flag(
        "around",
        "D",
        "How far off the clock of {of} may be, such as 10ms, or BEFORE,AFTER. --{side}time is the"
        " one column of its stamps.",
    ),
    Flag(
        "resolution",
        "D",
        "How coarse the stamps of {of} are: with 1ms, t means some time from t to t + 1 ms.",
    ),
    Flag(
        "around-column",
        "NAME",
        "The column that says how far off each stamp of {of} may be, or BEFORE,AFTER.",
    ),
    Flag("around-unit", "UNIT", "What the numbers in that column count, such as ms."),
    Flag(
        "clock",
        "ERRORS",
        "A file that coincide clocks has written: stamps of {of} are put right by it."
        " --{side}time is the one column of these stamps{spans}.",
    ),
    Flag(
        "clock-by",
        "A,B,…",
        "Columns that name the clock; [cyan]unit=device[/cyan] where that of ERRORS has"
        " another name.",
        LIST,
    ),
    Flag(
        "clock-around",
        "D|fitted",
        "How far an event may be from its corrected time: ± D; or [cyan]fitted[/cyan],"
        " by the spread in ERRORS. Default: events are instants.",
    ),
    Flag(
        "duration",
        "COLUMN",
        "With --relation: how long each event of {of} lasts, in place of END. --{side}time"
        " is the one column of starts.",
    ),
    Flag("duration-unit", "UNIT", "What the numbers in that column count, such as ms."),
    Flag(
        "template",
        "COLUMN",
        "Column that names the template of each event of {of}, whose timestamps are"
        " histograms then. --{side}time is the one column of the times at which they were seen.",
    ),
    Flag(
        "templates",
        "FILE",
        "The templates: Parquet, CSV or Arrow with the columns template, lower, upper, mass;"
        " or delay_lower and delay_upper for delays of detection.",
    ),
    Flag(
        "place",
        "X,Y,…",
        "Where it happened: one to three columns; a number instead of a name holds"
        " for all, such as 0 for a depth.",
        LIST,
    ),
    Flag("unit", "UNIT", "Like --unit, for {of} alone, where the sides differ."),
    Flag(
        "columns",
        "A,B,…",
        "Columns of {of} in the output. Default: id; without such a column, the number"
        " of the row, from 0 (not on Spark).",
        LIST,
    ),
    Flag("longest", "D", "Declare the longest timestamp of {of}; a longer one is invalid."),
    Flag(
        "schema",
        "SCHEMA",
        "What records of {of} hold: columns, such as [cyan]'id BIGINT, time TIMESTAMP'[/cyan],"
        " or a file with them, of Parquet or of Avro (.avsc). Records are JSON, or Avro if that is the"
        " schema.",
    ),
    Flag(
        "delay",
        "D",
        "How long after later events one of {of} may still come. One that comes even later is late,"
        " and takes no part.",
    ),
]
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
    defaults: Sequence[str | None] = (None, None),
    needs_first: bool = False,
    otherwise: str = "",
) -> list[Parameter]:
    """Options of each input, by what their names begin with ("" of an only one) and what it is called."""
    known = {flag.name: flag for flag in _SIDED}
    found = []
    for flag in map(known.__getitem__, names):
        for i, (side, called) in enumerate(sides.items()):
            name = f"--{side}{flag.name}"
            same = f"The same for {called}.{otherwise}"
            spans = ", or with --relation START,END"
            help = same if i else flag.help.format(of=called, side=side, spans=spans)
            of_side = flag._replace(
                name=name, help=help, short=_OTHER_NAMES.get(name), default=defaults[i],
                is_needed=needs_first and i == 0,
            )  # fmt: skip
            found.append(of_side)
    return group(panel, found)


_OUTPUT = group(
    "Data",
    [
        Flag(
            "--output",
            "OUT",
            "Parquet, a file, or on Spark a folder; or a file of CSV or Arrow IPC, if"
            " its name ends so; or [cyan]-[/cyan] for standard output.",
            is_needed=True,
            short="-o",
        ),
        Flag(
            "--output-format",
            "parquet|csv|arrow",
            "What OUT is, where its name does not say. Default: Parquet; CSV on standard output.",
        ),
    ],
)


def _files(*sides: str) -> list[Parameter]:
    """What the inputs are, and how CSV is written; of several sides each may differ."""
    general = [
        switch("--overwrite", "Replace what is there, once the new one is whole."),
        Flag(
            "--format",
            "parquet|csv|arrow",
            "What the inputs are, where their names do not say.",
            short="-f",
        ),
    ]
    called = {f"{side}-": side.upper() for side in sides}
    return [*group("Data", general), *group("CSV", _CSV), *_sided("CSV", called, "csv")]


def _time_rules(refused: str) -> list[Parameter]:
    """What numbers in time columns count, and what becomes of rows such as those of `refused`."""
    return group(
        "Timestamps",
        [
            Flag(
                "--unit",
                "ps|ns|us|ms|s|min|h|d",
                "What a number in the time columns counts. Timestamps need"
                " none, but ns where they are finer than 1 us.",
            ),
            Flag(
                "--tick",
                "UNIT",
                "In what times are counted. Default: us for timestamps, ns for floats, the finer"
                " unit for integers. Coarser ticks round floats, and reach further.",
            ),
            Flag(
                "--invalid",
                "raise|drop",
                f"{refused}: an error, or skipped and counted.",
                default="raise",
            ),
        ],
    )


def _pairs(right: str, such_as: str) -> list[Parameter]:
    """What must be equal on both sides, the second of which is called `right`, and what else must hold."""
    return group(
        "Condition",
        [
            _by(right, "must be equal on both sides"),
            Flag("--where", "SQL", f"What pairs must also meet, such as {such_as}."),
        ],
    )


def _by(right: str, what: str) -> Flag:
    """Keys, and what is true of them."""
    return Flag(
        "--by",
        "A,B,…",
        f"Columns that {what}; [cyan]station=sta[/cyan] where"
        f""" that of {right} has another name, [cyan]'"a=b"'[/cyan] where it has = or , in it.""",
        LIST,
    )


_OF_PAIRS = (
    "[cyan]'distance <= 10 * cause_magnitude'[/cyan], of cause_… and effect_… columns and delta_us"
)
_WINDOW = [
    Flag(
        "--within",
        "LO HI",
        "LO ≤ T_right − T_left ≤ HI. Durations such as [cyan]-250ms 1.5s[/cyan], or"
        " ticks. One duration D alone is [cyan]-D D[/cyan]. [cyan]none[/cyan] is no end:"
        " with --emit best, --prefer last or first, of exact times.",
        TWO,
    ),
    Flag("--mutual-deadline", "D", "Short for [cyan]--within -D D[/cyan]."),
    Flag(
        "--closed",
        "both|left|right|neither",
        "Which ends belong to the window. Time is whole ticks: an"
        " end that does not is moved in by one.",
        default="both",
    ),
]
_SPACE = [
    switch(
        "--lat-lon",
        "Places are latitude and longitude in degrees, and perhaps a height in km; distances are"
        " great circles in km.",
    ),
    Flag(
        "--sphere-radius",
        "R",
        "With --lat-lon: the sphere's radius, in the unit of distances."
        " Default: the Earth's, in km.",
        float,
    ),
    Flag(
        "--height-scale",
        "H",
        "With --lat-lon: what one unit of height is worth in the unit of distances:"
        " 0.001 of metres. Default: 1.",
        float,
    ),
    Flag(
        "--scale",
        "A,B,…",
        "What one unit of each coordinate is worth in the unit of distances. Default: 1 each.",
    ),
]
_PROPAGATION = [
    Flag(
        "--delta",
        "LO HI",
        "LO ≤ T_effect − T_cause ≤ HI. Durations such as [cyan]0s 1.5h[/cyan], or ticks;"
        " [cyan]any[/cyan] leaves an end open.",
        TWO,
    ),
    Flag(
        "--radius",
        "R",
        "The distance is at most R; with --lat-lon in km, or as [cyan]500m[/cyan] says.",
    ),
    Flag(
        "--speed",
        "MIN MAX",
        "The effect comes when something of such a speed arrives; [cyan]any[/cyan]:"
        " however slow, or fast.",
        TWO,
    ),
    Flag("--slack", "D", "With --speed: how much earlier or later is still in time.", default="0"),
    Flag(
        "--per",
        "UNIT",
        "Speeds are distances per ps, ns, us, ms, s, min, h, d or tick.",
        default="s",
    ),
    Flag(
        "--propagation-time",
        "D",
        "The effect comes D after its cause, or up to --tolerance later, however far away it is.",
    ),
    Flag(
        "--propagation-speed",
        "V",
        "The effect comes when something of just this speed arrives, or up to --tolerance later.",
        float,
    ),
    Flag(
        "--tolerance",
        "D",
        "With --propagation-time or --propagation-speed: how much later is still in time.",
    ),
    Flag("--ellipsoid", "R D", "(distance / R)² + (delta / D)² ≤ 1, D a duration.", TWO),
    switch("--strict", "Exclude the bounds: < instead of ≤."),
    Flag(
        "--confidence",
        "CT",
        "How probable a pair of uncertain times must be, such as 0.9 or 90%.",
        float,
        default=1.0,
    ),
]


def _results(
    sides: Mapping[str, str],
    event: str,
    match: str,
    matches: str,
    *,
    how: str,
    row: str,
    choice: type[MatchChoice] = MatchChoice,
    ties: Sequence[Flag] = (),
) -> list[Parameter]:
    """Which rows there are, with which columns, and which match of an event is the best one."""
    right = [*sides.values()][1]
    words = ". ".join(
        f"[cyan]{name}[/cyan]: {PREFERENCES[name].takes}" for name in choice.preferences
    )
    matchings = ". ".join(
        f"[cyan]{name}[/cyan]: {in_options(word.gives)}" for name, word in MATCHINGS.items()
    )
    kinds = ". ".join(
        f"[cyan]{name}[/cyan]: {each.gives.format(pair=row, event=event, matches=matches)}"
        for name, each in OUTPUT_ROWS.items()
    )
    rows = [
        Flag("--how", "KIND", how, default="inner"),
        Flag(
            "--emit",
            "ROW",
            f"What a row is. {kinds}.",
            default="pairs",
        ),
        Flag(
            "--aggregate",
            "NAME=FUNCTION(COLUMN),…",
            f"A column of the output that the {matches} of a {event} have together:"
            f" [cyan]n=count[/cyan], [cyan]energy=sum(amp)[/cyan] of a column of {right}, or of"
            f" {PAIR_VALUES[0]} and such. Functions: {', '.join(FUNCTIONS)}.",
            LIST,
        ),
        Flag(
            "--weights",
            "|".join(get_args(Weights)),
            f"With --aggregate, expected numbers: each {match} counts by its probability in count, sum"
            " and mean. Pairs in time need no --confidence then.",
        ),
        switch("--probability", "Add the probability of each pair."),
    ]
    choices = [
        Flag(
            "--shifts",
            "D,D,…",
            "Tell how many pairs chance alone makes: they are counted again with the"
            f" times of {right} moved by each of these, such as [cyan]30s,-30s,47s[/cyan], all longer"
            " than the window. Their mean is what to expect among the pairs found, their standard"
            " deviation its spread.",
            LIST,
        ),
        Flag(
            "--prefer",
            "WHICH",
            f"With --emit best or --matching, which {match} is the best one."
            f" {words}. Of rows of equal time first takes the earlier row, last the later one (on Spark"
            " output columns decide)."
            " [cyan]snr[/cyan], [cyan]-snr[/cyan]: that with the least, or the greatest, value of this"
            f" column of {right}. [cyan]last,-seq[/cyan]: of equally late ones that with the greatest seq.",
            default="probability",
        ),
        Flag(
            "--k",
            "K",
            f"With --emit best, how many {matches} of each {event}, ranked from 1.",
            int,
            default=1,
        ),
        *ties,
        Flag("--matching", "KIND", f"Pairs one to one. {matchings}."),
        Flag(
            "--largest-group",
            "N",
            "Most events of a group that --matching optimal takes.",
            int,
            default=2000,
        ),
    ]
    columns = _sided("Result", sides, "columns")
    return [*group("Result", rows), *columns, *group("Result", choices)]


def _engines(unless: str = "") -> list[Flag]:
    return [
        Flag(
            "--engine",
            "auto|spark|local",
            "[cyan]local[/cyan]: in this process, without Java; inputs must"
            f" fit its memory{unless}. [cyan]spark[/cyan]: on Spark. [cyan]auto[/cyan]: in this process,"
            " if the inputs would take no more than half of the memory that is free, and no option is of"
            " Spark.",
            default="auto",
        )
    ]


_IN_ORDER = ", unless they are Parquet files in time order"
_SPARK = [
    Flag(
        "--master", "URL", "Spark master. Default: what Spark's configuration says, else local[*]."
    ),
    Flag("--conf", "KEY=VALUE", "A Spark setting; repeatable.", LIST),
]
_BACKEND = [
    Flag(
        "--backend",
        "auto|cpu|gpu",
        "auto takes a GPU where a worker has one. The answer is the same.",
        default="auto",
    )
]
_DEVICES = [
    Flag(
        "--devices",
        "one|all",
        "With --backend gpu, which GPUs a join in this process uses: [cyan]all[/cyan] deals the left"
        " events over all that CUDA_VISIBLE_DEVICES shows. On Spark each task has one.",
        default="one",
    )
]
_SLICES = [Flag("--slices", "N", "Time slices, hence Spark tasks. Default: from the data.", int)]
_BATCH_PAIRS = [
    Flag(
        "--batch-pairs",
        "N",
        "Pairs in one batch; bounds memory. Default: 65,536 on Spark, 1,000,000 else.",
        int,
    ),
    Flag(
        "--max-pairs",
        "N",
        "Most pairs that the answer may have; more end the command before they are"
        " written. Default: what fits on the disk of the output; on Spark any.",
        int,
    ),
]
_THREADS = [Flag("--threads", "N", "Threads of a process. Default: all cores; on Spark one.", int)]
_AT_LAST = group(
    "How it runs",
    [
        switch("--json", "Print the summary as one JSON object."),
        switch("--debug", "Show tracebacks and what Spark logs."),
    ],
)
_TWO_INPUTS = [
    input_of("left", "Events: a file, a folder, a glob, a URI, or - for standard input."),
    input_of(
        "right", "The other events. Without it those of LEFT are joined with themselves.", None
    ),
]
_TIMED = [
    *_files("left", "right"),
    *_sided("Timestamps", _JOIN, "time", defaults=["min_time,max_time"] * 2),
    *_sided("Timestamps", _JOIN, *_CLOCK, *_CORRECTED),
    *_sided("Histograms", _JOIN, *_HISTOGRAM),
    *_time_rules("Rows whose time cannot be one"),
    *_sided("Timestamps", _JOIN, "unit"),
]
_TIMED_PAIRS = [
    *_TIMED,
    *group("Condition", _WINDOW),
    *_pairs("RIGHT", "[cyan]'left_amount = right_amount'[/cyan]"),
]
_SPANS = [
    Flag(
        "--relation",
        "NAME",
        "Events last, and --left-time and --right-time are START,END. Pairs are"
        " [cyan]overlapping[/cyan]; or left is [cyan]containing[/cyan] or [cyan]inside[/cyan] right; or"
        " right is [cyan]following[/cyan] left; or one of Allen's relations holds, such as"
        " [cyan]meets[/cyan]. --closed applies to both sides. Where starts and ends are uncertain,"
        " --left-around and --right-around say by how much (START,END where the two differ), and"
        " --confidence how probable a pair must be.",
    ),
    switch(
        "--open-ends",
        "With --relation: an empty end, or duration, is that of an event that goes on.",
    ),
    Flag("--min-overlap", "D", "With --relation overlapping: the least time in common."),
    Flag(
        "--share",
        "S",
        "With --relation overlapping: the least share of both that it is, such as 0.5 or 1/3, or"
        " LEFT,RIGHT.",
    ),
    Flag(
        "--gap", "D", "The most time between the two, of overlapping, following, before and after."
    ),
    Flag(
        "--slack",
        "D",
        "With --relation containing or inside: by how much the inner one may stick out at each end.",
    ),
]
_DELTA = (
    "[cyan]delta[/cyan]: how long after the left event the right one comes, as delta_us."
    " [cyan]overlap[/cyan], of spans: the time in common, below 0 the gap; [cyan]overlap_start[/cyan] and"
    " [cyan]overlap_end[/cyan]: when it begins and ends."
)
JOIN = [
    *_TWO_INPUTS,
    *_OUTPUT,
    *_TIMED_PAIRS,
    *group(
        "Condition",
        [
            Flag(
                "--confidence",
                "CT",
                "How probable a pair must be, such as 0.9 or 90%. 0.5: more likely"
                " than not. Exact times, of one column a side, need none.",
                float,
            ),
            *_SPANS,
        ],
    ),
    *_sided("Timestamps", _JOIN, "duration", "duration-unit"),
    *group(
        "Timestamps",
        [
            Flag(
                "--modulus",
                "M",
                "Times are counted by one clock that begins again at M, such as 4294967296"
                " of 32 bits. They go on from row to row, so inputs are in the order in which they were"
                " counted. In one process.",
                int,
            ),
            switch(
                "--in-order",
                "With --modulus: no row of an input is before the one above it, so longer pauses"
                " are clear.",
            ),
        ],
    ),
    *_results(
        _JOIN,
        "left event",
        "match",
        "matches",
        how="[cyan]inner[/cyan]: pairs. [cyan]left[/cyan]: and left events without a match."
        " [cyan]right[/cyan]: pairs, and right events without one. [cyan]full[/cyan]: both."
        " [cyan]right[/cyan] with --emit best or --aggregate: a row per right event, of its left matches."
        " [cyan]semi[/cyan]: left events that have a match. [cyan]anti[/cyan]: those that have none.",
        row="a pair",
        ties=[
            Flag(
                "--ties",
                "order|all",
                "With --emit best, whether matches as good as the last of the K are"
                " in the output, too.",
                default="order",
            ),
            Flag(
                "--including",
                "|".join(get_args(Including)),
                "With --aggregate and exact times, the last right event before the window counts too.",
            ),
        ],
    ),
    *group("Result", [Flag("--pair-columns", "NAME", _DELTA, LIST)]),
    *group(
        "How it runs",
        [
            *_engines(_IN_ORDER),
            Flag(
                "--way",
                "WAY",
                "How rows get to where they are joined. [cyan]files[/cyan]: slice by slice"
                " from Parquet files that lie in time order. [cyan]broadcast[/cyan], only on Spark: the"
                " smaller side, or that of broadcast-left or broadcast-right, to every worker;"
                " broadcast-both: both. [cyan]exchange[/cyan]: through Spark's shuffle, or with --engine"
                " local all at once. [cyan]auto[/cyan]: the first of them that suits the data.",
                default="auto",
            ),
            *_SPARK,
            *_BACKEND,
            *_DEVICES,
            *_SLICES,
            Flag("--classes", "N", "Length classes a side. Default: from the data.", int),
        ],
    ),
    *_sided("How it runs", _JOIN, "longest"),
    *group("How it runs", [*_BATCH_PAIRS, *_THREADS]),
    *_AT_LAST,
]
_NOT_OF_STREAMS = {
    *("overwrite", "file_format", "output_format", "engine", "way", "slices", "including"),
    *("shifts", "matching", "largest_group", "modulus", "in_order", "max_pairs"),  # need all events
    "devices",  # Spark deals them
}
"""Options of a join that a join of streams does not have, with those of CSV."""
_FEED = "kafka://HOST:PORT/TOPIC, or a folder of Parquet files that grows"
STREAM = [
    input_of("left", f"Events: {_FEED}."),
    input_of(
        "right", "The other events. Without it those of LEFT are joined with themselves.", None
    ),
    *group(
        "Data",
        [
            Flag(
                "--output",
                "OUT",
                "[cyan]kafka://HOST:PORT/TOPIC[/cyan], where each row becomes a record"
                " of JSON, or a folder of Parquet.",
                is_needed=True,
                short="-o",
            ),
            Flag(
                "--checkpoint",
                "FOLDER",
                "Where the run keeps what it has read, found and written. Run the"
                " same command again, and it goes on from there.",
                is_needed=True,
            ),
        ],
    ),
    *_sided("Data", _JOIN, "schema"),
    *group(
        "Data",
        [
            Flag(
                "--key",
                "A,B,…",
                "Columns of the output that make the key of a record. Default: those of --by.",
                LIST,
            ),
            Flag(
                "--kafka",
                "KEY=VALUE",
                "A setting of Kafka's clients, such as"
                " [cyan]security.protocol=SSL[/cyan]; repeatable.",
                LIST,
            ),
            Flag(
                "--begin",
                "earliest|latest",
                "Where a topic is read from, without a checkpoint.",
                default="earliest",
            ),
        ],
    ),
    *_sided("Lateness", _JOIN, "delay", needs_first=True, otherwise=" Default: like LEFT."),
    *group(
        "Lateness",
        [
            Flag(
                "--late",
                "count|rows",
                "What becomes of late events: a number, or also rows, with the column late.",
                default="count",
            ),
            Flag(
                "--left-ahead",
                "D",
                "An event further ahead of the median of its trigger is set aside. It makes"
                " no others late.",
            ),
            Flag("--right-ahead", "D", "As --left-ahead, of RIGHT. Default: like LEFT."),
            Flag(
                "--idle-after",
                "D",
                "A side without events for so long no longer holds the other one up.",
            ),
        ],
    ),
    *group(
        "How it runs",
        [
            switch("--once", "End when all is read that was there at the start."),
            Flag(
                "--trigger",
                "D",
                "How often new events are taken. Default: as soon as the last ones are done.",
            ),
            Flag(
                "--slice-length",
                "D",
                "Length of the time slices in which events wait. Default: from the delays.",
            ),
        ],
    ),
    *group(
        "How it runs",
        [
            Flag(
                "--most",
                "N",
                "Most records, of a folder files, that a trigger takes of an input.",
                int,
            )
        ],
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
    *group(
        "Data",
        [Flag("--output", "PAGE.html", "The page to write.", default="explore.html", short="-o")],
    ),
    *_TIMED_PAIRS,
    *group(
        "Result",
        [
            Flag(
                "--confidence",
                "CT",
                "At which delays are shown, such as 0.9 or 90%.",
                float,
                default=0.5,
            ),
            Flag(
                "--confidences",
                "CT,CT,…",
                "At which matches are counted by event, at most six. Default: 0.1,0.5,0.9.",
            ),
            Flag(
                "--shifts",
                "D,D,…",
                "Show how many pairs chance alone makes, at each confidence: with the"
                " times of RIGHT moved by each of these, such as [cyan]30s,-30s,47s[/cyan].",
                LIST,
            ),
        ],
    ),
    *group(
        "How it runs",
        [
            Flag(
                "--most-pairs",
                "N",
                "With more pairs, take a sample of the events of LEFT.",
                int,
                default=20000000,
            )
        ],
        min=1,
    ),
    *group(
        "How it runs", [Flag("--engine", "local", "In this process.", default="local")], hidden=True
    ),
    *group("How it runs", [*_BACKEND, *_THREADS]),
    *_AT_LAST,
]
CAUSALITY = [
    input_of("causes", "Events: a file, a folder, a glob or a URI."),
    input_of(
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
        defaults=["time", None],
        otherwise=" Default: like CAUSES.",
    ),
    *_sided("Timestamps", _CAUSALITY, *_CLOCK),
    *_sided("Histograms", _CAUSALITY, *_HISTOGRAM),
    *_sided("Places", _CAUSALITY, "place", otherwise=" Default: like CAUSES."),
    *group("Places", _SPACE),
    *_time_rules("Rows of an impossible time or place"),
    *_sided("Timestamps", _CAUSALITY, "unit"),
    *group("Condition", _PROPAGATION),
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
    *group(
        "How it runs",
        [
            *_engines(),
            Flag(
                "--way",
                "WAY",
                "How events meet on Spark. [cyan]broadcast-left[/cyan]: CAUSES to every"
                " worker. [cyan]broadcast-right[/cyan]: EFFECTS. [cyan]broadcast[/cyan]: the smaller of"
                " them. [cyan]exchange[/cyan]: both through Spark's shuffle, cut by time."
                " [cyan]auto[/cyan]: the first of them that suits the data.",
                default="auto",
            ),
            *_SPARK,
            *_BACKEND,
            *_SLICES,
        ],
    ),
    *_sided("How it runs", _CAUSALITY, "longest"),
    *group("How it runs", [*_BATCH_PAIRS, *_THREADS]),
    *_AT_LAST,
]
CLUSTERS = [
    input_of("events", "A file, a folder, a glob or a URI."),
    *_OUTPUT,
    *_files(),
    *_sided("Timestamps", _CLUSTERS, "time", defaults=["time"]),
    *_sided("Timestamps", _CLUSTERS, *_CLOCK),
    *_sided("Histograms", _CLUSTERS, *_HISTOGRAM),
    *_sided("Places", _CLUSTERS, "place"),
    *group("Places", _SPACE),
    *_time_rules("Rows of an impossible time or place"),
    *group("Condition", _PROPAGATION),
    *group(
        "Condition",
        [
            Flag(
                "--by",
                "A,B,…",
                "Columns that must be equal: a cluster has one value of each.",
                LIST,
            ),
            Flag("--where", "SQL", f"What pairs must also meet, such as {_OF_PAIRS}."),
        ],
    ),
    *_sided("Result", _CLUSTERS, "columns"),
    *group("How it runs", _THREADS),
    *_AT_LAST,
]
CLOCKS = [
    input_of("left", "Events of the clock that may be off: a file, a folder, a glob, a URI, or -."),
    input_of("right", "Events of the clock that is right."),
    *_OUTPUT,
    *_files("left", "right"),
    *group(
        "Timestamps",
        [
            Flag("--left-time", "COLUMN", "The column of exact times of LEFT.", default="time"),
            Flag("--right-time", "COLUMN", "The same for RIGHT.", default="time"),
        ],
    ),
    *_time_rules("Rows whose time cannot be one"),
    *_sided("Timestamps", _JOIN, "unit"),
    *group(
        "Condition",
        [
            Flag(
                "--max-offset",
                "D",
                "The largest offset to look for, such as [cyan]60s[/cyan]. Both sides"
                " must share eight times as long a time.",
                is_needed=True,
            ),
            Flag(
                "--max-drift",
                "DRIFT",
                "The largest drift to look for. As a fraction: 0.0002.",
                default="200ppm",
            ),
            Flag(
                "--by",
                "A,B,…",
                "Columns whose values have a clock each; [cyan]device=unit[/cyan] where"
                " that of RIGHT has another name.",
                LIST,
            ),
            Flag("--match", "A,B,…", "Columns that are equal in a pair and share the clock.", LIST),
            Flag(
                "--chance",
                "P",
                "How probable it may be that any answer is made by chance.",
                float,
                default=0.001,
            ),
            switch(
                "--no-jumps", "Clocks were not set, and drifts are constant: one line for each."
            ),
        ],
    ),
    *group(
        "Result",
        [
            Flag(
                "--page",
                "PAGE.html",
                "Also make a page of charts: offsets, residuals, and how they are spread."
                " It needs no network and no other file.",
            )
        ],
    ),
    *group("How it runs", _THREADS),
    *_AT_LAST,
]
HISTOGRAM = [
    *_TWO_INPUTS,
    *_OUTPUT,
    *_TIMED,
    *group(
        "Buckets",
        [
            Flag(
                "--within",
                "LO HI",
                "The ends of the first and of the last bucket, of T_right − T_left, such as"
                " [cyan]-1s 1s[/cyan]. One duration D alone is [cyan]-D D[/cyan].",
                TWO,
            ),
            Flag("--bins", "N", "How many equal buckets --within has.", int, default=100),
            Flag(
                "--edges",
                "D,D,…",
                "In place of --within: where buckets begin, and where the last one ends, such as"
                " [cyan]0s,1ms,10ms,100ms[/cyan].",
                LIST,
            ),
            _by("RIGHT", "have a histogram for each of their values"),
        ],
    ),
    *group(
        "Result",
        [
            Flag(
                "--chance",
                "rates|D,D,…",
                "Add a column of what chance gives. [cyan]rates[/cyan]: events that come at any time"
                " alike. Shifts, such as [cyan]30s,-30s[/cyan]: pairs with the times of RIGHT moved.",
                LIST,
            ),
            Flag(
                "--page",
                "PAGE.html",
                "Also make a page with a chart for each of the first eight keys. It needs no network and"
                " no other file.",
            ),
        ],
    ),
    *group("How it runs", _THREADS),
    *_AT_LAST,
]


_OF_ONE = " [cyan]NAME=…[/cyan] for one input; repeatable."


def _of_inputs(panel: str, *names: str) -> list[Parameter]:
    """Options that inputs have in common, or each its own by its name."""
    known = {flag.name: flag for flag in _SIDED}
    found = []
    for flag in map(known.__getitem__, names):
        help = flag.help.format(of="an input", side="", spans="") + _OF_ONE
        if flag.name == "time":
            help += " Default: min_time,max_time."
        found.append(flag._replace(name=f"--{flag.name}", help=help, kind=LIST))
    return group(panel, found)


def _among_streams(question: Sequence[Flag], result: Sequence[Flag], such: str) -> list[Parameter]:
    """The options of a search for `such` among several inputs."""
    return [
        input_of(
            "inputs",
            "Two or more: files, folders, globs or URIs; one of them may be - for standard input.",
            kind=LIST,
        ),
        *_OUTPUT,
        *group(
            "Data",
            [
                Flag(
                    "--names",
                    "A,B,…",
                    "What the inputs are called in the output and by options of one input: with"
                    " [cyan]click,cart,pay[/cyan], [cyan]--time click=at[/cyan] is that of the first"
                    " alone. Default: a, b, c, ….",
                    LIST,
                )
            ],
        ),
        *_files(),
        *_of_inputs("Timestamps", "time", *_CLOCK, *_CORRECTED),
        *_of_inputs("Histograms", *_HISTOGRAM),
        *_time_rules("Rows whose time cannot be one"),
        *group(
            "Condition",
            [
                *question,
                Flag(
                    "--confidence",
                    "CT",
                    f"How probable each of the {such} must be as a whole, such as 0.9 or 90%. Exact"
                    " times, of one column each, need none.",
                    float,
                ),
                Flag(
                    "--by",
                    "A,B,…",
                    f"Columns that are equal in all events of one of the {such};"
                    " [cyan]user=uid=user[/cyan] where the inputs have other names, one for each in their"
                    """ order, [cyan]'"a=b"'[/cyan] where one has = or , in it.""",
                    LIST,
                ),
                Flag(
                    "--where",
                    "SQL",
                    f"What the {such} must also meet, over the columns [cyan]NAME_COLUMN[/cyan] of all"
                    " inputs, such as [cyan]'a_amount <= b_amount'[/cyan].",
                ),
            ],
        ),
        *group("Result", result),
        *group("Result", [switch("--probability", f"Add the probability of each of the {such}.")]),
        *_of_inputs("Result", "columns"),
        *group(
            "How it runs",
            [
                *_BACKEND,
                Flag(
                    "--batch-pairs",
                    "N",
                    f"How many {such} are made at once; bounds memory. Default: 262,144.",
                    int,
                ),
                Flag(
                    "--max-pairs",
                    "N",
                    f"The most {such} that there may be; more end the command.",
                    int,
                ),
                *_THREADS,
            ],
        ),
        *_AT_LAST,
    ]


SEQUENCE = _among_streams(
    [
        Flag(
            "--within",
            "LO HI",
            "LO ≤ T_next − T_this ≤ HI, once for each step: the first is from the first input to the"
            " second. Durations such as [cyan]0s 2s[/cyan], or ticks. One duration D alone is"
            " [cyan]-D D[/cyan].",
            TWOS,
            is_needed=True,
        ),
        Flag(
            "--total",
            "LO HI",
            "LO ≤ T_last − T_first ≤ HI as well. Uncertain times need three inputs.",
            TWO,
        ),
    ],
    [
        Flag(
            "--how",
            "KIND",
            "[cyan]inner[/cyan]: sequences. [cyan]anti[/cyan]: events of the first input that begin no"
            " sequence.",
            default="inner",
        ),
        Flag(
            "--emit",
            "ROW",
            "What a row is. [cyan]sequences[/cyan]: a sequence. [cyan]counts[/cyan]: an event of the"
            " first input that begins some, and how many. [cyan]best[/cyan]: the best sequence of each"
            " such event.",
            default="sequences",
        ),
        Flag(
            "--prefer",
            "WHICH",
            "With --emit best, which one that is: [cyan]probability[/cyan], the most probable;"
            " [cyan]first[/cyan] or [cyan]last[/cyan], the one that ends first or last.",
            default="probability",
        ),
        switch("--link-probability", "Add the probability of each step."),
    ],
    "sequences",
)
COINCIDENCE = _among_streams(
    [
        Flag(
            "--within",
            "D",
            "The longest time between any two events of a set, such as [cyan]50ns[/cyan], or ticks.",
            is_needed=True,
        ),
        Flag(
            "--at-least",
            "M",
            "The least number of inputs that have an event in a set. Default: all.",
            int,
        ),
    ],
    [],
    "sets",
)
_STREAM = [
    Flag(
        "--stream",
        "COLUMN|-",
        "What moves. [cyan]-[/cyan]: all rows belong to one.",
        default="stream_id",
    )
]
BORDERS = [
    input_of("readings", "Readings: a file, a folder, a glob or a URI."),
    input_of("queries", "Ranges: a column of ids, and borders."),
    *_OUTPUT,
    *_files("readings", "queries"),
    *group(
        "Data",
        [
            *_STREAM,
            Flag("--time", "COLUMN", "When it was read.", default="time"),
            Flag("--values", "X,Y,…", "What was read: one to nine columns. Default: value.", LIST),
            Flag("--query", "COLUMN", "The ids of queries.", default="query_id"),
        ],
    ),
    *_time_rules("Readings without a stream or a time, or of infinite values"),
    *group(
        "Meaning",
        [
            Flag(
                "--first",
                "ignore|outside",
                "What a first reading inside a range says: nothing, or that the stream came in.",
                default="ignore",
            ),
            switch(
                "--pass-through",
                "Tell of ranges that a stream goes through between two readings, by an I and an O.",
            ),
            switch(
                "--interpolate",
                "Add crossing_time: when a straight move from reading to reading meets the border.",
            ),
            Flag(
                "--closed",
                "left|right|both|neither",
                "Which of its borders a range holds. [cyan]both[/cyan] is SQL's BETWEEN.",
                default="left",
            ),
            Flag(
                "--closed-column",
                "COLUMN",
                "The same for each query: a column of QUERIES; where it is null, --closed says it.",
            ),
            Flag(
                "--hysteresis",
                "D",
                "How far beyond a border a stream must be to have left; one number, or X,Y,….",
                default="0",
            ),
        ],
    ),
    *group(
        "How it runs",
        [
            *_engines(_IN_ORDER),
            Flag(
                "--way",
                "WAY",
                "How streams get to where they are watched on Spark. [cyan]files[/cyan]: tasks read"
                " Parquet files, and pack rows by stream unless they are in order of streams."
                " [cyan]exchange[/cyan]: Spark reads all rows. [cyan]auto[/cyan]: the first of them that"
                " suits the data.",
                default="auto",
            ),
            *_SPARK,
            *_BACKEND,
            Flag(
                "--processing",
                "WAY",
                "How borders are searched: auto, traversal or three-sided. The answer is the same.",
                default="auto",
            ),
            Flag(
                "--batch-events",
                "N",
                "Crossings in one batch; at most 65,536 on Spark.",
                int,
                default=262144,
            ),
            *_THREADS,
        ],
    ),
    *_AT_LAST,
]
TRANSITIONS = [
    input_of("events", "Crossings: a file, a folder, a glob or a URI."),
    *_OUTPUT,
    *_files(),
    *group(
        "Data",
        [
            Flag("--query", "COLUMN", "The region.", default="query_id"),
            *_STREAM,
            Flag("--event", "COLUMN", "The words I and O.", default="event"),
        ],
    ),
    *_sided("Timestamps", _CLUSTERS, "time", defaults=["min_time,max_time"]),
    *_time_rules("Events with nulls, other words or impossible times"),
    *group(
        "Meaning",
        [
            Flag(
                "--within",
                "D",
                "The longest time of a transition, such as [cyan]3min[/cyan], or ticks.",
                is_needed=True,
            ),
            Flag(
                "--confidence",
                "CT",
                "How probable a transition or a stay must be, such as 0.9 or 90%."
                " Exact times need none.",
                float,
            ),
            Flag(
                "--until",
                "TIME",
                "Up to when the data are known, which decides stays of last events: a time like"
                " those of the column, or a duration such as [cyan]90s[/cyan]. [b]coincide borders[/b]"
                " prints that of its readings. Default: the largest max_time.",
            ),
            Flag(
                "--repeated",
                "raise|first|last",
                "An I after an I, or an O after an O: an error; left"
                " out; or the dwell time begins anew.",
                default="raise",
            ),
        ],
    ),
    *group(
        "How it runs",
        [
            *_engines(),
            Flag(
                "--way",
                "WAY",
                "How events get to where they are decided on Spark. [cyan]files[/cyan]: tasks read"
                " Parquet files, and pack rows by query and stream. [cyan]exchange[/cyan]: Spark reads"
                " all rows. [cyan]auto[/cyan]: the first of them that suits the data.",
                default="auto",
            ),
            *_SPARK,
        ],
    ),
    *_AT_LAST,
]
DEMO = [
    *group("Options", [Flag("--rows", "N", "Events a side.", int, default=200000)], min=100),
    *group(
        "Options",
        [
            Flag("--seed", "N", "Another seed, another sample.", int, default=1),
            Flag(
                "--keep",
                "[FOLDER]",
                "Leave the sample, the pairs and the page there. Default: here.",
            ),
            Flag("--engine", "auto|spark|local", "As of join.", default="spark"),
            switch("--debug", "Show tracebacks."),
        ],
    ),
]
DOCTOR = group(
    "Options",
    [
        switch(
            "--gpu", "Check the GPU alone: join a million events on it, and compare with the CPU."
        ),
        switch(
            "--warm",
            "Compile what all operators need, so that no job waits for it; say where it is kept.",
        ),
    ],
)
