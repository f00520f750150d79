"""Streams: correlators of arrays, and joins of tables by keys, on the CPU or on a GPU. Needs no Spark."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

import gpu_kernels.streams
from coincide.engine.backends import check_backend, load_backend, release_gpu
from coincide.engine.events.keys import Keys
from coincide.engine.events.spans import check_no_spans
from coincide.engine.events.template_frames import templates_of
from coincide.engine.events.timestamp_names import GivenTimes
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.join import correlate_tables
from coincide.engine.join.pair_arguments import GivenWindow, OneStreamError, condition_of
from coincide.engine.join.pair_filter import GivenWhere
from coincide.engine.streams.reading import StreamArguments
from coincide.engine.streams.stream_join import StreamJoin
from coincide.model.classes import ShapeClasses
from coincide.model.condition import Confidence, TimingCondition, Window
from coincide.model.docstrings import documented
from coincide.model.errors import (
    ConditionError,
    MemoryBudgetError,
    SchemaError,
    argument,
    found_instead,
)
from coincide.model.options import (
    Backend,
    CorrelateOptions,
    How,
    Matching,
    Prefer,
    check_choice,
    check_no_most,
)
from coincide.model.options import Emit as JoinEmit
from coincide.model.sides import LEFT, RIGHT
from coincide.model.streams.correlator import DEFERRED, StreamCorrelator, deferred_correlator
from coincide.model.streams.models import MOST_LENGTHS, Emit, stream_options
from coincide.model.streams.state import (
    Deferred,
    Due,
    LiveBlockStep,
    LiveEvents,
    Progress,
    Regions,
    Rules,
)
from coincide.model.templates.template import Templates, TemplateTable
from coincide.model.units import Duration
from cpu_fallback.streams import LiveBlocks

LEAST_BLOCK = 1 << 14
"""Events of a block from which on ``"auto"`` takes a GPU. Estimated, not measured: a block costs a GPU 1 to
2 ms whatever its size, in which a CPU correlates several thousand events."""

_OF_PAPERS = ("simple", "simple-sort", "eager")


def stream_correlator(
    algorithm: str,
    condition: Window | TimingCondition,
    *,
    left_delay: int,
    right_delay: int,
    left_longest: int | None = None,
    right_longest: int | None = None,
    left_shortest: int = 0,
    right_shortest: int = 0,
    left_templates: object = None,
    right_templates: object = None,
    most_lengths: int = MOST_LENGTHS,
    block: int | None = 1000,
    every: int | None = None,
    emit: Emit = "pairs",
    classes: int | None = None,
    response: bool = False,
    backend: Backend = "auto",
    by: None = None,
) -> StreamCorrelator:
    """Make a stream correlator: Lee & Lee (2010), on a GPU where there is one.

    The answers of backends are the same, pair for pair, and so are the counters; only the sum of response
    times may be rounded otherwise. On a GPU the live events stay in its memory, and a block travels there
    when it is due. Make it in the process that does the work, after any fork: it looks for a GPU.

    If the device has no memory for a block, not even event by event, the live events move to the host once,
    with one warning. The CPU goes on, and no pair is lost or returned twice. A pickle or a deep
    copy is made by way of host memory and chooses its backend anew, where it is loaded.

    Parameters
    ----------
    algorithm : {"lazy", "lookup", "classes"}
        What is done to find the pairs; which pairs are found does not depend on it. A GPU has "lazy" and
        "classes".
    condition : Window or TimingCondition
        On T_right - T_left; durations in ticks.
    left_delay, right_delay : int
        The papers' largest delay of each stream, ticks: how long after its max_time an event may
        arrive.
    left_longest, right_longest, left_shortest, right_shortest : int
        The papers' pi and rho, ticks: limits of the lengths of each stream's timestamps, if they are
        intervals. The longest is needed then.
    left_templates, right_templates : TemplateTable, Templates, mapping, path or table, optional
        As `coincide.histograms` takes templates, in ticks, of a stream whose timestamps are histograms.
        Each stream has one kind, whatever the other one has.
    most_lengths : int
        Where one stream has intervals, and the other one histograms: how many different lengths may
        come. Each takes memory for as many entries as there are templates, and keeps it.
    block : int or None
        A block is due once a side has this many unprocessed events; 1 correlates each event when it comes.
    every : int or None
        A block is also due when an event arrives this much stream time, ticks, after the last one was.
    emit : {"pairs", "counts"}
        Whether pairs are given out, or only their number.
    classes : int or None
        Length classes a side, of "classes" only; None: a default.
    response : bool
        Whether `StreamStats` tells response times. They take every pair one by one, which costs more
        than finding it where only counts are wanted.
    backend : {"auto", "cpu", "gpu"}
        ``"auto"`` takes a GPU if one can be used, the GPU has the algorithm, and `block` is at least
        `LEAST_BLOCK`. With `every` alone, where blocks have any size, it takes the CPU.
    by : None
        Keys are for `stream_tables`, which takes them with tables, ids and units.

    Returns
    -------
    StreamCorrelator

    Raises
    ------
    ConditionError
        If the algorithm or the backend is unknown, the window is empty, or a limit is negative. If `block`
        or `every` is less than 1, or both are missing. If a stream has neither a longest interval nor
        templates, or both. If "lookup" goes with templates. If there are keys.
    MemoryBudgetError
        If there are too many pairs of templates.
    BackendError
        If ``"gpu"`` is asked for, and no GPU can be used here or the algorithm is the CPU's alone. Later,
        if the device fails: its live events are lost then.

    Notes
    -----
    Lee & Lee (2010), Algorithms 4 to 7; of histograms, Mok, Woo & Lee (2006), Theorems 3 and 4. Nothing
    here assumes deadlines longer than timestamps.
    """
    if by is not None:
        raise ConditionError(
            f"stream_correlator takes arrays of one pair of streams, without {argument('by')}."
            " Use coincide.stream_tables, which takes tables, keys and units."
        )
    if algorithm in _OF_PAPERS:
        raise ConditionError(
            f"{argument('algorithm', algorithm)} is not part of the package, as only comparisons"
            " need it (bench/papers/streams.py of the sources). Use 'classes', with"
            f" {argument('block', 1)} for pairs at once."
        )
    check_choice("algorithm", algorithm, DEFERRED)
    check_backend(backend)
    if backend == "gpu":
        gpu_kernels.streams.check_algorithm(algorithm)
    options = stream_options(
        condition,
        left_delay=left_delay,
        right_delay=right_delay,
        left_longest=left_longest,
        right_longest=right_longest,
        left_shortest=left_shortest,
        right_shortest=right_shortest,
        left_templates=_templates(left_templates),
        right_templates=_templates(right_templates),
        most_lengths=most_lengths,
        block=block,
        every=every,
        emit=emit,
        classes=classes,
        response=response,
    )
    return deferred_correlator(algorithm, options, partial(_live_blocks, backend, block))


def _templates(given: object) -> Templates | TemplateTable | None:
    return given if given is None or isinstance(given, TemplateTable) else templates_of(given)


def _live_blocks(backend: Backend, block: int | None, algorithm: Deferred) -> LiveBlockStep:
    is_worth_it = backend == "gpu" or (backend == "auto" and (block or 0) >= LEAST_BLOCK)
    if is_worth_it and algorithm in gpu_kernels.streams.ALGORITHMS:
        return ResilientLiveBlocks(algorithm, backend)
    return LiveBlocks(algorithm)


@documented(correlate_tables)
def stream_tables(
    condition: TimingCondition | None = None,
    *,
    within: GivenWindow | None = None,
    confidence: Confidence | None = None,
    left_delay: Duration,
    right_delay: Duration | None = None,
    left_time: GivenTimes = ("min_time", "max_time"),
    right_time: GivenTimes = ("min_time", "max_time"),
    by: Keys = (),
    left_columns: str | Sequence[str] = ("id",),
    right_columns: str | Sequence[str] = ("id",),
    how: How = "inner",
    emit: JoinEmit = "pairs",
    probability: bool = False,
    left_schema: Any = None,
    right_schema: Any = None,
    backend: Backend = "auto",
    options: CorrelateOptions = CorrelateOptions(),
    where: GivenWhere = None,
    prefer: Prefer = "probability",
    k: int = 1,
    matching: Matching | None = None,
    left_ahead: Duration | None = None,
    right_ahead: Duration | None = None,
) -> StreamJoin:
    """Join two streams of tables as their rows arrive, or one with itself, by any number of keys.

    What it gives out, all in all, is what `coincide.correlate_tables` gives of all rows that were pushed,
    but for late ones. Events are kept for as long as something may come that they can be a match of.

    Parameters
    ----------
    condition : TimingCondition
        The window on T_right - T_left and the confidence that it must reach.
    within, confidence
        As in `coincide.correlate_tables`.
    left_delay, right_delay : int, str or timedelta
        How long after its max_time an event of the side may arrive, such as ``"250ms"``; an int counts
        ticks. An event arrives at the largest max_time that its side has seen, over all keys, and one
        that comes later than this is left out, counted, and kept for `StreamJoin.take_late`. Without
        `right_delay` there is one stream, which is joined with itself as by ``correlate_tables(events)``:
        left is every event, right every other one, and pairs are given once. If two events have
        the same timestamp, the one that came first is left.
    left_time, right_time, by, left_columns, right_columns
        As in `coincide.correlate_tables`.
    how, emit
        As in `coincide.correlate_tables`. Pairs (``how="inner"``, ``emit="pairs"``) are returned when the
        second of the two events comes. All else tells of left events, and is returned when no event
        may come any more that could be a match: ``how="anti"`` tells of deadlines that were missed.
    probability : bool
        Add the satisfaction probability (float64).
    left_schema, right_schema : pa.Schema, optional
        The schemas of the tables to come. Without one the first table of a side has the types. Events
        wait until the types of both sides are known. With ``"*"`` a schema says which columns there are.
    backend : {"auto", "cpu", "gpu"}
        ``"auto"`` takes a GPU, where there is one, for blocks of many events.
    options : CorrelateOptions
        ``left_longest`` and ``right_longest`` let events go sooner. Without it an
        interval may be as long as the window and the confidence allow.
    where : str or pyarrow.compute.Expression, optional
        As in `coincide.correlate_tables`.
    prefer, k, matching
        As in `coincide.correlate_tables`. A pair of ``matching="mutual"`` is returned when no event may
        come that could be a better match of either. One of ``"unambiguous"`` is returned when no event may
        come that could be another match.
        There is no ``"optimal"`` here.
    left_ahead, right_ahead : int, str or timedelta, optional
        How far ahead of the median max_time of the last 31 rows of its side a row may be, such as
        ``"1h"``. A row further ahead is set aside: it takes no part and moves no clock. It is counted,
        and kept for `StreamJoin.take_ahead`. None: a row may be as far ahead as it likes.

    Returns
    -------
    StreamJoin
        Events go into its `push`.

    Raises
    ------
    ConditionError
        If the condition or an argument makes no sense.
    SchemaError
        If a schema is not one, or lacks a column.
    BackendError
        If the backend is unknown.
    """
    times = (left_time, left_time if right_delay is None else right_time)
    cure = "Use correlate_streams on Spark, or correlate_tables once the rows are there."
    check_no_spans("stream_tables", cure, condition, *times)
    asked = condition_of(condition, within, confidence, times)
    if not isinstance(asked, TimingCondition):
        raise SchemaError(
            f"{argument('condition')} must be a TimingCondition(predicate, confidence), such as"
            f" TimingCondition(within('0s', '3s'), 0.9) (found {found_instead(asked)})."
        )
    try:
        join = JoinArguments(
            asked, left_time=left_time, right_time=right_time, by=by,
            left_columns=left_columns, right_columns=right_columns, how=how, emit=emit,
            probability=probability, backend=backend, options=options, is_one_stream=right_delay is None,
            where=where, prefer=prefer, k=k, matching=matching,
        )  # fmt: skip
    except OneStreamError as error:
        raise ConditionError(f"{argument('right_delay')} is missing, or else {error}") from None
    check_no_most(options, "a stream has no end")
    if join.has_open_window:
        raise ConditionError(
            f"a stream keeps events as long as its window reaches, and {asked.predicate} reaches without"
            f" end. Give both ends, such as {argument('within', ('-1h', '0s'))}."
        )
    asked_of_streams = StreamArguments(join, left_delay, right_delay, left_ahead, right_ahead)
    return StreamJoin(asked_of_streams, (left_schema, right_schema))


T = TypeVar("T")
_log = logging.getLogger(__name__)

_Events = tuple[LiveEvents, LiveEvents]


class ResilientLiveBlocks:
    """Used as `LiveBlocks`. Nothing is done by halves on the GPU, so that the CPU can do it again.

    A copy, or what is unpickled, chooses its backend anew, where it is made: its events travel by way
    of host memory.
    """

    def __init__(self, algorithm: Deferred, backend: str, events: _Events | None = None) -> None:
        self._algorithm = algorithm
        self._backend = backend
        try:
            self._live = self._made(events)
            return
        except MemoryBudgetError as error:
            self._warn(error)
        self._live = self._made(events)

    def __reduce__(self) -> tuple[Any, ...]:
        return ResilientLiveBlocks, (self._algorithm, self._backend, self._events())

    @property
    def counts(self) -> np.ndarray:
        """As `LiveBlocks`, like all that follow."""
        return self._live.counts

    def shapes(self, side: int) -> np.ndarray:
        """Shapes of the live events of a side."""
        return self._live.shapes(side)

    def events(self, side: int) -> LiveEvents:
        """A copy of the live events of a side, in host memory."""
        return self._live.events(side)

    def reserve(self, extra: int) -> None:
        """Have room for more events."""
        self._do(lambda live: live.reserve(extra))

    def reclassed(self, classes: tuple[ShapeClasses, ShapeClasses]) -> ResilientLiveBlocks:
        """The same events in other length classes."""
        live = self._do(lambda live: live.reclassed(classes))
        made = object.__new__(ResilientLiveBlocks)
        vars(made).update(vars(self) | {"_live": live})
        return made

    def evaluate(self, due: Due) -> tuple[int, np.ndarray, np.ndarray]:
        """Correlate all events that wait."""

        def work(live: LiveBlockStep) -> tuple[int, np.ndarray, np.ndarray]:
            live.reserve(int(due.progress.waiting.max()))
            return live.evaluate(due)

        return self._do(work)

    def let_go(self, progress: Progress, regions: Regions, rules: Rules, tally: np.ndarray) -> None:
        """Let go of obsolete events."""
        self._do(lambda live: live.let_go(progress, regions, rules, tally))

    def _do(self, work: Callable[[LiveBlockStep], T]) -> T:
        try:
            return work(self._live)
        except MemoryBudgetError as error:
            if self._backend == "cpu":
                raise
            self._warn(error)
        # Outside the handler: its traceback would keep the device's arrays.
        self._live = self._made(self._events())
        release_gpu()
        return work(self._live)

    def _warn(self, error: MemoryBudgetError) -> None:
        _log.warning("the CPU takes over: %s", error)
        self._backend = "cpu"

    def _events(self) -> _Events:
        return self._live.events(LEFT), self._live.events(RIGHT)

    def _made(self, events: _Events | None) -> LiveBlockStep:
        package = load_backend(self._backend).__name__
        return import_module(f"{package}.streams").LiveBlocks(self._algorithm, events)
