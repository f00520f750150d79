"""Clusters of events that causes and effects connect, in one process, without a JVM."""

from __future__ import annotations

import time as clock
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from coincide.engine.causality.arguments import MATCHLESS, CausalityArguments, Place
from coincide.engine.causality.emptiness import warn_of_names, warn_of_reach
from coincide.engine.causality.join import CausalPlan
from coincide.engine.causality.pairing import CausalitySpec, placed_events
from coincide.engine.events.keys import check_all_or_names, check_names
from coincide.engine.events.places import check_coordinate_types
from coincide.engine.events.sides import Side
from coincide.engine.events.timestamp_names import GivenTimes
from coincide.engine.join.join import given_tables, resolved
from coincide.engine.join.pair_arguments import EVENT
from coincide.engine.join.pair_filter import GivenWhere
from coincide.engine.join.spec import check_output_names
from coincide.engine.reports.join_report import JoinReport, JoinSummary
from coincide.model.causality.condition import CausalityCondition
from coincide.model.counters import JoinCounters
from coincide.model.options import CorrelateOptions, How, check_no_most


def clusters(
    events: Any,
    condition: CausalityCondition,
    *,
    time: GivenTimes = "time",
    place: Place = (),
    by: str | Sequence[str] = (),
    columns: str | Sequence[str] = ("id",),
    options: CorrelateOptions = CorrelateOptions(),
    report: JoinReport | None = None,
    where: GivenWhere = None,
) -> pa.Table:
    """Find which events of a table are connected by pairs that meet a condition, in this process.

    Two events are a pair where they meet it in either order, and of one cluster where a chain of pairs
    leads from one to the other.

    Parameters
    ----------
    events : pa.Table, whatever offers Arrow's C stream, dict of arrays, list of dicts, or path
    condition : CausalityCondition
    time, place
        As `cause_time` and `cause_place` of `causality_tables`.
    by : str or sequence of str
        Columns that must be equal: a cluster has one value of each.
    columns : str or sequence of str
        Columns for the output; ``"*"`` is all but keys.
    options : CorrelateOptions
        Units, tick, ``invalid``, ``left_longest`` and ``threads`` count here.
    report : JoinReport, optional
        Receives what the rows were.
    where : str or pyarrow.compute.Expression, optional
        What a pair must also meet to connect its events: ``"distance <= 10 * cause_magnitude"``, over the
        columns ``cause_<name>`` and ``effect_<name>``, delta and ``distance``. Each pair is tested then.
        Without it, pairs whose events are in one cluster already are not tested.

    Returns
    -------
    pa.Table
        Columns `by`, `columns`, and ``cluster``: int64, the first row of the event's cluster,
        counted from 0 among the rows of the output. One row an event, in their order; null of an event
        without time, place or key.

    Raises
    ------
    SchemaError, ConditionError, DataError
        As `causality_tables`.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning
    """
    JoinReport.check(report)
    check_names("by", by)
    check_all_or_names("columns", columns)
    arguments = ClusterArguments(
        condition, cause_time=time, cause_place=place, by=by, cause_columns=columns,
        options=options, where=where,
    )  # fmt: skip
    (table,) = given_tables(events, None, arguments)
    found, summary = cluster_table(table, arguments)
    JoinReport.tell(summary, report)
    return found


@dataclass(frozen=True)
class ClusterArguments(CausalityArguments):
    """The question of a clustering: the arguments of `clusters`, said of causes."""

    how: How = field(default="semi", kw_only=True)
    is_one_stream: bool = field(default=True, kw_only=True)

    place_arguments: ClassVar[tuple[str, str]] = ("place", "place")
    time_arguments: ClassVar[tuple[str, str]] = ("time", "time")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_no_most(self.options, "clusters are no pairs")


def cluster_table(table: pa.Table, arguments: CausalityArguments) -> tuple[pa.Table, JoinSummary]:
    """The events of a table with their clusters, and what was found."""
    started, schema = clock.perf_counter(), table.schema
    arguments = arguments.settled(schema, schema)
    keys, payload = arguments.keys, arguments.payload
    for place in arguments.places:
        check_coordinate_types(EVENT, place, schema)
    names = [*keys, *payload[0], "cluster"]
    check_output_names(names)
    spec, times = resolved(schema, schema, arguments)
    assert isinstance(spec, CausalitySpec)
    invalid, tested = arguments.options.invalid, arguments.tested
    plan = CausalPlan((keys, keys), payload, times, invalid, spec, pa.schema([]), tested)
    left, right, counts = plan.read_stream(table)
    events, _ = placed_events(left, right, spec)
    warn_of_names(arguments.condition, arguments.places)
    warn_of_reach(spec.space, spec.model, (events, None), arguments.places)
    if spec.where is None:
        label = import_module("cpu_fallback.causality").cluster_labels
        labels, counters = label(events, spec.model, threads=spec.threads)
    else:
        labels, counters = _labels_where(left, right, spec)
    cluster = pa.array(labels, mask=labels < 0)
    answer = pa.table([*left.keys, *left.payload, cluster], names=names)
    summary = JoinSummary(
        counts, None, counters, clock.perf_counter() - started, "in memory", plan.tick,
        sides=(EVENT, EVENT), matchless=MATCHLESS,
    )  # fmt: skip
    return answer, summary


def _labels_where(left: Side, right: Side, spec: CausalitySpec) -> tuple[np.ndarray, JoinCounters]:
    """Clusters by those pairs alone that pass a test: each is looked at, run by run."""
    assert spec.where is not None
    pairing = spec.but(backend="cpu").pairing(left, right)
    join, events = pairing.qualifying, pairing.events[0]
    passes = spec.where.between(left, right, pairing.of_condition)
    pairs = 0

    def run(start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        nonlocal pairs
        rows = join.pairs(start, stop, join.left_order, join.right_order)
        passing = passes(*rows) & (rows[0] != rows[1])
        pairs += int(passing.sum())
        return rows[0][passing], rows[1][passing]

    runs = (run(*each) for each in join.chunks(spec.batch_pairs))
    label = import_module("cpu_fallback.causality").labels_of_pairs
    labels = label(len(events), events.group, runs)
    return labels, JoinCounters(join.counters.candidates, join.counters.probed, pairs)
