"""A Kafka broker on this machine, for tests and for docs/how-to/kafka.md. Only this machine reaches it.

    python scripts/kafka_broker.py start            # prints HOST:PORT
    python scripts/kafka_broker.py topic requests
    python scripts/kafka_broker.py write requests < requests.jsonl
    python scripts/kafka_broker.py read requests
    python scripts/kafka_broker.py jars             # of Spark's connector: for --conf spark.jars=...
    python scripts/kafka_broker.py stop

Its jars come from Maven Central, once, by Apache Ivy, which Spark brings; or from the repository that
DEFAULT_ARTIFACT_REPOSITORY names, as Spark has it. What the broker holds is below --folder.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from spark_plugin.cluster.session import find_java

HOST = "127.0.0.1"
BROKER = ("org.apache.kafka:kafka_2.13:4.1.1", "org.apache.kafka:kafka-tools:4.1.1")
CONNECTOR = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.3",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.1.1",
    "org.apache.spark:spark-avro_2.13:4.1.1",
)
"""For Spark 4.1: topics, and records of Avro; not all repositories have all of 4.1.3.

Before 4.1.3 a query fails that goes on after it was cut off in a batch (SPARK-57438).
"""
_START_SECONDS = 60
_WAIT_MS = "60000"
_SMALL = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
num.partitions=2
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


class NoJars(RuntimeError):
    """The jars are not on this machine, and cannot be fetched."""


@dataclass(frozen=True)
class Broker:
    """A broker that runs."""

    port: int

    @property
    def servers(self) -> str:
        """Its address, for clients."""
        return f"{HOST}:{self.port}"

    def create(self, topic: str, partitions: int = 2) -> None:
        """Make a topic."""
        _tool(
            "TopicCommand", *("--bootstrap-server", self.servers, "--create", "--topic", topic),
            *("--partitions", str(partitions)),
        )  # fmt: skip

    def write(self, topic: str, lines: Iterable[str]) -> None:
        """Append a record for each line; ``<null>`` is one without a value."""
        words = ("--bootstrap-server", self.servers, "--topic", topic)
        null = ("--property", "null.marker=<null>")
        _tool("ConsoleProducer", *words, *null, given="".join(f"{line}\n" for line in lines))

    def read(self, topic: str) -> list[str]:
        """All records, in no order among partitions."""
        where = ("--bootstrap-server", self.servers, "--topic", topic)
        ends = [line.rpartition(":")[2] for line in _tool("GetOffsetShell", *where).splitlines()]
        count = sum(map(int, ends))
        if not count:
            return []
        wanted = ("--from-beginning", "--max-messages", str(count), "--timeout-ms", _WAIT_MS)
        return _tool("consumer.ConsoleConsumer", *where, *wanted).splitlines()


def jars(coordinates: tuple[str, ...]) -> Path:
    """The folder of some jars and of all that they need; fetched if it is not there."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "coincide"
    folder = cache / "-".join(coordinates[0].split(":")[1:])
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix="fetching-") as work:
        _fetch(coordinates, Path(work))
        with suppress(OSError):  # someone else was faster
            Path(work, "jars").rename(folder)
    return folder


