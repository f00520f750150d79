"""Sequences and coincidences of streams: packs wait for the watermark, closed slices are answered."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame

from coincide.engine.events.ticks import length_words
from coincide.engine.events.timestamp_names import timestamp_names, warn_of_ends
from coincide.engine.sequences.arguments import DurationsOfAll, Streams
from coincide.engine.sequences.tables import SequenceArguments
from coincide.model.errors import ConditionError, argument, brief, several
from coincide.model.remembered import remembered
from coincide.model.units import UNBOUNDED, Duration
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.output_columns import decoded, wire_schema
from spark_plugin.frames.stage import gpu_profile
from spark_plugin.tasks.exchange import Room
from spark_plugin.tasks.grid import Grid
from spark_plugin.tasks.labels import partition_labels
from spark_plugin.tasks.samples import Reach
from spark_plugin.tasks.sequence_streams import ClosedTuplesTask, PlacedPackTask
from spark_plugin.tasks.sequences import Question, SentPackTask, SentStream
from spark_plugin.tasks.slice_plan import CellPlan
from spark_plugin.tasks.wire import WireLayout
from spark_plugin.ways.exchange.join import ROOM
from spark_plugin.ways.streaming.arguments import (
    check_clock,
    check_first_state,
    check_name_and_buckets,
    check_options_of_streams,
    check_session,
    check_tick,
    ticks,
    ticks_ahead,
)
from spark_plugin.ways.streaming.buffer import SliceBuffer
from spark_plugin.ways.streaming.packs import (
    AHEAD,
    CLOCK,
    behind_watermark,
    counted_output,
    let_out,
    packed,
    ticking,
)
from spark_plugin.ways.streaming.planning import (
    key_buckets,
    keys_of,
    lean_of,
    length_of_slices,
    settings_of_events,
    together_of,
)
from spark_plugin.ways.streaming.settings import as_bytes, told
from spark_plugin.ways.streaming.watching import Watched, watch
from spark_plugin.ways.tuples import TuplesPlan

_log = logging.getLogger("coincide")
_TOLD_OTHERWISE = ("streams", "windows", "probability")
"""Fields of questions that settings tell otherwise, or that may change at a restart."""


@dataclass(frozen=True, kw_only=True)
class TupleStreamArguments:
    """The arguments of sequences of streams that those of DataFrames have not."""

    operator: str
    tables: str  # what takes static DataFrames
    delay: DurationsOfAll
    longest: DurationsOfAll | None = None
    ahead: DurationsOfAll | None = None
    clock: Mapping[str, DataFrame] | None = None
    slice_length: Duration | None = None
    key_buckets: int | None = None
    name: str

    def __post_init__(self) -> None:
        check_name_and_buckets(self.name, self.key_buckets)

    def check(self, streams: Streams) -> None:
        """Refuse what is no stream, or a session that cannot keep its state."""
        for called, stream in zip(streams.names, streams.tables, strict=True):
            if not stream.isStreaming:
                raise ConditionError(
                    f"{called} is a static DataFrame, and {self.operator} takes streams. Use"
                    f" {self.tables} for static ones, or read all of them as streams."
                )
            check_first_state(called, stream)
        for called, clock in self._clocks(streams).items():
            check_clock(f"{argument('clock')} of {called}", clock)
        check_options_of_streams(streams.options)
        check_session(self.operator, streams.tables[0].sparkSession)
        self._check_counts(streams)

    def _check_counts(self, streams: Streams) -> None:
        """Refuse names of streams by which Spark's progress would tell two things."""
        taken = ["late", "output"]
        for name in streams.names:
            taken += [name, f"{name}{CLOCK}"]
        wrong = [name for name in streams.names if taken.count(name) > 1]
        wrong += [name for name in streams.names if f"{name}{AHEAD}" in streams.names]
        if wrong:
            raise ConditionError(
                f"Spark's progress has other numbers by the names of streams and of late, output, _clock"
                f" and _ahead (found a stream that is called {wrong[0]}). Rename it."
            )

    def declared(self, streams: Streams) -> Streams:
        """The streams with the longest timestamps that were declared for them."""
        if self.longest is None:
            return streams
        found: list[Duration | None] = []
        given = self._of_some("longest", self.longest, streams)
        for name, time, longest in zip(streams.names, streams.times, given, strict=True):
            names = timestamp_names("time", time)
            is_known = names.is_exact or names.lengths is not None
            if is_known and longest is not None and isinstance(self.longest, Mapping):
                raise ConditionError(
                    f"{argument('longest')} declares the longest interval, and lengths of {name} are"
                    f" known (found {argument('longest', self.longest)}). Leave {name} out."
                )
            found.append(None if is_known else longest)
        if not any(each is not None for each in found):
            raise ConditionError(
                f"{argument('longest', self.longest)} declares the longest interval, and no stream has"
                " intervals of unknown length. Remove it."
            )
        return replace(streams, longest=tuple(found))

    def delays(self, streams: Streams) -> list[Duration]:
        """How late rows of each stream may come."""
        given = self._of_some("delay", self.delay, streams)
        lacking = [name for name, each in zip(streams.names, given, strict=True) if each is None]
        if lacking:
            raise ConditionError(
                f"{argument('delay')} by name must name every stream (found none for"
                f" {', '.join(lacking)}). Say how late their rows may come, for example"
                f" {argument('delay', {lacking[0]: '5s'})}."
            )
        return [each for each in given if each is not None]

    def aheads(self, streams: Streams) -> list[Duration | None]:
        """How far ahead of others rows of each stream may be."""
        return self._of_some("ahead", self.ahead, streams)

    def clocks(self, streams: Streams) -> list[DataFrame | None]:
        """The clock of each stream."""
        clocks = self._clocks(streams)
        return [clocks.get(name) for name in streams.names]

    def _clocks(self, streams: Streams) -> dict[str, Any]:
        if self.clock is None:
            return {}
        if not isinstance(self.clock, Mapping):
            raise ConditionError(
                f"{argument('clock')} is a dict of streams by name (found {brief(self.clock)}). Write"
                f" clock={{{streams.names[0]!r}: heartbeats}}."
            )
        self._check_names("clock", self.clock, streams)
        return dict(self.clock)

    def _of_some(self, called: str, given: Any, streams: Streams) -> list[Duration | None]:
        """What was given for all streams, or by the name of some."""
        if not isinstance(given, Mapping):
            return [given] * len(streams)
        self._check_names(called, given, streams)
        return [given.get(name) for name in streams.names]

    @staticmethod
    def _check_names(called: str, given: Mapping[str, Any], streams: Streams) -> None:
        wrong = [name for name in given if name not in streams.names]
        if wrong:
            raise ConditionError(
                f"{argument(called)} names streams, which are {', '.join(streams.names)} (found"
                f" {brief(wrong[0])}). Correct the name."
            )


