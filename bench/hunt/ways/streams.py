"""Events that arrive block by block: the stream correlators."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bench.hunt.cases import RIGHT, Case, Verdict, Way
from bench.hunt.chance import Chance
from bench.hunt.comparing import differing
from bench.hunt.intervals import LIMIT
from bench.hunt.judging import judge_error
from bench.hunt.meaning import Event
from bench.hunt.oracle import event_probability
from bench.hunt.templates import Templates
from bench.papers.streams import ALGORITHMS, stream_correlator
from bench.papers.streams.correlator import StreamCorrelator
from coincide import TimingCondition, within
from coincide.model.templates.template import GivenTemplate
from coincide.model.templates.template import Templates as GivenTemplates
from cpu_fallback.reference.decision import qualifies

_MOST = 2**58
"""Delays and the like stay far from the limits."""


@dataclass(frozen=True)
class Arrivals:
    """The events of one side in order of arrival."""

    events: list[Event]
    instants: list[int] | None  # when each arrives; None: at the largest max_time so far
    delay: int  # how late they may be

    def timely(self) -> list[int]:
        """Numbers of the events that are not late: by the definition, one after the other."""
        found, clock = [], None
        for i, event in enumerate(self.events):
            arrival = event.high if self.instants is None else self.instants[i]
            clock = arrival if clock is None else max(clock, arrival)
            if event.high >= clock - self.delay:
                found.append(i)
        return found


def _judge(case: Case, folder: Path) -> Verdict:
    chance = case.chance("stream")
    explicit = chance.happens(50)
    sides = [_arrivals(side.events, chance, explicit) for side in case.oracle.sides]
    emit = chance.choice(("pairs", "pairs", "counts"))
    try:
        correlator = _correlator(case, sides, chance, emit)
        left, right = _fed(correlator, sides, chance)
    except Exception as error:
        return judge_error(error, set())
    late = tuple(len(side.events) - len(side.timely()) for side in sides)
    if tuple(correlator.stats.late) != late:
        return Verdict("wrong", f"late events {tuple(correlator.stats.late)}, expected {late}")
    wanted = _pairs(case, sides)
    if emit == "counts":
        found = correlator.stats.pairs
        return RIGHT if found == len(wanted) else Verdict(
            "wrong", f"{found} pairs counted, expected {len(wanted)}"
        )  # fmt: skip
    wrong = differing(Counter(zip(left, right, strict=True)), Counter(wanted))
    return Verdict("wrong", wrong) if wrong else RIGHT


def _arrivals(events: list[Event], chance: Chance, explicit: bool) -> Arrivals:
    """Events in an order of arrival that keeps a delay; now and then some that do not."""
    given = [event for event in events if event.matchable]
    span = max((e.high for e in given), default=0) - min((e.high for e in given), default=0)
    delay = min(_MOST, chance.choice((0, 1, span // 20, span // 4, span)))
    waits = [round(delay * chance.choice((0.0, 1.0, chance.fraction()))) for _ in given]
    arrivals = [min(event.high + wait, LIMIT) for event, wait in zip(given, waits, strict=True)]
    order = sorted(range(len(given)), key=lambda i: (arrivals[i], chance.fraction()))
    arrived = [given[i] for i in order]
    instants = [arrivals[i] for i in order] if explicit else None
    if not explicit and chance.happens(30):
        arrived = chance.shuffled(arrived)
    return Arrivals(arrived, instants, delay)


def _correlator(case: Case, sides: list[Arrivals], chance: Chance, emit: str) -> StreamCorrelator:
    limits: dict[str, Any] = {}
    for name, side in zip(("left", "right"), sides, strict=True):
        limits[f"{name}_delay"] = side.delay
        if (templates := case.data.sides[name == "right"].templates) is not None:
            limits[f"{name}_templates"] = _given(templates)
            continue
        lengths = [event.high - event.low for event in side.events]
        limits[f"{name}_longest"] = max(lengths, default=0)
        limits[f"{name}_shortest"] = chance.choice((0, min(lengths, default=0)))
    options: dict[str, Any] = chance.choice(
        (
            {"block": chance.choice((1, 2, 7, 1000)), "every": None},
            {"block": None, "every": chance.choice((1, 50, 10_000))},
            {"block": 3, "every": 50},
        )
    )
    condition = TimingCondition(within(case.data.lo, case.data.hi), case.data.confidence)
    algorithms = [name for name in ALGORITHMS if name != "lookup" or not case.data.has_histograms]
    return stream_correlator(
        chance.choice(algorithms), condition, emit=emit, classes=chance.integer(1, 8), **limits,
        **options,
    )  # fmt: skip


def _fed(
    correlator: StreamCorrelator, sides: list[Arrivals], chance: Chance
) -> tuple[list[int], list[int]]:
    """Push pieces of both streams by turns, then flush: numbers of the pairs."""
    queues = [_pieces(side, chance) for side in sides]
    turns = chance.shuffled([0] * len(queues[0]) + [1] * len(queues[1]))
    results = []
    for side in turns:
        start, stop = queues[side].pop(0)
        given = sides[side]
        piece = given.events[start:stop]
        times = _times(piece)
        more = {} if given.instants is None else {
            "arrival": np.array(given.instants[start:stop], np.int64)
        }  # fmt: skip
        results.append(correlator.push(("left", "right")[side], times, **more))
    results.append(correlator.flush())
    return (
        [int(n) for result in results for n in result.left],
        [int(n) for result in results for n in result.right],
    )


def _given(templates: Templates) -> GivenTemplates:
    return GivenTemplates(
        {
            str(name): GivenTemplate(edges, masses, templates.delays)
            for name, edges, masses in templates.given
        }
    )


def _times(piece: list[Event]) -> tuple[np.ndarray, np.ndarray]:
    """What is pushed: ends of intervals, or ends and templates of histograms."""
    low, high = (np.array([getattr(e, end) for e in piece], np.int64) for end in ("low", "high"))
    if any(event.shape is not None for event in piece):
        return high, np.array([str(event.row.template) for event in piece], object)
    return low, high


def _pieces(side: Arrivals, chance: Chance) -> list[tuple[int, int]]:
    """Where to cut a stream; twice at one place makes an empty push."""
    size = len(side.events)
    cuts = sorted(chance.integer(0, size) for _ in range(chance.choice((0, 1, 2, 5))))
    edges = [0, *cuts, size]
    return list(pairwise(edges))


def _pairs(case: Case, sides: list[Arrivals]) -> list[tuple[int, int]]:
    """By the reference, among the events that are not late; a stream knows no keys."""
    data = case.data
    left, right = sides
    others = [(j, right.events[j]) for j in right.timely()]
    return [
        (i, j)
        for i in left.timely()
        for j, other in others
        if qualifies(event_probability(left.events[i], other, data.lo, data.hi), data.confidence)
    ]


WAYS = [Way("streams", _judge, suits=lambda data: not data.key_types, weight=16)]
