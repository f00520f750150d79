"""Why a join finds nothing: what is said of it, and that it is true."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coincide import CorrelateOptions, TimingCondition, within
from coincide.engine.events.ticks import length_words, time_words
from coincide.engine.events.time_columns import TimeColumn, resolve_tick, scale_of
from coincide.engine.files.slice_join import read_slice
from coincide.engine.join.timing import JoinSpec
from coincide.engine.reports.emptiness import (
    Evidence,
    NoPairs,
    evidence_of,
    explain_emptiness,
    key_overlap,
)
from coincide.model.probability import highest_probability, window_probability
from coincide.model.units import Tick
from tests.helpers.interval_sides import interval_side
from tests.helpers.joins import local_files_join, table_join

LENGTHS = st.integers(0, 60)


def events(times: Any, length: int = 0, **more: Any) -> pa.Table:
    low = np.asarray(times)
    return pa.table({"min_time": low, "max_time": low + length, "id": range(low.size), **more})


def no_pairs(
    left: pa.Table, right: pa.Table, lo: Any, hi: Any, ct: float = 0.9, **more: Any
) -> NoPairs:
    job = table_join(left, right, TimingCondition(within(lo, hi), ct), **more)
    assert sum(batch.num_rows for batch in job.batches()) == 0
    assert job.summary is not None
    assert job.summary.no_pairs is not None
    return job.summary.no_pairs


@given(LENGTHS, LENGTHS, LENGTHS, LENGTHS, st.integers(0, 80))
def test_no_pair_is_more_probable_than_the_highest(
    l1: int, l2: int, longer1: int, longer2: int, width: int
) -> None:
    highest = highest_probability(l1, l2, width)
    lengths = l1 + longer1, l2 + longer2
    reached = [window_probability(s, *lengths, 0, width) for s in range(-250, 250)]
    assert max(reached) <= highest + 1e-15
    # In half ticks some pair has its midpoints at the middle of the window.
    doubled = window_probability(width + l2 - l1, 2 * l1, 2 * l2, 0, 2 * width)
    assert doubled == pytest.approx(highest, abs=1e-15)


def test_a_window_that_no_pair_can_reach() -> None:
    found = no_pairs(
        events([0, 100, 200], 20), events([5, 105, 210]), "0ms", "5ms",
        options=CorrelateOptions(unit="ms"),
    )  # fmt: skip
    assert found.highest_probability == 0.25
    assert "is 0.25, below the confidence 0.9" in found.reasons[0]
    assert "20 ms (left) and 0 ms (right) long, the window is 5 ms wide" in found.reasons[0]
    # One that just reaches the confidence is no reason.
    other = no_pairs(events([0], 20), events([500]), 0, 5, ct=0.25)
    assert not any("below the confidence" in line for line in other.lines)


def test_single_instants_do_not_hide_how_long_the_others_are() -> None:
    tables = [events(np.arange(0, 10**4, 10), 8), events(np.arange(5, 10**4, 10), 8)]
    tables = [
        t.set_column(1, "max_time", pa.array([t["min_time"][0].as_py(), *t["max_time"].to_pylist()[1:]]))
        for t in tables
    ]  # fmt: skip
    found = no_pairs(*tables, 0, 4)
    half = highest_probability(8, 8, 4)
    assert found.reasons == ()
    assert found.hints[0] == (
        "the highest probability that these lengths and this window allow is 1, enough for the confidence"
        " 0.9: the shortest timestamps are 0 ticks (left) and 0 ticks (right) long, the window is 4 ticks"
        " wide, but half of the timestamps are 8 ticks (left) and 8 ticks (right) long or more, which"
        f" allows {half:g} at most. Widen it, or lower the confidence"
    )  # fmt: skip
    # Where the shortest are as the others are, or all are short enough, once is enough.
    alike = no_pairs(events([0, 50], 8), events([100, 150], 8), 0, 4).reasons[0]
    assert "half of the timestamps" not in alike
    assert alike.endswith("the window is 4 ticks wide. Widen it, or lower the confidence")
    short = no_pairs(events([0, 50], 1), events([100, 150], 1), 0, 4).hints[0]
    assert short.endswith("the window is 4 ticks wide")


def test_typical_lengths_are_told_where_they_are_known() -> None:
    column = TimeColumn("left", "t", "integer")
    scale = scale_of(column, resolve_tick([column], CorrelateOptions()), CorrelateOptions())
    window = TimingCondition(within(0, 4), 0.9).window(Tick())
    known, unknown = Evidence(scale, 9, 0, 0, 9, typical=8), Evidence(scale, 9, 0, 0, 9)
    for sides in ((known, unknown), (unknown, known), (unknown, unknown)):
        told = explain_emptiness(*sides, JoinSpec(window), None)
        assert "half of the timestamps" not in " ".join(told.lines)
    assert (
        "half of the timestamps" in explain_emptiness(known, known, JoinSpec(window), None).hints[0]
    )
    # At least five of nine events are as long as the typical one.
    times = np.arange(9)
    lengths = [0, 0, 0, 0, 3, 9, 9, 9, 9]
    side = interval_side(times, times + lengths)
    assert evidence_of(side, scale).typical == 3


def stamps(first: dt.datetime, *more: int) -> list[dt.datetime]:
    return [first + dt.timedelta(seconds=s) for s in more]


def test_a_clock_an_hour_off() -> None:
    morning = dt.datetime(2024, 5, 1, 8)
    left, right = (
        pa.table({"t": pa.array(times, pa.timestamp("us", "UTC")), "id": range(len(times))})
        for times in (
            stamps(morning, 0, 4000, 9000, 36000),
            stamps(morning + dt.timedelta(hours=1), 1, 4002, 9001, 36001),
        )
    )
    found = no_pairs(left, right, "0s", "3s", left_time="t", right_time="t")
    assert found.reasons == ()
    assert found.left_times == ("2024-05-01 08:00:00Z", "2024-05-01 18:00:00Z")
    assert any(line.startswith("right begins and ends about 1 h later") for line in found.hints)
    mirrored = no_pairs(right, left, "0s", "3s", left_time="t", right_time="t")
    assert any(line.startswith("left begins and ends about 1 h later") for line in mirrored.hints)


def test_times_that_cannot_meet() -> None:
    found = no_pairs(events([0, 50], 10), events([100, 200]), 0, 30)
    assert found.reasons == (
        "all right times are 10 ticks or more too late for the window: left 0 to 60; right 100 to 200",
    )
    assert "too early" in no_pairs(events([100, 200]), events([0, 50], 10), 0, 30).reasons[0]
    # At the end of the window they meet, if with no probability.
    assert "for the window" not in " ".join(
        no_pairs(events([0, 50], 10), events([90]), 0, 30).lines
    )


@pytest.mark.parametrize("factor", [10**3, 10**6, 10**9])
def test_seconds_beside_finer_units(factor: int) -> None:
    seconds = 1_700_000_000 + np.array([0, 3000, 9000])
    found = no_pairs(events(seconds), events(seconds * factor + 5), 0, 9)
    hint = f"right's times are about {factor:,} times left's"
    assert any(line.startswith(hint) and "left_unit" in line for line in found.hints)
    swapped = no_pairs(events(seconds * factor), events(seconds), 0, 9)
    assert any(line.startswith("left's times are about") for line in swapped.hints)
    if factor == 10**3:
        options = CorrelateOptions(left_unit="s", right_unit="ms")
        told = no_pairs(
            events(seconds), events(seconds * factor + 20), "0ms", "9ms", options=options
        )
        assert not any("times left's" in line for line in told.lines)
        assert told.left_times == ("1,700,000,000 s", "1,700,009,000 s")
        assert told.right_times == ("1,700,000,000,020 ms", "1,700,009,000,020 ms")


@pytest.mark.parametrize(
    ("left", "right", "words"),
    [
        (["DEV_1", "b"], ["dev_1", "c"], "'DEV_1' and 'dev_1' differ only in case"),
        (["a ", None], ["a", "a"], "'a ' and 'a' differ only in blanks around it"),
        (["x", "DEV-1 "], ["dev_1", "y"], "differ only in blanks around it and case and - or _"),
        (["a", "b"], ["c", None], "no key (key): left has 2, right 1, such as 'a' and 'c'"),
        ([1, 2], [3, None], "no key (key): left has 2, right 1, such as 1 and 3"),
    ],
)  # fmt: skip
def test_keys_that_are_not_shared(left: list[Any], right: list[Any], words: str) -> None:
    found = no_pairs(events([0, 9], key=left), events([0, 9], key=right), -9, 9, by="key")
    assert words in found.reasons[0]
    assert found.keys is not None
    assert found.keys.shared == 0


def test_shared_keys_are_counted() -> None:
    keys = {"a": ["x", "x", "y", "z"], "b": [1, 1, 2, None]}
    found = no_pairs(events([0] * 4, **keys), events([99] * 4, **keys), 0, 5, by=["a", "b"])
    assert found.keys is not None
    assert (found.keys.left, found.keys.right, found.keys.shared) == (2, 2, 2)
    assert any(line.startswith("the sides share 2 keys (a and b)") for line in found.hints)


def test_alike_only_where_nothing_is_equal() -> None:
    left, right = (
        interval_side([0, 0], [0, 0], keys=[pa.array(keys)]) for keys in (["A", "b"], ["a", "A"])
    )
    found = key_overlap(left, right, ["k"])
    assert found is not None
    assert (found.shared, found.alike) == (1, None)


def test_an_empty_side() -> None:
    nothing = no_pairs(events([0]), events([]).cast(events([0]).schema), 0, 5)
    assert nothing.lines == ("right has no row that can match",)


def test_nothing_is_said_of_a_join_that_finds_something() -> None:
    job = table_join(events([0]), events([1]), TimingCondition(within(0, 5), 0.9), how="anti")
    assert sum(batch.num_rows for batch in job.batches()) == 0
    assert job.summary is not None
    assert job.summary.no_pairs is None


def test_files_are_looked_at_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    paths = [str(tmp_path / name) for name in ("left.parquet", "right.parquet")]
    times = np.sort(rng.integers(0, 10**6, 4000))
    for path, shift, keys in zip(paths, (0, 3 * 10**5), ("ABCD", "abcd"), strict=True):
        key = [keys[i % 4] for i in range(4000)]
        table = events(times + shift, 7, key=key)
        pq.write_table(table, path, row_group_size=500)
    condition = TimingCondition(within(0, 3), 0.9)
    job = local_files_join(*paths, condition, by="key", options=CorrelateOptions(slices=3))
    assert list(job.batches()) == []
    assert job.summary is not None
    found = job.summary.no_pairs
    tables = [pq.read_table(path) for path in paths]
    assert found == no_pairs(*tables, 0, 3, by="key")
    assert found is not None
    assert found.reasons[0].endswith("Widen it, or lower the confidence")
    assert "differ only in case" in found.reasons[1]
    # A sample of the rows makes nothing certain.
    monkeypatch.setattr("coincide.engine.files.planning._MOST_ROWS", 1000)
    job = local_files_join(*paths, condition, by="key", options=CorrelateOptions(slices=3))
    assert list(job.batches()) == []
    assert job.summary is not None
    partly = job.summary.no_pairs
    assert partly is not None
    assert partly.reasons == ()
    assert "in the sampled rows" in " ".join(partly.hints)
    assert partly.left_times == found.left_times
    assert read_slice(job._join, 0).counts[0].rows > 0


def test_the_command_line_says_why(work) -> None:
    work.write("right.parquet", events([1, 11], 4, key=["A", "B"]))
    code, out, err = work.join("--within", "-3", "5", "--confidence", "0.5", "--by", "key")
    assert (code, err) == (0, "")
    assert "no pairs:   the sides share no key (key): left has 2, right 2" in out
    options = ("--within", "0", "1", "--confidence", "0.9", "--json", "--overwrite")
    told = json.loads(work.join(*options)[1])["no_pairs"]
    assert told["highest_probability"] == 0.234375
    assert told["left_times"] == ["0", "34"]
    assert "below the confidence" in told["reasons"][0]


@pytest.mark.spark
@pytest.mark.parametrize("way", ["files", "broadcast", "exchange"])
def test_the_command_line_says_why_on_spark(work, spark, way: str) -> None:
    work.write("right.parquet", events([1, 11], 4, key=["A", "B"]))
    options = ("--within", "-3", "5", "--confidence", "0.5", "--by", "key", "--way", way, "--json")
    code, out, err = work.join(*options, engine="spark")
    assert (code, err) == (0, "")
    told = json.loads(out)["no_pairs"]
    assert told["reasons"][0].startswith("the sides share no key (key): left has 2, right 2")
    assert told["keys"]["alike"][2] == "case"
    assert told["right_times"] == ["1", "15"]


# --- words ---


@pytest.mark.parametrize(
    ("ticks", "unit", "words"),
    [
        (20_000_000, "ns", "20 ms"), (0, "us", "0 us"), (3_600_000, "ms", "1 h"), (-90, "s", "-1.5 min"),
        (12_345, None, "12,345 ticks"), (0.25, "ns", "250 ps"), (0.4, "us", "400 ns"),
    ],
)  # fmt: skip
def test_lengths_in_words(ticks: float, unit: str | None, words: str) -> None:
    assert length_words(ticks, Tick(unit)) == words


def test_times_in_words() -> None:
    def words(ticks: int, family: Any, nanoseconds: int | None = None, **options: Any) -> str:
        column = TimeColumn("left", "t", family, nanoseconds)
        given = CorrelateOptions(**options)
        return time_words(ticks, scale_of(column, resolve_tick([column], given), given))

    assert words(0, "timestamp", 1000) == "1970-01-01 00:00:00Z"
    assert words(1_500_000, "timestamp_ntz", 1000) == "1970-01-01 00:00:01.5"
    assert words(2**61 - 1, "timestamp", 1000).startswith("75039-")
    assert words(5, "integer") == "5"
    assert words(1_500_000_000, "float", unit="s") == "1.5 s"
