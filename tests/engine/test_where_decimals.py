"""Numbers in a condition on pairs: floats that are times, decimals and whole numbers, and delta."""

from __future__ import annotations

from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from bench.hunt.questions import decimals
from coincide import (
    CoincideError,
    ConditionError,
    CorrelateOptions,
    DataError,
    accidental_pair_tables,
    around,
    correlate_tables,
    overlapping,
    spans,
)
from coincide.command_line import run
from coincide.engine.events.float_decimals import TIME_DECIMALS, as_decimals

_MANY = Context(prec=80)
SECONDS = CorrelateOptions(left_unit="s", right_unit="s")
LEFT = pa.table({"t": [1238166017.997], "id": [1]})
RIGHT = pa.table({"t": [1238166018.026], "id": [2]})
WIDE: dict[str, Any] = {
    "within": ("-1s", "1s"), "left_time": "t", "right_time": "t", "options": SECONDS,
}  # fmt: skip


def found(where: Any, left: pa.Table = LEFT, right: pa.Table | None = RIGHT, **more: Any) -> int:
    return correlate_tables(left, right, where=where, **WIDE | more).num_rows


@pytest.mark.parametrize(
    "where",
    [
        "right_t - left_t <= 0.029", "right_t - left_t = 0.029", "left_t - right_t >= -0.029",
        "left_t + 0.029 = right_t", "abs(left_t - right_t) * 2 = 0.058", "left_t > 0",
        "(right_t - left_t) / 2 = 0.0145", "right_t - left_t BETWEEN 0.029 AND 1",
        "right_t - left_t IN (1, 0.029)", "coalesce(left_t, 0) = 1238166017.997",
        "(right_t - left_t) * (right_t - left_t) < 0.00085",
        "CAST(left_t AS DOUBLE) = 1238166017.997", "CAST(left_t AS BIGINT) = 1238166017",
    ],
)  # fmt: skip
def test_times_are_the_decimals_that_they_read_as(where: str) -> None:
    assert found(where) == 1
    assert found(f"NOT ({where})", how="semi") == 0


def test_times_agree_with_the_window(tmp_path: Path) -> None:
    where = "right_t - left_t <= 0.029"
    assert found(None, within=("0s", "29ms")) == 1
    single = [table.set_column(0, "t", table["t"].cast(pa.float32())) for table in (LEFT, RIGHT)]
    assert found("left_t = 1238166000 AND right_t - left_t = 0", *single) == 1
    for name, write in (("csv", csv.write_csv), ("parquet", pq.write_table)):
        paths = [tmp_path / f"{side}.{name}" for side in ("left", "right")]
        for path, table in zip(paths, (LEFT, RIGHT), strict=True):
            write(table, path)
        command = ["join", *map(str, paths), "-o", str(tmp_path / "out.csv"), "--within", "1s"]
        command += ["--left-time", "t", "--right-time", "t", "--unit", "s", "--where", where]
        assert run([*command, "--overwrite", "--engine", "local"]) == 0
        assert csv.read_csv(tmp_path / "out.csv").num_rows == 1


def test_texts_of_float_times_are_refused() -> None:
    with pytest.raises(ConditionError, match="a CAST of double AS STRING is ambiguous"):
        found("CAST(left_t AS STRING) = 'a'")


def test_expressions_of_arrow_have_the_types_of_columns() -> None:
    assert found(pc.field("left_t") > 0) == 1
    assert found(pc.field("right_t") - pc.field("left_t") <= 0.029) == 0
    assert found(pc.field("delta_ns") <= 29_000_000) == 1


def test_floats_as_decimals() -> None:
    values = [
        1238166017.997,
        0.1,
        -3.25,
        0.0,
        1e-7,
        -1.5e-9,
        123456789.12345678,
        1e22,
        5e-324,
        None,
    ]
    read = as_decimals(pa.array(values)).to_pylist()
    assert read == [None if v is None else Decimal(repr(v)).quantize(Decimal("1e-25"), context=_MANY)
                    for v in values]  # fmt: skip
    assert as_decimals(pa.array([float("nan"), float("inf"), 1e30])).null_count == 3
    assert as_decimals(pa.array([0.1, 1e-9, 16777216.0], pa.float32())).to_pylist() == [
        Decimal("0.1"), Decimal("1e-9"), 16777216,
    ]  # fmt: skip
    assert as_decimals(pa.array([], pa.float64())).type == TIME_DECIMALS


def test_delta_is_a_name() -> None:
    counts = {
        how: found("delta_ns = 29000000", how=how) for how in ("inner", "left", "right", "full")
    }
    assert counts == dict.fromkeys(counts, 1)
    none = {how: found("delta_ns = -29000000", how=how) for how in ("left", "right", "full")}
    assert none == {"left": 1, "right": 1, "full": 2}
    assert found("delta_ns > 0", how="anti") == 0
    assert found("delta_ns < 0", LEFT, pa.table({"t": [1238166017.5], "id": [2]})) == 1


