"""Options are checked when they are made."""

from __future__ import annotations

import dataclasses
import pickle
import re
from contextlib import nullcontext
from typing import Any, get_args

import pytest

from coincide import CorrelateOptions
from coincide.model.errors import ConditionError
from coincide.model.options import (
    KEPT_ROWS,
    MATCHINGS,
    MAX_CLASSES,
    MOST_SLICES,
    OUTPUT_ROWS,
    PREFERENCES,
    EffectChoice,
    Emit,
    How,
    MatchChoice,
    Matching,
    PreferEffectWord,
    PreferWord,
)
from cpu_fallback.reference.join import EMITS
from cpu_fallback.reference.join import PREFERENCES as REFERENCE


def test_defaults_are_valid_and_values() -> None:
    assert CorrelateOptions() == CorrelateOptions()
    assert pickle.loads(pickle.dumps(CorrelateOptions(unit="us"))) == CorrelateOptions(unit="us")
    with pytest.raises(dataclasses.FrozenInstanceError):
        CorrelateOptions().classes = 3


def test_units_get_their_canonical_name() -> None:
    assert CorrelateOptions(unit="µs").unit == "us"
    assert CorrelateOptions(unit="m").unit == "min"


@pytest.mark.parametrize(
    "options",
    [
        {"unit": "fortnight"},
        {"invalid": "ignore"},
        {"invalid": None},
        {"classes": 0},
        {"classes": MAX_CLASSES + 1},
        {"classes": 1.0},
        {"classes": True},
        {"threads": 0},
        {"threads": -1},
        {"threads": "2"},
        {"batch_pairs": 0},
        {"slices": 0},
        {"slice_rows": 0},
        {"slices": MOST_SLICES + 1},
        {"slices": 10**5000},
        {"slice_rows": 2**63},
        {"threads": -(10**5000)},
        {"classes": 10**5000},
        {"invalid": "x" * 5000},
    ],
)
def test_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConditionError) as caught:
        CorrelateOptions(**options)
    name = next(iter(options))
    assert name in str(caught.value)
    assert len(str(caught.value)) < 200


def test_allowed_extremes() -> None:
    CorrelateOptions(classes=MAX_CLASSES, threads=1, batch_pairs=1, slices=1)
    CorrelateOptions(slices=MOST_SLICES)


@pytest.mark.parametrize("given", ["last,-seq", "snr,-seq", "-snr, +seq"])
def test_two_preferences_in_one_text_are_refused(given: str) -> None:
    parts = [each.strip() for each in given.split(",")]
    with pytest.raises(ConditionError, match=re.escape(f"Write prefer={parts}.")):
        MatchChoice(given)
    MatchChoice("snr,seq")  # a column may have this name


def test_words_of_prefer_are_one_table() -> None:
    assert get_args(PreferWord) == MatchChoice.preferences
    assert get_args(PreferEffectWord) == EffectChoice.preferences == tuple(PREFERENCES)
    assert {*REFERENCE} == {*MatchChoice.preferences}
    for choice in (MatchChoice, EffectChoice):
        for name in choice.preferences:
            allowed = PREFERENCES[name].is_a_sum
            with (
                nullcontext() if allowed else pytest.raises(ConditionError, match="optimizes a sum")
            ):
                choice(name, matching="optimal")
    assert MatchChoice("distance").is_by_column
    assert not MatchChoice("distance").word.needs_places


def test_words_of_how_are_one_table() -> None:
    assert get_args(How) == tuple(KEPT_ROWS)
    assert [rows.word for rows in KEPT_ROWS.values()] == [*KEPT_ROWS]
    kept = [(rows.pairs, rows.left_alone, rows.right_alone) for rows in KEPT_ROWS.values()]
    assert len({*kept}) == len(kept)


def test_words_of_emit_are_one_table() -> None:
    assert get_args(Emit) == tuple(OUTPUT_ROWS)
    assert {*EMITS, "aggregates"} == {*OUTPUT_ROWS}, "aggregates have a reference of their own"
    for word, row in OUTPUT_ROWS.items():
        kinds = row.is_a_pair, row.in_lists, row.is_best, bool(row.totals), row.is_aggregated
        assert row.word == word
        assert sum(kinds) == 1, "tasks put parts of an event together by one of these"
        assert row.holds_matches == (not row.totals and not row.is_aggregated)


def test_words_of_matching_are_one_table() -> None:
    assert get_args(Matching) == tuple(MATCHINGS)
    assert [each.word for each in MATCHINGS.values()] == [*MATCHINGS]
    for word, each in MATCHINGS.items():
        choice = MatchChoice(matching=word)
        assert (choice.one_to_one, choice.is_of_groups) == (each, each.of_groups)
        chosen = {name for name in MatchChoice.preferences if _is_taken(name, word)}
        sums = {name for name, preference in PREFERENCES.items() if preference.is_a_sum}
        others = {*MatchChoice.preferences} if each.ranks else {"probability"}
        assert chosen == (sums if each.of_groups else others)
        with nullcontext() if each.of_groups else pytest.raises(ConditionError, match="applies to"):
            MatchChoice(matching=word, largest_group=5)
    assert MatchChoice().one_to_one is None
    with pytest.raises(ConditionError, match="must be one of mutual, optimal, unambiguous"):
        MatchChoice(matching="optimum", largest_group=5)


def _is_taken(preference: str, matching: Matching) -> bool:
    try:
        MatchChoice(preference, matching=matching)
    except ConditionError:
        return False
    return True
