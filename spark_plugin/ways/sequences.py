"""Sequences and coincidences of DataFrames: by files, a broadcast of all but one, or an exchange."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce

from pyspark.sql import Column, DataFrame, Observation

from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.files.planning import NotDirect
from coincide.engine.join.timing import JoinSpec
from coincide.engine.reports.metrics import with_numbers
from coincide.engine.sequences.arguments import Places
from coincide.engine.sequences.reports import SequenceSummary
from coincide.engine.sequences.walk import Sizes
from coincide.model.condition import Within
from coincide.model.errors import ConditionError, Words, argument, several
from coincide.model.options import CorrelateOptions
from coincide.model.remembered import remembered
from spark_plugin.cluster.connect import parallelism
from spark_plugin.cluster.jobs import at_once
from spark_plugin.cluster.rapids import is_accelerated
from spark_plugin.frames.estimates import estimate_of_rows
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.output_columns import (
    OutputColumn,
    decoded,
    metrics_name,
    wire_schema,
)
from spark_plugin.frames.plain_files import files_of
from spark_plugin.frames.queries import queries_logged
from spark_plugin.frames.stage import Counted, Stage, counted_by_tasks, counted_rows, gpu_profile
from spark_plugin.frames.statistics import SideStatistics, measure_streams, refuse_invalid
from spark_plugin.tasks.broadcast_sequences import SmallStream, SpreadTask
from spark_plugin.tasks.exchange import Room
from spark_plugin.tasks.file_sequences import FileTuplesTask
from spark_plugin.tasks.labels import partition_labels
from spark_plugin.tasks.packing import EVENTS, STREAM
from spark_plugin.tasks.samples import Reach
from spark_plugin.tasks.sequences import (
    LINKS,
    Question,
    SentPackTask,
    SentStream,
    SequenceTask,
    rows_of,
)
from spark_plugin.tasks.slice_plan import CellPlan
from spark_plugin.tasks.wire import LABEL
from spark_plugin.ways.broadcast.join import near_events
from spark_plugin.ways.broadcast.spread import SentFrame, SpreadChoice, SpreadPlan, shipped
from spark_plugin.ways.choosing import lengths_of, slices_for
from spark_plugin.ways.exchange.join import ROOM
from spark_plugin.ways.exchange.packed_files import FileSide, file_sides, packs_of_files
from spark_plugin.ways.files.tuples import TupleFiles, plan_tuple_files
from spark_plugin.ways.limits import LIMITS
from spark_plugin.ways.tuples import TuplesPlan, keeps_unmatched, layout_of_stream

_log = logging.getLogger("coincide")


class PlannedTuples(TuplesPlan):
    """A search that is planned: its result, and what is known of it."""

    def __init__(self, question: Question, *, observe: bool) -> None:
        _check_options(question.streams.options)
        super().__init__(question)
        with queries_logged():
            self._statistics: list[SideStatistics] | None = None
            self._links: dict[Places, int] = {}
            self._choice = SpreadChoice(self._candidates(), question.streams.options, LIMITS)
            self._choice.check()
            self._by_files = self._files_plan()
            self._spread = None if self._by_files else self._spread_plan()
            plan = self._spread
            self._plans = [] if plan or self._by_files else self._planned()
            _log.info("sequences: %s: %s", self.way, Words(self.why))
            observable = not is_accelerated(self._spark)
            self._observation = Observation() if observe and observable else None
            self.dataframe = self._found()
        if plan:  # what was sent: a report would keep it
            self._spread = plan.without_events()

    @property
    def way(self) -> str:
        """How events meet."""
        if self._by_files is not None:
            return "files"
        return "broadcast" if self._spread else "exchange"

    @property
    def why(self) -> str:
        """The plan in words, marked for messages."""
        if self._by_files is not None:
            return self._by_files.why
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

    def _files_plan(self) -> TupleFiles | None:
        """The slices of files that tasks read themselves, if all streams are such in time order."""
        streams = self._streams
        asked, options = streams.options.way == "files", streams.options
        if not asked and (options.way != "auto" or is_accelerated(self._spark)):
            return None
        try:
            # A task begins tuples with its own events of the first stream alone.
            if len(self._job.anchors) > 1 and (why := self._question.why_whole(0)):
                raise NotDirect(f"{why}. Use another way.")
            frames_of = [each.frame for each in self._sent]
            joins = [
                [
                    self._reader.between(0, place, self._job.between(0, place))
                    for place in each.places
                    if place
                ]
                for each in self._sent
            ]
            tasks = parallelism(self._spark)
            return plan_tuple_files(frames_of, self._files, joins, options, tasks)
        except NotDirect as closed:
            if asked:
                raise
            _log.debug("sequences: way 'files' is not possible: %s", closed)
            return None

    def _spread_plan(self) -> SpreadPlan | None:
        """Which stream stays in its partitions, if one does."""
        plan = self._with_few_links(self._choice.by_estimates())
        if plan is not None:
            return plan
        self._statistics = self._measured()
        if self._statistics is None:
            return None
        return self._with_few_links(self._choice.by_rows(self._statistics, self._reach_between))

    def _with_few_links(self, plan: SpreadPlan | None) -> SpreadPlan | None:
        """The plan, unless small streams have more links than each part should find again."""
        if plan is None:
            return None
        self._links = self._links_of_small(plan)
        links, most = sum(self._links.values()), self._streams.options.slice_rows
        if links <= most or self._choice.is_asked:
            return plan
        self._choice.refused = (
            f"each part of the large stream would find {links:,} links of small ones again, and"
            f" {most:,} pay"
        )
        return None

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

    def _found(self) -> DataFrame:
        """What tasks find, by the way that was chosen."""
        if self._by_files is not None:
            return self._read(self._by_files)
        return self._joined() if self._spread is None else self._spread_out(self._spread)

    def _read(self, plan: TupleFiles) -> DataFrame:
        """What tasks find that get numbers of slices, and read what these need."""
        columns = self._columns()
        stage = self._stage(columns)
        task = self._task(
            FileTuplesTask, columns, metrics=stage.metrics, sent=plan.sent, useful=plan.useful
        )
        numbers = self._spark.range(0, plan.count, 1, plan.count)
        return decoded(stage.run(numbers, task, wire_schema(columns)), columns)

    def _spread_out(self, plan: SpreadPlan) -> DataFrame:
        """What tasks find that get rows of one stream as they are, and all events of the others."""
        columns, large, options = self._columns(), plan.large, self._streams.options
        stage, small = self._stage(columns), {}
        for number, found in plan.small.items():
            frame = self._sent[number].frame
            layout = layout_of_stream(frame)
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
        if keeps_unmatched(self._question):
            return None
        small, large = self._near_places(plan)
        spec = self._reader.between(small, large, self._job.between(small, large))
        events = plan.small[self._number[small]].events
        return near_events(events, self._sent[plan.large].frame, spec, is_left=True)

    def _near_places(self, plan: SpreadPlan) -> Places:
        """The place of the small stream near which rows of the one that stays must be, and its place."""
        (large,) = self._sent[plan.large].places
        near = [
            place for pair in self._job.joins if large in pair for place in pair if place != large
        ]
        # Links join the two, and those of few events leave few rows.
        return min(near, key=lambda place: plan.rows_of(self._number[place])), large

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
        sees_all = keeps_unmatched(self._question) or is_accelerated(self._spark)
        near = set(self._near_places(plan))
        return {
            pair: self._links.get(pair, count)
            for pair, count in found.items()
            if pair in self._links or sees_all or set(pair) == near
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
            keeps = is_anchor and keeps_unmatched(self._question)
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
        return self._summary(links, sizes, found)

    def _summary(
        self, links: dict[str, int], sizes: Sizes | None, told: Counted | None = None
    ) -> SequenceSummary:
        tried, doubted, found = sizes or (None, None, None)
        counts: dict[str, SideCounts] = {}
        for i, each in enumerate(self._sent):
            rows = self._rows(i, told)
            counts |= {self._streams.names[k]: rows for k in each.places if rows is not None}
        names = [name for name in self._streams.names if name in counts]
        return SequenceSummary(
            {name: counts[name] for name in names}, links, tried, doubted, found, None,
            self._job.tick, may_be_none=keeps_unmatched(self._question),
            has_condition=self._streams.where is not None, has_total=self._job.has_total,
            way=self.way, why=self.why,
        )  # fmt: skip

    def _rows(self, number: int, told: Counted | None) -> SideCounts | None:
        """What the rows of a stream were; None if that is not known."""
        if self._spread is not None and number in self._spread.small:
            return self._spread.small[number].statistics.counts
        if self._statistics is not None:
            return self._statistics[number].counts
        if told is None:
            return None
        if self._by_files is not None:
            return with_numbers(SideCounts(), told.numbers, rows_of(number))
        return counted_rows(self._sent[number].frame) if told.runs == 1 else None


def _check_options(options: CorrelateOptions) -> None:
    """Refuse ways that only two sides have."""
    if options.way not in ("auto", "files", "broadcast", "exchange"):
        raise ConditionError(
            f"streams in a row meet by files, an exchange, or a broadcast of all but one (found"
            f" {argument('way', options.way)}). Write {argument('way', 'broadcast')}, or remove it."
        )
