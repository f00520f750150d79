"""Template histograms: Mok, Woo & Lee (2006), Definition 1 and Example 3; tables and bands of them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from operator import index
from typing import Any, NamedTuple

import numpy as np

from coincide.model.classes import ShapeClasses
from coincide.model.compiled import Float64s, Int64s, compiled
from coincide.model.errors import ConditionError, DataError, brief, option
from coincide.model.remembered import remembered
from coincide.model.templates.tails import SatisfactionTimes
from coincide.model.units import (
    NANOSECONDS_PER_UNIT,
    TIME_LIMIT,
    Tick,
    parse_duration,
    plain,
    unit_name,
)

MASS_TOLERANCE = 1e-9
"""How far masses may be from summing to 1."""


@dataclass(frozen=True)
class Template:
    """A histogram: the time is in bucket k, [edges[k], edges[k + 1]], with masses[k], uniform inside.

    An interval is one bucket. A bucket of length 0 is an exact instant, a gap is a bucket of mass 0.
    """

    edges: tuple[int, ...]  # Ends of the buckets, ticks, not falling
    masses: tuple[float, ...]
    observed: bool = False  # What the edges are relative to
    name: str = ""  # For errors

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
        """A template from delays: an event seen at t took place at t less its delay."""
        # Example 3: of delays (0, 10, 0.6), (10, 20, 0.3), (20, 40, 0.1) an event seen at 40 was in
        # (30, 40) with 0.6.
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
                f"{self._words}: an edge must be a whole number of ticks (found {brief(edge)})."
            ) from error
        if abs(ticks) >= TIME_LIMIT // 2:
            raise DataError(
                f"{self._words}: the edge {brief(ticks)} reaches 2^60 ticks. Use a coarser tick."
            )
        return ticks

    def _mass(self, mass: object) -> float:
        try:
            value = float(mass)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(
                f"{self._words}: a mass must be a number (found {brief(mass)})."
            ) from error
        if not 0.0 <= value < math.inf:
            raise DataError(
                f"{self._words}: a mass is a probability, so at least 0 (found {brief(mass)})."
            )
        return value

    def _check(self) -> None:
        if not self.masses or len(self.edges) != len(self.masses) + 1:
            raise DataError(
                f"{self._words}: n buckets have n + 1 edges and n masses, n at least 1 (found"
                f" {len(self.edges)} edges and {len(self.masses)} masses)."
            )
        for low, high in zip(self.edges, self.edges[1:], strict=False):
            if low > high:
                raise DataError(f"{self._words}: edges must not fall (found {high} after {low}).")
        total = math.fsum(self.masses)
        if abs(total - 1.0) > MASS_TOLERANCE:
            raise DataError(
                f"{self._words}: the masses must sum to 1 (found {total:.12g}). If they are"
                " counts, divide them by their sum."
            )


class Buckets(NamedTuple):
    """The buckets of all templates of a table, as kernels take them."""

    starts: Int64s  # int64, shape (n + 1,)
    edges: Int64s  # int64, shape (edges,): ticks, relative to the template's max
    masses: Float64s  # float64, shape (edges,)
    densities: Float64s  # float64, shape (edges,)
    beyond: Float64s  # float64, shape (edges,)


@dataclass(frozen=True, eq=False)
class TemplateTable:
    """Template histograms in ticks: Mok, Woo & Lee (2006), Definition 4. Made by `template_table`.

    Equal tables are those of equal content, so that what has been solved for one serves the other.
    """

    ids: tuple[str, ...]  # Names of the templates
    starts: np.ndarray  # int64: as `Buckets`
    edges: np.ndarray  # int64: the last edge of each template is 0
    given: np.ndarray  # float64, shape (edges,)
    offsets: np.ndarray  # int64, shape (n,)

    def __len__(self) -> int:
        return self.starts.size - 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TemplateTable) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __getstate__(self) -> dict[str, object]:
        fields = ("ids", "starts", "edges", "given", "offsets")
        return {name: getattr(self, name) for name in fields}  # what can be made again stays here

    @classmethod
    def of_lengths(cls, lengths: np.ndarray) -> TemplateTable:
        """Intervals of these lengths, as histograms of one bucket."""
        n = lengths.size
        edges = np.zeros(2 * n, np.int64)
        edges[::2] = -lengths
        given = np.zeros(2 * n)
        given[::2] = 1.0
        return cls((), 2 * np.arange(n + 1), edges, given, np.zeros(n, np.int64))

    @remembered
    def digest(self) -> bytes:
        """A hash of the content."""
        found = hashlib.sha256(repr(self.ids).encode())
        for array in (self.starts, self.edges, self.given, self.offsets):
            found.update(array.tobytes())
        return found.digest()

    @remembered
    def lengths(self) -> np.ndarray:
        """Lengths of the templates, last edge less first: int64 array, shape (n,), ticks."""
        return -self.edges[self.starts[:-1]]

    @remembered
    def buckets(self) -> Buckets:
        """The buckets, normalised."""
        return Buckets(self.starts, self.edges, *_normalised(self.starts, self.edges, self.given))

    @remembered
    def exact_masses(self) -> np.ndarray:
        """Masses of `buckets`, each within a few units of 2**-53 of itself: float64 array, (edges,)."""
        if (np.diff(self.starts) == 2).all():  # intervals, which may be many
            return (self.given > 0.0).astype(np.float64)
        runs = np.split(self.given, self.starts[1:-1])
        return np.concatenate([run / math.fsum(run) for run in runs])

    @remembered
    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean, relative to max, and standard deviation of each: float64 arrays, shape (n,), ticks."""
        return _moments(self.buckets)

    @remembered
    def leans(self) -> np.ndarray:
        """How far twice the mean is below twice the max: int64 array, shape (n,), half ticks."""
        return np.rint(-2.0 * self.moments[0]).astype(np.int64)

    @remembered
    def spreads(self) -> np.ndarray:
        """Standard deviations, rounded up: int64 array, shape (n,), ticks."""
        return np.ceil(self.moments[1]).astype(np.int64)

    @remembered
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.ids)}

    def numbered(self, ids: Sequence[str | None]) -> np.ndarray:
        """The number of the template of each id, -1 where it has no template."""
        return np.array([self._numbers.get(name, -1) for name in ids], np.int64)  # type: ignore[arg-type]

    def joined(self, more: TemplateTable) -> TemplateTable:
        """Another table after this one: numbers stay."""
        twice = set(self.ids) & set(more.ids)
        if twice:
            raise DataError(
                f"the template {brief(min(twice))} is in both tables. Give it one id, once."
            )
        return TemplateTable(
            self.ids + more.ids,
            np.concatenate([self.starts, self.starts[-1] + more.starts[1:]]),
            *(
                np.concatenate([getattr(each, name) for each in (self, more)])
                for name in ("edges", "given", "offsets")
            ),
        )

    def only(self, numbers: np.ndarray) -> TemplateTable:
        """Some of the templates, numbered anew in this order: an int64 array."""
        sizes = np.diff(self.starts)[numbers]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        places = np.repeat(self.starts[:-1][numbers] - starts[:-1], sizes) + np.arange(starts[-1])
        ids = tuple(self.ids[number] for number in numbers) if self.ids else ()
        return TemplateTable(
            ids, starts, self.edges[places], self.given[places], self.offsets[numbers]
        )


