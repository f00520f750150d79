"""What a backend gives the lazy correlators: live events, and the step that correlates a block."""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np

from coincide.shape_classes import ShapeClasses
from coincide.streams.shared import LiveEvents, Progress, Regions, Rules, Waiting

Deferred = Literal["lazy", "lookup", "classes"]
"""The algorithms that correlate a block at a time."""


class LiveBlockStep(Protocol):
    """The live events of both sides, wherever they are kept.

    A method that raises MemoryError has changed nothing, but for `evaluate`, whose backend says.
    """

    @property
    def counts(self) -> np.ndarray:
        """Live events, left and right: int64 array, shape (2,)."""

    def shapes(self, side: int) -> np.ndarray:
        """Shapes of the live events of a side: int64 array, shape (n,)."""

    def reserve(self, extra: int) -> None:
        """Have room for `extra` more events a class, and give back what is far too much."""

    def reclassed(self, classes: tuple[ShapeClasses, ShapeClasses]) -> LiveBlockStep:
        """The same events in other classes, of the left and the right side."""

    def evaluate(
        self,
        waiting: Waiting,
        progress: Progress,
        regions: Regions,
        rules: Rules,
        tally: np.ndarray,
        response: np.ndarray,
        left_out: np.ndarray,
        right_out: np.ndarray,
    ) -> tuple[int, np.ndarray, np.ndarray]:
        """Correlate all events that wait, keep them, and let go of obsolete ones.

        Parameters
        ----------
        waiting : Waiting
        progress : Progress, written
        regions : Regions
        rules : Rules
        tally, response : arrays, written
            From `coincide.streams.statistics`.
        left_out, right_out : int64 arrays, written
            Room for pairs; its size does not matter. Empty if the rules ask for counts.

        Returns
        -------
        int
            Pairs found.
        two int64 arrays
            `left_out` and `right_out`, or larger ones.
        """

    def let_go(self, progress: Progress, regions: Regions, rules: Rules, tally: np.ndarray) -> None:
        """Let go of obsolete events. Parameters as `evaluate`."""

    def events(self, side: int) -> LiveEvents:
        """A copy of the live events of a side, in host memory."""
