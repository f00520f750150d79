"""Sequences of events of several tables, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from coincide.engine.events.ticks import length_words
from coincide.engine.join.pair_arguments import GivenWindow
from coincide.engine.join.pair_filter import GivenWhere
from coincide.engine.join.timing import JoinSpec
from coincide.engine.room import Expected, PairLimit, check_most, fixed_bytes
from coincide.engine.sequences.arguments import (
    CheckTable,
    ColumnsOfAll,
    KeysOfAll,
    Places,
    SequenceEmit,
    SequenceHow,
    SequencePrefer,
    Streams,
    TimesOfAll,
    check_question,
    check_table,
    closed_window,
    streams_of,
    windows_of,
)
from coincide.engine.sequences.job import TuplesJob
from coincide.engine.sequences.links import Reader
from coincide.engine.sequences.reports import SequenceReport, SequenceSummary
from coincide.engine.sequences.walk import ExactJudge, Found, Judge, Sizes, Walk, WholeJudge
from coincide.model.condition import Confidence, TimingCondition, Window, Within
from coincide.model.errors import ConditionError, argument
from coincide.model.options import Backend, CorrelateOptions
from coincide.model.sequences.making import Demands, Step, Tuples
from coincide.model.sequences.wholes import CHAIN, TRIANGLE, Whole

T = TypeVar("T")


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

    def why_whole(self, place: int) -> str:
        """Why a row takes more events of a stream than its own one; nothing if it takes no other."""
        is_best = self.emit == "best"
        if place == 0 or not (self.tells_of_firsts or is_best):
            return ""
        what = argument("how", self.how) if self.how == "anti" else argument("emit", self.emit)
        return (
            f"{what} looks at all events of {self.streams.names[place]} for each of"
            f" {self.streams.names[0]}"
        )

    @property
    def told(self) -> range:
        """The streams whose columns are in the output."""
        return range(1 if self.tells_of_firsts else len(self.streams))

    @property
    def numbers(self) -> dict[str, pa.DataType]:
        """The output columns that no stream has."""
        found = {"sequences": pa.int64()} if self.emit == "counts" else {}
        if self.link_probability:
            steps = pairwise(self.streams.names)
            found |= {f"{a}_{b}_probability": pa.float64() for a, b in steps}
        if self.probability:
            found["probability"] = pa.float64()
        return found


class SequenceJob(TuplesJob):
    """One pass over several tables: links, the tuples that they make, and rows of those that qualify."""

    def __init__(self, arguments: SequenceArguments, reader: Reader | None = None) -> None:
        self.arguments = arguments
        super().__init__(arguments.streams, arguments.told, arguments.numbers, reader)
        steps = enumerate(arguments.windows)
        self._specs = [self._reader.plan(i, i + 1, window) for i, window in steps]
        self._total = self._total_ticks()
        self.has_total = self._total is not None
        if self._total is not None and not arguments.link_probability:
            self._narrow(self._total)

    @property
    def _steps(self) -> list[Window]:
        """The window of each step, ticks."""
        return [spec.window for spec in self._specs]

    @property
    def _reach(self) -> tuple[int, int]:
        """The least and the most that all steps take together, ticks."""
        return sum(step.lo for step in self._steps), sum(step.hi for step in self._steps)

    def _narrow(self, total: tuple[int, int]) -> None:
        """Narrow each window to what the others leave of that on the whole: no sequence is lost."""
        least, most = self._reach
        for i, (spec, window) in enumerate(zip(self._specs, self._steps, strict=True)):
            lo = max(window.lo, total[0] - (most - window.hi))
            hi = min(window.hi, total[1] - (least - window.lo))
            self._specs[i] = spec.but(window=replace(window, lo=lo, hi=hi))

    def _total_ticks(self) -> tuple[int, int] | None:
        """The window on the whole, where it says more than those of the steps."""
        given = self.arguments.total
        if given is None:
            return None
        window = TimingCondition(given, self.streams.confidence).window(self.tick)
        least, most = self._reach
        if window.lo > most or window.hi < least:
            raise ConditionError(
                f"{argument('total')} excludes all sequences, since the steps together take from"
                f" {length_words(least, self.tick)} to {length_words(most, self.tick)} (found"
                f" {length_words(window.lo, self.tick)} to {length_words(window.hi, self.tick)}). Widen it."
            )
        if window.lo <= least and window.hi >= most:
            return None
        if len(self.streams) > 3 and not self.streams.are_exact:
            raise ConditionError(
                f"{argument('total')} of uncertain times is known for three streams (found"
                f" {len(self.streams)}). Use exact times, such as midpoints, or windows of steps alone."
            )
        return window.lo, window.hi

    @property
    def anchors(self) -> range:
        """As in `TuplesJob`."""
        return range(1)

    def near(self, place: int) -> dict[int, tuple[int, int]]:
        """As in `TuplesJob`: what the steps up to there take together, and no more than the whole may."""
        return {0: self.between(0, place)} if place else {}

    def between(self, left: int, right: int) -> tuple[int, int]:
        """As in `TuplesJob`: what the steps from one to the other take together."""
        if left > right:
            lo, hi = self.between(right, left)
            return -hi, -lo
        steps = self._steps[left:right]
        lo, hi = sum(step.lo for step in steps), sum(step.hi for step in steps)
        if self._total is not None and right - left == len(self.streams) - 1:
            lo, hi = max(lo, self._total[0]), min(hi, self._total[1])
        return lo, hi

    @property
    def joins(self) -> dict[Places, JoinSpec]:
        """As in `TuplesJob`."""
        return {(i, i + 1): spec for i, spec in enumerate(self._specs)}

    @property
    def specs(self) -> list[JoinSpec]:
        """The join of each step."""
        return self._specs

    def move_apart(self, ticks: int) -> None:
        """Take the times of the k-th stream, from 0, to be k times these ticks later."""
        # The windows move instead, the other way.
        self._specs = [spec.but(window=spec.window.moved(-ticks)) for spec in self._specs]
        if self._total is not None:
            moved = ticks * (len(self.streams) - 1)
            self._total = self._total[0] - moved, self._total[1] - moved

    def count(self) -> int:
        """How many sequences there are; no row is made of any."""
        self._begin()
        self._counts(is_exact=False)
        return self.sizes.found

    def longest(self) -> list[int]:
        """The longest timestamp of each stream, ticks, once links were looked for."""
        sides = [self._reader.stream(k).side for k in range(len(self.streams))]
        return [
            int(
                side.lengths[slice(None) if side.matchable is None else side.matchable].max(
                    initial=0
                )
            )
            for side in sides
        ]

    def _begin(self) -> None:
        """Look for the links of all steps."""
        self.links = {pair: self._reader.links(*pair, spec) for pair, spec in self.joins.items()}
        steps = [Step(links, i, self._different(i + 1)) for (i, _), links in self.links.items()]
        self._walk = Walk(self._maker, steps, self._judge(), self._most, self._is_own)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """As in `TuplesJob`."""
        self._begin()
        arguments = self.arguments
        if arguments.tells_of_firsts:
            return self._of_firsts()
        if arguments.emit == "best":
            return iter(self._rows(self._best(list(self._found(self._best_of)))))
        return chain.from_iterable(self._found(self._rows, is_whole=True))

    def run(self) -> pa.Table:
        """The whole answer."""
        batches, arguments = self.batches(), self.arguments
        if self._walk.are_all and not arguments.tells_of_firsts and arguments.emit != "best":
            self._check_room(self._walk.tuples)
        return self._table(batches)

    @property
    def _is_own(self) -> np.ndarray | None:
        return self._reader.stream(0).is_own

    def _check_room(self, tuples: int) -> None:
        """Refuse more sequences than memory, or a limit, has room for, before one is made."""
        most = self.streams.options.max_pairs
        check_most(tuples, most, "sequences")
        limit = PairLimit(most)
        limit.is_collected = True
        size = tuples * fixed_bytes(self.schema.types)
        limit.expect(Expected(tuples, tuples, size), is_last=True)

    def _different(self, last: int) -> Demands | None:
        """What tells the last event from those that the tuple has; None if no stream is at two places."""
        others = tuple(own for own, other in self.streams.twins if other == last)
        return Demands(tuple(range(last + 1)), others=others) if others else None

    def _judge(self) -> Judge:
        return self._tested(self._judge_of_times(), range(len(self.streams)))

    def _judge_of_times(self) -> Judge:
        n, arguments = len(self.streams), self.arguments
        streams, keeps = tuple(range(n)), arguments.link_probability
        if self._are_instants:
            total = self._total
            return ExactJudge(None if total is None else Demands(streams, ((0, *total),)), keeps)
        windows = [(window.lo, window.hi) for window in self._steps]
        if self._total is not None:
            windows.append(self._total)
        lows, highs = (np.array(ends, np.int64) for ends in zip(*windows, strict=True))
        whole = Whole(CHAIN if self._total is None else TRIANGLE, lows, highs)
        wants = arguments.probability or arguments.emit == "best"
        laws, confidence = self._reader.laws[0], self.streams.confidence
        return WholeJudge(whole, streams, self._edges, self._events, laws, confidence, wants, keeps)

    def _found(self, finish: Callable[[Found], T], *, is_whole: bool = False) -> Iterator[T]:
        """What is made of the sequences, while they are counted; all of them are in the output or not."""
        for sizes, made in self._walk.found(finish, self._threads):
            self.sizes = self.sizes.with_more(sizes)
            if is_whole:
                check_most(self.sizes.found, self.streams.options.max_pairs, "sequences")
            yield made

    def _of_firsts(self) -> Iterator[pa.RecordBatch]:
        """First events without a sequence, or with the number of theirs."""
        is_anti = self.arguments.how == "anti"
        counts = self._counts(is_exact=not is_anti)
        is_told = counts == 0 if is_anti else counts > 0
        rows = np.flatnonzero(is_told if self._is_own is None else is_told & self._is_own)
        rows = self._reader.stream(0).as_read(rows)
        numbers = [] if is_anti else [pa.array(counts[rows])]
        yield from self._batches([0], rows.reshape(1, -1), numbers)

    def _counts(self, *, is_exact: bool) -> np.ndarray:
        """How many sequences begin at each first event; if not exact, of very many fewer."""
        if self._walk.are_all:
            ways = self._walk.counts if is_exact else self._walk.ways
            self.sizes = Sizes(self._walk.tuples, 0, self._walk.tuples)
            return ways
        counts = np.zeros(len(self._reader.stream(0).side), np.int64)
        for firsts in self._found(lambda found: found.rows[0]):
            np.add.at(counts, firsts, 1)
        return counts

    def _rows(self, found: Found) -> list[pa.RecordBatch]:
        """The rows of sequences."""
        arguments = self.arguments
        numbers: list[pa.Array] = []
        if arguments.link_probability:
            chances = found.tuples.chances
            if not chances.shape[0]:
                chances = np.ones((len(self.links), found.size))
            numbers += map(pa.array, chances)
        if arguments.probability:
            numbers.append(pa.array(found.probability))
        return self._batches(range(len(self.streams)), found.rows, numbers)

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
        places = range(len(self.streams) - 1, 0, -1)
        rows = [self._reader.stream(k).numbers(found.rows[k]) for k in places]
        order = np.lexsort((*rows, *by, found.rows[0]))
        first = found.rows[0][order]
        begins = np.ones(first.size, bool)
        begins[1:] = first[1:] != first[:-1]
        return found.of(order[begins])

    def _best(self, parts: list[Found]) -> Found:
        """The best ones of all parts: sequences of one first event may be in several."""
        keeps = self.arguments.link_probability
        links = sum(keeps and link.chances is not None for link in self.links.values())
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
        return self._summary(self.links, may_be_none=self.arguments.how == "anti")


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
    where: GivenWhere = None,
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
        times: no event is in a sequence twice, unless it is at another time there.
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
    where : str or pyarrow.compute.Expression, optional
        What sequences must also meet, over the columns ``<name>_<column>`` of all tables, in the output or
        not: ``"click_shop = pay_shop AND pay_amount > cart_amount"`` in the SQL that `correlate_tables`
        takes, or an Arrow expression. A sequence for which it is null or false does not count, and is never
        the best one.
    prefer : {"probability", "first", "last"}
        With ``emit="best"``, the most probable sequence, or the one whose last event is the earliest or
        latest by its midpoint. Then the other of the two decides, then the rows of the tables.
    backend : {"auto", "cpu", "gpu"}
        What finds the links, and makes sequences of them.
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
    arguments = sequence_arguments(
        tables, windows, confidence, total=total, names=names, time=time, by=by, columns=columns,
        how=how, emit=emit, probability=probability, link_probability=link_probability, where=where,
        prefer=prefer, backend=backend, options=options,
    )  # fmt: skip
    job = SequenceJob(arguments)
    found = job.run()
    SequenceReport.tell(job.summary(), report)
    return found


def sequence_arguments(
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
    where: GivenWhere = None,
    prefer: SequencePrefer = "probability",
    backend: Backend = "auto",
    options: CorrelateOptions = CorrelateOptions(),
    check: CheckTable = check_table,
) -> SequenceArguments:
    """What `sequence_tables` is asked, checked; `check` refuses what is no table."""
    streams = streams_of(
        tables, names, time, by, columns, confidence, backend, options, where, check
    )
    return SequenceArguments(
        streams=streams, windows=windows_of(windows, streams),
        total=None if total is None else closed_window(total, "total"), how=how, emit=emit,
        probability=probability, link_probability=link_probability, prefer=prefer,
    )  # fmt: skip
