"""Tuples of events that links make, and which of them qualify, on the CPU."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coincide.model.remembered import remembered
from coincide.model.sequences.deciding import NO
from coincide.model.sequences.making import Decision, Made, Step, StreamEvents, Tests, Tuples
from coincide.model.sequences.wholes import CHAIN, chain_work
from coincide.model.templates.template import Buckets
from cpu_fallback.sequences.kernels import grow, judge


class TupleMaker:
    """As `coincide.model.sequences.making.TupleMaker`."""

    def __init__(self, events: Sequence[StreamEvents], buckets: Buckets | None) -> None:
        self._events, self._buckets = events, buckets

    def make(
        self,
        part: Tuples,
        steps: Sequence[Step],
        decision: Decision | Tests | None,
        *,
        tells: bool = False,
    ) -> Made:
        """As in `coincide.model.sequences.making.TupleMaker`."""
        parents = np.arange(part.size) if tells else None
        for step in steps:
            part, own = _grown(part, step, tells)
            parents = None if parents is None else parents[own]
            if step.tests is not None:
                part, parents = _where(self._met(part, step.tests), part, parents)
        tried = part.size
        if decision is None or isinstance(decision, Tests):
            holds = None if decision is None else self._met(part, decision)
            return Made(*_where(holds, part, parents), None, None, tried)
        out, verdicts = self._decided(part, decision)
        places = _places(verdicts != NO)
        part, parents = _some(places, part, parents)
        if places is not None:
            out, verdicts = out[places], verdicts[places]
        return Made(part, parents, out, verdicts, tried)

    def _met(self, part: Tuples, tests: Tests) -> np.ndarray:
        """Tuples that meet tests: bool array."""
        rows, found = part.rows, np.ones(part.size, bool)
        last = len(tests.streams) - 1
        new, row = self._events[tests.streams[last]], rows[last]
        for place, lo, hi in tests.windows:
            before = self._events[tests.streams[place]]
            found &= new.first[row] - before.last[rows[place]] <= hi
            found &= new.last[row] - before.first[rows[place]] >= lo
        for place in tests.others:
            before = self._events[tests.streams[place]]
            assert before.numbers is not None
            assert new.numbers is not None
            found &= before.numbers[rows[place]] != new.numbers[row]
        return found

    def _decided(self, part: Tuples, decision: Decision) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities and verdicts."""
        whole = decision.whole
        # The one link of two events is the whole.
        is_known = decision.has_steps or whole.kind == CHAIN
        chances = part.chances if is_known else part.chances[:0]
        begins, ends, laws = self._streams
        out, verdicts = np.empty(part.size), np.empty(part.size, np.int8)
        judge(
            whole.kind, part.rows, np.ascontiguousarray(chances),
            (begins[np.array(decision.streams)], ends, laws), self._buckets,
            (whole.lows, whole.highs), decision.at_least, decision.doubt, decision.wants,
            chain_work(decision.edges, np.float64), out, verdicts,
        )  # fmt: skip
        return out, verdicts

    @remembered
    def _streams(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where the events of each stream begin in the last edges and laws of all; and these."""
        ends = [each.last for each in self._events]
        begins = np.cumsum([0, *(each.size for each in ends[:-1])])
        laws = [each.laws for each in self._events]
        return begins, np.concatenate(ends), np.concatenate(laws)  # type: ignore[arg-type]


def _grown(part: Tuples, step: Step, tells: bool) -> tuple[Tuples, np.ndarray]:
    """Tuples with each event to which a link leads; if asked, of which each grew."""
    links, last = step.links, part.rows[step.place]
    size = int((links.ends[last] - links.begins[last]).sum())
    known = part.chances.shape[0] + (links.chances is not None)
    grown = Tuples(np.empty((len(part.rows) + 1, size), np.int64), np.empty((known, size)))
    chances = np.empty(0) if links.chances is None else links.chances
    parents = np.empty(size if tells else 0, np.int64)
    grow(
        step.place, (links.begins, links.ends, links.targets, chances), part.rows, part.chances,
        parents, grown.rows, grown.chances,
    )  # fmt: skip
    return grown, parents


def _places(holds: np.ndarray | None) -> np.ndarray | None:
    """Where something holds; None: everywhere."""
    return None if holds is None or holds.all() else np.flatnonzero(holds)


def _some(
    places: np.ndarray | None, part: Tuples, parents: np.ndarray | None
) -> tuple[Tuples, np.ndarray | None]:
    if places is None:
        return part, parents
    return part.of(places), None if parents is None else parents[places]


def _where(
    holds: np.ndarray | None, part: Tuples, parents: np.ndarray | None
) -> tuple[Tuples, np.ndarray | None]:
    return _some(_places(holds), part, parents)
