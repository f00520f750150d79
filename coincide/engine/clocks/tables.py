"""Clock errors of two tables in this process, without a JVM."""

from __future__ import annotations

import time as clock
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.clocks.arguments import CHANCE, MAX_DRIFT, ClockArguments, ClockSpec
from coincide.engine.clocks.limits import LimitCounts
from coincide.engine.clocks.rows import ErrorRows
from coincide.engine.clocks.viewing import ClockView
from coincide.engine.events.keys import Keys
from coincide.engine.events.schemas import of_one_type, one_array, type_of
from coincide.engine.events.sides import Side, grouped_events, like_width, read_side
from coincide.engine.join.join import given_tables, resolved, with_known_columns
from coincide.engine.reports.join_report import JoinReport, JoinSummary
from coincide.engine.reports.warnings import warn
from coincide.model.clocks.errors import ClockEstimate, Limits
from coincide.model.clocks.events import ClockEvents
from coincide.model.options import CorrelateOptions
from coincide.model.threads import in_order
from coincide.model.units import Duration
from cpu_fallback.clocks import clock_error


def clock_error_tables(
    left: Any,
    right: Any,
    *,
    max_offset: Duration,
    max_drift: float = MAX_DRIFT,
    by: Keys = (),
    match: Keys = (),
    left_time: str = "time",
    right_time: str = "time",
    chance: float = CHANCE,
    jumps: bool = True,
    options: CorrelateOptions = CorrelateOptions(),
    report: JoinReport | None = None,
) -> pa.Table:
    """Find how far the clock of one table is off the clock of another, from their events alone.

    Some events of both tables must have common causes. Among all differences ``right - left`` those of
    common causes lie on a line, ``offset + drift * (t - start)``; the others are chance. **The offset is
    right - left: add it to left times to get right ones.**

    Parameters
    ----------
    left, right : pa.Table, whatever offers Arrow's C stream, dict of arrays, list of dicts, or path
        Events: a column of exact times, key columns.
    max_offset : int, str or timedelta
        The largest offset to look for, in either direction. The larger it is, the more pairs are needed.
        Both sides must share eight times as long a time.
    max_drift : float
        The largest drift to look for: 200e-6 is 200 ppm, or 17 s a day.
    by : str or sequence of str and (str, str)
        Columns whose values have a clock each, such as a device.
    match : str or sequence of str and (str, str)
        Columns that are equal in a pair and share the clock, such as a kind of message. Each makes chance
        pairs fewer.
    left_time, right_time : str
        Columns of exact times.
    chance : float
        How probable it may be that any of the answers is made by chance.
    jumps : bool
        Whether a clock may have been set, or its drift have changed. If not, each key has one line.
    options : CorrelateOptions
        Units, tick, ``invalid`` and ``threads`` count here.
    report : JoinReport, optional
        Receives what the rows were.

    Returns
    -------
    pa.Table
        A row for each key and segment, in the order of keys and times: `by`, then

        - ``segment`` (int64), ``status``: ``"found"``; ``"ambiguous"``, another offset fits as well;
          ``"not found"``, chance explains all; ``"too few"`` events, pairs or time. Only what is found
          has segments. A key that is ambiguous has its best ``offset`` and ``rival_offset``. All other
          columns are null then.
        - ``start``, ``end``: the left times of its first and last pair.
        - ``offset``, ``offset_error``: at ``start``. Durations, or ticks (float64) where times are numbers.
        - ``drift``, ``drift_error``: in ppm.
        - ``spread``, ``low``, ``high``: the standard deviation of residuals, and where 5 and 95 % of them
          are below.
        - ``pairs``, ``accidental_pairs``: pairs with a common cause, and chance pairs near the line.
        - ``chance``: how probable such a line is by chance in this key.
        - ``left_rows``, ``right_rows``: events of the key.

    Raises
    ------
    SchemaError
        If a column is missing or of a type that cannot serve.
    ConditionError
        If an argument makes no sense.
    DataError
        If rows are invalid and ``options.invalid`` is ``"raise"``.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning, ClockLimitsWarning
    """
    JoinReport.check(report)
    arguments = ClockArguments(
        max_offset=max_offset, max_drift=max_drift, by=by, match=match, left_time=left_time,
        right_time=right_time, chance=chance, jumps=jumps, options=options,
    )  # fmt: skip
    found, summary = errors_of_tables(given_tables(left, right, arguments), arguments)
    JoinReport.tell(summary, report)
    return found.table


