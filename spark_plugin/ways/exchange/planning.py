"""The slice planner: cuts the time axis so that slices hold about equal work, whatever the lengths."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from coincide.engine.join.spec import AnySpec
from coincide.engine.reports.warnings import warn
from coincide.model.errors import (
    CopiedRowsWarning,
    LargeSlicesWarning,
    MemoryBudgetError,
    argument,
)
from coincide.model.options import CorrelateOptions
from coincide.model.sides import RIGHT
from spark_plugin.tasks.samples import Reach, Sample, expected_matches, lengths_between
from spark_plugin.tasks.slice_plan import SlicePlan

MOST_TIME_SLICES = 16_384
MOST_SLICES = 100_000
MOST_COPIES = 4.0
"""Most copies of a right event, on average, unless slices lack room: a copy costs as much as its row."""
_SMALLEST_SLICE_WORK = 100_000.0
"""Below this much work, in rows, a task of its own does not pay."""
_HEAVY = 1.5
"""A cell is split when its work exceeds the mean, or its rows the room of a slice, by this factor."""


def plan_slices(
    left: Sample,
    right: Sample,
    reach: Reach,
    options: CorrelateOptions,
    *,
    parallelism: int,
    pair_work: float,
    keyed: bool,
    row_bytes: tuple[float, float] = (0.0, 0.0),
) -> SlicePlan:
    """Cut the time axis."""
    left_fill, right_fill = (
        0.0 if options.slices else max(1 / options.slice_rows, size / options.slice_bytes)
        for size in row_bytes
    )
    work = _Work(left, right, reach, pair_work, (left_fill, right_fill))
    wanted = options.slices or _slices_for(work, parallelism, keyed)
    allowed = max(MOST_COPIES, options.slice_rows / max(right.rows, 1))
    plan = _evenest(work, wanted, keyed, allowed)
    if plan.count > MOST_SLICES and not options.slices:
        raise MemoryBudgetError(
            f"slices of {argument('slice_rows', options.slice_rows)} rows would be"
            f" {plan.count:,}, as too many events are within reach of each other. Allow a worker"
            f" more rows ({argument('slice_rows')}, {argument('slice_bytes')}), or narrow the"
            " window."
        )
    return plan


def _slices_for(work: _Work, parallelism: int, keyed: bool) -> int:
    by_memory = math.ceil(work.fill)
    by_work = min(parallelism, int(work.total // _SMALLEST_SLICE_WORK))
    slices = max(1, by_memory, by_work)
    if slices > parallelism:
        # Whole waves of tasks, so that no core idles in the last one.
        slices = -(-slices // parallelism) * parallelism
    # Beyond this time alone does not cut; buckets of keys do.
    return slices if keyed else min(slices, MOST_TIME_SLICES)


def _evenest(work: _Work, slices: int, keyed: bool, allowed: float) -> SlicePlan:
    """The plan that ends first, of those that have room and copy right events no more than allowed."""
    plans: list[SlicePlan] = []
    for halvings in range(slices.bit_length() + 1):
        time_slices = -(-min(slices, MOST_TIME_SLICES) // 2**halvings)
        buckets = max(1, slices // time_slices) if keyed else 1
        plan = work.plan(time_slices, buckets, slices, most_splits=1)
        if plan.replication > allowed and time_slices > 1:
            continue
        split = work.plan(time_slices, buckets, slices, most_splits=slices)
        is_whole = split.replication <= allowed
        while split.replication > allowed and split.is_split:
            split = work.plan(time_slices, buckets, slices, int(split.left_parts.max()) // 2)
        plans.append(work.with_room(split))
        # Coarser cuts in time spread no better, but buckets of keys, which copy nothing, may.
        if time_slices == 1 or (is_whole and (not keyed or split.replication <= _FEW_COPIES)):
            break
    return min(plans, key=lambda plan: (max(plan.fill, _TOO_FULL), work.duration(plan, slices)))


def _matches(left: Sample, right: Sample, reach: Reach) -> np.ndarray:
    """Right events that each left one of the sample can reach, estimated: float64 array."""
    if not reach.own:
        return expected_matches(left, right, reach)
    matches = np.zeros(left.midpoints.size)
    for step in reach.own:
        near = right.of_shapes(step.lowest, step.highest)
        if near.midpoints.size and step.first <= step.last:
            matches += expected_matches(left, near, Reach(step.first, step.last))
    return matches


class _Work:
    """Estimated work along the time axis, from the samples; `fills`: slices that a row takes up."""

    def __init__(
        self,
        left: Sample,
        right: Sample,
        reach: Reach,
        pair_work: float,
        fills: tuple[float, float],
    ) -> None:
        self.left, self.right, self.reach, self._fills = left, right, reach, fills
        self.fill = left.rows * fills[0] + right.rows * fills[1]
        middle = (reach.first + reach.last) // 2
        self._seen_from_left = right.midpoints - middle
        self._earliest, self._latest = reach.of_right(right.midpoints, right.shapes)
        self._left_work = left.weights * (1.0 + pair_work * _matches(left, right, reach))
        work = np.concatenate([self._left_work, right.weights])
        self.total = float(work.sum())
        self._positions = np.concatenate([left.midpoints, self._seen_from_left])
        order = np.argsort(self._positions, kind="stable")
        self._positions = self._positions[order]
        measure = work / max(self.total, 1.0)
        if self.fill > 1.0:
            # Few rows with many pairs must not leave all other rows to one slice.
            rows = np.concatenate([left.weights * fills[0], right.weights * fills[1]])
            measure = (measure + 2.0 * rows / rows.sum()) / 3.0
        self._even = np.cumsum(measure[order])

    def plan(self, time_slices: int, buckets: int, wanted: int, most_splits: int) -> SlicePlan:
        """Cut into time slices of equal work, then split the cells that stay too heavy."""
        cuts = self._cuts(time_slices)
        cells, count = self._left_cells(cuts, buckets), (cuts.size + 1) * buckets
        right_cells = np.searchsorted(cuts, self._seen_from_left, side="right") * buckets
        right_cells += self.right.hashes % buckets
        left_work = np.bincount(cells, self._left_work, count)
        load = left_work + np.bincount(right_cells, self.right.weights, count)
        share = max(self.total / wanted, _SMALLEST_SLICE_WORK)
        heavy = (load > _HEAVY * share) & (left_work > 0)
        parts = np.where(heavy, np.ceil(left_work / share), 1).astype(np.int64)
        parts = np.clip(parts, 1, most_splits)
        copies = self._replication(cuts, buckets, parts)
        return SlicePlan(cuts, buckets, parts, self.reach, copies)

    def duration(self, plan: SlicePlan, slices: int) -> float:
        """Work of the heaviest slice, or a slice's share of all work if that is more; copies are work."""
        left_work = np.bincount(
            self._left_cells(plan.cuts, plan.buckets), self._left_work, plan.cells
        )
        heaviest = float((left_work / plan.left_parts + self._right_rows(plan)).max())
        return max(heaviest, (self.total + (plan.replication - 1.0) * self.right.rows) / slices)

    def _left_cells(self, cuts: np.ndarray, buckets: int) -> np.ndarray:
        """The cell of each left event of the sample."""
        cells = np.searchsorted(cuts, self.left.midpoints, side="right") * buckets
        return cells + self.left.hashes % buckets

    def _right_rows(self, plan: SlicePlan) -> np.ndarray:
        """Right events that reach each cell: float64 array, shape (T * B,)."""
        first, last = self._time_slices_of_right(plan.cuts)
        # Each right event is in all time slices from its first to its last.
        steps = np.zeros((plan.cuts.size + 2, plan.buckets))
        bucket = self.right.hashes % plan.buckets
        np.add.at(steps, (first, bucket), self.right.weights)
        np.add.at(steps, (last + 1, bucket), -self.right.weights)
        return np.maximum(np.cumsum(steps, axis=0)[:-1].reshape(-1), 0.0)

    def with_room(self, plan: SlicePlan) -> SlicePlan:
        """The plan, left events of cells that hold more than a slice has room for dealt to more slices."""
        left, right = self._fill_of_cells(plan)
        over = left / plan.left_parts + right > _HEAVY
        # Right events within reach of one instant stay together: fewer left ones than them save little.
        parts = np.ceil(left / np.maximum(1.0 - right, right)).astype(np.int64)
        parts = np.maximum(plan.left_parts, np.where(over, parts, 1))
        copies = self._replication(plan.cuts, plan.buckets, parts)
        fullest = float((left / parts + right)[left > 0].max(initial=0.0))
        return replace(plan, left_parts=parts, replication=copies, fill=fullest)

    def _fill_of_cells(self, plan: SlicePlan) -> tuple[np.ndarray, np.ndarray]:
        """Slices that the left and the right events of each cell would take up: float64 arrays."""
        cells = self._left_cells(plan.cuts, plan.buckets)
        left = np.bincount(cells, self.left.weights, plan.cells)
        return left * self._fills[0], self._right_rows(plan) * self._fills[1]

    def _time_slices_of_right(self, cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last time slice that each right event of the sample reaches, if any."""
        first = np.searchsorted(cuts, self._earliest, side="right")
        last = np.searchsorted(cuts, self._latest, side="right")
        return first, np.maximum(last, first - 1)

    def _cuts(self, time_slices: int) -> np.ndarray:
        places = np.searchsorted(self._even, np.arange(1, time_slices) / time_slices)
        if not places.size or not self._positions.size:
            return np.empty(0, np.int64)
        cuts, drawn = np.unique(self._positions[places], return_counts=True)
        # A burst at one instant draws several cuts to the same place: it gets a cell of its own, up to
        # the next place, so that only its matches are copied when the cell is split.
        after = np.searchsorted(self._positions, cuts[drawn > 1], side="right")
        return np.union1d(cuts, self._positions[after[after < self._positions.size]])

    def _replication(self, cuts: np.ndarray, buckets: int, left_parts: np.ndarray) -> float:
        if not self.right.midpoints.size:
            return 1.0
        first, last = self._time_slices_of_right(cuts)
        grid = left_parts.reshape(-1, buckets)
        above = np.concatenate([np.zeros((1, buckets), np.int64), np.cumsum(grid, axis=0)])
        bucket = self.right.hashes % buckets
        copies = above[last + 1, bucket] - above[first, bucket]
        return float((copies * self.right.weights).sum() / self.right.weights.sum())


_FEW_COPIES = 1.1
"""Copies of a right event: to have fewer does not pay."""
_SHORTER = 0.75
"""What the reach of right events by their own lengths has to be of the one that is the same for all."""
_FAR_SHORTER = 0.5
"""What that reach has to be without the long left events, so that these are planned apart."""
_MOST_APART = 1 << 16
_SHARE_APART = 1 / 64
"""Most left events, and most of all, that are planned apart."""
_TOO_FULL, _FAR_TOO_FULL = 2.0, 1000.0
"""Room that a task takes, in what options allow: more is warned of, and far more is refused."""
_TOO_MANY_COPIES = 25
"""A plan is refused with this many times `MOST_COPIES`, and this many rows."""
_TOO_MANY_ROWS = 10**9


@dataclass(frozen=True, eq=False)
class KnownLengths:
    """What the planning job has shown of the lengths of left events."""

    sample: Sample
    longest_of_group: np.ndarray

    def usual(self) -> int | None:
        """A length that few events exceed, the shortest such; None if all have one length."""
        if self.longest_of_group.size == 0:
            return None
        shortest, longest = int(self.sample.shapes.min(initial=0)), self.longest_of_group.max()
        most = min(_MOST_APART, self.sample.rows * _SHARE_APART)
        for length in lengths_between(shortest, int(longest)).tolist():
            longer = float(self.sample.weights[self.sample.shapes > length].sum())
            if max(longer, int((self.longest_of_group > length).sum())) <= most:
                return length if length < longest else None
        return None


def plan_by_lengths(
    planned: Callable[[Reach], SlicePlan],
    right: Sample,
    left: KnownLengths | None,
    reach: Reach,
    spec: AnySpec,
) -> SlicePlan:
    """A plan of slices."""
    plan: SlicePlan | None = None
    failure: MemoryBudgetError | None = None
    for each, apart in _reaches(right, left, reach, spec):
        try:
            found = replace(planned(each), apart=apart)
        except MemoryBudgetError as error:
            failure = error
            continue
        if apart is not None and plan is not None and not _pays(found, plan):
            break
        plan = found
        if plan.replication <= _FEW_COPIES and plan.cuts.size:
            break
    if plan is None:
        assert failure is not None
        raise failure
    return plan


def _pays(apart: SlicePlan, plan: SlicePlan) -> bool:
    """Whether left events are planned apart, for which both sides are read once more."""
    is_full = plan.fill > max(_TOO_FULL, apart.fill)
    return is_full or apart.count > plan.count or plan.replication > _FEW_COPIES


def _reaches(
    right: Sample, left: KnownLengths | None, reach: Reach, spec: AnySpec
) -> Iterator[tuple[Reach, int | None]]:
    """What plans are made for, the simplest first; and the length over which left events are apart."""
    yield reach, None
    own = _own(reach, spec)
    if _span(own, right) <= _SHORTER * _span(reach, right):
        reach = own
        yield reach, None
    usual = None if left is None else left.usual()
    if usual is None:
        return
    shapes = (reach.left[0], usual), reach.right
    short = _own(Reach.of(spec.pairs, *shapes, spec.largest_useful), spec)
    if _span(short, right) <= _FAR_SHORTER * _span(reach, right):
        yield short, usual


def check_room(plan: SlicePlan, right: Sample, options: CorrelateOptions) -> None:
    """Refuse a plan that multiplies rows without measure; tell of many copies, and of full slices."""
    if plan.fill > _TOO_FULL:
        problem = (
            f"a task would hold {plan.fill:,.1f} times what {argument('slice_rows', options.slice_rows)}"
            f" and {argument('slice_bytes', options.slice_bytes)} allow, since these right events are"
            " all within reach of each other. Narrow the window, raise the confidence, join by keys, or"
            " allow slices more rows and workers more memory."
        )
        if plan.fill > _FAR_TOO_FULL:
            raise MemoryBudgetError(problem)
        warn(problem, LargeSlicesWarning)
    rows = right.rows * plan.replication
    if plan.replication <= MOST_COPIES or rows <= options.slice_rows:
        return
    problem = (
        f"each of the {right.rows:,} right events would go to {plan.replication:.1f} slices on"
        f" average ({rows:,.0f} rows, and up to {MOST_COPIES:g} slices pay), since many events are"
        f" within reach of each other, or are long: up to {plan.reach.left[1]:,} ticks (left) and"
        f" {plan.reach.right[1]:,} ticks (right)"
    )
    cure = (
        "Narrow the window, raise the confidence, join by keys, skip events that are too long"
        f" ({argument('left_longest')}, {argument('right_longest')} and"
        f" {argument('invalid', 'drop')}), or allow slices more rows ({argument('slice_rows')})."
    )
    if plan.replication > _TOO_MANY_COPIES * MOST_COPIES and rows > _TOO_MANY_ROWS:
        raise MemoryBudgetError(f"{problem}. {cure}")
    warn(f"{problem}. {cure}", CopiedRowsWarning)


def _own(reach: Reach, spec: AnySpec) -> Reach:
    are_lengths = spec.models[RIGHT].shape_is_length
    return reach.by_shape(spec.pairs, spec.largest_useful, are_lengths=are_lengths)


def _span(reach: Reach, right: Sample) -> float:
    """How far right events reach on average, half ticks."""
    if not reach.own or not right.rows:
        return float(max(reach.last - reach.first, 0))
    total = 0.0
    for step in reach.own:
        weight = float(right.of_shapes(step.lowest, step.highest).weights.sum())
        total += weight * max(step.last - step.first, 0)
    return total / max(float(right.weights.sum()), 1.0)
