"""What pairs must pass besides the timing condition: `where`, and of one stream to be of two events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cpu_fallback.join.filtering import EARLIER, LATER, UNSURE, order_of_pairs
from spark_plugin.worker.arrow.sides import PairTest, Side
from spark_plugin.worker.emission.spec import AnySpec
from spark_plugin.worker.one_stream import are_two, stamps_of
from spark_plugin.worker.where.pair_filter import Measure, no_measures


@dataclass(frozen=True)
class OneStream:
    """What a join of one stream with itself tells of its pairs.

    Parameters
    ----------
    doubt : int
        As of `order_of_pairs`.
    decides : PairTest
        From right rows, to be left ones, and left rows, to be right ones, to whether these pairs meet the
        condition on their times, and places.
    itself : callable
        Gives the left events that meet it with themselves: bool array, by row.
    shift : int
        Ticks by which right times have been moved.
    """

    doubt: int
    decides: PairTest
    itself: Callable[[], np.ndarray]
    shift: int = 0


def pair_test(
    left: Side,
    right: Side,
    spec: AnySpec,
    stream: OneStream | None,
    measures: tuple[Measure, Measure] = (no_measures, no_measures),
) -> tuple[PairTest | None, np.ndarray | None]:
    """What pairs must pass; None: all pass.

    Parameters
    ----------
    left, right : Side
        Of one stream with ranks.
    spec : AnySpec
    stream : OneStream or None
        None of two sides, and where a join finds no pairs but those that are asked for.
    measures : (Measure, Measure)
        Of pairs, and of right rows, to be left ones, and left rows.

    Returns
    -------
    PairTest or None
    bool array or None
        `FilteredPairs.itself`.
    """
    where = None if spec.where is None else spec.where.between(left, right, measures[0])
    if stream is None:
        return where, None
    if spec.pairs_once:
        both = None
        if spec.where is not None and where is not None:
            both = where, spec.where.between(right, left, measures[1])
        return given_once(left, right, stream, both), None
    itself = stream.itself()
    if left.ranks is not right.ranks:
        # Of a slice whose right events are dealt to several tasks.
        itself &= np.isin(stamps_of(left).ranks, stamps_of(right).ranks)
    if not itself.any():
        return where, None
    test = are_two(left, right)
    if where is None:
        return test, itself
    return lambda own, others: test(own, others) & where(own, others), None


def given_once(
    left: Side, right: Side, stream: OneStream, where: tuple[PairTest, PairTest] | None
) -> PairTest:
    """Whether the order of a pair of one stream is the one that is given.

    It is, if the left event is the earlier, or if the other order does not qualify.

    Parameters
    ----------
    left, right : Side
        With ranks.
    stream : OneStream
    where : (PairTest, PairTest) or None
        The condition of its own, of pairs in this order, and of right rows and left rows in the other.
    """
    stamps = stamps_of(left), stamps_of(right)

    def test(own: np.ndarray, others: np.ndarray) -> np.ndarray:
        order = order_of_pairs(*stamps, (own, others), stream.doubt, stream.shift)
        passing: np.ndarray = order == EARLIER
        if where is None:
            later = np.flatnonzero(order == UNSURE)
        else:
            met = where[0](own, others)
            passing &= met
            later = np.flatnonzero(met & (order >= LATER))
        if not later.size:
            return passing
        qualifies_too = order[later] == LATER
        unsure = np.flatnonzero(~qualifies_too)
        qualifies_too[unsure] = stream.decides(others[later[unsure]], own[later[unsure]])
        if where is not None:
            both = np.flatnonzero(qualifies_too)
            qualifies_too[both] = where[1](others[later[both]], own[later[both]])
        passing[later] = ~qualifies_too
        return passing

    return test