def template_table(templates: Mapping[str, Template]) -> TemplateTable:
    """A table of checked templates, in ticks. Templates of near spread become neighbours."""
    if not templates:
        raise DataError("the table of templates is empty. Give at least one histogram.")
    each = list(templates.values())
    sizes = [len(template.edges) for template in each]
    edges = np.array([edge - t.edges[-1] for t in each for edge in t.edges], np.int64)
    given = np.array([mass for t in each for mass in (*t.masses, 0.0)], np.float64)
    offsets = np.array([t.edges[-1] if t.observed else 0 for t in each], np.int64)
    table = TemplateTable(
        tuple(templates), np.concatenate([[0], np.cumsum(sizes)]), edges, given, offsets
    )
    return table.only(np.argsort(table.moments[1], kind="stable"))


@compiled(allocates=True)
def _normalised(starts, edges, given):
    masses, densities, beyond = (
        np.zeros(given.size),
        np.zeros(given.size),
        np.zeros(given.size),
    )
    for i in range(starts.size - 1):
        total = 0.0
        for e in range(starts[i], starts[i + 1]):
            total += given[e]
        above = 0.0
        for back in range(starts[i + 1] - starts[i]):
            e = starts[i + 1] - 1 - back
            masses[e] = given[e] / total
            if back and edges[e] < edges[e + 1]:
                densities[e] = masses[e] / float(edges[e + 1] - edges[e])
            above += masses[e]
            beyond[e] = above
    return masses, densities, beyond


