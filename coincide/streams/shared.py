"""What the backends of a stream correlator share: the state that they work on, and what they report.

Arrays have a leading axis of two, the sides. The caller makes them, and backends write into them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coincide.units import TIME_LIMIT

NEVER = -TIME_LIMIT
"""A clock that has not begun."""

(
    EVALUATIONS,
    SURE,
    HITS,
    PAIRS,
    SAMPLES,
    INVALIDATED,
    LATE,
    BUFFER_SUM,
    BUFFER_MAX,
) = (0, 1, 2, 3, 4, 5, 7, 9, 11)
"""Entries of a tally. From INVALIDATED on, one for each side."""
TALLY_SIZE = 13

RESPONSE_SUM, RESPONSE_MAX = range(2)
"""Entries of the response times."""


class Waiting(NamedTuple):
    """Events that wait for the next re-evaluation, in order of arrival; `Progress` has their number.

    Parameters
    ----------
    max_times, shapes, numbers : int64 arrays, shape (2, capacity)
        Ticks; as the timestamps' model gives them; arrival numbers.
    """

    max_times: np.ndarray
    shapes: np.ndarray
    numbers: np.ndarray


class Progress(NamedTuple):
    """How far the streams have come.

    Parameters
    ----------
    clock : int64 array, shape (2,)
        Latest arrival instant of each side, ticks; NEVER before the first.
    arrived, waiting : int64 arrays, shape (2,)
        Events arrived, and those not yet processed.
    evaluated_at : int64 array, shape (1,)
        Time of the last re-evaluation, ticks.
    """

    clock: np.ndarray
    arrived: np.ndarray
    waiting: np.ndarray
    evaluated_at: np.ndarray


class Rules(NamedTuple):
    """The options that kernels need.

    Parameters
    ----------
    pair_rule : NamedTuple
        Decides pairs: `coincide.timestamps.protocol.Rule`.
    lookup : bool
        Whether a look-up table may spare evaluations.
    certain : float
        The probability from which on it may: `StreamModel.certainty`.
    delays : int64 array, shape (2,)
        Ticks.
    block, every : int
        The re-evaluation condition: events of a side, ticks.
    pairs : bool
        Whether to write pairs, or only count them.
    response : bool
        Whether to note response times.
    """

    pair_rule: Any
    lookup: bool
    certain: float
    delays: np.ndarray
    block: int
    every: int
    pairs: bool
    response: bool


class Regions(NamedTuple):
    """Where the targets of a base event lie, per base side, class of the base and class of targets.

    Parameters
    ----------
    bands : int64 array, shape (2, K1, K2, 4)
        Bounds on (key of a target, or its doubled max_time) - (key of the base event), half ticks,
        inclusive: outer low, inner low, inner high, outer high. An empty range has its high one
        below its low.
    tops : int64 array, shape (2, K1)
        Largest shape of each class of a base side.
    target_tops : int64 array, shape (2, K2)
        Largest shape of each class of a side's targets.
    keep : int64 array, shape (2, K2)
        A target is obsolete when its key is below this much from twice the smallest max_time that can
        still come on the base side: L_H(e_inv), Lee & Lee (2010), Algorithm 2.
    """

    bands: np.ndarray
    tops: np.ndarray
    target_tops: np.ndarray
    keep: np.ndarray


class LiveEvents(NamedTuple):
    """The live events of one side, by class, ascending by key within.

    Parameters
    ----------
    keys : int64 array, shape (n,)
        Half ticks: as the timestamps' model gives them, or doubled max_times (the papers' order).
    shapes : int64 array, shape (n,)
    numbers : int64 array, shape (n,)
        Arrival numbers.
    offsets : int64 array, shape (K + 1,)
        First event of each class.
    """

    keys: np.ndarray
    shapes: np.ndarray
    numbers: np.ndarray
    offsets: np.ndarray
