"""The connection by which Spark sends rows to a Python worker, without waits for acknowledgements.

By default it is TCP, with Nagle's algorithm: what fills no segment waits until all before it is
acknowledged. A worker has nothing to send meanwhile, so its kernel holds the acknowledgement back, 40 ms
on Linux: after the command that begins a task, and before the last rows of many a batch.
"""

from __future__ import annotations

import ctypes
import io
import socket
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import pyarrow as pa

_ACKNOWLEDGE_NOW = getattr(socket, "TCP_QUICKACK", None)
"""Linux only; the kernel takes it back by and by."""
_WORKER = "pyspark.worker"
_READER = "infile"
_ON = ctypes.c_int(1)


def acknowledged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches. What has been received is acknowledged now, and about each batch."""
    connection = _connection()
    if connection is None or _ACKNOWLEDGE_NOW is None:
        return iter(batches)
    acknowledge(connection)
    return _acknowledged(batches, connection)


def _acknowledged(batches: Iterable[pa.RecordBatch], connection: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        acknowledge(connection)
        yield batch
        acknowledge(connection)


def acknowledge(connection: int) -> None:
    """Acknowledge what has been received, if a descriptor is that of a TCP connection.

    By the C library's call: a socket object of Python's would let Spark's connection no longer block, where
    somebody has set a default timeout. Of anything but TCP it is refused, and nothing is the matter.
    """
    _set_option()(connection, socket.IPPROTO_TCP, _ACKNOWLEDGE_NOW, ctypes.byref(_ON), 4)


@cache
def _set_option() -> Any:
    return ctypes.CDLL(None).setsockopt


def _connection() -> int | None:
    """The descriptor that Spark's worker, which has called this, reads; None outside of one.

    The worker hands it to nobody: it is a variable of the function that runs the task. Workers that
    Spark's daemon has started have it; without a daemon they are scripts of another name.
    """
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_globals.get("__name__") == _WORKER and _READER in frame.f_locals:
            try:
                descriptor: int = frame.f_locals[_READER].fileno()
            except (AttributeError, io.UnsupportedOperation):
                return None
            return descriptor
    return None
