"""Timing conditions."""

from __future__ import annotations

import pickle
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from coincide import (
    CausalityCondition,
    Spatial,
    Tick,
    TimingCondition,
    Window,
    deadline,
    overlapping,
    within,
)
from coincide.model.condition import SMALLEST_CONFIDENCE
from coincide.model.errors import ConditionError


@pytest.mark.parametrize("confidence", [1, 1.0, 0.5, 1e-12, np.float64(0.25), Fraction(1, 3)])
def test_confidences(confidence: float) -> None:
    condition = TimingCondition(within(0, 1), confidence)
    assert condition.confidence == float(confidence)
    assert type(condition.confidence) is float


@pytest.mark.parametrize(
    "confidence",
    [0, -0.1, 1.0000000000000002, 2, float("nan"), float("inf"), -float("inf"), 1e-16, 2.0**-49],
)
def test_confidence_out_of_range(confidence: float) -> None:
    with pytest.raises(ConditionError, match="confidence threshold"):
        TimingCondition(within(0, 1), confidence)


@pytest.mark.parametrize("confidence", [True, "0.5", None, Decimal("0.5"), 0.5 + 0j])
def test_confidence_of_a_wrong_type(confidence: object) -> None:
    with pytest.raises(ConditionError, match="must be a number"):
        TimingCondition(within(0, 1), confidence)


@pytest.mark.parametrize(
    ("text", "share"),
    [("90%", 0.9), (" 99.9 % ", 0.999), ("+.5%", 0.005), ("100%", 1.0), ("33%", 0.33)],
)
def test_a_confidence_may_be_a_percentage(text: str, share: float) -> None:
    assert TimingCondition(within(0, 1), text).confidence == share
    assert CausalityCondition(Spatial(1), confidence=text).confidence == share
    assert replace(overlapping(), confidence=text).confidence == share


@pytest.mark.parametrize("text", ["0%", "101%", "-5%"])
def test_a_percentage_out_of_range(text: str) -> None:
    with pytest.raises(ConditionError, match="confidence threshold"):
        TimingCondition(within(0, 1), text)


def test_the_smallest_confidence_keeps_impossible_pairs_out() -> None:
    above = np.nextafter(SMALLEST_CONFIDENCE, 1)
    assert TimingCondition(within(0, 1), above).confidence - 2.0**-50 > 2.0**-51


@pytest.mark.parametrize("predicate", [(0, 1), "0..1", None, 5])
def test_the_predicate_must_be_one(predicate: object) -> None:
    with pytest.raises(ConditionError, match="within"):
        TimingCondition(predicate, 0.5)


def test_window() -> None:
    condition = TimingCondition(within("-1ms", 3), 0.5)
    window = condition.window(Tick("us"))
    assert window == Window(-1000, 3, 0.5)
    assert window.width == 1003
    assert condition.mirrored().window(Tick("us")) == Window(-3, 1000, 0.5)
    with pytest.raises(ConditionError):
        TimingCondition(deadline(5), 0.5).window(Tick("us"))
    with pytest.raises(ConditionError):
        condition.window(Tick())


def test_conditions_are_values() -> None:
    condition = TimingCondition(within(0, 1), 0.5)
    assert condition == TimingCondition(within(0, 1), 0.5) != TimingCondition(within(0, 1), 0.6)
    assert pickle.loads(pickle.dumps(condition)) == condition
    assert hash(condition) == hash(TimingCondition(within(0, 1), Fraction(1, 2)))
