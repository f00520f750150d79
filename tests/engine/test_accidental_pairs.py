"""Accidental pairs by time shifts: what the plain reference counts once the right columns are moved."""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide import (
    AccidentalPairs,
    CausalityCondition,
    CoincideError,
    ConditionError,
    CorrelateOptions,
    DroppedRowsWarning,
    ShortShiftsWarning,
    Spatial,
    Temporal,
    TimingCondition,
    UnmatchableRowsWarning,
    accidental_pair_tables,
    causality_tables,
    correlate_tables,
    within,
)
from coincide.model.units import Tick
from cpu_fallback.reference import causality as reference
from cpu_fallback.reference import join as join_reference
from cpu_fallback.reference.decision import decision_is_clear, satisfaction_probability
from tests.helpers.causality_cases import Case, plane_cases
from tests.helpers.causality_tables import XY, random_events
from tests.helpers.comparison import condition_of, ticks_of
from tests.helpers.histogram_tables import by_device, events, random_templates
from tests.helpers.strategies import JoinCase, Row, random_cases

Answer = dict[int | str, int]


def counts_of(found: AccidentalPairs) -> Answer:
    return dict(zip(found.shifts, found.counts, strict=True))


def moved_rows(rows: list[Row], ticks: int) -> list[Row]:
    names = ("min_time", "max_time")
    return [
        {**row, **{n: None if row[n] is None else row[n] + ticks for n in names}} for row in rows
    ]


def is_clear(case: JoinCase, right: list[Row]) -> bool:
    times = [
        [(r["min_time"], r["max_time"]) for r in rows if None not in (r["min_time"], r["max_time"])]
        for rows in (case.left, right)
    ]
    return all(
        decision_is_clear(satisfaction_probability(*a, *b, case.lo, case.hi), case.confidence)
        for a in times[0]
        for b in times[1]
    )


