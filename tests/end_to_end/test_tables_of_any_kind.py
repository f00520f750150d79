"""What all functions of tables take as a table: paths of files of any format, and lists of dicts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

import coincide as c
from coincide import DataError, SchemaError
from coincide.engine.events.frames import arrow_table

EVENTS = pa.table(
    {"id": [1, 2, 3], "t": [0.5, 5.25, 7.125], "key": ["007", "7", "7"], "x": [0.5, 1.25, 9.0]}
)
READINGS = EVENTS.rename_columns(["row", "time", "stream_id", "value"])
QUERIES = pa.table({"query_id": [1, 2], "lower": [0.0, 1.0], "upper": [1.0, 10.0]})
CROSSINGS = pa.table(
    {
        "query_id": [1, 1, 2], "stream_id": ["a", "a", "a"], "event": ["I", "O", "I"],
        "min_time": [0, 10, 10], "max_time": [0, 10, 10],
    }
)  # fmt: skip
SECONDS: Any = c.CorrelateOptions(unit="s")
NEAR: Any = {
    "within": "2s",
    "confidence": 1.0,
    "left_time": "t",
    "right_time": "t",
    "options": SECONDS,
}
CAUSES = c.CausalityCondition((c.Temporal("0s", "3s"), c.Spatial(20.0)))
BORDERS: Any = {"options": c.BorderOptions(unit="s", first="outside")}


def streamed(left: Any, right: Any) -> pa.Table:
    stream = c.stream_tables(
        c.TimingCondition(c.mutual_deadline("2s"), 1.0), left_delay=0, right_delay=0, left_time="t",
        right_time="t", by="key", options=SECONDS,
    )  # fmt: skip
    found = [stream.push("left", left), stream.push("right", right), stream.flush()]
    return pa.concat_tables(each for each in found if each.num_columns)


OPERATORS: dict[str, tuple[Callable[..., pa.Table], tuple[pa.Table, ...]]] = {
    "correlate_tables": (lambda a, b: c.correlate_tables(a, b, by="key", **NEAR), (EVENTS, EVENTS)),
    "every column": (
        lambda a, b: c.correlate_tables(a, b, left_columns="*", **NEAR), (EVENTS, EVENTS)
    ),
    "stream_tables": (streamed, (EVENTS, EVENTS)),
    "causality_tables": (
        lambda a, b: c.causality_tables(
            a, b, CAUSES, cause_time="t", effect_time="t", cause_place=("x",), effect_place=("x",),
            options=SECONDS,
        ),
        (EVENTS, EVENTS),
    ),
    "clusters": (
        lambda a: c.clusters(a, CAUSES, time="t", place=("x",), options=SECONDS), (EVENTS,)
    ),
    "border_crossing_tables": (
        lambda a, b: c.border_crossing_tables(a, b, **BORDERS), (READINGS, QUERIES)
    ),
    "inside_tables": (lambda a, b: c.inside_tables(a, b, **BORDERS), (READINGS, QUERIES)),
    "transition_tables": (
        lambda a: c.transition_tables(a, within=20, confidence=0.9, until=100), (CROSSINGS,)
    ),
}  # fmt: skip


def as_parquet(table: pa.Table, folder: Path) -> Any:
    pq.write_table(table, folder / "a.parquet")
    return folder / "a.parquet"


def as_glob(table: pa.Table, folder: Path) -> Any:
    for i in range(table.num_rows):
        pq.write_table(table.slice(i, 1), folder / f"{i}.parquet")
    return str(folder / "*.parquet")


def as_paths(table: pa.Table, folder: Path) -> Any:
    with pa.ipc.new_file(folder / "a.arrow", table.schema) as writer:
        writer.write_table(table)
    return [folder / "a.arrow"]


def as_csv(table: pa.Table, folder: Path) -> Any:
    csv.write_csv(table, folder / "a.csv")
    return str(folder / "a.csv")


def as_dicts(table: pa.Table, folder: Path) -> Any:
    return table.to_pylist()


def as_arrays(table: pa.Table, folder: Path) -> Any:
    return {name: table[name].to_numpy() for name in table.column_names}


def as_lists(table: pa.Table, folder: Path) -> Any:
    return {name: tuple(values) for name, values in table.to_pydict().items()}


GIVEN = [as_parquet, as_glob, as_paths, as_csv, as_dicts, as_arrays, as_lists]


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("name", OPERATORS)
def test_the_answer_is_that_of_tables(name: str, given: Any, tmp_path: Path) -> None:
    operator, tables = OPERATORS[name]
    folders = [tmp_path / str(i) for i in range(len(tables))]
    for folder in folders:
        folder.mkdir()
    found = operator(*map(given, tables, folders))
    expected = operator(*tables)
    assert found.equals(expected)
    assert expected.num_rows


def test_paths_that_name_nothing() -> None:
    with pytest.raises(DataError, match=r"left: nothing\.parquet does not exist"):
        c.correlate_tables("nothing.parquet", EVENTS, **NEAR)
    with pytest.raises(SchemaError, match=r"a list of dicts, or the path of files .found int"):
        c.correlate_tables(3, EVENTS, **NEAR)


def test_arrays_of_all_kinds() -> None:
    """Units of time that Arrow does not know, other byte orders, masks, columns of frames."""
    hours = np.array(["2026-03-01T08", "2026-03-01T09"], "M8[h]")
    start = pa.scalar(hours[0].astype("M8[s]"), pa.timestamp("s"))
    for given, expected in (
        (hours, [start.as_py(), start.as_py() + timedelta(hours=1)]),
        (np.array([1, 2], ">i8"), [1, 2]),
        (np.arange(4)[::2], [0, 2]),
        (np.ma.masked_array([1, 2], [False, True]), [1, None]),
        (pd.Series([1, None], dtype="Int64"), [1, None]),
        (pl.Series([3, 4]), [3, 4]),
        (pa.chunked_array([[5], [6]]), [5, 6]),
        (range(2), [0, 1]),
    ):
        found = arrow_table("left", {"t": given, "other": ["not", "needed", "at all"]}, ["t"])
        assert found["t"].to_pylist() == expected
    zoned = pd.Series(pd.to_datetime(["2026-03-01"]).tz_localize("Europe/Rome"))
    assert arrow_table("left", {"t": zoned}, ["t"])["t"].type.tz == "Europe/Rome"


def test_dicts_that_are_no_columns() -> None:
    for given, words in (
        ({"t": np.zeros((2, 2))}, r"one dimension, or a list .found the shape \(2, 2\)"),
        ({"t": "2026"}, "one dimension, or a list .found str"),
        ({"t": [1, 2], "key": ["a"]}, "as many values .found 2 of 't', 1 of 'key'"),
    ):
        with pytest.raises(SchemaError, match=words):
            c.correlate_tables(given, EVENTS, by="key", **NEAR)


def pushed(make: Callable[[], Any], *tables: Any) -> Any:
    monitor = make()
    for table in tables:
        found = monitor.push(table)
    return found


def test_a_change_of_types_names_the_columns_and_both_types() -> None:
    readings = READINGS.to_pylist()
    monitors: list[tuple[Callable[[], Any], Any, str, str]] = [
        (lambda: c.BorderMonitor(QUERIES, **BORDERS), READINGS, "stream_id",
         "stream_id is int64 and was string"),
        (lambda: c.TransitionMonitor(within=5, confidence=0.9), CROSSINGS, "stream_id",
         "stream_id is int64 and was string"),
        (lambda: c.WindowedCausality(
            CAUSES, time="t", place=("x",), columns="key", options=c.WindowOptions(8, unit="s")),
         EVENTS, "key", "key is int64 and was string"),
    ]  # fmt: skip
    for make, table, name, words in monitors:
        at = table.column_names.index(name)
        other = table.set_column(at, name, pa.array([1] * table.num_rows))
        with pytest.raises(SchemaError, match=words):
            pushed(make, table, other)
    changed = READINGS
    for name in ("time", "value"):
        at = changed.column_names.index(name)
        changed = changed.set_column(at, name, pa.array([1, 2, 3]))
    with pytest.raises(
        SchemaError, match=r"first push: time is int64 and was double. Cast them\.$"
    ):
        pushed(lambda: c.BorderMonitor(QUERIES, **BORDERS), READINGS, changed)
    unknown = [{**readings[-1], "time": 9.5, "value": None}]
    assert pushed(lambda: c.BorderMonitor(QUERIES, **BORDERS), readings, [], unknown).num_rows == 0


CAUSAL = c.CausalityCondition((c.Temporal("0s", "3s"),))
WINDOW = c.WindowOptions(8, unit="s")
MONITORS: dict[str, tuple[Callable[[], Any], pa.Table, str]] = {
    "borders": (lambda: c.BorderMonitor(QUERIES, **BORDERS), READINGS, "time"),
    "late borders": (lambda: c.BorderMonitor(QUERIES, delay="1s", **BORDERS), READINGS, "time"),
    "transitions": (
        lambda: c.TransitionMonitor(within="5s", confidence=0.9, options=SECONDS),
        pa.table(
            {
                "query_id": [1, 1], "stream_id": ["a", "a"], "event": ["I", "O"],
                "min_time": [0.5, 9.5], "max_time": [0.5, 9.5],
            }
        ),
        "max_time",
    ),
    "window": (
        lambda: c.WindowedCausality(CAUSAL, time="t", columns="id", options=WINDOW), EVENTS, "t"
    ),
    "stream": (
        lambda: c.stream_tables(
            c.TimingCondition(c.mutual_deadline("2s"), 1.0), left_delay=0, left_time="t",
            left_columns="id", right_columns="id", options=SECONDS,
        ),
        EVENTS, "t",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MONITORS)
def test_a_push_of_no_dicts_is_nothing_at_any_time(name: str) -> None:
    make, table, _ = MONITORS[name]
    monitor, other = make(), make()
    assert monitor.push([]).num_rows == 0
    found, expected = monitor.push(table.to_pylist()), other.push(table)
    assert found.equals(expected)
    again = monitor.push([])
    assert not again.num_rows
    assert again.schema.equals(expected.schema)
    assert monitor.flush().equals(other.flush())
    assert monitor.summary() == other.summary()


@pytest.mark.parametrize("name", MONITORS)
def test_whole_numbers_of_dicts_are_floats_after_floats(name: str) -> None:
    make, table, time = MONITORS[name]
    fine = table.slice(0, 1)
    times = [each for each in ("t", "time", "min_time", "max_time") if each in table.column_names]
    later = [{**table.to_pylist()[1], **dict.fromkeys(times, 20)}]
    whole = pa.Table.from_pylist(later)
    strict = pa.Table.from_pylist(later, fine.schema)
    monitor, other = make(), make()
    for one, rows in ((monitor, [fine.to_pylist(), later]), (other, [fine, strict])):
        parts = [one.push(each) for each in rows]
        assert parts[1].schema.equals(parts[0].schema)
    assert monitor.summary() == other.summary()
    with pytest.raises(
        SchemaError,
        match=rf"{time} (is int64 and was double|was double in the first table .found int64)",
    ):
        pushed(make, fine, whole)
    back = [{**later[0], **dict.fromkeys(times, 21.5)}]
    with pytest.raises(
        SchemaError,
        match=rf"{time} (is double and was int64|was int64 in the first table).* give floats in",
    ):
        pushed(make, later, back)


def test_one_list_of_whole_numbers_and_floats_is_of_floats() -> None:
    rows = [{"id": 1, "t": 1}, {"id": 2, "t": 2.5}]
    floats = pa.table({"id": [1, 2], "t": [1.0, 2.5]})
    assert c.correlate_tables(rows, rows, **NEAR).equals(c.correlate_tables(floats, floats, **NEAR))


def test_an_empty_list_has_no_columns() -> None:
    rows = EVENTS.to_pylist()
    for ask in (
        lambda: c.correlate_tables([], rows, **NEAR),
        lambda: c.correlate_tables(rows, [], **NEAR),
        lambda: c.transition_tables([], within=20, confidence=0.9),
        lambda: c.border_crossing_tables([], QUERIES, **BORDERS),
        lambda: c.border_crossing_tables(READINGS, [], **BORDERS),
        lambda: c.clusters([], CAUSAL, time="t", options=SECONDS),
    ):
        with pytest.raises(
            SchemaError, match="is an empty list, which has no columns and no types"
        ):
            ask()


def test_no_queries_are_added_by_an_empty_list() -> None:
    monitor = c.BorderMonitor(QUERIES, **BORDERS)
    monitor.add([])
    assert monitor.summary().queries == QUERIES.num_rows


def test_two_streams_take_an_empty_poll_first() -> None:
    stream = c.stream_tables(
        c.TimingCondition(c.mutual_deadline("2s"), 1.0), left_delay=0, right_delay=0, left_time="t",
        right_time="t", options=SECONDS,
    )  # fmt: skip
    rows = EVENTS.to_pylist()
    found = [
        stream.push(*each)
        for each in (("left", []), ("left", rows), ("right", []), ("right", rows))
    ]
    assert [each.num_columns > 0 for each in found] == [False, False, False, True]
    stream.flush()
    with pytest.raises(DataError, match="was flushed"):
        stream.push("left", [])
