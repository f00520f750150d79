"""Coincidences of events of several tables: sets of events within a width of each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, combinations, pairwise
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from coincide.engine.join.pair_filter import GivenWhere
from coincide.engine.join.timing import JoinSpec
from coincide.engine.room import check_links, check_most
from coincide.engine.sequences.arguments import (
    CheckTable,
    ColumnsOfAll,
    KeysOfAll,
    Places,
    Streams,
    TimesOfAll,
    WidthOrWindows,
    check_apart,
    check_table,
    checked_least,
    streams_of,
    windows_between,
)
from coincide.engine.sequences.job import TuplesJob
from coincide.engine.sequences.links import Reader
from coincide.engine.sequences.reports import SequenceReport, SequenceSummary
from coincide.engine.sequences.walk import (
    ExactJudge,
    Found,
    Judge,
    Sizes,
    Walk,
    WholeJudge,
)
from coincide.model.condition import Confidence, Within
from coincide.model.counters import offsets_of, runs_of_about
from coincide.model.errors import ConditionError, argument
from coincide.model.options import Backend, CorrelateOptions, check_truth
from coincide.model.remembered import remembered
from coincide.model.sequences.making import Decision, Demands, Links, Made, Step, Tuples
from coincide.model.sequences.wholes import CHAIN, GATHERING, TRIANGLE, Whole

_CURE = "Narrow the width, raise the confidence, or name more keys"
STREAMS = "streams"
"""The column that counts the streams that have an event in a set."""


@dataclass(frozen=True, kw_only=True)
class CoincidenceArguments:
    """The question of coincidences, checked."""

    streams: Streams
    windows: dict[Places, Within]
    at_least: int
    probability: bool

    def __post_init__(self) -> None:
        check_apart(self.streams)
        check_truth("probability", self.probability)

    def why_whole(self, place: int) -> str:
        """Why a row takes more events of a stream than its own one; nothing if it takes no other."""
        if self.at_least == len(self.streams):
            return ""
        return f"{argument('at_least', self.at_least)} also tells of sets without an event of each stream"

    @property
    def told(self) -> range:
        """The streams whose columns are in the output."""
        return range(len(self.streams))

    @property
    def numbers(self) -> dict[str, pa.DataType]:
        """The output columns that no stream has."""
        return {STREAMS: pa.int64()} | ({"probability": pa.float64()} if self.probability else {})


class CoincidenceJob(TuplesJob):
    """One pass over several tables: the sets of each choice of streams, but for parts of larger ones."""

    may_lack_first: ClassVar[bool] = True

    def __init__(self, arguments: CoincidenceArguments, reader: Reader | None = None) -> None:
        streams = arguments.streams
        self.at_least, self.probability = arguments.at_least, arguments.probability
        super().__init__(streams, arguments.told, arguments.numbers, reader)
        windows = arguments.windows.items()
        self._specs = {pair: self._reader.plan(*pair, each) for pair, each in windows}
        self._check_few()
        self._links: dict[Places, Links] = {}
        self._judges: dict[tuple[int, ...], Judge] = {}

    def _check_few(self) -> None:
        """Refuse windows that differ for more streams of uncertain times than there is a formula for."""
        if self._width is None and len(self.streams) > 3 and not self.streams.are_exact:
            raise ConditionError(
                f"windows that differ by pair take three streams of uncertain times (found"
                f" {len(self.streams)}). Use exact times, such as midpoints, or one duration."
            )

    @property
    def anchors(self) -> range:
        """As in `TuplesJob`: the first event of a set may be of any stream."""
        return range(len(self.streams))

    @property
    def joins(self) -> dict[Places, JoinSpec]:
        """As in `TuplesJob`."""
        return self._specs

    def near(self, place: int) -> dict[int, tuple[int, int]]:
        """As in `TuplesJob`."""
        return {other: self.between(other, place) for other in self.anchors if other != place}

    def batches(self) -> Iterator[pa.RecordBatch]:
        """As in `TuplesJob`: sets of most streams first."""
        n = len(self.streams)
        for pair, spec in self._specs.items():
            self._links[pair] = self._reader.links(*pair, spec)
        self.links = dict(self._links)
        sizes = range(n, self.at_least - 1, -1)
        choices = chain.from_iterable(combinations(range(n), size) for size in sizes)
        return chain.from_iterable(map(self._sets, choices))

    def _sets(self, members: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
        """The sets of events of some streams that no larger set holds."""
        links = [self._link(*pair) for pair in pairwise(members)]
        if not all(link.size for link in links):
            return
        for other in set(range(len(self.streams))).difference(members):
            self._link(self._nearest(members, other)[1], other)  # before threads share it
        steps = [Step(link, i, self._near(members[: i + 2])) for i, link in enumerate(links)]
        is_own = self._reader.stream(members[0]).is_own
        walk = Walk(self._maker, steps, self._judge(members), self._most, is_own)
        finish = partial(self._finished, members)
        for sizes, (batches, doubted) in walk.found(finish, self._threads):
            size = sum(batch.num_rows for batch in batches)
            self.sizes = self.sizes.with_more(Sizes(sizes.tried, sizes.doubted + doubted, size))
            check_most(self.sizes.found, self.streams.options.max_pairs, "coincidences", _CURE)
            yield from batches

    def _finished(self, members: tuple[int, ...], found: Found) -> tuple[list[pa.RecordBatch], int]:
        """The rows of sets that no larger set holds; and how often floats could not decide that."""
        others = [k for k in range(len(self.streams)) if k not in members]
        is_part = np.zeros(found.size, bool)
        doubted = self._mark_parts(members, others, found.tuples, np.arange(found.size), is_part)
        found = found.where(~is_part)
        numbers = [pa.array(np.full(found.size, len(members)))]
        if self.probability:
            numbers.append(pa.array(found.probability))
        return self._batches(members, found.rows, numbers), doubted

    def _nearest(self, members: tuple[int, ...], other: int) -> tuple[int, int]:
        """The place among members, and the stream, whose links lead to another stream."""
        place = max((k for k, each in enumerate(members) if each < other), default=0)
        return place, members[place]

    def _mark_parts(
        self,
        members: tuple[int, ...],
        others: Sequence[int],
        part: Tuples,
        origins: np.ndarray,
        is_part: np.ndarray,
    ) -> int:
        """Mark sets that events of other streams make larger; how often floats could not decide that.

        `part` are tuples of `members` that grew of these sets, and `origins` tells of which.
        """
        doubted = 0
        for i, other in enumerate(others):
            larger = (*members, other)
            judge = self._judge(larger)
            first = judge.decision if self._condition is None else None
            for made, roots in self._grown(members, other, first, part, origins, is_part):
                if self._condition is None:
                    found = judge.found(made)
                else:
                    decided = self._maker.make(made.tuples, [], judge.decision, tells=True)
                    found, roots = judge.found(decided), roots[made.parents]
                doubted += found.doubted
                is_part[roots[found.parents]] = True
                # What no condition is on is in a larger set only if it is in one of one event more.
                if self._condition is not None:
                    more = self._mark_parts(larger, others[i + 1 :], made.tuples, roots, is_part)
                    doubted += more
        return doubted

    def _grown(
        self,
        members: tuple[int, ...],
        other: int,
        decision: Decision | Demands | None,
        part: Tuples,
        origins: np.ndarray,
        is_part: np.ndarray,
    ) -> Iterator[tuple[Made, np.ndarray]]:
        """Tuples with each event of another stream near them, some at a time; origins of their parents."""
        open_ones = np.flatnonzero(~is_part[origins])
        part, origins = part.of(open_ones), origins[open_ones]
        place, nearest = self._nearest(members, other)
        link = self._link(nearest, other)
        step = Step(link, place, self._near((*members, other)))
        sizes = (link.ends - link.begins)[part.rows[place]]
        for run in (
            runs_of_about(offsets_of(sizes), self._most or self._maker.at_once) if part.size else ()
        ):
            made = self._maker.make(part.of(slice(*run)), [step], decision, tells=True)
            yield made, origins[slice(*run)]

    def _link(self, left: int, right: int) -> Links:
        """The links of two streams, whichever of them comes first."""
        pair = left, right
        if pair not in self._links:
            links, size = self._links[right, left], len(self._reader.stream(left).side)
            check_links(links.size, self.streams.options.max_pairs)
            self._links[pair] = links.mirrored(size)
        return self._links[pair]

    def _near(self, members: tuple[int, ...]) -> Demands:
        """That the last event of a set may be near all others, which are near each other."""
        *others, last = members
        windows = [(k, *self.between(other, last)) for k, other in enumerate(others)]
        return Demands(members, tuple(windows))

    def between(self, left: int, right: int) -> tuple[int, int]:
        """As in `TuplesJob`."""
        is_turned = left > right
        window = self._specs[(right, left) if is_turned else (left, right)].window
        return (-window.hi, -window.lo) if is_turned else (window.lo, window.hi)

    @remembered
    def _width(self) -> int | None:
        """The width that all windows share, ticks; None where they differ."""
        found = {spec.window for spec in self._specs.values()}
        window = found.pop()
        return None if found or not window.is_even else window.hi

    def _judge(self, members: tuple[int, ...]) -> Judge:
        if members not in self._judges:
            self._judges[members] = self._tested(self._judge_of_times(members), members)
        return self._judges[members]

    def _judge_of_times(self, members: tuple[int, ...]) -> Judge:
        sides = [self._reader.stream(k).side for k in members]
        if all(side.are_instants for side in sides):
            return ExactJudge(None)  # those are within the width that may be
        if self._width is not None and len(members) > 2:
            width = np.array([self._width])
            whole = Whole(GATHERING, -width, width)
        else:
            pairs = [*pairwise(members), (members[0], members[-1])][: 2 * len(members) - 3]
            lows, highs = (
                np.array(e) for e in zip(*(self.between(*p) for p in pairs), strict=True)
            )
            whole = Whole(CHAIN if len(members) == 2 else TRIANGLE, lows, highs)
        laws, confidence = self._reader.laws[0], self.streams.confidence
        return WholeJudge(
            whole, members, self._edges[list(members)], self._events, laws, confidence,
            self.probability, has_steps=False,
        )  # fmt: skip

    def summary(self) -> SequenceSummary:
        """What was done."""
        return self._summary(self.links)


def coincidence_tables(
    tables: Sequence[Any] | Mapping[str, Any],
    within: WidthOrWindows,
    confidence: Confidence | None = None,
    *,
    at_least: int | None = None,
    names: Sequence[str] | None = None,
    time: TimesOfAll = ("min_time", "max_time"),
    by: KeysOfAll = (),
    columns: ColumnsOfAll = ("id",),
    probability: bool = False,
    where: GivenWhere = None,
    backend: Backend = "auto",
    options: CorrelateOptions = CorrelateOptions(),
    report: SequenceReport | None = None,
) -> pa.Table:
    """Find sets of events of several tables, in any order, within a width of each other; in this process.

    A set has at most one event of each stream. It qualifies when the probability that all times are within
    the width, or that all windows hold, reaches the confidence threshold. A set that is part of a larger
    one is not told again.

    Parameters
    ----------
    tables : list of tables, or dict of them by name, at least two
        What `correlate_tables` takes, each once.
    within : duration, or dict of windows by pair of names
        The longest time between any two events of a set: ``"50ms"``, or ticks. Or a window for each two
        streams, ``{("H", "L"): "10ms", ("H", "V"): "27ms", ("L", "V"): "26ms"}``, where ``(lo, hi)`` is on
        ``T_second - T_first``. Windows that differ take three streams where times are uncertain.
    confidence : float, optional
        In (0, 1]. Exact times need none.
    at_least : int, optional
        The least number of streams that have an event in a set. None: all.
    names : sequence of str, optional
        What the tables are called in the output; without names ``a``, ``b``, ``c`` and so on.
    time : str, (str, str), Around or Histograms; or dict of them by name
        The time columns, like ``left_time`` of `correlate_tables`.
    by : str, or sequence of str and of tuples
        Columns that must be equal in all events of a set; a tuple has the name in each table.
    columns : str or sequence of str; or dict of them by name
        Columns for the output, as ``<name>_<column>``. Where a table has no column ``"id"``, the number of
        the row is its id.
    probability : bool
        Add the probability of the whole, float64.
    where : str or pyarrow.compute.Expression, optional
        What sets must also meet, over the columns ``<name>_<column>`` of all tables, in the SQL that
        `correlate_tables` takes, or an Arrow expression. Columns are null where a set has no event of the
        table. A set for which it is null or false does not count, so its parts may be in the output.
    backend : {"auto", "cpu", "gpu"}
        What finds pairs, and makes sets of them.
    options : CorrelateOptions
        What numbers in time columns count, what becomes of invalid rows, and how it runs.
    report : SequenceReport, optional
        Receives what the rows were and what was found.

    Returns
    -------
    pa.Table
        Columns `by`, those of each stream, null where a set has no event of it, ``streams``, int64: how
        many streams have one, and ``probability``. Sets of most streams come first.

    Raises
    ------
    SchemaError
        If a column is missing or of a type that cannot serve.
    ConditionError
        If an argument makes no sense, or a table is given twice.
    DataError
        If rows are invalid and ``options.invalid`` is ``"raise"``.
    MemoryBudgetError
        If there are more sets than ``options.max_pairs``.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning, NoPairsWarning

    Examples
    --------
    >>> stations = {"N": {"t": [10, 500]}, "E": {"t": [40]}, "S": {"t": [35, 520]}}
    >>> coincidence_tables(stations, 30, at_least=2, time="t").to_pylist()
    [{'N_id': 0, 'E_id': 0, 'S_id': 0, 'streams': 3}, {'N_id': 1, 'E_id': None, 'S_id': 1, 'streams': 2}]
    """
    SequenceReport.check(report)
    arguments = coincidence_arguments(
        tables, within, confidence, at_least=at_least, names=names, time=time, by=by,
        columns=columns, probability=probability, where=where, backend=backend, options=options,
    )  # fmt: skip
    job = CoincidenceJob(arguments)
    found = job.run()
    SequenceReport.tell(job.summary(), report)
    return found


def coincidence_arguments(
    tables: Sequence[Any] | Mapping[str, Any],
    within: WidthOrWindows,
    confidence: Confidence | None,
    *,
    at_least: int | None,
    names: Sequence[str] | None,
    time: TimesOfAll,
    by: KeysOfAll,
    columns: ColumnsOfAll,
    probability: bool,
    backend: Backend,
    options: CorrelateOptions,
    where: GivenWhere = None,
    check: CheckTable = check_table,
) -> CoincidenceArguments:
    """What `coincidence_tables` is asked, checked; `check` refuses what is no table."""
    streams = streams_of(
        tables, names, time, by, columns, confidence, backend, options, where, check, tuples="set"
    )
    return CoincidenceArguments(
        streams=streams, windows=windows_between(within, streams),
        at_least=checked_least(at_least, streams), probability=probability,
    )  # fmt: skip
