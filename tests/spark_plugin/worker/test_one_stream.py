"""One stream joined with itself: each pair once, the earlier event left, as the reference has it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from coincide import (
    CoincideWarning,
    ConditionError,
    CorrelateOptions,
    JoinReport,
    TimingCondition,
    correlate_tables,
    mutual_deadline,
    within,
)
from coincide.condition import Window
from cpu_fallback.reference import join as reference
from spark_plugin.ways.files.local import LocalFilesJoin
from spark_plugin.worker.arguments import JoinArguments
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.emission import filtered
from spark_plugin.worker.one_stream import in_order_of_stream, window_in_order
from spark_plugin.worker.timestamps.models import INTERVALS
from tests.helpers.comparison import SHAPES, assert_answer, condition_of, ticks_of
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
    ("seed", "cases"), [(5, 250), pytest.param(6, 3000, marks=pytest.mark.slow)]
)
def test_all_shapes_are_the_references(seed: int, cases: int) -> None:
    pairs = 0
    for number, drawn in enumerate(random_cases(seed, cases, max_size=12)):
        case = one_stream(drawn)
        how, emit, probability = SHAPES[number % len(SHAPES)]
        report = JoinReport()
        found = correlate_tables(
            ticks_of(case.left, case.by), condition=condition_of(case), by=case.by, how=how, emit=emit,
            probability=probability, report=report,
            options=CorrelateOptions(threads=1 + number % 2, batch_pairs=1 + number % 7),
        )  # fmt: skip
        admits = reference.earlier_first(case.left)
        assert_answer(found.to_pylist(), case, how, emit, probability, admits=admits)
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
    expected = {
        (a, b): probability
        for (a, b), probability in pairs_by_definition((table, buckets), (table, buckets), window).items()
        if (ends[a][0], a) < (ends[b][0], b)
    }  # fmt: skip
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
        how, emit, probability = SHAPES[number % len(SHAPES)]
        found = correlate_tables(
            ticks_of(case.left, case.by), condition=condition_of(case), by=case.by, how=how, emit=emit,
            probability=probability,
        )  # fmt: skip
        admits = reference.earlier_first(case.left)
        assert_answer(found.to_pylist(), case, how, emit, probability, admits=admits)
        pairs += found.num_rows
    assert pairs > 200


@pytest.mark.parametrize(
    ("lo", "shift"), [(-40, 0), (0, 0), (5, 0), (-40, 70), (0, -70), (-90, 50)]
)
@pytest.mark.parametrize("is_apart", [False, True])
def test_the_window_of_exact_instants(lo: int, shift: int, is_apart: bool) -> None:
    """Narrowed it holds all pairs that are in order, and no others if it says so."""
    random = np.random.default_rng(2)
    times = random.choice(400, 120, replace=not is_apart)
    own = Side(times, np.zeros_like(times), INTERVALS, random.random(120) < 0.9, [], [])
    left, right = in_order_of_stream(own, replace(own), shift)
    window = Window(lo - shift, 60 - shift, 0.5)
    narrow, is_enough = window_in_order(window, left, right, shift)
    assert (narrow.hi, narrow.confidence) == (window.hi, 0.5)
    assert left.ranks is not None
    assert right.ranks is not None
    assert own.matchable is not None
    delay = times[None, :] - times[:, None]
    moved = delay + shift
    is_ordered = (moved > 0) | ((moved == 0) & (left.ranks[:, None] < right.ranks[None, :]))
    is_ordered &= own.matchable[:, None] & own.matchable[None, :]
    is_ordered &= (delay >= window.lo) & (delay <= window.hi)
    is_found = (delay >= narrow.lo) & (delay <= narrow.hi)
    is_found &= own.matchable[:, None] & own.matchable[None, :]
    assert is_ordered.sum() > 100
    assert not (is_ordered & ~is_found).any()
    assert is_enough == (is_apart or shift != 0 or lo > 0)
    if is_enough:
        assert (is_found == is_ordered).all()


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
        sides = in_order_of_stream(part([3, 4, 7], [0, 1, 2]), right, 0)
        assert window_in_order(window, *sides, 0) == (
            Window(1 if is_enough else 0, 5, 0.5),
            is_enough,
        )


def test_files_are_as_tables(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    for number, case in enumerate(map(one_stream, random_cases(8, 40, max_size=40))):
        table = ticks_of(case.left, case.by)
        layout = write_layout(tmp_path / str(number), table, random, order="given")
        how, emit, probability = SHAPES[number % len(SHAPES)]
        arguments = JoinArguments(
            condition_of(case), by=case.by, how=how, emit=emit, probability=probability,
            options=CorrelateOptions(slices=1 + number % 4, max_replication=1e9), is_one_stream=True,
        )  # fmt: skip
        job = LocalFilesJoin(layout, None, arguments)
        found = pa.Table.from_batches(job.batches(), job.schema).to_pylist()
        admits = reference.earlier_first(case.left)
        assert_answer(found, case, how, emit, probability, admits=admits)
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
    # Neither has a later partner: an event is left for those that come after it.
    assert lonely["left_id"].to_pylist() == ["c", "d"]
    after = correlate_tables(table, within=within(0, 30, closed="right"), confidence=1.0,
                             left_time="t", emit="counts", how="left")  # fmt: skip
    assert after["matches"].to_pylist() == [3, 1, 1, 0]


def test_an_event_is_no_accidental_partner_of_itself() -> None:
    """Moved by 190, an event of length 100 may still follow itself within 0 to 10."""
    events = pa.table({"id": [0, 1], "min_time": [0, 5000], "max_time": [100, 5100]})
    asked = {"condition": TimingCondition(within(0, 10), 0.001), "report": JoinReport()}
    with pytest.raises(ConditionError, match="might be counted with themselves"):
        correlate_tables(events, shifts=[190], **asked)
    with pytest.raises(ConditionError, match="not longer than the end of the window and two"):
        correlate_tables(events, shifts=[-210], **asked)
    report = JoinReport()
    with pytest.warns(CoincideWarning):
        correlate_tables(events, shifts=[211, -211], **{**asked, "report": report})
    accidental = report.summary().accidental_pairs
    assert accidental == 0


def test_accidental_pairs() -> None:
    """Moved by a shift, each pair is still counted in one order only, and no event meets itself."""
    random = np.random.default_rng(1)
    times = np.sort(random.integers(0, 20_000, 400))
    table = pa.table({"id": np.arange(400), "t": times})
    report = JoinReport()
    shifts = (100, -100, 250)
    correlate_tables(
        table, within=(0, 40), confidence=1.0, left_time="t", report=report, shifts=shifts
    )
    apart = times[None, :] - times[:, None]
    expected = []
    for shift in shifts:
        moved = apart + shift
        is_pair = (moved >= 0) & (moved <= 40)
        # Simultaneous once moved: the one that was earlier is left.
        is_pair &= (moved > 0) | (shift < 0)
        expected.append(int(is_pair.sum()))
    found = report.summary().accidental
    assert found is not None
    assert list(found.counts) == expected
    assert min(expected) > 100


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"right_time": ("a", "b")}, "of one stream both sides have the same times: leave right_time"),
        ({"options": CorrelateOptions(right_unit="s")}, "right_unit is of a second stream, .*left_unit"),
        ({"options": CorrelateOptions(right_longest=3)}, "right_longest is of a second stream"),
        ({"condition": TimingCondition(within(0, 1), 0.5)}, "leave out one of them"),
        ({"within": None}, "within is missing: give both"),
        ({"confidence": None}, "confidence is missing: give both"),
        ({"within": None, "confidence": None}, "say what pairs must meet, as by within="),
        ({"within": (1, 2, 3)}, r"within takes \(lo, hi\)"),
        ({"within": -5}, "must not be negative"),
        ({"right": TimingCondition(within(0, 1), 0.5)}, "right is a condition: .*condition=..."),
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
    monkeypatch.setattr(filtered, "_MOST_BITS", 0)
    assert correlate_tables(table, **given).equals(expected)
