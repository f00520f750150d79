"""Keys: with another name on the right, integers of other widths, texts in another case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from coincide import ConditionError, SchemaError, correlate_tables
from coincide.command_line import run
from coincide.engine.join.text_options import names
from tests.helpers.rows import pair_ids

ANY: dict[str, Any] = {"within": 10, "confidence": 1.0, "left_time": "t", "right_time": "t"}


def sides(left: pa.Array, right: pa.Array, name: str = "sta") -> tuple[pa.Table, pa.Table]:
    """All at one time: keys alone tell which are pairs."""
    return (
        pa.table({"id": range(len(left)), "t": [0] * len(left), "station": left}),
        pa.table({"id": range(len(right)), "t": [0] * len(right), name: right}),
    )


def pairs(*tables: pa.Table, **given: Any) -> list[tuple[int, int]]:
    found = correlate_tables(*tables, **{**ANY, **given})
    return pair_ids(found)


def test_another_name_on_the_right() -> None:
    left, right = sides(pa.array(["a", "b", None]), pa.array(["b", "a", "a", None]))
    # A column of right that is called as the key of left is one like any other.
    right = right.append_column("station", pa.array([7, 8, 9, 10]))
    found = correlate_tables(
        left, right, by=[("station", "sta")], right_columns=("id", "station", "sta"), **ANY
    )
    assert found.column_names == ["station", "left_id", "right_id", "right_station", "right_sta"]
    assert sorted(map(tuple, (row.values() for row in found.to_pylist()))) == [
        ("a", 0, 1, 8, "a"),
        ("a", 0, 2, 9, "a"),
        ("b", 1, 0, 7, "b"),
    ]
    lonely = correlate_tables(left, right, by=[("station", "sta")], how="anti", **ANY)
    assert lonely["station"].to_pylist() == [None]


WIDTHS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64()]


@pytest.mark.parametrize("kind", WIDTHS)
@pytest.mark.parametrize("other", WIDTHS)
def test_integers_are_equal_by_value(kind: pa.DataType, other: pa.DataType) -> None:
    def values(kind: pa.DataType) -> list[int | None]:
        bits, signed = kind.bit_width, pa.types.is_signed_integer(kind)
        most = 2 ** (bits - signed) - 1
        return [0, 5, most, -1 - most if signed else 1, -1 if signed else 2**bits - 1, None]

    own, others = values(kind), values(other)
    expected = [
        (i, j) for i, a in enumerate(own) for j, b in enumerate(others) if a is not None and a == b
    ]
    left, right = sides(pa.array(own, kind), pa.array(others, other), "station")
    assert pairs(left, right, by="station") == expected
    found = correlate_tables(left, right, by="station", **ANY)
    assert found.schema.field("station").type == kind


@pytest.mark.parametrize("kind", [pa.decimal32(5, 1), pa.decimal64(12, 1), pa.decimal256(50, 1)])
def test_decimals_of_any_width(kind: pa.DataType) -> None:
    own, others = (
        pa.array(each, pa.decimal128(5, 1)).cast(kind) for each in ([1, 2, None], [2, 2])
    )
    assert pairs(*sides(own, others, "station"), by="station") == [(1, 0), (1, 1)]


def test_encoded_columns_are_what_they_encode() -> None:
    runs = pa.RunEndEncodedArray.from_arrays([2, 3], ["a", "b"])
    left, right = sides(runs, pa.array(["b", "a"], pa.string_view()), "station")
    assert pairs(left, right, by="station") == [(0, 1), (1, 1), (2, 0)]
    right = right.append_column("told", pa.RunEndEncodedArray.from_arrays([1, 2], [7, 8]))
    found = correlate_tables(left, right, by="station", right_columns="told", **ANY)
    assert found.schema.field("right_told").type == pa.int64()
    assert sorted(found["right_told"].to_pylist()) == [7, 8, 8]


def test_letters_of_another_case_are_other_letters() -> None:
    texts = ["ISTA", "Ista", "ß", "SS", "\u212a", "k", None]
    left, right = sides(pa.array(texts), pa.array(texts, pa.large_string()))
    by = [("station", "sta")]
    assert pairs(left, right, by=by) == [(i, i) for i in range(6)]
    # Who wants them equal joins by a column in lower case.
    small = [side.set_column(side.column_names.index(name), name, pc.utf8_lower(side[name]))
             for side, name in ((left, "station"), (right, "sta"))]  # fmt: skip
    assert len(pairs(*small, by=by)) == 10


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"by": [("a", "b", "c")]}, ConditionError, r"by must be a column name or .* \(left, right\)"),
        ({"by": [3]}, ConditionError, "by must be a column name"),
        ({"by": [("station", "t")]}, SchemaError, "'station' is string on the left and int64 on the right"),
        ({"by": [("station", "sta")]}, SchemaError, r"no column 'sta' .* use by=\[\('LEFT', 'RIGHT'\)\]"),
    ],
)  # fmt: skip
def test_what_makes_no_sense(given: dict[str, Any], error: Any, words: str) -> None:
    left, right = sides(pa.array(["a"]), pa.array(["a"]), "station")
    with pytest.raises(error, match=words):
        correlate_tables(left, right, **{**ANY, **given})


def test_one_stream_has_its_keys_once() -> None:
    left, _ = sides(pa.array(["a"]), pa.array(["a"]))
    with pytest.raises(ConditionError, match="both sides of one stream have the same keys"):
        correlate_tables(left, within=1, confidence=0.5, left_time="t", by=[("station", "sta")])


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_on_the_command_line(tmp_path: Path, capsys: Any, ending: str) -> None:
    import pyarrow.csv as csv

    left, right = sides(pa.array(["a", "B"]), pa.array(["B", "a", "a"]))
    write = csv.write_csv if ending == "csv" else pq.write_table
    for name, table in (("left", left), ("right", right)):
        write(table, tmp_path / f"{name}.{ending}")
    inputs = [str(tmp_path / f"{name}.{ending}") for name in ("left", "right")]
    output = tmp_path / "out.parquet"
    options = [
        "--left-time",
        "t",
        "--right-time",
        "t",
        "--mutual-deadline",
        "1",
        "--confidence",
        "1",
    ]
    keys = ["--by", "station=sta", "--engine", "local"]
    assert run(["join", *inputs, "-o", str(output), *options, *keys]) == 0
    found = pq.read_table(output)
    assert found.column_names == ["station", "left_id", "right_id"]
    assert found.num_rows == 3
    keys[1] = "station="
    assert run(["join", *inputs, "-o", str(tmp_path / "none"), *options, *keys]) == 2
    assert "--by takes names, or LEFT=RIGHT" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        ('a,q"q', ["a", 'q"q']),
        ('q"q,a', ['q"q', "a"]),
        ('"a"b,c"d', ['"a"b', 'c"d']),
        ('a,"b', ["a", '"b']),
        ('"a,b", c', ["a,b", "c"]),
        ('"a""b"', ['a"b']),
    ],
)
def test_quotes_within_names_hide_no_comma(text: str, listed: list[str]) -> None:
    assert names("--by", [text]) == listed


def test_names_with_signs_stand_in_quotes(tmp_path: Path, capsys: Any) -> None:
    left = pa.table({"id": [1, 2], "t": [0, 0], "a=b,c": ["x", "y"], 'say "so"': [1, 1]})
    right = left.rename_columns({"a=b,c": "d,e"})
    pq.write_table(left, tmp_path / "l.parquet")
    pq.write_table(right, tmp_path / "r.parquet")

    def joined(*options: str) -> int:
        return run(
            ["join", str(tmp_path / "l.parquet"), str(tmp_path / "r.parquet"), "-o", str(tmp_path / "o"),
             "--left-time", "t", "--right-time", "t", "--mutual-deadline", "1", "--confidence", "1",
             "--engine", "local", "--overwrite", "--output-format", "parquet", *options]
        )  # fmt: skip

    by = ' "a=b,c" = "d,e" , "say ""so""" '
    assert joined("--by", by, "--left-columns", 'id,"a=b,c"', "--right-columns", '"d,e"') == 0
    assert pq.read_table(tmp_path / "o").sort_by("left_id").to_pylist() == [
        {"a=b,c": name, 'say "so"': 1, "left_id": i, "left_a=b,c": name, "right_d,e": name}
        for i, name in ((1, "x"), (2, "y"))
    ]
    assert joined("--by", "a=b,c") == 2
    assert "no column 'a'" in capsys.readouterr().err
    assert joined("--by", "a=b=c") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "--by takes names, or LEFT=RIGHT for a key with another" in said
