"""Causality joins, GPU and CPU: the same pairs to the bit, then how fast."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from bench.experiment import Bench
from bench.gpu.backends import CPU, GPU
from coincide.model.causality.condition import (
    CausalityCondition,
    CausalityModel,
    Ellipsoidal,
    Spatial,
    SpeedRange,
    Temporal,
)
from coincide.model.causality.spaces import PlacedEvents, Plane, Sphere
from coincide.model.templates.template import Template, TemplateTable, template_table
from coincide.model.units import Tick

_PAIRS_AT_ONCE = 1 << 22
_TICKS_APART = 20
"""From an event of a side to the next, on average."""


@dataclass(frozen=True)
class Traces:
    """Causes and effects at random times and places, and the question about them."""

    events: int  # each side's
    predicates: Sequence[Any]
    places: int | None = None  # how many there are, such as stations; None: anywhere
    on_sphere: bool = False
    one_stream: bool = False
    lengths: int = 0  # the longest of interval timestamps, ticks; 0: exact times
    confidence: float | None = None
    are_histograms: bool = False  # timestamps: of `_templates`

    def made(self) -> tuple[PlacedEvents, PlacedEvents | None, CausalityModel]:
        """Seeded; places are in a square of 1,000, or in a box of 10 by 10 degrees."""
        random = np.random.default_rng(4)
        space = Sphere() if self.on_sphere else Plane()
        sides = [self._side(random, space) for _ in range(1 if self.one_stream else 2)]
        more = {} if self.confidence is None else {"confidence": self.confidence}
        condition = CausalityCondition(self.predicates, space, **more)
        return sides[0], None if self.one_stream else sides[1], condition.model(Tick())

    def _side(self, random: np.random.Generator, space: Any) -> PlacedEvents:
        n = self.events
        times = random.integers(0, n * _TICKS_APART, n)
        where = random.random((2, n if self.places is None else self.places))
        where = where * 10 + 40 if self.on_sphere else where * 1000
        if self.places is not None:
            where = where[:, random.integers(0, self.places, n)]
        templates = _templates() if self.are_histograms else None
        shapes = self.lengths if templates is None else templates.lengths.size
        lengths = random.integers(0, shapes, n) if shapes else None
        ranks = np.arange(n) if self.one_stream else None
        points = space.points(list(where))
        return PlacedEvents(times, points, lengths=lengths, ranks=ranks, templates=templates)


def _templates() -> TemplateTable:
    """Delays of a few devices: skewed, of two peaks, of one instant and some scatter."""
    return template_table({
        "skewed": Template([0, 20, 60, 180, 300], [0.5, 0.3, 0.15, 0.05]),
        "two peaks": Template([0, 30, 200, 240], [0.45, 0.0, 0.55]),
        "an instant": Template([0, 0, 100], [0.8, 0.2]),
        "even": Template([0, 150], [1.0]),
    })  # fmt: skip


_NEAR = [Spatial(100), Temporal(0, 1000)]
_SPEEDS = [Spatial(200), SpeedRange(0.1, 0.5, 50, per=None)]


def check_causality(bench: Bench, both: dict[str, Any]) -> None:
    """By place, by grid and by time; the sphere, interval timestamps, a stream with itself."""
    traces = partial(Traces, bench.pick(20_000, 40))
    works = {
        "at places": traces(_SPEEDS, places=bench.pick(300, 5)),
        "anywhere": traces([*_SPEEDS, Ellipsoidal(300, 900)]),
        "on a sphere": traces(_NEAR, on_sphere=True),
        "by time alone": traces([Temporal(-100, 500)]),
        "interval timestamps": traces(_SPEEDS, lengths=300, confidence=0.4),
        "histogram timestamps": traces(_SPEEDS, are_histograms=True, confidence=0.4),
        "one stream": traces(_NEAR, one_stream=True),
    }
    for name, work in works.items():
        bench.say(f"equal on causality, {name}")
        given = work.made()
        answers = {who: _everything(_join(package, *given)) for who, package in both.items()}
        bench.check_equal(f"causality, {name}", answers)


def time_causality(bench: Bench, both: dict[str, Any]) -> None:
    """A million events a side, some fifty by time for each cause."""
    traces = partial(Traces, bench.pick(1_000_000, 40))
    for name, work in {
        "at 300 places": traces(_NEAR, places=bench.pick(300, 5)),
        "anywhere": traces(_NEAR),
        "on a sphere": traces(_NEAR, on_sphere=True),
        "anywhere, interval timestamps": traces(_NEAR, lengths=300, confidence=0.5),
        "anywhere, histogram timestamps": traces(_NEAR, are_histograms=True, confidence=0.5),
    }.items():
        label = f"causality, {name}"
        given = work.made()
        counts = {
            who: partial(_count, package, given, bench.cores) for who, package in both.items()
        }
        timings = bench.compared(label, counts, rounds=3)
        bench.ratio(f"{label}: CPU / GPU", timings[CPU], timings[GPU])
        for who, timing in timings.items():
            bench.figure(f"{label}: {who}", 2 * work.events / timing.median / 1e6, "M events/s")


def _join(package: Any, *given: Any, threads: int = 1) -> Any:
    return import_module(f"{package.__name__}.causality").CausalityJoin(*given, threads=threads)


def _everything(join: Any) -> str:
    """A digest of all that a join can answer, but for the order of one cause's effects."""
    digest = hashlib.sha256()
    for array in (join.left_order, join.right_order, join.counts):
        digest.update(np.ascontiguousarray(array).tobytes())
    for run in join.chunks(10_000):
        columns = join.measured_pairs(*run, join.left_order, join.right_order)
        order = np.lexsort((columns[1], columns[0]))
        for column in columns:
            digest.update(column[order[: column.size]].tobytes())
    digest.update(repr(join.counters).encode())
    return digest.hexdigest()[:16]


def _count(package: Any, given: Any, threads: int) -> int:
    """Laid out, counted, measured and brought to host memory. Returns how many pairs."""
    join = _join(package, *given, threads=threads)
    return sum(
        join.measured_pairs(*run, join.left_order, join.right_order)[0].size
        for run in join.chunks(_PAIRS_AT_ONCE)
    )
