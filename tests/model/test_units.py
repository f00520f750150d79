"""Ticks, units and durations."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coincide.model.condition import within
from coincide.model.errors import ConditionError
from coincide.model.units import (
    NANOSECONDS_PER_UNIT,
    TIME_LIMIT,
    Tick,
    parse_duration,
    plain,
    size_of,
    unit_name,
)


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1ns", 1),
        ("250ms", 250_000_000),
        ("-1.5s", -1_500_000_000),
        ("+2us", 2000),
        ("2µs", 2000),
        ("2μs", 2000),
        (" 3 min ", 180 * 10**9),
        ("2m", 120 * 10**9),
        ("1.5h", 5400 * 10**9),
        ("1d", 86400 * 10**9),
        ("1day", 86400 * 10**9),
        ("1sec", 10**9),
        ("- .5s", -500_000_000),
        ("5.s", 5 * 10**9),
        ("-0s", 0),
        ("0.1ns", Fraction(1, 10)),
        ("1h30m", 5400 * 10**9),
        ("-1h 30 min 0.5s", -5_400_500_000_000),
        ("5 minutes", 300 * 10**9),
        ("1 hour 1 second 2 milliseconds 3 microseconds 4 nanoseconds", 3_601_002_003_004),
        ("2days", 2 * 86400 * 10**9),
    ],
)
def test_durations_are_read_exactly(text: str, nanoseconds: Fraction) -> None:
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize(
    "text", ["", "5", "ms", "five ms", "1e3", "1e3ms", "--5s", "5 s s", "1h-5min", "nans", "1,5s"]
)
def test_unreadable_durations(text: str) -> None:
    with pytest.raises(ConditionError, match="cannot read the duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    "number", ["9" * 61, "0." + "0" * 59, "9" * 5000, "." + "0" * 5000], ids=len
)
def test_durations_of_too_many_digits(number: str) -> None:
    with pytest.raises(ConditionError, match="digits, and at most 60 are read") as caught:
        parse_duration(f"-{number}ns")
    assert len(str(caught.value)) < 200


def test_durations_of_as_many_digits_as_are_read() -> None:
    assert parse_duration("9" * 60 + "d") == (10**60 - 1) * 86400 * 10**9
    with pytest.raises(ConditionError, match=r"must stay below 2\^61"):
        Tick("ns").count("9" * 60 + "d")


@pytest.mark.parametrize("duration", [10**5000, -(10**5000), 2**61], ids=["long", "minus", "limit"])
def test_ints_of_any_length_are_told(duration: int) -> None:
    with pytest.raises(
        ConditionError, match=r"ticks, but bounds must stay below 2\^61 ticks"
    ) as caught:
        Tick().count(duration)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("unit", ["", "S", "MS", "week", "mon"])
def test_unknown_units(unit: str) -> None:
    with pytest.raises(ConditionError, match=r"is unknown\. Use one of"):
        unit_name(unit)
    with pytest.raises(ConditionError):
        Tick(unit)


@pytest.mark.parametrize(
    ("unit", "duration", "ticks"),
    [
        ("us", "250ms", 250_000),
        ("us", "-1.5s", -1_500_000),
        ("ns", "1us", 1000),
        ("s", "2min", 120),
        ("m", "1h", 60),
        ("ms", "0.5s", 500),
        ("us", 7, 7),
        (None, -7, -7),
        (None, np.int64(5), 5),
        (None, TIME_LIMIT - 1, TIME_LIMIT - 1),
        (None, 1 - TIME_LIMIT, 1 - TIME_LIMIT),
    ],
)
def test_count(unit: str | None, duration: int | str, ticks: int) -> None:
    found = Tick(unit).count(duration)
    assert found == ticks
    assert type(found) is int


@pytest.mark.parametrize(
    ("unit", "duration", "message"),
    [
        ("us", "1ns", "not a whole number"),
        ("s", "1.5s", "not a whole number"),
        (None, "5ms", "the unit of the time columns is unknown"),
        ("us", 0.5, "an int .ticks., a string such as '500ms', or a timedelta"),
        ("us", True, "an int .ticks., a string such as '500ms', or a timedelta"),
        ("us", np.array([0, 30]), "an int .ticks., .* .found array..*ndarray"),
        ("us", None, "an int .ticks., a string such as '500ms', or a timedelta"),
        ("us", TIME_LIMIT, "below 2\\^61"),
        ("us", -TIME_LIMIT, "below 2\\^61"),
        ("ns", "1000000d", "below 2\\^61"),
    ],
)
def test_refused_durations(unit: str | None, duration: object, message: str) -> None:
    with pytest.raises(ConditionError, match=message):
        Tick(unit).count(duration)


@given(st.integers(1 - TIME_LIMIT, TIME_LIMIT - 1), st.sampled_from(list(NANOSECONDS_PER_UNIT)))
def test_text_and_number_agree(ticks: int, unit: str) -> None:
    assert Tick(unit).count(f"{ticks}{unit}") == Tick(unit).count(ticks) == ticks


@pytest.mark.parametrize(
    ("given", "nanoseconds"),
    [
        (timedelta(milliseconds=-1.5), -1_500_000),
        (timedelta(days=2, microseconds=1), 2 * 86400 * 10**9 + 1000),
        (pd.Timedelta("1h 2ns"), 3_600_000_000_002),
        (pd.Timedelta(-1, "ns"), -1),
        (np.timedelta64(3, "W"), 21 * 86400 * 10**9),
        (np.timedelta64(-7, "10us"), -70_000),
    ],
)
def test_timedeltas_are_as_long_as_they_are(given: Any, nanoseconds: int) -> None:
    assert Tick("ns").count(given) == nanoseconds
    assert size_of(given) == nanoseconds
    assert within(given, "1000h").window(Tick("ns")) == (nanoseconds, 3600 * 10**12)


@pytest.mark.parametrize(
    "given",
    [np.timedelta64("NaT"), np.timedelta64(1, "Y"), np.timedelta64(5), np.timedelta64(1, "fs")],
)
def test_timedeltas_of_no_known_length(given: Any) -> None:
    with pytest.raises(ConditionError, match=r"not a duration|finer than a picosecond"):
        plain(given)


def test_timestamps_count_no_picoseconds() -> None:
    with pytest.raises(ConditionError, match=r"Round it\.$"):
        Tick("us", is_of_columns=True).count("0.5ns")


def test_picoseconds_are_exact() -> None:
    assert Tick("ps").count("1h 1ps") == 3600 * 10**12 + 1
    assert Tick("ns").count("2000 picoseconds") == 2
    assert plain(np.timedelta64(-1500, "ps")) == "-1500ps"


@pytest.mark.parametrize(
    ("unit", "text", "way"),
    [
        ("us", "0.5us", "count in a finer tick, for example tick='ns'"),
        ("s", "1500ms", "count in a finer tick, for example tick='ms'"),
        ("d", "90min", "count in a finer tick, for example tick='min'"),
        ("ns", "0.5ns", "count in a finer tick, for example tick='ps'"),
        ("ps", "0.5ps", r"Round it\.$"),
        ("us", "0.5ps", r"Round it\.$"),
    ],
)
def test_a_finer_tick_is_proposed_where_there_is_one(unit: str, text: str, way: str) -> None:
    with pytest.raises(ConditionError, match=way):
        Tick(unit).count(text)
