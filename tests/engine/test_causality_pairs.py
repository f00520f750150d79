"""Causality joins by keys of other names, with a condition on pairs, all columns, chosen effects."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide import (
    CausalityCondition,
    ConditionError,
    CorrelateOptions,
    DataError,
    JoinReport,
    Plane,
    SchemaError,
    Spatial,
    Temporal,
    accidental_pair_tables,
    causality_tables,
    clusters,
)
from coincide.engine.causality.arguments import CausalityArguments
from coincide.engine.causality.join import TableCausality
from cpu_fallback.reference import causality as reference
from cpu_fallback.reference.causality import (
    PREFERENCES,
    Asked,
    Pair,
    best_effects,
    mutual_pairs,
    optimum,
    pairs,
    unambiguous_pairs,
    value,
)
from tests.helpers.causality_cases import Case, plane_cases
from tests.helpers.timed_effects import DELTAS, table, timed_case

WHERE = "distance <= 1 + cause_amount * 2 AND (delta < 25 OR cause_amount <> effect_amount)"
NEAR = CausalityCondition([Temporal(0, 10), Spatial(5)])
XY: Any = {"cause_place": ("x", "y"), "effect_place": ("x", "y")}

DRAWN = {
    "case": plane_cases(8),
    "lengths": st.lists(st.sampled_from([0, 4, 8, 16]), min_size=1, max_size=3),
    "confidence": st.sampled_from([1.0, 0.5, 0.125]),
    "is_one_stream": st.booleans(),
    "batch": st.integers(1, 9),
    "has_where": st.booleans(),
    "how": st.sampled_from(["inner", "left"]),
    "prefer": st.sampled_from(PREFERENCES),
    "k": st.integers(1, 3),
}
"""Lengths are powers of two, so that probabilities are exact and ties are ties."""


@settings(max_examples=30)
@given(**DRAWN)
def test_the_reference_finds_and_chooses_the_same(**drawn: Any) -> None:
    check(**drawn)


@pytest.mark.slow
@settings(max_examples=150)
@given(**DRAWN)
def test_the_reference_finds_and_chooses_the_same_at_length(**drawn: Any) -> None:
    check(**drawn)


@pytest.mark.parametrize(("seed", "cases"), [(3, 40), pytest.param(4, 200, marks=pytest.mark.slow)])
def test_crowds_of_equals(seed: int, cases: int) -> None:
    """Few times, places and lengths, nearly all in reach: each rule of the order decides somewhere."""
    random = np.random.default_rng(seed)
    exact = [reference.temporal(-6, 14), reference.spatial(2)]
    for number in range(cases):
        sides = [
            [(int(t), (float(x),), "a") for t, x in random.integers(0, (9, 3), (7, 2))]
            for _ in "ab"
        ]
        check(
            Case(*sides, [Temporal(-6, 14), Spatial(2)], exact, Plane()),
            random.choice([0, 4, 8], 3).tolist(), 0.125, is_one_stream=number % 5 == 0, batch=7,
            has_where=number % 3 == 0, how="left", prefer=PREFERENCES[number % 5], k=1 + number % 3,
        )  # fmt: skip


def check(
    case: Case, lengths: list[int], confidence: float, is_one_stream: bool, batch: int, has_where: bool,
    how: str, prefer: str, k: int,
) -> None:  # fmt: skip
    """All shapes of the answer, in batches of a few pairs."""
    timed = timed_case(case, lengths, confidence, is_one_stream)
    if timed is None:
        return
    condition, causes, effects, names = timed
    asked = Asked(
        causes, effects, case.exact, confidence, DELTAS, is_one_stream,
        is_met if has_where else (lambda *_: True),
    )  # fmt: skip
    sides = [with_amounts(table(side, names)) for side in (causes, effects)]
    arguments: dict[str, Any] = {
        "cause_time": ("low", "high"), "effect_time": ("low", "high"), "cause_place": names,
        "effect_place": names, "options": CorrelateOptions(batch_pairs=batch, threads=1),
        "where": WHERE if has_where else None,
    }  # fmt: skip

    def found(**more: Any) -> pa.Table:
        second = None if is_one_stream else sides[1]
        return causality_tables(sides[0], second, condition, **arguments, **more)

    possible = pairs(asked)
    told = [(pair.cause, pair.effect) for pair in possible]
    of_causes, everyone = {cause for cause, _ in told}, set(range(len(causes)))
    alone = [] if how == "inner" else sorted(everyone - of_causes)
    given = told
    if is_one_stream:
        given = reference.each_once(told, lambda row: (*causes[row][1::-1], row))
    assert ids(found(how=how)) == sorted([*given, *((cause, -1) for cause in alone)])
    assert set(found(how="semi")["cause_id"].to_pylist()) == of_causes
    assert set(found(how="anti")["cause_id"].to_pylist()) == everyone - of_causes
    counts = found(how=how, emit="counts")
    assert dict(zip(*counts.to_pydict().values(), strict=True)) == {
        cause: sum(own == cause for own, _ in told) for cause in (*of_causes, *alone)
    }
    lists = found(emit="lists").to_pylist()
    assert sorted((row["cause_id"], each) for row in lists for each in row["effect_id"]) == told
    best = found(how=how, emit="best", prefer=prefer, k=k)
    ranks = best["rank"].to_pylist() if k > 1 else [1] * best.num_rows
    chosen = [(i, -1, None if k > 1 else 1) for i in alone] + best_effects(
        asked, possible, prefer, k
    )
    assert sorted(zip(*columns(best), ranks, strict=True), key=repr) == sorted(chosen, key=repr)
    if is_one_stream:
        label = clusters(
            sides[0], condition, time=("low", "high"), place=names, columns="*",
            options=arguments["options"], where=arguments["where"],
        )["cluster"].to_pylist()  # fmt: skip
        assert label == reference.clusters(len(causes), told)
    else:
        check_matched(found, asked, possible, prefer, how)


def check_matched(
    found: Any, asked: Asked, possible: Sequence[Pair], prefer: str, how: str
) -> None:
    mutual = mutual_pairs(asked, possible, prefer)
    alone = set(range(len(asked.causes))) - {cause for cause, _ in mutual}
    left_out = alone if how == "left" else set()
    rows = ids(found(matching="mutual", prefer=prefer, how=how))
    assert rows == sorted([*mutual, *((cause, -1) for cause in left_out)])
    alone_in_pairs = ids(found(matching="unambiguous"))
    assert alone_in_pairs == sorted(unambiguous_pairs(possible))
    if prefer not in ("probability", "nearest") or len(possible) > 12:
        return
    matched = ids(found(matching="optimal", prefer=prefer))
    assert all(len(set(side)) == len(matched) for side in zip(*matched, strict=True))
    by_rows = {(pair.cause, pair.effect): pair for pair in possible}
    worth = value(prefer, [by_rows[row] for row in matched])
    assert worth == optimum(prefer, possible)


def with_amounts(events: pa.Table) -> pa.Table:
    amounts = [None if i % 5 == 4 else i % 4 for i in range(events.num_rows)]
    return events.append_column("amount", pa.array(amounts, pa.int16()))


def is_met(cause: int, effect: int, delta: int, distance2: Fraction) -> bool:
    own, other = (None if i % 5 == 4 else i % 4 for i in (cause, effect))
    if own is None or distance2 > (1 + 2 * own) ** 2:
        return False
    return delta < 25 or (other is not None and own != other)


def columns(found: pa.Table) -> list[list[int]]:
    return [
        [-1 if i is None else i for i in found[f"{p}_id"].to_pylist()] for p in ("cause", "effect")
    ]


def ids(found: pa.Table) -> list[tuple[int, int]]:
    return sorted(zip(*columns(found), strict=True))  # type: ignore[arg-type]


def causes(**more: Any) -> pa.Table:
    given_ = {"id": [1, 2, 3], "time": [0, 5, 100], "x": [0.0, 9.0, 0.0], "y": [0.0, 0.0, 1.0]}
    return pa.table(given_ | more)


def effects(**more: Any) -> pa.Table:
    given_ = {"id": [7, 8, 9], "time": [3, 10, 11], "x": [3.0, 6.0, 9.0], "y": [4.0, 4.0, 0.0]}
    return pa.table(given_ | more)


def test_keys_of_other_names_and_widths() -> None:
    own = causes(station=["Rome", "Rome", "x"], n=pa.array([1, 2, 3], pa.int8()))
    others = effects(sta=["Rome", "Oslo", "Rome"], m=pa.array([1, 2, 2], pa.uint64()))
    by = [("station", "sta"), ("n", "m")]
    found = causality_tables(own, others, NEAR, **XY, by=by)
    assert found.column_names == ["station", "n", "cause_id", "effect_id", "delta", "distance"]
    assert sorted(found.to_pylist(), key=str) == [
        {"station": "Rome", "n": 1, "cause_id": 1, "effect_id": 7, "delta": 3, "distance": 5.0},
        {"station": "Rome", "n": 2, "cause_id": 2, "effect_id": 9, "delta": 6, "distance": 0.0},
    ]
    assert causality_tables(own, others, NEAR, **XY, by=by[1:]).num_rows == 3


def test_all_columns_of_frames() -> None:
    own, others = causes(kind=["a", "b", "c"]), effects(kind=["a", "b", "b"])
    frames = own.to_pandas(), others.to_pandas()
    for first, second in ((own, others), frames):
        found = causality_tables(
            first, second, NEAR, **XY, by="kind", cause_columns="*", effect_columns="*"
        )
        assert found.column_names == [
            "kind", *(f"{p}_{n}" for p in ("cause", "effect") for n in ("id", "time", "x", "y")),
            "delta", "distance",
        ]  # fmt: skip
        assert found["effect_id"].to_pylist() == [7, 8, 9]
    where = "cause_kind = effect_kind"
    found = causality_tables(frames[0], frames[1], NEAR, **XY, where=where)
    assert ids(found) == [(1, 7), (2, 8), (2, 9)]


def test_clusters_by_keys() -> None:
    events = pa.table({"id": [1, 2, 3], "time": [0, 1, 2], "key": ["a", "a", "b"], "n": [5, 6, 7]})
    condition = CausalityCondition(Temporal(0, 9))
    found = clusters(events.to_pandas(), condition, by="key", columns="*")
    assert found.to_pydict() == {
        "key": ["a", "a", "b"], "id": [1, 2, 3], "time": [0, 1, 2], "n": [5, 6, 7],
        "cluster": [0, 0, 2],
    }  # fmt: skip
    report = JoinReport()
    found = clusters(events, condition, where="effect_n - cause_n = 1 AND delta = 1", report=report)
    assert found["cluster"].to_pylist() == [0, 0, 0]
    counters = report.summary().counters
    assert counters is not None
    assert (counters.candidates, counters.pairs) == (6, 2)  # each event is its own candidate
    for arguments, words in (
        ({"columns": ["*", "n"]}, r"columns takes '\*' for all columns, or names of some"),
        ({"where": "distance < 3"}, "'distance' is not a column of a pair"),
    ):
        with pytest.raises(ConditionError, match=words):
            clusters(events, condition, **arguments)


def test_expressions_shifts_and_counters() -> None:
    where = (pc.field("distance") < 5.0) | (pc.field("cause_id") == 1)
    report = JoinReport()
    asked: dict[str, Any] = {**XY, "where": where}
    found = causality_tables(causes(), effects(), NEAR, **asked, report=report)
    assert ids(found) == [(1, 7), (2, 9)]
    told = report.summary()
    assert told.counters is not None
    assert told.counters.pairs == 2
    # By 94 the third cause has effects near it, the nearest at 5.
    chance = accidental_pair_tables(causes(), effects(), NEAR, **asked, shifts=[20, -94])
    assert chance.counts == (0, 0)


def test_without_places_there_is_no_distance() -> None:
    condition = CausalityCondition(Temporal(0, 10))
    found = causality_tables(causes(), effects(), condition, where="delta BETWEEN 5 AND 6")
    assert ids(found) == [(2, 8), (2, 9)]
    refused: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"where": "distance < 3"}, ConditionError, "'distance' is not a column of a pair"),
        ({"where": "left_id = 3"}, ConditionError, "Write cause_left_id or effect_left_id"),
        ({"where": "cause_n = 3"}, SchemaError, "no column 'cause_n' .found 'cause_id', 'cause_time'"),
        ({"where": "delta = 'a'"}, SchemaError, r"these columns: delta = 'a' has no value"),
        ({"where": "delta + 1"}, ConditionError, "where must be true or false for a pair"),
        ({"where": 5}, ConditionError, "SQL text, such as 'cause_amount = effect_amount'"),
        (
            {"where": pc.field("left_id") == 3},
            SchemaError, r"the columns of a pair, cause_..., effect_..., delta .No",
        ),
        ({"where": "abs(cause_least) > 1"}, DataError, "where cannot be computed for some pairs"),
        ({"cause_columns": ["*", "id"]}, ConditionError, r"cause_columns takes '\*' for all columns"),
        ({"prefer": "distance", "emit": "best"}, ConditionError, "prefer='distance' needs places"),
        ({"prefer": "distanse", "emit": "best"}, ConditionError, "nearest, first, last, distance, or a"),
        ({"k": 2}, ConditionError, "k=2 chooses among matches, but"),
        ({"matching": "optimal", "prefer": "first"}, ConditionError, "or matching='mutual'"),
        ({"matching": "mutual", "emit": "lists"}, ConditionError, "Remove emit='lists'"),
    ]  # fmt: skip
    given_ = causes(least=[-(2**63)] * 3)
    for arguments, kind, words in refused:
        with pytest.raises(kind, match=words):
            causality_tables(given_, effects(), condition, **arguments)
    of_one: list[tuple[dict[str, Any], str]] = [
        ({"by": [("id", "other")]}, "give the events a second time as effects"),
    ]
    for arguments, words in of_one:
        with pytest.raises(ConditionError, match=words):
            causality_tables(given_, None, condition, **arguments)


def test_what_travels_to_workers() -> None:
    """A condition on delta and distance, pickled, says the same of pairs."""
    arguments = CausalityArguments(NEAR, **XY, where="distance < 5.0 AND delta < 7")
    job = TableCausality(causes(), effects(), arguments)
    spec = pickle.loads(pickle.dumps(job.plan.spec))
    assert spec.where.where.measures == ("delta", "distance")
    assert ids(pa.Table.from_batches(job.batches())) == [(2, 9)]
