"""A table of template histograms: what a join knows of the timestamps of a side."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from coincide.array_types import Float64s, Int64s
from coincide.compiled import compiled
from coincide.errors import DataError, brief
from coincide.templates.template import Template


class Buckets(NamedTuple):
    """The buckets of all templates of a table, as kernels take them.

    Parameters
    ----------
    starts : int64 array, shape (n + 1,)
        The first edge of each template; it has one edge more than buckets.
    edges : int64 array, shape (edges,)
        Ticks, relative to the template's max.
    masses : float64 array, shape (edges,)
        Of the bucket that begins at each edge, normalised; 0 at the last edge of a template.
    densities : float64 array, shape (edges,)
        Mass by tick of the bucket; 0 for one of length 0.
    beyond : float64 array, shape (edges,)
        Mass of all buckets that begin at or after each edge of the template.
    """

    starts: Int64s
    edges: Int64s
    masses: Float64s
    densities: Float64s
    beyond: Float64s


@dataclass(frozen=True, eq=False)
class TemplateTable:
    """Template histograms in ticks: Mok, Woo & Lee (2006), Definition 4. Made by `template_table`.

    Equal tables are those of equal content, so that what has been solved for one serves the other.

    Parameters
    ----------
    ids : tuple of str
        Names of the templates. A template's number is its place.
    starts, edges : int64 arrays
        As `Buckets`; the last edge of each template is 0.
    given : float64 array, shape (edges,)
        Masses as given, which sum to nearly 1; 0 at the last edge of a template.
    offsets : int64 array, shape (n,)
        What a template's max is later than the time that an event carries, ticks.
    """

    ids: tuple[str, ...]
    starts: np.ndarray
    edges: np.ndarray
    given: np.ndarray
    offsets: np.ndarray

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
        """Intervals of these lengths, as histograms of one bucket.

        Parameters
        ----------
        lengths : int64 array, shape (n,)
            Ticks, >= 0.
        """
        n = lengths.size
        edges = np.zeros(2 * n, np.int64)
        edges[::2] = -lengths
        given = np.zeros(2 * n)
        given[::2] = 1.0
        return cls((), 2 * np.arange(n + 1), edges, given, np.zeros(n, np.int64))

    @cached_property
    def digest(self) -> bytes:
        """A hash of the content."""
        found = hashlib.sha256(repr(self.ids).encode())
        for array in (self.starts, self.edges, self.given, self.offsets):
            found.update(array.tobytes())
        return found.digest()

    @cached_property
    def lengths(self) -> np.ndarray:
        """Lengths of the templates, last edge less first: int64 array, shape (n,), ticks."""
        return -self.edges[self.starts[:-1]]

    @cached_property
    def buckets(self) -> Buckets:
        """The buckets, normalised."""
        return Buckets(self.starts, self.edges, *_normalised(self.starts, self.edges, self.given))

    @cached_property
    def exact_masses(self) -> np.ndarray:
        """Of `buckets`, each within a few units of 2**-53 of itself: float64 array, shape (edges,)."""
        if (np.diff(self.starts) == 2).all():  # intervals, of which there may be many
            return (self.given > 0.0).astype(np.float64)
        runs = np.split(self.given, self.starts[1:-1])
        return np.concatenate([run / math.fsum(run) for run in runs])

    @cached_property
    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean, relative to max, and standard deviation of each: float64 arrays, shape (n,), ticks."""
        return _moments(self.buckets)

    @cached_property
    def leans(self) -> np.ndarray:
        """How far twice the mean is below twice the max: int64 array, shape (n,), half ticks."""
        return np.rint(-2.0 * self.moments[0]).astype(np.int64)

    @cached_property
    def spreads(self) -> np.ndarray:
        """Standard deviations, rounded up: int64 array, shape (n,), ticks."""
        return np.ceil(self.moments[1]).astype(np.int64)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.ids)}

    def numbered(self, ids: Sequence[str | None]) -> np.ndarray:
        """The number of the template of each id, -1 where there is none.

        Parameters
        ----------
        ids : sequence of (str or None), length n

        Returns
        -------
        int64 array, shape (n,)
        """
        return np.array([self._numbers.get(name, -1) for name in ids], np.int64)  # type: ignore[arg-type]

    def joined(self, more: TemplateTable) -> TemplateTable:
        """Another table after this one: numbers stay.

        Raises
        ------
        DataError
            If both have a template of one id.
        """
        twice = set(self.ids) & set(more.ids)
        if twice:
            raise DataError(
                f"the template {brief(min(twice))} is in both tables; give it one id once"
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
    """A table of checked templates, in ticks. Templates of near spread become neighbours.

    Parameters
    ----------
    templates : mapping of str to Template
        Edges in ticks.

    Raises
    ------
    DataError
        If there is none.
    """
    if not templates:
        raise DataError("the table of templates is empty; give at least one template histogram")
    each = list(templates.values())
    sizes = [len(template.edges) for template in each]
    edges = np.array([edge - t.edges[-1] for t in each for edge in t.edges], np.int64)
    given = np.array([mass for t in each for mass in (*t.masses, 0.0)], np.float64)
    offsets = np.array([t.edges[-1] if t.observed else 0 for t in each], np.int64)
    table = TemplateTable(
        tuple(templates), np.concatenate([[0], np.cumsum(sizes)]), edges, given, offsets
    )
    return table.only(np.argsort(table.moments[1], kind="stable"))


def without_offsets(table: TemplateTable) -> TemplateTable:
    """The table for events whose max_time is known: equal templates are equal wherever they were seen."""
    return replace(table, offsets=np.zeros_like(table.offsets))


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
