"""What the shapes of a side's events mean, and the model of a pair of sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from coincide.condition import Window
from coincide.timestamps import IntervalEvents, IntervalPairs
from coincide.timestamps.protocol import Events, PairModel


class SideModel(Protocol):
    """The timestamps of one side; it travels with every task.

    An event is its max_time and its shape, and its support is [max_time - length, max_time].
    """

    def lengths(self, shapes: np.ndarray) -> np.ndarray:
        """Lengths of the supports of events: int64 array, shape (n,), ticks."""

    def leans(self, shapes: np.ndarray) -> np.ndarray:
        """How far keys are below doubled max_times, as `Rule.lean`: int64 array, shape (n,)."""

    def events(
        self, max_time: np.ndarray, shapes: np.ndarray, group: np.ndarray | None, groups: int
    ) -> Events:
        """Events for a join; parameters as of `coincide.timestamps.IntervalEvents`."""


@dataclass(frozen=True)
class IntervalModel:
    """Uniform on intervals: the shape is the length."""

    def lengths(self, shapes: np.ndarray) -> np.ndarray:  # noqa: D102
        return shapes

    def leans(self, shapes: np.ndarray) -> np.ndarray:  # noqa: D102
        return shapes

    def events(  # noqa: D102
        self, max_time: np.ndarray, shapes: np.ndarray, group: np.ndarray | None, groups: int
    ) -> IntervalEvents:
        return IntervalEvents(max_time - shapes, max_time, group, groups)


INTERVALS = IntervalModel()


def pair_model(window: Window, left: SideModel, right: SideModel) -> PairModel:
    """The model of two sides and the condition on them."""
    return IntervalPairs(window)
