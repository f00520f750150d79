"""Which partners are handed out, in one process: the reference's choice, whatever the batches."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_fallback.reference.partners import PREFERENCES, Asked
from tests.helpers.partner_cases import (
    answer,
    check_best,
    check_mutual,
    check_optimal,
    partner_cases,
)

DRAWN = (
    partner_cases(), st.sampled_from(PREFERENCES), st.integers(1, 4),
    st.sampled_from(["inner", "left"]), st.sampled_from([None, 1, 3, 7]),
)  # fmt: skip


@settings(max_examples=150)
@given(*DRAWN)
def test_the_reference_prefers_the_same(
    asked: Asked, prefer: str, k: int, how: str, batch: int | None
) -> None:
    found = answer(asked, batch, emit="best", prefer=prefer, k=k, how=how)
    check_best(found, asked, prefer, k, how)


@pytest.mark.slow
@settings(max_examples=3000)
@given(*DRAWN)
def test_the_reference_prefers_the_same_at_length(
    asked: Asked, prefer: str, k: int, how: str, batch: int | None
) -> None:
    found = answer(asked, batch, emit="best", prefer=prefer, k=k, how=how)
    check_best(found, asked, prefer, k, how)


@settings(max_examples=100)
@given(partner_cases(), st.sampled_from(PREFERENCES), st.sampled_from([None, 1, 3, 7]))
def test_the_reference_finds_the_same_mutual_pairs(
    asked: Asked, prefer: str, batch: int | None
) -> None:
    check_mutual(answer(asked, batch, matching="mutual", prefer=prefer), asked, prefer)


@settings(max_examples=60)
@given(partner_cases(4), st.sampled_from(["probability", "nearest"]), st.sampled_from([None, 1, 3]))
def test_no_assignment_is_better(asked: Asked, prefer: str, batch: int | None) -> None:
    given = {"left_columns": "row", "right_columns": "row"}
    check_optimal(answer(asked, batch, matching="optimal", prefer=prefer, **given), asked, prefer)
