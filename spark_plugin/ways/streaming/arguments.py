"""Arguments that only a join of two streams has, and what is refused."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

from pyspark.sql import DataFrame, GroupedData, SparkSession
from pyspark.sql.types import TimestampNTZType, TimestampType

from coincide.engine.backends import check_task_devices
from coincide.engine.join.pair_arguments import PairArguments
from coincide.model.errors import BackendError, ConditionError, argument, brief, option, said_of
from coincide.model.extras import SPARK, missing
from coincide.model.options import (
    OUTPUT_ROWS,
    CorrelateOptions,
    check_choice,
    check_count,
    check_no_most,
)
from coincide.model.sides import LEFT, RIGHT, SIDES
from coincide.model.units import TIME_LIMIT, Duration, Tick
from spark_plugin.cluster.connect import context_of
from spark_plugin.frames.keyed_rows import must_be_frame

Late = Literal["count", "rows"]
"""What becomes of late rows."""
_STORE = "spark.sql.streaming.stateStore.providerClass"
_ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
STATE_STORE = {
    _STORE: _ROCKS,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""The store that streams need, and a setting that has it write less for each micro-batch."""
_POLICY = "spark.sql.streaming.multipleWatermarkPolicy"


@dataclass(frozen=True, kw_only=True)
class StreamArguments:
    """The arguments of joins of streams that joins of tables have not; of both sides in their order."""

    operator: str = "correlate_streams"
    sides: tuple[str, str] = SIDES
    delays: tuple[Duration, Duration | None]
    aheads: tuple[Duration | None, Duration | None] = (None, None)
    late: Late = "count"
    idle_after: Duration | None = None
    clocks: tuple[DataFrame | None, DataFrame | None] = (None, None)
    slice_length: Duration | None = None
    key_buckets: int | None = None
    name: str

    def __post_init__(self) -> None:
        check_choice("late", self.late, get_args(Late))
        check_name_and_buckets(self.name, self.key_buckets)

    @property
    def has_clocks(self) -> bool:
        """Whether a silent side is taken to go on."""
        return self.idle_after is not None or any(clock is not None for clock in self.clocks)

    @property
    def delay_names(self) -> tuple[str, str]:
        """What the delays of both sides are called."""
        left, right = (f"{side}_delay" for side in self.sides)
        return left, right

    @property
    def ahead_names(self) -> tuple[str, str]:
        """What the arguments that set rows aside are called."""
        left, right = (f"{side}_ahead" for side in self.sides)
        return left, right

    def check_sides(self, given: Mapping[str, DataFrame | None]) -> None:
        """Refuse sides, by what they are called, and clocks, that are no streams."""
        (left, first), (right, second) = given.items()
        self._check_side(left, first)
        if second is None:
            self._check_one_stream()
        else:
            self._check_side(right, second)
        for side, clock in zip(self.sides, self.clocks, strict=True):
            if clock is not None:
                check_clock(f"{side}_clock", clock)
        name = self.delay_names[RIGHT]
        if second is not None and self.delays[RIGHT] is None:
            raise ConditionError(
                f"{argument(name)} is missing. Say how late {self.sides[RIGHT]} rows may come, for"
                f" example {argument(name, '5s')}."
            )

    def _check_side(self, called: str, events: Any) -> None:
        tables = _STATIC[self.operator]
        must_be_frame(events, called, f"{tables}_tables")
        if not events.isStreaming:
            verb = "are" if called.endswith("s") else "is"
            raise ConditionError(
                f"{called} {verb} a static DataFrame, and {self.operator} joins two streams. Use"
                f" {tables}, which joins a stream with a static side."
            )
        check_first_state(called, events)

    def _check_one_stream(self) -> None:
        given = {
            self.delay_names[RIGHT]: self.delays[RIGHT],
            self.ahead_names[RIGHT]: self.aheads[RIGHT],
            f"{self.sides[RIGHT]}_clock": self.clocks[RIGHT],
            "idle_after": self.idle_after,
        }
        for name, value in given.items():
            if value is not None:
                raise ConditionError(
                    f"{argument(name)} needs a second stream, and there is one. Remove it."
                )

    def ticks_of_delays(self, tick: Tick) -> tuple[int, int]:
        """How late rows of both sides may come."""
        first, second = self.delays
        left = ticks(self.delay_names[LEFT], first, tick)
        return left, left if second is None else ticks(self.delay_names[RIGHT], second, tick)

    def ahead(self, number: int, tick: Tick) -> int | None:
        """How far ahead of the median a row of a side may be, ticks; None: as far as it likes."""
        return ticks_ahead(self.ahead_names[number], self.aheads[number], tick)


