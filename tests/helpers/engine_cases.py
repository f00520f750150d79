"""How one process and Spark read the same files, and what the command says where they cannot."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coincide.command_line import run
from coincide.engine.files.arrow_inputs import arrow_input
from coincide.engine.files.source import find_source
from tests.helpers.input_files import read
from tests.helpers.rows import in_order


def spark_read(spark, path: Path, columns: list[str] | None = None) -> pa.Table:
    from coincide.command_line.spark import spark_frame

    given = arrow_input(find_source("left", str(path)))
    names = columns or given.schema.names
    return spark_frame(spark, given, names).select(*names).toArrow()


def assert_same(spark, path: Path) -> None:
    ours, theirs = read(path), spark_read(spark, path)
    assert in_order(ours) == in_order(theirs)
    for field in ours.schema:
        assert theirs.schema.field(field.name).type == field.type


def join_words(tmp_path: Path, left: Path, right: Path | None = None, *more: str) -> list[str]:
    words = [
        "join",
        str(left),
        str(right or left),
        "-o",
        str(tmp_path / "out"),
        "--engine",
        "spark",
    ]
    return [*words, *more, "--mutual-deadline", "1us", "--confidence", "1"]


def refusal(capsys: pytest.CaptureFixture[str], words: list[str]) -> str:
    """The one line with which a command is refused."""
    capsys.readouterr()
    assert run(words) == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    return said


def write_times(path: Path, kind: pa.DataType, **options: object) -> None:
    times = pa.array([0, 1_000_000_000]).cast(pa.timestamp("ns")).cast(kind)
    path.parent.mkdir(exist_ok=True)
    table = pa.table({"id": [1, 2], "min_time": times, "max_time": times})
    pq.write_table(table, path, **options)
