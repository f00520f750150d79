"""Sequences of events of several tables, in this process."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from coincide.engine.events.rows import Gather
from coincide.engine.join.pair_arguments import GivenWindow
from coincide.engine.room import check_most
from coincide.engine.sequences.arguments import (
    ColumnsOfAll,
    KeysOfAll,
    SequenceEmit,
    SequenceHow,
    SequencePrefer,
    Streams,
    TimesOfAll,
    check_question,
    closed_window,
    streams_of,
    windows_of,
)
from coincide.engine.sequences.links import Reader
from coincide.engine.sequences.reports import SequenceReport, SequenceSummary
from coincide.engine.sequences.walk import ExactJudge, Found, Judge, Sizes, Tuples, Walk, WholeJudge
from coincide.model.condition import Confidence, TimingCondition, Within
from coincide.model.errors import ConditionError, argument
from coincide.model.options import Backend, CorrelateOptions
from coincide.model.remembered import remembered
from coincide.model.sequences.wholes import CHAIN, TRIANGLE, Whole
from coincide.model.threads import all_cores

T = TypeVar("T")

_BATCH = 1 << 18
"""Tuples at once: their rows stay near the core that makes them."""


@dataclass(frozen=True, kw_only=True)
class SequenceArguments:
    """The question of sequences, checked."""

    streams: Streams
    windows: tuple[Within, ...]
    total: Within | None
    how: SequenceHow
    emit: SequenceEmit
    probability: bool
    link_probability: bool
    prefer: SequencePrefer

    def __post_init__(self) -> None:
        check_question(self.how, self.emit, self.prefer, self.probability, self.link_probability)
        if self.total is not None and len(self.streams) == 2:
            raise ConditionError(
                f"{argument('total')} bounds the time from the first event to the last, which is the one"
                f" step of two streams (found {self.total}). Narrow its window instead."
            )

    @property
    def tells_of_firsts(self) -> bool:
        """Whether the output has a row for each first event, not for each sequence."""
        return self.how == "anti" or self.emit == "counts"


class SequenceJob:
    """One pass over several tables: links, the tuples that they make, and rows of those that qualify."""

    def __init__(self, arguments: SequenceArguments) -> None:
        self._started = clock.perf_counter()
        self.arguments, self.streams = arguments, arguments.streams
        self._reader = Reader(self.streams)
        steps = enumerate(arguments.windows)
        self._jobs = [self._reader.plan(i, i + 1, window) for i, window in steps]
        self._total = self._total_ticks()
        self._sizes = Sizes()

    def _total_ticks(self) -> tuple[int, int] | None:
        """The window on the whole, where it says more than those of the steps."""
        given = self.arguments.total
        if given is None:
            return None
        tick = self._jobs[0].plan.tick
        window = TimingCondition(given, self.streams.confidence).window(tick)
        steps = [job.plan.timing.window for job in self._jobs]
        least, most = sum(step.lo for step in steps), sum(step.hi for step in steps)
        if window.lo > most or window.hi < least:
            raise ConditionError(
                f"{argument('total')} excludes all sequences, since the steps together take from"
                f" {least} to {most} ticks (found {window.lo} to {window.hi}). Widen it."
            )
        if window.lo <= least and window.hi >= most:
            return None
        if len(self.streams) > 3 and not self.streams.are_exact:
            raise ConditionError(
                f"{argument('total')} of uncertain times is known for three streams (found"
                f" {len(self.streams)}). Use exact times, such as midpoints, or windows of steps alone."
            )
        return window.lo, window.hi

    def run(self) -> pa.Table:
        """The whole answer."""
        jobs = enumerate(self._jobs)
        self.links = [self._reader.links(i, i + 1, job) for i, job in jobs]
        at_once = self.streams.options.batch_pairs or _BATCH
        possible = self._are_different if self._twins else None
        self._walk = Walk(self.links, possible, self._judge(), at_once)
        return self._table()

    @remembered
    def _twins(self) -> list[tuple[int, int]]:
        """Places that have the same table."""
        tables = self.streams.tables
        return [(i, j) for i, j in combinations(range(len(tables)), 2) if tables[i] is tables[j]]

    def _are_different(self, rows: np.ndarray) -> np.ndarray:
        """Tuples that end with an event that they do not have already."""
        last, found = len(rows) - 1, np.ones(rows[0].size, bool)
        for own, other in self._twins:
            if other == last:
                found &= rows[own] != rows[last]
        return found

    def _judge(self) -> Judge:
        n, arguments = len(self.streams), self.arguments
        sides = [self._reader.stream(k).side for k in range(n)]
        times, keeps = [side.max_time for side in sides], arguments.link_probability
        if all(side.are_instants for side in sides):
            holds = (
                None if self._total is None else partial(_takes, times[0], times[-1], self._total)
            )
            return ExactJudge(holds, keeps)
        windows = [link.window for link in self.links]
        if self._total is not None:
            windows.append(self._total)
        lows, highs = (np.array(ends, np.int64) for ends in zip(*windows, strict=True))
        whole = Whole(CHAIN if self._total is None else TRIANGLE, lows, highs)
        laws, numbers = self._reader.laws()
        wants = arguments.probability or arguments.emit == "best"
        confidence = self.streams.confidence
        return WholeJudge(whole, times, numbers, laws, confidence, wants, keeps)

    def _found(self, finish: Callable[[Found], T]) -> Iterator[T]:
        """What is made of the sequences, while they are counted."""
        options = self.streams.options
        for sizes, made in self._walk.found(finish, options.threads or all_cores()):
            self._sizes = self._sizes.with_more(sizes)
            check_most(self._sizes.found, options.max_pairs, "sequences")
            yield made

    def _table(self) -> pa.Table:
        arguments = self.arguments
        if arguments.tells_of_firsts:
            return self._of_firsts()
        if arguments.emit == "best":
            batches = [self._batch(self._best(list(self._found(self._best_of))))]
        else:
            batches = list(self._found(self._batch))
        return pa.Table.from_batches(batches, schema=self.schema)

    def _of_firsts(self) -> pa.Table:
        """First events without a sequence, or with the number of theirs."""
        counts = self._counts()
        is_anti = self.arguments.how == "anti"
        rows = np.flatnonzero(counts == 0 if is_anti else counts)
        columns = [column(rows) for column in [*self._keys, *self._payload[0]]]
        if not is_anti:
            columns.append(pa.array(counts[rows]))
        return pa.table(columns, schema=self.schema)

    def _counts(self) -> np.ndarray:
        """How many sequences begin at each first event."""
        if self._walk.are_all:
            self._sizes = Sizes(self._walk.tuples, 0, self._walk.tuples)
            return self._walk.ways
        counts = np.zeros(len(self._reader.stream(0).side), np.int64)
        for firsts in self._found(lambda found: found.rows[0]):
            np.add.at(counts, firsts, 1)
        return counts

    def _batch(self, found: Found) -> pa.RecordBatch:
        arguments = self.arguments
        columns = [column(found.rows[0]) for column in self._keys]
        for own, rows in zip(self._payload, found.rows, strict=True):
            columns += [column(rows) for column in own]
        if arguments.link_probability:
            chances = found.tuples.chances
            if not chances.shape[0]:
                chances = np.ones((len(self.links), found.tuples.size))
            columns += map(pa.array, chances)
        if arguments.probability:
            columns.append(pa.array(found.probability))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    @remembered
    def _keys(self) -> list[Gather]:
        first = self._reader.stream(0).side
        return [Gather(column, column.type) for column in first.keys]

    @remembered
    def _payload(self) -> list[list[Gather]]:
        sides = [self._reader.stream(k).side for k in range(len(self.streams))]
        return [[Gather(column, column.type) for column in side.payload] for side in sides]

    @remembered
    def schema(self) -> pa.Schema:
        """The columns of the output."""
        arguments, streams = self.arguments, self.streams
        fields = [
            pa.field(name, key.type)
            for name, key in zip(streams.keys[0], self._reader.stream(0).side.keys, strict=True)
        ]
        for k in range(1 if arguments.tells_of_firsts else len(streams)):
            side = self._reader.stream(k).side
            own = zip(streams.columns[k], side.payload, strict=True)
            fields += [pa.field(f"{streams.names[k]}_{name}", each.type) for name, each in own]
        if arguments.emit == "counts":
            fields.append(pa.field("sequences", pa.int64()))
        if arguments.link_probability:
            steps = pairwise(streams.names)
            fields += [pa.field(f"{a}_{b}_probability", pa.float64()) for a, b in steps]
        if arguments.probability:
            fields.append(pa.field("probability", pa.float64()))
        return pa.schema(fields)

    def _best_of(self, found: Found) -> Found:
        """The best sequence of each first event among some."""
        last = self._reader.stream(len(self.streams) - 1).side
        done = last.min_time[found.rows[-1]] + last.max_time[found.rows[-1]]
        prefer = self.arguments.prefer
        by = {
            "probability": (done, -found.probability),
            "first": (-found.probability, done),
            "last": (-found.probability, -done),
        }[prefer]
        order = np.lexsort((*found.rows[:0:-1], *by, found.rows[0]))
        first = found.rows[0][order]
        begins = np.ones(first.size, bool)
        begins[1:] = first[1:] != first[:-1]
        return found.of(order[begins])

    def _best(self, parts: list[Found]) -> Found:
        """The best ones of all parts: sequences of one first event may be in several."""
        keeps = self.arguments.link_probability
        links = sum(keeps and link.chances is not None for link in self.links)
        none = Tuples(np.empty((len(self.streams), 0), np.int64), np.empty((links, 0)))
        rows, chances = (
            np.concatenate(each, axis=1)
            for each in (
                [none.rows, *(part.rows for part in parts)],
                [none.chances, *(part.tuples.chances for part in parts)],
            )
        )
        whole = np.concatenate([np.empty(0), *(part.probability for part in parts)])
        return self._best_of(Found(Tuples(rows, chances), whole, 0, 0))

    def summary(self) -> SequenceSummary:
        """What was done."""
        names = self.streams.names
        counts = {name: self._reader.stream(k).counts for k, name in enumerate(names)}
        links = {
            f"{a} to {b}": link.targets.size
            for (a, b), link in zip(pairwise(names), self.links, strict=True)
        }
        seconds = clock.perf_counter() - self._started
        tick = self._jobs[0].plan.tick
        return SequenceSummary(counts, links, *self._sizes, seconds, tick)


def _takes(
    first: np.ndarray, last: np.ndarray, total: tuple[int, int], rows: np.ndarray
) -> np.ndarray:
    """Tuples of exact times that take as long in all as they may."""
    passed = last[rows[-1]] - first[rows[0]]
    return (passed >= total[0]) & (passed <= total[1])


def sequence_tables(
    tables: Sequence[Any] | Mapping[str, Any],
    windows: Sequence[GivenWindow],
    confidence: Confidence | None = None,
    *,
    total: GivenWindow | None = None,
    names: Sequence[str] | None = None,
    time: TimesOfAll = ("min_time", "max_time"),
    by: KeysOfAll = (),
    columns: ColumnsOfAll = ("id",),
    how: SequenceHow = "inner",
    emit: SequenceEmit = "sequences",
    probability: bool = False,
    link_probability: bool = False,
    prefer: SequencePrefer = "probability",
    backend: Backend = "auto",
    options: CorrelateOptions = CorrelateOptions(),
    report: SequenceReport | None = None,
) -> pa.Table:
    """Find sequences of events of several tables, in this process: a window for each step.

    A sequence qualifies when the probability that all its windows hold reaches the confidence threshold.
    It is that of the whole: the links of a sequence share events, so it is no product. A link that lies
    below the threshold is in no sequence, so that links are all that has to be looked at.

    Parameters
    ----------
    tables : list of tables, or dict of them by name, at least two
        What `correlate_tables` takes, in the order of the steps. One table may be given several
        times: no event is in a sequence twice.
    windows : sequence of (lo, hi), durations, or predicates
        One for each step: ``lo <= T_next - T_this <= hi``, both ends inclusive, as ``within`` of
        `correlate_tables`.
    confidence : float, optional
        In (0, 1]. Exact times need none.
    total : (lo, hi), duration or predicate, optional
        A window on the time from the first event to the last. Uncertain times need three streams.
    names : sequence of str, optional
        What the tables are called in the output, ``("click", "cart", "pay")``; without names ``a``, ``b``,
        ``c`` and so on.
    time : str, (str, str), Around or Histograms; or dict of them by name
        The time columns, as ``left_time`` of `correlate_tables`.
    by : str, or sequence of str and of tuples
        Columns that must be equal in all events; a tuple has the name in each table. The output has
        those of the first.
    columns : str or sequence of str; or dict of them by name
        Columns for the output, as ``<name>_<column>``. Where a table has no column ``"id"``, the number of
        the row is its id.
    how : {"inner", "anti"}
        ``anti`` gives the first events that begin no sequence.
    emit : {"sequences", "counts", "best"}
        A row for each sequence; the number of ``sequences`` of each first event that begins some; or the
        best sequence of each.
    probability : bool
        Add the probability of the whole, float64.
    link_probability : bool
        Add that of each step, ``<name>_<next name>_probability``.
    prefer : {"probability", "first", "last"}
        With ``emit="best"``, the most probable sequence, or the one whose last event is the earliest or
        latest by its midpoint. Then the other of the two decides, then the rows of the tables.
    backend : {"auto", "cpu", "gpu"}
        What finds the links. Sequences are made of them by the CPU.
    options : CorrelateOptions
        What numbers in time columns count, what becomes of invalid rows, and how it runs.
        ``batch_pairs`` bounds the sequences that are made at once, and ``max_pairs`` all of them.
    report : SequenceReport, optional
        Receives what the rows were and what was found.

    Returns
    -------
    pa.Table
        Columns `by`, those of each stream, and probabilities, float64. Rows come in no order.

    Raises
    ------
    SchemaError
        If a column is missing or of a type that cannot serve.
    ConditionError
        If the windows or an argument make no sense.
    DataError
        If rows are invalid and ``options.invalid`` is ``"raise"``.
    MemoryBudgetError
        If there are more sequences than ``options.max_pairs``.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning, NoPairsWarning

    Examples
    --------
    >>> click = {"id": [1], "min_time": [0], "max_time": [100]}
    >>> cart = {"id": [2], "min_time": [60], "max_time": [160]}
    >>> pay = {"id": [3], "min_time": [120], "max_time": [220]}
    >>> found = sequence_tables([click, cart, pay], [(0, 100), (0, 100)], 0.5, probability=True)
    >>> found.column_names, round(found["probability"][0].as_py(), 3)
    (['a_id', 'b_id', 'c_id', 'probability'], 0.556)
    """
    SequenceReport.check(report)
    streams = streams_of(tables, names, time, by, columns, confidence, backend, options)
    arguments = SequenceArguments(
        streams=streams, windows=windows_of(windows, streams),
        total=None if total is None else closed_window(total, "total"), how=how, emit=emit,
        probability=probability, link_probability=link_probability, prefer=prefer,
    )  # fmt: skip
    job = SequenceJob(arguments)
    found = job.run()
    SequenceReport.tell(job.summary(), report)
    return found