def find_in_streams(question: Question, asked: TupleStreamArguments) -> DataFrame:
    """The tuples of streaming DataFrames."""
    asked.check(question.streams)
    plan = StreamedTuples(question, asked)
    _log.info("%s: %s", asked.operator, plan.why)
    plan.watch()
    return plan.dataframe


class StreamedTuples(TuplesPlan):
    """A search through streams, step by step."""

    def __init__(self, question: Question, asked: TupleStreamArguments) -> None:
        streams = asked.declared(question.streams)
        warn_of_ends(streams.names, [timestamp_names("time", time) for time in streams.times])
        # As it was given: what it is compiled to is another thing in each release.
        self._where = None if streams.where is None else str(streams.where)
        super().__init__(replace(question, streams=streams))
        self.asked, self._tick = asked, self._job.tick
        self._nanoseconds = check_tick(self._tick)
        self.grids = self._planned()

    @property
    def names(self) -> list[str]:
        """What the streams that are sent are called: like their first places."""
        return [self._streams.names[each.places[0]] for each in self._sent]

    @property
    def why(self) -> str:
        """The plan in words."""
        grid = self.grids[0]
        length, latest = (
            length_words(Fraction(half, 2), self._tick, 15)
            for half in (grid.length, grid.length + grid.beyond + grid.delay)
        )
        buckets = several(grid.buckets, "key bucket")
        return f"slices of {length}, {buckets}; rows come out {latest} after their time at most"

    def _bounded_reaches(self) -> list[Reach]:
        """How far the events of each stream that is sent reach."""
        reaches = self._reaches(None)
        if reaches is None:
            raise ConditionError(
                "streams cannot be measured, and here the lengths of timestamps say how far sequences"
                f" reach. Declare the longest, for example {argument('longest', '1s')}."
            )
        if max(max(-reach.first, reach.last) for reach in reaches) >= UNBOUNDED:
            raise ConditionError(
                "the windows bound no time, so events would wait for ever. Give narrower ones."
            )
        return reaches

    def _useful(self) -> list[int]:
        """The largest shape that an event of each stream that is sent can have in a tuple."""
        found = [0] * len(self._sent)
        for place, i in self._number.items():
            for anchor, window in self._job.near(place).items():
                useful = self._reader.between(anchor, place, window).largest_useful
                for each, own in zip((self._number[anchor], i), useful, strict=True):
                    found[each] = max(found[each], own)
        return found

    def _planned(self) -> list[Grid]:
        """The slices that the events of each stream that is sent go to."""
        reaches, useful, sent = self._bounded_reaches(), self._useful(), self._sent
        beyond = max(
            lean_of(each.frame, most) + max(0, reach.last) if self._is_anchor(i) else
            lean_of(each.frame, most) + reach.last
            for i, (each, most, reach) in enumerate(zip(sent, useful, reaches, strict=True))
        )  # fmt: skip
        delay = 2 * max(self._delay(i) for i in range(len(sent)))
        span = max(reach.last - reach.first for reach in reaches)
        length = length_of_slices(self.asked.slice_length, span, beyond + delay, self._tick)
        tasks = key_buckets(self._spark, self.asked.key_buckets)
        has_keys = bool(self._streams.keys[0])
        # Events of an anchor that visit others tell in whole slices where tuples begin.
        are_both = [self._is_anchor(i) and self._visits(i) for i in range(len(sent))]
        together = together_of(tasks, any(are_both), has_keys=has_keys)
        return [
            Grid(
                length=length, beyond=beyond, buckets=tasks if has_keys else 1, reach=reach,
                useful=(most, most), nanoseconds=self._nanoseconds, keeps_right=is_both,
                is_one_stream=False, delay=delay, together=together,
            )
            for reach, most, is_both in zip(reaches, useful, are_both, strict=True)
        ]  # fmt: skip

    def _visits(self, number: int) -> bool:
        """Whether the events of a stream that is sent go to the slices of others."""
        return any(self._job.near(place) for place in self._sent[number].places)

    def _delay(self, number: int) -> int:
        """How late rows of a stream that is sent may come: the longest that one of its places has."""
        delays = self.asked.delays(self._streams)
        return max(ticks("delay", delays[k], self._tick) for k in self._sent[number].places)

    def _ahead(self, number: int) -> int | None:
        aheads = self.asked.aheads(self._streams)
        given = [
            ticks_ahead("ahead", aheads[k], self._tick)
            for k in self._sent[number].places
            if aheads[k] is not None
        ]
        return max((each for each in given if each is not None), default=None)

    def rows(
        self, number: int, *, is_counted: bool = False
    ) -> tuple[DataFrame, PlacedPackTask, WireLayout]:
        """Rows of a stream on the wire, what packs them, and their columns."""
        frame, grid = self._sent[number].frame, self.grids[number]
        if is_counted:
            frame = self._observed(number)
        is_anchor = self._is_anchor(number)
        rows, layout, schema = self._on_the_wire(
            frame, is_anchor=is_anchor, has_keys=grid.buckets > 1, is_salted=False
        )
        task = PlacedPackTask(
            side="left", schema=schema, model=frame.times.model, grid=grid, settings=self._settings,
            ahead=self._ahead(number), sent=number, is_anchor=is_anchor, visits=self._visits(number),
        )  # fmt: skip
        return rows, task, layout

    def _observed(self, number: int) -> EventFrame:
        """A stream whose rows are counted on their way."""
        called = f"{self.asked.name}_{self.names[number]}"
        return replace(self._sent[number].frame, observation=called)

    @remembered
    def _bare(self) -> list[tuple[PlacedPackTask, WireLayout]]:
        """What packs the rows of each stream that is sent, and their columns."""
        return [self.rows(number)[1:] for number in range(len(self._sent))]

    @remembered
    def packers(self) -> list[PlacedPackTask]:
        """What packs the rows of each stream that is sent."""
        return [task for task, _ in self._bare]

    @remembered
    def _settings(self) -> bytes:
        """All that packs depend on, and what is found in them, by names that users know."""
        question, unit = self._question, self._tick.unit
        of_sequences = ("total", "link_probability")
        is_sequence = isinstance(question, SequenceArguments)
        but = (*_TOLD_OTHERWISE, *(of_sequences if is_sequence else ()))
        settings = {
            "operator": self.asked.operator,
            "names": self._streams.names,
            **told(question, but),
            "windows": {
                " to ".join(self._streams.names[k] for k in pair): (
                    f"{spec.window.lo} to {spec.window.hi} {unit}"
                )
                for pair, spec in self._reader.specs.items()
            },
            "near": [
                f"{k} after {anchor}: {lo} to {hi} {unit}"
                for k in range(len(self._streams))
                for anchor, (lo, hi) in self._job.near(k).items()
            ],
            "confidence": self._streams.confidence,
            "where": self._where,
            "sent": [each.places for each in self._sent],
            "slice_length": f"{self.grids[0].ticks} {unit}",
            "slice_end": self.grids[0].beyond,
            "key_buckets": key_buckets(self._spark, self.asked.key_buckets),
        }
        for name, each in zip(self.names, self._sent, strict=True):
            settings[f"{name}_by"] = keys_of(each.frame)
            settings |= settings_of_events(name, each.frame)
        return as_bytes(settings)

    def _packs_of(self, number: int) -> DataFrame:
        """Packs of a stream, with the times of its clocks, behind its watermark."""
        rows, task, _ = self.rows(number, is_counted=True)
        packs = packed(rows, task, f"{self.asked.name}_{self.names[number]}")
        clocks = self.asked.clocks(self._streams)
        for place in self._sent[number].places:
            clock = clocks[place]
            if clock is not None:
                packs = packs.unionAll(ticking(clock, self._settings))
        return behind_watermark(packs, self._delay(number), self._nanoseconds)

    @remembered
    def dataframe(self) -> DataFrame:
        """The result."""
        packs = reduce(DataFrame.unionAll, map(self._packs_of, range(len(self._sent))))
        buffer = SliceBuffer(self.packers, keeps_late=False)
        closed = let_out(packs, buffer, self.asked.name, self.names)
        profile = gpu_profile(self._spark, self._streams.backend)
        columns = self._columns()
        found = closed.mapInArrow(self.slice_task(), wire_schema(columns), profile=profile)
        return counted_output(decoded(found, columns), self.asked.name)

    def slice_task(self) -> ClosedTuplesTask:
        """What answers closed slices."""
        options = self._streams.options
        span = max(grid.reach.last - grid.reach.first for grid in self.grids)
        plans = [CellPlan(1, grid.reach, needs_keys=False, span=span) for grid in self.grids]
        sent = []
        for number, (each, plan) in enumerate(zip(self._sent, plans, strict=True)):
            task, layout = self._bare[number]
            finer = SentPackTask(
                "left", task.schema, task.model, plan, partition_labels(1), number=number,
                is_anchor=task.is_anchor,
            )  # fmt: skip
            sent.append(SentStream(task=finer, layout=layout, name=each.frame.called))
        return self._task(
            ClosedTuplesTask, self._columns(), sent=tuple(sent),
            room=Room(plans[0], ROOM * options.slice_rows, ROOM * options.slice_bytes),
        )  # fmt: skip

    def watch(self) -> None:
        """Have the log tell of late rows, and of streams that are silent."""
        names = dict.fromkeys(self.names, "delay")
        has_clock = any(clock is not None for clock in self.asked.clocks(self._streams))
        watched = Watched(
            self.asked.operator, names, dict.fromkeys(names, "ahead"), waits=not has_clock,
            cure="clock={{'{}': heartbeats}}",
        )  # fmt: skip
        watch(self._spark, self.asked.name, watched)
