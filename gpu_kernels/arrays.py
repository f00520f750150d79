"""Joins of events that are in a GPU's memory already, whose answers stay there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from coincide.model.remembered import remembered
from coincide.model.timestamps.intervals import IntervalPairs, IntervalTimes
from gpu_kernels.device.arrays import array_module, release_unused, tuple_on_device
from gpu_kernels.device.memory import (
    DeviceMemoryError,
    exclusive_scan,
    filled,
    in_parts,
    take,
    translated,
)
from gpu_kernels.device.turn import TURN, chosen
from gpu_kernels.join import Block, find_best, prepared
from gpu_kernels.kernels import arrays as checks
from gpu_kernels.kernels import join as tiles
from gpu_kernels.kernels.compilation import launch_each
from gpu_kernels.sides import Check, by_key

_PAIRS_AT_ONCE = 1 << 22
NO_ROW = np.iinfo(np.int64).max
NO_DELTA = np.iinfo(np.int64).min
"""The delta of an event without a match."""


class _Relabelled:
    """An array of a device of which CUDA's array interface says something else."""

    def __init__(self, given: Any, interface: dict[str, Any]) -> None:
        self.given, self.__cuda_array_interface__ = given, interface


def as_array(given: Any) -> tuple[Any, np.dtype | None]:
    """An array of a device as CuPy's, not copied, and the type of its times if it holds such.

    Raises `ValueError` for one that has a mask, whose nulls no array has.
    """
    xp = array_module()
    if isinstance(given, xp.ndarray):  # CuPy would copy one of another device
        return given, None
    interface = getattr(given, "__cuda_array_interface__", None)
    kind = None if interface is None else np.dtype(interface["typestr"])
    has_times = kind is not None and kind.kind in "mM"
    if interface is not None and interface.get("mask") is not None:
        raise ValueError("it has a mask of nulls")
    if hasattr(given, "__dlpack__") and not has_times:
        # Its stream waits for what makes the array; torch's interface names none.
        return xp.from_dlpack(given), None
    if interface is None or not has_times:
        return xp.asarray(given), None
    whole = {**interface, "typestr": np.dtype(np.int64).str}
    return xp.asarray(_Relabelled(given, whole)), kind


def check_devices(arrays: Sequence[Any]) -> None:
    """Refuse arrays of another device than that of this process, with a `ValueError`."""
    found = {array.device.id for array in arrays if array.size}
    if found - {chosen()}:
        raise ValueError(
            f"GPU {', '.join(map(str, sorted(found)))} where this process uses {chosen()}"
        )


@contextmanager
def callers_turn() -> Iterator[None]:
    """Work on the device after the caller's stream, which goes on after that."""
    cuda = array_module().cuda
    caller, ours = cuda.get_current_stream(), cuda.Stream.null
    is_other = caller.ptr != ours.ptr
    ready = caller.record() if is_other else None
    with TURN, translated("the join of arrays"):
        if ready is not None:
            ours.wait_event(ready)
        yield
        if is_other:
            caller.wait_event(ours.record())


class ArrayEvents(NamedTuple):
    """Events of one side: int64 arrays in device memory, C-contiguous."""

    times: IntervalTimes
    key: Any | None = None  # one below 0 matches nothing


def first_invalid(sides: Sequence[tuple[Any, Any, int]]) -> Any:
    """For each side, of min times, max times and a limit of both, the row of the first invalid event.

    An int64 array, in device memory: the greatest int64 for none.
    """
    first = filled(len(sides), np.int64, NO_ROW)
    for k, (low, high, limit) in enumerate(sides):
        launch_each(checks.first_invalid, low.size, low, high, limit, first[k : k + 1])
    return first


