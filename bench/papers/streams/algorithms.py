"""Makes a stream correlator of any algorithm of the paper, and the one with classes."""

from __future__ import annotations

from typing import Any, get_args

from bench.papers.streams.correlator import (
    DEFERRED,
    MakeLive,
    StreamCorrelator,
    deferred_correlator,
)
from bench.papers.streams.immediate import Immediate, ImmediateCorrelator
from bench.papers.streams.live_blocks import LiveBlocks
from bench.papers.streams.models import stream_options
from coincide.model.condition import TimingCondition, Window
from coincide.model.options import check_choice

ALGORITHMS = (*get_args(Immediate), *DEFERRED)
"""The paper's Simple, Simple-Sort, Eager, Lazy and Lazy with look-up; then lazy with length classes."""


def stream_correlator(
    algorithm: str,
    condition: Window | TimingCondition,
    *,
    live_blocks: MakeLive = LiveBlocks,
    **given: Any,
) -> StreamCorrelator:
    """Make a stream correlator. Which pairs it finds does not depend on the algorithm.

    Parameters
    ----------
    algorithm : str
        One of `ALGORITHMS`.
    condition : Window or TimingCondition
        On T_right - T_left; durations in ticks.
    live_blocks : callable
        Makes what keeps the live events of "lazy", "lookup" and "classes": in host memory, or as
        `bench.papers.streams.gpu.live_blocks.LiveBlocks` on a GPU. Answers and counters are the same.
    **given
        As `stream_options` takes them.
    """
    check_choice("algorithm", algorithm, ALGORITHMS)
    options = stream_options(condition, **given)
    if algorithm in DEFERRED:
        return deferred_correlator(algorithm, options, live_blocks)
    return ImmediateCorrelator(options, algorithm)
