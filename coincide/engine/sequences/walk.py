"""The walk over links: tuples of rows, some first events at a time, and which of them hold as a whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import import_module
from typing import NamedTuple, TypeVar

import numpy as np

from coincide.engine.backends import load_task_backend
from coincide.engine.resilient import GPU, Resilient
from coincide.model.counters import offsets_of, runs_of_about
from coincide.model.errors import MemoryBudgetError
from coincide.model.probability import DECISION_SLACK
from coincide.model.remembered import remembered
from coincide.model.sequences.deciding import NO, UNKNOWN, YES
from coincide.model.sequences.laws import Laws
from coincide.model.sequences.making import (
    Decision,
    Demands,
    Links,
    Made,
    Step,
    StreamEvents,
    TupleMaker,
    Tuples,
)
from coincide.model.sequences.wholes import Whole, doubt
from coincide.model.templates.template import Buckets
from coincide.model.threads import in_order
from cpu_fallback.sequences.kernels import count_ways

T = TypeVar("T")
_MOST = int(np.iinfo(np.int64).max)


class ResilientMaker(Resilient[TupleMaker]):
    """A maker on the GPU; the CPU takes over where that has no memory."""

    def make(
        self,
        part: Tuples,
        steps: Sequence[Step],
        decision: Decision | Demands | None,
        *,
        tells: bool = False,
    ) -> Made:
        """As in `TupleMaker`."""
        return self._do(lambda maker: maker.make(part, steps, decision, tells=tells))

    @property
    def at_once(self) -> int:
        """As in `TupleMaker`: fewer once the CPU has taken over."""
        return self._made.at_once


Maker = TupleMaker | ResilientMaker


def maker_of(backend: str, events: Sequence[StreamEvents], buckets: Buckets | None) -> Maker:
    """What makes tuples, on a backend."""

    def make(package: str) -> TupleMaker:
        maker: TupleMaker = import_module(package).TupleMaker(events, buckets)
        return maker

    package = load_task_backend(backend).__name__
    return ResilientMaker(make) if package == GPU else make(package)


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
    parents : int64 array, shape (tuples,), or None
        The tuple from which each grew, where that was asked for.
    """

    tuples: Tuples
    chance: np.ndarray | None
    tried: int
    doubted: int
    parents: np.ndarray | None = None

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
        chance, parents = (
            None if each is None else each[places] for each in (self.chance, self.parents)
        )
        return replace(self, tuples=self.tuples.of(places), chance=chance, parents=parents)

    def where(self, holds: np.ndarray) -> Found:
        """Those for which something holds: a bool array."""
        return self if holds.all() else self.of(np.flatnonzero(holds))

    @property
    def rows(self) -> np.ndarray:
        """The row of each stream: int64 array, shape (n, tuples)."""
        return self.tuples.rows


class Judge(ABC):
    """Tells which tuples hold as a whole."""

    keeps_chances: bool = False
    """Whether someone asks for the chances of links."""

    @property
    @abstractmethod
    def decision(self) -> Decision | Demands | None:
        """What a maker decides."""

    def found(self, made: Made) -> Found:
        """What qualifies among what a maker decided."""
        tuples = made.tuples
        if not self.keeps_chances:
            tuples = Tuples(tuples.rows, tuples.chances[:0])
        return Found(tuples, None, made.tried, 0, made.parents)


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
        maker: Maker,
        steps: Sequence[Step],
        judge: Judge,
        most: int | None,
        is_own: np.ndarray | None = None,
    ) -> None:
        # `most`: tuples at once; None: as many as the maker likes. `is_own`: which first events tuples
        # begin with; None: all.
        self._maker, self._judge, self._most = maker, judge, most
        *before, last = steps
        self._steps = [last]
        # How many tuples go on from each row of each stream but the last: int64 arrays.
        self._ways = [last.links.ends - last.links.begins]
        for step in reversed(before):
            # What leads nowhere would grow all the same: more than whole tuples then.
            links = step.links.leading_to(self._ways[0] > 0)
            self._steps.insert(0, replace(step, links=links))
            self._ways.insert(0, _ways_of(links, self._ways[0]))
        if is_own is not None:
            self._ways[0] = np.where(is_own, self._ways[0], 0)

    @property
    def _at_once(self) -> int:
        return self._most or self._maker.at_once

    @property
    def are_all(self) -> bool:
        """Whether every tuple that links make qualifies."""
        is_told = isinstance(self._judge, ExactJudge) and self._judge.decision is None
        return is_told and all(step.demands is None for step in self._steps)

    @property
    def ways(self) -> np.ndarray:
        """How many tuples links make of each first row, or the most that 64 bits count: int64 array."""
        return self._ways[0]

    @property
    def counts(self) -> np.ndarray:
        """The same, and an error where that is too few."""
        if self._ways[0].max(initial=0) == _MOST:
            raise MemoryBudgetError(
                "more sequences begin at one event than a number of 64 bits counts. Narrow the windows."
            )
        return self._ways[0]

    @property
    def tuples(self) -> int:
        """How many tuples links make in all, which 64 bits may not hold."""
        if int(self.ways.max(initial=0)) * self.ways.size <= _MOST:
            return int(self.ways.sum())
        high, low = self.ways >> 32, self.ways & 0xFFFFFFFF
        return (int(high.sum()) << 32) + int(low.sum())

    def found(self, finish: Callable[[Found], T], threads: int) -> Iterator[tuple[Sizes, T]]:
        """What is made of what qualifies, some first events after the others, and how many there are."""
        order = self._steps[0].links.order
        begun = Tuples.begun(order[self._ways[0][order] > 0])

        def make(part: Tuples) -> list[tuple[Sizes, T]]:
            made = self._maker.make(part, self._steps[part.step :], self._judge.decision)
            found = self._judge.found(made)
            return [(Sizes(found.tried, found.doubted, found.size), finish(found))]

        return in_order(make, self._parts(begun), threads)

    def _parts(self, begun: Tuples) -> Iterator[Tuples]:
        """Tuples that have begun, in parts whose whole tuples fit at once."""
        if begun.size == 0:
            return
        if begun.step == len(self._steps):
            yield begun
            return
        at_once = self._at_once
        ways = np.minimum(self._ways[begun.step][begun.rows[-1]], at_once)
        # One that does not go on would hide one after it that goes on too often.
        going = np.flatnonzero(ways)
        begun, ways = begun if going.size == begun.size else begun.of(going), ways[going]
        for run in runs_of_about(offsets_of(ways), at_once):
            part = begun.of(slice(*run))
            if ways[run[0]] < at_once:
                yield part
            else:  # one event alone has too many
                step = self._steps[part.step]
                yield from self._parts(self._maker.make(part, [step], None).tuples)


