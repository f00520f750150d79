"""A condition on the columns of pairs: as the reference has it that leaves out the pairs which fail."""

from __future__ import annotations

import datetime as dt
import pickle
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from coincide import (
    ConditionError,
    CorrelateOptions,
    JoinReport,
    SchemaError,
    TimingCondition,
    accidental_pair_tables,
    correlate_tables,
    within,
)
from coincide.command_line import run
from coincide.engine.files.planning import LocalFilesJoin
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.where import expression_of
from tests.helpers.comparison import SHAPES, assert_answer, condition_of, ticks_of
from tests.helpers.direct_layouts import as_stored, write_layout
from tests.helpers.histogram_tables import by_device, events, random_templates
from tests.helpers.strategies import JoinCase, Row, random_cases

ANY: dict[str, Any] = {"within": 10, "confidence": 1.0, "left_time": "t", "right_time": "t"}
WHERE = "left_amount <= right_amount OR right_amount IS NULL"


def with_amounts(case: JoinCase, random: np.random.Generator) -> JoinCase:
    """Rows that are told apart and have an amount, or none."""
    sides = [
        [
            {**row, "id": number, "amount": random.choice([None, 0, 1, 2, 3])}
            for number, row in enumerate(rows)
        ]
        for rows in (case.left, case.right)
    ]
    return case._replace(left=sides[0], right=sides[1])


def is_met(left: Row, right: Row) -> bool:
    own, other = left["amount"], right["amount"]
    return other is None or (own is not None and own <= other)


def table_of(rows: list[Row], by: tuple[str, ...]) -> pa.Table:
    amounts = pa.array([row["amount"] for row in rows], pa.int16())
    return ticks_of(rows, by).append_column("amount", amounts)


@pytest.mark.parametrize(
    ("seed", "cases"), [(9, 250), pytest.param(10, 600, marks=pytest.mark.slow)]
)
def test_all_shapes_are_the_references(seed: int, cases: int) -> None:
    random, pairs = np.random.default_rng(seed), 0
    for number, drawn in enumerate(random_cases(seed, cases, max_size=12)):
        case = with_amounts(drawn, random)
        how, emit, probability = SHAPES[number % len(SHAPES)]
        report = JoinReport()
        found = correlate_tables(
            table_of(case.left, case.by), table_of(case.right, case.by), condition_of(case),
            by=case.by, how=how, emit=emit, probability=probability, where=WHERE, report=report,
            options=CorrelateOptions(threads=1 + number % 2, batch_pairs=1 + number % 7),
        )  # fmt: skip
        assert_answer(found.to_pylist(), case, how, emit, probability, admits=is_met)
        counters = report.summary().counters
        assert counters is not None
        pairs += counters.pairs
    assert pairs > 500


