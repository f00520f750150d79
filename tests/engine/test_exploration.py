"""Explorations: the numbers equal those of trying every pair, and pages need nothing but themselves."""

from __future__ import annotations

import re
import sys
import warnings
from typing import Any

import matplotlib.image
import numpy as np
import pyarrow as pa
import pytest

from coincide import (
    BackendError,
    ConditionError,
    CorrelateOptions,
    DataError,
    DroppedRowsWarning,
    Exploration,
    NoPairsWarning,
    SchemaError,
    TimingCondition,
    UnmatchableRowsWarning,
    correlate_tables,
    explore_tables,
    mutual_deadline,
    within,
)
from coincide.engine.exploration import counting
from coincide.engine.exploration.counting import LABELS, flat_stretch
from coincide.engine.exploration.drawing import flat_words, head_of, readings_of
from tests.helpers import explorations as brute
from tests.helpers.comparison import ticks_of
from tests.helpers.histogram_tables import by_device, events, random_templates
from tests.helpers.strategies import JoinCase, random_cases

ONE_THREAD = CorrelateOptions(threads=1)


def explored(case: JoinCase, **arguments: Any) -> Exploration:
    arguments = {"within": (case.lo, case.hi), "by": case.by, "options": ONE_THREAD, **arguments}
    return explore_tables(ticks_of(case.left, case.by), ticks_of(case.right, case.by), **arguments)


def pairs_of(found: Exploration) -> list[int]:
    return found.curve["pairs"].to_pylist()


def match_counts(found: Exploration, side: str, confidence: float) -> dict[str, int]:
    return {
        row["matches"]: row["events"]
        for row in found.matches.to_pylist()
        if (row["side"], row["confidence"]) == (side, confidence)
    }


def label_of(matches: int) -> str:
    if matches <= 5:
        return str(matches)
    bounds = ((10, "6–10"), (100, "11–100"), (1000, "101–1000"))
    return next((label for most, label in bounds if matches <= most), "> 1000")


@pytest.mark.parametrize(
    ("seed", "cases"), [(41, 60), pytest.param(42, 150, marks=pytest.mark.slow)]
)
def test_numbers_are_those_of_every_pair(seed: int, cases: int) -> None:
    seen = 0
    for case in random_cases(seed, cases, max_size=12):
        pairs = brute.tried_pairs(case)
        if not brute.is_clear(pairs, brute.CONFIDENCES):
            continue
        found = explored(case, confidences=(0.3, 0.9), confidence=0.2)
        by_confidence = [sum(1 for _ in brute.at(pairs, ct)) for ct in brute.CONFIDENCES]
        assert pairs_of(found) == by_confidence
        assert found.candidates == by_confidence[0]
        steps = -np.diff([*by_confidence, 0])
        bars = [*steps[:-1].reshape(50, 2).sum(axis=1), steps[-1]]
        assert found.probabilities["pairs"].to_pylist() == bars
        for side in ("left", "right"):
            for ct in (0.3, 0.9):
                expected = dict.fromkeys(LABELS, 0)
                for matches, number in brute.matches(pairs, case, side, ct).items():
                    expected[label_of(matches)] += number
                assert match_counts(found, side, ct) == expected
        check_delays(found, case, pairs)
        seen += by_confidence[0]
    assert seen > 500


