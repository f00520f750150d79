"""The walk over links: tuples of rows, some first events at a time, and which of them hold as a whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, TypeVar

import numpy as np

from coincide.engine.sequences.links import Links
from coincide.model.counters import runs_of_about
from coincide.model.errors import MemoryBudgetError
from coincide.model.probability import DECISION_SLACK
from coincide.model.remembered import remembered
from coincide.model.sequences.laws import Laws
from coincide.model.sequences.wholes import CHAIN, Whole, chain_work, doubt
from coincide.model.threads import in_order
from cpu_fallback.sequences.kernels import NO, UNKNOWN, YES, count_ways, grow, judge

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Tuples:
    """Tuples of events as they grow.

    Parameters
    ----------
    rows : int64 array, shape (n, tuples)
        The row of each stream so far.
    chances : float64 array, shape (n - 1, tuples)
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

    def where(self, holds: np.ndarray) -> Tuples:
        """Those for which something holds: a bool array."""
        return self if holds.all() else self.of(np.flatnonzero(holds))


@dataclass(frozen=True, eq=False)
class Found:
    """Tuples that qualify.

    Parameters
    ----------
    tuples : Tuples
    chance : float64 array, shape (tuples,), or None
        The probability of the whole; None where no one asked, and of exact times.
    tried, doubted : int
        Tuples that links made, and those that floats could not decide.
    """

    tuples: Tuples
    chance: np.ndarray | None
    tried: int
    doubted: int

    @property
    def size(self) -> int:
        """How many there are."""
        return self.tuples.size

    @property
    def probability(self) -> np.ndarray:
        """The probability of the whole: float64 array, shape (tuples,)."""
        return np.ones(self.size) if self.chance is None else self.chance

    def of(self, places: np.ndarray) -> Found:
        """Some of them."""
        chance = None if self.chance is None else self.chance[places]
        return Found(self.tuples.of(places), chance, self.tried, self.doubted)

    def where(self, holds: np.ndarray) -> Found:
        """Those for which something holds: a bool array."""
        return self if holds.all() else self.of(np.flatnonzero(holds))

    @property
    def rows(self) -> np.ndarray:
        """The row of each stream: int64 array, shape (n, tuples)."""
        return self.tuples.rows


class Judge(ABC):
    """Decides which tuples hold as a whole."""

    keeps_chances: bool = False
    """Whether someone asks for the chances of links."""

    @abstractmethod
    def verdicts(self, given: Tuples) -> tuple[np.ndarray | None, np.ndarray | None, int]:
        """Which qualify, their probabilities, and how many floats could not decide."""
        # Bool and float64 arrays, shape (tuples,). None: all do, and they have no probabilities. A
        # probability of what bounds decided is NaN.

    def found(self, part: Tuples) -> Found:
        """Those that qualify."""
        holds, probability, doubted = self.verdicts(part)
        if not self.keeps_chances:
            part = Tuples(part.rows, part.chances[:0])
        found = Found(part, probability, part.size, doubted)
        return found if holds is None else found.where(holds)


Possible = Callable[[np.ndarray], np.ndarray]
"""From the rows of tuples that grow to which of them may still qualify: bool array."""


class Sizes(NamedTuple):
    """How many tuples links made, how many of them floats could not decide, and how many qualify."""

    tried: int = 0
    doubted: int = 0
    found: int = 0

    def with_more(self, more: Sizes) -> Sizes:
        """These and others together."""
        return Sizes(*map(sum, zip(self, more, strict=True)))


class Walk:
    """All tuples that links make, in runs of bounded size."""

    def __init__(
        self,
        links: Sequence[Links],
        possible: Possible | None,
        judge: Judge,
        at_once: int,
        is_own: np.ndarray | None = None,
    ) -> None:
        # `is_own`: which first events tuples begin with; None: all.
        self._links, self._possible, self._judge, self._at_once = links, possible, judge, at_once
        self._is_own = is_own

    @remembered
    def _ways(self) -> list[np.ndarray]:
        """How many tuples go on from each row of each stream but the last: int64 arrays."""
        last = self._links[-1]
        found = [last.ends - last.begins]
        for link in self._links[-2::-1]:
            ways = np.empty(link.begins.size, np.int64)
            count_ways(link.begins, link.ends, link.targets, found[0], ways)
            found.insert(0, ways)
        if self._is_own is not None:
            found[0] = np.where(self._is_own, found[0], 0)
        return found

    @property
    def are_all(self) -> bool:
        """Whether every tuple that links make qualifies."""
        return (
            self._possible is None and isinstance(self._judge, ExactJudge) and not self._judge.holds
        )

    @property
    def ways(self) -> np.ndarray:
        """How many tuples links make of each first row, or the most that 64 bits count: int64 array."""
        return self._ways[0]

    @property
    def counts(self) -> np.ndarray:
        """The same, and an error where that is too few."""
        if self._ways[0].max(initial=0) == np.iinfo(np.int64).max:
            raise MemoryBudgetError(
                "more sequences begin at one event than a number of 64 bits counts. Narrow the windows."
            )
        return self._ways[0]

    @property
    def tuples(self) -> int:
        """How many tuples links make in all, which 64 bits may not hold."""
        high, low = self.ways >> 32, self.ways & 0xFFFFFFFF
        return (int(high.sum()) << 32) + int(low.sum())

    def found(self, finish: Callable[[Found], T], threads: int) -> Iterator[tuple[Sizes, T]]:
        """What is made of what qualifies, some first events after the others, and how many there are."""
        order = self._links[0].order
        begun = Tuples.begun(order[self._ways[0][order] > 0])

        def make(part: Tuples) -> list[tuple[Sizes, T]]:
            found = self._whole(part)
            return [(Sizes(found.tried, found.doubted, found.size), finish(found))]

        return in_order(make, self._parts(begun), threads)

    def _parts(self, begun: Tuples) -> Iterator[Tuples]:
        """Tuples that have begun, in parts whose whole tuples fit at once."""
        if begun.size == 0:
            return
        if begun.step == len(self._links):
            yield begun
            return
        ways = np.minimum(self._ways[begun.step][begun.rows[-1]], self._at_once)
        # One that does not go on would hide one after it that goes on too often.
        begun, ways = begun.where(ways > 0), ways[ways > 0]
        offsets = np.concatenate([[0], np.cumsum(ways)])
        for run in runs_of_about(offsets, self._at_once):
            part = begun.of(slice(*run))
            if ways[run[0]] < self._at_once:
                yield part
            else:  # one event alone has too many
                yield from self._parts(self._grown(part))

    def _whole(self, part: Tuples) -> Found:
        while part.step < len(self._links):
            part = self._grown(part)
        return self._judge.found(part)

    def _grown(self, part: Tuples) -> Tuples:
        """The same tuples with each next event that a link leads to."""
        grown, _ = followed(part, self._links[part.step], part.step)
        return grown if self._possible is None else grown.where(self._possible(grown.rows))