class ArrayJoin:
    """The join of two sides, sorted on the device and ready to be asked. Answers stay on the device."""

    def __init__(
        self,
        left: ArrayEvents,
        right: ArrayEvents,
        model: IntervalPairs,
        classes: int | None,
        check: Check | None = None,
    ) -> None:
        codes, groups = _codes(left.key, right.key)
        self._left, self._right, self._model = left.times, right.times, model
        own, others = by_key(left.times, codes[0]), by_key(right.times, codes[1])
        self._left_order, self._right_order, _, self._banded = prepared(
            own, others, groups, model, classes, check
        )
        self._whole: Block | None = None

    @remembered
    def counts(self) -> Any:
        """Matches of each left row: int64 array, shape (n_left,)."""
        counts = take(self._left_order.size, np.int64)

        def count(start: int, stop: int) -> None:
            counts[self._left_order[start:stop]] = self._block(start, stop).counts

        self._in_blocks(count)
        return counts

    @remembered
    def size(self) -> int:
        """The number of all pairs."""
        counts = self.counts
        return int(counts.sum()) if self._whole is None else self._whole.matches

    @remembered
    def offsets(self) -> Any:
        """Where the pairs of each left row begin, by left row: int64 array, shape (n_left + 1,)."""
        offsets = take(self.counts.size + 1, np.int64)
        offsets[1:] = self.counts
        return exclusive_scan(offsets)

    def pairs(self, row_type: type, *, in_left_order: bool) -> tuple[Any, Any]:
        """Rows of all pairs, by base position or by left row."""
        left, right = self._room_for_pairs(row_type)
        filled = 0

        def fill(start: int, stop: int) -> None:
            nonlocal filled
            block, out, begins = self._block(start, stop), (left, right), None
            if in_left_order:
                begins = self.offsets[self._left_order[start:stop]]
            else:
                rows = slice(filled, filled + block.matches)
                out = left[rows], right[rows]
            block.fill(self._left_order, self._right_order, out, begins)
            filled += block.matches

        self._in_blocks(fill)
        self._whole = None
        return left, right

    def _room_for_pairs(self, row_type: type) -> tuple[Any, Any]:
        """Uninitialised arrays of the size of the answer."""
        try:
            return take(self.size, row_type), take(self.size, row_type)
        except DeviceMemoryError:
            if self._whole is None:
                raise
        # Smaller blocks may leave room.
        self._whole = None
        release_unused()
        return self._room_for_pairs(row_type)

    def _block(self, start: int, stop: int) -> Block:
        """A run of base events, placed and probed: one that is all of them is kept until it is filled."""
        if stop - start < self._left_order.size:
            return Block(self._banded, start, stop)
        if self._whole is None:
            self._whole = Block(self._banded, start, stop)
        return self._whole

    def best(self, row_type: type) -> Any:
        """The right row of the most probable match of each left row, -1 for none."""
        xp, n = array_module(), self._right_order.size
        best = filled(self._left_order.size, row_type, -1)
        if not n:
            return best
        # Ties: by max_time, min_time and row.
        rows = xp.argsort(self._right.min_time, kind="stable")
        rows = rows[xp.argsort(self._right.max_time[rows], kind="stable")]
        ranks = take(n, np.int64)
        ranks[rows] = xp.arange(n, dtype=np.int64)
        ranks = ranks[self._right_order]

        def choose_best(start: int, stop: int) -> None:
            least, highest, _ = find_best(self._banded, ranks, start, stop)
            chosen = rows[xp.minimum(least, n - 1)]
            chosen = xp.where(highest > -np.inf, chosen, -1).astype(row_type)
            best[self._left_order[start:stop]] = chosen

        self._in_blocks(choose_best)
        return best

    def _in_blocks(self, work: Callable[[int, int], None]) -> None:
        def part(start: int, stop: int) -> None:
            try:
                with translated():
                    work(start, stop)
            except DeviceMemoryError:
                self._whole = None
                raise

        for block in self._banded.blocks(0, self._left_order.size):
            in_parts(part, *block)

    def probabilities(self, left_rows: Any, right_rows: Any) -> Any:
        """Satisfaction probabilities of pairs: float64 array; any number where there is no right row."""
        if not self._right_order.size:
            return filled(right_rows.size, np.float64, np.nan)
        xp, out = array_module(), take(right_rows.size, np.float64)
        rule = tuple_on_device(self._model.rule)

        def evaluate(start: int, stop: int) -> None:
            rows = left_rows[start:stop], xp.maximum(right_rows[start:stop], 0)
            some = (
                times.of(row) for times, row in zip((self._left, self._right), rows, strict=True)
            )
            given = [column for times in some for column in (times.keys(), times.shapes())]
            launch_each(tiles.pair_probabilities, stop - start, rule, *given, out[start:stop])

        for start in range(0, out.size, _PAIRS_AT_ONCE):
            in_parts(evaluate, start, min(start + _PAIRS_AT_ONCE, out.size))
        return out

    def deltas(self, left_rows: Any, right_rows: Any) -> Any:
        """T_right - T_left between midpoints, half a tick left off: int64 array; `NO_DELTA` without one."""
        if not self._right_order.size:
            return filled(right_rows.size, np.int64, NO_DELTA)
        xp = array_module()
        right = self._right.keys()[xp.maximum(right_rows, 0)]
        doubled = right - self._left.keys()[left_rows]
        return xp.where(right_rows < 0, NO_DELTA, (doubled + (doubled < 0)) >> 1)


def _codes(left: Any | None, right: Any | None) -> tuple[list[Any | None], int]:
    """Dense codes of the keys of both sides, -1 for one below 0, and how many there are."""
    if left is None or right is None:
        return [None, None], 1
    xp = array_module()
    both = xp.concatenate([left, right])
    if not both.size:
        return [left, right], 1
    order = xp.argsort(both, kind="stable")
    ascending = both[order]
    begins = filled(both.size, np.int64, 0)
    begins[1:] = ascending[1:] != ascending[:-1]
    numbers = xp.cumsum(begins)
    groups = int(numbers[-1]) + 1
    # Numbered as the CPU does it, by the row in which each key is first met.
    firsts = order[xp.searchsorted(numbers, xp.arange(groups), side="left")]
    ranks = take(groups, np.int64)
    ranks[xp.argsort(firsts, kind="stable")] = xp.arange(groups)
    codes = take(both.size, np.int64)
    codes[order] = ranks[numbers]
    codes = xp.where(both < 0, -1, codes)
    return [codes[: left.size].copy(), codes[left.size :].copy()], groups
