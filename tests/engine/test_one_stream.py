"""One stream joined with itself: each pair once, the earlier event left, as the reference has it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from coincide import (
    CausalityCondition,
    CoincideWarning,
    ConditionError,
    CorrelateOptions,
    JoinReport,
    Temporal,
    TimingCondition,
    accidental_pair_tables,
    causality_tables,
    correlate_tables,
    mutual_deadline,
    within,
)
from coincide.engine.events.sides import Side
from coincide.engine.events.timestamps import INTERVALS
from coincide.engine.files.planning import LocalFilesJoin
from coincide.engine.join import derived_joins
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.derived_joins import numbered, window_once
from coincide.model.condition import Window
from cpu_fallback.reference.join import Asked, mutual_pairs, others
from tests.helpers.comparison import OF_ONE_STREAM, assert_answer, condition_of, ticks_of
from tests.helpers.direct_layouts import write_layout
from tests.helpers.histogram_tables import (
    by_device,
    events,
    histograms_of,
    pairs_by_definition,
    random_templates,
)
from tests.helpers.strategies import JoinCase, random_cases


def one_stream(case: JoinCase) -> JoinCase:
    """The left rows, told apart, on both sides."""
    rows = [{**row, "id": number} for number, row in enumerate(case.left)]
    return case._replace(left=rows, right=rows)


@pytest.mark.parametrize(
    ("seed", "cases"), [(5, 250), pytest.param(6, 750, marks=pytest.mark.slow)]
)
def test_all_shapes_are_the_references(seed: int, cases: int) -> None:
    pairs = 0
    for number, drawn in enumerate(random_cases(seed, cases, max_size=12)):
        case = one_stream(drawn)
        how, emit, probability = OF_ONE_STREAM[number % len(OF_ONE_STREAM)]
        report = JoinReport()
        found = correlate_tables(
            ticks_of(case.left, case.by), condition=condition_of(case), by=case.by, how=how, emit=emit,
            probability=probability, report=report,
            options=CorrelateOptions(threads=1 + number % 2, batch_pairs=1 + number % 7),
        )  # fmt: skip
        assert_answer(found.to_pylist(), case, how, emit, probability, is_one_stream=True)
        summary = report.summary()
        assert summary.left is not None
        assert (summary.left.rows, summary.right) == (len(case.left), None)
        assert summary.counters is not None
        pairs += summary.counters.pairs
    assert pairs > 500


@pytest.mark.parametrize("emit", ["pairs", "best"])
def test_histograms_are_filtered_as_pairs_are(emit: Any) -> None:
    """What the definition gives in both orders of a pair, cut down to one; and the best of that."""
    table, templates, window = events(1, 150), random_templates(3), Window(-30, 50, 0.6)
    found = correlate_tables(
        table, condition=TimingCondition(within(window.lo, window.hi), window.confidence),
        left_time=by_device(templates), emit=emit, by="place", probability=True,
        left_columns="id", right_columns="id",
    ).to_pylist()  # fmt: skip
    buckets = histograms_of(table, templates)
    ends = [(max(hi for _, hi, _ in each), min(lo for lo, _, _ in each)) for each in buckets]
    ordered = {
        (a, b): probability
        for (a, b), probability in pairs_by_definition((table, buckets), (table, buckets), window).items()
        if a != b
    }  # fmt: skip
    expected = {
        (a, b): probability
        for (a, b), probability in ordered.items()
        if emit == "best" or (b, a) not in ordered or (*ends[a], a) < (*ends[b], b)
    }
    assert len(expected) > 100
    if emit == "best":

        def order(pair: tuple[int, int]) -> tuple[Any, ...]:
            a, b = pair
            apart = abs(sum(ends[b]) - sum(ends[a]) - window.lo - window.hi)
            return -round(expected[pair] * 2**40), apart, *ends[b], b

        best = (min((p for p in expected if p[0] == a), key=order) for a, _ in list(expected))
        expected = {pair: expected[pair] for pair in best}
    ids = {(row["left_id"], row["right_id"]): row["probability"] for row in found}
    assert len(ids) == len(found)
    assert ids == pytest.approx(expected, abs=1e-12)


def instants(case: JoinCase, *, is_apart: bool) -> JoinCase:
    """Its left rows as exact instants of one stream, no two of them at one time if so asked."""
    rows = [{**row, "min_time": row["max_time"]} for row in case.left]
    if is_apart:
        rows = list({row["max_time"]: row for row in rows}.values())
    return one_stream(case._replace(left=rows))


@pytest.mark.parametrize("is_apart", [False, True])
def test_exact_instants_are_looked_for_where_they_are_in_order(is_apart: bool) -> None:
    pairs = 0
    for number, drawn in enumerate(random_cases(7, 150, max_size=12)):
        case = instants(drawn, is_apart=is_apart)
        how, emit, probability = OF_ONE_STREAM[number % len(OF_ONE_STREAM)]
        found = correlate_tables(
            ticks_of(case.left, case.by), condition=condition_of(case), by=case.by, how=how, emit=emit,
            probability=probability,
        )  # fmt: skip
        assert_answer(found.to_pylist(), case, how, emit, probability, is_one_stream=True)
        pairs += found.num_rows
    assert pairs > 200


@pytest.mark.parametrize("ends", [(-40, 60), (0, 60), (5, 60), (-60, -5), (-40, 0), (-60, 20)])
@pytest.mark.parametrize("is_apart", [False, True])
def test_the_window_of_exact_instants(ends: tuple[int, int], is_apart: bool) -> None:
    """Narrowed it holds all pairs as they are given, and no others if it says so."""
    random = np.random.default_rng(2)
    times = random.choice(400, 120, replace=not is_apart)
    own = Side(times, np.zeros_like(times), INTERVALS, random.random(120) < 0.9, [], [])
    left, right = numbered(own, replace(own))
    lo, hi = ends
    narrow, is_enough = window_once(Window(lo, hi, 0.5), left, right)
    assert own.matchable is not None
    rows = np.arange(120)
    delay = times[None, :] - times[:, None]
    in_window = (delay >= lo) & (delay <= hi)
    is_given = in_window & ~((delay <= 0) & in_window.T)
    is_given |= in_window & (delay == 0) & (rows[:, None] < rows[None, :])
    is_found = (delay >= narrow.lo) & (delay <= narrow.hi)
    for each in (is_given, is_found):
        each &= own.matchable[:, None] & own.matchable[None, :]
    assert is_given.sum() > (0 if hi == 0 and is_apart else 100)
    assert not (is_given & ~is_found).any()
    assert is_enough == (lo > 0 or hi < 0 or (is_apart and lo + hi >= 0))
    if is_enough:
        assert (is_found == is_given).all()


def test_parts_of_a_stream_have_ties_where_events_differ() -> None:
    def part(times: list[int], numbers: list[int]) -> Side:
        identity = [pa.array([0] * len(numbers)), pa.array(numbers)]
        own = np.array(times), np.zeros(len(times), np.int64), INTERVALS
        return Side(*own, None, [], [], identity=identity)

    window = Window(-5, 5, 0.5)
    for right, is_enough in (
        (part([7, 3, 9], [2, 0, 4]), True),
        (part([7, 3, 7], [2, 0, 4]), False),
        (part([7, 3, 4], [2, 0, 4]), False),
        (part([7], [3]), False),
    ):
        sides = numbered(part([3, 4, 7], [0, 1, 2]), right)
        assert window_once(window, *sides) == (Window(1 if is_enough else 0, 5, 0.5), is_enough)


@pytest.mark.usefixtures("any_order")
def test_files_are_as_tables(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    for number, case in enumerate(map(one_stream, random_cases(8, 40, max_size=40))):
        table = ticks_of(case.left, case.by)
        layout = write_layout(tmp_path / str(number), table, random, order="given")
        how, emit, probability = OF_ONE_STREAM[number % len(OF_ONE_STREAM)]
        arguments = JoinArguments(
            condition_of(case), by=case.by, how=how, emit=emit, probability=probability,
            options=CorrelateOptions(slices=1 + number % 4), is_one_stream=True,
        )  # fmt: skip
        job = LocalFilesJoin(layout, None, arguments)
        found = pa.Table.from_batches(job.batches(), job.schema).to_pylist()
        assert_answer(found, case, how, emit, probability, is_one_stream=True)
        assert job.summary is not None
        assert job.summary.right is None
        assert job.summary.left is not None
        assert job.summary.left.rows == len(case.left)


def test_a_stream_by_hand() -> None:
    table = pa.table({"id": ["a", "b", "c", "d"], "t": [0, 5, 5, 30]})
    pairs = correlate_tables(table, within=6, confidence=1.0, left_time="t")
    assert pairs.to_pylist() == [
        {"left_id": "a", "right_id": "b"},
        {"left_id": "a", "right_id": "c"},
        {"left_id": "b", "right_id": "c"},
    ]
    lonely = correlate_tables(
        table, condition=TimingCondition(mutual_deadline(6), 1.0), left_time="t", how="anti"
    )
    assert lonely["left_id"].to_pylist() == ["d"]
    after = correlate_tables(table, within=within(0, 30, closed="right"), confidence=1.0,
                             left_time="t", emit="counts", how="left")  # fmt: skip
    assert after["matches"].to_pylist() == [3, 1, 1, 0]


def test_detections_with_no_other() -> None:
    """With the same tag, within an hour to both sides; and the first read of each burst."""
    minutes = {"id": ["a", "b", "c", "d"], "tag": ["A", "A", "A", "B"], "at": [0, 10, 300, 300]}
    given: dict[str, Any] = {"by": "tag", "left_time": "at", "confidence": 1.0}
    table = pa.table(minutes)
    alone = correlate_tables(table, within=(-60, 60), how="anti", **given)
    assert alone["left_id"].to_pylist() == ["c", "d"]
    assert correlate_tables(table, within=60, how="semi", **given)["left_id"].to_pylist() == [
        "a",
        "b",
    ]
    assert correlate_tables(table, within=60, how="left", **given).drop("tag").to_pylist() == [
        {"left_id": "a", "right_id": "b"},
        {"left_id": "c", "right_id": None},
        {"left_id": "d", "right_id": None},
    ]
    first = correlate_tables(table, within=(-60, -1), how="anti", **given)
    assert first["left_id"].to_pylist() == ["a", "c", "d"]
    before = correlate_tables(table, within=(-60, -1), **given).drop("tag")
    assert before.to_pylist() == [{"left_id": "b", "right_id": "a"}]


@pytest.mark.parametrize("rows", [[0, 30], [30, 0]])
def test_the_order_of_rows_does_not_matter_where_timestamps_end_together(rows: list[int]) -> None:
    table = pa.table({"id": rows, "min_time": rows, "max_time": [60, 60]})
    found = correlate_tables(table, within=(0, 30), confidence=0.4)
    assert found.to_pylist() == [{"left_id": 0, "right_id": 30}]


def test_duplicates_meet_each_other_and_nothing_meets_itself() -> None:
    table = pa.table({"id": ["a", "b", "b"], "min_time": [0, 0, 0], "max_time": [4, 4, 4]})
    given: dict[str, Any] = {"within": (-4, 8), "confidence": 0.9}
    assert correlate_tables(table, **given).num_rows == 3
    counts = correlate_tables(table, emit="counts", **given)
    assert counts["matches"].to_pylist() == [2, 2, 2]
    best = correlate_tables(table, emit="best", **given).to_pylist()
    assert {(row["left_id"], row["right_id"]) for row in best} == {("a", "b"), ("b", "a")}
    single = table.slice(0, 1)
    assert correlate_tables(single, how="anti", **given)["left_id"].to_pylist() == ["a"]


@pytest.mark.parametrize(
    "where", [None, "left_kind <> right_kind", "left_kind = 1 AND right_kind = 2"]
)
@pytest.mark.parametrize("ends", [(-20, 20), (-5, 30), (0, 30), (-30, 10), (-30, -1)])
@pytest.mark.parametrize("longest", [0, 25])
def test_shuffled_rows_have_the_same_pairs(
    where: str | None, ends: tuple[int, int], longest: int
) -> None:
    """Unordered pairs and the matches of each event; a pair is there if either order is."""
    random = np.random.default_rng(3)
    latest, lengths = random.integers(0, 400, 60), random.integers(0, longest + 1, 60)
    table = pa.table(
        {"id": np.arange(60), "min_time": latest - lengths, "max_time": latest,
         "kind": random.integers(1, 3, 60)}
    )  # fmt: skip
    given: dict[str, Any] = {"within": ends, "confidence": 0.4, "where": where}

    def answers(rows: pa.Table) -> tuple[set[frozenset[int]], set[tuple[int, int]], set[int]]:
        pairs = correlate_tables(rows, **given).to_pylist()
        lists = correlate_tables(rows, emit="lists", **given).to_pylist()
        ordered = {(row["left_id"], other) for row in lists for other in row["right_id"]}
        unordered = [frozenset(row.values()) for row in pairs]
        assert len(set(unordered)) == len(unordered)
        assert {frozenset(pair) for pair in ordered} == set(unordered)
        assert {(row["left_id"], row["right_id"]) for row in pairs} <= ordered
        alone = correlate_tables(rows, how="anti", **given)["left_id"].to_pylist()
        assert set(alone) == set(range(60)) - {left for left, _ in ordered}
        left = correlate_tables(rows, how="left", **given).to_pylist()
        assert {row["left_id"] for row in left if row["right_id"] is None} == set(alone)
        assert len(left) == len(pairs) + len(alone)
        return set(unordered), ordered, set(alone)

    expected = answers(table)
    assert len(expected[0]) > 10
    for _ in range(3):
        assert answers(table.take(random.permutation(60))) == expected


@pytest.mark.parametrize("prefer", ["probability", "nearest"])
def test_mutual_pairs_are_of_two_events_each_once(prefer: Any) -> None:
    random = np.random.default_rng(6)
    latest = np.sort(random.permutation(900)[:80])
    table = pa.table({"id": np.arange(80), "min_time": latest - 3, "max_time": latest})
    given: dict[str, Any] = {"within": 20, "confidence": 0.4, "prefer": prefer}
    best = correlate_tables(table, emit="best", **given).to_pylist()
    of_left = {row["left_id"]: row["right_id"] for row in best}
    rows = [{"min_time": int(t) - 3, "max_time": int(t), "id": i} for i, t in enumerate(latest)]
    asked = Asked(rows, rows, -20, 20, 0.4, admits=others())
    wanted = {frozenset(pair) for pair in mutual_pairs(asked, prefer)}
    found = correlate_tables(table, matching="mutual", **given).to_pylist()
    assert len(found) == len(wanted) > 10
    assert {frozenset(row.values()) for row in found} == wanted
    assert all(row["left_id"] < row["right_id"] for row in found)
    if prefer == "nearest":
        assert wanted == {frozenset(p) for p in of_left.items() if of_left.get(p[1]) == p[0]}
    every = correlate_tables(table, matching="mutual", how="left", **given).to_pylist()
    alone = {row["left_id"] for row in every if row["right_id"] is None}
    assert alone == set(range(80)) - {event for pair in wanted for event in pair}
    assert len(every) == len(found) + len(alone)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    "shape", [("mutual", "probability"), ("mutual", "nearest"), ("unambiguous",)]
)
def test_a_matching_has_each_event_once(seed: int, shape: tuple[str, ...]) -> None:
    random = np.random.default_rng(seed)
    begins = random.integers(0, 60, 30)
    ends = begins + random.integers(0, 6, 30) * (seed % 3 > 0)
    table = pa.table({"id": np.arange(30), "min_time": begins, "max_time": ends})
    given: dict[str, Any] = dict(zip(("matching", "prefer"), shape, strict=False))
    given |= {"within": 4, "confidence": 0.5}
    pairs = correlate_tables(table, **given).to_pylist()
    events = [event for row in pairs for event in row.values()]
    assert len(set(events)) == len(events)
    every = correlate_tables(table, how="left", **given)
    assert every.num_rows == 30 - len(pairs)


def test_floats_that_differ_by_order_decide_no_matching() -> None:
    """P of a and b is 2/3; its float differs in the other order."""
    table = pa.table({"id": ["a", "b", "c"], "min_time": [6, 10, 11], "max_time": [9, 10, 14]})
    found = correlate_tables(table, within=3, confidence=0.5, matching="mutual")
    assert found.to_pylist() == [{"left_id": "a", "right_id": "b"}]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"matching": "optimal"}, "Use matching='mutual' or 'unambiguous'"),
        ({"matching": "mutual", "where": "left_id < right_id"}, "takes no where"),
        (
            {"matching": "mutual", "prefer": "first"},
            r"prefer='probability' or .* \(found 'first'\)",
        ),
        ({"matching": "mutual", "within": (0, 5)}, "as far before as after"),
        (
            {"matching": "unambiguous", "within": within(-5, 5, closed="left")},
            "as far before as after",
        ),
    ],
)
def test_what_could_put_an_event_into_two_pairs_is_refused(given: Any, said: str) -> None:
    table = pa.table({"id": [0, 1], "min_time": [0, 1], "max_time": [0, 1]})
    with pytest.raises(ConditionError, match=said):
        correlate_tables(table, **{"within": 5, "confidence": 0.5} | given)
    if "within" in given:
        temporal = CausalityCondition([Temporal(0, 5)])
        with pytest.raises(ConditionError, match=said):
            causality_tables(
                table.rename_columns(["id", "time", "t"]), None, temporal, matching="mutual"
            )


def test_an_event_is_no_accidental_match_of_itself() -> None:
    """Moved by 190, an event of length 100 would follow itself within 0 to 10."""
    events = pa.table({"id": [0, 1], "min_time": [0, 5000], "max_time": [100, 5100]})
    for emit in ("pairs", "counts"):
        asked = {"condition": TimingCondition(within(0, 10), 0.001), "emit": emit}
        with pytest.warns(CoincideWarning):
            found = accidental_pair_tables(events, shifts=[190, 211, -190], **asked)
        assert found.expected == 0


def test_accidental_pairs() -> None:
    """Moved by a shift, each pair is still counted in one order only, and no event meets itself."""
    random = np.random.default_rng(1)
    times = np.sort(random.integers(0, 20_000, 400))
    table = pa.table({"id": np.arange(400), "t": times})
    shifts = (100, -100, 250)
    found = accidental_pair_tables(
        table, within=(0, 40), confidence=1.0, left_time="t", shifts=shifts
    )
    apart = times[None, :] - times[:, None]
    expected = []
    for shift in shifts:
        moved = apart + shift
        is_pair = (moved >= 0) & (moved <= 40)
        # Simultaneous once moved: the one that was earlier is left.
        is_pair &= (moved > 0) | (shift < 0)
        expected.append(int(is_pair.sum()))
    assert list(found.counts) == expected
    assert min(expected) > 100


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"right_time": ("a", "b")}, "both sides of one stream have the same times. Remove right_time"),
        ({"options": CorrelateOptions(right_unit="s")}, "right_unit belongs to a second stream"),
        ({"options": CorrelateOptions(right_longest=3)}, "right_longest belongs to a second stream"),
        ({"condition": TimingCondition(within(0, 1), 0.5)}, "both give the condition of pairs"),
        ({"within": None}, "within is missing"),
        ({"confidence": None}, "confidence is missing"),
        ({"within": None, "confidence": None}, "the condition of pairs is missing. Give it, for"),
        ({"within": (1, 2, 3)}, r"within: takes \(lo, hi\)"),
        ({"within": -5}, "must not be negative"),
        ({"right": TimingCondition(within(0, 1), 0.5)}, r"right must be events \(found a condition\)"),
    ],
)  # fmt: skip
def test_what_makes_no_sense(given: dict[str, Any], words: str) -> None:
    table = pa.table({"id": [1], "min_time": [0], "max_time": [0]})
    with pytest.raises(ConditionError, match=words):
        correlate_tables(table, **{"within": (0, 1), "confidence": 0.5, **given})


def test_a_window_in_two_words_is_the_condition() -> None:
    left = pa.table({"id": [1, 2], "min_time": [0, 10], "max_time": [2, 12]})
    right = pa.table({"id": [3, 4], "min_time": [4, 10], "max_time": [5, 12]})
    condition = TimingCondition(mutual_deadline(5), 0.6)
    expected = correlate_tables(left, right, condition)
    assert expected.num_rows > 0
    for window in (5, (-5, 5), [-5, 5], within(-5, 5)):
        assert correlate_tables(left, right, within=window, confidence=0.6).equals(expected)


@pytest.mark.parametrize("emit", ["pairs", "counts", "best", "lists"])
def test_pairs_are_tested_again_where_there_are_too_many_to_keep_which_passed(
    emit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = np.arange(0, 300, 2) // 3
    table = pa.table({"id": np.arange(150), "min_time": times - 2, "max_time": times})
    given: dict[str, Any] = {"within": 9, "confidence": 0.5, "emit": emit, "how": "left"}
    given["options"] = CorrelateOptions(batch_pairs=40)
    expected = correlate_tables(table, **given)
    assert expected.num_rows >= 150
    monkeypatch.setattr(derived_joins, "_MOST_BITS", 0)
    assert correlate_tables(table, **given).equals(expected)
