"""Random streams of readings, and queries that come and go, for the monitor and for its oracle."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from coincide.model.borders.crossings import EVENTS
from coincide.model.borders.index import CLOSED, closed_bits
from coincide.model.borders.monitor import Monitor
from coincide.model.borders.options import BorderOptions
from cpu_fallback.borders import BorderSearch
from cpu_fallback.reference.borders import BorderReference, Crossing

NAN, INF = float("nan"), float("inf")


@dataclass(frozen=True)
class Case:
    """What happens to a monitor.

    Parameters
    ----------
    dimensions : int
    options : BorderOptions
    steps : list of tuple
        ("push", readings), ("add", (ranges, which ends they hold)) or ("remove", numbers of queries).
    """

    dimensions: int
    options: BorderOptions
    steps: list[tuple[str, list[Any]]]


_GRID = st.integers(-2, 8).map(float)
_ANY = st.one_of(_GRID, st.floats(-3, 9), st.sampled_from([0.1, 0.3, 1e300, -1e300]))
_ENDS = [5e-324, -5e-324, -0.0, 0.0, 2.0, 4.0, float(np.finfo(float).max)]
_NEAR = st.sampled_from(
    [v for end in _ENDS for v in (np.nextafter(end, -9), end, np.nextafter(end, 9))]
)
"""Borders, and the floats next to them."""


@st.composite
def cases(draw: st.DrawFn, most_dimensions: int = 4, most_readings: int = 25) -> Case:
    """Values on borders, equal borders, jumps over all, empty and open ranges, gaps, late readings."""
    dimensions = draw(st.integers(1, most_dimensions))
    value = draw(st.sampled_from([_GRID, _ANY, _NEAR.map(float)]))
    point = st.tuples(*[st.one_of(*[value] * 15, st.just(NAN))] * dimensions)
    side = st.tuples(st.one_of(*[value] * 5, st.just(-INF)), st.one_of(*[value] * 5, st.just(INF)))
    sides = st.lists(side.map(sorted), min_size=dimensions, max_size=dimensions)
    closed = st.sampled_from(draw(st.sampled_from([CLOSED, ("left",), ("both",)])))
    area = st.tuples(sides, closed)
    reading = st.tuples(st.integers(0, 3), st.integers(0, 30), point)
    steps: list[tuple[str, list[Any]]] = []
    queries, live = 0, []
    for _ in range(draw(st.integers(1, 5))):
        added = draw(st.lists(area, max_size=6))
        live += range(queries, queries + len(added))
        queries += len(added)
        steps.append(("add", added))
        if live and draw(st.booleans()):
            removed = draw(st.lists(st.sampled_from(live), unique=True, max_size=3))
            live = [number for number in live if number not in removed]
            steps.append(("remove", removed))
        readings = draw(st.lists(reading, max_size=most_readings))
        if draw(st.booleans()):
            readings = sorted(readings, key=lambda each: each[1])
        steps.append(("push", readings))
    each = st.sampled_from([0.0, 0.5, 2.0])
    margin = draw(st.one_of(st.just(0.0), each, st.tuples(*[each] * dimensions)))
    options = BorderOptions(
        first=draw(st.sampled_from(["ignore", "outside"])),
        pass_through=margin == 0.0 and draw(st.booleans()),
        hysteresis=margin,
        interpolate=True,
        processing=draw(st.sampled_from(["auto", "traversal", "three-sided"])),
        batch_events=draw(st.sampled_from([1, 7, 1000])),
        threads=1,
    )
    return Case(dimensions, options, steps)


def expected(case: Case) -> list[list[Crossing]]:
    """What the oracle says to each push, and at last who is inside what."""
    margin = case.options.hysteresis
    oracle = BorderReference(
        from_outside=case.options.first == "outside",
        pass_through=case.options.pass_through,
        margin=margin,
    )
    answers, queries = [], 0
    for what, content in case.steps:
        if what == "add":
            for sides, closed in content:
                oracle.add(queries, *zip(*sides, strict=True), closed)
                queries += 1
        elif what == "remove":
            for number in content:
                oracle.remove(number)
        else:
            answers.append(sorted(each for row in content for each in oracle.read(*row)))
    return [*answers, sorted(oracle.inside)]


def answered(case: Case, new_search: Any = BorderSearch) -> list[list[Any]]:
    """What a monitor says to each push, and at last who is inside what."""
    monitor = Monitor(case.dimensions, case.options, new_search)
    monitor.streams.resize(4)
    answers = []
    for what, content in case.steps:
        if what == "add":
            sides, closed = zip(*content, strict=True) if content else ((), ())
            ranges = np.array(sides, np.float64).reshape(-1, case.dimensions, 2)
            monitor.add(ranges[:, :, 0], ranges[:, :, 1], closed_bits(list(closed)))
        elif what == "remove":
            monitor.remove(np.array(content, np.int64))
        else:
            answers.append(sorted(pushed(monitor, content)))
            monitor = pickle.loads(pickle.dumps(monitor))
    inside: list[Any] = []
    for streams, queries in monitor.inside():
        inside += zip(streams.tolist(), queries.tolist(), strict=True)
    return [*answers, sorted(inside)]


def pushed(monitor: Monitor, readings: list[Any]) -> list[Crossing]:
    """The crossings of a batch."""
    streams = np.array([reading[0] for reading in readings], np.int64)
    times = np.array([reading[1] for reading in readings], np.int64)
    dimensions = monitor.ranges.dimensions
    values = np.array([reading[2] for reading in readings], np.float64).reshape(-1, dimensions)
    crossings = []
    for found in monitor.push(streams, times, values):
        assert found.instants is not None
        columns = [found.queries, streams[found.rows], found.events]
        columns += [found.min_times, found.max_times, found.instants]
        for query, stream, event, *when in zip(*map(np.ndarray.tolist, columns), strict=True):
            crossings.append(Crossing(query, stream, EVENTS[event], *when))
    return crossings
