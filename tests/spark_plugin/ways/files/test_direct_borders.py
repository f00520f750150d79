"""Border crossings of files in order of streams: every row once, no stream in two tasks, no exchange."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coincide import BorderOptions, DataError
from coincide.command_line import run
from coincide.engine.borders.arguments import BorderArguments
from coincide.engine.borders.reports import BorderSummary
from coincide.engine.files import stream_parts
from coincide.engine.files.finding import find_files
from coincide.engine.files.footers import Footer, ranges
from coincide.engine.files.planning import NotDirect
from coincide.engine.reports.metrics import as_bits, with_numbers
from coincide.model.borders.crossings import EVENTS
from coincide.model.counters import LARGEST
from spark_plugin.frames.borders import collected_queries
from spark_plugin.tasks.border_files import PartTask, StreamFiles
from spark_plugin.tasks.borders import ShippedQueries, as_table
from spark_plugin.tasks.wire import Shipment, as_stream
from spark_plugin.ways.files import borders
from tests.helpers.border_way_cases import WaysCase, random_case
from tests.helpers.border_ways import Rows, expected, numbers_by
from tests.helpers.direct_layouts import write_layout

pytestmark = pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")


def planned(place: Path, arguments: BorderArguments, tasks: int = 2) -> StreamFiles:
    return borders._planned_files(find_files("readings", place), arguments, tasks)


def found_by_parts(
    case: WaysCase, files: StreamFiles, order: Sequence[int], name: str
) -> tuple[Rows, dict[str, Any]]:
    """What the task reports for all parts, in some order: rows like `expected`, and counts."""
    queries, ids, _ = collected_queries(case.queries, files.columns.arguments)
    shipped = ShippedQueries(name, Shipment(as_stream(as_table(queries, ids))))
    names = tuple(f"out{i}" for i in range(len(files.columns.arguments.made)))
    task = PartTask(files, shipped, names, "metrics")
    rows: Rows = []
    counts = dict.fromkeys(task.counted, 0) | {"rounded": as_bits(0.0)}
    for batch in task([pa.record_batch({"id": order})]):
        for row in batch.to_pylist():
            numbers = row.pop("metrics")
            if numbers is None:
                query, stream, event, *times = row.values()
                rows.append((query, stream, EVENTS[event], *times))
                continue
            for counted, number in zip(task.counted, numbers[:-1], strict=True):
                both = counts[counted], number
                counts[counted] = max(both) if counted.endswith(LARGEST) else sum(both)
    columns = files.columns
    known = {"queries": len(queries.ids), "empty": queries.empty}
    none = BorderSummary(tick=columns.tick, time_kind=columns.time_kinds[0])
    summary = replace(with_numbers(none, counts), **known)
    return sorted(rows, key=repr), numbers_by(summary)


def test_parts_of_any_layout_agree_with_the_oracle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("_LEAST_ROWS", 1), ("AIMED_ROWS", 9)):
        monkeypatch.setattr(stream_parts, name, value)
    for name in ("_MOST_READS", "_TOO_LARGE"):
        monkeypatch.setattr(borders, name, np.inf)
    parts = shared = 0
    for seed in range(52):
        case, random = random_case(seed, for_csv=True), np.random.default_rng(seed)
        if not case.has_streams:  # never read directly
            continue
        ordered = case.readings.sort_by("who") if random.random() < 0.6 else case.readings
        place = write_layout(tmp_path / str(seed), ordered, random, order="given")
        files = planned(place, BorderArguments(**case.arguments))
        parts += len(files.parts)
        shared += int((files.parts.first < files.parts.final).sum())
        order = random.permutation(len(files.parts)).tolist()
        rows, counts = found_by_parts(case, files, order, str(seed))
        wanted = expected(case, on_spark=True)
        assert rows == wanted.rows
        assert {name: counts[name] for name in wanted.counts} == wanted.counts
    assert parts > 80
    assert shared > 40  # row groups of which two parts have rows


def test_parts_are_about_equal_and_read_about_once() -> None:
    streams = np.repeat(np.arange(3000), 1000)
    parts = parts_of(streams, 50_000, tasks=4)
    assert len(parts) == 4
    assert parts.reads == pytest.approx(1, abs=0.1)
    assert parts.rows.max() < 1.2 * streams.size / 4
    assert parts.describe() == f"4 parts of whole streams, each row read {parts.reads:.2f} times"


def parts_of(streams: np.ndarray, group_rows: int, tasks: int) -> stream_parts.StreamParts:
    """The parts of one file with these streams."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"who": streams}), sink, row_group_size=group_rows)
    metadata = pq.read_metadata(pa.BufferReader(sink.getvalue()))
    stamp: Any = None
    footer = Footer(
        pa.schema([]), frozenset(), False, np.arange(metadata.num_row_groups),
        np.array([metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]),
        {"who": ranges(metadata, "who")}, 0.0, stamp,
    )  # fmt: skip
    found = stream_parts.stream_parts([footer], "who", tasks)
    assert found is not None
    return found


def write(place: Path, **columns: Any) -> Path:
    n = 1_200_000
    table = {"who": np.zeros(n, np.int64), "at": np.arange(n), "x": np.zeros(n), **columns}
    pq.write_table(pa.table(table), place / "r.parquet", row_group_size=100_000)
    return place / "r.parquet"


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"who": np.arange(1_200_000) % 7}, "or have too large row groups. A task would read 1,200,000"),
        ({"who": np.arange(1_200_000).astype(np.uint64)}, "who is not an integer or a text in all files"),
        ({"who": pa.array(np.arange(1_200_000)).cast(pa.date64())}, "who is not an integer or a text"),
        ({"at": pa.array(np.arange(1_200_000)).cast(pa.timestamp("ns"))}, "at has .*found timestamp[ns]"),
        ({"at": pa.array(np.arange(1_200_000)).cast(pa.timestamp("ms"))}, "at has .*found timestamp[ms]"),
        ({"x": np.zeros(1_200_000, np.uint32)}, "readings.x has a type .*found uint32"),
    ],
)  # fmt: skip
def test_what_does_not_go_directly_says_why(
    columns: dict[str, Any], words: str, tmp_path: Path
) -> None:
    place = write(tmp_path, **columns)
    with pytest.raises(NotDirect, match=words.replace("[", r"\[")):
        planned(place, BorderArguments("who", "at", "x"))


