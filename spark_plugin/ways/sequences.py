"""Sequences and coincidences of DataFrames: an exchange of all streams, or a broadcast of all but one."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import types as T

from coincide.engine.backends import check_task_devices
from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.events.timestamps import longest_matches
from coincide.engine.join.spec import check_output_names
from coincide.engine.join.timing import JoinSpec
from coincide.engine.sequences.arguments import LinkArguments, Places, Streams
from coincide.engine.sequences.job import TuplesJob
from coincide.engine.sequences.links import Links, Reader
from coincide.engine.sequences.reports import SequenceSummary
from coincide.engine.sequences.tables import SequenceArguments
from coincide.engine.sequences.walk import Sizes
from coincide.model.condition import Within
from coincide.model.errors import ConditionError, Words, argument, several
from coincide.model.options import CorrelateOptions
from coincide.model.remembered import remembered
from coincide.model.units import TIME_LIMIT
from spark_plugin.cluster.connect import parallelism
from spark_plugin.cluster.jobs import at_once
from spark_plugin.cluster.rapids import is_accelerated
from spark_plugin.cluster.worker_python import check_workers
from spark_plugin.frames import columns as frames
from spark_plugin.frames.columns import arrow_schema
from spark_plugin.frames.estimates import estimate_of_rows
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.output_columns import (
    OutputColumn,
    check_distinct_names,
    decoded,
    like_key,
    metrics_name,
    wire_schema,
)
from spark_plugin.frames.queries import queries_logged
from spark_plugin.frames.stage import Stage, counted_by_tasks, counted_rows, gpu_profile
from spark_plugin.frames.statistics import SideStatistics, measure_streams, refuse_invalid
from spark_plugin.frames.wire_rows import wire_rows
from spark_plugin.tasks.broadcast_sequences import SmallStream, SpreadTask
from spark_plugin.tasks.exchange import Room
from spark_plugin.tasks.labels import partition_labels
from spark_plugin.tasks.packing import EVENTS, STREAM
from spark_plugin.tasks.samples import Reach
from spark_plugin.tasks.sequences import (
    LINKS,
    Question,
    SentPackTask,
    SentStream,
    SequenceTask,
    StreamPlace,
    TuplesTask,
    job_of,
)
from spark_plugin.tasks.slice_plan import CellPlan
from spark_plugin.tasks.wire import KEY_HASH, LABEL, SALT, WireLayout, wire_layout
from spark_plugin.ways.broadcast.join import near_events
from spark_plugin.ways.broadcast.spread import SentFrame, SpreadChoice, SpreadPlan, shipped
from spark_plugin.ways.choosing import lengths_of, reach_of_any, slices_for
from spark_plugin.ways.exchange.join import ROOM, salt_of
from spark_plugin.ways.exchange.packed_files import FileSide, file_sides, files_of, packs_of_files
from spark_plugin.ways.join_sides import check_payload, event_frames, known_schema
from spark_plugin.ways.limits import LIMITS

_log = logging.getLogger("coincide")
Task = TypeVar("Task", bound=TuplesTask)
_BATCH_TUPLES = 1 << 16
"""Tuples of an output batch: small ones let the JVM read one while the worker fills the next."""


class _FrameReader(Reader):
    """Plans the joins of DataFrames, whose rows tasks give."""

    def __init__(self, streams: Streams) -> None:
        super().__init__(streams)
        self.frames: dict[int, EventFrame] = {}
        self.specs: dict[Places, JoinSpec] = {}

    def plan(self, left: int, right: int, window: Within) -> JoinSpec:
        """As in `Reader`."""
        arguments = self.streams.link(left, right, window)
        sides = event_frames((self.streams.tables[left], self.streams.tables[right]), arguments)
        self.take_tick(sides[0].times.scales[0].tick)
        for number, side in zip((left, right), sides, strict=True):
            known = self.frames.setdefault(number, replace(side, side="left"))
            self.frames[number] = replace(
                known, has_like_keys=known.has_like_keys and side.has_like_keys
            )
        spec = _spec(arguments, sides)
        self.specs[left, right] = spec
        return spec

    def links(self, left: int, right: int, spec: JoinSpec) -> Links:
        """As in `Reader`: tasks have the rows."""
        raise NotImplementedError

    def between(self, left: int, right: int, window: tuple[int, int]) -> JoinSpec:
        """The join of any two streams by a window, ticks."""
        models = {
            k: model
            for pair, spec in self.specs.items()
            for k, model in zip(pair, spec.models, strict=True)
        }
        spec = next(iter(self.specs.values()))
        lo, hi = window
        return spec.but(
            models=(models[left], models[right]), window=replace(spec.window, lo=lo, hi=hi)
        )


def _spec(arguments: LinkArguments, sides: tuple[EventFrame, EventFrame]) -> JoinSpec:
    spec = arguments.spec([side.times for side in sides], 1, _BATCH_TUPLES)
    assert isinstance(spec, JoinSpec)
    return spec


@dataclass(frozen=True)
class _Sent:
    """A stream that is sent, once however many places it has."""

    frame: EventFrame
    places: tuple[int, ...]


class TuplesPlan:
    """What a search is planned of: the joins of streams, what is sent of each, and the output columns."""

    def __init__(self, question: Question) -> None:
        streams = question.streams
        if not streams.are_typed:
            streams = streams.typed([known_schema(frame) for frame in streams.tables])
            question = replace(question, streams=streams)
        self._streams, self._question = streams, question
        self._reader = _FrameReader(streams)
        self._job: TuplesJob = job_of(question, self._reader)
        check_task_devices(streams.options)
        self._sent = _sent_of(streams, self._reader)
        check_payload([each.frame for each in self._sent])
        self._sent = list(map(self._with_longest, self._sent))
        self._spark = self._sent[0].frame.spark
        check_workers(self._spark)

    @remembered
    def _number(self) -> dict[int, int]:
        """By place of the question the number of what is sent."""
        return {place: i for i, each in enumerate(self._sent) for place in each.places}

    def _with_longest(self, sent: _Sent) -> _Sent:
        """A stream that counts the events longer than any link of theirs can be."""
        longest = [
            longest_matches(spec.widest, [self._reader.frames[k].times for k in pair])[which]
            for pair, spec in self._reader.specs.items()
            for which, k in enumerate(pair)
            if k in sent.places
        ]
        # None: no length is too long for some link.
        most = None if None in longest else max(each for each in longest if each is not None)
        return replace(sent, frame=replace(sent.frame, longest_match=most))

    def _reaches(self, measured: list[SideStatistics] | None) -> list[Reach] | None:
        """How far the events of each stream that is sent reach; None where only a planning job tells."""
        lengths = [lengths_of(each.frame.times) for each in self._sent]
        if measured is not None:
            seen = [(each.shortest, each.longest) for each in measured]
            lengths = [known or own for known, own in zip(lengths, seen, strict=True)]
        reaches = []
        for i, each in enumerate(self._sent):
            ends = []
            right = lengths[i]
            for place in each.places:
                ends += [(0, 0)] if place in self._job.anchors else []
                for anchor, window in self._job.near(place).items():
                    spec, left = (
                        self._reader.between(anchor, place, window),
                        lengths[self._number[anchor]],
                    )
                    if left is not None and right is not None:
                        reach: Reach | None = Reach.of(spec.pairs, left, right, spec.largest_useful)
                    else:
                        frames_of = self._reader.frames[anchor], self._reader.frames[place]
                        reach = reach_of_any((frames_of[0].times, frames_of[1].times), spec)
                    if reach is None:
                        return None
                    if reach.first <= reach.last:
                        ends.append((reach.first, reach.last))
            first, last = zip(*(ends or [(0, 0)]), strict=True)
            any_length = 0, 2 * TIME_LIMIT
            own = any_length if right is None else right
            reaches.append(Reach(min(first), max(last), own, own))
        return reaches

    def _columns(self) -> list[OutputColumn]:
        """The output columns."""
        streams, question, by_place = self._streams, self._question, self._reader.frames
        keys = zip(*([f.kind_of(name) for name in f.by] for f in self._in_order()), strict=True)
        kinds = [
            reduce(like_key, of_all) if len(self._job.anchors) > 1 else of_all[0] for of_all in keys
        ]
        kinds += [by_place[k].kind_of(name) for k in question.told for name in streams.columns[k]]
        names = streams.columns_of(len(question.told))
        columns = [OutputColumn(name, kind) for name, kind in zip(names, kinds, strict=True)]
        columns += [
            OutputColumn(name, frames.spark_type(name, kind))
            for name, kind in question.numbers.items()
        ]
        check_output_names([column.name for column in columns])
        check_distinct_names([column.name for column in columns])
        return columns

    def _in_order(self) -> list[EventFrame]:
        return [self._reader.frames[k] for k in range(len(self._streams))]

    def _places(self) -> tuple[StreamPlace, ...]:
        """What tasks know of the places of the question."""
        found = {}
        for i, each in enumerate(self._sent):
            for place in each.places:
                columns = self._streams.columns[place] if place in self._question.told else ()
                payload, tested = each.frame.payload, each.frame.tested
                found[place] = StreamPlace(
                    i,
                    tuple(map(payload.index, columns)),
                    tuple(map(tested.index, self._streams.tested[place])),
                )
        return tuple(found[k] for k in range(len(self._streams)))

    def _is_anchor(self, number: int) -> bool:
        """Whether tuples may begin with the events of a stream that is sent."""
        return any(place in self._job.anchors for place in self._sent[number].places)

    def _on_the_wire(
        self,
        frame: EventFrame,
        *,
        is_anchor: bool,
        has_keys: bool,
        is_salted: bool,
        near: Column | None = None,
    ) -> tuple[DataFrame, WireLayout, pa.Schema]:
        """Rows of a stream that are to be packed, their columns, and what is packed of them."""
        layout = _layout_of(frame)
        keeps = is_anchor and _keeps_unmatched(self._question)
        keys = (KEY_HASH,) if has_keys else ()
        is_strict = self._streams.options.invalid == "raise"
        rows = wire_rows(frame, layout, keeps, is_strict, place=keys, near=near)
        salt = [f"{salt_of(frame, layout)} AS {SALT}"] if keeps and is_salted else []
        rows = rows.selectExpr(*layout.columns, *keys, *salt)
        return rows, layout, arrow_schema(T.StructType(rows.schema.fields[: len(layout.columns)]))

    def _task(self, kind: type[Task], columns: Sequence[OutputColumn], **more: Any) -> Task:
        """What answers slices."""
        # What is sent to tasks has no tables, and a task has one core.
        streams, options = self._streams, self._streams.options
        bound = options.batch_pairs or _BATCH_TUPLES
        alone = replace(
            streams,
            tables=(),
            options=replace(options, threads=options.threads or 1, batch_pairs=bound),
        )
        return kind(
            question=replace(self._question, streams=alone), specs=self._reader.specs,
            tick=self._job.tick, places=self._places(),
            names=tuple(column.name for column in columns), **more,
        )  # fmt: skip


class PlannedTuples(TuplesPlan):
    """A search that is planned: its result, and what is known of it."""

    def __init__(self, question: Question, *, observe: bool) -> None:
        _check_options(question.streams.options)
        super().__init__(question)
        with queries_logged():
            self._statistics: list[SideStatistics] | None = None
            self._choice = SpreadChoice(self._candidates(), question.streams.options, LIMITS)
            self._choice.check()
            self._spread = self._spread_plan()
            plan = self._spread
            self._plans = [] if plan else self._planned()
            _log.info("sequences: %s: %s", self.way, Words(self.why))
            observable = not is_accelerated(self._spark)
            self._observation = Observation() if observe and observable else None
            self._links = self._links_of_small(plan) if plan and self._observation else {}
            self.dataframe = self._spread_out(plan) if plan else self._joined()
        if plan:  # what was sent: a report would keep it
            self._spread = plan.without_events()

    @property
    def way(self) -> str:
        """How events meet."""
        return "broadcast" if self._spread else "exchange"

    @property
    def why(self) -> str:
        """The plan in words, marked for messages."""
        told = "no planning job" if self._statistics is None else "rows were counted"
        if self._spread is not None:
            return f"{self._spread.describe(self._candidates())}, {told}"
        slices = f"{several(self._plans[0].count, 'slice')} of cells in time, {told}"
        refused = self._choice.refused
        return f"{slices}; no broadcast, since {refused}" if refused else slices

    def _candidates(self) -> list[SentFrame]:
        """The streams that are sent, and which of them may stay in their partitions."""
        names = self._streams.names
        found = []
        for each in self._sent:
            why = self._question.why_whole(each.places[0])
            if len(each.places) > 1:
                called = ", ".join(names[k] for k in each.places)
                why = f"one DataFrame is {called}, and two events of it make one row"
            found.append(SentFrame(each.frame, why))
        return found

    def _spread_plan(self) -> SpreadPlan | None:
        """Which stream stays in its partitions, if one does."""
        plan = self._choice.by_estimates()
        if plan is not None:
            return plan
        self._statistics = self._measured()
        if self._statistics is None:
            return None
        return self._choice.by_rows(self._statistics, self._reach_between)

    def _reach_between(self, number: int, other: int) -> Reach:
        """How far events of one stream that is sent are from those of another, lengths as counted."""
        assert self._statistics is not None
        lengths = [
            lengths_of(self._sent[k].frame.times)
            or (self._statistics[k].shortest, self._statistics[k].longest)
            for k in (number, other)
        ]
        specs = self._joins(number, other)
        own, others = lengths
        found = [Reach.of(spec.pairs, own, others, spec.largest_useful) for spec in specs]
        first, last = zip(*((reach.first, reach.last) for reach in found), strict=True)
        return Reach(min(first), max(last), own, others)

    def _joins(self, number: int, other: int) -> list[JoinSpec]:
        """What events of two streams that are sent must meet to be in one tuple, by their places."""
        return [
            self._reader.between(i, j, self._job.between(i, j))
            for i in self._sent[number].places
            for j in self._sent[other].places
        ]

    def _measured(self) -> list[SideStatistics] | None:
        """What reading all streams shows; None where that is known without it."""
        sent, options = [each.frame for each in self._sent], self._streams.options
        known = [estimate_of_rows(frame) for frame in sent]
        is_known = all(known) or any(frame.is_computed for frame in sent)
        is_enough = options.invalid == "raise" and is_known and not self._choice.is_asked
        if is_enough and self._reaches(None) is not None:
            return None
        found = measure_streams(sent)
        if options.invalid == "raise":
            refuse_invalid(sent, found)
        return found

    def _planned(self) -> list[CellPlan]:
        """Which slices the events of each stream that is sent go to."""
        reaches = self._reaches(self._statistics)
        assert reaches is not None
        count = self._streams.options.slices or self._slices()
        span = max(reach.last - reach.first for reach in reaches)
        keyed = bool(self._streams.keys[0])
        return [CellPlan(count, reach, keyed, span=span) for reach in reaches]

    def _slices(self) -> int:
        """How many slices have room, and keep all cores busy."""
        tasks, options = parallelism(self._spark), self._streams.options
        if self._statistics is not None:
            rows = sum(each.matchable for each in self._statistics)
            size = sum(each.matchable * each.row_bytes for each in self._statistics)
            return slices_for(rows, int(size), options, LIMITS, tasks)
        known = [estimate_of_rows(each.frame) for each in self._sent]
        estimates = [each for each in known if each is not None]
        if len(estimates) < len(known):
            return LIMITS.waves_of_computed * tasks
        rows, size = (
            LIMITS.packed * sum(getattr(e, n) for e in estimates) for n in ("rows", "bytes")
        )
        return slices_for(rows, size, options, LIMITS, tasks)

    def _stage(self, columns: Sequence[OutputColumn]) -> Stage:
        names = tuple(column.name for column in columns)
        return Stage(
            raise_invalid=self._streams.options.invalid == "raise",
            profile=gpu_profile(self._spark, self._streams.backend),
            metrics=None if self._observation is None else metrics_name(names),
            observation=self._observation,
        )

    def _spread_out(self, plan: SpreadPlan) -> DataFrame:
        """What tasks find that get rows of one stream as they are, and all events of the others."""
        columns, large, options = self._columns(), plan.large, self._streams.options
        stage, small = self._stage(columns), {}
        for number, found in plan.small.items():
            frame = self._sent[number].frame
            layout = _layout_of(frame)
            small[number] = SmallStream(
                rows=shipped(found.events, frame, layout), layout=layout,
                model=frame.times.model, joins=tuple(self._joins(number, large)),
            )  # fmt: skip
        frame = self._observed(large)
        rows, layout, _ = self._on_the_wire(
            frame, is_anchor=self._is_anchor(large), has_keys=False, is_salted=False,
            near=self._near(plan),
        )  # fmt: skip
        task = self._task(
            SpreadTask, columns, metrics=stage.metrics, large=large, layout=layout,
            model=frame.times.model, small=small, slice_rows=options.slice_rows,
            slice_bytes=options.slice_bytes,
        )  # fmt: skip
        return decoded(stage.run(rows, task, wire_schema(columns)), columns)

    def _near(self, plan: SpreadPlan) -> Column | None:
        """Which rows of the stream that stays are near the events of one small stream; None: all may be."""
        if _keeps_unmatched(self._question):
            return None
        spec, frame = self._joins(plan.fewest, plan.large)[0], self._sent[plan.large].frame
        return near_events(plan.small[plan.fewest].events, frame, spec, is_left=True)

    def _links_of_small(self, plan: SpreadPlan) -> dict[Places, int]:
        """How many links there are between small streams: each task makes them for itself."""
        found = {}
        for pair, spec in self._job.joins.items():
            numbers = [self._number[place] for place in pair]
            if all(number in plan.small for number in numbers):
                left, right = (plan.small[number].events for number in numbers)
                pairing = spec.but(backend="cpu").pairing(left, right)
                found[pair] = int(pairing.join.offsets[-1])
        return found

    def _links_told(self, numbers: Mapping[str, int]) -> dict[Places, int]:
        """The links between two streams each, but for those of which tasks may not see all."""
        found = {(i, j): numbers[f"{LINKS}_{i}_{j}"] for i, j in self._reader.specs}
        plan = self._spread
        if plan is None:
            return found
        sees_all = _keeps_unmatched(self._question) or is_accelerated(self._spark)
        near = {plan.large, plan.fewest}
        return {
            pair: self._links.get(pair, count)
            for pair, count in found.items()
            if pair in self._links or sees_all or {self._number[k] for k in pair} == near
        }

    def _joined(self) -> DataFrame:
        options = self._streams.options
        columns = self._columns()
        _ = self._files  # once, not in each thread
        packs, sent = zip(
            *at_once(self._spark, [partial(self._packed, i) for i in range(len(self._sent))]),
            strict=True,
        )
        plan = self._plans[0]
        rows = reduce(DataFrame.unionAll, packs).repartition(plan.count, LABEL)
        stage = self._stage(columns)
        task = self._task(
            SequenceTask, columns, sent=sent, metrics=stage.metrics,
            room=Room(plan, ROOM * options.slice_rows, ROOM * options.slice_bytes),
        )  # fmt: skip
        return decoded(stage.run(rows, task, wire_schema(columns)), columns)

    def _packed(self, number: int) -> tuple[DataFrame, SentStream]:
        """Packs of one stream, each of a slice."""
        plan = self._plans[number]
        frame, is_anchor = self._observed(number), self._is_anchor(number)
        given = self._files[number]
        # Rows that tasks read themselves are counted there.
        rows, layout, schema = self._on_the_wire(
            frame if given is None else replace(frame, observation=None),
            is_anchor=is_anchor, has_keys=plan.needs_keys, is_salted=True,
        )  # fmt: skip
        # The RAPIDS Accelerator takes no binaries into Python.
        as_numbers = is_accelerated(self._spark)
        task = SentPackTask(
            "left", schema, frame.times.model, plan, partition_labels(plan.count),
            as_numbers=as_numbers, number=number, is_anchor=is_anchor,
        )  # fmt: skip
        kind = "array<bigint>" if as_numbers else "binary"
        columns = f"{LABEL} bigint, {STREAM} bigint, {EVENTS} {kind}"
        if given is None:
            packs = rows.mapInArrow(task, columns)
        else:
            keeps = is_anchor and _keeps_unmatched(self._question)
            packs = packs_of_files(
                self._spark, frame, given, task, layout, columns,
                keeps_unmatched=keeps, has_salt=keeps,
            )  # fmt: skip
        return packs, SentStream(task=task, layout=layout, name=frame.called)

    @remembered
    def _files(self) -> list[FileSide | None]:
        """What tasks read themselves of what is sent."""
        found: list[FileSide | None] = []
        whole = [
            replace(f, payload=list(dict.fromkeys([*f.payload, *f.tested])), tested=[])
            for f in (each.frame for each in self._sent)
        ]
        files = list(map(files_of, whole))
        for i, each in enumerate(self._sent):
            place = each.places[0]
            other = place + 1 if place + 1 < len(self._streams) else place - 1
            j = self._number[other]
            link = self._streams.link(place, other, self._window(place, other))
            columns = {"left_columns": whole[i].payload, "right_columns": whole[j].payload}
            link = replace(link, **columns, needs=((), ()))  # type: ignore[arg-type]
            given = file_sides((whole[i], whole[j]), link, [files[i], files[j]])[0]
            payload, tested = each.frame.payload, each.frame.tested
            if given is not None:
                tables = replace(given.tables, payload=(payload, []), tested=(tested, []))
                given = replace(given, tables=tables)
            found.append(given)
        is_keyed = bool(self._streams.keys[0])
        # Tasks of all streams must hash keys alike.
        return [None] * len(found) if is_keyed and not all(found) else found

    def _window(self, place: int, other: int) -> Within:
        """The window of a stream with its neighbor."""
        windows, first = self._question.windows, min(place, other)
        window = windows[first, first + 1] if isinstance(windows, dict) else windows[first]
        return window if place == first else window.mirrored()

    def _observed(self, number: int) -> EventFrame:
        """A stream, whose rows are counted on their way if no job has counted them."""
        frame = self._sent[number].frame
        if self._statistics is not None or self._observation is None:
            return frame
        frame = replace(frame, observation=Observation())
        self._sent[number] = replace(self._sent[number], frame=frame)
        return frame

    @property
    def known(self) -> SequenceSummary:
        """What is known before an action."""
        return self._summary({}, None)

    def summary(self) -> SequenceSummary:
        """What was done; waits for an action."""
        assert self._observation is not None
        found = counted_by_tasks(self._observation)
        if found is None:
            return self.known
        numbers = found.numbers
        names = self._streams.names
        told = self._links_told(numbers).items()
        links = {f"{names[i]} to {names[j]}": count for (i, j), count in told}
        sizes = Sizes(numbers["tried"], numbers["doubted"], numbers["found"])
        return self._summary(links, sizes, is_whole=found.runs == 1)

    def _summary(
        self, links: dict[str, int], sizes: Sizes | None, *, is_whole: bool = False
    ) -> SequenceSummary:
        tried, doubted, found = sizes or (None, None, None)
        counts: dict[str, SideCounts] = {}
        for i, each in enumerate(self._sent):
            rows = self._rows(i, is_whole=is_whole)
            counts |= {self._streams.names[k]: rows for k in each.places if rows is not None}
        names = [name for name in self._streams.names if name in counts]
        return SequenceSummary(
            {name: counts[name] for name in names}, links, tried, doubted, found, None,
            self._job.tick, may_be_none=_keeps_unmatched(self._question),
            has_condition=self._streams.where is not None, way=self.way, why=self.why,
        )  # fmt: skip

    def _rows(self, number: int, *, is_whole: bool) -> SideCounts | None:
        """What the rows of a stream were; None if that is not known."""
        if self._spread is not None and number in self._spread.small:
            return self._spread.small[number].statistics.counts
        if self._statistics is not None:
            return self._statistics[number].counts
        return counted_rows(self._sent[number].frame) if is_whole else None


def _layout_of(frame: EventFrame) -> WireLayout:
    """The columns of the wire in which the events of a stream go to tasks."""
    shareable, tested = (
        [frames.crosses_as_int64(frame.kind_of(name)) for name in names]
        for names in (frame.payload, frame.tested)
    )
    return wire_layout(len(frame.by), shareable, [], tested=(tested, []))


def _keeps_unmatched(question: Question) -> bool:
    return isinstance(question, SequenceArguments) and question.how == "anti"


def _check_options(options: CorrelateOptions) -> None:
    """Refuse ways that only two sides have."""
    if options.way not in ("auto", "broadcast", "exchange"):
        raise ConditionError(
            f"streams in a row meet by an exchange, or by a broadcast of all but one (found"
            f" {argument('way', options.way)}). Write {argument('way', 'broadcast')}, or remove it."
        )


def _sent_of(streams: Streams, reader: _FrameReader) -> list[_Sent]:
    """The streams that are sent, each with all columns of its places."""
    first = {j: i for i, j in reversed(streams.twins)}
    places: dict[int, list[int]] = {}
    for k in range(len(streams)):
        places.setdefault(first.get(k, k), []).append(k)
    are_like = all(frame.has_like_keys for frame in reader.frames.values())
    found = []
    for own in places.values():
        keys = {streams.keys[k] for k in own}
        if len(keys) > 1:
            called = " and ".join(streams.names[k] for k in own)
            raise ConditionError(
                f"on Spark one DataFrame has the same keys at all its places (found other ones for"
                f" {called}). Rename the columns of one of them, so that it is a DataFrame of its own."
            )
        columns = [name for k in own for name in streams.columns[k]]
        tested = [name for k in own for name in streams.tested[k]]
        frame = replace(
            reader.frames[own[0]], payload=list(dict.fromkeys(columns)),
            tested=list(dict.fromkeys(tested)), has_like_keys=are_like,
        )  # fmt: skip
        found.append(_Sent(frame, tuple(own)))
    return found
