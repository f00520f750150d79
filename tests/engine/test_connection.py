"""What Spark has sent is acknowledged at once: else the rest waits for the kernel's patience."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_plugin.tasks import connection as worker_connection
from spark_plugin.tasks.connection import acknowledge, acknowledged, begin_task

is_linux = pytest.mark.skipif(
    not hasattr(socket, "TCP_QUICKACK"), reason="only Linux can be told to acknowledge at once"
)


def is_prompt(descriptor: int) -> int:
    """Whether a connection acknowledges at once."""
    asked = socket.socket(fileno=descriptor)
    try:
        return asked.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK)
    finally:
        asked.detach()


def hold_back(descriptor: int) -> None:
    """Let a connection acknowledge late."""
    told = socket.socket(fileno=descriptor)
    try:
        told.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
    finally:
        told.detach()


@is_linux
def test_a_connection_acknowledges_at_once_and_stays_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        sender = socket.create_connection(server.getsockname())
        receiver, _ = server.accept()
    with sender, receiver:
        hold_back(receiver.fileno())
        assert not is_prompt(receiver.fileno())
        # If a socket object were made from it, the connection would no longer block.
        socket.setdefaulttimeout(5.0)
        try:
            acknowledge(receiver.fileno())
        finally:
            socket.setdefaulttimeout(None)
        assert os.get_blocking(receiver.fileno())
        assert is_prompt(receiver.fileno())
        sender.sendall(b"row")
        assert receiver.recv(3) == b"row"


@is_linux
def test_what_is_no_such_connection_is_left_alone(tmp_path: Path) -> None:
    acknowledge(-1)
    sender, receiver = socket.socketpair(socket.AF_UNIX)
    with sender, receiver:
        acknowledge(receiver.fileno())
        sender.sendall(b"row")
        assert receiver.recv(3) == b"row"
    with (tmp_path / "file").open("w") as file:
        acknowledge(file.fileno())
        file.write("still open")
    reader, writer = os.pipe()
    acknowledge(reader)
    os.close(writer)
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_outside_of_a_worker_there_is_none() -> None:
    assert worker_connection._connection() is None
    batch = pa.record_batch({"id": [1]})
    assert list(acknowledged([batch, batch])) == [batch, batch]


@is_linux
@pytest.mark.spark
def test_workers_of_spark_acknowledge_at_once(spark: SparkSession) -> None:
    """Before the first batch is waited for, with each, and before the next one is."""

    def seen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        descriptor = worker_connection._connection()
        if descriptor is None:
            return
        told = []

        def tell() -> None:
            told.append(bool(is_prompt(descriptor)))
            hold_back(descriptor)

        def watched() -> Iterator[pa.RecordBatch]:
            tell()
            for batch in batches:
                yield batch
                tell()

        hold_back(descriptor)
        tell()
        for _ in begin_task(watched()):
            tell()
        yield pa.RecordBatch.from_pydict({"prompt": told})

    old = spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10")
    try:
        rows = spark.range(0, 30, 1, 1).mapInArrow(seen, "prompt boolean").collect()
    finally:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", old)
    assert [row["prompt"] for row in rows] == [False, *[True] * 7]