_STATIC = {"correlate_streams": "correlate", "causality_streams": "causality"}
"""What joins tables, or a stream with a static side."""


def check_name_and_buckets(name: object, buckets: int | None) -> None:
    """Refuse a wrong name for Spark's progress, or a wrong number of buckets of keys."""
    check_count("key_buckets", buckets)
    if not isinstance(name, str) or not name:
        raise ConditionError(
            f"{argument('name')} must be a text that is not empty (found {brief(name)})."
        )


def check_first_state(called: str, stream: DataFrame) -> None:
    """Refuse what another operator on streams gives: its rows would wait for each other's watermark."""
    if context_of(stream.sparkSession) is None:
        return  # a client of Spark Connect sees no plan
    plan = stream._jdf.queryExecution().analyzed()  # Spark plans no more before the query starts
    if "TransformWithState" in plan.toString():
        raise ConditionError(
            f"{called} comes out of another operator on streams, and Spark has one watermark for a"
            " query, so rows would wait for ever. Write it to a topic or folder, and read that as a"
            " stream."
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


def ticks_ahead(name: str, given: Duration | None, tick: Tick) -> int | None:
    """How far ahead of the median a row may be; more than any time is wide means the same as that."""
    return None if given is None else min(ticks(name, given, tick), 2 * TIME_LIMIT)


def check_join(arguments: PairArguments) -> None:
    """Refuse what takes more than the rows of a slice."""
    if (word := arguments.choice.one_to_one) is not None:
        raise ConditionError(
            f"{word.said} compares pairs of several slices, which"
            " are closed one after the other. Remove it. For the best match of each"
            f" {arguments.prefixes[LEFT]} event use {OUTPUT_ROWS['best'].said}, and for matches one"
            " to one tables."
        )
    if arguments.side_of_matches == LEFT:
        raise ConditionError(
            f"slices of streams are closed for left events, but {argument('how', arguments.how)} with"
            f" {arguments.row.said} asks for right ones. Swap the sides, mirror the"
            f" window, and use {argument('how', 'left')}."
        )
    if arguments.including is not None:
        raise ConditionError(
            f"{argument('including', arguments.including)} may need an event of any age, but a stream"
            " keeps events as long as its window reaches. Remove it, or widen the window."
        )
    check_options_of_streams(arguments.options)


def check_options_of_streams(options: CorrelateOptions) -> None:
    """Refuse options of whole tables."""
    check_no_most(options, "a stream has no end")
    check_task_devices(options)
    cures = {"way": "Remove it.", "slices": "Use slice_length."}
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
    if isinstance(tick.nanoseconds, Fraction):
        raise ConditionError(
            f"the time columns count {tick.unit}, and Spark's watermark is a time since 1970, which"
            f" reaches beyond their range. Write them in ns, or coarser."
        )
    return tick.nanoseconds


def check_session(operator: str, spark: SparkSession) -> None:
    """Refuse a session whose state cannot be kept, or whose watermark would drop rows."""
    if not hasattr(GroupedData, "transformWithState"):
        from pyspark import __version__

        raise BackendError(
            f"{operator} needs transformWithState for rows, which Spark has since 4.1 (found"
            f" {__version__}). Use pip install 'pyspark>=4.1,<4.3'."
        )
    _check_protobuf()
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


def _check_protobuf() -> None:
    """Refuse an interpreter without what Spark's workers of a state import; here, as theirs is this one."""
    try:
        importlib.import_module("google.protobuf.runtime_version")
    except ImportError as error:
        raise missing(SPARK, "google.protobuf", error) from error
