"""What a search for sequences or coincidences of DataFrames is planned of, whatever the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import types as T

from coincide.engine.backends import check_task_devices
from coincide.engine.events.timestamps import longest_matches
from coincide.engine.join.spec import check_output_names
from coincide.engine.join.timing import JoinSpec
from coincide.engine.sequences.arguments import LinkArguments, Places, Streams
from coincide.engine.sequences.job import TuplesJob
from coincide.engine.sequences.links import Reader
from coincide.engine.sequences.tables import SequenceArguments
from coincide.model.condition import Within
from coincide.model.errors import ConditionError
from coincide.model.remembered import remembered
from coincide.model.sequences.making import Links
from coincide.model.units import TIME_LIMIT
from spark_plugin.cluster.worker_python import check_workers
from spark_plugin.frames import columns as frames
from spark_plugin.frames.columns import arrow_schema
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.output_columns import (
    OutputColumn,
    check_distinct_names,
    like_key,
)
from spark_plugin.frames.statistics import SideStatistics
from spark_plugin.frames.wire_rows import wire_rows
from spark_plugin.tasks.samples import Reach
from spark_plugin.tasks.sequences import (
    Question,
    StreamPlace,
    TuplesTask,
    job_of,
)
from spark_plugin.tasks.wire import KEY_HASH, SALT, WireLayout, wire_layout
from spark_plugin.ways.choosing import lengths_of, reach_of_any
from spark_plugin.ways.exchange.join import salt_of
from spark_plugin.ways.join_sides import check_payload, event_frames, known_schema

Task = TypeVar("Task", bound=TuplesTask)


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
    spec = arguments.spec([side.times for side in sides], 1, 1)
    assert isinstance(spec, JoinSpec)
    return spec


@dataclass(frozen=True)
class Sent:
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

    def _with_longest(self, sent: Sent) -> Sent:
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
        layout = layout_of_stream(frame)
        keeps = is_anchor and keeps_unmatched(self._question)
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
        options = replace(options, threads=options.threads or 1)
        alone = replace(streams, tables=(), options=options)
        return kind(
            question=replace(self._question, streams=alone), specs=self._reader.specs,
            tick=self._job.tick, places=self._places(),
            names=tuple(column.name for column in columns), **more,
        )  # fmt: skip


def layout_of_stream(frame: EventFrame) -> WireLayout:
    """The columns of the wire in which the events of a stream go to tasks."""
    shareable, tested = (
        [frames.crosses_as_int64(frame.kind_of(name)) for name in names]
        for names in (frame.payload, frame.tested)
    )
    return wire_layout(len(frame.by), shareable, [], tested=(tested, []))


def keeps_unmatched(question: Question) -> bool:
    """Whether first events without a time or key are in the answer."""
    return isinstance(question, SequenceArguments) and question.how == "anti"


def _sent_of(streams: Streams, reader: _FrameReader) -> list[Sent]:
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
        found.append(Sent(frame, tuple(own)))
    return found