def _ways_of(links: Links, after: np.ndarray) -> np.ndarray:
    """How many tuples go on from each left row, of those that go on from each right row: int64 array."""
    most = int((links.ends - links.begins).max(initial=0)) * int(after.max(initial=0))
    if links.chances is None and most <= _MOST:
        # Exact times may have far more links than events. A sum that wraps around hides none.
        before = offsets_of(after[links.targets])
        return before[links.ends] - before[links.begins]
    ways = np.empty(links.begins.size, np.int64)
    count_ways(links.begins, links.ends, links.targets, after, ways)
    return ways


@dataclass(frozen=True, eq=False)
class ExactJudge(Judge):
    """Tuples of exact times: links hold, and so do the demands on the whole."""

    demands: Demands | None
    keeps_chances: bool = False

    @property
    def decision(self) -> Demands | None:
        """As in `Judge`."""
        return self.demands


@dataclass(frozen=True, eq=False)
class WholeJudge(Judge):
    """Tuples by the probability of the whole: floats decide, and fractions where these cannot tell."""

    whole: Whole
    streams: tuple[int, ...]
    edges: np.ndarray
    events: Sequence[StreamEvents]  # Those of all streams
    laws: Laws
    confidence: float
    wants: bool
    keeps_chances: bool = False
    has_steps: bool = True  # The links of a tuple are the steps of the whole

    @remembered
    def decision(self) -> Decision:
        """As in `Judge`."""
        edges, at_least = self.edges, self.confidence - DECISION_SLACK
        return Decision(
            self.whole, self.streams, edges, at_least, doubt(self.whole.kind, edges), self.wants,
            self.has_steps, self.keeps_chances,
        )  # fmt: skip

    def found(self, made: Made) -> Found:
        """As in `Judge`."""
        assert made.verdicts is not None
        unknown = np.flatnonzero(made.verdicts == UNKNOWN)
        found = replace(super().found(made), chance=made.probability, doubted=unknown.size)
        if not unknown.size:
            return found
        self._settle(made.tuples.rows[:, unknown], unknown, made.probability, made.verdicts)
        return found.where(made.verdicts == YES)

    def _settle(
        self, rows: np.ndarray, places: np.ndarray, out: np.ndarray | None, verdicts: np.ndarray
    ) -> None:
        """Decide by exact numbers: once for all tuples that are alike but for when they are."""
        ends, laws = (
            np.stack([own[row] for own, row in zip(of_all, rows, strict=True)], axis=1)  # type: ignore[index]
            for of_all in (
                [self.events[k].last for k in self.streams],
                [self.events[k].laws for k in self.streams],
            )
        )
        alike = np.concatenate([ends - ends[:, :1], laws], axis=1)
        kinds, which = np.unique(alike, axis=0, return_inverse=True)
        n = laws.shape[1]
        exact = [self.whole.exact(kind[:n], kind[n:], self.laws) for kind in kinds.tolist()]
        least = Fraction(self.confidence) - Fraction(DECISION_SLACK)
        if out is not None:
            out[places] = np.array([float(each) for each in exact])[which.reshape(-1)]
        qualifies = np.array([each >= least for each in exact])[which.reshape(-1)]
        verdicts[places] = np.where(qualifies, YES, NO)
