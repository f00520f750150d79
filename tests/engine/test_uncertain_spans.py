"""Joins of spans whose starts and ends are uncertain: decided as fractions decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest

from coincide import (
    CoincideWarning,
    ConditionError,
    CorrelateOptions,
    DataError,
    JoinReport,
    SpanRelation,
    containing,
    correlate_tables,
    following,
    inside,
    overlapping,
    relation,
    spans,
)
from coincide.model.condition import Closed
from cpu_fallback.reference.decision import decision_is_clear, qualifies
from cpu_fallback.reference.spans import (
    UncertainSpan,
    chance_of_containing,
    chance_of_following,
    chance_of_overlap,
)

CLOSED = get_args(Closed)
CONFIDENCES = (0.01, 0.1, 1 / 3, 0.5, 0.75, 0.9, 1.0)
Chance = Callable[[UncertainSpan, UncertainSpan], Fraction]
Widths = tuple[int, int]

RELATIONS: dict[str, tuple[SpanRelation, Chance]] = {
    "overlapping": (overlapping(), chance_of_overlap),
    "touching": (overlapping(min_overlap=0), lambda a, b: chance_of_overlap(a, b, 0)),
    "a gap of 3": (overlapping(gap=3), lambda a, b: chance_of_overlap(a, b, 3)),
    "containing": (containing(), chance_of_containing),
    "inside": (inside(), lambda a, b: chance_of_containing(b, a)),
    "following": (following(4), lambda a, b: chance_of_following(a, b, 4)),
}


def drawn(rng: np.random.Generator, closed: str, widths: Widths, size: int) -> list[UncertainSpan]:
    """Valid spans, near each other, of many lengths."""
    starts = rng.integers(-9, 25, size)
    lengths = sum(widths) + np.where(
        rng.random(size) < 0.6,
        rng.integers(0, 7, size),
        (10 ** rng.uniform(0, 3, size)).astype(int),
    )
    ends = zip(starts.tolist(), (starts + lengths).tolist(), strict=True)
    return [UncertainSpan(*each, closed, widths) for each in ends]


def table(side: list[UncertainSpan], scale: int = 1, epoch: int = 0) -> pa.Table:
    return pa.table({
        "id": pa.array(range(len(side)), pa.int64()),
        "start": pa.array([each.start * scale + epoch for each in side], pa.int64()),
        "end": pa.array([each.end * scale + epoch for each in side], pa.int64()),
    })  # fmt: skip


def times(closed: tuple[Any, Any], widths: tuple[Widths, Widths], scale: int = 1) -> dict[str, Any]:
    left, right = (
        spans("start", "end", closed=each, around=(own[0] * scale, own[1] * scale))
        for each, own in zip(closed, widths, strict=True)
    )
    return {"left_time": left, "right_time": right}


def widths_of(rng: np.random.Generator) -> tuple[Widths, Widths]:
    own, others = rng.choice([0, 0, 1, 2, 5, 8], (2, 2)).tolist()
    if not any((*own, *others)):
        own[0] = 3
    return (own[0], own[1]), (others[0], others[1])


@pytest.mark.parametrize("rounds", [1, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", RELATIONS)
def test_pairs_are_those_of_fractions(name: str, rounds: int) -> None:
    """All 16 kinds of ends, which matter where ends are known; swapped sides, counts and the rest agree."""
    asked, chance = RELATIONS[name]
    pairs = 0
    for number in range(16 * rounds):
        rng = np.random.default_rng([number, *name.encode()])
        closed, widths = (CLOSED[number % 4], CLOSED[number // 4 % 4]), widths_of(rng)
        confidence = float(rng.choice(CONFIDENCES))
        left, right = (drawn(rng, *each, 14) for each in zip(closed, widths, strict=True))
        given = {**times(closed, widths), "confidence": confidence}
        options = CorrelateOptions(classes=[None, 1, 2, 5][number % 4], batch_pairs=1 + number % 9)
        chances = {(i, j): chance(a, b) for i, a in enumerate(left) for j, b in enumerate(right)}
        assert all(decision_is_clear(p, confidence) for p in chances.values())
        expected = {pair for pair, p in chances.items() if qualifies(p, confidence)}
        found = correlate_tables(
            table(left), table(right), asked, probability=True, options=options, **given
        ).to_pylist()
        assert sorted((row["left_id"], row["right_id"]) for row in found) == sorted(expected)
        for row in found:
            p = chances[row["left_id"], row["right_id"]]
            assert abs(Fraction(row["probability"]) - p) < Fraction(1, 2**50)
        turned = {"left_time": given["right_time"], "right_time": given["left_time"]}
        swapped = correlate_tables(
            table(right), table(left), asked.mirrored(), probability=True, **{**given, **turned}
        ).to_pylist()
        assert {(row["right_id"], row["left_id"], row["probability"]) for row in swapped} == {
            tuple(row.values()) for row in found
        }
        counts = correlate_tables(
            table(left), table(right), asked, emit="counts", options=options, **given
        ).to_pylist()
        assert {row["left_id"]: row["matches"] for row in counts} == Counter(i for i, _ in expected)
        kept = correlate_tables(
            table(left), table(right), asked, how="right", options=options, **given
        ).to_pylist()
        alone = set(range(len(right))) - {j for _, j in expected}
        assert {row["right_id"] for row in kept if row["left_id"] is None} == alone
        pairs += len(expected)
    assert pairs > 20 * rounds


@pytest.mark.parametrize("name", RELATIONS)
def test_long_times_are_decided_alike(name: str) -> None:
    """Where a tick is short and times are long: near 2^60, by steps that are no power of 2."""
    asked, chance = RELATIONS[name]
    scale, epoch = 10**6, 2**60 + 12345
    amount = asked.gap if asked.gap is None else asked.gap * scale  # type: ignore[operator]
    asked = SpanRelation(asked.kind, asked.min_overlap, amount)
    for number in range(8):
        rng = np.random.default_rng([number, *name.encode()])
        closed, widths = (CLOSED[number % 4], CLOSED[number // 4]), widths_of(rng)
        confidence = float(rng.choice(CONFIDENCES))
        left, right = (drawn(rng, *each, 14) for each in zip(closed, widths, strict=True))
        found = correlate_tables(
            table(left, scale, epoch), table(right, scale, epoch), asked, confidence=confidence,
            **times(closed, widths, scale),
        ).to_pylist()  # fmt: skip
        expected = [
            (i, j)
            for i, a in enumerate(left)
            for j, b in enumerate(right)
            if qualifies(chance(a, b), confidence)
        ]
        assert sorted((row["left_id"], row["right_id"]) for row in found) == expected


@pytest.mark.parametrize("name", ["overlapping", "containing", "following"])
def test_one_stream_gives_each_pair_once(name: str) -> None:
    asked, chance = RELATIONS[name]
    for seed in range(12):
        rng = np.random.default_rng([seed, *name.encode()])
        side = drawn(rng, "both", (2, 5), 14)
        confidence = float(rng.choice(CONFIDENCES))
        found = correlate_tables(
            table(side), condition=asked, confidence=confidence,
            left_time=spans("start", "end", around=(2, 5)),
        ).to_pylist()  # fmt: skip
        ids = [(row["left_id"], row["right_id"]) for row in found]
        expected = {
            (i, j)
            for i, a in enumerate(side)
            for j, b in enumerate(side)
            if i != j and qualifies(chance(a, b), confidence)
        }
        assert set(ids) <= expected
        assert len(ids) == len({frozenset(pair) for pair in expected})


def test_the_best_is_the_most_probable_then_what_has_most_in_common() -> None:
    rng = np.random.default_rng(3)
    left, right = (drawn(rng, "both", (3, 3), 14) for _ in "lr")
    given = times(("both", "both"), ((3, 3), (3, 3)))
    found = correlate_tables(
        table(left), table(right), overlapping(), confidence=0.2, emit="best",
        probability=True, pair_columns="overlap", **given,
    ).to_pylist()  # fmt: skip
    assert len(found) > 5
    for row in found:
        a = left[row["left_id"]]
        near = [
            (-chance_of_overlap(a, b), max(a.start, b.start) - min(a.end, b.end), b.end, b.start, j)
            for j, b in enumerate(right)
        ]
        assert row["right_id"] == min(near)[-1]
        assert row["overlap"] == -min(near)[1]


@pytest.mark.parametrize("choice", [{"emit": "best"}, {"matching": "mutual"}])
def test_the_nearest_of_spans_without_a_gap_is_the_most_probable(choice: dict[str, Any]) -> None:
    left = pa.table({"id": [0], "start": [0], "end": [100]})
    right = pa.table({"id": [0, 1], "start": [97, 100], "end": [200, 200]})
    found = correlate_tables(
        left, right, following(8), confidence=0.1, prefer="nearest",
        left_time=spans("start", "end", around=5), right_time=spans("start", "end"), **choice,
    )  # fmt: skip
    assert found["right_id"].to_pylist() == [1]


def test_instants_may_be_in_uncertain_spans() -> None:
    lasting = pa.table({"id": [0], "start": [100], "end": [200]})
    points = pa.table({"id": [0, 1, 2, 3], "t": [96, 100, 150, 209]})
    found = correlate_tables(
        lasting, points, containing(), confidence=0.05, probability=True,
        left_time=spans("start", "end", around=10), right_time="t",
    )  # fmt: skip
    assert found["right_id"].to_pylist() == [0, 1, 2, 3]
    assert found["probability"].to_pylist() == [0.3, 0.5, 1.0, pytest.approx(0.05)]


def test_rows_that_may_end_before_they_start_are_refused_or_counted() -> None:
    rows = pa.table({"id": [0, 1, 2, 3], "start": [0, 5, None, 9], "end": [9, 13, 8, 3]})
    given: dict[str, Any] = {
        "condition": overlapping(), "confidence": 0.5, "left_time": spans("start", "end", around=(5, 4)),
    }  # fmt: skip
    with pytest.raises(
        DataError, match="starts that are or may be after their ends in start and end in 1 row"
    ):
        correlate_tables(rows.slice(0, 2), **given)
    report = JoinReport()
    with pytest.warns(CoincideWarning, match="that end or may end before they start"):
        found = correlate_tables(
            rows, how="anti", report=report, options=CorrelateOptions(invalid="drop"), **given
        )
    assert found["left_id"].to_pylist() == [0, 2]
    assert report.summary().left.invalid == {"ends": 2}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no confidence": ({"confidence": None}, r"a pair needs a confidence .* Give confidence=0.5"),
    "ends that are known": (
        {"left_time": spans("start", "end"), "right_time": spans("start", "end")},
        r"holds or not, so there is no confidence .*around='10ms'",
    ),
    "an overlap": ({"condition": overlapping(min_overlap=3)}, "not known of uncertain ends. Use over"),
    "a share": ({"condition": overlapping(share=0.5)}, "not known of uncertain ends"),
    "equal ends": ({"condition": relation("meets")}, "asks for equal ends"),
    "above 1": ({"confidence": 1.5}, "the confidence threshold must lie in"),
    "a wide error": ({"left_time": spans("start", "end", around=2**58)}, "below 2\\^58 ticks"),
    "no ticks": ({"left_time": spans("start", "end", around="3ms")}, "around: "),
    "optimal": ({"matching": "optimal"}, "Use matching='mutual'"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_meaning_is_refused(case: str) -> None:
    given, message = REFUSED[case]
    side = pa.table({"id": [0], "start": [0], "end": [9]})
    asked = {
        "condition": overlapping(),
        "confidence": 0.5,
        **times(("both", "both"), ((1, 1), (1, 1))),
    }
    with pytest.raises(ConditionError, match=message):
        correlate_tables(side, side, **{**asked, **given})


def test_errors_of_ends_are_checked() -> None:
    with pytest.raises(ConditionError, match="around must not be negative"):
        spans("a", "b", around="-1s")
    with pytest.raises(ConditionError, match="around takes a duration, or one for starts"):
        spans("a", "b", around=(1, 2, 3))  # type: ignore[arg-type]