def test_delta_of_bare_numbers_and_of_intervals() -> None:
    left, right = pa.table({"t": [10, 20], "id": [0, 1]}), pa.table({"t": [13, 22], "id": [0, 1]})
    times = {"left_time": around("t", 1), "right_time": around("t", 1)}
    asked = {"options": CorrelateOptions(), "within": (-5, 5), "confidence": 0.9, **times}
    assert correlate_tables(left, right, where="delta = 3", **asked).to_pylist() == [
        {"left_id": 0, "right_id": 0}
    ]
    stream = (
        pa.concat_tables([left, right]).drop_columns("id").append_column("id", pa.array(range(4)))
    )
    pairs = correlate_tables(stream, where="delta <= -2", **asked)
    # Each pair once: where the order of times fails, the other one may hold.
    assert {frozenset(row.values()) for row in pairs.to_pylist()} == {
        frozenset({0, 2}), frozenset({1, 3}),
    }  # fmt: skip


def test_delta_is_moved_with_the_right_times() -> None:
    left, right = pa.table({"t": [0, 100], "id": [0, 1]}), pa.table({"t": [10, 110], "id": [0, 1]})
    found = accidental_pair_tables(
        left, right, within=(0, 15), left_time="t", right_time="t", where="delta >= 10",
        shifts=[-97, -103],
    )  # fmt: skip
    assert found.counts == (1, 0)


def test_delta_of_another_unit_is_named() -> None:
    with pytest.raises(ConditionError, match="'delta_us' is called delta_ns there"):
        found("delta_us < 5")
    table = pa.table({"start": [0], "end": [5], "id": [0]})
    with pytest.raises(ConditionError, match="'delta' is not a column of a pair"):
        correlate_tables(
            table, table, overlapping(), where="delta = 0",
            left_time=spans("start", "end"), right_time=spans("start", "end"),
        )  # fmt: skip


PRICES = pa.table({
    "t": [1238166017.997], "p": pa.array([Decimal("123.45")], pa.decimal128(5, 2)), "n": [123],
    "s": pa.array([Decimal("0.5")], pa.decimal32(5, 2)), "f": [0.029], "z": pa.nulls(1),
    "c": pa.DictionaryArray.from_arrays(pa.array([None], pa.int8()), pa.nulls(0)),
})  # fmt: skip
OTHERS = pa.table({
    "t": [1238166018.026], "p": pa.array([Decimal("123.45")], pa.decimal128(38, 2)),
    "b": pa.array([123], pa.uint64()), "z": pa.nulls(1),
    "w": pa.array([Decimal("99999999999999999999999999999999999999")], pa.decimal128(38, 0)),
    "d": pa.array([Decimal("1e-38")], pa.decimal128(38, 38)),
})  # fmt: skip


@pytest.mark.parametrize(
    "where",
    [
        "left_p > 100", "left_p = 123.45", "left_p <> 123", "left_p IN (100, 123.45)",
        "left_p BETWEEN 100 AND 200", "left_p * 2 = 246.9", "abs(left_p) > 1", "-left_p < 0",
        "coalesce(left_p, 0) > 1", "left_p - right_b >= 0", "left_p - right_b = 0.45",
        "left_p - right_p = 0", "right_p * right_p > 15239", "left_p > left_n", "left_s < 1",
        "abs(-left_s) = 0.5", "left_p < 1e300", "100 < left_p", "right_t - left_t = left_f",
        "right_w = 99999999999999999999999999999999999999", "right_w > left_n", "right_d < left_n",
        "right_w < 99999999999999999999999999999999999999.5", "right_d > 0", "right_d < right_w",
        "INTERVAL '1' SECOND * left_s = INTERVAL '0.5' SECOND",
        "INTERVAL '1' SECOND / left_s = INTERVAL '2' SECOND", "left_p / 2 = 61.725",
    ],
)  # fmt: skip
def test_decimals_and_whole_numbers_compare_exactly(where: str) -> None:
    ask = {"left_columns": "t", "right_columns": "t"}
    assert found(where, PRICES, OTHERS, **ask) == 1
    assert found(f"NOT ({where})", PRICES, OTHERS, how="semi", **ask) == 0


@pytest.mark.parametrize(
    "unknown",
    [
        "left_z = right_z", "left_z < left_n", "left_z <> 'a'", "lower(left_z) = 'a'", "NOT left_z",
        "left_z LIKE 'a'", "left_z IN (1, 2)", "left_z BETWEEN 1 AND 2", "left_z * 2 > 1",
        "left_z - right_z = 0", "abs(left_z) = 1", "left_z / 2 = 1", "left_z > left_p",
        "left_c = 'a'", "left_c = left_z", "length(left_z) > 0", "left_z AND TRUE",
        "left_n / 0 = 1", "left_n / 0 <> 1", "left_p / 0 = 1",
    ],
)  # fmt: skip
def test_columns_without_any_value_are_unknown(unknown: str) -> None:
    ask = {"left_columns": "t", "right_columns": "t"}
    assert found(f"({unknown}) IS NULL", PRICES, OTHERS, **ask) == 1
    known = f"coalesce(left_z, left_p) = 123.45 AND ({unknown})"
    assert found(known, PRICES, OTHERS, how="semi", **ask) == 0