@compiled(allocates=True)
def _moments(buckets):
    n = buckets.starts.size - 1
    means, deviations = np.empty(n), np.empty(n)
    for i in range(n):
        mean = 0.0
        for e in range(buckets.starts[i], buckets.starts[i + 1] - 1):
            mean += (
                buckets.masses[e] * 0.5 * (float(buckets.edges[e]) + float(buckets.edges[e + 1]))
            )
        square = 0.0
        for e in range(buckets.starts[i], buckets.starts[i + 1] - 1):
            middle = 0.5 * (float(buckets.edges[e]) + float(buckets.edges[e + 1])) - mean
            width = float(buckets.edges[e + 1] - buckets.edges[e])
            square += buckets.masses[e] * (middle * middle + width * width / 12.0)
        means[i], deviations[i] = mean, np.sqrt(square)
    return means, deviations


Edge = int | float | Decimal | str
"""A number counts `unit`; a string is a duration such as ``"40ms"``."""


@dataclass(frozen=True)
class GivenTemplate:
    """One template.

    Parameters
    ----------
    edges : tuple of int, float, Decimal or str, length n + 1
        Ends of the buckets, not falling. Timedeltas become strings.
    masses : tuple of float, length n
        Probabilities of the buckets, summing to 1.
    delays : bool
        Whether the edges are delays of detection: an event seen at t took place at t less its delay.
        Else the last edge comes to lie at the time that an event carries.
    """

    edges: tuple[Edge, ...]
    masses: tuple[float, ...]
    delays: bool = False

    def __post_init__(self) -> None:
        edges: tuple[Any, ...] = self.edges
        # NumPy's timedeltas call themselves integers.
        if any(isinstance(edge, timedelta | np.timedelta64) for edge in edges):
            object.__setattr__(self, "edges", tuple(map(_as_text, edges)))


@dataclass(frozen=True)
class Templates:
    """A table of template histograms (Mok, Woo & Lee, 2006, Definition 4), by their ids.

    Parameters
    ----------
    given : mapping of str to GivenTemplate
    unit : str or None
        The unit of edges that are numbers: ``"ns"`` ... ``"d"``. None: the ticks of the join's time
        columns.

    Raises
    ------
    ConditionError
        If the unit is unknown.
    DataError
        If there is no template, or one of them makes no histogram.
    """

    given: Mapping[str, GivenTemplate]
    unit: str | None = None

    def __post_init__(self) -> None:
        if self.unit is not None:
            object.__setattr__(self, "unit", unit_name(self.unit))
        if not self.given:
            raise DataError("the table of templates is empty. Give at least one histogram.")

    def __len__(self) -> int:
        return len(self.given)

    def table(self, tick: Tick) -> TemplateTable:
        """The templates in ticks; edges are rounded to whole ones.

        Parameters
        ----------
        tick : Tick
            The tick of the time columns that are joined.

        Raises
        ------
        DataError
            If a template makes no histogram.
        ConditionError
            If an edge has a unit, and the time columns are plain numbers of unknown unit.
        """
        return template_table({name: self._in_ticks(name, tick) for name in self.given})

    def _in_ticks(self, name: str, tick: Tick) -> Template:
        given = self.given[name]
        edges = [self._ticks(name, edge, tick) for edge in given.edges]
        make = Template.of_delays if given.delays else Template
        return make(edges, given.masses, name=name)

    def _ticks(self, name: str, edge: Edge, tick: Tick) -> int:
        if isinstance(edge, str):
            return self._of_nanoseconds(name, _duration(name, edge), tick)
        number = _exact(edge)
        if number is None:
            raise DataError(
                f"template {brief(name)}: an edge must be a finite number or a duration such as"
                f" '40ms' (found {brief(edge)})."
            )
        if self.unit is not None:
            return self._of_nanoseconds(name, number * NANOSECONDS_PER_UNIT[self.unit], tick)
        if number.denominator != 1:
            raise ConditionError(
                f"template {brief(name)}: the edge {edge} is not a whole number of ticks. Give"
                " the unit of the edges (unit='s')."
            )
        return int(number)

    def _of_nanoseconds(self, name: str, nanoseconds: Fraction, tick: Tick) -> int:
        if tick.nanoseconds is None:
            raise ConditionError(
                f"template {brief(name)}: its edges have a unit, but the unit of the time columns"
                " is unknown, as they hold plain numbers. Give the unit of the columns, for"
                f" example {option('unit', 'us')}."
            )
        return round(nanoseconds / tick.nanoseconds)


