"""What makes tuples of events of links takes and gives: the same on every backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from coincide.model.counters import offsets_of
from coincide.model.sequences.wholes import Whole
from coincide.model.templates.template import Buckets


@dataclass(frozen=True, eq=False)
class Links:
    """The pairs of a stream with the next one that reach the confidence.

    Parameters
    ----------
    order : int64 array, shape (n_left,)
        Left rows, neighbours in time and key next to each other.
    begins, ends : int64 arrays, shape (n_left,)
        Where in `targets` the links of each left row are. Those of exact times share what is there.
    targets : int64 array
        Right rows.
    chances : float64 array, of the same shape, or None
        Probabilities of the links; None where the times of all streams are exact.
    """

    order: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    targets: np.ndarray
    chances: np.ndarray | None

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self.ends.sum()) - int(self.begins.sum())

    def mirrored(self, size: int) -> Links:
        """The same links by the row of the second stream, whose size is given."""
        # Each at a place of its own, left rows as `order` has them.
        counts = (self.ends - self.begins)[self.order]
        before = offsets_of(counts)
        places = np.arange(before[-1]) + np.repeat(self.begins[self.order] - before[:-1], counts)
        targets = self.targets[places]
        order = np.argsort(targets, kind="stable")
        ascending = targets[order]
        begins, ends = (
            np.searchsorted(ascending, np.arange(size), side=side) for side in ("left", "right")
        )
        sources = np.repeat(self.order, counts)
        chances = None if self.chances is None else self.chances[places[order]]
        return Links(np.arange(size), begins, ends, sources[order], chances)

    def leading_to(self, holds: np.ndarray) -> Links:
        """The links to right rows for which something holds: a bool array."""
        kept = holds[self.targets]
        if kept.all():
            return self
        before = offsets_of(kept)
        chances = None if self.chances is None else self.chances[kept]
        begins, ends = before[self.begins], before[self.ends]
        return Links(self.order, begins, ends, self.targets[kept], chances)


@dataclass(frozen=True, eq=False)
class Tuples:
    """Tuples of events as they grow.

    Parameters
    ----------
    rows : int64 array, shape (n, tuples)
        The row of each stream so far.
    chances : float64 array, shape (links, tuples)
        That of each link between them; shape (0, tuples) where times are exact.
    """

    rows: np.ndarray
    chances: np.ndarray

    @classmethod
    def begun(cls, rows: np.ndarray) -> Tuples:
        """Tuples of one event each."""
        return cls(rows.reshape(1, -1), np.empty((0, rows.size)))

    @property
    def size(self) -> int:
        """How many there are."""
        return self.rows.shape[1]

    @property
    def step(self) -> int:
        """How many links they have followed."""
        return len(self.rows) - 1

    def of(self, places: np.ndarray | slice) -> Tuples:
        """Some of them."""
        if isinstance(places, slice):
            rows, chances = (each[:, places] for each in (self.rows, self.chances))
        else:
            rows, chances = (each.take(places, axis=1) for each in (self.rows, self.chances))
        # Kernels are compiled for one kind of arrays.
        return Tuples(np.ascontiguousarray(rows), np.ascontiguousarray(chances))


@dataclass(frozen=True, eq=False)
class StreamEvents:
    """The events of one stream, as demands and decisions on tuples need them.

    Parameters
    ----------
    first, last : int64 arrays, shape (n,)
        Min and max times, ticks.
    numbers : int64 array, shape (n,), or None
        Which event each is where the stream has several places; None elsewhere.
    laws : int64 array, shape (n,), or None
        The law of each time; None where the times of all streams are exact.
    """

    first: np.ndarray
    last: np.ndarray
    numbers: np.ndarray | None
    laws: np.ndarray | None


def ends_and_laws(
    events: Sequence[StreamEvents],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the events of each stream begin in the last edges and the laws of all; and these."""
    ends, laws = ([getattr(each, name) for each in events] for name in ("last", "laws"))
    begins = np.cumsum([0, *(each.size for each in ends[:-1])])
    return begins, np.concatenate(ends), np.concatenate(laws)


@dataclass(frozen=True)
class Demands:
    """What the last event of a tuple must meet with those before, wherever in its timestamp each is.

    Parameters
    ----------
    streams : tuple of int
        The stream of each place.
    windows : tuple of (place, lo, hi)
        By a place before: a time from there to the last event between these, ticks, must be possible.
    others : tuple of int
        Places whose event must be another one.
    """

    streams: tuple[int, ...]
    windows: tuple[tuple[int, int, int], ...] = ()
    others: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Step:
    """One more event: the links that lead to it from the event at a place, and what it must meet."""

    links: Links
    place: int
    demands: Demands | None = None


@dataclass(frozen=True, eq=False)
class Decision:
    """The probability of the whole, which decides tuples.

    Parameters
    ----------
    whole : Whole
    streams : tuple of int
        The stream of each place.
    edges : int64 array, shape (n,)
        The most edges that a law of each of these streams has.
    at_least : float
        The least probability that qualifies.
    doubt : float
        How near to it floats cannot tell.
    wants : bool
        Whether each probability is asked for.
    has_steps : bool
        Whether the links of a tuple are the steps of the whole.
    keeps_chances : bool
        Whether those of links are asked for, once tuples are decided.
    """

    whole: Whole
    streams: tuple[int, ...]
    edges: np.ndarray
    at_least: float
    doubt: float
    wants: bool
    has_steps: bool
    keeps_chances: bool


@dataclass(frozen=True, eq=False)
class Made:
    """Tuples that were made, without those that do not qualify.

    Parameters
    ----------
    tuples : Tuples
    parents : int64 array, shape (tuples,), or None
        The tuple from which each grew, if that was asked for.
    probability : float64 array, shape (tuples,), or None
        None if no decision wants it.
    verdicts : int8 array, shape (tuples,), or None
        ``YES`` or ``UNKNOWN`` (`coincide.model.sequences.deciding`). None without a decision.
    tried : int
        How many there were to decide.
    """

    tuples: Tuples
    parents: np.ndarray | None
    probability: np.ndarray | None
    verdicts: np.ndarray | None
    tried: int


class TupleMaker(Protocol):
    """What makes tuples: `cpu_fallback.TupleMaker`, or `gpu_kernels.TupleMaker` with the same answers."""

    at_once: int
    """How many it makes at once, if no option says that."""

    def __init__(self, events: Sequence[StreamEvents], buckets: Buckets | None) -> None: ...

    def make(
        self,
        part: Tuples,
        steps: Sequence[Step],
        decision: Decision | Demands | None,
        *,
        tells: bool = False,
    ) -> Made:
        """Let tuples grow, step by step, and decide what they have become; if asked, which they were."""
