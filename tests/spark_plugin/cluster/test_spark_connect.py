"""Spark Connect: a server and a client without a JVM, in processes of their own."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from coincide import (
    BackendError,
    CoincideError,
    CorrelateOptions,
    TimingCondition,
    border_crossing_tables,
    correlate_tables,
    transition_tables,
    within,
)
from spark_plugin.cluster.session import local_session
from tests.helpers.border_tables import NAMES, least_last, random_queries, random_readings
from tests.helpers.histogram_tables import by_device, random_templates
from tests.helpers.histogram_tables import events as histogram_events
from tests.helpers.places import ROOT
from tests.helpers.rows import lists_in_order
from tests.helpers.spark_process import DAEMON, QUICK, spark_environment

pytest.importorskip(
    "grpc", reason="the client of Spark Connect needs pip install 'pyspark[connect]'"
)
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

CONDITION = TimingCondition(within(-100, 100), 0.5)
START_SECONDS = 150
MESSAGE_BYTES = 4 << 20
WIDE_ROWS = 100_000

WAYS = {
    "exchange": "exchange",
    "broadcast right": "broadcast-right",
    "broadcast left": "broadcast-left",
}
SHAPES: dict[str, dict[str, Any]] = {
    "pairs": {"how": "inner", "emit": "pairs", "probability": True},
    "lists": {"how": "left", "emit": "lists"},
    "counts": {"how": "inner", "emit": "counts"},
    "best": {"how": "left", "emit": "best"},
    "anti": {"how": "anti"},
}
CASES = (
    *(("exchange", "pairs"), ("exchange", "lists")),
    *(("broadcast right", "best"), ("broadcast right", "anti")),
    *(("broadcast left", "pairs"), ("broadcast left", "counts")),
)
READINGS = random_readings(3, 200, pa.array(["a", "b", "c"]), pa.int64())
QUERIES = random_queries(4, pa.array(range(20)))
BORDERS = {**NAMES, "values": "x"}
DWELL: dict[str, Any] = {
    "within": 3000, "confidence": 0.6, "query": "query", "stream": "stream",
}  # fmt: skip
WINDOW = ["--within=-100", "100", "--confidence", "0.5"]


def events(seed: int, n: int = 500) -> pa.Table:
    random = np.random.default_rng(seed)
    begin = np.sort(random.integers(0, 50 * n, n))
    key = pa.array([f"k{i}" for i in random.integers(0, 3, n)])
    ends = begin + random.integers(0, 30, n)
    return pa.table({"id": np.arange(n), "key": key, "min_time": begin, "max_time": ends})


SIDES = events(1), events(2)
DEVICES = histogram_events(1, 500), histogram_events(2, 500)
TEMPLATES: dict[str, Any] = {
    "left_time": by_device(random_templates(1)), "right_time": by_device(random_templates(2)),
    "by": "place",
}  # fmt: skip


# The client, in a process of its own: what it finds is compared here


class Client:
    """Does each thing that is to work, or is to be refused, on a session of Spark Connect."""

    def __init__(self, url: str, folder: Path) -> None:
        self.spark, self.folder = local_session(url), folder
        self.frames = [self.spark.createDataFrame(table) for table in SIDES]
        self.files = [str(folder / f"{side}.parquet") for side in ("left", "right")]
        self.answers: dict[str, Any] = {}

    def run(self) -> dict[str, Any]:
        """All answers, by name."""
        for way, shape in CASES:
            self.answers[f"{way}, {shape}"] = self.join(WAYS[way], SHAPES[shape])
        self.answers |= {name: getattr(self, name)() for name in WORKS}
        self.answers |= {name: self.refused(getattr(self, name)) for name in REFUSALS}
        return self.answers

    def join(self, way: str, arguments: dict[str, Any]) -> Any:
        """The rows, and the pairs that were counted."""
        from tests.helpers.joins import plan_correlation

        options = CorrelateOptions(way=way)
        given = {"by": "key", "options": options, "observe": True, **arguments}
        with closing(plan_correlation(*self.frames, CONDITION, **given)) as planned:
            rows = lists_in_order(planned.dataframe.toArrow())
            counters = planned.counters()
        return rows, counters and counters.pairs

    def files_of(self, **more: Any) -> Any:
        from tests.helpers.joins import join_files

        return join_files(self.spark, *self.files, CONDITION, **more)

    def direct(self) -> Any:
        return lists_in_order(self.files_of(way="files").toArrow())

    def direct_into_files(self) -> Any:
        done = self.files_of(way="files", output=self.folder / "direct")
        return lists_in_order(pq.read_table(self.folder / "direct")), done.counters.pairs

    def exchange_into_files(self) -> Any:
        done = self.files_of(way="exchange", output=self.folder / "exchange")
        return lists_in_order(pq.read_table(self.folder / "exchange")), done.counters.pairs

    def data_source(self) -> Any:
        from spark_plugin.ways.files.source import CoincideSource

        self.spark.dataSource.register(CoincideSource)
        names = {"left": self.files[0], "right": self.files[1]}
        options = {**names, "within": "-100,100", "confidence": "0.5"}
        return lists_in_order(
            self.spark.read.format("coincide").options(**options).load().toArrow()
        )

    def command(self) -> Any:
        from coincide.command_line import run

        out = str(self.folder / "command")
        code = run(
            ["join", *self.files, "-o", out, *WINDOW, "--way", "exchange", "--engine", "spark"]
        )
        return code, lists_in_order(pq.read_table(out))

    def a_side_by_itself(self) -> Any:
        """Both sides are too large to travel with the plan, and no way is named: by exchange."""
        from tests.helpers.joins import plan_correlation

        return plan_correlation(self.wide(), self.wide(), CONDITION).plan.way

    def crossings(self) -> Any:
        from coincide import BorderReport, border_crossings

        report = BorderReport()
        frame = self.spark.createDataFrame(READINGS)
        found = border_crossings(frame, QUERIES, report=report, **BORDERS)
        rows = lists_in_order(found.toArrow())
        return rows, report.summary().events

    def dwell_times(self) -> Any:
        from coincide import border_crossings, transitions

        frame, queries = map(self.spark.createDataFrame, (READINGS, QUERIES))
        return lists_in_order(
            transitions(border_crossings(frame, queries, **BORDERS), **DWELL).toArrow()
        )

    def histograms(self) -> Any:
        """By an exchange, and with a side that travels with the plan."""
        from coincide import correlate

        frames = [self.spark.createDataFrame(table) for table in DEVICES]
        ways = [CorrelateOptions(way=way) for way in ("exchange", "broadcast-right")]
        found = [correlate(*frames, CONDITION, **TEMPLATES, options=way) for way in ways]
        return [lists_in_order(frame.toArrow()) for frame in found]

    def two_streams(self) -> Any:
        from coincide import correlate_streams
        from spark_plugin.ways.streaming.arguments import STATE_STORE
        from tests.helpers.spark_streams import appended, stream_of, write_files

        for name, value in STATE_STORE.items():
            self.spark.conf.set(name, value)
        last = pa.table({"id": [-1], "key": ["k0"], "min_time": [10**8], "max_time": [10**8]})
        folders = [
            write_files(self.folder / f"stream{i}", [side, last]) for i, side in enumerate(SIDES)
        ]
        kinds = "id bigint, key string, min_time bigint, max_time bigint"
        sides = (stream_of(self.spark, folder, kinds) for folder in folders)
        options = CorrelateOptions(unit="ms")
        found = correlate_streams(
            *sides, CONDITION, by="key", left_delay="1s", right_delay="1s", options=options
        )
        appended(found, self.folder)
        return lists_in_order(pq.read_table(self.folder / "found"))

    def too_many_queries(self) -> Any:
        from coincide import border_crossings

        ids = range(WIDE_ROWS)
        many = pa.table({"query": ids, "lower_x": [0.0] * WIDE_ROWS, "upper_x": [1.0] * WIDE_ROWS})
        many = pa.concat_tables(
            [many, many.set_column(0, "query", pa.array([-1 - k for k in ids]))]
        )
        return border_crossings(self.spark.createDataFrame(READINGS), many, **BORDERS)

    def wide(self) -> Any:
        return self.spark.range(WIDE_ROWS).selectExpr(
            "format_string('%064d', id) AS id", "id * 50 AS min_time", "id * 50 + 20 AS max_time"
        )

    def refused(self, do: Any) -> Any:
        try:
            return f"was not refused: {do()}"
        except CoincideError as error:
            return [type(error).__name__, str(error)]

    def a_side_as_asked(self) -> Any:
        from coincide import correlate

        options = CorrelateOptions(way="broadcast-right")
        return correlate(self.frames[0], self.wide(), CONDITION, options=options)

    def gpus_of_the_scheduler(self) -> Any:
        from coincide import correlate

        self.spark.conf.set("spark.coincide.gpu.workers", "2")
        try:
            return correlate(*self.frames, CONDITION, backend="gpu")
        finally:
            self.spark.conf.unset("spark.coincide.gpu.workers")

    def invalid_rows(self) -> Any:
        from coincide import correlate

        bad = self.spark.createDataFrame(pa.table({"id": [1], "min_time": [9], "max_time": [1]}))
        return correlate(bad, self.frames[1], CONDITION)


WORKS = (
    *("direct", "direct_into_files", "exchange_into_files", "data_source", "command"),
    *("a_side_by_itself", "crossings", "dwell_times", "histograms", "two_streams"),
)
REFUSALS = {
    "a_side_as_asked": ["ConditionError", "bytes. Spark Connect sends it with the plan, and the"],
    "gpus_of_the_scheduler": ["BackendError", "but master 'local[2]' cannot"],
    "too_many_queries": ["ConditionError", "the table of queries has 5,000,"],
    "invalid_rows": ["DataError", "left: min above max in min_time and max_time in 1 row"],
}


def main(url: str, folder: str) -> None:
    client = Client(url, Path(folder))
    found = client.run()
    found["client"] = str(pyspark.__file__)
    found["py4j"] = "py4j" in sys.modules
    print("answers", json.dumps(found))
    client.spark.stop()


def test_a_client_without_its_packages() -> None:
    code = (
        "import sys; sys.modules['grpc'] = None\n"
        "from spark_plugin.cluster.session import local_session\n"
        "local_session('sc://localhost:1')"
    )
    environment = spark_environment(JAVA_HOME="")
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    *_, last = done.stderr.splitlines()
    assert last.startswith("coincide.model.errors.BackendError: a client of Spark Connect lacks")
    assert "pip install 'pyspark[connect]'" in last


def test_a_thin_client_without_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "pyspark.core" else find(name)
    )
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    with pytest.raises(BackendError, match="the installed pyspark-client has no Spark of its own"):
        local_session()


# The server


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture(scope="module")
def server(java_home: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that runs meanwhile."""
    folder, port = tmp_path_factory.mktemp("server"), free_port()
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.maxInboundMessageSize": str(MESSAGE_BYTES),
        "spark.driver.host": "localhost",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[2]"]
    for name, value in (settings | QUICK | DAEMON).items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    home = str(Path(pyspark.__file__).parent)
    environment = spark_environment(JAVA_HOME=java_home, SPARK_HOME=home)
    log = folder / "server.log"
    with (
        log.open("w") as out,
        subprocess.Popen(
            [*command, "spark-internal"], env=environment, cwd=folder, stdout=out, stderr=out
        ) as process,
    ):
        try:
            deadline = time.monotonic() + START_SECONDS
            while not answers(port):
                assert process.poll() is None, log.read_text()[-3000:]
                assert time.monotonic() < deadline, log.read_text()[-3000:]
                time.sleep(0.2)
            yield f"sc://localhost:{port}"
        finally:
            process.terminate()


