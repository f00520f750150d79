"""What a model of timestamps gives a join: how its events are sorted, classed, banded and decided.

An event reaches the kernels as a *key*, in half ticks, by which it is sorted, and a *shape*, an int64
that says all else: of an interval its length, of a template its number. Kernels meet the model in two
named tuples, whose type Numba dispatches on (`coincide.timestamps.dispatch`): the `Times` of a side
give keys and shapes, and the `Rule` decides a pair. Everything else is asked for before a kernel runs.

The two sides may be of different models: a `PairModel` is one of a pair, and is told of which side a
shape is.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import numpy as np

from coincide.class_choice import Population
from coincide.shape_classes import ShapeClasses

T = TypeVar("T")


class Rule(Protocol):
    """Decides pairs: a NamedTuple of numbers, C-contiguous arrays and such tuples, annotated as such.

    Its methods are compiled into the kernels, and run as they are where nothing is compiled: they may
    call what `coincide.compiled` has made. `s` is always max_right - max_left, ticks, and `left` and
    `right` are the shapes of the two events, whichever of the two is the base.
    """

    def lean(self, side: int, shape: T) -> T:
        """How far an event's key is below its doubled max_time, half ticks; of a shape or an array."""

    def qualifies(self, s: int, left: int, right: int) -> bool:
        """Whether a pair meets the timing condition: the decision, wherever bands leave doubt."""

    def probability(self, s: int, left: int, right: int) -> float:
        """The satisfaction probability of a pair: float64."""

    def merit(self, s: int, left: int, right: int) -> float:
        """By what pairs that qualify are ranked: the satisfaction probability, of histograms rounded.

        Below 0 for a pair that does not qualify.
        """

    def distance(self, s: int, left: int, right: int) -> np.uint64:
        """How far a pair is from the middle of the window, half ticks: the nearest of equals is best."""


class Times(Protocol):
    """Timestamps of one side: a NamedTuple of arrays, in host or in device memory."""

    def key_at(self, row: int) -> int:
        """The key of one event, half ticks, in a kernel."""

    def shape_at(self, row: int) -> int:
        """Its shape."""

    def keys(self) -> Any:
        """Keys of all events: int64 array, shape (n,), in the memory that the timestamps are in."""

    def shapes(self) -> Any:
        """Shapes of all events: int64 array, shape (n,)."""

    def of(self, rows: np.ndarray) -> Times:
        """The timestamps of some events, in host memory."""


class Events(Protocol):
    """Events of one side."""

    @property
    def times(self) -> Any:
        """Their `Times`, in host memory."""

    @property
    def group(self) -> np.ndarray | None:
        """Dense code of the event's keys, negative for none: int64 array, shape (n,); None: one group."""

    @property
    def groups(self) -> int:
        """Number of codes, above every code."""

    def __len__(self) -> int: ...


class PairModel(Protocol):
    """The timestamps of two sides and the condition on them."""

    @property
    def rule(self) -> Any:
        """The `Rule`, its arrays in host memory."""

    def for_events(self, left: Events, right: Events) -> tuple[PairModel, Events, Events]:
        """The model for given events, and the events in the shapes that it knows: asked before a join."""

    def choose_classes(
        self, left: Population, right: Population, groups: int, classes: int | None
    ) -> tuple[ShapeClasses, ShapeClasses]:
        """Classes of both sides of a join, which hold every shape that occurs.

        Parameters
        ----------
        left, right : Population
        groups : int
            Number of codes of keys.
        classes : int or None
            Most classes a side; None: as many as pay.
        """

    def bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:
        """Bounds on the key of a target less that of a base event, by their classes.

        Parameters
        ----------
        base_side : int
        own, other : ShapeClasses
            K1 of base events, K2 of targets.

        Returns
        -------
        int64 array, shape (K1, K2, 4)
            As `coincide.bands.band_table`. Between inner low and inner high every pair qualifies;
            below outer low and above outer high none does.
        """

    def reach(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> tuple[int, int]:
        """Least and largest max_time of a target less that of a base event, if a pair can qualify.

        Ticks; of any shapes of these classes.
        """

    def top_leans(self, side: int, classes: ShapeClasses) -> np.ndarray:
        """Largest lean of the shapes of each class, half ticks: int64 array, shape (K,)."""
