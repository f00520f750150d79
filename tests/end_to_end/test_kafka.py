"""Topics of a real broker: the page about them, the example, Avro, bad records, and killed runs."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from coincide import CorrelateOptions, correlate_tables
from scripts.kafka_broker import CONNECTOR, Broker, NoJars, jars, kafka_broker
from tests.helpers.places import ROOT
from tests.helpers.spark_process import quick_defaults, spark_environment
from tests.house.test_examples import PRINTS

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(1000)]
KILLS = int(os.environ.get("COINCIDE_KILLS", "2"))
"""How often a run is killed."""


@pytest.fixture(scope="module")
def connector(java_home: str) -> str:
    """The jars of Spark's connector, as spark.jars takes them."""
    os.environ["JAVA_HOME"] = java_home
    try:
        folder = jars(CONNECTOR)
    except NoJars as error:
        pytest.skip(f"Spark's package for Kafka is not here: {error}")
    return ",".join(map(str, sorted(folder.glob("*.jar"))))


@pytest.fixture(scope="module")
def kafka(connector: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    try:
        with kafka_broker(tmp_path_factory.mktemp("kafka")) as broker:
            yield broker
    except NoJars as error:
        pytest.skip(f"Kafka is not here: {error}")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of processes that find our commands and packages, and run small joins."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    own = {"PATH": path, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    return {**os.environ, **own, **quick_defaults(tmp_path / "settings")}


BLOCK = re.compile(r"```bash\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)


def test_the_page_prints_what_it_says(
    connector: str, environment: dict[str, str], tmp_path: Path
) -> None:
    blocks = BLOCK.findall((ROOT / "docs/how-to/kafka.md").read_text(encoding="utf-8"))
    assert [bool(shown) for _, shown in blocks] == [False, False, True, True]
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    stop = "trap 'python scripts/kafka_broker.py stop' ERR\n"
    script = f"set -e\n{stop}" + "".join(f"{code}\necho '-- end'\n" for code, _ in blocks)
    ran = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, text=True, capture_output=True,
        timeout=900, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for said, (_, shown) in zip(ran.stdout.split("-- end\n"), blocks, strict=False):
        assert said.endswith(shown)


@pytest.mark.parametrize(
    ("name", "topics"),
    [
        ("topics", ["requests", "answers", "missed"]),
        ("chain", ["readings", "doors", "crossings", "explained"]),
    ],
)
def test_the_examples(
    name: str,
    topics: list[str],
    kafka: Broker,
    connector: str,
    environment: dict[str, str],
    tmp_path: Path,
) -> None:
    import pyspark

    for topic in topics:
        kafka.create(topic, partitions=1)
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    ran = subprocess.run(
        [
            *(str(submit), "--jars", connector, "--master", "local[1]"),
            *(str(ROOT / f"examples/{name}.py"), kafka.servers),
        ],
        cwd=tmp_path, env=environment, text=True, capture_output=True, timeout=900, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (0, PRINTS[name]), ran.stderr


AVRO = {
    "type": "record", "name": "event",
    "fields": [{"name": "id", "type": "long"}, {"name": "t", "type": "long"}],
}  # fmt: skip


def avro(*numbers: int) -> str:
    """A record of longs: zigzag, seven bits a byte. Only such as are text are written here."""
    found = bytearray()
    for number in numbers:
        rest = (number << 1) ^ (number >> 63)
        while rest > 0x7F:
            found.append(0x80 | rest & 0x7F)
            rest >>= 7
        found.append(rest)
    return found.decode("ascii")


class Command:
    """`coincide stream` from two topics into a third one, in a process of its own."""

    def __init__(self, kafka: Broker, connector: str, folder: Path, name: str) -> None:
        self.kafka, self.folder, self.topics = kafka, folder, [f"{name}-{i}" for i in range(3)]
        for topic in self.topics:
            kafka.create(topic, partitions=1)
        left, right, out = (f"kafka://{kafka.servers}/{topic}" for topic in self.topics)
        self.words = [
            *(sys.executable, "-m", "coincide.command_line", "stream", left, right, "-o", out),
            *("--checkpoint", str(folder / "kept"), "--unit", "us", "--within", "-300us", "300us"),
            *("--left-delay", "1ms", "--conf", f"spark.jars={connector}", "--master", "local[2]"),
        ]

    def started(self, *more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.words, *more], env=spark_environment(), text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def once(self, *more: str) -> tuple[int, str, str]:
        """Exit code, standard output and errors of a run to the end of both topics."""
        process = self.started("--once", "--json", *more)
        out, err = process.communicate(timeout=900)
        return process.returncode, out, err

    def found(self) -> list[dict[str, Any]]:
        return [json.loads(record) for record in self.kafka.read(self.topics[2])]


def test_records_of_json_and_avro_and_those_that_are_neither(
    kafka: Broker, connector: str, tmp_path: Path
) -> None:
    command = Command(kafka, connector, tmp_path, "bad")
    schema = tmp_path / "event.avsc"
    schema.write_text(json.dumps(AVRO))
    options = (
        *("--left-schema", "id BIGINT, t BIGINT", "--right-schema", str(schema)),
        *("--left-time", "t", "--right-time", "t", "--unit", "s", "--within", "-5s", "5s"),
        *("--left-delay", "1s", "--key", "left_id,right_id"),
    )
    records = [
        '{"id": 1, "t": 10}',
        '{"id": "one"}',
        "[",
        "<null>",
        '{"id": 2, "t": 20}',
        '{"id": 3, "t": 63}',
    ]
    kafka.write(command.topics[0], records)
    kafka.write(command.topics[1], [avro(7, 12), avro(8, 21), avro(9, 63)])
    code, _, err = command.once(*options)
    assert code == 2
    assert "left: a record of kafka://" in err
    assert 'is not JSON with the columns id BIGINT, t BIGINT (found {"id": "one"})' in err
    assert command.found() == []
    code, out, err = command.once(*options, "--invalid", "drop")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert told["left"] == {"late": 0, "skipped": 3, "rows": 3}
    assert told["rows"] == 2
    found = sorted(command.found(), key=lambda pair: pair["left_id"])  # a topic has partitions
    assert found == [{"left_id": 1, "right_id": 7}, {"left_id": 2, "right_id": 8}]


def events(seed: int, count: int) -> pa.Table:
    random = np.random.default_rng(seed)
    begin = np.sort(random.integers(0, 200 * count, count))
    return pa.table({
        "id": np.arange(count), "min_time": begin,
        "max_time": begin + random.integers(0, 200, count), "key": random.integers(0, 4, count),
    })  # fmt: skip


COLUMNS = "id BIGINT, min_time BIGINT, max_time BIGINT, key BIGINT"


def test_runs_that_are_killed_lose_no_row(kafka: Broker, connector: str, tmp_path: Path) -> None:
    moments = random.Random(KILLS)
    sides = [events(seed, 3_000 * KILLS) for seed in (1, 2)]  # each run takes some events
    command = Command(kafka, connector, tmp_path, "killed")
    for topic, side in zip(command.topics, sides, strict=False):
        kafka.write(topic, map(json.dumps, side.to_pylist()))
    options = (
        *("--left-schema", COLUMNS, "--right-schema", COLUMNS, "--by", "key"),
        *("--confidence", "0.5", "--how", "full"),
    )
    for _ in range(KILLS):
        process = command.started(*options, "--most", str(moments.randint(100, 600)))
        offsets = tmp_path / "kept" / "offsets"
        begun = len(list(offsets.glob("[0-9]*")))
        deadline = time.monotonic() + 120
        while len(list(offsets.glob("[0-9]*"))) == begun and time.monotonic() < deadline:
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        time.sleep(moments.uniform(0, 4))
        assert process.poll() is None, process.communicate()
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    last = {"id": -1, "min_time": 10**8, "max_time": 10**8, "key": 9}
    for topic in command.topics[:2]:
        kafka.write(topic, [json.dumps(last | {"id": -1 - command.topics.index(topic), "key": 9})])
    code, _, err = command.once(*options)
    assert (code, err) == (0, "")
    expected = correlate_tables(
        *sides, within="300us", confidence=0.5, by="key", how="full",
        options=CorrelateOptions(unit="us"),
    )  # fmt: skip
    records = {json.dumps(record, sort_keys=True) for record in command.found()}
    rows = {json.dumps(row, sort_keys=True) for row in expected.to_pylist()}
    assert len(rows) == expected.num_rows
    assert records == rows
