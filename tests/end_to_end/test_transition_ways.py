"""Region transitions by every way, of random tables: the rows and the counts of the oracle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from coincide import TransitionReport, transitions
from tests.helpers.border_ways import rows_of
from tests.helpers.spark_cases import SPREAD, frame, settings
from tests.helpers.transition_cases import of_stream
from tests.helpers.transition_ways import (
    WaysCase,
    by_command,
    by_pushes,
    by_tables,
    expected,
    numbers_by,
    random_case,
)

pytestmark = pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
FEW, MANY = 40, 200


def check(case: WaysCase, found: tuple[pa.Table, Any], *, streams: bool = False) -> int:
    """Hold an answer against the oracle's."""
    rows, told = expected(case)
    rows = of_stream(rows, 1 + case.has_streams) if streams else rows
    table, summary = found
    assert rows_of(table) == rows
    mine = numbers_by(summary)
    assert {name: mine[name] for name in told} == told
    time = case.events["from"].type
    time = time if pa.types.is_timestamp(time) else pa.int64()
    ids = [case.events[name].type for name in ("area", "who")[: 1 + case.has_streams]]
    kinds = [*ids, pa.string()]
    assert table.schema.types == kinds + [time] * 6 + [pa.int64()] * 2
    return len(rows)


def check_in_one_process(seed: int) -> int:
    case = random_case(seed)
    tables, pushes = by_tables(case, seed), by_pushes(case, seed)
    assert tables[1].counts.neither == pushes[1].counts.neither
    check(case, pushes, streams=True)
    return check(case, tables)


def test_tables_and_pushes_agree_with_the_oracle() -> None:
    assert sum(map(check_in_one_process, range(FEW))) > 10 * FEW


@pytest.mark.slow
def test_many_tables_and_pushes_agree_with_the_oracle() -> None:
    assert sum(map(check_in_one_process, range(FEW, MANY))) > 11 * (MANY - FEW)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_the_command_agrees_with_the_oracle(ending: str, tmp_path: Path, capsys: Any) -> None:
    for seed in range(12):
        case = random_case(seed, for_csv=ending == "csv")
        found, told = by_command(case, tmp_path, ending, "local", capsys)
        if ending == "csv":  # which tells no small integers
            found = found.cast(by_tables(case, seed)[0].schema)
        check(case, (found, told))


def check_on_spark(spark: Any, seed: int) -> None:
    case = random_case(seed, for_spark=True)
    report = TransitionReport()
    with settings(spark, {**SPREAD, "spark.sql.execution.arrow.maxRecordsPerBatch": 5}):
        found = transitions(
            frame(spark, case.events).repartition(2),
            until=case.end,
            report=report,
            **case.arguments,
        ).toArrow()
    check(case, (found.cast(by_tables(case, seed)[0].schema), report.summary()))


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
    case = random_case(3, for_spark=True)
    found, told = by_command(case, tmp_path, "parquet", "spark", capsys)
    check(case, (found.cast(by_tables(case, 3)[0].schema), told))
