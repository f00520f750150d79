"""Slices for events that do not last alike: few long ones do not set how far all others reach.

Right events go to the slices that they can reach by their own lengths. Left ones that are far longer than
nearly all others are planned apart: they are few, so each worker gets them. NumPy only, no Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from coincide.errors import MemoryBudgetError
from coincide.options import CorrelateOptions
from coincide.sides import RIGHT
from coincide.warnings import CopiedRowsWarning
from spark_plugin.ways.exchange.plan import SlicePlan
from spark_plugin.ways.samples import Reach, Sample, lengths_between
from spark_plugin.worker.emission.spec import AnySpec
from spark_plugin.worker.reports.warn import warn

_FEW_COPIES = 1.1
"""Of a right event: to have fewer does not pay."""
_SHORTER = 0.75
"""What the reach of right events by their own lengths has to be of the one that is the same for all."""
_FAR_SHORTER = 0.5
"""What that reach has to be without the long left events, so that these are planned apart."""
_MOST_APART = 1 << 16
_SHARE_APART = 1 / 64
"""So many left events, and so many of all, are planned apart at most."""
_TOO_MANY_COPIES = 25
"""A plan is refused with so many times the copies that `max_replication` allows, and so many rows."""
_TOO_MANY_ROWS = 10**9


@dataclass(frozen=True, eq=False)
class KnownLengths:
    """What a look has shown of the lengths of left events.

    Parameters
    ----------
    sample : Sample
        Its shapes are lengths.
    longest_of_group : int64 array
        As of `SideStatistics`: so that no event is too rare to be known.
    """

    sample: Sample
    longest_of_group: np.ndarray

    def usual(self) -> int | None:
        """A length that few events exceed, the shortest such; None if all are of one length."""
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
    """A plan of slices.

    Parameters
    ----------
    planned : callable
        The plan for a reach.
    right : Sample
    left : KnownLengths or None
        None where no left event can be planned apart.
    reach : Reach
        The same for all right events.
    spec : AnySpec

    Raises
    ------
    MemoryBudgetError
        If there is none.
    """
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
    return apart.count > plan.count or plan.replication > _FEW_COPIES


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


def check_copies(plan: SlicePlan, right: Sample, options: CorrelateOptions) -> None:
    """Refuse a plan that multiplies rows without measure, and tell of one that does so.

    Raises
    ------
    MemoryBudgetError

    Warns
    -----
    CopiedRowsWarning
    """
    rows = right.rows * plan.replication
    if plan.replication <= options.max_replication or rows <= options.slice_rows:
        return
    problem = (
        f"each of the {right.rows:,} right events would go to {plan.replication:.1f} slices on average"
        f" ({rows:,.0f} rows, max_replication is {options.max_replication:g}), since so many events are"
        f" within reach of so many, or of such lengths: up to {plan.reach.left[1]:,} ticks (left) and"
        f" {plan.reach.right[1]:,} ticks (right)"
    )
    cure = (
        "Ask for a narrower window or more confidence, join by keys, leave out events that are too long"
        " (left_longest, right_longest and invalid='drop'), or allow slices more rows (slice_rows)"
    )
    if plan.replication > _TOO_MANY_COPIES * options.max_replication and rows > _TOO_MANY_ROWS:
        raise MemoryBudgetError(f"{problem}. {cure}; a larger max_replication allows it")
    warn(f"{problem}. {cure}", CopiedRowsWarning)


def _own(reach: Reach, spec: AnySpec) -> Reach:
    are_lengths = spec.models[RIGHT].table is None
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
