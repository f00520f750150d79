"""Tuples of events that links make, and which of them qualify, on the CPU."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coincide.model.remembered import remembered
from coincide.model.sequences.deciding import NO
from coincide.model.sequences.making import (
    Decision,
    Demands,
    Made,
    Step,
    StreamEvents,
    Tuples,
    ends_and_laws,
)
from coincide.model.sequences.wholes import CHAIN, chain_work
from coincide.model.templates.template import Buckets
from cpu_fallback.sequences.kernels import grow, judge, keep


class TupleMaker:
    """As `coincide.model.sequences.making.TupleMaker`."""

    at_once = 1 << 18
    """Their rows stay near the core that makes them."""

    def __init__(self, events: Sequence[StreamEvents], buckets: Buckets | None) -> None:
        self._events, self._buckets = events, buckets

    def make(
        self,
        part: Tuples,
        steps: Sequence[Step],
        decision: Decision | Demands | None,
        *,
        tells: bool = False,
    ) -> Made:
        """As in `coincide.model.sequences.making.TupleMaker`."""
        parents = np.arange(part.size) if tells else None
        for step in steps:
            part, own = _grown(part, step, tells)
            parents = None if parents is None else parents[own]
            if step.demands is not None:
                part, parents = _where(self._met(part, step.demands), part, parents)
        tried = part.size
        if decision is None or isinstance(decision, Demands):
            if decision is not None:
                part, parents = _where(self._met(part, decision), part, parents)
            return Made(part, parents, None, None, tried)
        out, verdicts = self._decided(part, decision)
        if not decision.keeps_chances:
            part = Tuples(part.rows, part.chances[:0])
        holds = verdicts != NO
        if not holds.all():
            # What has grown here is no one else's, and fresh memory would take as long as all the rest.
            part, parents = _where(holds, part, parents, in_place=bool(steps))
            verdicts = verdicts[holds]
            out = out[holds] if decision.wants else out
        return Made(part, parents, out if decision.wants else None, verdicts, tried)

    def _met(self, part: Tuples, demands: Demands) -> np.ndarray:
        """Tuples that meet demands: bool array."""
        rows, found = part.rows, np.ones(part.size, bool)
        last = len(demands.streams) - 1
        new, row = self._events[demands.streams[last]], rows[last]
        for place, lo, hi in demands.windows:
            before = self._events[demands.streams[place]]
            found &= new.first[row] - before.last[rows[place]] <= hi
            found &= new.last[row] - before.first[rows[place]] >= lo
        for place in demands.others:
            before = self._events[demands.streams[place]]
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
        out = np.empty(part.size if decision.wants else 0)
        verdicts = np.empty(part.size, np.int8)
        judge(
            whole.kind, part.rows, np.ascontiguousarray(chances),
            (begins[np.array(decision.streams)], ends, laws), self._buckets,
            (whole.lows, whole.highs), decision.at_least, decision.doubt, decision.wants,
            chain_work(decision.edges, np.float64), out, verdicts,
        )  # fmt: skip
        return out, verdicts

    @remembered
    def _streams(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return ends_and_laws(self._events)


def _grown(part: Tuples, step: Step, tells: bool) -> tuple[Tuples, np.ndarray]:
    """Tuples with each event to which a link leads; and if asked, the parent of each."""
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


def _where(
    holds: np.ndarray, part: Tuples, parents: np.ndarray | None, *, in_place: bool = False
) -> tuple[Tuples, np.ndarray | None]:
    """Tuples for which something holds: a bool array."""
    size = int(np.count_nonzero(holds))
    if size == part.size:
        return part, parents
    kept = []
    for given in (part.rows, part.chances):
        out = given if in_place else np.empty((len(given), size), given.dtype)
        keep(holds, given, out)
        kept.append(out[:, :size])
    return Tuples(*kept), None if parents is None else parents[holds]