@pytest.mark.parametrize("seed", range(60))
def test_drawn_times(seed: int) -> None:
    assert decimals.wrong(np.random.default_rng(seed)) is None


CASTS = pa.table(
    {
        "id": range(6),
        "t": [0] * 6,
        "float": [0.1, 1.005, -1.005, 12.344999, 1e-300, None],
        "text": ["0.1", " 1.005", "-1.005 ", "12.344999", "0", None],
        "whole": [0, 1, -1, 12, 0, None],
        "decimal": pa.array(
            [Decimal(w) for w in ("0.1", "1.005", "-1.005", "12.344999", "0")] + [None]
        ),
    }
)


@pytest.mark.parametrize("column", ["float", "text", "decimal", "whole"])
def test_casts_to_decimals_are_exact(column: str) -> None:
    """To the nearest, halves away from zero, of the decimal that a float reads as."""

    def ids(where: str) -> list[int]:
        where = where.replace("CAST", f"CAST(left_{column} AS DECIMAL(4, 2))")
        close: dict[str, Any] = {"within": (0, 0), "left_time": "t", "right_time": "t"}
        semi = correlate_tables(CASTS, CASTS, where=where, how="semi", **close)
        return list(semi["left_id"].to_pylist())

    of_whole = column == "whole"
    wanted = ["0", "1", "-1", "12", "0"] if of_whole else ["0.10", "1.01", "-1.01", "12.34", "0.00"]
    for i, value in enumerate(wanted):
        assert ids(f"CAST = {value} AND left_id = {i}") == [i]
    assert ids("CAST IS NULL") == [5]
    if not of_whole:
        # As a float the sum is 0.30000000000000004.
        assert ids("CAST + 0.1 + 0.1 = 0.3") == [0]
    with pytest.raises(DataError, match="where cannot be computed for some pairs"):
        ids(f"cast(left_{column} AS DECIMAL(2, 1)) > 0")


@pytest.mark.parametrize(
    "kind", [pa.decimal128(5, 3), pa.float64(), pa.string(), pa.float32()], ids=str
)
def test_casts_that_round_up_to_another_digit(kind: pa.DataType) -> None:
    """Whose rows come before ones that fit: Arrow makes 0 of a decimal that outgrows its type."""
    values = ["99.999", "9.99", "5"]
    column = (
        pa.array([*map(Decimal, values)], kind) if pa.types.is_decimal(kind) else pa.array(values)
    )
    table = pa.table({"id": range(3), "t": [0] * 3, "c": column.cast(kind)})
    asked: dict[str, Any] = {
        "within": (0, 0), "left_time": "t", "right_time": "t", "how": "semi", "left_columns": "id",
    }  # fmt: skip

    def ids(where: str, rows: pa.Table = table) -> list[int]:
        return list(correlate_tables(rows, rows, where=where, **asked)["left_id"].to_pylist())

    assert ids("CAST(left_c AS DECIMAL(4, 1)) = 100") == [0]
    assert ids("CAST(left_c AS DECIMAL(3, 1)) = 10.0", table.slice(1)) == [1]
    assert ids("CAST(left_c AS DECIMAL(3)) < 11") == [1, 2]
    with pytest.raises(DataError, match="where cannot be computed for some pairs"):
        ids("CAST(left_c AS DECIMAL(4, 2)) < 1")


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("1 = 'a'", "1 = 'a' has no value"),
        ("NOT NULL", "NOT takes what is true or false"),
        ("left_c = CAST(0.999 AS DECIMAL(2, 2))", "has no value"),
        ("CAST(left_c AS DECIMAL(0)) = 0", r"CAST takes .* DECIMAL\(10, 2\) \(found DECIMAL\(0\)"),
        ("left_at OR left_t = 0", "such as left_at = TIMESTAMP '2024-01-31T12:00:00Z'"),
        ("left_at > 5", "such as TIMESTAMP '2024-01-31T12:00:00Z'"),
        ("left_day IN (DATE '2024-01-31', 'x')", r"\(found left_day: date32\[day\], 'x': string"),
        ("left_name || 'a' = 'xa'", "Write OR, if that is meant; texts are not joined"),
    ],
)
def test_slips_are_told(where: str, told: str) -> None:
    at = pa.array([0], pa.timestamp("us", "UTC"))
    table = pa.table({
        "id": [0], "t": [0], "c": pa.array([1.5]), "at": at, "day": pa.array([0], pa.date32()),
        "name": ["x"],
    })  # fmt: skip
    with pytest.raises(CoincideError, match=told):
        correlate_tables(table, table, within=(0, 0), left_time="t", right_time="t", where=where)
