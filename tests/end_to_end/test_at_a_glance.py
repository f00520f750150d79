"""The page of all operators is complete. test_docs.py runs its code, this file what needs Spark."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.helpers.places import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (ROOT / "docs" / "at-a-glance.md").read_text("utf-8")
OPERATORS = re.findall(r'<div class="operator" markdown>\n(.*?)\n</div>', PAGE, flags=re.DOTALL)
LINES = 6
ON_SPARK = "Spark Structured Streaming"


def code(operator: str) -> str:
    (found,) = re.findall(r"```python\n(.*?)```", operator, flags=re.DOTALL)
    return found


def test_each_operator_has_a_picture_input_output_and_six_lines() -> None:
    assert len(OPERATORS) == PAGE.count("\n## ") == 15
    for operator in OPERATORS:
        name = operator.partition("## ")[2].partition(":")[0]
        for part in ("<picture>", "**In:**", "**Out:**", "More: ["):
            assert operator.count(part) == 1, name
        assert len([line for line in code(operator).splitlines() if line]) <= LINES, name
        assert (operator.count("```text\n") == 1) is (name != ON_SPARK), name


@pytest.mark.spark
def test_the_six_lines_of_spark_streams(spark: SparkSession, tmp_path: Path) -> None:
    from tests.helpers.spark_streams import stream_of, write_files

    def stream(**seconds: int) -> object:
        """Orders at seconds after a moment, ± 10 ms, and one far later, which ends the stream."""
        begin, around = dt.datetime(2026, 11, 30, 9, tzinfo=dt.UTC), dt.timedelta(milliseconds=10)
        at = [begin + dt.timedelta(seconds=second) for second in seconds.values()]
        rows = {
            "id": list(seconds),
            "order": list(seconds),
            "min_time": [each - around for each in at],
            "max_time": [each + around for each in at],
        }
        table = pa.table(rows)
        files = [table.slice(0, len(at) - 1), table.slice(len(at) - 1)]
        folder = write_files(tmp_path / f"in{len(list(tmp_path.iterdir()))}", files)
        return stream_of(
            spark, folder, "id string, `order` string, min_time timestamp, max_time timestamp"
        )

    text = code(OPERATORS[-1])
    for folder in (
        "state",
        "missed",
    ):  # Spark's own process resolves them, so they need a whole path
        text = text.replace(f'"{folder}"', f'"{tmp_path / folder}"')
    names = {
        "spark": spark,
        "requests": stream(a=0, b=1, z=900),
        "answers": stream(a=1, b=9, y=900),
    }
    exec(compile(text, "docs/at-a-glance.md", "exec"), names)
    query = names["query"]
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    found = spark.read.parquet(str(tmp_path / "missed"))
    assert [tuple(row) for row in found.select("order", "left_id").collect()] == [("b", "b")]
