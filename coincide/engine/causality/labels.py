"""Clusters of a table's events, in one process, without a JVM."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module

import numpy as np
import pyarrow as pa

from coincide.engine.causality.arguments import (
    MATCHLESS,
    Coordinate,
    Place,
    causal_columns,
    check_condition,
    check_coordinate_types,
    check_places,
    check_time,
    coordinates,
    resolved_columns,
)
from coincide.engine.causality.emission import placed_stream
from coincide.engine.causality.emptiness import warn_of_names, warn_of_reach
from coincide.engine.causality.join import read_placed
from coincide.engine.causality.shapes import delta_name, measured_by_name, stamped
from coincide.engine.events.keys import (
    Names,
    check_all_or_names,
    check_names,
    is_all_columns,
    names_of,
)
from coincide.engine.events.schemas import can_be_key, check_foldable, type_of
from coincide.engine.events.sides import Side
from coincide.engine.events.time_columns import resolve_tick
from coincide.engine.events.time_names import GivenTimes, arrow_clocks, timestamp_names
from coincide.engine.join.pair_arguments import EVENT, check_options
from coincide.engine.join.pair_filter import GivenWhere, PairFilter, Where, check_where, where_of
from coincide.engine.join.spec import check_output_names
from coincide.engine.join.where import PairColumns
from coincide.engine.reports.reports import JoinSummary
from coincide.model.causality.condition import CausalityCondition, CausalityModel
from coincide.model.causality.spaces import PlacedEvents
from coincide.model.errors import ConditionError, SchemaError
from coincide.model.options import CorrelateOptions
from coincide.model.results import JoinCounters

_BATCH_PAIRS = 1_000_000


@dataclass(frozen=True)
class ClusterArguments:
    """What is asked of a clustering: the arguments of `coincide.clusters`."""

    condition: CausalityCondition
    time: GivenTimes = "time"
    place: Place = ()
    by: Names = ()
    columns: Names = ("id",)
    options: CorrelateOptions = CorrelateOptions()
    case_fold: bool = False
    where: GivenWhere | Where = None

    def __post_init__(self) -> None:
        check_condition(self.condition)
        check_names("by", self.by)
        check_all_or_names("columns", self.columns)
        if self.case_fold and not names_of(self.by):
            raise ConditionError("case_fold is of keys: name them in by, or leave it out")
        check_options(self.options)
        check_time(EVENT, self.time, self.options)
        check_places(self.condition, "place", len(self.coordinates))
        check_where(self.where, self.pair_columns)

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """Where events are."""
        return coordinates("place", self.place, self.condition.space)

    @property
    def pair_columns(self) -> PairColumns:
        """What `where` may be on."""
        return causal_columns(len(self.coordinates))

    @property
    def is_open(self) -> bool:
        """As `PairArguments.is_open`."""
        return is_all_columns(self.columns) or self.where is not None

    @property
    def words_of_needed(self) -> str | None:
        """As `PairArguments.words_of_needed`."""
        return None if is_all_columns(self.columns) else str(self.where or "")

    def settled(self, schema: pa.Schema) -> ClusterArguments:
        """The same for events of these columns: it is known then which are handed out and needed."""
        by, columns = names_of(self.by), names_of(self.columns)
        if is_all_columns(columns):
            columns = [name for name in dict.fromkeys(schema.names) if name not in by]
        where = self.where
        if where is not None and not isinstance(where, Where):
            clocks = arrow_clocks(EVENT, timestamp_names(EVENT, self.time), schema)
            pair = causal_columns(len(self.coordinates), resolve_tick(clocks, self.options))
            where = where_of(where, schema, schema, pair)
        return replace(self, columns=columns, where=where)


def cluster_table(table: pa.Table, arguments: ClusterArguments) -> tuple[pa.Table, JoinSummary]:
    """The events of a table with their clusters, and what was found."""
    started, options = time.perf_counter(), arguments.options
    arguments = arguments.settled(table.schema)
    by, payload, place = names_of(arguments.by), names_of(arguments.columns), arguments.coordinates
    _check_keys(by, table.schema, arguments.case_fold)
    check_coordinate_types(EVENT, place, table.schema)
    timestamps = timestamp_names(EVENT, arguments.time)
    given = arrow_clocks(EVENT, timestamps, table.schema)
    (columns,) = resolved_columns(
        given, [timestamps], [place], arguments.condition, options, [options.left_longest]
    )
    tick = columns.scales[0].tick
    model = arguments.condition.model(tick, heights=len(place) == 3)
    names = [*by, *payload, "cluster"]
    check_output_names(names)
    test = _pair_filter(arguments.where, table.schema)
    tested = [] if test is None else [*test.where.left, *test.where.right]
    side, counts = read_placed(table, columns, by, [*payload, *tested], options.invalid)
    handed_out, needed = side.payload[: len(payload)], side.payload[len(payload) :]
    events = placed_stream(side, arguments.condition.space, case_fold=arguments.case_fold)
    warn_of_names(arguments.condition, [place])
    warn_of_reach(arguments.condition.space, model, (events, None))
    threads = options.threads or len(os.sched_getaffinity(0))
    if test is None:
        found = import_module("cpu_fallback.causality").cluster_labels
        labels, counters = found(events, model, threads=threads)
    else:
        sides = needed[: len(test.where.left)], needed[len(test.where.left) :]
        own, others = (replace(side, tested=columns) for columns in sides)
        labels, counters = _labels_where(
            events, model, test, (own, others), delta_name(tick), options
        )
    cluster = pa.array(labels, mask=labels < 0)
    answer = pa.table([*side.keys, *handed_out, cluster], names=names)
    seconds = time.perf_counter() - started
    summary = JoinSummary(
        counts, None, counters, seconds, "in memory", tick,
        sides=(EVENT, EVENT), matchless=MATCHLESS,
    )  # fmt: skip
    return answer, summary


def _pair_filter(where: object, schema: pa.Schema) -> PairFilter | None:
    if not isinstance(where, Where):
        return None
    own, others = (
        [type_of(schema, EVENT, name) for name in names] for names in (where.left, where.right)
    )
    return PairFilter(where, (own, others))


def _labels_where(
    events: PlacedEvents,
    model: CausalityModel,
    test: PairFilter,
    sides: tuple[Side, Side],
    delta: str,
    options: CorrelateOptions,
) -> tuple[np.ndarray, JoinCounters]:
    """Clusters by those pairs alone that pass a test: each is looked at, run by run."""
    package = import_module("cpu_fallback.causality")
    threads = options.threads or len(os.sched_getaffinity(0))
    join = stamped(package.CausalityJoin(events, events, model, threads=threads), *sides)
    passes = test.between(*sides, lambda *rows: measured_by_name(join, delta, *rows))
    pairs = 0

    def run(start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        nonlocal pairs
        rows = join.pairs(start, stop, join.left_order, join.right_order)
        passing = passes(*rows) & (rows[0] != rows[1])
        pairs += int(passing.sum())
        return rows[0][passing], rows[1][passing]

    runs = (run(*each) for each in join.chunks(options.batch_pairs or _BATCH_PAIRS))
    labels = package.labels_of_pairs(len(events), events.group, runs)
    return labels, JoinCounters(join.counters.candidates, join.counters.probed, pairs)


def _check_keys(by: Sequence[str], schema: pa.Schema, case_fold: bool) -> None:
    if case_fold:
        check_foldable([str(type_of(schema, EVENT, name)) for name in by])
    for name in by:
        kind = type_of(schema, EVENT, name)
        if not can_be_key(kind):
            raise SchemaError(
                f"the key {name!r} is {kind}, which cannot be compared exactly; cast it to a string or an"
                " integer"
            )