def errors_of_tables(
    tables: Sequence[pa.Table], arguments: ClockArguments
) -> tuple[ClockAnswers, JoinSummary]:
    """The clock errors of two tables, and what their rows were."""
    started = clock.perf_counter()
    plan = ClockPlan.of(tables, arguments)
    (left, own), (right, others) = (plan.read(side) for side in (0, 1))
    found = plan.found(left, right)
    seconds = clock.perf_counter() - started
    return found, JoinSummary(own, others, None, seconds, "in memory", plan.spec.tick)


@dataclass(frozen=True, eq=False)
class ClockPlan:
    """Tables and the question about them: everything but the rows, resolved and checked."""

    tables: Sequence[pa.Table]
    arguments: ClockArguments
    times: Any
    spec: ClockSpec
    rows: ErrorRows

    @classmethod
    def of(cls, tables: Sequence[pa.Table], arguments: ClockArguments) -> ClockPlan:
        """For tables of any columns."""
        arguments, known = with_known_columns(tables, arguments)
        left, right = (table.schema for table in known)
        spec, times = resolved(left, right, arguments)
        assert isinstance(spec, ClockSpec)
        keys = [
            pa.field(own, like_width(type_of(left, "left", own), type_of(right, "right", other)))
            for own, other in arguments.clock_keys
        ]
        rows = ErrorRows.of(keys, type_of(left, "left", arguments.left_time), spec.tick)
        return cls(known, arguments, times, spec, rows)

    def read(self, side: int) -> Any:
        """The events of a table, and what its rows were."""
        names = (self.arguments.keys, self.arguments.right_keys)[side]
        invalid = self.arguments.options.invalid
        return read_side(self.tables[side], self.times[side], names, [], invalid)

    def found(self, left: Side, right: Side) -> ClockAnswers:
        """The answer for events of both sides."""
        groups = _Groups.of(left, right, len(self.rows.keys))
        limits = self.limits(len(groups))
        threads = self.spec.threads

        def answer(events: ClockEvents) -> list[ClockEstimate]:
            return [clock_error(events, limits, threads if len(groups) == 1 else 1)]

        found = list(in_order(answer, groups.events(), threads if len(groups) > 1 else 1))
        limits_of_all = self.spec.limits
        counts = sum((LimitCounts.of(one, limits_of_all) for one in found), LimitCounts())
        for kind, words in counts.warnings(
            limits_of_all, self.spec.tick, has_keys=bool(self.rows.keys)
        ):
            warn(words, kind)
        keys = groups.keys(left, right, [each.type for each in self.rows.keys])
        order = _order(keys) if keys else np.arange(len(groups))
        taken = [key.take(pa.array(order)) for key in keys]
        return ClockAnswers(self, groups, order, taken, [found[k] for k in order])

    def limits(self, clocks: int) -> Limits:
        """What is looked for in each of some clocks."""
        limits: Limits = self.spec.limits
        return replace(limits, chance=limits.chance / max(1, clocks))


@dataclass(frozen=True, eq=False)
class ClockAnswers:
    """What was found of each clock, in the order of keys, and the events in which."""

    plan: ClockPlan
    groups: _Groups
    order: np.ndarray
    keys: Sequence[pa.Array]
    found: Sequence[ClockEstimate]

    @property
    def table(self) -> pa.Table:
        """The rows."""
        return self.plan.rows.table(self.keys, self.found, self.groups.sizes[self.order])

    def views(self, most: int) -> list[ClockView]:
        """What there is to draw of the first few clocks."""
        limits = self.plan.limits(len(self.groups))
        return [
            ClockView.of(self.name(place), self.groups.one(int(k)), self.found[place], limits)
            for place, k in enumerate(self.order[:most])
        ]

    def name(self, place: int) -> str:
        """What a clock is called: its keys; nothing where there is one."""
        values = [key[place].as_py() for key in self.keys]
        names = [field.name for field in self.plan.rows.keys]
        return ", ".join(f"{name} {value}" for name, value in zip(names, values, strict=True))


