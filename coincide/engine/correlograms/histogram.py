"""`delay_histogram`: how many pairs have which delay, and how many of them chance makes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from coincide.engine.correlograms.arguments import BINS, GivenChance, HistogramArguments
from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.events.keys import Keys
from coincide.engine.events.sides import Side, grouped_events
from coincide.engine.events.timestamp_names import GivenTimes
from coincide.engine.events.timestamps import pair_model
from coincide.engine.join.join import (
    correlate_tables,
    given_tables,
    plan_tables,
    with_known_columns,
)
from coincide.engine.join.pair_arguments import GivenWindow, check_second
from coincide.engine.join.spec import check_output_names
from coincide.engine.reports.join_report import JoinReport, JoinSummary
from coincide.model.condition import Window
from coincide.model.docstrings import documented
from coincide.model.errors import ConditionError, DataError, argument
from coincide.model.options import CorrelateOptions
from coincide.model.remembered import remembered
from coincide.model.timestamps import HistogramPairs, IntervalPairs
from coincide.model.timestamps.protocol import Events, group_codes
from coincide.model.units import UNBOUNDED, Duration, Tick
from cpu_fallback.correlograms.counting import StampCounter, mass_histogram, stamps, supports
from cpu_fallback.correlograms.kernels import Masses, Stamps, Supports

_MOST_ROWS = 1 << 27
"""Buckets of all keys together."""
Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class DelayHistogram:
    """A histogram of delays: the table that is returned, and what the rows were."""

    table: pa.Table
    keys: pa.Table
    edges: list[int]
    tick: Tick
    summary: JoinSummary
    shifts: tuple[Duration, ...]

    @property
    def pairs(self) -> int:
        """Pairs in all buckets."""
        return int(self.table["pairs"].to_numpy().sum())

    @property
    def names(self) -> list[str]:
        """Columns of what is counted."""
        return self.table.column_names[self.keys.num_columns + 2 :]

    def joined(
        self, most: int, number: int | None = None
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Edges, and what is counted between them by column: of one key, or of all together.

        Neighbours are one where there are more than `most` buckets.
        """
        edges = np.array(self.edges)
        starts = np.arange(0, edges.size - 1, -(-(edges.size - 1) // most))
        found = {}
        for name in self.names:
            by_key = self.table[name].to_numpy().reshape(-1, edges.size - 1)
            own = by_key.sum(axis=0) if number is None else by_key[number]
            found[name] = np.add.reduceat(own, starts)
        return np.append(edges[starts], edges[-1]), found


class TableHistogram:
    """A histogram of the delays between two tables, or between the events of one.

    Everything that can be known without the rows is checked when it is made.
    """

    def __init__(self, tables: Sequence[pa.Table], arguments: HistogramArguments) -> None:
        join, self._tables = with_known_columns(tables, arguments.join)
        self._arguments = arguments
        self._sides = join.sides
        self._plan = plan_tables(self._tables[0].schema, self._tables[-1].schema, join)
        self._tick = self._plan.tick
        self._edges = arguments.in_ticks(self._tick)
        self._shifts = arguments.shifts(self._plan.spec, self._tick)
        keys = [self._plan.schema.field(i) for i in range(len(join.keys))]
        bounds = [pa.field(name, pa.int64()) for name in arguments.bounds(self._tick)]
        counted = {
            "pairs": pa.int64(),
            **({"expected": pa.float64()} if arguments.is_uncertain else {}),
            **({"chance": pa.float64()} if arguments.chance is not None else {}),
        }
        self._keys = pa.schema(keys)
        self.schema = pa.schema([*keys, *bounds, *map(pa.field, counted, counted.values())])
        check_output_names(self.schema.names)

    def count(self, say: Say = lambda text: None) -> DelayHistogram:
        """Read the events, and count."""
        started = time.perf_counter()
        say("sorting")
        left, right, counts = self._read()
        groups = _Groups.of(left, right)
        buckets = len(self._edges) - 1
        if groups.number * buckets > _MOST_ROWS:
            raise ConditionError(
                f"a histogram of {groups.number:,} keys with {buckets:,} buckets each has too many rows"
                f" (found more than {_MOST_ROWS:,}). Give fewer buckets, or fewer columns in"
                f" {argument('by')}."
            )
        sides = _TwoSides(left, right, groups, self._plan.spec.threads)
        say("counting pairs")
        found: dict[str, np.ndarray] = {"pairs": sides.counter.pairs(self._edges)}
        if self._arguments.is_uncertain:
            say("adding up probabilities")
            found["expected"] = sides.expected(self._edges)
        if self._arguments.chance is not None:
            say("counting what chance gives")
            found["chance"] = self._chance(sides)
        seconds = time.perf_counter() - started
        summary = JoinSummary(*counts, None, seconds, "in memory", self._tick, sides=self._sides)
        keys = pa.Table.from_arrays(
            [
                key.take(pa.array(groups.first)).cast(field.type)
                for key, field in zip(left.keys, self._keys, strict=True)
            ],
            schema=self._keys,
        )
        table, given = self._table(groups.number, keys, found), self._arguments.chance
        shifts = () if given is None or isinstance(given, str) else given
        return DelayHistogram(table, keys, self._edges, self._tick, summary, shifts)

    def _read(self) -> tuple[Side, Side, tuple[SideCounts, SideCounts | None]]:
        """Both sides, and what the rows of each table were; of one stream no one counts the second."""
        plan = self._plan
        if plan.spec.is_one_stream:
            left, right, own = plan.read_stream(self._tables[0])
            return left, right, (_at_any_length(own), None)
        (left, own), (right, others) = (
            plan.read(side, table) for side, table in enumerate(self._tables)
        )
        return left, right, (_at_any_length(own), _at_any_length(others))

    def _chance(self, sides: _TwoSides) -> np.ndarray:
        if not self._shifts:
            return sides.of_rates(self._edges)
        # Where right times are moved, delays are; the edges move back instead.
        counts = [
            sides.counter.pairs([edge - shift for edge in self._edges]) for shift in self._shifts
        ]
        total: np.ndarray = np.sum(counts, axis=0)
        return total / len(counts)

    def _table(self, groups: int, keys: pa.Table, found: dict[str, np.ndarray]) -> pa.Table:
        edges = np.array(self._edges, np.int64)
        rows = pa.array(np.repeat(np.arange(groups), edges.size - 1))
        bounds = [pa.array(np.tile(each, groups)) for each in (edges[:-1], edges[1:])]
        counted = [pa.array(each.reshape(-1)) for each in found.values()]
        return pa.Table.from_arrays(
            [*keys.take(rows).columns, *bounds, *counted], schema=self.schema
        )


def _at_any_length(counts: SideCounts) -> SideCounts:
    """Counts without those that depend on a confidence."""
    return replace(counts, too_long=0, longest_match=0)


@dataclass(frozen=True, eq=False)
class _Groups:
    """The keys that both sides have, in the order in which left ones first come."""

    number: int
    first: np.ndarray  # the first left row of each
    codes: tuple[np.ndarray, np.ndarray]  # by row of each side, -1 for no such key
    events: tuple[Events, Events]

    @classmethod
    def of(cls, left: Side, right: Side) -> _Groups:
        """Those of two sides; without keys there is one, also of no events."""
        events = grouped_events(left, right)
        groups = events[0].groups
        given = [group_codes(each) for each in events]
        if not left.keys:
            return cls(1, np.zeros(0, np.int64), (given[0], given[1]), events)
        own, others = (np.bincount(each[each >= 0], minlength=groups) for each in given)
        first = np.full(groups, len(left))
        rows = np.flatnonzero(given[0] >= 0)[::-1]
        first[given[0][rows]] = rows  # the last one that is written is the first row
        both = np.flatnonzero((own > 0) & (others > 0))
        both = both[np.argsort(first[both], kind="stable")]
        codes = np.full(groups + 1, -1)
        codes[both] = np.arange(both.size)
        return cls(both.size, first[both], (codes[given[0]], codes[given[1]]), events)


class _TwoSides:
    """Two sides of the same keys, and what can be counted of them."""

    def __init__(self, left: Side, right: Side, groups: _Groups, threads: int) -> None:
        self._sides, self._groups, self._threads = (left, right), groups, threads
        self._is_one_stream = groups.events[0] is groups.events[1]

    @remembered
    def counter(self) -> StampCounter:
        """Delays between midpoints of supports."""
        own = self._stamps(0)
        others = own if self._is_one_stream else self._stamps(1)
        return StampCounter(own, others, self._threads, self._is_one_stream)

    def _stamps(self, side: int) -> Stamps:
        events, codes = self._sides[side], self._groups.codes[side]
        rows = codes >= 0
        doubled = 2 * events.max_time - events.lengths
        if not rows.all():
            doubled, codes = doubled[rows], codes[rows]
        return stamps(doubled, codes, self._groups.number, self._threads)

    def expected(self, edges: Sequence[int]) -> np.ndarray:
        """Sums of probabilities by key and bucket: float64 array."""
        models = self._sides[0].model, self._sides[1].model
        windows = Window(0, UNBOUNDED, 1.0), Window(-UNBOUNDED, 0, 1.0)
        rules, events = [], self._groups.events
        for window in windows:
            model, *events_of_model = pair_model(window, *models).for_events(*events)
            rules.append(model.chances if isinstance(model, HistogramPairs) else model.rule)
        both = [
            self._supports(side, each.times.shapes()) for side, each in enumerate(events_of_model)
        ]
        return self._masses(both, rules, edges, skips_same=self._is_one_stream)

    def _supports(self, side: int, shapes: np.ndarray) -> Supports:
        events, codes = self._sides[side], self._groups.codes[side]
        rows = np.flatnonzero(codes >= 0)
        return supports(
            events.max_time[rows], events.lengths[rows], shapes[rows], codes[rows],
            self._groups.number, rows,
        )  # fmt: skip

    def of_rates(self, edges: Sequence[int]) -> np.ndarray:
        """Pairs by key and bucket, if events came at any time alike, from the first to the last one."""
        counter, groups = self.counter, np.arange(self._groups.number)
        spans, sizes = [], []
        for side in (counter.left, counter.right):
            size = np.diff(side.offsets)
            some = np.flatnonzero(size)
            first, last = (np.zeros(groups.size, np.int64) for _ in range(2))
            first[some] = side.times[side.offsets[some]] >> 1
            last[some] = (side.times[side.offsets[some + 1] - 1] + 1) >> 1
            spans.append(supports(last, last - first, last - first, groups, groups.size, groups))
            sizes.append(size.astype(float))
        rules = [
            IntervalPairs(Window(*ends, 1.0)).rule for ends in ((0, UNBOUNDED), (-UNBOUNDED, 0))
        ]
        shares = self._masses(spans, rules, edges, skips_same=False)
        number = sizes[0] * (sizes[1] - self._is_one_stream)
        return number[:, None] * shares

    def _masses(
        self,
        both: Sequence[Supports],
        rules: Sequence[Any],
        edges: Sequence[int],
        *,
        skips_same: bool,
    ) -> np.ndarray:
        longest = [int(each.longest.max()) for each in both]
        if sum(longest) > UNBOUNDED:
            raise DataError(
                "times that are uncertain, or events from the first to the last, are longer than 2^62"
                f" ticks on both sides together (found {sum(longest):,}). Use a coarser tick."
            )
        masses = Masses(np.array(edges, np.int64), rules[0], rules[1], skips_same)
        return mass_histogram(both[0], both[1], masses, self._groups.number, self._threads)


@documented(correlate_tables)
def delay_histogram(
    left: Any,
    right: Any = None,
    *,
    edges: Sequence[Duration] | None = None,
    within: GivenWindow | None = None,
    bins: int = BINS,
    left_time: GivenTimes = ("min_time", "max_time"),
    right_time: GivenTimes = ("min_time", "max_time"),
    by: Keys = (),
    chance: GivenChance = None,
    options: CorrelateOptions = CorrelateOptions(),
    report: JoinReport | None = None,
) -> pa.Table:
    """Count pairs by their delay T_right - T_left, in this process: the correlogram of two streams.

    No pair is made. Physics calls the answer a start-stop or coincidence histogram, and neuroscience a
    cross-correlogram; of one stream it is the auto-correlogram.

    Parameters
    ----------
    left, right : pa.Table, whatever offers Arrow's C stream, dict of arrays, list of dicts, or path
        As in `coincide.correlate_tables`. Ids are not needed. Without `right` each event of `left` meets
        every other one, before and after it.
    edges : sequence of int, str and timedelta, optional
        Where buckets begin and end, ascending: ``("-500ms", "-100ms", "0s", "100ms")``. A bucket holds its
        lower edge; the last one holds both.
    within : (lo, hi), one duration for both, or what `coincide.within` and `coincide.mutual_deadline` make
        In place of `edges`: the ends of the first and of the last bucket.
    bins : int
        How many buckets `within` has. Their edges are whole ticks, and they are equal where those can be.
    left_time, right_time, by
        As in `coincide.correlate_tables`. Spans have no delay; name their starts.
    chance : {"rates"} or sequence of durations, optional
        Adds what chance gives. ``"rates"``: pairs of as many events that come at any time alike, from the
        first to the last of each side and key. Shifts, such as ``("30s", "-30s")``: the mean of the
        histograms whose right times are moved by each. A shift is longer than the window reaches.
    options : CorrelateOptions
        Units, tick, ``invalid`` and threads count here.
    report : JoinReport, optional
        Receives what the rows were.

    Returns
    -------
    pa.Table
        A row for each bucket of each key that both sides have, in the order in which left keys first come.
        Columns `by`, ``lower_us`` and ``upper_us``: int64; their names say the unit, as that of delta does.
        ``pairs``: int64, by the delay between the middles of timestamps. ``expected``: float64, where times
        are uncertain: the sum of the probabilities of all pairs that the delay is in the bucket.
        ``chance``: float64.

    Raises
    ------
    SchemaError, ConditionError, DataError
        As `correlate_tables`.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning

    Examples
    --------
    >>> spikes, clicks = {"t": [0, 40, 80]}, {"t": [5, 47, 88]}
    >>> found = delay_histogram(clicks, spikes, within=(-10, 0), bins=2, left_time="t", right_time="t")
    >>> found["pairs"].to_pylist()
    [2, 1]
    """
    JoinReport.check(report)
    check_second(right)
    arguments = HistogramArguments.of(
        edges, within, bins, chance, left_time=left_time,
        right_time=left_time if right is None else right_time, by=by, options=options,
        is_one_stream=right is None,
    )  # fmt: skip
    found = TableHistogram(given_tables(left, right, arguments.join), arguments).count()
    JoinReport.tell(found.summary, report)
    return found.table
