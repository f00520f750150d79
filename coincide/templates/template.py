"""One template histogram: Mok, Woo & Lee (2006), Definition 1 and Example 3."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import index

from coincide.errors import DataError, brief
from coincide.units import TIME_LIMIT

MASS_TOLERANCE = 1e-9
"""How far masses may be from summing to 1."""


@dataclass(frozen=True)
class Template:
    """A histogram: the time is in bucket k, [edges[k], edges[k + 1]], with masses[k], uniform inside.

    An interval is one bucket. A bucket of length 0 is an exact instant, a gap is a bucket of mass 0.

    Parameters
    ----------
    edges : sequence of int, length n + 1
        Ends of the buckets, ticks, not falling.
    masses : sequence of float, length n
        Probability of each bucket: not negative, and summing to 1 (to 1e-9; then normalised).
    observed : bool
        What the edges are relative to. True: to the time that an event carries, as delays turned round
        are. False: only to one another, and an event's time is where the last edge comes to lie.
    name : str
        For errors.

    Raises
    ------
    DataError
        If edges fall, a mass is negative or not finite, or masses do not sum to 1.
    """

    edges: tuple[int, ...]
    masses: tuple[float, ...]
    observed: bool = False
    name: str = ""

    def __init__(
        self,
        edges: Sequence[int],
        masses: Sequence[float],
        *,
        observed: bool = False,
        name: str = "",
    ) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "observed", bool(observed))
        object.__setattr__(self, "edges", tuple(self._edge(edge) for edge in edges))
        object.__setattr__(self, "masses", tuple(self._mass(mass) for mass in masses))
        self._check()

    @classmethod
    def of_delays(
        cls, edges: Sequence[int], masses: Sequence[float], *, name: str = ""
    ) -> Template:
        """A template from delays: an event seen at t took place at t less its delay.

        Example 3: of delays (0, 10, 0.6), (10, 20, 0.3), (20, 40, 0.1) an event seen at 40 was in
        (30, 40) with 0.6.

        Parameters
        ----------
        edges, masses, name
            As `Template`, of delays.
        """
        # Checked as given, so that an error speaks of what was given.
        given = cls(edges, masses, name=name)
        mirrored = tuple(-edge for edge in reversed(given.edges))
        return cls(mirrored, tuple(reversed(given.masses)), observed=True, name=name)

    @property
    def length(self) -> int:
        """From the first edge to the last, ticks."""
        return self.edges[-1] - self.edges[0]

    @property
    def _words(self) -> str:
        return f"template {brief(self.name)}" if self.name else "the template"

    def _edge(self, edge: object) -> int:
        try:
            ticks = index(edge)  # type: ignore[arg-type]
        except TypeError as error:
            raise DataError(
                f"{self._words}: an edge must be a whole number of ticks; found {brief(edge)}"
            ) from error
        if abs(ticks) >= TIME_LIMIT // 2:
            raise DataError(f"{self._words}: the edge {brief(ticks)} reaches 2^60 ticks")
        return ticks

    def _mass(self, mass: object) -> float:
        try:
            value = float(mass)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(
                f"{self._words}: a mass must be a number; found {brief(mass)}"
            ) from error
        if not 0.0 <= value < math.inf:
            raise DataError(
                f"{self._words}: a mass is a probability, at least 0; found {brief(mass)}"
            )
        return value

    def _check(self) -> None:
        if not self.masses or len(self.edges) != len(self.masses) + 1:
            raise DataError(
                f"{self._words}: n buckets have n + 1 edges and n masses, n at least 1; found"
                f" {len(self.edges)} edges and {len(self.masses)} masses"
            )
        for low, high in zip(self.edges, self.edges[1:], strict=False):
            if low > high:
                raise DataError(f"{self._words}: edges must not fall; found {high} after {low}")
        total = math.fsum(self.masses)
        if abs(total - 1.0) > MASS_TOLERANCE:
            raise DataError(
                f"{self._words}: the masses sum to {total:.12g}; they must sum to 1. Divide them by"
                " their sum if they are counts"
            )
