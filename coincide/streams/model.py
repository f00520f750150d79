"""What a model of timestamps gives the stream correlators besides what it gives a join."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from coincide.shape_classes import ShapeClasses
from coincide.timestamps.protocol import PairModel


class StreamModel(PairModel, Protocol):
    """A `PairModel` for streams, of which every shape within declared limits may come."""

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