def _as_text(edge: Any) -> Edge:
    return plain(edge) if isinstance(edge, timedelta | np.timedelta64) else edge


def comparable(name: str, edge: Any) -> Any:
    """An edge by which buckets are ordered: a duration in nanoseconds, a number as it is."""
    return _duration(name, edge) if isinstance(edge, str) else edge


def _duration(name: str, edge: str) -> Fraction:
    try:
        return parse_duration(edge)
    except ConditionError as error:
        raise ConditionError(f"template {brief(name)}: {error}") from error


def _exact(edge: object) -> Fraction | None:
    """A number exactly; None for what is no finite number."""
    if isinstance(edge, bool):
        return None
    if isinstance(edge, Rational):
        return Fraction(int(edge.numerator), int(edge.denominator))  # NumPy's would overflow
    if isinstance(edge, Decimal):
        return Fraction(edge) if edge.is_finite() else None
    return Fraction(float(edge)) if isinstance(edge, Real) and math.isfinite(edge) else None


_FAR = np.int64(2**62)


def class_bands(
    table: SatisfactionTimes,
    left: ShapeClasses,
    right: ShapeClasses,
    left_leans: np.ndarray,
    right_leans: np.ndarray,
) -> np.ndarray:
    """Bounds on the difference of keys, right less left, in half ticks, by pair of classes."""
    arrays = table.first, table.last, table.gap_starts, table.gap_first, table.gap_last
    ends = (left.lowest, left.highest), (right.lowest, right.highest)
    return _extremes(arrays, *ends, left_leans, right_leans)


def class_extremes(
    table: SatisfactionTimes, left: ShapeClasses, right: ShapeClasses
) -> tuple[int, int]:
    """The least and the largest s that qualifies with some pair of templates of the classes, ticks."""
    block = (
        slice(int(left.lowest[0]), int(left.highest[-1]) + 1),
        slice(int(right.lowest[0]), int(right.highest[-1]) + 1),
    )
    first, last = table.first[block], table.last[block]
    some = first <= last
    if not some.any():
        return 0, 0
    return int(first[some].min()), int(last[some].max())


@compiled(allocates=True)
def _extremes(table, left, right, left_leans, right_leans):
    first, last, has_gaps = table[0], table[1], table[2].size > 0
    bands = np.empty((left[0].size, right[0].size, 4), np.int64)
    for a in range(left[0].size):
        for b in range(right[0].size):
            outer_lo, outer_hi = _FAR, -_FAR
            inner_lo, inner_hi = -_FAR, _FAR
            for i in range(left[0][a], left[1][a] + 1):
                for j in range(right[0][b], right[1][b] + 1):
                    # Selections, not branches: several pairs are looked at together.
                    low, high = first[i, j], last[i, j]
                    some, lean = low <= high, left_leans[i] - right_leans[j]
                    outer_lo = min(outer_lo, 2 * low + lean if some else _FAR)
                    outer_hi = max(outer_hi, 2 * high + lean if some else -_FAR)
                    if has_gaps:
                        low, high = _widest(table, i, j)
                    inner_lo = max(inner_lo, 2 * low + lean if some else _FAR)
                    inner_hi = min(inner_hi, 2 * high + lean if some else -_FAR)
            if outer_lo > outer_hi:
                outer_lo, outer_hi = np.int64(0), np.int64(-1)
            if inner_lo > inner_hi:
                inner_lo, inner_hi = outer_lo, outer_lo - 1
            bands[a, b, 0], bands[a, b, 1] = outer_lo, inner_lo
            bands[a, b, 2], bands[a, b, 3] = inner_hi, outer_hi
    return bands


@compiled(forceinline=True)
def _widest(table, i, j):
    """The widest range of a pair, which may be taken unseen."""
    first, last, gap_starts, gap_first, gap_last = table
    low, high = first[i, j], last[i, j]
    pair = i * first.shape[1] + j
    best_low, best_high, start = low, low - 1, low
    for gap in range(gap_starts[pair], gap_starts[pair + 1]):
        if gap_first[gap] - 1 - start > best_high - best_low:
            best_low, best_high = start, gap_first[gap] - 1
        start = gap_last[gap] + 1
    if high - start > best_high - best_low:
        best_low, best_high = start, high
    return best_low, best_high
