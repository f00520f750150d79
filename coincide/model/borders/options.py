"""What border crossings are to say, and how they are found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any, Literal, TypedDict, get_args

import numpy as np

from coincide.model.borders.index import Closed
from coincide.model.borders.moves import EITHER, PEAKS, WALK
from coincide.model.errors import ConditionError, argument, brief
from coincide.model.options import (
    Backend,
    Invalid,
    check_choice,
    check_count,
    check_options,
    check_truth,
)
from coincide.model.units import as_float, name_units

First = Literal["ignore", "outside"]
Processing = Literal["auto", "traversal", "three-sided"]

_PROCESSING = {"auto": EITHER, "traversal": WALK, "three-sided": PEAKS}


@dataclass(frozen=True)
class BorderOptions:
    """Options of `border_crossings` and of all its kin.

    Parameters
    ----------
    first : {"ignore", "outside"}
        What the first reading of a stream says. ``"ignore"``: nothing (Definition 2 of the paper needs a
        reading before it). ``"outside"``: the stream comes from outside all ranges, and enters those that
        hold it at the reading's own time.
    pass_through : bool
        Whether to report a range that a stream crosses between two readings, and that holds neither of
        them. It is an I and an O with the same interval of time. In more than one dimension the stream
        is taken to move in a straight line. The paper cancels them.
    interpolate : bool
        Whether to add the column `crossing_time`: when a stream that moves in a straight line from
        reading to reading meets the border, rounded down to ticks.
    closed : {"left", "right", "both", "neither"}
        Which of its borders a range holds: ``"left"`` is [lower, upper), and ``"both"`` [lower, upper]
        like SQL's BETWEEN.
    hysteresis : float or sequence of float
        How far beyond a border a stream must be to have left, in the unit of the values; one for all
        dimensions, or one for each. A stream has entered as without it.
    processing : {"auto", "traversal", "three-sided"}
        How an index is searched; the answer is the same. ``"traversal"``: border by border (Lemma 1 of
        the paper). ``"three-sided"``: by peaks of the other borders, in O(log N + found).
        ``"auto"``: by the number of borders on the way.
    invalid : {"raise", "drop"}
        What to do with invalid readings (no stream, no time, an infinite value): raise an error, or
        skip and count them. A value that is null or NaN is a gap: the stream is taken to be where it
        was, and gaps are counted.
    unit, tick : str or None
        Like those of `CorrelateOptions`.
    backend : {"auto", "cpu", "gpu"}
    batch_events : int
        Crossings in one output batch.
    threads : int or None
        Threads of one process; None: every core in a single process, one in a Spark worker.
    """

    first: First = "ignore"
    pass_through: bool = False
    interpolate: bool = False
    closed: Closed = "left"
    hysteresis: float | tuple[float, ...] = 0.0
    processing: Processing = "auto"
    invalid: Invalid = "raise"
    unit: str | None = None
    tick: str | None = None
    backend: Backend = "auto"
    batch_events: int = 1 << 18
    threads: int | None = None

    def __post_init__(self) -> None:
        check_choice("first", self.first, get_args(First))
        check_choice("closed", self.closed, get_args(Closed))
        check_choice("processing", self.processing, get_args(Processing))
        check_choice("invalid", self.invalid, get_args(Invalid))
        check_choice("backend", self.backend, get_args(Backend))
        for name in ("pass_through", "interpolate"):
            check_truth(name, getattr(self, name))
        name_units(self, "unit", "tick")
        check_count("batch_events", self.batch_events)
        check_count("threads", self.threads)
        object.__setattr__(self, "hysteresis", _margins(self.hysteresis))
        if self.pass_through and self.has_margin:
            raise ConditionError(
                f"{argument('pass_through', True)} and hysteresis exclude each other. A stream"
                " that crosses a range and stops within the margin behind it has entered, but has"
                " not left. Remove one of them."
            )

    @property
    def has_margin(self) -> bool:
        """Whether there is any hysteresis."""
        return any(self.hysteresis) if isinstance(self.hysteresis, tuple) else self.hysteresis > 0

    def margins(self, dimensions: int) -> np.ndarray:
        """The hysteresis of each dimension: float64 array, shape (d,).

        Raises
        ------
        ConditionError
            If there are margins for another number of dimensions.
        """
        margins = np.array(self.hysteresis, np.float64)
        if margins.size not in (1, dimensions):
            raise ConditionError(
                f"{argument('hysteresis')} has {margins.size} margins, but there are {dimensions}"
                " value columns. Give one margin for all, or one for each."
            )
        return np.broadcast_to(margins, (dimensions,))

    @property
    def walk(self) -> int:
        """`processing` as kernels have it."""
        return _PROCESSING[self.processing]


class BorderWords(TypedDict, total=False):
    """The options of `BorderOptions`, each of which may be an argument of its own."""

    first: First
    pass_through: bool
    interpolate: bool
    closed: Closed
    hysteresis: float | tuple[float, ...]
    processing: Processing
    invalid: Invalid
    unit: str | None
    tick: str | None
    backend: Backend
    batch_events: int
    threads: int | None


def with_words(options: BorderOptions, words: Mapping[str, Any]) -> BorderOptions:
    """Options, in which arguments of their own come first."""
    check_options(options, BorderOptions)
    known = [field.name for field in fields(BorderOptions)]
    for name in words:
        if name not in known:
            raise ConditionError(
                f"there is no argument {name!r}. Use a column, a report, or one of the options"
                f" {', '.join(known)}."
            )
    return replace(options, **words)


def _margins(given: object) -> float | tuple[float, ...]:
    if isinstance(given, (list, tuple)):
        return tuple(_margin(each) for each in given)
    return _margin(given)


def _margin(given: object) -> float:
    margin = as_float(given) if isinstance(given, Real) and not isinstance(given, bool) else -1.0
    if not 0 <= margin < math.inf:
        raise ConditionError(
            f"{argument('hysteresis')} must be a finite number of at least 0, or one number for"
            f" each dimension (found {brief(given)})."
        )
    return margin
