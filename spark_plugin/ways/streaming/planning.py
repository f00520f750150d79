"""How long the slices of two streams are, when they are closed, and what a checkpoint says of them."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from coincide.engine.causality.arguments import CausalityArguments
from coincide.engine.events.corrected import CorrectedColumns
from coincide.engine.events.spans import SpanColumns
from coincide.engine.events.timestamps import TemplateModel
from coincide.engine.join.pair_arguments import PairArguments
from coincide.engine.join.pair_filter import PairFilter
from coincide.engine.join.spec import AnySpec
from coincide.model.condition import Window
from coincide.model.errors import ConditionError, argument, option
from coincide.model.sides import LEFT, RIGHT
from coincide.model.units import NANOSECONDS_PER_UNIT, UNBOUNDED, Duration, Tick
from spark_plugin.frames.events import EventFrame
from spark_plugin.tasks.grid import TOGETHER, Grid
from spark_plugin.tasks.samples import Reach
from spark_plugin.ways.choosing import lengths_of, reach_of_any
from spark_plugin.ways.join_sides import Sides
from spark_plugin.ways.streaming.arguments import StreamArguments, check_tick, ticks
from spark_plugin.ways.streaming.settings import as_bytes, told

_MOST_VISITS = 16
"""Slices that a right event may be in: it comes out once for each."""
_ROUND_UNITS = ("ns", "us", "ms", "s", "min", "h", "d")
_TENTHS = (10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100)
"""Round lengths, in tenths of a unit, or of ten or a hundred of it: at most a third apart."""
_UNDER_OTHER_NAMES = ("by", "where", "is_one_stream")
_FREE = ("backend", "options", "probability")
"""What may change at a restart."""
_OF_PAIRS = (
    *_UNDER_OTHER_NAMES, *_FREE, "condition", "left_time", "right_time", "left_columns",
    "right_columns", "pair_columns",
)  # fmt: skip
_OF_EFFECTS = (
    *_UNDER_OTHER_NAMES, *_FREE, "cause_time", "effect_time", "cause_columns", "effect_columns",
)  # fmt: skip
"""Arguments of which settings have no field of the same name."""


def plan_grid(
    sides: Sides, spec: AnySpec, arguments: PairArguments, asked: StreamArguments
) -> Grid:
    """The slices of two streams."""
    tick = sides[0].times.scales[0].tick
    nanoseconds = check_tick(tick)
    reach = _reach(sides, spec)
    beyond = _beyond(sides, spec, reach, is_told=arguments.keeps_right)
    delay = 2 * max(asked.ticks_of_delays(tick))
    length = length_of_slices(asked.slice_length, reach.last - reach.first, beyond + delay, tick)
    tasks = key_buckets(sides[0].spark, asked.key_buckets)
    return Grid(
        length=length, beyond=beyond, buckets=tasks if sides[0].by else 1, reach=reach,
        useful=spec.largest_useful, nanoseconds=nanoseconds, keeps_right=arguments.keeps_right,
        is_one_stream=spec.is_one_stream, delay=delay,
        together=together_of(tasks, arguments.keeps_right, has_keys=bool(sides[0].by)),
    )  # fmt: skip


def length_of_slices(given: Duration | None, span: int, waits: int, tick: Tick) -> int:
    """How long slices are, half ticks, of events that reach so wide and wait so long: half ticks."""
    nanoseconds = check_tick(tick)
    millisecond = -(-2_000_000 // nanoseconds)
    if given is None:
        length = max(span, waits, millisecond)
        return 2 * round_length(-(-length // 2), nanoseconds)
    length = 2 * ticks("slice_length", given, tick)
    least = max(millisecond, -(-span // _MOST_VISITS))
    if length < least:
        raise ConditionError(
            f"{argument('slice_length', given)} is too short: slices must have at"
            f" least 1 ms, and 1/{_MOST_VISITS} of the {span // 2:,} ticks in which an"
            f" event can have matches. Give at least {-(-least // 2):,} ticks."
        )
    return length


def round_length(ticks: int, nanoseconds: int) -> int:
    """The least round length that is at least some ticks: whole ticks, which `slice_length` can say."""
    length = ticks * nanoseconds
    units = sorted(int(NANOSECONDS_PER_UNIT[unit]) for unit in _ROUND_UNITS)
    unit = max((size for size in units if size <= length), default=1)
    scale = 10 ** (len(str(length // unit)) - 1)
    found = min(
        unit * scale * tenths // 10 for tenths in _TENTHS if unit * scale * tenths >= 10 * length
    )
    following = min((size for size in units if size > unit), default=found)
    return -(-min(found, following) // nanoseconds)


def together_of(tasks: int, keeps_right: bool, *, has_keys: bool) -> int:
    """Slices with one label, which one task joins at once."""
    if keeps_right:  # what no left event meets is sought in whole slices
        return 1
    return TOGETHER if has_keys else max(1, TOGETHER // tasks)


def _reach(sides: Sides, spec: AnySpec) -> Reach:
    """How far pairs reach, also where nothing can be a pair."""
    reach = reach_of_any((sides[0].times, sides[1].times), spec)
    if reach is None:
        if any(isinstance(side.times, SpanColumns) and side.times.open_ends for side in sides):
            raise ConditionError(
                f"streams need events that end (found {argument('open_ends', True)}): no row would be"
                " final before. Leave out those without an end, or join static DataFrames."
            )
        lacking = [f"{side.side}_longest" for side in sides if lengths_of(side.times) is None]
        raise ConditionError(
            "streams cannot be measured, and here the lengths of timestamps say how"
            f" far pairs reach. Declare the longest, for example {option(lacking[0], '1s')}"
            f" ({', '.join(map(argument, lacking))})."
        )
    if max(-reach.first, reach.last) >= UNBOUNDED:
        raise ConditionError(
            "the condition bounds no time, so events would wait for ever. Give both ends of the window;"
            " in causality add a predicate that bounds it, such as Temporal(0, '1h')."
        )
    return reach if reach.first <= reach.last else Reach(0, 0, reach.left, reach.right)


def _beyond(sides: Sides, spec: AnySpec, reach: Reach, *, is_told: bool) -> int:
    """Half ticks from the end of a slice to the last max_time of events that it is the first one of."""
    leans = list(map(lean_of, sides, spec.largest_useful))
    left, right = 0, reach.last
    if is_told or spec.is_one_stream:
        right = max(right, 0)
        left = right if spec.is_one_stream else max(0, -reach.first)
    return max(leans[LEFT] + left, leans[RIGHT] + right)


def lean_of(side: EventFrame, useful: int) -> int:
    """Half ticks from the key of an event, whose shape is useful, to its max_time at most."""
    lengths = lengths_of(side.times)
    longest = useful if lengths is None else min(lengths[1], useful)
    model = side.times.model
    # A key is anywhere in a support, and in its middle if the density is symmetric.
    return (model.longest(longest) or 0) * (1 if model.is_symmetric else 2)


def key_buckets(spark: SparkSession, given: int | None) -> int:
    """Parts of a slice by keys."""
    return given or int(spark.conf.get("spark.sql.shuffle.partitions") or 1)


def settings_of(
    sides: Sides, spec: AnySpec, arguments: PairArguments, grid: Grid, buckets: int
) -> bytes:
    """All that packs depend on, and what is found in them, by names that users know."""
    window, unit = spec.widest, sides[0].times.scales[0].tick.unit
    is_causal = isinstance(arguments, CausalityArguments)
    settings = {
        **told(arguments, _OF_EFFECTS if is_causal else _OF_PAIRS),
        "within": f"{window.lo} to {window.hi} {unit}",
        "confidence": window.confidence,
        "relation": None if type(window) is Window else repr(window),
        "by": [keys_of(side) for side in sides],
        "where": str(spec.where.where.expression) if isinstance(spec.where, PairFilter) else None,
        "streams": 1 if spec.is_one_stream else 2,
        "slice_length": f"{grid.ticks} {unit}",
        "slice_end": grid.beyond,
        "key_buckets": buckets,
    }
    for name, side in zip(arguments.prefixes, sides, strict=True):
        settings |= settings_of_events(name, side)
    return as_bytes(settings)


def settings_of_events(name: str, side: EventFrame) -> dict[str, object]:
    """All that is packed of a stream, by names that begin with its own."""
    return {
        f"{name}_time": _columns(side, side.times.columns),
        f"{name}_timestamps": _model(side),
        f"{name}_columns": _columns(side, [*side.payload, *side.tested]),
    }


def keys_of(side: EventFrame) -> list[str]:
    """The keys of a stream, with their types."""
    return _columns(side, side.by)


def _columns(side: EventFrame, names: Sequence[str]) -> list[str]:
    return [f"{name} {side.kind_of(name).simpleString()}" for name in names]


def _model(side: EventFrame) -> str:
    """What shapes mean, and which are valid."""
    kind = side.times.model
    model = f"templates {kind.table.digest.hex()[:16]}" if isinstance(kind, TemplateModel) else kind
    if isinstance(side.times, CorrectedColumns):
        model = f"clock errors {side.times.digest}"
    elif isinstance(side.times, SpanColumns) and any(side.times.clocks):
        digests = [clock.digest for clock in side.times.clocks if clock is not None]
        model = f"{model}, clock errors {' and '.join(digests)}"
    return f"{model}, lengths {side.times.declared}"
