"""What the shapes of a side's events mean, and the model of a pair of sides."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Protocol

import numpy as np

from coincide.condition import Window
from coincide.shape_classes import ShapeClasses
from coincide.templates.table import TemplateTable
from coincide.timestamps import HistogramEvents, IntervalEvents, pairs_model
from coincide.timestamps.protocol import Events, PairModel


class SideModel(Protocol):
    """The timestamps of one side; it travels with every task.

    An event is its max_time and its shape, and its support is [max_time - length, max_time].
    """

    def __hash__(self) -> int: ...

    @property
    def table(self) -> TemplateTable | None:
        """What shapes are numbers of; None of intervals."""

    def lengths(self, shapes: np.ndarray) -> np.ndarray:
        """Lengths of the supports of events: int64 array, shape (n,), ticks."""

    def leans(self, shapes: np.ndarray) -> np.ndarray:
        """How far keys are below doubled max_times, as `Rule.lean`: int64 array, shape (n,)."""

    def before_ends(self, shapes: np.ndarray) -> np.ndarray:
        """How far stamps, or midpoints, are before max_times: int64 array, shape (n,), half ticks."""

    def events(
        self, max_time: np.ndarray, shapes: np.ndarray, group: np.ndarray | None, groups: int
    ) -> Events:
        """Events for a join; parameters as of `coincide.timestamps.IntervalEvents`."""


@dataclass(frozen=True)
class IntervalModel:
    """Uniform on intervals: the shape is the length.

    Parameters
    ----------
    after : int or None
        Ticks from the stamp of an event to its latest time; None: there are no stamps, or these are the
        midpoints.
    """

    after: int | None = None
    table: ClassVar[None] = None

    def lengths(self, shapes: np.ndarray) -> np.ndarray:  # noqa: D102
        return shapes

    def leans(self, shapes: np.ndarray) -> np.ndarray:  # noqa: D102
        return shapes

    def before_ends(self, shapes: np.ndarray) -> np.ndarray:  # noqa: D102
        return shapes if self.after is None else np.full(shapes.size, 2 * self.after)

    def events(  # noqa: D102
        self, max_time: np.ndarray, shapes: np.ndarray, group: np.ndarray | None, groups: int
    ) -> IntervalEvents:
        return IntervalEvents(max_time - shapes, max_time, group, groups)


INTERVALS = IntervalModel()


@dataclass(frozen=True)
class TemplateModel:
    """Template histograms: the shape is the number of the template."""

    table: TemplateTable

    def lengths(self, shapes: np.ndarray) -> np.ndarray:  # noqa: D102
        return self.table.lengths[shapes]

    def leans(self, shapes: np.ndarray) -> np.ndarray:  # noqa: D102
        return self.table.leans[shapes]

    def before_ends(self, shapes: np.ndarray) -> np.ndarray:  # noqa: D102
        return np.zeros(shapes.size, np.int64)

    def events(  # noqa: D102
        self, max_time: np.ndarray, shapes: np.ndarray, group: np.ndarray | None, groups: int
    ) -> HistogramEvents:
        return HistogramEvents(max_time, shapes, self.table, group, groups)


class Bounds(Protocol):
    """How far apart the timestamps of a pair can be."""

    def bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:
        """Bounds on the difference of keys, of which the outer ones hold for all events."""


class Pairs(Bounds, Protocol):
    """The timestamps of two sides and the condition on them, before events are known.

    As `coincide.timestamps.protocol.PairModel`, of which it is a part.
    """

    def for_events(self, left: Events, right: Events) -> tuple[PairModel, Events, Events]:
        """The model for given events, and the events in the shapes that it knows."""

    def reach(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> tuple[int, int]:
        """Least and largest max_time of a target less that of a base event, if a pair can qualify."""


@lru_cache(maxsize=1)  # a solved table may be large
def pair_model(window: Window, left: SideModel, right: SideModel) -> Pairs:
    """The model of two sides and the condition on them.

    The last one is kept: what it has solved serves all slices and tasks of a process.
    """
    return pairs_model(window, left.table, right.table)
