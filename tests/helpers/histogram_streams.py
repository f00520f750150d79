"""Random streams of templates and of intervals, and all their pairs by exact arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from bench.papers.streams.correlator import StreamCorrelator
from coincide import Window
from coincide.model.templates.template import Template, TemplateTable, template_table
from cpu_fallback.reference.join import histogram_probability, qualifies
from tests.helpers.histogram_cases import template_histogram
from tests.helpers.stream_cases import Pairs, cuts, sorted_pairs

SIDES = ("left", "right")


@dataclass(frozen=True, eq=False)
class ShapedStream:
    """Events of one side in order of arrival; `shape` is the template's number, or a length."""

    max_time: np.ndarray
    shape: np.ndarray
    arrival: np.ndarray
    delay: int
    table: TemplateTable | None

    def __len__(self) -> int:
        return self.max_time.size

    def pushed(self, rows: Any) -> tuple[np.ndarray, np.ndarray]:
        """Some of the events, as `push` takes them."""
        if self.table is None:
            return self.max_time[rows] - self.shape[rows], self.max_time[rows]
        return self.max_time[rows], self.shape[rows]

    def declared(self, side: str) -> dict[str, Any]:
        """What the correlator knows about this side."""
        found: dict[str, Any] = {f"{side}_delay": self.delay}
        if self.table is not None:
            return found | {f"{side}_templates": self.table}
        return found | {
            f"{side}_longest": int(self.shape.max(initial=0)),
            f"{side}_shortest": int(self.shape.min(initial=0)),
        }

    def templates(self) -> tuple[TemplateTable, np.ndarray]:
        """A table of one-bucket templates for intervals, and each event's number in it."""
        if self.table is not None:
            return self.table, self.shape
        lengths, number = np.unique(self.shape, return_inverse=True)
        return TemplateTable.of_lengths(lengths), number


@dataclass(frozen=True, eq=False)
class ShapedCase:
    """Two such streams, and a condition."""

    left: ShapedStream
    right: ShapedStream
    window: Window

    @property
    def sides(self) -> tuple[ShapedStream, ShapedStream]:
        return self.left, self.right

    def correlator(self, algorithm: str, make: Any, **options: Any) -> StreamCorrelator:
        """Made by `make`, a `stream_correlator`."""
        declared = self.left.declared("left") | self.right.declared("right")
        return make(algorithm, self.window, **(declared | options))

    def pairs(self) -> Pairs:
        """Every pair is looked at, in exact arithmetic."""
        (x, own), (y, other) = self.left.templates(), self.right.templates()
        lo, hi, confidence = self.window.lo, self.window.hi, self.window.confidence

        @cache
        def is_pair(i: int, j: int, s: int) -> bool:
            left, right = template_histogram(x, i), template_histogram(y, j)
            # Shifting the right time by s is shifting the window back.
            return qualifies(histogram_probability(left, right, lo - s, hi - s), confidence)

        s = self.right.max_time - self.left.max_time[:, np.newaxis]
        found = [
            (a, b)
            for a in range(len(self.left))
            for b in range(len(self.right))
            if is_pair(int(own[a]), int(other[b]), int(s[a, b]))
        ]
        return np.array(found, np.int64).reshape(-1, 2)


def drawn_table(rng: np.random.Generator, count: int, longest: int) -> TemplateTable:
    """Templates with instants, gaps, buckets without mass, and decimal masses."""
    return template_table({f"t{k}": _drawn_template(rng, longest) for k in range(count)})


def _drawn_template(rng: np.random.Generator, longest: int) -> Template:
    buckets = int(rng.integers(1, 6))
    edges = np.sort(rng.integers(-longest, 1, buckets + 1))
    tenths = rng.multinomial(10, np.full(buckets, 1 / buckets))
    return Template(edges.tolist(), [tenth / 10 for tenth in tenths.tolist()])


def drawn_stream(
    rng: np.random.Generator, size: int, span: int, longest: int, templates: bool, delay: int
) -> ShapedStream:
    """Delays up to the largest, which many have exactly."""
    table = drawn_table(rng, int(rng.integers(1, 9)), longest) if templates else None
    most = len(table) if table is not None else longest + 1
    max_time = rng.integers(0, span, size)
    share = rng.choice([0.0, 1.0, rng.random()], size)
    arrival = max_time + np.rint(share * delay).astype(np.int64)
    order = np.lexsort((rng.random(size), arrival))
    shape = rng.integers(0, most, size)
    return ShapedStream(max_time[order], shape[order], arrival[order], delay, table)


def drawn_case(seed: int, kinds: str, size: int = 40) -> ShapedCase:
    """Streams of the kinds "tt", "ti" or "it": templates or intervals; windows also narrow or one-sided."""
    rng = np.random.default_rng([91, seed])
    longest = int(rng.choice([0, 5, 40, 90]))
    sides = [
        drawn_stream(rng, size, 900, longest, kind == "t", int(rng.choice([0, 30, 300])))
        for kind in kinds
    ]
    ends = [
        (-2 * longest - 30, 2 * longest + 60),
        (-longest, longest),
        (0, 200),
        (-200, -20),
        (3, 5),
    ]
    low, high = ends[rng.integers(5)]
    confidence = float(rng.choice([1.0, 0.8, 0.5, 0.3, 0.05]))
    return ShapedCase(sides[0], sides[1], Window(low, high, confidence))


def feed(correlator: StreamCorrelator, case: ShapedCase, rng: np.random.Generator) -> Pairs:
    """Push both streams with their arrivals, mixed or side by side, in pieces of any size; then flush."""
    marks = np.repeat([0, 1], [len(case.left), len(case.right)])
    arrival = np.concatenate([case.left.arrival, case.right.arrival])
    order = np.argsort(arrival, kind="stable")
    rows = np.concatenate([np.arange(len(case.left)), np.arange(len(case.right))])[order]
    marks, arrival = marks[order], arrival[order]
    mixed = bool(rng.integers(2))
    results = []
    for piece in np.split(np.arange(marks.size), cuts(rng, marks.size)):
        push = _push_mixed if mixed else _push_sides
        results += push(correlator, case, marks[piece], rows[piece], arrival[piece])
    results.append(correlator.flush())
    return sorted_pairs(results)


def _push_sides(
    correlator: StreamCorrelator, case: ShapedCase, marks: Any, rows: Any, arrival: Any
) -> list[Any]:
    return [
        correlator.push(
            SIDES[side],
            case.sides[side].pushed(rows[marks == side]),
            arrival=arrival[marks == side],
        )
        for side in (0, 1)
    ]


def _push_mixed(
    correlator: StreamCorrelator, case: ShapedCase, marks: Any, rows: Any, arrival: Any
) -> list[Any]:
    given: Any = [case.sides[side].pushed(rows[marks == side]) for side in (0, 1)]
    if (case.left.table is None) == (case.right.table is None):
        columns = [np.empty(marks.size, np.int64) for _ in range(2)]
        for side in (0, 1):
            for column, values in zip(columns, given[side], strict=True):
                column[marks == side] = values
        given = columns
    return [correlator.push_mixed(marks, tuple(given), arrival=arrival)]