def _fetch(coordinates: Iterable[str], work: Path) -> None:
    import pyspark

    (ivy,) = Path(pyspark.__file__).parent.glob("jars/ivy-*.jar")
    told = os.environ.get("DEFAULT_ARTIFACT_REPOSITORY")
    root = f' root="{told}"' if told else ""
    (work / "settings.xml").write_text(
        '<ivysettings><settings defaultResolver="central"/><resolvers>'
        f'<ibiblio name="central" m2compatible="true"{root}/></resolvers></ivysettings>',
        encoding="utf-8",
    )
    parts = [each.split(":") for each in coordinates]
    needed = "".join(
        '<dependency org="{}" name="{}" rev="{}" conf="default"/>'.format(*each) for each in parts
    )
    settled = "".join('<override org="{}" module="{}" rev="{}"/>'.format(*each) for each in parts)
    # Spark brings what the connector needs of itself and of Hadoop.
    brought = "".join(
        f'<exclude org="{org}"/>'
        for org in ("org.apache.hadoop", "org.scala-lang", "org.scala-lang.modules")
        if coordinates is CONNECTOR
    )
    (work / "ivy.xml").write_text(
        '<ivy-module version="2.0"><info organisation="coincide" module="jars"/>'
        f"<dependencies>{needed}{brought}{settled}</dependencies></ivy-module>",
        encoding="utf-8",
    )
    done = subprocess.run(
        [
            *(f"{find_java().home}/bin/java", "-jar", ivy, "-warn", "-cache", work / "cache"),
            *("-settings", work / "settings.xml", "-ivy", work / "ivy.xml", "-confs", "default"),
            *("-retrieve", f"{work}/jars/[artifact]-[revision].[ext]"),
        ],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise NoJars(
            f"cannot fetch {', '.join(coordinates)}: {(done.stdout + done.stderr)[-2000:]}"
        )


@contextmanager
def kafka_broker(folder: Path) -> Iterator[Broker]:
    """A broker that runs while the block does; what it holds is below the folder."""
    broker, process = _started(folder)
    try:
        yield broker
    finally:
        process.terminate()
        process.wait()


def _started(folder: Path) -> tuple[Broker, subprocess.Popen[bytes]]:
    """Format a folder, start a broker on it, and wait until it listens."""
    folder.mkdir(parents=True, exist_ok=True)
    port, controller = _free_ports()
    properties = folder / "server.properties"
    properties.write_text(
        _PROPERTIES.format(host=HOST, port=port, controller=controller, data=folder / "data"),
        encoding="utf-8",
    )
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    _java("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties))
    with open(folder / "broker.log", "wb") as log:
        process = subprocess.Popen(
            _command("kafka.Kafka", str(properties)),
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    deadline = time.monotonic() + _START_SECONDS
    while not _listens(port):
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            raise RuntimeError(f"the broker does not start; see {folder / 'broker.log'}")
        time.sleep(0.1)
    return Broker(port), process


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        for each in (one, other):
            each.bind((HOST, 0))
        return one.getsockname()[1], other.getsockname()[1]


def _listens(port: int) -> bool:
    with socket.socket() as found:
        return found.connect_ex((HOST, port)) == 0


def _tool(name: str, *words: str, given: str = "") -> str:
    return _java(f"org.apache.kafka.tools.{name}", *words, given=given)


def _java(main: str, *words: str, given: str = "") -> str:
    done = subprocess.run(
        _command(main, *words), input=given, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{main} failed: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def _command(main: str, *words: str) -> list[str]:
    return [f"{find_java().home}/bin/java", *_SMALL, "-cp", f"{jars(BROKER)}/*", main, *words]


def main() -> None:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=["start", "stop", "topic", "write", "read", "jars"])
    parser.add_argument("topic", nargs="?")
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path(".cache/kafka"))
    words = parser.parse_args()
    if words.what == "jars":
        print(",".join(str(jar) for jar in sorted(jars(CONNECTOR).glob("*.jar"))))
        return
    state = words.folder.resolve() / "running.json"
    if words.what == "start":
        if state.exists():
            parser.error(f"a broker runs already, or was killed: stop it first (found {state})")
        shutil.rmtree(words.folder, ignore_errors=True)
        broker, process = _started(words.folder.resolve())
        state.write_text(json.dumps({"pid": process.pid, "port": broker.port}), encoding="utf-8")
        print(broker.servers)
        return
    if not state.exists():
        parser.error(f"no broker runs in {words.folder}. Start one first")
    running = json.loads(state.read_text(encoding="utf-8"))
    if words.what == "stop":
        _stop(running["pid"])
        state.unlink()
        return
    if words.topic is None:
        parser.error("name the topic")
    broker = Broker(running["port"])
    if words.what == "topic":
        broker.create(words.topic, words.partitions)
    elif words.what == "write":
        broker.write(words.topic, sys.stdin.read().splitlines())
    else:
        print("\n".join(broker.read(words.topic)))


def _stop(pid: int) -> None:
    """End a process, and wait until it is gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
        while True:
            os.kill(pid, 0)
            time.sleep(0.1)


if __name__ == "__main__":
    main()
