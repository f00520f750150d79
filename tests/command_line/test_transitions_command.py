"""`coincide transitions`: those of tables, from files, on both engines."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from coincide import TransitionReport, transition_tables
from coincide.command_line import run
from tests.helpers.rows import in_order
from tests.helpers.transition_cases import GARAGE, event_table

EVENTS = event_table(GARAGE, pa.timestamp("s", "UTC"))
WITHIN = ["--within", "3min"]
EXACT = ["--time", "min_time"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    pq.write_table(EVENTS, tmp_path / "events.parquet")
    (tmp_path / "out").mkdir()
    return tmp_path


def transitions(
    place: Path, *options: str, engine: str = "local", name: str = "events.parquet"
) -> int:
    output = str(place / "out" / "found.parquet")
    return run(["transitions", str(place / name), "-o", output, "--engine", engine, *options])


def result(place: Path) -> pa.Table:
    return ds.dataset(str(place / "out" / "found.parquet"), format="parquet").to_table()


def test_the_transitions_of_tables_are_written(place: Path, capsys: Any) -> None:
    assert transitions(place, *WITHIN, *EXACT, "--json") == 0
    wanted = transition_tables(EVENTS, within="3min", time="min_time")
    assert result(place).equals(wanted)
    told = json.loads(capsys.readouterr().out)
    assert told["found"] == {"O>I": 1, "I>O": 2, "O>!I": 2, "I>!O": 3}
    assert (told["events"], told["undecided"], told["rows"]) == (10, 2, 8)


def test_the_summary_in_words(place: Path, capsys: Any) -> None:
    assert (
        transitions(place, *WITHIN, "--confidence", "0.5", "--until", "1970-01-01T01:00:00Z") == 0
    )
    told = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    told = {name.strip(): words.strip() for name, words in told.items()}
    assert told["events"] == "10 rows"
    assert (told["I>!O"], told["undecided"]) == ("4", "0")
    assert "out/found.parquet" in told["output"]


def test_the_summary_says_what_decides_last_events(place: Path, capsys: Any) -> None:
    cure = "a later until, such as the time of the last reading, decides them"
    assert transitions(place, *WITHIN, *EXACT) == 0
    assert f"2; {cure.replace('until', '--until')}\n" in capsys.readouterr().out
    report = TransitionReport()
    transition_tables(EVENTS, within="3min", time="min_time", report=report)
    assert f"2; {cure}" in str(report.summary())


def test_csv_and_times_as_numbers(place: Path) -> None:
    table = pa.table(
        {"query_id": ["007"] * 2, "stream_id": [1, 1], "event": ["I", "O"], "at": [5, 9]}
    )
    csv.write_csv(table, place / "events.csv")
    options = ["--unit", "s", "--time", "at", "--until", "1000"]
    assert transitions(place, *WITHIN, *options, name="events.csv") == 0
    assert result(place)["transition"].to_pylist() == ["I>O", "O>!I"]
    assert result(place)["query_id"].to_pylist() == ["007"] * 2


def test_no_events_at_all(place: Path) -> None:
    pq.write_table(
        pa.table({name: pa.nulls(0) for name in EVENTS.column_names}), place / "events.parquet"
    )
    assert transitions(place, *WITHIN) == 0
    assert result(place).schema.field("min_time").type == pa.timestamp("us")
    assert not result(place).num_rows


@pytest.mark.parametrize(
    ("kind", "known", "until"),
    [
        (pa.timestamp("ns"), "1970-01-01T00:00:00.000000058", 58),
        (pa.timestamp("ns", "UTC"), "1970-01-01T01:00:00.000000058+01:00", 58),
        (pa.duration("ms"), "9ms", 9),
        (pa.duration("ns"), "0.009us", 9),
        (pa.decimal128(20, 9), "1700000000.123456789", 1700000000123456789),
    ],
)
def test_no_digit_of_until_is_lost(place: Path, kind: pa.DataType, known: str, until: int) -> None:
    """An event is a stay if its dwell time ends before: one step later it is no stay."""
    unit = "ns" if kind == pa.duration("ns") or not pa.types.is_duration(kind) else "ms"
    for step, rows in ((2, 1), (1, 0)):
        ticks = pa.array([until - step], pa.int64())
        is_decimal = pa.types.is_decimal(kind)
        at = pa.array([Decimal(until - step).scaleb(-9)], kind) if is_decimal else ticks.view(kind)
        table = pa.table({"query_id": [1], "stream_id": [1], "event": ["I"], "at": at})
        pq.write_table(table, place / "events.parquet")
        options = ["--within", f"1{unit}", "--time", "at", "--until", known, "--overwrite"]
        options += [] if pa.types.is_duration(kind) else ["--tick", "ns"]
        assert transitions(place, *options, *(["--unit", "s"] if is_decimal else [])) == 0
        assert result(place).num_rows == rows


def test_until_goes_with_the_times(place: Path, capsys: Any) -> None:
    fine = "1970-01-01T01:00:00.0000001Z"
    assert transitions(place, *WITHIN, *EXACT, "--until", fine) == 2
    assert f"--until is finer than a tick of 1 us (found '{fine[:10]} " in capsys.readouterr().err
    lasting = EVENTS.set_column(
        3, "min_time", EVENTS["min_time"].cast(pa.int64()).cast("duration[s]")
    )
    pq.write_table(lasting, place / "events.parquet")
    assert transitions(place, *WITHIN, *EXACT, "--until", "9") == 2
    assert "events.min_time, a duration, below" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--within", "soon"], "soon"),
        ([*WITHIN, "--until", "noon"], "--until takes a number, a time"),
        ([*WITHIN, "--until", "12"], "--until must be a time like those of events.max_time"),
        ([*WITHIN, "--time", "a,b,c"], "time must be the name of a column"),
        ([*WITHIN, "--query", "garage"], "events has no column 'garage'"),
        ([*WITHIN, "--conf", "a=b"], "--conf has no effect with --engine local"),
        ([*WITHIN, "--repeated", "both"], "repeated must be one of"),
    ],
)
def test_bad_use_is_one_line(place: Path, capsys: Any, options: list[str], words: str) -> None:
    assert transitions(place, *options) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert not list((place / "out").iterdir())


def test_advice_names_options(place: Path, capsys: Any) -> None:
    wide = EVENTS.set_column(3, "min_time", pa.array([0] * 10, pa.timestamp("s", "UTC")))
    pq.write_table(wide, place / "events.parquet")
    assert transitions(place, *WITHIN) == 2
    assert "for example --confidence 0.9. Above" in capsys.readouterr().err
    twice = pa.concat_tables([EVENTS, EVENTS])
    pq.write_table(twice, place / "events.parquet")
    assert transitions(place, *WITHIN) == 2
    assert "with --repeated first or --repeated last" in capsys.readouterr().err


@pytest.mark.spark
def test_spark_writes_the_same_rows(place: Path, command_spark: Any, capsys: Any) -> None:
    options = [*WITHIN, *EXACT, "--until", "1970-01-01T01:00:00Z", "--json"]
    assert transitions(place, *options, engine="spark") == 0
    said = capsys.readouterr()
    assert said.err == ""
    end = dt.datetime(1970, 1, 1, 1, tzinfo=dt.UTC)
    wanted = transition_tables(EVENTS, within="3min", time="min_time", until=end)
    assert in_order(result(place)) == in_order(wanted)
    told = json.loads(said.out)
    assert told["found"] == {"O>I": 1, "I>O": 2, "O>!I": 3, "I>!O": 4}
    assert (told["events"], told["undecided"], told["rows"]) == (10, 0, 10)
