"""What a model of timestamps gives the stream correlators besides what it gives a join."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from coincide.shape_classes import ShapeClasses

if TYPE_CHECKING:
    from coincide.streams.intake import Intake
    from coincide.streams.options import SideLimits


class StreamModel(Protocol):
    """The timestamps of two streams and the condition on them: every shape within its limits may come.

    What it shares with a `coincide.timestamps.protocol.PairModel` means the same there.
    """

    def bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:
        """Bounds on the key of a target less that of a base event, by their classes."""

    def reach(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> tuple[int, int]:
        """Least and largest max_time of a target less that of a base event, if a pair can qualify."""

    def top_leans(self, side: int, classes: ShapeClasses) -> np.ndarray:
        """Largest lean of the shapes of each class, half ticks."""

    def intake(self, limits: tuple[SideLimits, SideLimits]) -> Intake:
        """What checks the events of one correlator and makes shapes of them."""

    def base_bins(self, side: int, limits: SideLimits) -> ShapeClasses:
        """Narrow ranges of all shapes of a side, to bound the `max_time_bands` of each."""

    def max_time_bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:
        """As `bands`, on the doubled max_time of a target less the key of a base event.

        Parameters
        ----------
        base_side : int
        own : ShapeClasses
            K1 of base events.
        other : ShapeClasses
            One, of all targets.

        Returns
        -------
        int64 array, shape (K1, 4)
        """

    def stream_classes(
        self, side: int, seen: np.ndarray, most: int | None, limits: tuple[int, int]
    ) -> ShapeClasses:
        """Classes of a side, good for the shapes seen, which hold every shape within the limits.

        Parameters
        ----------
        side : int
        seen : int64 array, shape (n,)
            Shapes of the events so far; n > 0.
        most : int or None
            Upper limit on classes of shapes that were seen; None: a default.
        limits : (int, int)
            Least and largest shape of the side.
        """

    def certainty(self, left: ShapeClasses, right: ShapeClasses) -> float | None:
        """The probability from which on a look-up table may tell that a pair qualifies.

        Parameters
        ----------
        left, right : ShapeClasses
            One each, of all events.

        Returns
        -------
        float or None
            None where it tells nothing: Lee & Lee (2010), Corollary 2, speaks of intervals, of which
            the shape is the length, and of one end of the window.
        """
