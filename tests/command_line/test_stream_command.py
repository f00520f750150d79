"""`coincide stream`: what it refuses before Spark starts, what it shows, and folders as streams."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coincide import correlate_tables, within
from coincide.command_line import run
from coincide.command_line.interruption import interruptible, raise_if_interrupted, stopping
from coincide.command_line.triggers import Triggers
from tests.helpers.rows import in_order
from tests.helpers.workplace import WINDOW, events, interrupted

DELAYS = ("--left-delay", "5us", "--unit", "us")
TOPIC = "kafka://localhost:9092/some.topic-1"
COLUMNS = ("--left-schema", "id BIGINT, t TIMESTAMP", "--right-schema", "id BIGINT, t TIMESTAMP")


class Streams:
    """Two folders of Parquet, room for an output and a checkpoint."""

    def __init__(self, folder: Path) -> None:
        self.left, self.right = (self._folder(folder, side) for side in ("left", "right"))
        self.output, self.checkpoint = folder / "results" / "pairs", folder / "kept"
        self.output.parent.mkdir()
        self.files = 0

    @staticmethod
    def _folder(folder: Path, side: str) -> Path:
        made = folder / side
        made.mkdir()
        return made

    def add(self, left: pa.Table, right: pa.Table) -> None:
        """A file more a side."""
        for side, table in ((self.left, left), (self.right, right)):
            pq.write_table(table, side / f"{self.files}.parquet")
        self.files += 1

    def words(self, *more: str, condition: Sequence[str] = WINDOW, **others: str) -> list[str]:
        named = {"left": self.left, "right": self.right, "output": self.output} | others
        return [
            *("stream", str(named["left"]), str(named["right"]), "-o", str(named["output"])),
            *("--checkpoint", str(self.checkpoint), *condition, *DELAYS, *more),
        ]


@pytest.fixture
def streams(tmp_path: Path) -> Streams:
    found = Streams(tmp_path)
    found.add(events(), events(min_time=[1, 11, 21, 90], max_time=[5, 15, 25, 94]))
    return found


@pytest.mark.parametrize(
    ("others", "more", "words"),
    [
        ({"left": TOPIC}, (), "--left-schema is missing, which says what the records of"),
        (
            {"left": "kafka://localhost/a"},
            COLUMNS,
            "the left input must be written as kafka://HOST",
        ),
        ({"left": "kafka://h:1/"}, COLUMNS, "kafka://HOST:PORT/TOPIC (found kafka://h:1/)"),
        ({"left": "kafka://me:secret@h:1/a"}, COLUMNS, "Give passwords with --kafka"),
        ({"output": "kafka://h:1/a/b"}, (), "the output must be written as kafka://HOST:PORT"),
        ({"left": "nothing"}, (), "left: nothing does not exist"),
        ({"output": "-"}, (), "the output must be kafka://HOST:PORT/TOPIC, or a folder"),
        ({}, ("--left-schema", "?!"), "--left-schema must be columns, such as 'id BIGINT"),
        ({}, ("--left-schema", "no.avsc"), "--left-schema: cannot read no.avsc"),
        ({}, ("--once", "--trigger", "1s"), "--trigger has no effect"),
        ({}, ("--trigger", "soon"), "--trigger: cannot read the duration 'soon'"),
        ({}, ("--kafka", "secret"), "--kafka takes KEY=VALUE, but number 1"),
        ({}, ("--checkpoint", ""), "--checkpoint is empty"),
        ({}, ("--matching", "mutual"), "No such option: --matching"),
    ],
    ids=lambda value: "",
)
def test_refused(
    streams: Streams,
    capsys: pytest.CaptureFixture[str],
    others: dict[str, str],
    more: tuple[str, ...],
    words: str,
) -> None:
    assert words in refused(streams.words(*more, **others), capsys)
    assert not streams.checkpoint.exists()


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    code = run(words)
    said = capsys.readouterr()
    assert (code, said.out, said.err.count("\n")) == (2, "", 1), said.err
    assert "secret@" not in said.err
    return said.err


def test_an_output_that_would_be_read_or_that_another_run_wrote_is_refused(
    streams: Streams, capsys: pytest.CaptureFixture[str]
) -> None:
    inside = refused(streams.words(output=str(streams.right / "pairs")), capsys)
    assert "lies inside the right input" in inside
    streams.output.mkdir()
    (streams.output / "old.parquet").touch()
    assert "holds files, but the checkpoint" in refused(streams.words(), capsys)


def test_one_stream_has_no_schema_of_a_second(
    streams: Streams, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        each for each in streams.words("--right-schema", "id INT") if each != str(streams.right)
    ]
    assert "--right-schema belongs to RIGHT" in refused(words, capsys)


def reported(at: str, **metrics: dict[str, Any]) -> Any:
    told = {
        "timestamp": at,
        "durationMs": {"triggerExecution": 500},
        "observedMetrics": metrics,
        "stateOperators": [{"numRowsTotal": 7, "memoryUsedBytes": 3_000_000}],
        "eventTime": {"watermark": "2026-05-01T11:59:58.000Z"},
    }
    return SimpleNamespace(json=json.dumps(told))


def test_triggers_are_counted_once_and_the_side_that_holds_is_named() -> None:
    triggers = Triggers([timedelta(seconds=1), timedelta(seconds=5)])
    assert triggers.line() == "waiting for events"
    assert triggers.counted().values["left"] == {"rows": 0, "late": 0}
    assert "watermark" not in dict(triggers.counted().lines)
    triggers.take([reported("2026-05-01T11:00:00.000Z")])  # without rows
    assert dict(triggers.counted().lines)["watermark"] == "2026-05-01T11:59:58.000Z"
    assert triggers.line() == "waiting for events"
    first = reported(
        "2026-05-01T12:00:00.000Z",
        coincide_left={"rows": 100, "unmatchable": 1, "latest": "2026-05-01 12:00:01.5"},
        coincide_right={"rows": 50, "latest": "2026-05-01 12:00:03", "too_long": 6},
        coincide_output={"rows": 3},
        coincide_late={"left": 2, "right": 0}, right_skipped={"skipped": 4},
    )  # fmt: skip
    later = reported(
        "2026-05-01T12:00:01.000Z",
        coincide_left={"rows": 10, "latest": "2026-05-01T12:00:02.000Z"},
        coincide_right={"rows": 0, "latest": None}, coincide_output={"rows": 1},
    )  # fmt: skip
    triggers.take([first])
    triggers.take([first, later])
    assert triggers.line() == (
        "left 20 events/s to 2026-05-01 12:00:02.000, right 0 events/s to 2026-05-01 12:00:03.000"
        " (holds); state 7 rows, 3.0 MB; 2 late; 4 rows written"
    )
    counted = triggers.counted()
    assert counted.values == {
        "left": {"late": 2, "rows": 110, "unmatchable": 1},
        "right": {"late": 0, "skipped": 4, "rows": 50, "too_long": 6},
        "triggers": 2,
        "watermark": "2026-05-01T11:59:58.000Z",
    }
    assert counted.lines[:2] == [
        ("left", "110 rows; 2 late; 1 without time or key, so they match nothing"),
        (
            "right",
            "50 rows; 4 records skipped, which have no value or are not of the schema; 6 longer than any"
            " match can be with this window and confidence",
        ),
    ]


def test_of_one_stream_nothing_holds_the_other_up() -> None:
    triggers = Triggers([timedelta(seconds=1)])
    triggers.take([reported("2026", coincide_left={"rows": 5, "latest": "2026-05-01"})])
    assert triggers.line().startswith("left 10 events/s to 2026-05-01 00:00:00.000; state")


def test_rows_set_aside_do_not_say_how_far_a_side_has_come() -> None:
    triggers = Triggers([timedelta(seconds=1)])
    rows = {"rows": 5, "latest": "2026-05-02"}  # one row's clock is a day fast
    triggers.take([reported("1", coincide_left=rows, coincide_left_clock={"latest": "2026-05-01"})])
    triggers.take([reported("2", coincide_left=rows, coincide_left_clock={"latest": None})])
    assert triggers.line().startswith("left 10 events/s to 2026-05-01 00:00:00.000; state")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_ends_a_stream_raises_nothing_then_or_later(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logging.disable", lambda: None)  # for the whole process
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with interruptible():
            with stopping() as stop:
                assert not stop.is_set()
                os.kill(os.getpid(), number)
                assert stop.wait(5)
            raise_if_interrupted()
            with pytest.raises((KeyboardInterrupt, SystemExit)):
                os.kill(os.getpid(), number)
    finally:
        signal.signal(signal.SIGINT, before)


def far(time: int) -> pa.Table:
    """An event after which all others are final."""
    return events(id=[9] * 4, min_time=[time] * 4, max_time=[time] * 4)


@pytest.fixture
def state_store(command_spark: Any) -> None:
    """The store of states that a restart needs, as a job of streams sets it."""
    from spark_plugin.ways.streaming.arguments import STATE_STORE

    for key, value in STATE_STORE.items():
        command_spark.conf.set(key, value)


@pytest.mark.spark
@pytest.mark.usefixtures("state_store")
def test_folders_once_and_again_from_the_checkpoint(
    streams: Streams, command_spark: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    streams.add(far(10**7), far(10**7 + 100))
    words = streams.words("--once", "--json", "--how", "left", "--probability")
    assert run(words) == 0
    first = json.loads(capsys.readouterr().out)
    whole = [pq.read_table(folder / "0.parquet") for folder in (streams.left, streams.right)]
    expected = correlate_tables(
        *whole, within=within(-3, 5), confidence=0.5, how="left", probability=True
    )
    assert in_order(result(command_spark, streams)) == in_order(expected)
    assert first["left"] == {"late": 0, "rows": 8}
    assert first["rows"] == expected.num_rows
    streams.add(far(3 * 10**7), far(3 * 10**7))
    assert run(words) == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["left"], again["rows"]) == ({"late": 0, "rows": 4}, 4)
    assert result(command_spark, streams).num_rows == expected.num_rows + 4
    told = refused([*words, "--idle-after", "30us"], capsys)
    assert "was begun without --idle-after" in told
    assert "(found 2 streams in it, and 4 now)" in told


@pytest.mark.spark
@pytest.mark.usefixtures("state_store")
def test_a_row_far_ahead_is_set_aside(
    streams: Streams, command_spark: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = [pq.read_table(folder / "0.parquet") for folder in (streams.left, streams.right)]
    streams.add(far(10**9), far(10**7).slice(0, 0))
    streams.add(far(10**7), far(10**7 + 100))
    assert run(streams.words("--once", "--json", "--left-ahead", "100s")) == 0
    told = json.loads(capsys.readouterr().out)
    expected = correlate_tables(*whole, within=within(-3, 5), confidence=0.5)
    assert in_order(result(command_spark, streams)) == in_order(expected)
    assert told["left"]["late"] == 0
    assert told["left"]["ahead"] == 4


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("kind", ["spans", "clocks", "spans of clocks", "wide clocks"])
@pytest.mark.usefixtures("state_store")
def test_spans_and_corrected_clocks_are_joined_as_by_join(
    kind: str, streams: Streams, command_spark: Any, tmp_path: Path, capsys: Any
) -> None:
    errors = tmp_path / "errors.parquet"
    line = {"start": [-(10**9)], "end": [10**9], "offset": [4], "drift": [0.0], "spread": [1.5]}
    pq.write_table(pa.table({"status": ["found"], **line}), errors)
    lasting = ("--relation", "overlapping", "--gap", "6us", "--left-longest", "4us",
               "--right-longest", "4us")  # fmt: skip
    stamped = (*WINDOW, "--left-time", "min_time", "--left-clock", str(errors))
    condition = {
        "spans": lasting,
        "spans of clocks": (*lasting, "--left-clock", str(errors)),
        "clocks": stamped,
        "wide clocks": (*stamped, "--left-clock-around", "fitted"),
    }[kind]
    files, pairs = [str(each / "0.parquet") for each in (streams.left, streams.right)], "p.parquet"
    joined = ["join", *files, "-o", str(tmp_path / pairs), "--engine", "local", "--unit", "us"]
    assert run([*joined, *condition]) == 0
    expected = pq.read_table(tmp_path / pairs)
    assert expected.num_rows > 2
    streams.add(far(10**7), far(10**7 + 100))
    assert run(streams.words("--once", condition=condition)) == 0
    assert in_order(result(command_spark, streams)) == in_order(expected)
    capsys.readouterr()


@pytest.mark.spark
def test_a_topic_without_the_connector_of_kafka_says_how_to_get_it(
    streams: Streams, command_spark: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    words = streams.words(
        "--left-schema", "id BIGINT, min_time BIGINT, max_time BIGINT", left=TOPIC
    )
    assert "Add --conf spark.jars.packages=org.apache.spark:spark-sql-kafka" in refused(
        words, capsys
    )


def result(spark: Any, streams: Streams) -> pa.Table:
    found = spark.read.parquet(str(streams.output)).toArrow()
    assert isinstance(found, pa.Table)
    return found


@pytest.mark.slow
@pytest.mark.spark
def test_control_c_ends_it_without_an_error(streams: Streams) -> None:
    streams.add(far(10**7), far(10**7))
    words = streams.words("--master", "local[1]", "--json")
    code, err = interrupted(
        streams,  # type: ignore[arg-type]
        *words,
        begun=(streams.checkpoint / "commits" / "0").exists,
    )
    assert (code, err) == (0, "")