_WHO, _AT = pa.array(["a"]), pa.array([1])


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ([{"at": _AT.cast(pa.timestamp("us", zone))} for zone in ("UTC", "Asia/Tokyo")], "one type"),
        ([{"who": _WHO.cast(pa.large_string())}, {}], "one type"),
        ([{"at": _AT}, {"at": _AT.cast(pa.int32())}], "one type"),
        ([{"who": _WHO.cast(pa.string_view())}], "found string_view"),
        ([{"who": pa.array([], pa.date32()), "at": _AT[1:], "x": _AT[1:]}], "is not an integer"),
    ],
)  # fmt: skip
def test_what_spark_may_read_all_the_same_is_left_to_it(
    files: list[dict[str, Any]], words: str, tmp_path: Path
) -> None:
    for number, columns in enumerate(files):
        table = pa.table({"who": _WHO, "at": _AT, "x": [0.5], **columns})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    with pytest.raises(NotDirect, match=words):
        planned(tmp_path, BorderArguments("who", "at", "x"))


def test_an_old_calendar_matters_to_times_alone(tmp_path: Path) -> None:
    for name, at in (("numbers", _AT), ("times", _AT.cast(pa.timestamp("us")))):
        table = pa.table({"who": _WHO, "at": at, "x": [0.5]})
        told = {"org.apache.spark.version": "2.4.0"}
        pq.write_table(table.replace_schema_metadata(told), tmp_path / name)
    arguments = BorderArguments("who", "at", "x")
    assert len(planned(tmp_path / "numbers", arguments).parts) == 1
    with pytest.raises(NotDirect, match=r"at has .*found timestamp\[us\]"):
        planned(tmp_path / "times", arguments)


def test_files_without_statistics_of_streams_do_not_go_directly(tmp_path: Path) -> None:
    table = pa.table({"who": ["a"], "at": [1], "x": [0.5]})
    pq.write_table(table, tmp_path / "r.parquet", write_statistics=["at"])
    with pytest.raises(NotDirect, match="no statistics of who"):
        planned(tmp_path, BorderArguments("who", "at", "x"))


def test_a_file_that_changed_since_is_refused(tmp_path: Path) -> None:
    table = pa.table({"who": ["a", "b"], "at": [1, 2], "x": [0.5, 0.5]})
    pq.write_table(table, tmp_path / "r.parquet")
    files = planned(tmp_path, BorderArguments("who", "at", "x"))
    assert files.read(0).counts.rows == 2
    pq.write_table(table.slice(1), tmp_path / "r.parquet")
    with pytest.raises(DataError, match=r"r.parquet has changed since"):
        files.read(0)


def test_invalid_readings_are_refused_with_an_example(tmp_path: Path) -> None:
    table = pa.table({"who": ["a", None], "at": [1, 2], "x": [0.5, 7.25]})
    pq.write_table(table, tmp_path / "r.parquet")
    files = planned(tmp_path, BorderArguments("who", "at", "x"))
    with pytest.raises(DataError, match=r"nulls in who or at in 1 row.*7\.25"):
        files.read(0)
    options = BorderOptions(invalid="drop")
    assert (
        planned(tmp_path, BorderArguments("who", "at", "x", options=options)).read(0).counts.dropped
    )


@pytest.mark.spark
def test_the_command_goes_directly(command_spark: Any, tmp_path: Path, capsys: Any) -> None:
    readings = pa.table(
        {
            "stream_id": pa.array(["b", "b", "a", "a", "a"]).dictionary_encode(),
            "time": pa.array([20, 10, 1, 2, 3], pa.timestamp("us")),
            "value": pa.array([5, 0, 0, 5, 0], pa.int32()),
        }
    )
    pq.write_table(readings, tmp_path / "readings.parquet", row_group_size=2)
    queries = pa.table({"query_id": pa.array([7], pa.int16()), "lower": [4.0], "upper": [6.0]})
    pq.write_table(queries, tmp_path / "queries.parquet")
    files = [str(tmp_path / f"{name}.parquet") for name in ("readings", "queries")]
    tables, spark = [], ["--engine", "spark"]
    for way in ("files", "exchange"):
        out = tmp_path / way
        assert run(["borders", *files, "-o", str(out), "--way", way, "--json", *spark]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["way"] == way
        assert (told["readings"], told["entered"], told["left"]) == (5, 2, 1)
        rows = pq.read_table(out)
        tables.append(rows.sort_by([("stream_id", "ascending"), ("max_time", "ascending")]))
    assert tables[0].equals(tables[1])
    assert tables[0]["stream_id"].to_pylist() == ["a", "a", "b"]


def test_a_way_that_cannot_be_is_refused(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "r.csv").write_text("stream_id,time,value\na,1,2\n")
    files = [str(tmp_path / "r.csv")] * 2
    words = ["borders", *files, "-o", str(tmp_path / "out"), "--way"]
    assert run([*words, "broadcast"]) == 2
    assert "--way must be one of auto, files, exchange" in capsys.readouterr().err
    assert run([*words, "files", "--engine", "local"]) == 2
    assert "--way has no effect with --engine local" in capsys.readouterr().err
