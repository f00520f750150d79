"""Sequences of tables against the oracle: all tuples, and volumes by counting simplices."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from coincide import (
    ConditionError,
    CorrelateOptions,
    MemoryBudgetError,
    NoPairsWarning,
    SchemaError,
    SequenceReport,
    UnmatchableRowsWarning,
    correlate_tables,
    histograms,
    sequence_tables,
    spans,
)
from coincide.engine import room
from coincide.engine.events import rows as row_sizes
from coincide.engine.sequences.walk import ExactJudge
from cpu_fallback.reference.sequences import sequences, steps
from cpu_fallback.sequences import making
from tests.helpers.sequence_cases import Case, drawn_case, kinds_of

Tuples = list[tuple[tuple[int, ...], Any]]


def wanted(case: Case, confidence: float, total: tuple[int, int] | None) -> Tuples:
    """The rows of all sequences by the oracle, and their probabilities."""
    return sequences(case.rows, steps(case.windows, total), confidence, case.by)


def total_of(rng: random.Random, case: Case) -> tuple[int, int] | None:
    """A window on the whole that excludes some sequences and not all."""
    are_exact = all(time == "stamp" for time in case.times.values())
    if len(case.windows) < 2 or rng.random() < 0.5 or (len(case.windows) > 2 and not are_exact):
        return None
    least, most = (sum(each) for each in zip(*case.windows, strict=True))
    lo = rng.randint(least - 1, most)
    return lo, rng.randint(max(lo, least), most + 2)


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@pytest.mark.parametrize("seed", range(150))
def test_tables_give_the_sequences_of_the_oracle(seed: int) -> None:
    rng = random.Random(seed)
    case = drawn_case(rng, kinds=kinds_of(seed))
    confidence = rng.choice([0.1, 0.25, 0.5, 0.75, 1.0])
    total = total_of(rng, case)
    expected = wanted(case, confidence, total)
    asked: dict[str, Any] = {
        "names": case.names, "time": case.times, "by": case.by, "total": total,
        "options": CorrelateOptions(threads=rng.choice([1, 3]), batch_pairs=rng.choice([1, 3, None])),
    }  # fmt: skip
    given = case.tables, case.windows, confidence
    found = sequence_tables(*given, **asked, probability=True)
    columns = [found[f"{name}_id"].to_pylist() for name in case.names]
    chances = dict(zip(zip(*columns, strict=True), found["probability"].to_pylist(), strict=True))
    assert found.num_rows == len(chances)
    assert set(chances) == {tuple(10 * row for row in rows) for rows, _ in expected}
    for rows, chance in expected:
        assert chances[tuple(10 * row for row in rows)] == pytest.approx(float(chance), abs=1e-13)
    # Without probabilities, bounds on them decide.
    bare = sequence_tables(*given, **asked)
    rows = zip(*(bare[f"{name}_id"].to_pylist() for name in case.names), strict=True)
    assert sorted(rows) == sorted(chances)
    counts = sequence_tables(*given, **asked, emit="counts")
    by_first = Counter(10 * rows[0] for rows, _ in expected)
    first = f"{case.names[0]}_id"
    found_of = zip(counts[first].to_pylist(), counts["sequences"].to_pylist(), strict=True)
    assert dict(found_of) == by_first
    alone = sequence_tables(*given, **asked, how="anti")
    assert alone[first].to_pylist() == [
        10 * row for row in range(len(case.rows[0])) if 10 * row not in by_first
    ]


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@pytest.mark.parametrize("seed", range(60))
def test_the_best_of_each_first_event_is_that_of_the_oracle(seed: int) -> None:
    rng = random.Random(1000 + seed)
    case = drawn_case(rng, kinds=kinds_of(seed))
    prefer = rng.choice(["probability", "first", "last"])
    found = sequence_tables(
        case.tables, case.windows, 0.1, names=case.names, time=case.times, by=case.by, emit="best",
        prefer=prefer, probability=True,
    )  # fmt: skip

    def place(each: tuple[tuple[int, ...], Any]) -> tuple[Any, ...]:
        rows, chance = each
        law = case.rows[-1][rows[-1]]["law"]
        middle = law[0][0] + law[-1][1]
        delay = -middle if prefer == "last" else middle
        # Floats tell chances apart that differ by more.
        rounded = -round(float(chance), 12)
        return ((rounded, delay) if prefer == "probability" else (delay, rounded), rows[1:])

    expected = wanted(case, 0.1, None)
    columns = [found[f"{name}_id"].to_pylist() for name in case.names]
    ours = [tuple(row // 10 for row in rows) for rows in zip(*columns, strict=True)]
    assert sorted(rows[0] for rows in ours) == sorted({rows[0] for rows, _ in expected})
    by_rows = {each[0]: each for each in expected}
    for rows in ours:
        rivals = [place(each)[0] for each in expected if each[0][0] == rows[0]]
        assert place(by_rows[rows])[0] == min(rivals)


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@pytest.mark.parametrize("seed", range(40))
def test_two_streams_give_the_pairs_of_a_join(seed: int) -> None:
    rng = random.Random(2000 + seed)
    case = drawn_case(rng, n=2, is_apart=True, kinds=kinds_of(seed))
    confidence = rng.choice([0.1, 0.5, 1.0])
    found = sequence_tables(
        case.tables, case.windows, confidence, names=("left", "right"), by=case.by, probability=True,
        time={"left": case.times["a"], "right": case.times["b"]},
    )  # fmt: skip
    pairs = correlate_tables(
        *case.tables, within=case.windows[0], confidence=confidence, left_time=case.times["a"],
        right_time=case.times["b"], by=case.by, probability=True,
    )  # fmt: skip
    order = [("left_id", "ascending"), ("right_id", "ascending")]
    assert found.sort_by(order).equals(pairs.sort_by(order))


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@pytest.mark.parametrize("seed", range(40))
def test_a_sequence_seen_from_its_end_is_the_same(seed: int) -> None:
    case = drawn_case(random.Random(3000 + seed), is_apart=True)
    mirrored = [(-hi, -lo) for lo, hi in case.windows[::-1]]
    asked: dict[str, Any] = {"by": case.by, "probability": True, "time": case.times}
    found = sequence_tables(case.tables, case.windows, 0.25, names=case.names, **asked)
    other = sequence_tables(case.tables[::-1], mirrored, 0.25, names=case.names[::-1], **asked)
    order = [(f"{name}_id", "ascending") for name in case.names]
    one, two = found.sort_by(order), other.select(found.column_names).sort_by(order)
    assert one.drop_columns("probability").equals(two.drop_columns("probability"))
    assert np.allclose(one["probability"], two["probability"], rtol=0, atol=1e-13)


CHAIN = (
    {"id": [1], "min_time": [0], "max_time": [100]},
    {"id": [2], "min_time": [60], "max_time": [160]},
    {"id": [3], "min_time": [120], "max_time": [220]},
)


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@pytest.mark.parametrize("moved", [0, 1 << 60, -(1 << 60)])
@pytest.mark.parametrize(
    ("confidence", "total", "count"),
    [
        (0.556, None, 1),  # the probability itself
        (0.556 - 1e-14, None, 1),
        (0.556 + 1e-14, None, 0),
        (0.74, None, 0),  # that of a link
        (0.5, (0, 120), 0),
    ],
)
def test_floats_that_cannot_tell_leave_it_to_fractions(
    moved: int, confidence: float, total: tuple[int, int] | None, count: int
) -> None:
    streams = [
        {
            name: each if name == "id" else [time + moved for time in each]
            for name, each in s.items()
        }
        for s in CHAIN
    ]
    report = SequenceReport()
    found = sequence_tables(
        streams, [(0, 100), (0, 100)], confidence, total=total, report=report, probability=True
    )
    assert found.num_rows == count
    assert report.summary().found == count
    near = abs(confidence - 0.556) < 1e-13
    assert report.summary().doubted == near
    if count:
        assert found["probability"][0].as_py() == pytest.approx(0.556, abs=1e-14)


def test_a_window_on_the_whole_of_exact_times_takes_any_number_of_streams() -> None:
    streams = [{"t": [0, 5]}, {"t": [3, 6]}, {"t": [7]}, {"t": [9, 15]}]
    found = sequence_tables(streams, [(0, 10)] * 3, total=(0, 10), time="t")
    rows = sorted(zip(*(column.to_pylist() for column in found.columns), strict=True))
    assert rows == [(0, 0, 0, 0), (0, 1, 0, 0), (1, 1, 0, 0), (1, 1, 0, 1)]


def test_reports_count_rows_links_and_tuples() -> None:
    report = SequenceReport()
    streams = {
        "click": {"t": [0, None, 100]}, "cart": {"t": [3, 200]}, "pay": {"t": [4, 5]},
    }  # fmt: skip
    with pytest.warns(UnmatchableRowsWarning, match="click, 3 rows: 1 without time or key"):
        sequence_tables(streams, [(0, 10), (0, 10)], time="t", report=report)
    summary = report.summary()
    assert summary.links == {"click to cart": 1, "cart to pay": 2}
    assert (summary.tried, summary.found, summary.streams["click"].unmatchable) == (2, 2, 1)
    assert ("found", "2") in report.lines
    with pytest.warns(NoPairsWarning, match="no two events from click to cart meet the window"):
        sequence_tables({"click": {"t": [0]}, "cart": {"t": [9]}}, [(0, 1)], time="t")


EXACT = [{"t": [0]}, {"t": [1]}, {"t": [2]}]


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"tables": EXACT[:1], "windows": []}, ConditionError, "two streams or more"),
        ({"tables": 3}, SchemaError, "a list of tables, or a dict"),
        ({"tables": [EXACT[0], 3, EXACT[2]]}, SchemaError, "b must be a table"),
        ({"windows": [(0, 5)]}, ConditionError, "one window for each step, which are 2: from a to b to c"),
        ({"windows": (0, 5)}, ConditionError, "two ends of one"),
        ({"tables": dict(zip("abc", EXACT, strict=True)), "names": "xyz"}, SchemaError, "Remove names"),
        ({"windows": [(0, 5), (0, None)]}, ConditionError, r"windows from b to c needs both ends"),
        ({"windows": [(5, 0), (0, 5)]}, ConditionError, r"windows from a to b: the window is empty"),
        ({"names": ("x", "x", "y")}, ConditionError, "3 different names"),
        ({"names": ("x", "y")}, ConditionError, "3 different names"),
        ({"total": (20, 30)}, ConditionError, "excludes all sequences"),
        ({"total": (0, None)}, ConditionError, "total needs both ends"),
        ({"time": "when"}, SchemaError, "when"),
        ({"time": {"x": "t"}}, ConditionError, "time names streams, which are a, b, c .found 'x'."),
        ({"time": spans("t", "t")}, ConditionError, "events last"),
        ({"time": ("s", "t")}, ConditionError, "confidence is missing"),
        ({"by": [("k", "k")]}, ConditionError, "one for each of 3 streams"),
        ({"columns": "*"}, ConditionError, "takes names"),
        ({"columns": "page"}, SchemaError, "page"),
        ({"how": "left"}, ConditionError, "how"),
        ({"emit": "pairs"}, ConditionError, "emit"),
        ({"emit": "counts", "probability": True}, ConditionError, "no probability"),
        ({"how": "anti", "emit": "best"}, ConditionError, "begin no sequence"),
        ({"prefer": "first"}, ConditionError, "emit='best'"),
        ({"probability": 1}, ConditionError, "probability"),
        ({"confidence": 2}, ConditionError, "confidence"),
        ({"options": CorrelateOptions(left_unit="s")}, ConditionError, "said of two sides"),
        ({"report": 3}, ConditionError, "SequenceReport"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_with_a_cure(
    change: dict[str, Any], kind: type[Exception], words: str
) -> None:
    asked: dict[str, Any] = {"tables": EXACT, "windows": [(0, 5), (0, 5)], "time": "t"} | change
    with pytest.raises(kind, match=words) as caught:
        sequence_tables(**asked)
    assert str(caught.value).endswith(".")


def test_more_sequences_than_are_allowed_are_refused() -> None:
    streams = [{"t": list(range(20))} for _ in range(3)]
    with pytest.raises(MemoryBudgetError, match="more sequences than"):
        sequence_tables(streams, [(0, 20)] * 2, time="t", options=CorrelateOptions(max_pairs=100))


def test_a_window_on_the_whole_of_four_uncertain_times_is_refused() -> None:
    streams = [dict(CHAIN[0]), *CHAIN]
    with pytest.raises(ConditionError, match="known for three streams"):
        sequence_tables(streams, [(0, 100)] * 3, 0.1, total=(0, 150))
    # One that says no more than the steps changes nothing.
    assert sequence_tables(streams, [(0, 100)] * 3, 0.1, total=(0, 300)).num_rows == 1


def test_keys_may_have_other_names_and_columns_are_named_by_stream() -> None:
    streams = {
        "click": {"t": [0, 0], "user": [1, 2], "page": ["x", "y"]},
        "pay": {"t": [2, 2], "uid": [2, 1], "sum": [20, 10]},
    }
    found = sequence_tables(
        streams, [(0, 5)], time="t", by=[("user", "uid")], columns={"click": "page", "pay": ["sum"]}
    )
    assert sorted(found.to_pylist(), key=str) == [
        {"user": 1, "click_page": "x", "pay_sum": 10}, {"user": 2, "click_page": "y", "pay_sum": 20},
    ]  # fmt: skip


def test_more_sequences_than_a_number_counts_are_refused() -> None:
    streams = [{"t": [0] * 10_000} for _ in range(6)]
    with pytest.raises(MemoryBudgetError, match="64 bits"):
        sequence_tables(streams, [(0, 0)] * 5, time="t", emit="counts")
    few = sequence_tables(streams[:4], [(0, 0)] * 3, time="t", emit="counts")
    assert set(few["sequences"].to_pylist()) == {10**12}


def test_a_table_with_two_times_gives_two_streams() -> None:
    visits = {"begin": [0, 10], "end": [4, 15]}
    found = sequence_tables(
        {"begin": visits, "end": visits}, [(0, 6)], time={"begin": "begin", "end": "end"}
    )
    assert sorted(zip(*(column.to_pylist() for column in found.columns), strict=True)) == [
        (0, 0),
        (1, 1),
    ]
    again = sequence_tables([visits, visits], [(0, 10)], time="begin")
    assert again.to_pylist() == [{"a_id": 0, "b_id": 1}]


def test_what_can_be_read_but_once_is_read_once() -> None:
    table = pa.table({"id": [1, 2, 3], "t": [0, 1, 2]})
    reader = table.to_reader()
    found = sequence_tables([reader, reader, table], [(1, 1), (0, 0)], time="t")
    assert sorted(found["b_id"].to_pylist()) == [2, 3]
    assert sorted(found["c_id"].to_pylist()) == [2, 3]


def test_columns_of_one_name_are_refused() -> None:
    streams = {"a": {"t": [0], "b_id": [1], "id": [1]}, "a_b": {"t": [0], "id": [2]}}
    with pytest.raises(ConditionError, match="named a_b_id"):
        sequence_tables(streams, [(0, 1)], time="t", columns={"a": ["id", "b_id"], "a_b": "id"})
    with pytest.raises(ConditionError, match="no columns"):
        sequence_tables(streams, [(0, 1)], time="t", columns=())


YEAR = 31_536_000 * 10**9


@pytest.mark.parametrize(
    ("times", "windows", "total", "chance"),
    [
        # Windows beyond 2**53 ticks, to which floats are not exact.
        (
            ((0, 100), (10**9 + 3, 10**9 + 103), (YEAR - 30, YEAR + 70)),
            [(0, 60 * 10**9), (0, YEAR)],
            (0, YEAR),
            0.755,
        ),
        (((0, 100), (2**59, 2**59 + 1000), (50, 150)), [(0, 2**60), (-(2**60), 0)], (0, 10), 0.055),
    ],
)
def test_windows_of_years_in_nanoseconds_are_exact(
    times: Any, windows: Any, total: tuple[int, int], chance: float
) -> None:
    streams = [{"min_time": [low], "max_time": [high]} for low, high in times]
    found = sequence_tables(streams, windows, 0.01, total=total, probability=True)
    assert found["probability"].to_pylist() == [pytest.approx(chance, abs=1e-13)]


@pytest.mark.parametrize("buckets", [10, 40])
def test_many_buckets_do_not_add_up_to_a_wrong_decision(buckets: int) -> None:
    template = {"h": (list(range(0, 10 * buckets + 1, 10)), [1 / buckets] * buckets)}
    streams = [{"at": [0], "s": ["h"]} for _ in range(3)]
    wide = 30 * buckets
    found = sequence_tables(
        streams, [(-wide, wide)] * 2, 0.5 - 1e-14, total=(0, wide), probability=True,
        time=histograms("at", template="s", templates=template),
    )  # fmt: skip
    assert found["probability"].to_pylist() == [pytest.approx(0.5, abs=1e-13)]


def test_events_of_one_table_are_told_apart_whatever_their_keys() -> None:
    table = pa.table(
        {"id": [0, 1, 2], "t": [5, 6, 7], "user": ["x", "x", "y"], "friend": ["x", "x", None]}
    )
    with pytest.warns(UnmatchableRowsWarning):
        found = sequence_tables([table, table], [(0, 5)], time="t", by=[("user", "friend")])
    assert found.select(["a_id", "b_id"]).to_pylist() == [{"a_id": 0, "b_id": 1}]


def test_an_event_that_does_not_go_on_hides_none_that_goes_on_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[int] = []
    judge = ExactJudge.found
    monkeypatch.setattr(
        ExactJudge, "found", lambda self, made: sizes.append(made.tried) or judge(self, made)
    )
    many = 300
    streams = [{"t": [0]}, {"t": [1, 2]}, {"t": [102] * many}, {"t": [202] * many}]
    found = sequence_tables(
        streams, [(0, 10), (100, 100), (100, 100)], time="t",
        options=CorrelateOptions(threads=1, batch_pairs=many),
    )  # fmt: skip
    assert found.num_rows == many * many == sum(sizes)
    assert max(sizes) <= many


def test_what_leads_nowhere_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    grown = making._grown

    def watched(*given: Any) -> Any:
        found = grown(*given)
        sizes.append(found[0].size)
        return found

    monkeypatch.setattr(making, "_grown", watched)
    # There are 400 x 30 x 30 beginnings, and 400 x 30 of them go on.
    streams = [{"t": [0] * 400}, {"t": [1] * 30}, {"t": [*[2] * 29, 3]}, {"t": [103]}]
    windows = [(0, 10), (0, 10), (100, 100)]
    found = sequence_tables(
        streams, windows, time="t", options=CorrelateOptions(threads=1, batch_pairs=500)
    )
    assert found.num_rows == 400 * 30
    assert max(sizes) <= 500


def test_long_texts_come_in_batches_that_have_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_sizes, "BATCH_BYTES", 5_000)
    streams = {"a": {"t": [0], "x": ["y" * 1_000]}, "b": {"t": [0] * 40}}
    found = sequence_tables(streams, [(0, 1)], time="t", columns={"a": "x", "b": "id"})
    assert found["a_x"].num_chunks == 8
    assert found["b_id"].to_pylist() == list(range(40))


def test_links_and_rows_that_memory_has_no_room_for_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    streams = [{"t": [0] * 3_000, "u": [1] * 3_000} for _ in range(3)]
    monkeypatch.setattr(room, "free_memory", lambda: 100 << 20)
    with pytest.raises(
        MemoryBudgetError, match="9,000,000 pairs of two streams would take about 144"
    ):
        sequence_tables(streams, [(-1, 1)] * 2, 0.5, time=("t", "u"))
    few = [{"t": [0] * 300} for _ in range(3)]
    with pytest.raises(MemoryBudgetError, match="27,000,000 pairs"):
        sequence_tables(few, [(0, 0)] * 2, time="t")


def test_links_of_exact_times_share_the_events_they_lead_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    streams = [{"t": [0] * 3_000} for _ in range(3)]
    monkeypatch.setattr(room, "free_memory", lambda: 1 << 20)
    found = sequence_tables(streams, [(0, 0)] * 2, time="t", emit="counts", backend="cpu")
    assert found["sequences"].to_pylist() == [9_000_000] * 3_000


@pytest.mark.parametrize("time", ["t", ("t", "u")])
@pytest.mark.parametrize("asked", [{"emit": "counts"}, {"emit": "best"}, {"how": "anti"}])
def test_a_limit_on_sequences_holds_where_they_are_in_the_output(time: Any, asked: Any) -> None:
    streams = [{"t": list(range(20)), "u": list(range(1, 21))} for _ in range(3)]
    options = CorrelateOptions(max_pairs=5)
    found = sequence_tables(streams, [(-20, 20)] * 2, 0.5, time=time, options=options, **asked)
    assert found.num_rows == (0 if "how" in asked else 20)


def test_events_without_a_sequence_are_no_news() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = sequence_tables([{"t": [0]}, {"t": [100]}], [(0, 5)], time="t", how="anti")
        many = [{"t": [0] * 10_000} for _ in range(6)]
        none = sequence_tables(many, [(0, 0)] * 5, time="t", how="anti")
    assert (found.num_rows, none.num_rows) == (1, 0)


def test_the_earlier_row_of_a_table_is_the_best_of_equals() -> None:
    found = sequence_tables(
        [{"t": [0]}, {"t": [5, 3]}, {"t": [9]}], [(0, 10)] * 2, time="t", emit="best"
    )
    assert found["b_id"].to_pylist() == [0]


@pytest.mark.parametrize("links", [False, True])
def test_a_window_on_the_whole_narrows_those_of_steps(links: bool) -> None:
    rng = np.random.default_rng(0)
    streams = [{"t": rng.integers(0, 100_000, 200)} for _ in range(4)]
    report = SequenceReport()
    found = sequence_tables(
        streams,
        [(0, 10_000)] * 3,
        time="t",
        total=(0, 1_000),
        report=report,
        link_probability=links,
    )
    bare = sequence_tables(streams, [(0, 1_000)] * 3, time="t", total=(0, 1_000))
    order = [(name, "ascending") for name in bare.column_names]
    assert found.select(bare.column_names).sort_by(order).equals(bare.sort_by(order))
    assert (report.summary().tried < 20 * found.num_rows) != links