def answers(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


def thin_client(folder: Path) -> str:
    """A folder with pyspark-client, which has no JVM and no Py4J, for the beginning of the path."""
    thin = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder)]
    done = subprocess.run(
        [*thin, f"pyspark-client=={pyspark.__version__}"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"pyspark-client cannot be installed: {done.stderr.strip()[-200:]}")
    (folder / "py4j.py").write_text("raise ModuleNotFoundError('py4j', name='py4j')\n")
    return str(folder)


@pytest.fixture(scope="module", params=["pyspark", "pyspark-client"])
def answered(
    server: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> dict[str, Any]:
    """What the client has found."""
    folder = tmp_path_factory.mktemp("connect")
    path = [str(ROOT)]
    if request.param == "pyspark-client":
        path.insert(0, thin_client(folder / "thin"))
    for name, table in zip(("left", "right"), SIDES, strict=True):
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=100)
    code = "import sys; from tests.spark_plugin.cluster.test_spark_connect import main; main(*sys.argv[1:])"
    # No Java: nothing of the client may need one.
    environment = spark_environment(
        JAVA_HOME="", PYSPARK_PYTHON="no-such-python", PYTHONPATH=os.pathsep.join(path)
    )
    done = subprocess.run(
        [sys.executable, "-c", code, server, str(folder)],
        env=environment, cwd=folder, capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("answers "))
    found = json.loads(line.removeprefix("answers "))
    is_thin = request.param == "pyspark-client"
    assert ("thin" in found.pop("client"), found.pop("py4j")) == (is_thin, not is_thin)
    return found


def expected(**arguments: Any) -> list[str]:
    return lists_in_order(correlate_tables(*SIDES, CONDITION, **arguments))


@pytest.mark.parametrize(("way", "shape"), CASES)
def test_joins_of_dataframes(answered: dict[str, Any], way: str, shape: str) -> None:
    rows, pairs = answered[f"{way}, {shape}"]
    assert rows == expected(by="key", **SHAPES[shape])
    if shape != "anti":  # for which no pair is counted
        assert pairs == len(expected(by="key"))


@pytest.mark.parametrize("name", WORKS[:5])
def test_joins_of_files(answered: dict[str, Any], name: str) -> None:
    rows = expected()
    also = {"direct_into_files": len(rows), "exchange_into_files": len(rows)}
    wanted = {"command": [0, rows], **{n: [rows, count] for n, count in also.items()}}
    assert answered[name] == wanted.get(name, rows)


def test_a_side_that_the_plan_could_not_hold_goes_by_exchange(answered: dict[str, Any]) -> None:
    assert answered["a_side_by_itself"] == "exchange"


def test_crossings_and_transitions(answered: dict[str, Any]) -> None:
    crossings = border_crossing_tables(least_last(READINGS), QUERIES, **BORDERS)
    assert answered["crossings"] == [lists_in_order(crossings), crossings.num_rows]
    assert answered["dwell_times"] == lists_in_order(transition_tables(crossings, **DWELL))


def test_two_streams(answered: dict[str, Any]) -> None:
    assert answered["two_streams"] == expected(by="key")


def test_histogram_timestamps(answered: dict[str, Any]) -> None:
    wanted = lists_in_order(correlate_tables(*DEVICES, CONDITION, **TEMPLATES))
    assert len(wanted) > 1000
    assert answered["histograms"] == [wanted, wanted]


@pytest.mark.parametrize("name", REFUSALS)
def test_what_cannot_be_is_refused(answered: dict[str, Any], name: str) -> None:
    kind, words = REFUSALS[name]
    assert answered[name][0] == kind
    assert words in answered[name][1]
