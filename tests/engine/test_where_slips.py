"""Slips in conditions on pairs: each is named, with what to write, and never in Arrow's words."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from coincide import CoincideError, ConditionError, SchemaError, correlate_tables
from coincide.command_line import run

TABLE = pa.table(
    {
        "id": [1],
        "at": pa.array([0]),
        "Amt": [2.5],
        "n": [1],
        "s": ["a"],
        "ok": [True],
        "day": [date(2024, 1, 1)],
        "t": [datetime(2024, 1, 1)],
        "z": [datetime(2024, 1, 1, tzinfo=UTC)],
        "d": pa.array([Decimal("1.10")], pa.decimal128(10, 2)),
        "list": [[1]],
    }
)
ANY: dict[str, Any] = {"within": (0, 0), "left_time": "at", "right_time": "at"}


def refused(where: Any) -> CoincideError:
    with pytest.raises(CoincideError) as error:
        correlate_tables(TABLE, TABLE, where=where, **ANY)
    assert "kernel" not in str(error.value)
    assert "\n" not in str(error.value)
    return error.value


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("left_n =< right_n", "'=<' is not a sign of SQL. Write <=."),
        ("left_n => right_n", "'=>' is not a sign of SQL. Write >=."),
        ("left_n =! 1", "'=!' is not a sign of SQL. Write <>."),
        ("left_n ! = 1", "'!=' is not a sign of SQL. Write <>."),
        ("left_n ≥ 1", "'≥' is not a sign of SQL. Write >=."),
        ("left_ok && right_ok", "'&&' is not a sign of SQL. Write AND."),
        ("left_ok || right_ok", "'||' is not a sign of SQL. Write OR, if that is meant;"),
        ('left_s = "O\'Neil"', "Write 'O''Neil' if it is a text, and `O'Neil` if it is a name."),
        ('"left_s" = \'a\'', "\" does not quote texts. Write 'left_s' if it is a text"),
        ("left_s = “a”", "“ does not quote texts. Write 'a' if it is a text"),
        ("left_s = ‘O’Neil’", "‘ does not quote texts. Write 'O’Neil' if it is a text"),
        ("abs() = 1", "abs takes 1 argument (found 0). Write abs(left_...)."),
        ("lower(left_s, 'a') = 1", "lower takes 1 argument (found 2)."),
        ("coalesce() = 1", "coalesce takes 1 argument or more (found 0)."),
        ("sqrt(left_n) = 1", "the function sqrt is unknown. Use comparisons, AND"),
        ("left_Amt - right_Amt < INTERVAL '1' SECOND", "double and duration[us] are not two durations."
         " Write the duration as a number in the unit of left_Amt - right_Amt."),
        ("left_t - right_t < 1", "Write the number as INTERVAL '5' SECOND, or divide the duration by"),
        ("CAST(left_Amt AS DECIMAL) = 2.5", "and DECIMAL(10, 2) (found DECIMAL)."),
        ("CAST(left_Amt AS DECIMAL(39, 2)) = 2.5", "and DECIMAL(10, 2) (found DECIMAL(39, 2))."),
        ("CAST(left_ok AS DECIMAL(9, 2)) = 1", "is ambiguous. Compare it with TRUE."),
    ],
)  # fmt: skip
def test_what_is_written_wrongly(where: str, words: str) -> None:
    error = refused(where)
    assert isinstance(error, ConditionError)
    assert words in str(error)
    assert str(error).startswith(f"where={where!r}: ")


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("1 < left_n < 3", "1 < left_n < 3 has no value (found 1 < left_n: bool, 3: int64). Write 1 <"
         " left_n AND left_n < 3."),
        ("left_t > '2024-01-01'", "'2024-01-01': string). Write TIMESTAMP '2024-01-01'."),
        ("left_z > '2024-01-01'", "such as TIMESTAMP '2024-01-31T12:00:00Z'."),
        ("left_t > 'soon'", "such as TIMESTAMP '2024-01-31T12:00:00'."),
        ("left_t = left_s", "such as TIMESTAMP '2024-01-31T12:00:00'."),
        ("left_day = '2024-01-01'", "Write DATE '2024-01-01'."),
        ("left_day = left_s", "Write CAST(left_s AS DATE)."),
        ("left_z > left_t", "found left_z: timestamp[us, tz=UTC], left_t: timestamp[us]). Give both an"),
        ("left_z > TIMESTAMP '2024-01-01'", "TIMESTAMP '2024-01-01': timestamp[us]). Give both an offset"),
        ("left_t - right_t > '1s'", "Write INTERVAL '5' SECOND."),
        ("left_t + 1 > right_t", "left_t + 1 has no value (found left_t: timestamp[us], 1: int64). Add or"),
        ("left_t + right_t > left_t", "Add a duration, such as INTERVAL '5' SECOND, or subtract"),
        ("left_t * 2 > left_t", "Use numbers with *."),
        ("left_t = 1", "Compare it with a time, such as TIMESTAMP"),
        ("left_s > 1", "Write '1', or CAST(left_s AS DOUBLE)."),
        ("left_s = right_n", "Write CAST(left_s AS DOUBLE)."),
        ("left_s + 1 > 2", "left_s + 1 has no value (found left_s: string, 1: int64). Write CAST(left_s"),
        ("left_n IN (1, 'a')", "Write a number, without quotes, or CAST(left_n AS STRING)."),
        ("left_n BETWEEN 1 AND 'b'", "Write a number, without quotes, or"),
        ("left_d = '1.10'", "found left_d: decimal(10, 2), '1.10': string). Write a number, without"),
        ("coalesce(left_n, 'a') = 1", "COALESCE(left_n, 'a') has no value"),
        ("left_ok = 1", "Write left_ok alone, or NOT left_ok."),
        ("left_ok = 'true'", "Write left_ok alone, or NOT left_ok."),
        ("left_ok + 1 = 2", "Use numbers with +."),
        ("NOT left_n", "NOT takes what is true or false (found left_n: int64). Compare it with something,"
         " such as left_n = 1."),
        ("left_ok AND left_s", "such as left_s = 'a'."),
        ("left_n LIKE 'a%'", "LIKE takes a text (found left_n: int64). Write CAST(left_n AS STRING)."),
        ("lower(left_Amt) = 'a'", "lower takes a text (found left_Amt: double). Use it for a text."),
        ("abs(left_s) = 1", "abs takes a number (found left_s: string). Write CAST(left_s AS DOUBLE)."),
        ("-left_t = left_t", "- takes a number (found left_t: timestamp[us]). Use it for a number."),
        ("left_list = 1", "found left_list: list<"),
        ("CAST(left_list AS STRING) = 'a'", "Compare it as it is, without CAST."),
        ("CAST('x' AS INT) = left_n", "AS INT) has no value (found 'x': string). Correct the text."),
        ("LEFT_AMT > 1", "no column 'LEFT_AMT' (found 'left_Amt'). Write left_Amt: upper and lower case"),
        ("left_amt > 1", "no column 'left_amt' (found 'left_Amt'). Write left_Amt: upper and lower case"),
        (pc.field("left_s") > 1, "(greater takes no string, int"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_columns(where: Any, words: str) -> None:
    error = refused(where)
    assert isinstance(error, SchemaError)
    assert words in str(error)


@pytest.mark.parametrize(
    "where", ["left_s = '\"a\"'", "left_s = '=<'", "left_s = '||'", "left_n == 2"]
)
def test_what_is_no_slip(where: str) -> None:
    with pytest.warns(UserWarning, match="no pair is found"):
        assert correlate_tables(TABLE, TABLE, where=where, **ANY).num_rows == 0


def test_on_the_command_line(tmp_path: Any, capsys: Any) -> None:
    (tmp_path / "t.csv").write_text("id,t,at\n1,0,2024-01-01\n")
    words = [
        "join",
        str(tmp_path / "t.csv"),
        str(tmp_path / "t.csv"),
        "-o",
        str(tmp_path / "o.csv"),
    ]
    words += ["--within", "0", "0", "--left-time", "t", "--right-time", "t", "--engine", "local"]
    for where, said in (
        (
            "left_at > 'x'",
            "coincide: --where does not fit these columns: left_at > 'x' has no value",
        ),
        ("LEFT_ID = 1", "coincide: --where: a pair has no column 'LEFT_ID' (found 'left_id')."),
    ):
        assert run([*words, "--where", where]) == 2
        assert said in capsys.readouterr().err