def check_delays(found: Exploration, case: JoinCase, pairs: list[brute.TriedPair]) -> None:
    """By hand: 24 parts of the range of left middles, bins around multiples of the step."""
    size, first, step = found.parts.size, found.parts.origin, found.delay_step
    assert not found.parts.is_hours
    expected: dict[tuple[int, int], int] = {}
    for pair in brute.at(pairs, 0.2):
        row = case.left[pair.left]
        part = ((row["min_time"] + row["max_time"]) // 2 - first) // size
        assert 0 <= part < 24
        delay = (pair.doubled_delay + step) // (2 * step) * step
        expected[part, delay] = expected.get((part, delay), 0) + 1
    given = {(row["part"], row["delay"]): row["pairs"] for row in found.delays.to_pylist()}
    assert given.items() <= expected.items()
    assert sum(given.values()) + found.far_delays == sum(expected.values())
    if found.far_delays:  # beyond the window and as much on both sides
        width = case.hi - case.lo
        assert any(not case.lo - width <= d <= case.hi + width for _, d in expected)


def test_the_join_finds_as_many_at_each_confidence() -> None:
    case = next(iter(random_cases(7, 1, max_size=60, nulls=False)))
    sides = ticks_of(case.left, case.by), ticks_of(case.right, case.by)
    found = explored(case)
    for confidence in (0.01, 0.29, 0.57, 0.58, 1.0):
        condition = TimingCondition(within(case.lo, case.hi), confidence)
        joined = correlate_tables(*sides, condition, by=case.by)
        assert found.pairs_at(confidence) == joined.num_rows


def test_histograms() -> None:
    left, right = events(1, 150), events(2, 150)
    times: dict[str, Any] = {
        "left_time": by_device(random_templates(3)), "right_time": by_device(random_templates(4)),
        "by": "place",
    }  # fmt: skip
    found = explore_tables(left, right, within=(-30, 50), confidences=(0.2, 0.6), **times)
    for confidence in (0.2, 0.6):
        joined = correlate_tables(
            left, right, TimingCondition(within(-30, 50), confidence), **times
        )
        assert found.pairs_at(confidence) == joined.num_rows > 20
        counts = match_counts(found, "right", confidence)
        assert counts["0"] == 150 - len(set(joined["right_id"].to_pylist()))
    assert found.delays["pairs"].to_numpy().sum() + found.far_delays == found.pairs_at(0.5)
    assert "highest P" not in dict(head_of(found)) or found.highest_probability < 1


def test_intervals_beside_histograms() -> None:
    left, right = events(1, 150), events(2, 150)
    right = right.append_column("low", pa.array(right["seen_at"].to_numpy() - 17))
    times: dict[str, Any] = {
        "left_time": by_device(random_templates(3)),
        "right_time": ("low", "seen_at"),
    }
    found = explore_tables(left, right, within=(-30, 50), confidences=[0.6], **times)
    condition = TimingCondition(within(-30, 50), 0.6)
    joined = correlate_tables(left, right, condition, **times)
    assert found.pairs_at(0.6) == joined.num_rows > 20
    counts = match_counts(found, "right", 0.6)
    assert counts["0"] == 150 - len(set(joined["right_id"].to_pylist()))


def test_shifts_are_counted_at_each_confidence() -> None:
    rng = np.random.default_rng(3)
    left, right = (
        pa.table({"id": np.arange(400), "min_time": (low := rng.integers(0, 20_000, 400)),
                  "max_time": low + 30}) for _ in range(2)
    )  # fmt: skip
    shifts = (200, -300)
    found = explore_tables(left, right, within=(-50, 50), shifts=shifts)
    for confidence in (0.25, 0.8):
        moved = [
            correlate_tables(
                left, right, TimingCondition(within(-50 - shift, 50 - shift), confidence)
            ).num_rows
            for shift in shifts
        ]
        row = found.curve.to_pylist()[round(100 * confidence)]
        assert row["accidental_pairs"] == sum(moved) / 2
        assert row["accidental_spread"] == pytest.approx(abs(moved[0] - moved[1]) / 2**0.5)
    assert "chance alone" in readings_of(found)["curve"]
    alone = explore_tables(left, right, within=(-50, 50), shifts=[200])
    assert alone.curve["accidental_spread"].null_count == 101
    assert "±" not in readings_of(alone)["curve"]
    assert alone.charts["curve"].to_dict()


# One stream, and conditions on pairs


def stream(size: int = 300) -> pa.Table:
    rng = np.random.default_rng(9)
    low = rng.integers(0, 3000, size)
    columns = {"id": np.arange(size), "min_time": low, "max_time": low + rng.integers(0, 40, size)}
    return pa.table({**columns, "a": rng.integers(0, 3, size), "k": rng.integers(0, 2, size)})


@pytest.mark.parametrize("arguments", [{}, {"where": "left_a < right_a", "by": "k"}])
@pytest.mark.parametrize("is_one", [True, False])
def test_numbers_are_those_of_the_join(arguments: dict[str, Any], is_one: bool) -> None:
    sides = (stream(),) if is_one else (stream(), stream())
    found = explore_tables(*sides, within=(-20, 60), confidences=(0.3, 0.8), **arguments)
    for confidence in (0.3, 0.8):
        condition = TimingCondition(within(-20, 60), confidence)
        joined = correlate_tables(*sides, condition=condition, **arguments)
        assert found.pairs_at(confidence) == joined.num_rows > 100
        own, others = (joined[name].to_numpy() for name in ("left_id", "right_id"))
        events = {"left": own, "right": others}
        if is_one:  # all others count for each event
            lists = correlate_tables(*sides, condition=condition, emit="lists", **arguments)
            own = np.repeat(
                lists["left_id"].to_numpy(), list(map(len, lists["right_id"].to_pylist()))
            )
            events = {"event": own}
        for side, ids in events.items():
            expected = dict.fromkeys(LABELS, 0)
            for matches in np.bincount(ids, minlength=300):
                expected[label_of(matches)] += 1
            assert match_counts(found, side, confidence) == expected
    assert found.sides == (("event",) if is_one else ("left", "right"))


def test_a_sample_of_one_stream_knows_its_order() -> None:
    """If all instants are simultaneous, the lower row is the earlier event."""
    table = pa.table({"t": [5] * 60})
    given: dict[str, Any] = {"within": (0, 1), "left_time": "t", "most_pairs": 600}
    found = explore_tables(table, **given)
    rows = np.sort(np.random.default_rng(1).choice(60, found.sample.events, replace=False))
    assert found.candidates == 60 * 59 // 2
    pairs = round((59 - rows).sum() * found.sample.factor)
    assert found.pairs_at(1.0) == pairs


def test_words_of_one_stream() -> None:
    found = explore_tables(stream(), within=(-20, 60))
    head = dict(head_of(found))
    assert "T_later − T_earlier" in head["window"]
    assert "300 rows" in head["events"]
    assert "earlier event" in found.to_html()


def test_certain_pairs_that_dwarf_the_others_stand_apart() -> None:
    low = np.arange(0, 100_000, 100)
    left = pa.table({"min_time": low, "max_time": low + 4})
    right = left.slice(0, 1000)
    alike = explore_tables(left, right, within=(-2, 2))
    assert not alike.certain_stand_apart
    wide = pa.concat_tables([right, pa.table({"min_time": [5], "max_time": [20]})])
    found = explore_tables(left, wide, within=(-5, 5))
    assert found.certain_stand_apart
    below, alone = found.charts["probabilities"].to_dict()["hconcat"]
    assert (below["width"] > 400, alone["width"] < 100) == (True, True)
    assert "a scale of their own" in alone["encoding"]["y"]["title"]
    assert "so they have a scale of their own" in readings_of(found)["probabilities"]


# Samples


def test_a_great_many_candidates_take_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    whole = counting.Candidates._pairs

    def watched(self: counting.Candidates, start: int, stop: int) -> counting.Pairs:
        pairs = whole(self, start, stop)
        sizes.append(pairs.left.size)
        return pairs

    monkeypatch.setattr(counting.Candidates, "_pairs", watched)
    left, right = brute.burst(3000, 2000)
    options = CorrelateOptions(threads=2, batch_pairs=10_000)
    found = explore_tables(
        left, right, within=(-500, 500), options=options, most_pairs=200_000, confidences=[0.5]
    )
    assert found.candidates == 6_000_000
    assert (found.sample.events, found.sample.of) == (100, 3000)
    assert sum(sizes) == 200_000
    assert max(sizes) <= 12_000
    assert pairs_of(found)[0] == 6_000_000
    condition = TimingCondition(within(-500, 500), 0.8)
    exact = correlate_tables(left, right, condition, left_columns="min_time", emit="counts")
    assert found.pairs_at(0.8) == pytest.approx(sum(exact["matches"].to_pylist()), rel=0.1)
    # For all events, not for the sample:
    assert match_counts(found, "right", 0.5) == {**dict.fromkeys(LABELS, 0), "> 1000": 2000}
    assert "100 of 3,000 left events" in dict(head_of(found))["sample"]
    assert "A sample" in found.to_html()


def test_the_sample_is_always_the_same() -> None:
    left, right = brute.burst(200, 50)
    options = [CorrelateOptions(threads=n, batch_pairs=size) for n, size in ((1, 37), (2, 1000))]
    curves = [
        explore_tables(left, right, within=(-300, 300), options=each, most_pairs=700).curve
        for each in options
    ]
    assert curves[0].equals(curves[1])


# Little to look at


@pytest.mark.parametrize("rows", [(0, 0), (0, 3), (3, 0)])
def test_empty_sides(rows: tuple[int, int], tmp_path: Any) -> None:
    table = pa.table({"min_time": [0, 10, 20], "max_time": [5, 15, 25]})
    found = explore_tables(*(table[:n] for n in rows), within=(-5, 5))
    assert found.candidates == sum(pairs_of(found)) == found.delays.num_rows == 0
    assert "has no row that can match" in found.why_none[0]
    assert (found.charts, found.flat, flat_words(found)) == ({}, None, "")
    assert "no candidates" in found.to_html()
    found.save(tmp_path / "page.html")
    with pytest.raises(DataError, match="there are no candidates, so there are no charts to write"):
        found.save(tmp_path / "all.png")


def test_no_candidate_says_why() -> None:
    table = pa.table({"min_time": [0], "max_time": [5]})
    late = pa.table({"min_time": [100], "max_time": [101]})
    with pytest.warns(NoPairsWarning, match="too late"):
        found = explore_tables(table, late, within=(-5, 5))
    assert "too late for the window" in " ".join(found.why_none)
    assert "too late for the window" in found.to_html()
    assert match_counts(found, "left", 0.5)["0"] == 1


def test_one_event_each() -> None:
    table = pa.table({"min_time": [0], "max_time": [10]})
    found = explore_tables(table, table, within=(0, 100))
    assert (found.candidates, found.pairs_at(0.5), found.pairs_at(0.51)) == (1, 1, 0)
    assert repr(found) == "Exploration(1 candidates, 1 pairs at 0.5)"
    assert found.delays.to_pylist() == [{"part": 0, "delay": 0, "pairs": 1}]
    assert set(found.charts) == {"probabilities", "curve", "matches", "delays"}
    assert "window.vegaEmbed" in found.to_html()


def test_exact_instants_are_in_or_out() -> None:
    table = pa.table({"t": [0, 7, 20]})
    found = explore_tables(
        table, table, within=mutual_deadline(7), left_time="t", right_time="t", confidence=1.0
    )
    assert set(pairs_of(found)) == {5}
    assert found.probabilities["pairs"].to_pylist() == [0] * 50 + [5]
    assert found.flat == (0.01, 1.0)
    delays = found.delays.group_by("delay").aggregate([("pairs", "sum")]).sort_by("delay")
    assert delays.to_pylist() == [
        {"delay": -7, "pairs_sum": 1}, {"delay": 0, "pairs_sum": 3}, {"delay": 7, "pairs_sum": 1},
    ]  # fmt: skip


def test_rows_that_match_nothing_are_told_of() -> None:
    table = pa.table(
        {"min_time": [0, None, 9], "max_time": [4, 3, 1], "k": pa.array(["a", "b", "a"])}
    )
    options = CorrelateOptions(invalid="drop")
    found = explore_tables(table, table, within=(-5, 5), by="k", options=options)
    assert (found.rows[0].rows, found.rows[0].unmatchable, found.rows[0].dropped) == (3, 1, 1)
    assert match_counts(found, "left", 0.1) == {**dict.fromkeys(LABELS, 0), "0": 1, "1": 1}
    assert "1 without time or key" in dict(head_of(found))["left"]
    with pytest.warns(UnmatchableRowsWarning), pytest.warns(DroppedRowsWarning):
        explore_tables(table, table, within=(-5, 5), by="k", options=options)
    with pytest.raises(DataError, match="min above max"):
        explore_tables(table, table, within=(-5, 5), by="k")


# Parts of the day


def hours(times: list[int], **arguments: Any) -> Exploration:
    table = pa.table({"t": pa.array(times, pa.timestamp("us", "UTC"))})
    return explore_tables(table, table, within=("0s", "0s"), left_time="t", right_time="t")


def test_hours_of_the_day_are_utc() -> None:
    hour = 3_600_000_000
    found = hours([-1, 0, hour - 1, hour, 30 * hour])
    assert found.parts.is_hours
    assert found.parts.title(found.evidence[0].scale).endswith("UTC")
    counts = {row["part"]: row["pairs"] for row in found.delays.to_pylist()}
    assert counts == {23: 1, 0: 2, 1: 1, 6: 1}


def test_of_a_short_recording_parts_are_of_its_range() -> None:
    found = hours([0, 1_000_000, 23_000_000])
    assert not found.parts.is_hours
    assert found.parts.begin(0, found.evidence[0].scale) == "1970-01-01 00:00:00Z"
    assert {row["part"] for row in found.delays.to_pylist()} == {0, 1, 23}
    found.to_html()


# Words


@pytest.mark.parametrize(
    ("pairs", "flat"),
    [
        ([100] * 101, (0.01, 1.0)),
        ([0] * 101, None),
        ([1000 - 9 * i for i in range(101)], None),
        ([1000] * 21 + [900] * 40 + [899] * 20 + [0] * 20, (0.21, 0.8)),
        ([200] * 50 + [198] * 11 + [197] * 40, (0.01, 0.6)),
    ],
)
def test_flat_stretch(pairs: list[int], flat: tuple[float, float] | None) -> None:
    curve = pa.table({"confidence": [i / 100 for i in range(101)], "pairs": pairs})
    assert flat_stretch(curve) == flat


def test_typical_lengths_tell_what_few_pairs_reach() -> None:
    table = pa.table({"min_time": [0, 0, 0], "max_time": [200, 400, 400]})
    found = explore_tables(table, table, within=(-250, 250))
    assert dict(head_of(found))["highest P"].startswith("1. For pairs")
    assert "0.8594" in dict(head_of(found))["highest P"]
    short = explore_tables(table[:1], table[:1], within=(-250, 250))
    assert "highest P" not in dict(head_of(short))


# Pages


def small() -> Exploration:
    table = pa.table({"min_time": [0, 10, 20], "max_time": [5, 15, 25]})
    return explore_tables(table, table, within=(-6, 6))


def test_a_page_asks_for_nothing_beyond_itself() -> None:
    page = small().to_html("coincide explore '</pre><script src=\"http://x\">' b")
    tags = re.sub(r"<script type=\"module\">.*?</script>", "", page, flags=re.DOTALL)
    assert "&lt;/pre&gt;&lt;script" in tags
    assert not re.search(r"<(script|link|img|iframe|object)\b", tags)
    assert not re.search(r"<[^>]*\b(src|href)\s*=", tags)
    assert "url(" not in tags
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", page, flags=re.DOTALL)
    assert len(scripts) == 2
    assert re.findall(r"<script[^>]*>", page) == ['<script type="module">'] * 2
    assert not re.search(r"\bimport\s*[({\"']|\bfrom\s*[\"']https?:", scripts[0])
    charts = scripts[1].partition("const options")[0]
    assert set(re.findall(r"https?://[^\"]*", charts)) <= {
        found for found in re.findall(r'"\$schema": "([^"]*)"', charts)
    }


def test_charts_hold_few_rows() -> None:
    left, right = brute.burst(300, 300)
    for name, chart in explore_tables(left, right, within=(-500, 500)).charts.items():
        rows = sum(len(values) for values in chart.to_dict()["datasets"].values())
        assert 0 < rows < 1500, name


def test_saving(tmp_path: Any) -> None:
    found = small()
    found.save(tmp_path / "page.html")
    with pytest.raises(DataError, match="exists already"):
        found.save(tmp_path / "page.html")
    found.save(tmp_path / "page.html", overwrite=True)
    found.save(tmp_path / "all.png")
    found.save(tmp_path / "charts")
    names = ["curve.png", "delays.png", "matches.png", "probabilities.png"]
    assert sorted(path.name for path in (tmp_path / "charts").iterdir()) == names
    for path in tmp_path.rglob("*.png"):
        picture = matplotlib.image.imread(path)
        assert picture.shape[1] > 1000
        assert 0.01 < (picture[..., :3].min(axis=2) < 0.9).mean() < 0.9
    with pytest.raises(DataError, match="does not say what to write"):
        found.save(tmp_path / "page.pdf")


def test_without_altair_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    found = small()
    for module in ("drawing", "pages"):
        monkeypatch.delitem(sys.modules, f"coincide.engine.exploration.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(BackendError, match=r"no altair\)\. Use pip install 'coincide\[explore\]'"):
        found.to_html()


# Bad input


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (
            {"within": "10ms"},
            ConditionError,
            "has a unit, but the unit of the time columns is unknown",
        ),
        ({"within": (0,)}, ConditionError, r"takes \(lo, hi\)"),
        ({"confidence": 0}, ConditionError, "must lie in"),
        ({"confidences": 0.5}, ConditionError, "a sequence of numbers"),
        ({"confidences": ()}, ConditionError, "1 to 6 numbers"),
        ({"confidences": [0.5, 2]}, ConditionError, "must lie in"),
        ({"most_pairs": 0}, ConditionError, "at least 1"),
        ({"shifts": [3]}, ConditionError, "not longer than"),
        ({"by": "nobody"}, SchemaError, "nobody"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    table = pa.table({"min_time": [0], "max_time": [5]})
    with pytest.raises(error, match=words) as caught:
        explore_tables(table, table, **{"within": (-5, 5), **arguments})
    assert "\n" not in str(caught.value)


def test_the_curve_has_hundredths() -> None:
    with pytest.raises(ConditionError, match=r"found 0\.555"):
        small().pairs_at(0.555)


def test_what_is_no_table() -> None:
    with pytest.raises(SchemaError, match="must be a table"):
        explore_tables([1], [2], within=(0, 1))


def test_no_warning_without_need() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small().to_html()
