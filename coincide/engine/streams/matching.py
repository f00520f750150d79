"""One-to-one pairs of streams: which have become final, and how long their rivals are kept.

An event is *settled* when no match of it can come any more; then its best match stands. What becomes
of a left event is decided when it and its best match are settled, as then that one's best match stands,
too. So a call decides about left events of which itself or whose best match was settled by it; for this
all matches of both must be at hand.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa

from coincide.engine.join.join import TablePlan
from coincide.engine.join.matched import Matched, Mutual, Unambiguous, taken
from coincide.engine.join.spec import Rows
from coincide.engine.streams.live import Horizon, Live, Part, sized
from coincide.model.counters import JoinCounters
from coincide.model.sides import LEFT, RIGHT

Span = tuple[int, int]
"""The least and the largest max_time of some events, ticks."""
Masks = tuple[np.ndarray, np.ndarray]
"""Some events of both sides: bool arrays."""


class Settled(NamedTuple):
    """Which events of a side are settled: those before a max_time, ticks, that have come."""

    until: int
    taken: int

    def of(self, part: Part) -> np.ndarray:
        """Which events of a part are: bool array, shape (n,)."""
        assert part.side.ranks is not None
        mask: np.ndarray = (part.side.max_time < self.until) & (part.side.ranks < self.taken)
        return mask


class Step(NamedTuple):
    """What a call settles."""

    before: tuple[Settled, Settled]
    now: tuple[Settled, Settled]

    def news(self, side: int, live: Live) -> Part:
        """Events that were not settled and are now."""
        before, now = self.before[side], self.now[side]
        return live.where(lambda part: now.of(part) & ~before.of(part))


def kept_from(horizon: Horizon, until: tuple[int, int]) -> tuple[int, int]:
    """The least max_time of either side that a call to come can need."""
    left, right = until
    first, last = horizon
    # News, their matches, and the matches of those.
    return (
        min(left, right - last, left + first - last),
        min(right, left + first, right + first - last),
    )


def decided(
    plan: TablePlan, horizon: Horizon, live: tuple[Live, Live], step: Step
) -> tuple[pa.Table, JoinCounters]:
    """The rows that a call makes final, and what was looked at for them."""
    news = [step.news(side, events) for side, events in enumerate(live)]
    if not any(map(len, news)):
        return plan.schema.empty_table(), JoinCounters()
    first, last = horizon
    to_left, to_right = (-last, -first), (first, last)
    spans = [_span(part) for part in news]
    # Decided is about news and matches of news. Their matches are looked at, and those of these.
    left = _hull(spans[LEFT], _moved(spans[RIGHT], to_left))
    right = _hull(spans[RIGHT], _moved(spans[LEFT], to_right))
    sought = _hull(left, _moved(right, to_left)), _hull(right, _moved(left, to_right))
    marks = np.concatenate([part.marks for part in news])
    lefts, rights = (each.within(span, marks) for each, span in zip(live, sought, strict=True))
    before, now = ((of[LEFT].of(lefts), of[RIGHT].of(rights)) for of in (step.before, step.now))
    times = lefts.side.max_time
    now = now[LEFT] & (times >= left[0]) & (times <= left[1]), now[RIGHT]
    spec = sized(plan, horizon, lefts, rights).spec
    decide = DecidedMutual if spec.matching == "mutual" else DecidedUnambiguous
    emission = decide(spec.pairing(lefts.side, rights.side), plan.schema).of(before, now)
    return pa.Table.from_batches(emission, plan.schema), emission.counters


class Decided(Matched):
    """Of pairs, and of left events that are in none, those that a call decides about."""

    _before: Masks
    _now: Masks

    def of(self, before: Masks, now: Masks) -> Self:
        """Itself, once it is said which events were settled before the call, and which are now."""
        self._before, self._now = before, now
        return self

    @property
    def counters(self) -> JoinCounters:
        """Pairs are counted with their left event, when that is settled."""
        found, join = self.join.counters, self.join
        is_new = self._now[LEFT] & ~self._before[LEFT]
        pairs = int(join.counts[is_new[join.left_order]].sum())
        return JoinCounters(found.candidates, found.probed, pairs)

    @property
    @abstractmethod
    def _chosen(self) -> Rows:
        """The pairs, if nothing comes any more."""

    @property
    @abstractmethod
    def _deciding(self) -> Rows:
        """The pair of each left event whose match, once settled, decides about it."""

    @cached_property
    def _found(self) -> Rows:
        pairs = self._chosen
        return taken(pairs, self._in_output[pairs[LEFT]])

    @cached_property
    def _in_output(self) -> np.ndarray:
        left_rows, right_rows = self._deciding

        def stand(settled: Masks) -> np.ndarray:
            has_standing = np.ones(len(self._left), bool)
            has_standing[left_rows] = settled[RIGHT][right_rows]
            return settled[LEFT] & has_standing

        return stand(self._now) & ~stand(self._before)


class DecidedMutual(Decided, Mutual):
    """Of mutual pairs: the best match of a left event decides about it."""

    @property
    def _chosen(self) -> Rows:
        return self._mutual(*self._best_pairs)

    @property
    def _deciding(self) -> Rows:
        return self._best_pairs[LEFT]

    @cached_property
    def _best_pairs(self) -> tuple[Rows, Rows]:
        return self._bests()


class DecidedUnambiguous(Decided, Unambiguous):
    """Of unambiguous pairs: the only match of a left event decides about it."""

    @property
    def _chosen(self) -> Rows:
        return self._alone(self._of_single_lefts)

    @property
    def _deciding(self) -> Rows:
        return self._of_single_lefts


def _span(part: Part) -> Span | None:
    times = part.side.max_time
    return (int(times.min()), int(times.max())) if times.size else None


def _moved(span: Span | None, by: Span) -> Span | None:
    return None if span is None else (span[0] + by[0], span[1] + by[1])


def _hull(*spans: Span | None) -> Span:
    """The least span that holds all of these, of which there is one at least."""
    some = [span for span in spans if span is not None]
    return min(first for first, _ in some), max(last for _, last in some)