def followed(
    part: Tuples, link: Links, place: int, *, tells: bool = False
) -> tuple[Tuples, np.ndarray]:
    """Tuples with each event to which a link leads from their event at a place; if asked, which grew."""
    last = part.rows[place]
    size = int((link.ends[last] - link.begins[last]).sum())
    links = part.chances.shape[0] + (link.chances is not None)
    grown = Tuples(np.empty((len(part.rows) + 1, size), np.int64), np.empty((links, size)))
    chances = np.empty(0) if link.chances is None else link.chances
    parents = np.empty(size if tells else 0, np.int64)
    grow(
        place, (link.begins, link.ends, link.targets, chances), part.rows, part.chances, parents,
        grown.rows, grown.chances,
    )  # fmt: skip
    return grown, parents


@dataclass(frozen=True, eq=False)
class ExactJudge(Judge):
    """Tuples of exact times: links hold, and so does what else may be asked of the whole."""

    holds: Possible | None
    keeps_chances: bool = False

    def verdicts(self, given: Tuples) -> tuple[np.ndarray | None, np.ndarray | None, int]:
        """As `Judge`."""
        return None if self.holds is None else self.holds(given.rows), None, 0


@dataclass(frozen=True, eq=False)
class WholeJudge(Judge):
    """Tuples by the probability of the whole: floats decide, and fractions where these cannot tell."""

    whole: Whole
    times: Sequence[np.ndarray]
    numbers: Sequence[np.ndarray]
    laws: Laws
    confidence: float
    wants: bool
    keeps_chances: bool = False
    has_steps: bool = True  # the links of a tuple are the steps of the whole

    @remembered
    def _streams(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where the events of each stream begin in the last edges and laws of all; and these."""
        begins = np.cumsum([0, *(each.size for each in self.times[:-1])])
        return begins, np.concatenate(self.times), np.concatenate(self.numbers)

    @remembered
    def _edges(self) -> np.ndarray:
        return np.array([self.laws.most_edges(each) for each in self.numbers])

    def verdicts(self, given: Tuples) -> tuple[np.ndarray | None, np.ndarray | None, int]:
        """As `Judge`."""
        whole, size = self.whole, given.size
        # The one link of two events is the whole.
        is_known = self.has_steps or whole.kind == CHAIN
        chances = given.chances if is_known else given.chances[:0]
        out, verdicts = np.empty(size), np.empty(size, np.int8)
        at_least = self.confidence - DECISION_SLACK
        judge(
            whole.kind, given.rows, np.ascontiguousarray(chances), self._streams, self.laws.buckets,
            (whole.lows, whole.highs), at_least, doubt(whole.kind, self._edges), self.wants,
            chain_work(self._edges, np.float64), out, verdicts,
        )  # fmt: skip
        unknown = np.flatnonzero(verdicts == UNKNOWN)
        if unknown.size:
            self._settle(given.rows[:, unknown], unknown, out, verdicts)
        return verdicts == YES, out if self.wants else None, unknown.size

    def _settle(
        self, rows: np.ndarray, places: np.ndarray, out: np.ndarray, verdicts: np.ndarray
    ) -> None:
        """Decide by exact numbers: once for all tuples that are alike but for when they are."""
        ends, laws = (
            np.stack([own[row] for own, row in zip(of_all, rows, strict=True)], axis=1)
            for of_all in (self.times, self.numbers)
        )
        alike = np.concatenate([ends - ends[:, :1], laws], axis=1)
        kinds, which = np.unique(alike, axis=0, return_inverse=True)
        n = laws.shape[1]
        exact = [self.whole.exact(kind[:n], kind[n:], self.laws) for kind in kinds.tolist()]
        least = Fraction(self.confidence) - Fraction(DECISION_SLACK)
        out[places] = np.array([float(each) for each in exact])[which.reshape(-1)]
        qualifies = np.array([each >= least for each in exact])[which.reshape(-1)]
        verdicts[places] = np.where(qualifies, YES, NO)
