"""What is asked of an exploration, checked once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from coincide.condition import TimingCondition
from coincide.errors import ConditionError, brief
from spark_plugin.worker.arguments import JoinArguments

LEAST_CONFIDENCE = 1e-9
"""A pair of a lower probability is no candidate."""

_MOST_CONFIDENCES = 6
"""Bars that still fit beside each other."""


@dataclass(frozen=True)
class ExploreArguments:
    """What is asked of `coincide.explore_tables`.

    Parameters
    ----------
    join : JoinArguments
        The join at the confidence of which delays are shown; it hands out no columns.
    confidences : sequence of float
        At which partners are counted by event.
    most_pairs : int
        Where there are more candidates, those of a sample of left events are looked at.

    Raises
    ------
    ConditionError
        If an argument makes no sense.
    """

    join: JoinArguments
    confidences: Sequence[float] = (0.1, 0.5, 0.9)
    most_pairs: int = 20_000_000

    def __post_init__(self) -> None:
        if isinstance(self.confidences, str) or not isinstance(self.confidences, Collection):
            raise ConditionError(
                "confidences must be a sequence of numbers, such as (0.1, 0.5, 0.9); found"
                f" {brief(self.confidences)}"
            )
        for each in self.confidences:
            TimingCondition(self.join.condition.predicate, each)
        chosen = tuple(sorted({float(each) for each in self.confidences}))
        if not 1 <= len(chosen) <= _MOST_CONFIDENCES:
            raise ConditionError(
                f"confidences takes 1 to {_MOST_CONFIDENCES} numbers; found {len(chosen)}"
            )
        object.__setattr__(self, "confidences", chosen)
        if isinstance(self.most_pairs, bool) or not (
            isinstance(self.most_pairs, int) and self.most_pairs >= 1
        ):
            raise ConditionError(
                f"most_pairs must be a whole number of at least 1; found {brief(self.most_pairs)}"
            )
