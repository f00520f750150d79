"""Joins of made-up events: of many sizes and densities, and those on which kernels go wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from coincide.model.condition import Window
from coincide.model.timestamps import IntervalEvents


@dataclass(frozen=True)
class Work:
    """A join: sizes, density, condition."""

    events: int  # each side's
    rate: float = 100.0  # events per second of each side, in each group
    confidence: float = 0.8
    deadline_us: int = 500_000
    groups: int = 1
    classes: int | None = None

    @property
    def window(self) -> Window:
        """The condition."""
        return Window(-self.deadline_us, self.deadline_us, self.confidence)

    def times(self, factor: int) -> Work:
        """The same density with this many times the events."""
        return replace(self, events=factor * self.events)

    def sides(self) -> tuple[IntervalEvents, IntervalEvents]:
        """Both sides, seeded."""
        left, right = (self._side(seed) for seed in (1, 2))
        return left, right

    def _side(self, seed: int) -> IntervalEvents:
        random = np.random.default_rng(seed)
        span = int(self.events / self.rate / self.groups * 1e6)
        begin = np.sort(random.integers(0, max(1, span), self.events))
        length = random.integers(20_000, 200_000, self.events, endpoint=True)
        group = random.integers(0, self.groups, self.events) if self.groups > 1 else None
        return IntervalEvents(begin, begin + length, group, self.groups)

    def tables(self) -> tuple[pa.Table, pa.Table]:
        """Both sides in Arrow."""
        left, right = (
            pa.table(
                {"id": np.arange(len(side)), "min_time": side.min_time, "max_time": side.max_time}
            )
            for side in self.sides()
        )
        return left, right


def adversarial(n: int) -> Iterator[tuple[str, Callable[[], tuple[Any, Any, Window]]]]:
    """Joins on which kernels go wrong, if they do."""
    random = np.random.default_rng(7)

    def side(low: np.ndarray, length: np.ndarray, groups: int = 1) -> IntervalEvents:
        group = random.integers(-1, groups, low.size) if groups > 1 else None
        return IntervalEvents(low, low + length, group, groups)

    def drawn(size: int, span: int, longest: int, groups: int = 1) -> IntervalEvents:
        low, length = random.integers(-span, span, size), random.integers(0, longest + 1, size)
        return side(low, length, groups)

    wide, narrow = Window(-500, 500, 0.8), Window(-3, 4, 0.2)
    few = max(10, n // 20)
    yield "random", lambda: (drawn(n, 50 * n, 200), drawn(n, 50 * n, 200), wide)
    yield "narrow window", lambda: (drawn(n, 50 * n, 200), drawn(n, 50 * n, 200), narrow)
    yield (
        "certainty",
        lambda: (drawn(n, 50 * n, 200), drawn(n, 50 * n, 200), Window(-500, 500, 1.0)),
    )
    yield "many keys", lambda: (drawn(n, 5 * n, 99, n // 9), drawn(n, 5 * n, 99, n // 9), wide)
    yield "instants", lambda: (drawn(n, 20 * n, 0), drawn(n, 20 * n, 0), wide)
    yield "one burst", lambda: (drawn(few, 10, 60), drawn(few, 10, 60), wide)
    yield "empty side", lambda: (drawn(0, 9, 9), drawn(n, 50 * n, 9), wide)
    yield "huge times", lambda: (
        drawn(few, 2**60, 2**59), drawn(few, 2**60, 2**59), Window(-(2**59), 2**59, 0.5)
    )  # fmt: skip
    yield "equal events", lambda: (
        side(np.zeros(few, np.int64), np.full(few, 50)), drawn(few, 700, 90), wide
    )  # fmt: skip