@dataclass(frozen=True, eq=False)
class _Groups:
    """The events of each key."""

    left: _Grouped
    right: _Grouped

    @classmethod
    def of(cls, left: Side, right: Side, clocks: int) -> _Groups:
        """The groups of sides whose first keys have a clock each."""
        by = [replace(side, keys=side.keys[:clocks]) for side in (left, right)]
        match = [replace(side, keys=side.keys[clocks:]) for side in (left, right)]
        groups, codes = grouped_events(*by), grouped_events(*match)
        numbers = [each.group for each in groups]
        if clocks:  # keys that only rows without a time have get no answer
            given = [each for each in numbers if each is not None]
            known = np.unique(np.concatenate([each[each >= 0] for each in given]))
            numbers = [np.where(e < 0, -1, np.searchsorted(known, e)) for e in given]
        count = known.size if clocks else 1
        own, others = (
            _Grouped.of(side, number, code.group if side.keys[clocks:] else None, count)
            for side, number, code in zip((left, right), numbers, codes, strict=True)
        )
        return cls(own, others)

    def __len__(self) -> int:
        return self.left.ends.size - 1

    @property
    def sizes(self) -> np.ndarray:
        """Events of each key, left and right: int64 array, shape (keys, 2)."""
        return np.column_stack([np.diff(self.left.ends), np.diff(self.right.ends)])

    def events(self) -> Iterator[ClockEvents]:
        """The events of each key."""
        return map(self.one, range(len(self)))

    def one(self, k: int) -> ClockEvents:
        """The events of one key."""
        (own, codes), (others, other_codes) = self.left.key(k), self.right.key(k)
        if codes is not None and other_codes is not None:
            _, dense = np.unique(np.concatenate([codes, other_codes]), return_inverse=True)
            codes, other_codes = dense[: codes.size], dense[codes.size :]
        return ClockEvents.of(own, others, codes, other_codes)

    def keys(self, left: Side, right: Side, kinds: Sequence[pa.DataType]) -> list[pa.Array]:
        """The values of each key: those of its first event."""
        first = np.where(np.diff(self.left.ends) > 0, self.left.first, len(left) + self.right.first)
        return [
            one_array(of_one_type([own.cast(kind), other.cast(kind)])).take(pa.array(first))
            for own, other, kind in zip(left.keys, right.keys, kinds, strict=False)
        ]


@dataclass(frozen=True, eq=False)
class _Grouped:
    """The events of one side, those of a key together."""

    times: np.ndarray
    codes: np.ndarray | None
    ends: np.ndarray
    first: np.ndarray
    """The row of a key's first event; of one without any, anything."""

    @classmethod
    def of(
        cls, side: Side, group: np.ndarray | None, codes: np.ndarray | None, count: int
    ) -> _Grouped:
        """A side in groups from 0 on, -1 for none."""
        times = side.max_time
        if group is None:
            ends = np.array([0, times.size])
            return cls(times, codes, ends, np.zeros(1, np.int64))
        order = np.argsort(group, kind="stable")
        ends = np.searchsorted(group[order], np.arange(count + 1))
        first = np.append(order, 0)[ends[:-1]]
        return cls(times[order], None if codes is None else codes[order], ends, first)

    def key(self, k: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Times of a key's events, ticks, and their codes."""
        rows = slice(self.ends[k], self.ends[k + 1])
        return self.times[rows], None if self.codes is None else self.codes[rows]


def _order(keys: Sequence[pa.Array]) -> np.ndarray:
    """The keys in their order."""
    names = [str(i) for i in range(len(keys))]
    by = [(name, "ascending") for name in names]
    return pc.sort_indices(pa.table(list(keys), names=names), sort_keys=by).to_numpy()
