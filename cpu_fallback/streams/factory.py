"""The one way to make a stream correlator."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

from coincide.condition import TimingCondition, Window
from coincide.errors import ConditionError
from coincide.options import check_choice
from coincide.streams.correlator import StreamCorrelator
from coincide.streams.deferred import ClassedCorrelator, LazyCorrelator
from coincide.streams.live_blocks import Deferred, LiveBlockStep
from coincide.streams.options import Emit, StreamOptions, window_in_ticks
from coincide.streams.sides import MOST_LENGTHS, Side, declared
from coincide.templates.given import Templates
from coincide.templates.table import TemplateTable
from cpu_fallback.streams.immediate import Immediate, ImmediateCorrelator
from cpu_fallback.streams.live_blocks import LiveBlocks

MakeLive = Callable[[Deferred], LiveBlockStep]
"""Makes the live blocks of a lazy algorithm: on the CPU, `LiveBlocks`."""

_MAKERS: dict[str, Callable[[StreamOptions, MakeLive], StreamCorrelator]] = {
    **{
        name: lambda options, _, name=name: ImmediateCorrelator(options, name)  # type: ignore[misc]
        for name in get_args(Immediate)
    },
    "lazy": lambda options, live: LazyCorrelator(options, live("lazy")),
    "lookup": lambda options, live: LazyCorrelator(options, live("lookup")),
    "classes": lambda options, live: ClassedCorrelator(options, live("classes")),
}

ALGORITHMS = tuple(_MAKERS)
"""The papers' Simple, Simple-Sort, Eager, Lazy and Lazy with look-up; then lazy with length classes."""


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
    left_templates: Templates | TemplateTable | None = None,
    right_templates: Templates | TemplateTable | None = None,
    most_lengths: int = MOST_LENGTHS,
    block: int | None = 1000,
    every: int | None = None,
    emit: Emit = "pairs",
    classes: int | None = None,
    response: bool = False,
    live_blocks: MakeLive = LiveBlocks,
) -> StreamCorrelator:
    """Make a stream correlator.

    Parameters
    ----------
    algorithm : {"simple", "simple-sort", "eager", "lazy", "lookup", "classes"}
        What is done to find the pairs; which pairs are found does not depend on it.
    condition : Window or TimingCondition
        On T_right - T_left; durations in ticks.
    left_delay, right_delay : int
        The papers' largest delay of each stream, ticks: how long after its max_time an event may
        arrive.
    left_longest, right_longest, left_shortest, right_shortest : int
        The papers' pi and rho, ticks: limits of the lengths of each stream's timestamps, if they are
        intervals. The longest is needed then.
    left_templates, right_templates : Templates or TemplateTable, optional
        In ticks, of a stream whose timestamps are histograms. Each stream is of one kind, whatever the
        other one is.
    most_lengths : int
        Where one stream has intervals, and the other one histograms: how many different lengths may
        come. Each takes memory for as many entries as there are templates, and keeps it.
    block : int or None
        The lazy algorithms re-evaluate once a side has this many unprocessed events.
    every : int or None
        They also re-evaluate when an event arrives this much stream time, ticks, after the last time.
    emit : {"pairs", "counts"}
        Whether pairs are given out, or only their number.
    classes : int or None
        Length classes a side, of "classes" only; None: a default.
    response : bool
        Whether `StreamStats` tells response times. They take every pair one by one, which costs more
        than finding it where only counts are wanted.
    live_blocks : callable
        What keeps the live events of the lazy algorithms and correlates blocks with them, by the
        algorithm's name. Other backends' have the interface of `LiveBlocks`.

    Returns
    -------
    StreamCorrelator

    Raises
    ------
    ConditionError
        If the algorithm is unknown, the window is empty, a limit is negative, `block` or `every` is
        less than 1, or both are None; if a stream has neither a longest interval nor templates, or both;
        if "lookup" is asked for with templates.
    MemoryBudgetError
        If there are too many pairs of templates.

    Notes
    -----
    Lee & Lee (2010), Algorithms 1 to 7; of histograms, Mok, Woo & Lee (2006), Theorems 3 and 4. Nothing
    here assumes deadlines longer than timestamps.
    """
    check_choice("algorithm", algorithm, ALGORITHMS)
    left = Side("left", left_delay, left_shortest, left_longest, left_templates)
    right = Side("right", right_delay, right_shortest, right_longest, right_templates)
    if algorithm == "lookup" and not (left.templates is None is right.templates):
        raise ConditionError(
            "the look-up table is for intervals on both sides: what it concludes for a neighbour follows"
            " from lengths (Lee & Lee (2010), Corollary 2). Use 'lazy' or 'classes' with templates"
        )
    model, limits = declared(window_in_ticks(condition), left, right, most_lengths)
    options = StreamOptions(
        model=model,
        limits=limits,
        block=block,
        every=every,
        emit=emit,
        classes=classes,
        response=response,
    )
    return _MAKERS[algorithm](options, live_blocks)