@pytest.mark.usefixtures("any_order")
def test_files_are_as_tables(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    for number, drawn in enumerate(random_cases(11, 30, max_size=40)):
        case = with_amounts(drawn, random)
        layouts = [
            write_layout(tmp_path / f"{number}{side}", table_of(rows, case.by), random)
            for side, rows in (("l", case.left), ("r", case.right))
        ]
        how, emit, probability = SHAPES[number % len(SHAPES)]
        arguments = JoinArguments(
            condition_of(case), by=case.by, how=how, emit=emit, probability=probability, where=WHERE,
            options=CorrelateOptions(slices=1 + number % 4),
        )  # fmt: skip
        job = LocalFilesJoin(*layouts, arguments)
        found = pa.Table.from_batches(job.batches(), job.schema).to_pylist()
        stored = as_stored(case, *layouts)
        assert_answer(found, stored, how, emit, probability, admits=is_met)


def test_of_one_stream_and_of_histograms() -> None:
    table = events(1, 150)
    time = by_device(random_templates(3))
    given: dict[str, Any] = {"within": (-30, 50), "confidence": 0.6, "left_time": time}
    given |= {"left_columns": "*", "right_columns": "*", "by": "place"}
    every = correlate_tables(table, **given)
    found = correlate_tables(table, where="left_device <> right_device", **given)
    expected = every.filter(pc.field("left_device") != pc.field("right_device"))
    assert found.equals(expected)
    assert 0 < found.num_rows < every.num_rows
    alone = {**given, "left_columns": "id", "where": "left_device <> right_device"}
    counted = correlate_tables(table, emit="counts", **alone)
    lists = correlate_tables(table, emit="lists", **{**alone, "right_columns": "id"})
    ordered = {(row["left_id"], each) for row in lists.to_pylist() for each in row["right_id"]}
    assert sum(counted["matches"].to_pylist()) == len(ordered) > found.num_rows
    assert {frozenset(pair) for pair in ordered} == {
        frozenset(pair)
        for pair in zip(*(found[f"{n}_id"].to_pylist() for n in ("left", "right")), strict=True)
    }


def test_columns_that_are_not_handed_out() -> None:
    left = pa.table({"id": [1, 2], "t": [0, 5], "s": ["a", None]})
    right = pa.table({"id": [1, 2], "t": [0, 5], "r": ["A", "b"]})
    for where in (
        "lower(right_r) = left_s",
        pc.utf8_lower(pc.field("right_r")) == pc.field("left_s"),
    ):
        found = correlate_tables(left, right, where=where, how="left", **ANY)
        assert found.to_pylist() == [
            {"left_id": 1, "right_id": 1},
            {"left_id": 2, "right_id": None},
        ]
    both = correlate_tables(left, right, left_columns="*", right_columns=["*"], **ANY)
    assert both.column_names == ["left_id", "left_t", "left_s", "right_id", "right_t", "right_r"]
    none = correlate_tables(left, right, left_columns="*", by=[("s", "r")], how="anti", **ANY)
    assert none.column_names == ["s", "left_id", "left_t"]
    assert none.num_rows == 2


TEXTS = [
    "left_a = 1 AND left_b = 2 OR left_c = 3", "NOT left_a = 1 AND left_b = 2",
    "left_a + 2 * left_b - -left_c > 3", "(left_a + 2) * (left_b - left_c) >= 3",
    "left_a BETWEEN left_b AND left_c", "left_a NOT BETWEEN 1 AND 2", "left_a IN (1, left_b, NULL)",
    "left_a NOT IN (1, left_b)", "left_a NOT IN (1, NULL)", "left_a IS NULL OR NOT left_b IS NOT NULL",
    "left_s LIKE 'a%' AND left_s NOT LIKE '_b'", "upper(left_s) = 'IT''S'", "length(left_s) < 3",
    "coalesce(left_a, left_b, 7) = 7", "abs(left_a - 2) = 1", "left_a / 2.0 > 0.5", "left_a <> left_b",
    "left_a == 1 or left_b != 1", "`left_odd name` = 'x'", "left_a < 1e0 AND left_b <= .5",
    "trim(left_s) = 'ab'", "left_a = NULL", "TRUE AND left_a > 0", "left_a - 1 - 1 = 0",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_what_it_says_is_what_a_database_takes_it_for(text: str) -> None:
    random = np.random.default_rng(len(text))
    numbers = [None, 0, 1, 2, 3]
    names = ["left_a", "left_b", "left_c", "left_s", "left_odd name"]
    rows = [
        (*(random.choice(numbers) for _ in range(3)), random.choice(["ab", " ab ", "b", "it's", None]),
         random.choice(["x", "y"]))
        for _ in range(200)
    ]  # fmt: skip
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE t (n, left_a, left_b, left_c, left_s, `left_odd name`)")
    database.executemany(
        "INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", [(i, *r) for i, r in enumerate(rows)]
    )
    database.execute("PRAGMA case_sensitive_like = ON")
    expected = [n for (n,) in database.execute(f"SELECT n FROM t WHERE {text} ORDER BY n")]
    columns = zip(*rows, strict=True)
    table = pa.table({name: pa.array(column) for name, column in zip(names, columns, strict=True)})
    expression, used = expression_of(text)
    assert set(used) <= set(names)
    found = table.append_column("n", pa.array(range(200))).filter(
        pickle.loads(pickle.dumps(expression))
    )
    assert found["n"].to_pylist() == expected


def test_times_and_dates() -> None:
    left = pa.table({"id": [1, 2], "t": [dt.datetime(2024, 1, 1, h) for h in (1, 2)],
                     "u": pa.array([0, 10**6], pa.timestamp("us", "UTC"))})  # fmt: skip
    given = {**ANY, "within": ("0h", "5h")}
    for where, ids in (
        ("left_t > TIMESTAMP '2024-01-01T01:30:00'", [2]),
        ("left_u = TIMESTAMP '1970-01-01T00:00:00Z'", [1]),
        ("left_t >= DATE '2024-01-01'", [1, 2]),
        ("left_t < TIMESTAMP '2024-01-01 01:00:00.000000001'", [1]),
        ("left_t >= DATE '2024-01-02T00:30:00+02:00'", []),
    ):
        found = correlate_tables(left, left, where=where, how="semi", **given)
        assert found["left_id"].to_pylist() == ids


@pytest.mark.parametrize(
    ("where", "error", "words"),
    [
        ("left_id", ConditionError, "must be true or false for a pair .found int64"),
        ("left_ix = 3", SchemaError, "a pair has no column 'left_ix' .found 'left_id', 'left_t'"),
        ("id = 3", ConditionError, "'id' is not a column of a pair"),
        ("left_id = 'x'", SchemaError, r"found left_id: int64, 'x': string\). Write a number"),
        ("left_id =", ConditionError, "it ends too early, after '='. Use comparisons, AND"),
        ('left_id = "x"', ConditionError, "Write 'x' if it is a text, and `x` if it is a name"),
        (
            "left.id = 1",
            ConditionError,
            "'left.id' is not a column of a pair. Write left_id or right_id",
        ),
        ("left_id = 1 2", ConditionError, "'2' is not expected there"),
        ("left_id NOT 1", ConditionError, "'NOT' is not expected there"),
        ("left_id IN 1", ConditionError, "'left_id IN 1' is not taken in that form"),
        ("(left_id = 1", ConditionError, r"\) is missing"),
        ("left_s LIKE left_s", ConditionError, "LIKE takes a text in single quotes"),
        ("sqrt(left_id) = 1", ConditionError, "the function sqrt is unknown"),
        ("abs(left_id, 2) = 1", ConditionError, "abs takes 1 argument .found 2.. Write abs"),
        ("left_t = DATE 'soon'", ConditionError, "'soon' is not a date"),
        (3, ConditionError, "where must be SQL text, such as"),
        (pc.field("left_x") > 3, SchemaError, "Cast a column, or correct the expression"),
        (pc.field("left_id") + 1, ConditionError, "where must be true or false for a pair"),
    ],
)
def test_what_makes_no_sense(where: Any, error: Any, words: str) -> None:
    table = pa.table({"id": [1], "t": [0], "s": ["a"]})
    with pytest.raises(error, match=words) as raised:
        correlate_tables(table, table, where=where, **ANY)
    assert "\n" not in str(raised.value)


def test_all_or_some_columns() -> None:
    table = pa.table({"id": [1], "t": [0]})
    with pytest.raises(
        ConditionError, match=r"left_columns takes '\*' for all columns, or names of some"
    ):
        correlate_tables(table, table, left_columns=["*", "id"], **ANY)


def test_accidental_pairs_meet_it_too() -> None:
    random = np.random.default_rng(2)
    times = np.sort(random.integers(0, 20_000, 400))
    table = pa.table({"id": np.arange(400), "t": times, "even": times % 2 == 0})
    condition = TimingCondition(within(0, 40), 1.0)
    every, some = (
        accidental_pair_tables(
            table, table, condition, left_time="t", right_time="t", shifts=[100], where=where
        )
        for where in (None, "left_even AND NOT right_even")
    )
    even = times % 2 == 0
    moved = times[None, :] + 100 - times[:, None]
    is_pair = (moved >= 0) & (moved <= 40)
    assert every.counts == (is_pair.sum(),)
    assert some.counts == ((is_pair & even[:, None] & ~even[None, :]).sum(),)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_on_the_command_line(tmp_path: Path, capsys: Any, ending: str) -> None:
    left = pa.table({"id": [1, 2, 3], "t": [0, 5, 9], "amount": [1, 2, 3]})
    right = pa.table({"id": [7, 8], "t": [0, 5], "amount": [2, 1]})
    for name, table in (("left", left), ("right", right)):
        (csv.write_csv if ending == "csv" else pq.write_table)(table, tmp_path / f"{name}.{ending}")
    inputs = [str(tmp_path / f"{name}.{ending}") for name in ("left", "right")]
    options = [
        "--left-time",
        "t",
        "--right-time",
        "t",
        "--mutual-deadline",
        "9",
        "--confidence",
        "1",
    ]
    options += ["--engine", "local", "--where", "left_amount = right_amount"]
    output = tmp_path / "out.parquet"
    assert run(["join", *inputs, "-o", str(output), *options, "--right-columns", "*"]) == 0
    assert pq.read_table(output).to_pylist() == [
        {"left_id": 1, "right_id": 8, "right_t": 5, "right_amount": 1},
        {"left_id": 2, "right_id": 7, "right_t": 0, "right_amount": 2},
    ]
    options[-1] = "left_price = 3"
    assert run(["join", *inputs, "-o", str(tmp_path / "none.parquet"), *options]) == 2
    assert "a pair has no column 'left_price'" in capsys.readouterr().err
