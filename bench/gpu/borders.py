"""Border crossings, GPU and CPU: the same in the same order, then how fast."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bench.experiment import Bench
from bench.gpu.backends import CPU, GPU
from coincide.model.borders.crossings import PointCrossings
from coincide.model.borders.index import BorderIndex
from coincide.model.borders.moves import EITHER, FIRST, FROM_OUTSIDE, MOVE, PEAKS, WALK

_PROCESSING = {"walk": WALK, "peaks": PEAKS, "either": EITHER}
_CROSSINGS_AT_ONCE = 1 << 18


class Sight(NamedTuple):
    """An index, and what is searched in it: values and kinds of points."""

    index: BorderIndex
    values: np.ndarray
    kinds: np.ndarray


@dataclass(frozen=True)
class Watch:
    """Streams that wander through ranges, between 0 and 1 in each dimension."""

    queries: int
    streams: int
    readings: int  # each stream's
    width: float = 1e-3  # ranges' width
    step: float = 1e-4  # a move's length, on average
    dimensions: int = 1
    # Whole numbers up to this one instead, so that values lie on borders and borders are equal.
    grid: int | None = None

    def made(self) -> Sight:
        """Seeded."""
        random = np.random.default_rng(3)
        lower = random.random((self.queries, self.dimensions))
        steps = random.normal(size=(self.streams, self.readings, self.dimensions))
        steps *= self.step * np.sqrt(np.pi / 2)
        steps[:, 0] = random.random((self.streams, self.dimensions))
        # Back and forth between 0 and 1.
        values = 1 - np.abs(1 - np.cumsum(steps, axis=1) % 2).reshape(-1, self.dimensions)
        upper = lower + self.width
        if self.grid is not None:
            lower, upper, values = (np.rint(each * self.grid) for each in (lower, upper, values))
        kinds = np.full((self.streams, self.readings), MOVE, np.int8)
        kinds[0::2, 0], kinds[1::2, 0] = FIRST, FROM_OUTSIDE
        index = BorderIndex.of(lower, upper, np.arange(self.queries))
        return Sight(index, values, kinds.reshape(-1))


def check_borders(bench: Bench, both: dict[str, Any]) -> None:
    """Short moves and long ones, one dimension and many, values on borders, queries removed."""
    queries, streams, readings = bench.pick((20_000, 200, 500), (40, 2, 20))
    watch = partial(Watch, queries, streams, readings)
    works = {
        "short moves": watch(),
        "long moves": watch(width=0.01, step=0.03),
        "on borders": watch(width=0.02, step=0.02, grid=100),
        "two dimensions": watch(width=0.1, step=0.03, dimensions=2, grid=1000),
        "nine dimensions": watch(width=0.7, step=0.1, dimensions=9),
    }
    for name, work in works.items():
        bench.say(f"equal on borders, {name}")
        sight = work.made()
        for how, processing in _PROCESSING.items():
            sight.index.remove(sight.index.removal(np.arange(processing, queries, 50)))
            answers = {who: _digest(package, sight, processing) for who, package in both.items()}
            bench.check_equal(f"borders, {name}, {how}", answers)


def time_borders(bench: Bench, both: dict[str, Any]) -> None:
    """The setting of the BMQ paper's section 7; many queries and few crossings; long moves."""
    works = {
        "100,000 queries": Watch(*bench.pick((100_000, 2000, 1000), (40, 2, 20))),
        "10^6 queries, hardly a crossing": Watch(
            *bench.pick((1_000_000, 2000, 1000), (40, 2, 20)), step=1e-9
        ),
        "10^6 queries, long moves": Watch(
            *bench.pick((1_000_000, 500, 10), (40, 2, 10)), width=0.01, step=0.03
        ),
    }
    for name, work in works.items():
        label = f"borders, {name}"
        sight = work.made()
        counts = {
            who: partial(_count, package, sight, bench.cores) for who, package in both.items()
        }
        timings = bench.compared(label, counts, rounds=3)
        bench.ratio(f"{label}: CPU / GPU", timings[CPU], timings[GPU])
        for who, timing in timings.items():
            bench.figure(f"{label}: {who}", sight.kinds.size / timing.median / 1e6, "M readings/s")
            if timing.answer:
                bench.figure(
                    f"{label}: {who}", timing.answer / timing.median / 1e6, "M crossings/s"
                )


def _found(
    search: Any, processing: int, wanted: tuple[bool, bool, bool]
) -> Iterator[PointCrossings]:
    points = search.segments.shape[0]
    yield from search.found(0, points, wanted, processing, _CROSSINGS_AT_ONCE)


def _digest(package: Any, sight: Sight, processing: int) -> str:
    """A digest of all that a search says, order included."""
    search = package.BorderSearch(*sight)
    columns = [hashlib.sha256() for _ in range(3)]
    for found in _found(search, processing, (True, True, True)):
        for digest, array in zip(columns, found[2:], strict=True):
            digest.update(np.ascontiguousarray(array).tobytes())
    whole = hashlib.sha256(search.segments.tobytes() + repr(search.retrieved).encode())
    for digest in columns:
        whole.update(digest.digest())
    return whole.hexdigest()[:16]


def _count(package: Any, sight: Sight, threads: int) -> int:
    """Located, found and brought to host memory. Returns how many crossings."""
    search = package.BorderSearch(*sight, threads=threads)
    return sum(found.rows.size for found in _found(search, EITHER, (True, True, False)))
