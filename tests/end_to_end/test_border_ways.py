"""Border crossings by every way, of random tables: the rows and the counts of the oracle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from coincide import BorderReport, border_crossings
from tests.helpers.border_way_cases import Push, WaysCase, random_case, random_pushes
from tests.helpers.border_ways import (
    Told,
    by_command,
    by_pushes,
    by_tables,
    expected,
    numbers_by,
    rows_of,
)
from tests.helpers.spark_cases import SPREAD, frame, settings

pytestmark = pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
FEW, MANY = 25, 125


def check(
    case: WaysCase,
    found: tuple[pa.Table, Any],
    pushes: list[Push] | None = None,
    *,
    on_spark: bool = False,
) -> Told:
    """Hold an answer against the oracle's."""
    expects = expected(case, pushes, on_spark=on_spark)
    table, summary = found
    assert rows_of(table) == expects.rows
    mine = numbers_by(summary)
    assert {name: mine[name] for name in expects.counts} == expects.counts
    time = case.readings["at"].type
    time = time if pa.types.is_timestamp(time) else pa.int64()
    streams = [case.readings["who"].type] if case.has_streams else []
    kinds = [case.queries["area"].type, *streams, pa.string()]
    assert table.schema.types == kinds + [time] * (table.num_columns - len(kinds))
    return expects


def check_in_one_process(seed: int) -> int:
    case = random_case(seed)
    pushes = random_pushes(case, seed)
    table, summary, inside = by_pushes(case, pushes)
    assert check(case, (table, summary), pushes).inside == inside
    return len(check(case, by_tables(case)).rows)


def test_tables_and_pushes_agree_with_the_oracle() -> None:
    assert sum(map(check_in_one_process, range(FEW))) > 10 * FEW


@pytest.mark.slow
def test_many_tables_and_pushes_agree_with_the_oracle() -> None:
    assert sum(map(check_in_one_process, range(FEW, MANY))) > 11 * (MANY - FEW)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_the_command_agrees_with_the_oracle(ending: str, tmp_path: Path, capsys: Any) -> None:
    check_commands(ending, range(8), tmp_path, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_the_command_often_agrees_with_the_oracle(ending: str, tmp_path: Path, capsys: Any) -> None:
    check_commands(ending, range(8, 34), tmp_path, capsys)


def check_commands(ending: str, seeds: range, place: Path, capsys: Any) -> None:
    for seed in seeds:
        case = random_case(seed, for_csv=ending == "csv")
        found, told = by_command(case, place, ending, "local", capsys)
        if ending == "csv":  # which tells no small integers
            found = found.cast(by_tables(case)[0].schema)
        check(case, (found, told))


def check_on_spark(spark: Any, seed: int) -> None:
    case = random_case(seed, for_spark=True)
    report = BorderReport()
    with settings(spark, {**SPREAD, "spark.sql.execution.arrow.maxRecordsPerBatch": 11}):
        found = border_crossings(
            frame(spark, case.readings).repartition(2),
            case.queries,
            report=report,
            **case.arguments,
        ).toArrow()
    check(case, (found.cast(by_tables(case)[0].schema), report.summary()), on_spark=True)


@pytest.mark.spark
def test_spark_agrees_with_the_oracle(spark: Any) -> None:
    for seed in range(3):
        check_on_spark(spark, seed)


@pytest.mark.spark
@pytest.mark.slow
def test_spark_often_agrees_with_the_oracle(spark: Any) -> None:
    for seed in range(3, 10):
        check_on_spark(spark, seed)


@pytest.mark.spark
def test_the_command_on_spark_agrees_with_the_oracle(
    command_spark: Any, tmp_path: Path, capsys: Any
) -> None:
    case = random_case(2, for_spark=True)
    found, told = by_command(case, tmp_path, "parquet", "spark", capsys)
    check(case, (found.cast(by_tables(case)[0].schema), told), on_spark=True)
