"""Joins of spans: relations of events that last, as sets of points of the real line have them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest

import coincide
from bench.hunt.relations import CLOSED, RELATIONS, wanted
from coincide import (
    ConditionError,
    CorrelateOptions,
    DataError,
    TimingCondition,
    containing,
    correlate_tables,
    inside,
    overlapping,
    relation,
    spans,
    within,
)
from coincide.model.relations import Allen
from coincide.model.timestamps.spans import has_part
from cpu_fallback.reference.spans import (
    Span,
    is_overlapping,
    overlap,
)
from tests.helpers.rows import pair_ids


def drawn(rng: np.random.Generator, closed: str, keys: int) -> tuple[list[Span], list[int]]:
    """A few spans, many of which touch, are alike, or empty."""
    size = int(rng.integers(0, 14))
    starts = rng.integers(-6, 14, size)
    lengths = rng.choice([0, 0, 1, 2, 3, 5, 9, 15], size)
    ends = zip(starts.tolist(), (starts + lengths).tolist(), strict=True)
    return [Span(*each, closed) for each in ends], rng.integers(0, keys, size).tolist()


def table(side: list[Span], keys: list[int], by: Callable[[int], int] = int) -> pa.Table:
    return pa.table({
        "id": pa.array(range(len(side)), pa.int64()),
        "key": pa.array(keys, pa.int64()),
        "start": pa.array([by(each.start) for each in side], pa.int64()),
        "end": pa.array([by(each.end) for each in side], pa.int64()),
    })  # fmt: skip


def joined(
    left: pa.Table, right: pa.Table | None, asked: Any, closed: tuple[Any, Any], **given: Any
) -> pa.Table:
    if right is not None:
        given["right_time"] = spans("start", "end", closed=closed[1])
    left_time = spans("start", "end", closed=closed[0])
    return correlate_tables(left, right, condition=asked, left_time=left_time, by="key", **given)


@pytest.mark.parametrize("rounds", [2, pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", RELATIONS)
def test_pairs_are_those_of_sets_of_points(name: str, rounds: int) -> None:
    """All 16 kinds of ends, by some numbers of classes; counts, lists, semi and anti agree."""
    asked, test = RELATIONS[name]
    pairs = 0
    for number in range(rounds * 16):
        rng = np.random.default_rng([rounds, number, *name.encode()])
        closed = CLOSED[number % 4], CLOSED[number // 4 % 4]
        left, right = (drawn(rng, each, 1 + number % 3) for each in closed)
        options = CorrelateOptions(classes=[None, 1, 2, 5][number % 4], batch_pairs=1 + number % 9)
        tables = table(*left), table(*right)
        given = wanted(left, right, test)
        found = joined(*tables, asked, closed, options=options, pair_columns="overlap")
        assert pair_ids(found) == given
        for row in found.to_pylist():
            own, other = left[0][row["left_id"]], right[0][row["right_id"]]
            assert row["overlap"] == overlap(own, other)
        counts = Counter(i for i, _ in given)
        shape, emit = [
            ("inner", "counts"),
            ("semi", "pairs"),
            ("anti", "pairs"),
            ("left", "lists"),
        ][(number + number // 4) % 4]
        rows = joined(*tables, asked, closed, how=shape, emit=emit, options=options).to_pylist()
        if emit == "counts":
            assert {row["left_id"]: row["matches"] for row in rows} == counts
        elif emit == "lists":
            assert {row["left_id"]: sorted(row["right_id"]) for row in rows} == {
                i: [b for a, b in given if a == i] for i in range(len(left[0]))
            }
        else:
            has = {i for i in range(len(left[0])) if (i in counts) == (shape == "semi")}
            assert {row["left_id"] for row in rows} == has
        pairs += len(given)
    assert pairs > rounds * (1 if name in get_args(Allen) else 10)


@pytest.mark.parametrize("name", RELATIONS)
def test_other_units_and_epochs_change_nothing(name: str) -> None:
    """Where a tick is short, and times are long, as those of nanoseconds of today."""
    asked, test = RELATIONS[name]
    factor, epoch = 10**9, 1_700_000_000 * 10**9 + 1
    if (amount := asked.window(coincide.Tick()).amount) is not None:
        words = {"min_overlap": amount * factor} if amount >= 0 and asked.gap is None else None
        asked = overlapping(**words) if words else replace(asked, gap=-amount * factor)
    for number in range(16):
        rng = np.random.default_rng([number, *name.encode()])
        closed = CLOSED[number % 4], CLOSED[number // 4]
        left, right = (drawn(rng, each, 1) for each in closed)
        tables = [table(*side, by=lambda t: t * factor + epoch) for side in (left, right)]
        assert pair_ids(joined(*tables, asked, closed)) == wanted(left, right, test)


@pytest.mark.parametrize("name", RELATIONS)
def test_one_stream_gives_each_pair_once(name: str) -> None:
    """The earlier of two spans is left if both orders qualify; counts cover all others."""
    asked, test = RELATIONS[name]
    for number in range(12):
        rng = np.random.default_rng([number, *name.encode()])
        closed = CLOSED[number % 4]
        side, keys = drawn(rng, closed, 2)
        given = [(i, j) for i, j in wanted((side, keys), (side, keys), test) if i != j]
        found = pair_ids(joined(table(side, keys), None, asked, (closed, closed)))
        assert len(found) == len(set(found))
        assert {frozenset(pair) for pair in found} == {frozenset(pair) for pair in given}
        assert set(found) <= set(given)
        for i, j in found:
            if (j, i) in given:
                assert (side[i].end, side[i].start) <= (side[j].end, side[j].start)
        counts = joined(table(side, keys), None, asked, (closed, closed), emit="counts").to_pylist()
        assert {row["left_id"]: row["matches"] for row in counts} == Counter(i for i, _ in given)


def test_swapped_sides_mirror_the_relation() -> None:
    for number, (asked, _) in enumerate(RELATIONS.values()):
        rng = np.random.default_rng(number)
        closed = CLOSED[number % 4], CLOSED[number // 4 % 4]
        left, right = (table(*drawn(rng, each, 1)) for each in closed)
        swapped = joined(right, left, asked.mirrored(), closed[::-1])
        assert pair_ids(joined(left, right, asked, closed)) == sorted(
            (j, i) for i, j in pair_ids(swapped)
        )


def test_the_best_has_most_in_common() -> None:
    """Then what ends first, then what begins first; also where floats do not hold the overlap."""
    for scale in (1, 2**56 + 1):
        rng = np.random.default_rng(5)
        side = [drawn(rng, "both", 1)[0] for _ in range(2)]
        left, right = (
            [Span(a.start * scale + (k > 2), a.end * scale + k) for k, a in enumerate(each)]
            for each in side
        )
        keys = [[0] * len(each) for each in (left, right)]
        tables = table(left, keys[0]), table(right, keys[1])
        best = {}
        for i, own in enumerate(left):
            near = [
                (-(min(own.end, b.end) - max(own.start, b.start)), b.end, b.start, j)
                for j, b in enumerate(right)
                if b.start <= own.end and own.start <= b.end
            ]
            if near:
                best[i] = min(near)[-1]
        found = joined(*tables, overlapping(), ("both", "both"), emit="best")
        assert best
        assert dict(pair_ids(found)) == best
    left, right = [Span(0, 2**57)], [Span(0, 2**56), Span(0, 2**56 + 1)]  # a double holds only one
    found = joined(
        table(left, [0]), table(right, [0, 0]), overlapping(), ("both", "both"), emit="best"
    )
    assert pair_ids(found) == [(0, 1)]


FIRST: dict[str, Callable[[Span, Span], int]] = {
    "nearest": lambda a, b: max(-overlap(a, b), 0),
    "first": lambda _, b: b.start,
    "last": lambda _, b: -b.start,
}


@pytest.mark.parametrize("prefer", FIRST)
def test_other_preferences_go_by_gaps_and_starts(prefer: Any) -> None:
    """Between equals the time in common decides, then the end, the start and the id."""
    chosen = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        (left, own), (right, others) = drawn(rng, "both", 2), drawn(rng, "both", 2)
        best = {}
        for i, a in enumerate(left):
            near = [
                (FIRST[prefer](a, b), -overlap(a, b), b.end, b.start, j)
                for j, b in enumerate(right)
                if own[i] == others[j] and is_overlapping(a, b, gap=6)
            ]
            if near:
                best[i] = min(near)[-1]
        tables = table(left, own), table(right, others)
        asked: dict[str, Any] = {"emit": "best", "prefer": prefer}
        found = joined(*tables, overlapping(gap=6), ("both", "both"), **asked)
        assert dict(pair_ids(found)) == best
        chosen += len(best)
    assert chosen > 20


def test_instants_are_spans_of_no_length() -> None:
    points = pa.table({"id": [0, 1, 2, 3], "t": [4, 5, 7, 9]})
    lasting = pa.table({"id": [0, 1], "start": [5, 9], "end": [9, 12]})
    for closed, expected in (
        ("both", [(1, 0), (2, 0), (3, 0), (3, 1)]),
        ("left", [(1, 0), (2, 0), (3, 1)]),
    ):
        given: dict[str, Any] = {
            "left_time": "t",
            "right_time": spans("start", "end", closed=closed),
        }
        assert pair_ids(correlate_tables(points, lasting, inside(), **given)) == expected
        assert pair_ids(correlate_tables(points, lasting, overlapping(), **given)) == expected


def test_a_long_span_among_short_ones_costs_few_candidates() -> None:
    """Classes of lengths keep the few long ones apart."""
    rng = np.random.default_rng(1)
    start = np.sort(rng.integers(0, 10**8, 20_000))
    length = np.where(np.arange(20_000) % 2_000 == 7, 3 * 10**7, rng.integers(0, 2_000, 20_000))
    side = pa.table({"id": np.arange(20_000), "start": start, "end": start + length})
    points = pa.table({"id": np.arange(50_000), "t": np.sort(rng.integers(0, 10**8, 50_000))})
    report = coincide.JoinReport()
    correlate_tables(
        side, points, containing(), left_time=spans("start", "end"), right_time="t", report=report
    )
    counters = report.summary().counters
    assert counters is not None
    assert counters.pairs > 100_000
    assert counters.candidates <= 1.5 * counters.pairs


def test_bad_rows_are_refused_or_counted() -> None:
    rows = pa.table({"id": [0, 1, 2], "start": [0, 5, None], "end": [9, 3, 8]})
    given: dict[str, Any] = {"left_time": spans("start", "end")}
    with pytest.raises(
        DataError, match="event: starts that are or may be after their ends in start"
    ):
        correlate_tables(rows, condition=overlapping(), **given)
    report = coincide.JoinReport()
    with pytest.warns(coincide.CoincideWarning):
        found = correlate_tables(
            rows, condition=overlapping(), how="anti", report=report,
            options=CorrelateOptions(invalid="drop"), **given,
        )  # fmt: skip
    assert sorted(found["left_id"].to_pylist()) == [0, 2]


EXACT = TimingCondition(within(0, 5), 1.0)
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a window": ({"condition": EXACT}, "left_time says that events last, so a window"),
    "a window of no confidence": (
        {"condition": None, "within": (0, 5)},
        r"pairs need a relation \(found a window between instants\)",
    ),
    "nothing": ({"condition": None}, r"pairs need a relation \(found none\)"),
    "no brackets": (
        {"condition": overlapping},
        r"a relation is a call \(found the function overlapping\). Give condition=overlapping\(\)",
    ),
    "a name": ({"condition": "following"}, r"Give condition=following\('1h'\)"),
    "both": ({"within": 5}, r"within applies to instants, and overlapping\(\) to spans"),
    "intervals": ({"left_time": ("start", "end")}, r"left_time must be spans\('start', 'end'\)"),
    "probability": ({"probability": True}, r"overlapping\(\) holds or not, so there is no probability"),
    "a confidence": ({"confidence": 0.5}, "of spans whose ends are known holds or not"),
    "delta": (
        {"pair_columns": "delta"}, "takes 'overlap', the time that two spans .*; and 'overlap_start' and",
    ),
    "overlap of counts": ({"pair_columns": "overlap", "emit": "counts"}, "so there is no overlap"),
    "optimal": ({"matching": "optimal"}, "Use matching='mutual'"),
    "no bound": (
        {"condition": relation("before")},
        r"relation\('before'\) alone holds for most pairs, .* Give within='1h'",
    ),
    "no bound of the best": (
        {"condition": relation("after"), "emit": "best"}, "emit='best', prefer='nearest', without where",
    ),
    "no bound, and a condition": (
        {"condition": relation("after"), "how": "anti", "where": "left_id = right_id"}, "without where",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_meaning_is_refused(case: str) -> None:
    given, message = REFUSED[case]
    side = pa.table({"id": [0], "start": [0], "end": [9]})
    times = {name: spans("start", "end") for name in ("left_time", "right_time")}
    with pytest.raises(ConditionError, match=message):
        correlate_tables(side, side, **{"condition": overlapping(), **times, **given})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: overlapping(min_overlap="-1s"), "min_overlap must not be negative"),
        (lambda: overlapping(gap=3, share=0.5), "gap lets spans be apart"),
        (lambda: overlapping(share=50), "share must be a number between 0 and 1.*50 % is 0.5"),
        (lambda: relation("overlapping"), r"Use overlapping\(\)"),  # type: ignore[arg-type]
        (lambda: overlapping(share=(0.5,)), "share must be a number between 0 and 1"),
        (lambda: relation("meets", "1h"), "says how far apart spans are. Remove within"),
        (lambda: relation("near"), "name must be one of before"),
        (lambda: spans("a", 3), "end must be the name of a column"),
        (lambda: spans("a", "b", closed="open"), "closed must be one of both"),
    ],
)  # fmt: skip
def test_what_makes_no_relation_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ConditionError, match=message):
        make()


def test_accidental_pairs_are_not_of_spans() -> None:
    side = pa.table({"id": [0], "start": [0], "end": [9]})
    times: dict[str, Any] = {name: spans("start", "end") for name in ("left_time", "right_time")}
    words = (
        r"shifts moves uncertain instants, but overlapping\(\) relates spans. Give within for one"
    )
    with pytest.raises(ConditionError, match=words):
        coincide.accidental_pair_tables(side, side, overlapping(), shifts=(9,), **times)


def test_streams_and_explore_take_no_spans() -> None:
    delays = {"left_delay": 0, "right_delay": 0}
    for given in (
        {"condition": overlapping()},
        {"within": 5, "left_time": spans("start", "end")},
        {"condition": EXACT, "right_time": spans("start", "end")},
    ):
        with pytest.raises(
            ConditionError, match=r"takes no spans \(found .* Use correlate_streams"
        ):
            coincide.stream_tables(**given, **delays)
    side = pa.table({"id": [0], "start": [0], "end": [9]})
    with pytest.raises(ConditionError, match=r"takes no spans .* Name one column of each side"):
        coincide.explore_tables(side, side, within=5, left_time=spans("start", "end"))


def test_a_share_is_the_fraction_that_was_meant() -> None:
    """Common time that is just the share qualifies, and a tick less does not."""
    rng = np.random.default_rng(7)
    parts = rng.integers(1, 1001, 300)
    taken = (rng.random(300) * parts).astype(int) + 1
    scales = rng.integers(1, [9, 10**6, 10**14] * 100)
    given = zip(taken.tolist(), parts.tolist(), scales.tolist(), strict=True)
    for number, (a, b, scale) in enumerate(given):
        share = [a / b, Fraction(a, b), 1 - (b - a) / b][number % 3]
        bounds = overlapping(share=(share, 0)).window(coincide.Tick()).bounds(("both", "both"))
        assert (bounds.left_share, bounds.left_parts) == Fraction(a, b).as_integer_ratio()
        asked = bounds.left_share, bounds.left_parts
        assert has_part(a * scale, b * scale, *asked)
        assert not has_part(a * scale - 1, b * scale, *asked)
        assert not has_part(a * scale, b * scale + 1, *asked)
        assert not has_part(-(2**62), b * scale, *asked)
    third = overlapping(share=(1 / 3, 0))
    left = pa.table({"id": [0, 1], "key": [0, 0], "start": [0, -1], "end": [3, 3]})
    right = pa.table({"id": [0], "key": [0], "start": [2], "end": [9]})
    assert pair_ids(joined(left, right, third, ("both", "both"))) == [(0, 0)]
    assert pair_ids(joined(right, left, third.mirrored(), ("both", "both"))) == [(0, 0)]


@pytest.mark.parametrize("share", [0.123456789, 1e-9, 0.1234567891234, 5e-17])
def test_other_shares_are_decimals_of_nine_places(share: float) -> None:
    bounds = overlapping(share=share).window(coincide.Tick()).bounds(("both", "both"))
    meant = Fraction(bounds.right_share, bounds.right_parts)
    assert Fraction(repr(share)) <= meant < Fraction(repr(share)) + Fraction(1, 10**9)


def test_relations_read_as_they_are_written() -> None:
    for text in (
        "overlapping()", "overlapping(min_overlap='5min')", "overlapping(gap='1s')", "containing()",
        "overlapping(share=(0.5, 0.0))", "following(within='10s')", "relation('meets')",
        "relation('before', within='1h')", "containing(slack='5s')", "inside(slack=3)",
    ):  # fmt: skip
        made = eval(text, vars(coincide))
        assert str(made) == repr(made) == text
        assert made == eval(repr(made), vars(coincide))
