"""What a checkpoint depends on: all arguments, also one that is added tomorrow."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields

import pytest

from coincide import TimingCondition, within
from coincide.engine.causality.arguments import CausalityArguments
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.transitions.arguments import TransitionArguments
from coincide.model.borders.options import BorderOptions
from spark_plugin.ways.streaming import borders, planning
from spark_plugin.ways.streaming.settings import as_bytes, told


@dataclass(frozen=True)
class Tomorrow(JoinArguments):
    """A join that has one option more."""

    max_matches: int | None = None


def test_a_new_option_is_part_of_it() -> None:
    condition = TimingCondition(within(0, 5), 0.9)
    before, now = (told(Tomorrow(condition, max_matches=n), planning._OF_PAIRS) for n in (None, 3))
    assert before | {"max_matches": 3} == now
    assert json.loads(as_bytes(before)) != json.loads(as_bytes(now))


def test_what_is_asked_of_pairs_is_part_of_it() -> None:
    names = {each.name for each in fields(JoinArguments)} - set(planning._OF_PAIRS)
    assert {"how", "emit", "prefer", "k", "ties", "matching"} <= names
    effects = {each.name for each in fields(CausalityArguments)} - set(planning._OF_EFFECTS)
    assert effects - names == {"condition", "cause_place", "effect_place"}


def test_names_that_are_no_arguments_are_found() -> None:
    with pytest.raises(AssertionError, match="batch_rows"):
        told(BorderOptions(), (*borders._FREE, "batch_rows"))
    with pytest.raises(AssertionError, match="how"):
        told(TransitionArguments(5, 0.9), ("how",))
