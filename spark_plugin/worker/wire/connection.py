"""The connection by which Spark sends rows to a Python worker, without waits for acknowledgements.

By default it is TCP, with Nagle's algorithm: what fills no segment waits until all before it is
acknowledged. A worker has nothing to send meanwhile, so its kernel holds the acknowledgement back, 40 ms
on Linux: after the command that begins a task, and before the last rows of many a batch.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress

import pyarrow as pa

_ACKNOWLEDGE_NOW = getattr(socket, "TCP_QUICKACK", None)
"""Linux only; the kernel takes it back by and by."""
_WORKER = "pyspark.worker"
_READER = "infile"


def acknowledged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches; what has been received by then is acknowledged before each is waited for."""
    connection = _connection()
    acknowledge(connection)
    for batch in batches:
        acknowledge(connection)
        yield batch


def acknowledge(connection: int | None) -> None:
    """Acknowledge what has been received, if a descriptor is that of a TCP connection."""
    if connection is None or _ACKNOWLEDGE_NOW is None:
        return
    try:
        received = socket.socket(fileno=connection)
    except OSError:  # no socket at all
        return
    try:
        if received.family in (socket.AF_INET, socket.AF_INET6):
            with suppress(OSError):  # rows come as well without, only later
                received.setsockopt(socket.IPPROTO_TCP, _ACKNOWLEDGE_NOW, 1)
    finally:
        received.detach()  # Spark's worker is to close it


def _connection() -> int | None:
    """The descriptor that Spark's worker, which has called this, reads; None outside of one.

    The worker hands it to nobody: it is a variable of the function that runs the task.
    """
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_globals.get("__name__") == _WORKER and _READER in frame.f_locals:
            try:
                descriptor: int = frame.f_locals[_READER].fileno()
            except (AttributeError, OSError):  # without a daemon it reads a pair of streams
                return None
            return descriptor
    return None
