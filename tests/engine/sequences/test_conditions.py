"""Conditions on tuples of tables: against the oracle, whose tuples plain Python tests; and refusals."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from coincide import (
    ConditionError,
    CorrelateOptions,
    DataError,
    NoPairsWarning,
    SchemaError,
    SequenceReport,
    coincidence_tables,
    correlate_tables,
    sequence_tables,
)
from coincide.engine.sequences.condition import Condition
from cpu_fallback.reference.sequences import coincidences, sequences, steps, within
from tests.helpers.sequence_cases import Case, drawn_case
from tests.helpers.tuple_conditions import drawn_condition, with_values


def rows_of(found: pa.Table, case: Case) -> list[tuple[int | None, ...]]:
    """The numbers of the rows of each tuple."""
    columns = [found[f"{name}_id"].to_pylist() for name in case.names]
    return [
        tuple(None if row is None else row // 10 for row in rows)
        for rows in zip(*columns, strict=True)
    ]


def options_of(rng: random.Random) -> CorrelateOptions:
    return CorrelateOptions(
        threads=rng.choice([1, 3]), batch_pairs=rng.choice([1, 3, None]),
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@pytest.mark.parametrize("seed", range(150))
def test_sequences_that_meet_a_condition_are_those_of_the_oracle(seed: int) -> None:
    rng = random.Random(seed)
    case = with_values(drawn_case(rng), rng)
    where, confidence = drawn_condition(rng, case.names), rng.choice([0.1, 0.25, 0.5, 1.0])
    expected = sequences(case.rows, steps(case.windows), confidence, case.by, admits=where.admits)
    asked: dict[str, Any] = {
        "names": case.names, "time": case.times, "by": case.by, "where": where.sql,
        "options": options_of(rng),
    }  # fmt: skip
    given = case.tables, case.windows, confidence
    report = SequenceReport()
    found = sequence_tables(*given, **asked, probability=True, report=report)
    # What only the condition needs is not in the output.
    assert found.column_names == [*case.by, *(f"{name}_id" for name in case.names), "probability"]
    assert sorted(rows_of(found, case)) == sorted(rows for rows, _ in expected)
    assert report.summary().found == len(expected)
    chances = dict(zip(rows_of(found, case), found["probability"].to_pylist(), strict=True))
    for rows, chance in expected:
        assert chances[rows] == pytest.approx(float(chance), abs=1e-13)
    by_first = Counter(rows[0] for rows, _ in expected)
    first = f"{case.names[0]}_id"
    counts = sequence_tables(*given, **asked, emit="counts")
    counted = zip(counts[first].to_pylist(), counts["sequences"].to_pylist(), strict=True)
    assert {row // 10: count for row, count in counted} == by_first
    alone = sequence_tables(*given, **asked, how="anti")
    assert [row // 10 for row in alone[first].to_pylist()] == [
        row for row in range(len(case.rows[0])) if row not in by_first
    ]
    best = sequence_tables(*given, **asked, emit="best", probability=True)
    assert sorted(rows[0] for rows in rows_of(best, case)) == sorted(by_first)
    of_expected = dict(expected)
    for rows in rows_of(best, case):
        rivals = [chance for other, chance in expected if other[0] == rows[0]]
        assert float(of_expected[rows]) == pytest.approx(float(max(rivals)), abs=1e-12)


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@pytest.mark.parametrize("seed", range(150))
def test_sets_that_meet_a_condition_are_those_of_the_oracle(seed: int) -> None:
    rng = random.Random(seed)
    case = with_values(drawn_case(rng, most_rows=4, is_apart=True), rng)
    where, width = drawn_condition(rng, case.names), rng.randint(0, 4)
    confidence, at_least = rng.choice([0.1, 0.5, 1.0]), rng.randint(2, len(case.names))
    windows = within(len(case.names), width)
    expected = coincidences(case.rows, windows, confidence, at_least, case.by, where.admits)
    found = coincidence_tables(
        case.tables, width, confidence, names=case.names, time=case.times, by=case.by,
        at_least=at_least, where=where.sql, probability=True, options=options_of(rng),
    )  # fmt: skip
    chances = dict(zip(rows_of(found, case), found["probability"].to_pylist(), strict=True))
    assert found.num_rows == len(chances)
    assert set(chances) == {rows for rows, _ in expected}
    for rows, chance in expected:
        assert chances[rows] == pytest.approx(float(chance), abs=1e-13)


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@pytest.mark.parametrize("seed", range(30))
def test_two_streams_give_the_pairs_of_a_join(seed: int) -> None:
    rng = random.Random(seed)
    case = with_values(drawn_case(rng, n=2, is_apart=True), rng)
    where = drawn_condition(rng, ("left", "right")).sql
    found = sequence_tables(
        case.tables, case.windows, 0.25, names=("left", "right"), by=case.by, where=where,
        time={"left": case.times["a"], "right": case.times["b"]},
    )  # fmt: skip
    pairs = correlate_tables(
        *case.tables, within=case.windows[0], confidence=0.25, left_time=case.times["a"],
        right_time=case.times["b"], by=case.by, where=where,
    )  # fmt: skip
    order = [("left_id", "ascending"), ("right_id", "ascending")]
    assert found.sort_by(order).equals(pairs.sort_by(order))


def test_a_set_may_be_part_of_one_that_is_larger_by_two_events() -> None:
    # It holds for a and b alone, and for all four, but not for three.
    streams = {name: {"t": [0], "v": [1]} for name in "abcd"}
    where = "c_v = d_v OR (c_v IS NULL AND d_v IS NULL)"
    asked: dict[str, Any] = {"at_least": 2, "time": "t", "where": where}
    found = coincidence_tables(streams, 5, **asked)
    assert found.to_pylist() == [{"a_id": 0, "b_id": 0, "c_id": 0, "d_id": 0, "streams": 4}]
    streams["d"]["v"] = [2]
    found = coincidence_tables(streams, 5, **asked)
    assert found.to_pylist() == [{"a_id": 0, "b_id": 0, "c_id": None, "d_id": None, "streams": 2}]


SHOP: dict[str, dict[str, Any]] = {
    "click": {"id": [1, 2], "t": [0, 0], "shop": ["x", "y"], "amount": [1, 2]},
    "cart": {"id": [11, 12], "t": [5, 5], "amount": [2.5, None]},
    "pay": {"id": [21, 22], "t": [9, 9], "shop": ["x", "y"], "amount": [3, 1]},
}
WINDOWS = [(0, 10), (0, 10)]
WHERE = "click_shop = pay_shop AND pay_amount > cart_amount"


@pytest.mark.parametrize(
    "where",
    [
        WHERE,
        (pc.field("click_shop") == pc.field("pay_shop"))
        & (pc.field("pay_amount") > pc.field("cart_amount")),
    ],
)
@pytest.mark.parametrize("form", ["dict", "table", "file"])
def test_a_condition_reads_what_it_needs_of_whatever_is_given(
    where: Any, form: str, tmp_path: Path
) -> None:
    tables: dict[str, Any] = dict(SHOP)
    if form != "dict":
        tables = {name: pa.table(columns) for name, columns in SHOP.items()}
    if form == "file":
        for name, table in tables.items():
            pq.write_table(table, tmp_path / f"{name}.parquet")
        tables = {name: tmp_path / f"{name}.parquet" for name in tables}
    found = sequence_tables(tables, WINDOWS, time="t", where=where)
    assert found.to_pylist() == [{"click_id": 1, "cart_id": 11, "pay_id": 21}]


def test_numbers_of_rows_are_columns_of_a_condition() -> None:
    streams = [{"t": [0, 0, 0]}, {"t": [1, 1]}]
    found = sequence_tables(streams, [(0, 1)], time="t", where="a_id > b_id")
    assert sorted(zip(*(c.to_pylist() for c in found.columns), strict=True)) == [
        (1, 0),
        (2, 0),
        (2, 1),
    ]


def test_one_table_at_two_places_has_a_column_for_each() -> None:
    table = pa.table({"t": [0, 1, 2], "size": [5, 7, 6]})
    found = sequence_tables(
        [table] * 3, [(0, 5)] * 2, time="t", where="a_size < c_size AND c_size < b_size"
    )
    assert found.to_pylist() == [{"a_id": 0, "b_id": 1, "c_id": 2}]


def test_times_and_names_in_capitals_are_columns_of_a_condition() -> None:
    at = [datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC) for second in (0, 3, 9)]
    streams = {"North": {"at": at}, "south-east": {"at": at}, "W": {"at": at}}
    found = sequence_tables(
        streams, [("0s", "9s")] * 2, time="at",
        where="W_at - North_at <= INTERVAL '5' SECOND AND `south-east_at` > North_at",
    )  # fmt: skip
    assert found.to_pylist() == [{"North_id": 0, "south-east_id": 1, "W_id": 1}]


def test_float_times_are_the_decimals_that_they_read_as() -> None:
    streams = {"a": {"t": [1700000000.1]}, "b": {"t": [1700000000.3]}}
    asked: dict[str, Any] = {"time": "t", "options": CorrelateOptions(unit="s")}
    found = sequence_tables(streams, [("0s", "1s")], where="b_t - a_t = 0.2", **asked)
    assert found.num_rows == 1


def test_tuples_are_tested_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    met = Condition._met

    def spied(self: Condition, members: Any, rows: Any) -> Any:
        sizes.append(rows.shape[1])
        return met(self, members, rows)

    monkeypatch.setattr(Condition, "_met", spied)
    streams = [{"t": [0] * 40, "v": list(range(40))} for _ in range(3)]
    found = sequence_tables(
        streams, [(0, 0)] * 2, time="t", where="a_v = b_v AND b_v = c_v",
        options=CorrelateOptions(batch_pairs=1_000, threads=2),
    )  # fmt: skip
    assert found.num_rows == 40
    assert sum(sizes) == 40**3
    assert max(sizes) <= 1_000 + 40 * 40


def test_nothing_found_may_be_due_to_the_condition() -> None:
    with pytest.warns(NoPairsWarning, match="or none of these tuples meets where"):
        sequence_tables(SHOP, WINDOWS, time="t", where="click_amount > 7")


@pytest.mark.parametrize(
    ("where", "kind", "words"),
    [
        (
            "click_x = 1",
            SchemaError,
            "a sequence has no column 'click_x' .found .*. Use one of these",
        ),
        ("Click_shop = 'x'", SchemaError, "Write click_shop: upper and lower case differ"),
        (
            "ship_shop = 'x'",
            ConditionError,
            "Write click_ship_shop or cart_ship_shop or pay_ship_shop",
        ),
        ("delta <= 5", ConditionError, "'delta' is not a column of a sequence"),
        ("pay_amount", ConditionError, "true or false for a sequence .found int64.. Compare it"),
        ("click_shop > pay_amount", SchemaError, "CAST.click_shop AS DOUBLE."),
        ("abs(click_amount, 2) > 1", ConditionError, "Write abs.click_\\.\\.\\.."),
        (5, ConditionError, "such as 'click_amount = cart_amount'"),
        (
            pc.field("click_shop") > pc.field("pay_amount"),
            SchemaError,
            "columns of a sequence, click_",
        ),
        (
            "CAST(click_shop AS INT) = 1",
            DataError,
            "for some sequences .found '[xy]', which does not",
        ),
    ],
)
def test_what_is_no_condition_on_a_sequence_is_refused(
    where: Any, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        sequence_tables(SHOP, WINDOWS, time="t", where=where)


def test_messages_call_sets_sets() -> None:
    with pytest.raises(SchemaError, match="a set has no column 'click_x'"):
        coincidence_tables(SHOP, 10, time="t", where="click_x = 1")


def test_a_name_that_two_streams_have_is_refused_where_it_is_used() -> None:
    streams = {"a": {"t": [0], "b_v": [1]}, "a_b": {"t": [0], "v": [2]}}
    with pytest.raises(
        SchemaError, match=r"'a_b_v' is a column of several \(found a and a_b\)\. Rename"
    ):
        sequence_tables(streams, [(0, 1)], time="t", where="a_b_v = 1")
    assert sequence_tables(streams, [(0, 1)], time="t", where="a_b_t = 0").num_rows == 1
