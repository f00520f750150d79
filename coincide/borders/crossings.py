"""A border-crossing event (Definition 2 of the BMQ paper), as numbers and as words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

OUT, IN, PASSED = 0, 1, 2
"""Kind of a crossing in arrays: the stream left the query's range, entered it, or went through it between
two readings, which is told as an `IN` and an `OUT`."""

EVENTS = ("O", "I")
"""The word for each kind, in column `event`."""


class Found(NamedTuple):
    """A chunk of what a search has found.

    Attributes
    ----------
    start, stop : int
        The points that it is of.
    points : int64 array, shape (n,)
        Where each crossing was seen, ascending.
    rows : int32 array, shape (n,)
        Of the queries, in the index.
    events : int8 array, shape (n,)
        `OUT`, `IN` or `PASSED`.
    """

    start: int
    stop: int
    points: np.ndarray
    rows: np.ndarray
    events: np.ndarray


class Crossings(NamedTuple):
    """Crossings of a batch of readings, n of them.

    Attributes
    ----------
    rows : int64 array
        The reading, of the batch, at which each was seen.
    queries : int64 array
        Numbers of the queries.
    events : int8 array
        `OUT` or `IN`.
    min_times, max_times : int64 array
        When it happened: between the reading before and this one.
    instants : int64 array or None
        When a straight move from reading to reading meets the border.
    """

    rows: np.ndarray
    queries: np.ndarray
    events: np.ndarray
    min_times: np.ndarray
    max_times: np.ndarray
    instants: np.ndarray | None


_MAX_TIMES = Crossings._fields.index("max_times")


def in_time(parts: Iterable[Crossings], most: int) -> Iterator[Crossings]:
    """Crossings in order of their max_times, in chunks; of equal ones as they come."""
    found = list(parts)
    if not found:
        return
    *columns, instants = zip(*found, strict=True)
    whole = [np.concatenate(column) for column in columns]
    whole += [] if instants[0] is None else [np.concatenate(instants)]
    times = whole[_MAX_TIMES]
    if (times[1:] < times[:-1]).any():
        order = np.argsort(times, kind="stable")
        whole = [column[order] for column in whole]
    for start in range(0, times.size, most):
        chunk = [column[start : start + most] for column in whole]
        yield Crossings._make(chunk if instants[0] is not None else [*chunk, None])
