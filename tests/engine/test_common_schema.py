"""Files of one side that differ: refused where a reader would take the values of one for something else."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from coincide import (
    CorrelateOptions,
    SchemaError,
    border_crossing_tables,
    correlate_tables,
)
from coincide.command_line import run

SECONDS = CorrelateOptions(unit="s")
FIVE = pa.array([5])


def folder(path: Path, *tables: pa.Table) -> str:
    """Files of these tables, in this order."""
    path.mkdir()
    for number, table in enumerate(tables):
        pq.write_table(table, path / f"{number}.parquet")
    return str(path)


def whole(kind: pa.DataType) -> pa.Array:
    return pa.array([5], pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("t", FIVE, whole(pa.timestamp("us", "UTC"))),
        ("t", pa.array([5], pa.int32()), whole(pa.date32())),
        ("t", FIVE, whole(pa.duration("ms"))),
        ("t", whole(pa.timestamp("us", "UTC")), whole(pa.timestamp("us"))),
        ("t", pa.array([0.1], pa.float32()), pa.array([7.0])),
        ("t", pa.array([7.0]), pa.array([0.1], pa.float32())),
        ("t", pa.array([7.0]), pa.array([Decimal("1.123456789012345678")])),
        ("k", pa.array([7]), pa.array(["007"])),
        ("k", whole(pa.date32()), whole(pa.timestamp("us"))),
        ("id", FIVE, whole(pa.timestamp("us"))),
    ],
    ids=lambda each: str(getattr(each, "type", each)),
)
def test_other_kinds(tmp_path: Path, name: str, first: pa.Array, second: pa.Array) -> None:
    plain = {"id": FIVE, "t": FIVE, "k": FIVE}
    left = folder(tmp_path / "left", *(pa.table({**plain, name: c}) for c in (first, second)))
    words = rf"left: the column '{name}' must have one type .*found .*1.parquet and .*0.parquet"
    with pytest.raises(SchemaError, match=words):
        correlate_tables(
            left, left, within=("-1s", "1s"), confidence=1, by="k", left_time="t", right_time="t",
            options=SECONDS,
        )  # fmt: skip


def test_kinds_that_mean_the_same(tmp_path: Path) -> None:
    narrow = {"id": [0], "t": pa.array([5], pa.int32()), "k": pa.array(["a"])}
    wide = {"id": [1], "t": pa.array([5]), "k": pa.array(["a"], pa.large_string())}
    coded = {"id": [2], "t": pa.array([5.0]), "k": pa.array(["a"]).dictionary_encode()}
    left = folder(tmp_path / "left", *map(pa.table, (narrow, wide, coded)))
    found = correlate_tables(
        left, left, within=(0, 0), confidence=1, by="k", left_time="t", right_time="t"
    )
    assert found.num_rows == 9


def test_a_missing_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, lacking = pa.table({"id": [0], "t": [5], "k": [7]}), pa.table({"id": [1], "t": [5]})
    words = "has no column 'k', which other files have"
    left = folder(tmp_path / "left", whole, lacking)
    arrow = tmp_path / "arrow"
    arrow.mkdir()
    for number, table in enumerate((whole, lacking)):
        with pa.ipc.new_file(arrow / f"{number}.arrow", table.schema) as file:
            file.write_table(table)
    for given in (left, arrow):
        with pytest.raises(SchemaError, match=f"left: .*1.* {words}"):
            correlate_tables(
                given, whole, within=(0, 0), confidence=1, by="k", left_time="t", right_time="t"
            )
        code = run(
            ["join", str(given), str(given), "-o", str(tmp_path / "out"), "--engine", "local",
             "--within", "0", "0", "--left-time", "t", "--right-time", "t", "--by", "k"]
        )  # fmt: skip
        assert code == 2
        assert words in capsys.readouterr().err


def test_a_missing_column_of_readings(tmp_path: Path) -> None:
    names = ({"value": [5.0]}, {"v": [0.0]})
    readings = folder(
        tmp_path / "readings",
        *(pa.table({"stream_id": ["a"], "time": [i], **own}) for i, own in enumerate(names)),
    )
    with pytest.raises(SchemaError, match="'value', which other files have"):
        border_crossing_tables(readings, [{"query_id": 1, "lower": 4.0, "upper": 6.0}])


def test_runs_in_arrow_files(tmp_path: Path) -> None:
    table = pa.table({"id": [0, 1], "t": pc.run_end_encode(pa.array([5, 5]))})
    path, out = tmp_path / "a.arrow", tmp_path / "out.parquet"
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table)
    code = run(
        ["join", str(path), str(path), "-o", str(out), "--engine", "local", "--within", "0", "0",
         "--left-time", "t", "--right-time", "t"]
    )  # fmt: skip
    assert code == 0
    assert pq.read_table(out).num_rows == 4
