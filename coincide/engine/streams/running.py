"""The state of a join of streams, and what each call makes of it: nothing here is written into."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa

from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.join.chosen_pairs import Matched, Mutual, Unambiguous, taken
from coincide.engine.join.join import TablePlan
from coincide.engine.pairs.source import Rows
from coincide.engine.streams.clock import SideClock
from coincide.engine.streams.live import Horizon, Live, Part, horizon_of, join_block, joined, sized
from coincide.engine.streams.reading import Arrivals, StreamArguments, read_arrivals
from coincide.model.counters import JoinCounters
from coincide.model.remembered import remembered
from coincide.model.sides import LEFT, RIGHT
from coincide.model.units import TIME_LIMIT, Tick

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
    assert spec.choice.one_to_one is not None
    decide = DecidedMutual if spec.choice.one_to_one.ranks else DecidedUnambiguous
    emission = decide(spec.pairing(lefts.side, rights.side), plan.schema).of(before, now)
    return pa.Table.from_batches(emission, plan.schema), emission.counters


class Decided(Matched):
    """The pairs, and left events that are in no pair, that a call decides about."""

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

    @remembered
    def _found(self) -> Rows:
        pairs = self._chosen
        return taken(pairs, self._in_output[pairs[LEFT]])

    @remembered
    def _in_output(self) -> np.ndarray:
        left_rows, right_rows = self._deciding

        def stand(settled: Masks) -> np.ndarray:
            has_standing = np.ones(len(self._left), bool)
            has_standing[left_rows] = settled[RIGHT][right_rows]
            return settled[LEFT] & has_standing

        return stand(self._now) & ~stand(self._before)


class DecidedMutual(Decided, Mutual):
    """Decided mutual pairs: the best match of a left event decides about it."""

    @property
    def _chosen(self) -> Rows:
        return self._mutual(*self._best_pairs)

    @property
    def _deciding(self) -> Rows:
        return self._best_pairs[LEFT]

    @remembered
    def _best_pairs(self) -> tuple[Rows, Rows]:
        return self._bests()


class DecidedUnambiguous(Decided, Unambiguous):
    """Decided unambiguous pairs: the only match of a left event decides about it."""

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
    """The least span that holds all of these, at least one."""
    some = [span for span in spans if span is not None]
    return min(first for first, _ in some), max(last for _, last in some)


_END = 8 * TIME_LIMIT
"""After whatever may come."""


@dataclass(frozen=True, eq=False)
class Running:
    """Two streams whose columns are known."""

    plan: TablePlan
    delays: tuple[int, int]
    aheads: tuple[int | None, int | None]
    horizon: Horizon
    at_once: bool
    streams: tuple[Stream, Stream]
    counters: JoinCounters = field(default_factory=JoinCounters)

    @classmethod
    def of(cls, plan: TablePlan, schemas: list[pa.Schema], arguments: StreamArguments) -> Running:
        """Before the first event."""
        left, right = (Stream.of(plan, n, schemas[n % len(schemas)]) for n in (LEFT, RIGHT))
        return cls(
            plan,
            arguments.delays(plan.tick),
            arguments.aheads(plan.tick),
            horizon_of(plan),
            arguments.gives_pairs_at_once,
            (left, right),
        )

    @property
    def clocks(self) -> tuple[int, int]:
        """The clocks of both sides, ticks."""
        return self.streams[LEFT].clock.now, self.streams[RIGHT].clock.now

    def pushed(self, number: int, table: pa.Table) -> tuple[Running, pa.Table]:
        """After a push of one side, and what it makes final."""
        stream, delay = self.streams[number], self.delays[number]
        arrivals = read_arrivals(
            self.plan, number, table, stream.clock, delay,
            ahead=self.aheads[number], taken=stream.taken,
        )  # fmt: skip
        if not self.plan.spec.is_one_stream:
            return self._took(number, arrivals)
        left, right = arrivals.events
        after, found = self._took(LEFT, replace(arrivals, events=(left,)))
        after, others = after._took(RIGHT, replace(arrivals.again, events=(right,)))
        return after, pa.concat_tables([found, others])

    def _took(self, number: int, arrivals: Arrivals) -> tuple[Running, pa.Table]:
        """After events of one side, and what they make final."""
        after, (events,) = self._with(number, self.streams[number].after(arrivals)), arrivals.events
        if self.plan.spec.choice.one_to_one:
            return after._keeping(number, events)._decided(self, arrivals.matchless, number)
        if self.at_once:
            found, counters = self._pairs(number, events)
            return after._keeping(number, events)._counted(counters), found
        if number == RIGHT:
            return after._keeping(number, events)._settled(self._until[LEFT], [])
        # Some come when their matches can come no more: they are final already.
        is_final = events.side.max_time < self._until[LEFT]
        final, waiting = (events.where(mask) for mask in (is_final, ~is_final))
        lonely = [] if arrivals.matchless is None else [arrivals.matchless]
        return after._keeping(number, waiting)._settled(self._until[LEFT], [final, *lonely])

    def advanced(self, times: tuple[int, int]) -> tuple[Running, pa.Table]:
        """After time has passed on both sides, and what that makes final."""
        streams = [
            replace(s, clock=s.clock.advanced(t)) for s, t in zip(self.streams, times, strict=True)
        ]
        after = replace(self, streams=(streams[LEFT], streams[RIGHT]))
        if self.plan.spec.choice.one_to_one:
            return after._decided(self)
        if self.at_once:
            return after._trimmed(), self.plan.schema.empty_table()
        return after._settled(self._until[LEFT], [])

    def finished(self) -> tuple[Running, pa.Table]:
        """After the last event, and what had to wait for that."""
        return self.advanced((_END, _END))

    def without_late(self, number: int) -> tuple[Running, pa.Table]:
        """The late rows of a side, taken."""
        stream = self.streams[number]
        late = pa.concat_tables(stream.late)
        return self._with(number, replace(stream, late=(late.schema.empty_table(),))), late

    def without_ahead(self, number: int) -> tuple[Running, pa.Table]:
        """The rows of a side that were set aside, taken."""
        stream = self.streams[number]
        ahead = pa.concat_tables(stream.ahead)
        return self._with(number, replace(stream, ahead=(ahead.schema.empty_table(),))), ahead

    def summary(self) -> StreamSummary:
        """What was taken and found so far."""
        left, right = self.streams
        return StreamSummary(
            left.counts,
            None if self.plan.spec.is_one_stream else right.counts,
            (left.late_count, right.late_count),
            (left.ahead_count, right.ahead_count),
            (len(left.live), len(right.live)),
            sum(s.nbytes for s in self.streams),
            self.counters,
            self.plan.tick,
        )

    def _pairs(self, number: int, events: Part) -> tuple[pa.Table, JoinCounters]:
        """Those of new events with the live ones of the other side."""
        horizon, others = self.horizon, self.streams[1 - number].live
        if number == LEFT:
            near = others.near(events, (horizon.first, horizon.last))
            return join_block(self.plan, self.horizon, events, near)
        near = others.near(events, (-horizon.last, -horizon.first))
        return join_block(self.plan, self.horizon, near, events)

    def _settled(self, settled: int, final: list[Part]) -> tuple[Running, pa.Table]:
        """Return left events that have become final, with others that are."""
        left, right = (stream.live for stream in self.streams)
        rows = joined([left.between(settled, self._until[LEFT]), *final])
        near = right.near(rows, (self.horizon.first, self.horizon.last))
        found, counters = join_block(self.plan, self.horizon, rows, near)
        return self._trimmed()._counted(counters), found

    def _decided(
        self, before: Running, matchless: Part | None = None, number: int = LEFT
    ) -> tuple[Running, pa.Table]:
        """Give out one-to-one pairs that have become final since a state before this one."""
        left, right = (stream.live for stream in self.streams)
        step = Step(before._progress, self._progress)
        found, counters = decided(self.plan, self.horizon, (left, right), step)
        if matchless is not None and number == LEFT:
            alone, _ = join_block(self.plan, self.horizon, matchless, right.none)
            found = pa.concat_tables([found, alone])
        return self._trimmed()._counted(counters), found

    @property
    def _progress(self) -> tuple[Settled, Settled]:
        until, (left, right) = self._until, self.streams
        return Settled(until[LEFT], left.taken), Settled(until[RIGHT], right.taken)

    def _keeping(self, number: int, events: Part) -> Running:
        stream = self.streams[number]
        kept = self._with(number, stream.with_live(stream.live.with_more(events)))
        return kept._trimmed() if self.at_once else kept

    def _trimmed(self) -> Running:
        """Without events that nothing to come, or that waits, can be a match of."""
        left, right = self.streams
        until = self._until
        if self.plan.spec.choice.one_to_one:
            until = kept_from(self.horizon, until)
        elif not self.at_once:
            earliest = min(self._to_come[LEFT], until[LEFT])
            until = until[LEFT], self.horizon.right_until(earliest)
        streams = (
            left.with_live(left.live.since(until[LEFT])),
            right.with_live(right.live.since(until[RIGHT])),
        )
        return replace(self, streams=streams)

    @property
    def _to_come(self) -> tuple[int, int]:
        """The least max_time that can still come on either side."""
        (left, right), delays = self.clocks, self.delays
        return left - delays[LEFT], right - delays[RIGHT]

    @property
    def _until(self) -> tuple[int, int]:
        """The least max_time of either side that something to come can be a match of."""
        left, right = self._to_come
        return self.horizon.left_until(right), self.horizon.right_until(left)

    def _with(self, number: int, stream: Stream) -> Running:
        left, right = self.streams
        return replace(self, streams=(stream, right) if number == LEFT else (left, stream))

    def _counted(self, counters: JoinCounters) -> Running:
        return replace(self, counters=self.counters + counters)


@dataclass(frozen=True, eq=False)
class Stream:
    """One side so far."""

    live: Live
    clock: SideClock
    late: tuple[pa.Table, ...]
    ahead: tuple[pa.Table, ...]
    counts: SideCounts = field(default_factory=SideCounts)
    late_count: int = 0
    ahead_count: int = 0
    behind: int = 0
    beyond: tuple[int, int] = (0, 0)
    taken: int = 0

    @classmethod
    def of(cls, plan: TablePlan, number: int, schema: pa.Schema) -> Stream:
        """Before the first event."""
        none = schema.empty_table()
        clock = SideClock()
        arrivals = read_arrivals(plan, number, none, clock, 0)
        live = Live(arrivals.events[number % len(arrivals.events)])
        return cls(live, clock, (none,), (none,))

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""
        return self.live.nbytes + sum(rows.nbytes for rows in (*self.late, *self.ahead))

    def after(self, arrivals: Arrivals) -> Stream:
        """The same after a push, whose events are yet to be kept."""
        late = (*self.late, arrivals.late) if arrivals.late.num_rows else self.late
        ahead = (*self.ahead, arrivals.ahead) if arrivals.ahead.num_rows else self.ahead
        return replace(
            self,
            clock=arrivals.clock,
            late=late,
            ahead=ahead,
            counts=self.counts + arrivals.counts,
            late_count=self.late_count + arrivals.late.num_rows,
            ahead_count=self.ahead_count + arrivals.ahead.num_rows,
            behind=arrivals.behind,
            beyond=arrivals.beyond,
            taken=self.taken + len(arrivals.events[0]),
        )

    def with_live(self, live: Live) -> Stream:
        """The same with other events."""
        return replace(self, live=live)


@dataclass(frozen=True)
class StreamSummary:
    """What became of all rows so far, and what was found.

    Parameters
    ----------
    left, right : SideCounts
        What the rows were. For one stream `left` tells of it, and `right` has no value.
    late : (int, int)
        Rows among them that came later than the delay permits, left and right. They took no part.
    ahead : (int, int)
        Rows among them that were set aside, left and right: too far ahead of the last rows of their
        side. They took no part, and moved no clock.
    live : (int, int)
        Events that are kept, left and right; for one stream those kept for later and for earlier matches.
    nbytes : int
        Bytes of these, and of late rows that `take_late` has not returned yet, and rows set aside
        that `take_ahead` has not.
    counters : JoinCounters
        Candidates and pairs.
    tick : Tick or None
        The unit in which times are counted; None until the columns of both sides are known.
    """

    left: SideCounts = field(default_factory=SideCounts)
    right: SideCounts | None = field(default_factory=SideCounts)
    late: tuple[int, int] = (0, 0)
    ahead: tuple[int, int] = (0, 0)
    live: tuple[int, int] = (0, 0)
    nbytes: int = 0
    counters: JoinCounters = field(default_factory=JoinCounters)
    tick: Tick | None = None
