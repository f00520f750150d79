"""Aggregates of matches, as they are asked for: names, columns and functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Literal

from coincide.model.errors import ConditionError, argument, brief

Function = Literal["count", "sum", "mean", "std", "min", "max", "first", "last", "any"]
"""What becomes of the values of an event's matches."""
GivenAggregate = str | tuple[str, str]
"""The word "count", or the column of a match and a function."""
Aggregates = Mapping[str, GivenAggregate]
"""Aggregates by the names of their output columns."""
Weights = Literal["probability"]
"""By what each match counts, where that is not 1."""
Including = Literal["previous"]
"""Which events count that are not in the window."""
PAIR_VALUES = ("delta", "probability", "distance", "overlap")
"""What pairs have that none of their events has."""


@dataclass(frozen=True)
class FunctionWord:
    """A word for a function, and what it takes."""

    word: Function
    takes: str  # types, in words
    gives_values: bool = False  # one of those that there are
    needs_events: bool = False  # columns of right events, and not what pairs have
    has_weights: bool = False  # and so an expected value, of numbers


_ORDERED = "numbers, times, texts and truth values"
_NUMBERS = "numbers and truth values"
FUNCTIONS: dict[str, FunctionWord] = {
    each.word: each
    for each in (
        FunctionWord("count", "any column", has_weights=True),
        FunctionWord("sum", "numbers, durations and truth values", has_weights=True),
        FunctionWord("mean", _NUMBERS, has_weights=True),
        FunctionWord("std", _NUMBERS),
        FunctionWord("min", _ORDERED, gives_values=True),
        FunctionWord("max", _ORDERED, gives_values=True),
        FunctionWord("first", "any column", gives_values=True, needs_events=True),
        FunctionWord("last", "any column", gives_values=True, needs_events=True),
        FunctionWord("any", "truth values", needs_events=True),
    )
}
"""All functions: refusals and help come from here."""
OPTION = "aggregates"
EXAMPLE = argument(OPTION, {"n": "count", "energy": ("amp", "sum")})
"""What messages show."""


@dataclass(frozen=True)
class Aggregate:
    """One column of the output: a function of a column of the matches of an event."""

    name: str
    function: Function
    column: str | None = None  # None: matches themselves are counted
    is_weighted: bool = False  # each match counts by its probability

    @property
    def is_of_pairs(self) -> bool:
        """Whether what pairs have is aggregated, whatever columns there are."""
        return self.column in PAIR_VALUES

    @property
    def gives_values(self) -> bool:
        """Whether it is one of the values, so that their type is its own."""
        return FUNCTIONS[self.function].gives_values

    @property
    def takes(self) -> str:
        """The types that it takes, in words."""
        is_sum = self.is_weighted and self.function == "sum"
        return _NUMBERS if is_sum else FUNCTIONS[self.function].takes

    @property
    def said(self) -> str:
        """What messages call it."""
        given = "count" if self.column is None else (self.column, self.function)
        return f"{argument(OPTION)}: {self.name!r}: {given!r}"


def columns_of(aggregates: Sequence[Aggregate]) -> list[str]:
    """The columns of the match that are aggregated, each once."""
    asked = (each for each in aggregates if each.column is not None and not each.is_of_pairs)
    return list(dict.fromkeys(str(each.column) for each in asked))


def aggregates_of(
    given: Aggregates | None, values: tuple[str, ...], weights: Weights | None = None
) -> tuple[Aggregate, ...]:
    """The aggregates that are asked for; pairs have these values."""
    if given is None:
        return ()
    if not isinstance(given, Mapping) or not given:
        raise ConditionError(
            f"{argument(OPTION)} takes a dict of names and (column, function) (found"
            f" {brief(given)}). Give one, such as {EXAMPLE}."
        )
    found = tuple(_aggregate(name, each, values) for name, each in given.items())
    return found if weights is None else tuple(map(_weighted, found))


def _weighted(aggregate: Aggregate) -> Aggregate:
    """The expected value of an aggregate."""
    if not FUNCTIONS[aggregate.function].has_weights:
        words = ", ".join(each.word for each in FUNCTIONS.values() if each.has_weights)
        raise ConditionError(
            f"{argument('weights', 'probability')} takes {words}, in which a match can count by its"
            f" probability (found {aggregate.said}). Remove {argument('weights')}, and give a"
            " confidence, or ask for this one in another join."
        )
    return replace(aggregate, is_weighted=True)


def _aggregate(name: object, given: object, values: tuple[str, ...]) -> Aggregate:
    if not isinstance(name, str) or not name:
        raise ConditionError(
            f"{argument(OPTION)} names columns of the output by texts (found {brief(name)}). Use"
            " a text."
        )
    if isinstance(given, str) and given == "count":
        return Aggregate(name, "count")
    if not isinstance(given, (tuple, list)) or [*map(type, given)] != [str, str]:
        raise ConditionError(
            f"{argument(OPTION)} takes 'count', or a column and a function for each name (found"
            f" {brief(given)} for {name!r}). Write it as in {EXAMPLE}."
        )
    column, function = given
    if function not in FUNCTIONS:
        meant = get_close_matches(function, FUNCTIONS, 1)
        if column in FUNCTIONS:
            cure = f"The column comes first: ({function!r}, {column!r})"
        else:
            cure = f"Did you mean {meant[0]!r}?" if meant else "Use one of them"
        raise ConditionError(
            f"the functions of {argument(OPTION)} are {', '.join(FUNCTIONS)} (found {function!r}"
            f" for {name!r}). {cure.removesuffix('?')}{'?' if cure.endswith('?') else '.'}"
        )
    found = Aggregate(name, FUNCTIONS[function].word, column)
    if found.is_of_pairs:
        _check_pair_value(found, values)
    return found


def _check_pair_value(aggregate: Aggregate, values: tuple[str, ...]) -> None:
    word = FUNCTIONS[aggregate.function]
    if aggregate.column not in values:
        raise ConditionError(
            f"pairs of this join have {', '.join(values)} (found {aggregate.column!r} in"
            f" {aggregate.said}). Use one of them, or rename a column of that name."
        )
    if word.needs_events:
        raise ConditionError(
            f"{word.word!r} takes a column of the match, and not what a pair has (found"
            f" {aggregate.said}). Use another function, such as 'min' or 'max'."
        )
