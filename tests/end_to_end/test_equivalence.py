"""The whole of `correlate_tables` against the reference, over thousands of adversarial joins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.comparison import HUGE_TOLERANCE, PROBABILITY_TOLERANCE, SHAPES, check_case
from tests.helpers.strategies import JoinCase, huge_join_cases, join_cases, random_cases

CLASSES = (None, *range(1, 17))
BATCHES = (1, 3, 20, 10**6)
BLOCK = 150

classes = st.sampled_from(CLASSES)
batches = st.sampled_from(BATCHES)
shapes = st.sampled_from(SHAPES)


@pytest.mark.parametrize(
    "block",
    [0, 3, 5, 6, *(pytest.param(block, marks=pytest.mark.slow) for block in (1, 2, 4, 7))],
)
def test_random_cases(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """1,200 cases in 8 blocks; shapes, classes, batches and threads go round with the case."""
    monkeypatch.setattr("coincide.model.threads._SMALLEST_BLOCK", 1)
    huge = block % 4 == 3
    for i, case in enumerate(random_cases(2010 + block, BLOCK, max_size=16, huge=huge)):
        n = i + block
        check_case(
            case,
            *SHAPES[n % len(SHAPES)],
            tolerance=HUGE_TOLERANCE if huge else PROBABILITY_TOLERANCE,
            classes=CLASSES[n % len(CLASSES)],
            batch_pairs=BATCHES[n // 3 % len(BATCHES)],
            threads=1 + n % 3,
        )


def test_the_round_meets_every_shape_with_every_number_of_classes() -> None:
    n = np.arange(8 * BLOCK)
    assert len(set(zip(n % len(SHAPES), n % len(CLASSES), strict=True))) == len(SHAPES) * len(
        CLASSES
    )


@settings(max_examples=100)
@given(join_cases(), shapes, classes, batches)
def test_cases(
    case: JoinCase, shape: tuple[str, str, bool], most: int | None, batch_pairs: int
) -> None:
    check_case(case, *shape, classes=most, batch_pairs=batch_pairs, threads=1)


@settings(max_examples=100)
@given(huge_join_cases(), shapes, classes, batches)
def test_huge_cases(
    case: JoinCase, shape: tuple[str, str, bool], most: int | None, batch_pairs: int
) -> None:
    options = {"classes": most, "batch_pairs": batch_pairs, "threads": 1}
    check_case(case, *shape, tolerance=HUGE_TOLERANCE, **options)
