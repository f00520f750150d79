"""A run of base events on the device: placed, probed, and ready to be counted and filled."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from gpu_kernels.device.arrays import array_module
from gpu_kernels.device.memory import available, exclusive_scan, filled, take
from gpu_kernels.kernels import join as placement
from gpu_kernels.kernels import join as tiles
from gpu_kernels.kernels.compilation import THREADS, TILE, launch_each, launch_tiles
from gpu_kernels.kernels.join import Run, Sides, Spans

_FEW_ENTRIES = 1 << 22
"""A block of so many fills a GPU, and takes some hundred megabytes: if need be it is split."""

_MANY_ENTRIES = 1 << 25
"""With so many, by estimate, what a block takes to begin hardly shows. At most `layout.MOST_ENTRIES`."""

_ENTRY_BYTES = 128
"""Of all arrays that grow with the entries, counted generously."""

_MEMORY_SHARE = 0.25
"""Of the memory that is left, for a block's entries; candidates and matches need some, too."""


def _zeros(size: int, dtype: Any) -> Any:
    return filled(size, 0, dtype)


class BandedSides(NamedTuple):
    """Both sides of a join, or a block of a stream and its targets, in device memory."""

    sides: Sides
    bands: Any

    @property
    def classes(self) -> int:
        """K2."""
        return self.bands.shape[1]

    def blocks(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Cut base positions into blocks of a bounded number of entries."""
        step = max(1, entries_of_block((stop - start) * self.classes) // self.classes)
        return [(a, min(a + step, stop)) for a in range(start, stop, step)]

    def place(self, start: int, stop: int, shells: bool) -> Placed:
        """Find where base events stand among the targets, and count candidates: `placement.place`."""
        base, targets = self.sides.base, self.sides.targets
        run = Run.of(start, self.classes)
        entries = (stop - start) * self.classes
        # The kernel writes all of each array; without targets nobody does.
        array = take if targets.places.size else _zeros
        spans = Spans(*(array(entries, np.int64) for _ in Spans._fields))
        counts = array(entries + 1, np.int64)
        parts = array(3 * entries + 1 if shells else 2, np.int64)
        if targets.places.size:
            launch_each(
                placement.place, entries, base, targets, self.bands, run, spans, shells,
                counts[1:], parts[1:],
            )  # fmt: skip
        return Placed(run, spans, counts, parts)


class Placed(NamedTuple):
    """A run of base events and what `placement.place` writes of it."""

    run: Any
    spans: Spans
    counts: Any
    parts: Any


class Placing(Protocol):
    """Both sides of a join in device memory: `BandedSides`, or those of another operator."""

    @property
    def sides(self) -> Any:
        """What decides pairs: has a method `takes`."""

    def place(self, start: int, stop: int, shells: bool) -> Placed:
        """Find where base events stand among the targets, and count candidates."""


class Block:
    """A run of base events, placed and probed."""

    _probe: ClassVar[Any] = tiles.probe
    _copy: ClassVar[Any] = tiles.copy

    def __init__(self, placing: Placing, start: int, stop: int) -> None:
        self._run, self._spans, counts, parts = placing.place(start, stop, shells=True)
        self._scan = exclusive_scan(counts)
        self.probed = int(self._scan[-1])
        self._owners = tile_owners(self._scan, self.probed)
        n_tiles = self._owners.size - 1
        self._flags = take(n_tiles * THREADS, np.uint8)
        totals = take(n_tiles + 1, np.int64)
        launch_tiles(
            self._probe, self.probed, placing.sides, self._run, self._spans, self._scan, self._owners,
            self._flags, totals[1:], parts[1:],
        )  # fmt: skip
        self._before = exclusive_scan(totals)
        self._places = exclusive_scan(parts)

    @cached_property
    def matches(self) -> int:
        """Matches of all base events together."""
        return int(self._places[-1])

    @property
    def counts(self) -> Any:
        """Matches of each base event, in device memory: int64 array, shape (stop - start,)."""
        bounds = self._bounds()
        return bounds[1:] - bounds[:-1]

    def _bounds(self) -> Any:
        """Where in the output the matches of each base event begin."""
        return self._places[:: 3 * self._run.classes]

    @property
    def tally(self) -> np.ndarray:
        """Pairs that qualify unseen, candidates probed, and those of them that qualify."""
        probed_pairs = int(self._before[-1])
        return np.array([self.matches - probed_pairs, self.probed, probed_pairs])

    def _inner_before(self) -> Any:
        """How many targets are in the inner ranges before that of each entry."""
        counts = take(self._spans.inner.size + 1, np.int64)
        array_module().subtract(self._spans.shell, self._spans.inner, out=counts[1:])
        return exclusive_scan(counts)

    def fill(self, base_values: Any | None, target_values: Any) -> tuple[Any, Any]:
        """The matches, in device memory."""
        matches = self.matches
        both = base_values is not None
        target_out = take(matches, np.int64)
        base_out = take(matches, np.int64) if both else target_out
        if matches == 0:
            return base_out if both else None, target_out
        if not both:
            base_values = target_values
        launch_tiles(
            self._copy, matches, self._run, self._spans, self._places,
            tile_owners(self._places, matches), both, base_values, target_values, base_out, target_out,
        )  # fmt: skip
        launch_tiles(
            tiles.scatter, self.probed, self._spans, self._scan, self._owners, self._flags,
            self._before, self._inner_before(), target_values, target_out,
        )  # fmt: skip
        return base_out if both else None, target_out


def entries_of_block(wanted: int) -> int:
    """The most entries of a block: few blocks take less time to begin, small ones less memory."""
    if wanted <= _FEW_ENTRIES:
        return max(1, wanted)
    fitting = int(_MEMORY_SHARE * available()) // _ENTRY_BYTES
    return min(max(_FEW_ENTRIES, fitting), _MANY_ENTRIES)


def tile_owners(scan: Any, items: int) -> Any:
    """Whose the first item of each tile is: `placement.tile_owners`."""
    owners = take(-(-items // TILE) + 1, np.int64)
    launch_each(placement.tile_owners, owners.size, scan, owners)
    return owners
