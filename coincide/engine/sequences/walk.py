"""The walk over links: tuples of rows, some first events at a time, and which of them hold as a whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from coincide.engine.sequences.links import Links
from coincide.model.counters import runs_of_about
from coincide.model.probability import DECISION_SLACK
from coincide.model.remembered import remembered
from coincide.model.sequences.laws import Laws
from coincide.model.sequences.wholes import GATHERING, Whole, chain_work, doubt
from coincide.model.threads import in_order
from cpu_fallback.sequences.kernels import NO, UNKNOWN, YES, count_ways, follow, judge


@dataclass(frozen=True, eq=False)
class Found:
    """Tuples that qualify.

    Parameters
    ----------
    rows : list of int64 arrays, shape (tuples,)
        The row of each stream.
    chances : list of float64 arrays, shape (tuples,)
        That of each link; none where times are exact.
    probability : float64 array, shape (tuples,)
        That of the whole; NaN where no one asked.
    tried, doubted : int
        Tuples that links made, and those that floats could not decide.
    """

    rows: list[np.ndarray]
    chances: list[np.ndarray]
    probability: np.ndarray
    tried: int
    doubted: int


@dataclass(frozen=True, eq=False)
class Tuples:
    """Rows of each stream so far, and chances of the links between them, where times are uncertain."""

    rows: list[np.ndarray]
    chances: list[np.ndarray]

    @property
    def size(self) -> int:
        """How many there are."""
        return self.rows[0].size

    @property
    def step(self) -> int:
        """How many links they have followed."""
        return len(self.rows) - 1

    def of(self, places: np.ndarray | slice) -> Tuples:
        """Some of them."""
        return Tuples([each[places] for each in self.rows], [each[places] for each in self.chances])


class Judge(ABC):
    """Decides which tuples hold as a whole."""

    @abstractmethod
    def verdicts(
        self, rows: list[np.ndarray], chances: list[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """Which qualify, their probabilities, and how many floats could not decide."""
        # Bool and float64 arrays, shape (tuples,); a probability is NaN where no one asked.

    def found(self, part: Tuples) -> Found:
        """Those that qualify."""
        holds, probability, doubted = self.verdicts(part.rows, part.chances)
        kept = part.of(np.flatnonzero(holds))
        return Found(kept.rows, kept.chances, probability[holds], part.size, doubted)


Possible = Callable[[list[np.ndarray]], np.ndarray]
"""From the rows of tuples that grow to which of them may still qualify: bool array."""


class Walk:
    """All tuples that links make, in runs of bounded size."""

    def __init__(
        self, links: Sequence[Links], possible: Possible, judge: Judge, at_once: int
    ) -> None:
        self._links, self._possible, self._judge, self._at_once = links, possible, judge, at_once

    @remembered
    def _ways(self) -> list[np.ndarray]:
        """How many tuples go on from each row of each stream but the last: int64 arrays."""
        last = self._links[-1]
        found = [last.ends - last.begins]
        for link in self._links[-2::-1]:
            ways = np.empty(link.begins.size, np.int64)
            count_ways(link.begins, link.ends, link.targets, found[0], ways)
            found.insert(0, ways)
        return found

    def found(self, threads: int) -> Iterator[Found]:
        """What qualifies, some first events after the others."""
        order = self._links[0].order
        begun = Tuples([order[self._ways[0][order] > 0]], [])
        return in_order(lambda part: [self._whole(part)], self._parts(begun), threads)

    def _parts(self, begun: Tuples) -> Iterator[Tuples]:
        """Tuples that have begun, in parts whose whole tuples fit at once."""
        if begun.size == 0:
            return
        if begun.step == len(self._links):
            yield begun
            return
        ways = np.minimum(self._ways[begun.step][begun.rows[-1]], self._at_once)
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
        holds = self._possible(grown.rows)
        return grown if holds.all() else grown.of(np.flatnonzero(holds))


def followed(part: Tuples, link: Links, place: int) -> tuple[Tuples, np.ndarray]:
    """Tuples with each event to which a link leads from their event at a place; and which one each was."""
    last = part.rows[place]
    size = int((link.ends[last] - link.begins[last]).sum())
    parents, numbers = np.empty(size, np.int64), np.empty(size, np.int64)
    follow(last, link.begins, link.ends, parents, numbers)
    grown = part.of(parents)
    chances = grown.chances
    if link.chances is not None:
        chances = [*chances, link.chances[numbers]]
    return Tuples([*grown.rows, link.targets[numbers]], chances), parents


@dataclass(frozen=True, eq=False)
class ExactJudge(Judge):
    """Tuples of exact times: links hold, and so does what else may be asked of the whole."""

    holds: Possible

    def verdicts(
        self, rows: list[np.ndarray], chances: list[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """As `Judge`."""
        return self.holds(rows), np.ones(rows[0].size), 0


@dataclass(frozen=True, eq=False)
class WholeJudge(Judge):
    """Tuples by the probability of the whole: floats decide, and fractions where these cannot tell."""

    whole: Whole
    times: Sequence[np.ndarray]
    numbers: Sequence[np.ndarray]
    laws: Laws
    confidence: float
    wants: bool

    @remembered
    def _edges(self) -> np.ndarray:
        return np.array([self.laws.most_edges(each) for each in self.numbers])

    def verdicts(
        self, rows: list[np.ndarray], chances: list[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """As `Judge`."""
        whole, size = self.whole, rows[0].size
        ends, laws = (
            np.stack([each[row] for each, row in zip(of_all, rows, strict=True)], axis=1)
            for of_all in (self.times, self.numbers)
        )
        is_of_links = whole.kind != GATHERING
        own = np.stack(chances, axis=1) if is_of_links else np.empty((size, 0))
        out, verdicts = np.empty(size), np.empty(size, np.int8)
        at_least = self.confidence - DECISION_SLACK
        judge(
            whole.kind, ends, laws, own, self.laws.buckets, (whole.lows, whole.highs), at_least,
            doubt(whole.kind, self._edges), self.wants, chain_work(self._edges, np.float64), out,
            verdicts,
        )  # fmt: skip
        unknown = np.flatnonzero(verdicts == UNKNOWN)
        if unknown.size:
            self._settle(ends[unknown], laws[unknown], unknown, out, verdicts)
        return verdicts == YES, out, unknown.size

    def _settle(
        self,
        ends: np.ndarray,
        laws: np.ndarray,
        places: np.ndarray,
        out: np.ndarray,
        verdicts: np.ndarray,
    ) -> None:
        """Decide by exact numbers: once for all tuples that are alike but for when they are."""
        alike = np.concatenate([ends - ends[:, :1], laws], axis=1)
        kinds, which = np.unique(alike, axis=0, return_inverse=True)
        n = laws.shape[1]
        exact = [self.whole.exact(kind[:n], kind[n:], self.laws) for kind in kinds.tolist()]
        least = Fraction(self.confidence) - Fraction(DECISION_SLACK)
        out[places] = np.array([float(each) for each in exact])[which.reshape(-1)]
        qualifies = np.array([each >= least for each in exact])[which.reshape(-1)]
        verdicts[places] = np.where(qualifies, YES, NO)
