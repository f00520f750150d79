"""What is asked of a join of two streams besides the join, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from pyspark.sql import DataFrame, GroupedData, SparkSession
from pyspark.sql.types import TimestampNTZType, TimestampType

from coincide.engine.join.arguments import JoinArguments
from coincide.model.errors import BackendError, ConditionError, argument, brief, option, said_of
from coincide.model.options import check_choice, check_count
from coincide.model.sides import SIDES
from coincide.model.units import Duration, Tick
from spark_plugin.cluster.connect import context_of
from spark_plugin.frames.keyed_rows import must_be_frame

Late = Literal["count", "rows"]
"""What becomes of late rows."""
_STORE = "spark.sql.streaming.stateStore.providerClass"
_ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
STATE_STORE = {_STORE: _ROCKS}
"""The setting that streams need."""
_POLICY = "spark.sql.streaming.multipleWatermarkPolicy"


@dataclass(frozen=True, kw_only=True)
class StreamArguments:
    """The arguments of `coincide.correlate_streams` that `coincide.correlate` has not."""

    left_delay: Duration
    right_delay: Duration | None
    late: Late
    idle_after: Duration | None
    left_clock: DataFrame | None
    right_clock: DataFrame | None
    slice_length: Duration | None
    key_buckets: int | None
    name: str

    def __post_init__(self) -> None:
        check_choice("late", self.late, get_args(Late))
        check_name_and_buckets(self.name, self.key_buckets)

    @property
    def clocks(self) -> tuple[DataFrame | None, DataFrame | None]:
        """Streams of times of both sides."""
        return self.left_clock, self.right_clock

    @property
    def has_clocks(self) -> bool:
        """Whether a silent side is taken to go on."""
        return self.idle_after is not None or any(clock is not None for clock in self.clocks)

    def check_sides(self, left: DataFrame, right: DataFrame | None) -> None:
        """Refuse sides, and clocks, that are no streams."""
        _check_side("left", left)
        if right is None:
            self._check_one_stream()
        else:
            _check_side("right", right)
        for side, clock in zip(SIDES, self.clocks, strict=True):
            if clock is not None:
                check_clock(f"{side}_clock", clock)
        if right is not None and self.right_delay is None:
            raise ConditionError(
                f"{argument('right_delay')} is missing. Say how late right rows may come, for"
                f" example {argument('right_delay', '5s')}."
            )

    def _check_one_stream(self) -> None:
        given = {
            "right_delay": self.right_delay,
            "right_clock": self.right_clock,
            "idle_after": self.idle_after,
        }
        for name, value in given.items():
            if value is not None:
                raise ConditionError(
                    f"{argument(name)} needs a second stream, and there is one. Remove it."
                )

    def delays(self, tick: Tick) -> tuple[int, int]:
        """How late rows of both sides may come, ticks."""
        left = ticks("left_delay", self.left_delay, tick)
        given = self.right_delay
        return left, left if given is None else ticks("right_delay", given, tick)


def _check_side(side: str, events: DataFrame) -> None:
    must_be_frame(events, side, "correlate_tables")
    if not events.isStreaming:
        raise ConditionError(
            f"{side} is a static DataFrame, and correlate_streams joins two streams. Use correlate,"
            " which joins a stream with a static side."
        )


def check_name_and_buckets(name: object, buckets: object) -> None:
    """Refuse a name for Spark's progress, or a number of buckets of keys, that is none."""
    check_count("key_buckets", buckets)
    if not isinstance(name, str) or not name:
        raise ConditionError(
            f"{argument('name')} must be a text that is not empty (found {brief(name)})."
        )


def check_clock(name: str, clock: DataFrame) -> None:
    """Refuse what is no stream of one column of timestamps."""
    must_be_frame(clock, name, "correlate_tables")
    kinds = [field.dataType for field in clock.schema.fields]
    if not clock.isStreaming:
        found = "a static DataFrame"
    elif len(kinds) != 1 or not isinstance(kinds[0], (TimestampType, TimestampNTZType)):
        found = ", ".join(kind.simpleString() for kind in kinds)
    else:
        return
    raise ConditionError(
        f"{argument(name)} must be a streaming DataFrame of one column, the timestamp that its"
        f" side has come to (found {found}). Select or make that column of a stream."
    )


def ticks(name: str, given: Duration, tick: Tick) -> int:
    """A duration that cannot be negative."""
    with said_of(name):
        count = tick.count(given)
    if count < 0:
        raise ConditionError(f"{argument(name)} cannot be negative (found {brief(given)}).")
    return count


def check_join(arguments: JoinArguments) -> None:
    """Refuse what takes more than the rows of a slice."""
    if arguments.matching is not None:
        raise ConditionError(
            f"{argument('matching', arguments.matching)} compares pairs of several slices, which"
            " are closed one after the other. Remove it. For the best match of each left event"
            f" use {argument('emit', 'best')}, and for matches one to one stream_tables."
        )
    if arguments.shifts is not None:
        raise ConditionError(
            f"planning counts {argument('shifts')}, but streams have no rows yet. Remove"
            f" {argument('shifts')}, or count them in tables of past events."
        )
    options, cures = arguments.options, {"way": "Remove it.", "slices": "Use slice_length."}
    for name, usual in (("way", "auto"), ("slices", None)):
        if getattr(options, name) != usual:
            raise ConditionError(
                f"{option(name, getattr(options, name))} is for tables: streams have slices of"
                f" time without end. {cures[name]}"
            )


def check_tick(tick: Tick) -> int:
    """The nanoseconds of a tick; refuses bare ones, which the clock of a watermark does not know."""
    if tick.nanoseconds is None:
        raise ConditionError(
            "the time columns hold plain numbers, and Spark's watermark is a time. Say what they"
            f" count since 1970, for example {option('unit', 'ms')}."
        )
    return tick.nanoseconds


def check_session(operator: str, spark: SparkSession) -> None:
    """Refuse a session whose state cannot be kept, or whose watermark would drop rows."""
    if context_of(spark) is None:
        raise ConditionError(
            f"{operator} needs a Spark session in this process (found a client of Spark"
            " Connect). Run it where the driver runs, for example by spark-submit."
        )
    if not hasattr(GroupedData, "transformWithState"):
        from pyspark import __version__

        raise BackendError(
            f"{operator} needs transformWithState for rows, which Spark has since 4.1 (found"
            f" {__version__}). Use pip install 'pyspark>=4.1,<4.3'."
        )
    store = spark.conf.get(_STORE, None)
    if store != _ROCKS:
        raise ConditionError(
            f"the state of a stream needs RocksDB (found {_STORE}={store}). Set it before the query"
            f" starts: spark.conf.set({_STORE!r}, {_ROCKS!r})."
        )
    if spark.conf.get(_POLICY, "min") != "min":
        raise ConditionError(
            f"{_POLICY}=max makes rows of the slower side late. Set it before the query starts:"
            f" spark.conf.set({_POLICY!r}, 'min')."
        )
