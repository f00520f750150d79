"""All pairs that could qualify, run by run, with their probabilities; a sample where there are too many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from coincide.condition import Window
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.emission.emission import Emission, MakeBatch
from spark_plugin.worker.emission.spec import JoinSpec
from spark_plugin.worker.emission.stream_sides import of_stream
from spark_plugin.worker.exploration.arguments import LEAST_CONFIDENCE
from spark_plugin.worker.in_order import in_order

_SEED = 1


class Pairs(NamedTuple):
    """A run of candidates.

    Parameters
    ----------
    left, right : int64 arrays, shape (n,)
        Rows.
    probability : float64 array, shape (n,)
    """

    left: np.ndarray
    right: np.ndarray
    probability: np.ndarray


class Candidates(Emission):
    """The pairs of two sides whose probability is not as good as none.

    Parameters
    ----------
    left, right : Side
    spec : JoinSpec
        Whose confidence does not matter.
    backend : module
    """

    def __init__(self, left: Side, right: Side, spec: JoinSpec, backend: ModuleType) -> None:
        spec = at_confidence(spec, LEAST_CONFIDENCE)
        super().__init__(*of_stream(left, right, spec), pa.schema([]), backend)

    @property
    def number(self) -> int:
        """How many there are."""
        return int(self.join.offsets[-1])

    def tallied(
        self, tally: Callable[[Pairs], np.ndarray], say: Callable[[int], None] = lambda pairs: None
    ) -> np.ndarray | None:
        """What a function counts in each run of pairs, added up; None of no pair.

        Memory is taken for a few runs at a time.

        Parameters
        ----------
        tally : callable
            From `Pairs` to an array of counts, as long for each run.
        say : function of int
            Told after each run how many pairs were looked at.
        """
        total, seen = None, 0

        def tallied(run: tuple[int, int]) -> list[tuple[int, np.ndarray]]:
            pairs = self._pairs(*run)
            return [(pairs.left.size, tally(pairs))]

        for size, counts in in_order(tallied, self._filled(), self._spec.threads):
            total = counts if total is None else total + counts
            seen += size
            say(seen)
        return total

    def _filled(self) -> Iterator[tuple[int, int]]:
        offsets = self.join.offsets
        return (run for run in self._runs() if offsets[run[0]] < offsets[run[1]])

    def _pairs(self, start: int, stop: int) -> Pairs:
        join = self.join
        left, right = join.pairs(start, stop, join.left_order, join.right_order)
        probability = self._probabilities(left, right)
        if self._spec.pairs_once:
            # A pair is there from the confidence on that either order reaches.
            of_other_order = self._probabilities_swapped(right, left)
            if (where := self._spec.where) is not None:
                of_other_order *= where.between(self._right, self._left)(right, left)
            probability = np.maximum(probability, of_other_order)
        return Pairs(left, right, probability)

    def _parts(self, start: int, stop: int) -> Iterator[MakeBatch]:
        return iter(())  # nothing is handed out


def at_confidence(spec: JoinSpec, confidence: float) -> JoinSpec:
    """The join at another confidence, of which only pairs are counted."""
    window = Window(spec.window.lo, spec.window.hi, confidence)
    return spec.but(window=window, how="inner", emit="counts", probability=False)


@dataclass(frozen=True)
class Sample:
    """Which left events were looked at.

    Parameters
    ----------
    events : int
        Drawn at random.
    of : int
        All left events.
    """

    events: int
    of: int

    @property
    def factor(self) -> float:
        """By which what is counted in the sample is to be multiplied."""
        return self.of / self.events if self.events else 1.0

    @property
    def is_all(self) -> bool:
        """Whether nothing was left out."""
        return self.events == self.of

    def scaled(self, counts: np.ndarray) -> np.ndarray:
        """Counts of all from counts of the sample: int64 array of the same shape."""
        if self.is_all:
            return counts
        return np.rint(counts * self.factor).astype(np.int64)


def sampled(left: Side, pairs: int, most: int) -> tuple[Side, Sample]:
    """So many left events that they have about `most` of all pairs; always the same ones.

    Parameters
    ----------
    left : Side
    pairs : int
        Of all left events.
    most : int
    """
    if pairs <= most:
        return left, Sample(len(left), len(left))
    events = max(1, len(left) * most // pairs)
    rows = np.random.default_rng(_SEED).choice(len(left), events, replace=False)
    rows.sort()
    return left.rows(rows), Sample(events, len(left))