def quiet_counts(*sides: Any, **arguments: Any) -> Answer:
    """What is counted by shift, without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = accidental_pair_tables(*sides, options=CorrelateOptions(threads=1), **arguments)
    return counts_of(found)


@pytest.mark.parametrize(
    ("seed", "cases"), [(17, 200), pytest.param(18, 500, marks=pytest.mark.slow)]
)
def test_correlate_counts_what_the_reference_does(seed: int, cases: int) -> None:
    found = 0
    for number, case in enumerate(random_cases(seed, cases, max_size=10)):
        width, beyond = case.hi - case.lo, number % 23 + 1
        shifts = [width + beyond, -width - 3 * beyond]
        moved = [moved_rows(case.right, shift) for shift in shifts]
        if not all(is_clear(case, right) for right in moved):
            continue
        window = case.lo, case.hi, case.confidence
        expected = {
            shift: len(join_reference.correlate(case.left, right, *window, by=case.by))
            for shift, right in zip(shifts, moved, strict=True)
        }
        sides = ticks_of(case.left, case.by), ticks_of(case.right, case.by)
        how = ("inner", "left", "semi", "anti")[number % 4]
        asked: dict[str, Any] = {"by": case.by, "shifts": shifts, "how": how}
        assert quiet_counts(*sides, condition_of(case), **asked) == expected
        found += sum(expected.values())
    assert found > 500


def moved_table(table: pa.Table, ticks: int) -> pa.Table:
    for name in ("min_time", "max_time"):
        place = table.column_names.index(name)
        table = table.set_column(place, name, pc.add(table[name], ticks))
    return table


@pytest.mark.parametrize(
    ("matching", "prefer"),
    [("mutual", "probability"), ("mutual", "nearest"), ("mutual", "first"), ("mutual", "last"),
     ("mutual", "-id"), ("unambiguous", "probability"), ("optimal", "probability"), ("optimal", "nearest")],
)  # fmt: skip
def test_matched_pairs_are_counted_after_matching(matching: Any, prefer: str) -> None:
    """As many as the join of a table has whose times are moved."""
    found, before = 0, 0
    for number, case in enumerate(
        random_cases(19, 60 if matching != "unambiguous" else 200, max_size=12)
    ):
        beyond = number % 7 + 1
        shifts = [case.hi - case.lo + beyond, case.lo - case.hi - beyond]
        left, right = ticks_of(case.left, case.by), ticks_of(case.right, case.by)
        asked: dict[str, Any] = {"by": case.by, "matching": matching, "prefer": prefer}
        condition = condition_of(case)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = {
                shift: correlate_tables(
                    left, moved_table(right, shift), condition, **asked
                ).num_rows
                for shift in shifts
            }
            all_pairs = {
                shift: correlate_tables(
                    left, moved_table(right, shift), condition, by=case.by
                ).num_rows
                for shift in shifts
            }
        for how in ("inner", "left"):
            given = {**asked, "condition": condition, "shifts": shifts, "how": how}
            assert quiet_counts(left, right, **given) == expected
        found, before = found + sum(expected.values()), before + sum(all_pairs.values())
    assert 12 < found < before


def test_matched_pairs_of_one_stream_are_not_counted() -> None:
    events = pa.table({"id": [1, 2], "min_time": [0, 5], "max_time": [1, 6]})
    with pytest.raises(ConditionError, match="matching takes the events of one stream as either"):
        accidental_pair_tables(
            events, within=(-9, 9), confidence=0.5, matching="mutual", shifts=[50]
        )


@pytest.mark.parametrize("emit", ["pairs", "best"])
def test_histograms(emit: Any) -> None:
    templates, left, right = random_templates(3), events(1, 150), events(2, 150)
    times: dict[str, Any] = {
        "left_time": by_device(templates), "right_time": by_device(random_templates(4)),
        "by": "place",
    }  # fmt: skip
    condition = TimingCondition(within(-30, 50), 0.6)
    shifts = (190, -200, 411)
    expected = {}
    for shift in shifts:
        moved = right.set_column(2, "seen_at", pa.array(right["seen_at"].to_numpy() + shift))
        expected[shift] = correlate_tables(left, moved, condition, **times).num_rows
    asked = {**times, "emit": emit, "shifts": shifts}
    assert quiet_counts(left, right, condition, **asked) == expected
    assert min(expected.values()) > 20


def table_of(events: Sequence[reference.Event], names: Sequence[str]) -> pa.Table:
    """Events of a case; a place that is not known lacks all coordinates."""
    places = [[None] * len(names) if e[1] is None else e[1] for e in events]
    columns = {n: pa.array([p[i] for p in places], pa.float64()) for i, n in enumerate(names)}
    return pa.table(
        {
            "id": pa.array(range(len(events)), pa.int64()),
            "time": pa.array([e[0] for e in events], pa.int64()),
            "key": pa.array([e[2] for e in events], pa.string()),
            **columns,
        }
    )


def moved_pairs(
    causes: Sequence[reference.Event],
    effects: Sequence[reference.Event],
    predicates: Sequence[reference.Predicate],
    shift: int,
    is_one_stream: bool,
) -> int:
    """Pairs of causes and moved effects; of one stream of any two events, in the order that is given."""
    moved = [(None if t is None else t + shift, place, key) for t, place, key in effects]
    pairs = reference.causality(causes, moved, predicates, reference.plane_distance2)
    if not is_one_stream:
        return len(pairs)
    swapped = {
        (i, j) for j, i in reference.causality(moved, causes, predicates, reference.plane_distance2)
    }
    apart = {(i, j): moved[j][0] - causes[i][0] for i, j in pairs if i != j}
    # Simultaneous once moved: the one that was earlier is the cause.
    return sum(
        delta > 0 or (delta == 0 and shift < 0) or pair not in swapped
        for pair, delta in apart.items()
    )


BEYOND = st.lists(st.integers(1, 30), min_size=1, max_size=2, unique=True)


@settings(max_examples=50)
@given(plane_cases(), BEYOND, st.booleans())
def test_causality_counts_what_the_reference_does(
    case: Case, beyond: list[int], is_one_stream: bool
) -> None:
    check_causality(case, beyond, is_one_stream)


@pytest.mark.slow
@settings(max_examples=1000)
@given(plane_cases(), BEYOND, st.booleans())
def test_causality_counts_what_the_reference_does_at_length(
    case: Case, beyond: list[int], is_one_stream: bool
) -> None:
    check_causality(case, beyond, is_one_stream)


def check_causality(case: Case, beyond: list[int], is_one_stream: bool) -> None:
    """Shifts of both directions, longer by this many ticks than they must be."""
    bound = Temporal(-12, 18), reference.temporal(-12, 18)
    try:
        condition = CausalityCondition([*case.predicates, bound[0]])
        lo, hi = condition.limits(Tick()).window
    except ConditionError:
        return
    least = max(hi - lo, 2 * max(hi, -lo)) if is_one_stream else hi - lo
    shifts = [sign * (least + each) for each in beyond for sign in (1, -1)]
    effects = case.causes if is_one_stream else case.effects
    places = [e[1] for e in (*case.causes, *case.effects) if e[1] is not None]
    names = ["x", "y", "z"][: len(places[0]) if places else 1]
    expected = {
        shift: moved_pairs(case.causes, effects, [*case.exact, bound[1]], shift, is_one_stream)
        for shift in shifts
    }
    sides = table_of(case.causes, names), table_of(effects, names)
    asked: dict[str, Any] = {"cause_place": names, "effect_place": names, "by": "key"}
    given_sides = sides[0], None if is_one_stream else sides[1]
    found = quiet_counts(*given_sides, condition, shifts=shifts, **asked)
    assert found == expected


@pytest.mark.parametrize("is_one_stream", [False, True])
def test_chance_alone(is_one_stream: bool) -> None:
    """All pairs of events that have nothing to do with each other are accidental."""
    rng = np.random.default_rng(8)
    own, others = (
        pa.table({"id": np.arange(n), "time": rng.integers(0, 400_000, n), "x": rng.random(n)})
        for n in (3000, 2000)
    )
    condition = CausalityCondition([Temporal(-100, 100), Spatial(0.5)])
    place: dict[str, Any] = {"cause_place": "x", "effect_place": "x"}
    sides = own, None if is_one_stream else others
    shifts = [sign * each for each in (700, 1000, 1700, 2900, 4001) for sign in (1, -1)]
    found = causality_tables(*sides, condition, **place)
    chance = accidental_pair_tables(*sides, condition, shifts=shifts, **place)
    assert chance.spread is not None
    assert abs(chance.expected - found.num_rows) < 4 * found.num_rows**0.5
    assert 0.3 < chance.spread / found.num_rows**0.5 < 3


def test_what_is_told() -> None:
    own, others = random_events(1, 80, prefix="c"), random_events(2, 90)
    condition = CausalityCondition([Temporal(-7, 40), Spatial(3)])
    asked: dict[str, Any] = {**XY, "options": CorrelateOptions(unit="s")}
    shifts = ("50s", -60, "2min")
    chance, counts = accidental_pair_tables(own, others, condition, **asked, shifts=shifts), []
    for ticks in (50, -60, 120):
        moved = others.set_column(1, "time", pa.compute.add(others["time"], ticks))
        counts.append(causality_tables(own, moved, condition, **XY).num_rows)
    assert counts_of(chance) == dict(zip(shifts, counts, strict=True))
    assert chance.expected == statistics.fmean(counts)
    assert chance.spread == statistics.stdev(counts)
    by_shift = ", ".join(f"{shift}: {count}" for shift, count in zip(shifts, counts, strict=True))
    assert str(chance) == (
        f"accidental  {chance.expected:,.1f} ± {chance.spread:,.1f} expected by chance;"
        f" by shift {by_shift}"
    )
    assert accidental_pair_tables(own, others, condition, **asked, shifts=[50]).spread is None


LEFT = pa.table({"id": [1, 2], "min_time": [0, 50], "max_time": [8, 50]})
CLOSE = TimingCondition(within(-5, 5), 0.5)
ALONE = CausalityCondition([Temporal(0, 10)])


@pytest.mark.parametrize(
    ("shifts", "words"),
    [
        ("30s", r"shifts must be a sequence of durations, such as .* .found '30s'"),
        (30, "shifts must be a sequence"),
        (None, "shifts must be a sequence"),
        ([], "shifts is empty. Give some, such as"),
        ([20, 0], "the shift 0 moves nothing"),
        ([20, -30, 20], "shifts has 20 twice"),
        (["20s"], "has a unit, but the unit of the time columns is unknown"),
        (["20 parsecs"], "is unknown. Use one of"),
        ([2.5], "a duration is an int"),
        ([10], "the shift 10 is not longer than the window, 10 ticks, so"),
        ([-10], "the shift -10 is not longer than the window"),
        ([2**61], r"bounds must stay below 2\^61"),
        ([2**61 - 4], r"moves the window beyond 2\^61 ticks"),
    ],
)
def test_shifts_that_make_no_sense(shifts: Any, words: str) -> None:
    with pytest.raises(ConditionError, match=words):
        accidental_pair_tables(LEFT, LEFT, CLOSE, shifts=shifts)


def test_one_duration_in_two_words() -> None:
    options = CorrelateOptions(unit="s", tick="ms")
    with pytest.raises(ConditionError, match=r"has '20000ms' twice \(the first is '20s'\)"):
        accidental_pair_tables(
            LEFT, LEFT, TimingCondition(within("-5s", "5s"), 1),
            shifts=("20s", "20000ms"), options=options,
        )  # fmt: skip


def test_shifts_need_bounds_on_time() -> None:
    asked: dict[str, Any] = {
        "cause_time": "min_time", "effect_time": "min_time", "cause_place": "id",
        "effect_place": "id", "shifts": [20],
    }  # fmt: skip
    words = "shifts move times, but the condition does not bound times .* Give its window both ends"
    with pytest.raises(ConditionError, match=words):
        accidental_pair_tables(
            LEFT, LEFT, CausalityCondition([Spatial(2), Temporal(0, None)]), **asked
        )
    exact: dict[str, Any] = {"left_time": "min_time", "right_time": "min_time", "shifts": [20]}
    with pytest.raises(ConditionError, match=words):
        accidental_pair_tables(LEFT, LEFT, within=(None, 0), emit="best", prefer="last", **exact)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            {"report": 3},
            "report belongs to joins; the counts are what comes back here. Remove report.",
        ),
        ({"size": 3}, "there is no argument 'size'. Use one of correlate's: by, how,"),
        ({"cause_time": "min_time"}, "there is no argument 'cause_time'. Use one of correlate's"),
        (
            {"condition": ALONE, "within": None, "confidence": None, "left_time": "t"},
            "no argument 'left_time'. Use one of causality's",
        ),
        ({"condition": ALONE}, "within belongs to pairs in time, .* Remove within"),
        ({"condition": ALONE, "within": None}, "confidence belongs to pairs in time"),
        ({"within": None}, "within is missing"),
        ({"where": "left_id < 3 AND"}, "where"),
        ({"by": "place"}, "place"),
    ],
)
def test_what_is_no_argument_of_such_a_join(asked: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"within": 5, "confidence": 0.5, "shifts": [20], **asked}
    with pytest.raises(CoincideError, match=words):
        accidental_pair_tables(LEFT, LEFT, **given)


@pytest.mark.parametrize(
    "shape",
    [{"how": "right"}, {"how": "full", "probability": True}, {"emit": "lists", "how": "left"},
     {"emit": "best", "k": 2, "prefer": "-id"}, {"emit": "counts"}, {"pair_columns": "delta"},
     {"how": "right", "emit": "best", "prefer": "-name"}, {"how": "anti"},
     {"left_columns": "*", "right_columns": "no such column"}],
)  # fmt: skip
def test_the_shape_of_the_answer_does_not_matter(shape: dict[str, Any]) -> None:
    own, others = random_events(1, 80), random_events(2, 90)
    asked: dict[str, Any] = {
        "within": (-5, 9), "confidence": 1.0, "left_time": "time", "right_time": "time",
        "shifts": (30, -41),
    }  # fmt: skip
    plain = accidental_pair_tables(own, others, **asked)
    assert min(plain.counts) > 10
    assert accidental_pair_tables(own, others, **asked, **shape) == plain


def test_rows_that_are_left_out_are_told_of() -> None:
    late = pa.table({"id": [1, 2], "min_time": [9, 60], "max_time": [8, 70]})
    asked: dict[str, Any] = {"shifts": [40], "options": CorrelateOptions(invalid="drop")}
    with pytest.warns(DroppedRowsWarning, match="left, 2 rows: skipped 1 invalid row"):
        accidental_pair_tables(late, LEFT, CLOSE, **asked)


def test_of_one_stream_no_event_meets_itself_or_its_cause() -> None:
    events = pa.table({"id": [1, 2], "time": [0, 10]})
    words = "the shift 20 is not longer than twice the farther end of the window, 20 ticks, so"
    with pytest.raises(ConditionError, match=words):
        accidental_pair_tables(events, None, ALONE, shifts=[-21, 20])
    found = accidental_pair_tables(events, None, ALONE, shifts=[-21, 21])
    assert counts_of(found) == {-21: 0, 21: 0}


def test_times_that_leave_their_range() -> None:
    late = pa.table({"id": [1], "time": [2**61 - 10]})
    words = r"the shift 20 moves times beyond 2\^61 ticks"
    with pytest.raises(ConditionError, match=words):
        accidental_pair_tables(late, late, ALONE, shifts=[20])
    times: dict[str, Any] = {"left_time": "time", "right_time": "time"}
    with pytest.raises(ConditionError, match=words):
        accidental_pair_tables(late, late, CLOSE, shifts=[20], **times)
    assert counts_of(accidental_pair_tables(late, late, ALONE, shifts=[-20])) == {-20: 0}


def test_a_shift_by_which_true_pairs_may_still_match() -> None:
    """The long timestamps lie in both windows with probability 1/2."""
    long = pa.table({"id": [1], "min_time": [0], "max_time": [22]})
    point = pa.table({"id": [1], "min_time": [5], "max_time": [5]})
    below = TimingCondition(within(-5, 5), 0.45)
    with pytest.warns(ShortShiftsWarning, match=r"shifts 11 are not longer than .* 32 ticks"):
        found = accidental_pair_tables(long, point, below, shifts=(11, 33))
    assert correlate_tables(long, point, below).num_rows == 1
    assert counts_of(found) == {11: 1, 33: 0}
    with warnings.catch_warnings():  # above 1/2 no pair can be in both
        warnings.simplefilter("ignore", UnmatchableRowsWarning)
        warnings.simplefilter("error", ShortShiftsWarning)
        above = TimingCondition(within(-5, 5), 0.55)
        found = accidental_pair_tables(long, point, above, shifts=(11, 33))
    assert counts_of(found)[11] == 0


@pytest.mark.parametrize(
    "given", [np.array([100, -100]), [np.int64(100), -100], {100, -100}, (100, -100)]
)
def test_shifts_of_any_collection(given: Any) -> None:
    left = pa.table({"id": range(40), "t": range(0, 400, 10)})
    found = quiet_counts(
        left, left, TimingCondition(within(0, 5), 0.9),
        left_time="t", right_time="t", shifts=given,
    )  # fmt: skip
    assert found == {100: 30, -100: 30}


def test_no_shifts_in_an_array() -> None:
    left = pa.table({"id": [1], "t": [1]})
    with pytest.raises(ConditionError, match="shifts is empty"):
        accidental_pair_tables(
            left, left, TimingCondition(within(0, 5), 0.9), left_time="t", right_time="t",
            shifts=np.empty(0, np.int64),
        )  # fmt: skip


def test_of_one_stream_the_larger_limit_is_told() -> None:
    events = pa.table({"id": [1, 2], "time": [0, 1]})
    for ends, shift, least in (((-100, 1), 150, 200), ((0, 10), 15, 20)):
        words = f"twice the farther end of the window, {least} ticks"
        condition = CausalityCondition([Temporal(*ends)])
        with pytest.raises(ConditionError, match=words):
            accidental_pair_tables(events, None, condition, shifts=[shift])


def test_a_shift_twice_in_a_set() -> None:
    left = pa.table({"id": [1], "t": [1]})
    with pytest.raises(ConditionError, match="twice"):
        accidental_pair_tables(
            left, left, TimingCondition(within(0, 5), 0.9), left_time="t", right_time="t",
            shifts={"1s", "1000ms"}, options=CorrelateOptions(unit="ms"),
        )  # fmt: skip
