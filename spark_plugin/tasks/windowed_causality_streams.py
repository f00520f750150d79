"""Causality through windows of a stream of tuples, by bucket of their keys."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.windowed_causality.window import WindowColumns, WindowedCausality
from spark_plugin.tasks.monitors import Monitors, StreamMonitor
from spark_plugin.tasks.windowed_causality import KeyedTuples
from spark_plugin.tasks.wire import begins

_CODEC = "zstd"
"""A window has room for more than is in it: packed it is a fifth."""


@dataclass(frozen=True)
class WindowMonitors(Monitors):
    """Monitors of windows."""

    columns: KeyedTuples

    def monitor(self, state: bytes | None) -> WindowsOfBucket:
        """A new monitor, or one with what it remembers."""
        return WindowsOfBucket(self.columns, state)


class WindowsOfBucket(StreamMonitor):
    """Remembers the window of each key, as bytes until tuples of the key come."""

    def __init__(self, columns: KeyedTuples, state: bytes | None) -> None:
        self._columns = columns
        self._windows: dict[tuple[Any, ...], bytes] = {} if state is None else pickle.loads(state)

    def take(self, rows: pa.Table) -> Iterator[list[pa.Array]]:
        """The output columns that the tuples of one slice, in any order, make known."""
        rows = rows.take(_order(rows.select([*rows.column_names[: self._columns.keys],
                                             *self._columns.order])))  # fmt: skip
        keys = self._columns.keys_of(rows)
        first = np.flatnonzero(begins(keys)).tolist()
        for start, stop in pairwise([*first, rows.num_rows]):
            key = tuple(column[start].as_py() for column in keys)
            window = self._window(key)
            yield from self._columns.pairs(window, rows.slice(start, stop - start))
            self._windows[key] = _packed(window)

    def _window(self, key: tuple[Any, ...]) -> WindowedCausality:
        if key not in self._windows:
            return WindowedCausality(**vars(self._columns.arguments))
        packed = pa.BufferReader(self._windows[key])
        window: WindowedCausality = pickle.loads(pa.CompressedInputStream(packed, _CODEC).read())
        return window

    def state(self) -> bytes:
        """All that it has to remember."""
        return pickle.dumps(self._windows)


def _packed(window: WindowedCausality) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, _CODEC) as packed:
        packed.write(pickle.dumps(window))
    found: bytes = sink.getvalue().to_pybytes()
    return found


def _order(rows: pa.Table) -> pa.Array:
    """Where the rows are in Spark's order: nulls come first, and NaN last."""
    columns = {}
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        columns[f"{name} is known"] = pc.is_valid(column)
        if pa.types.is_floating(column.type):
            columns[f"{name} is nan"] = pc.is_nan(column)
        columns[name] = column
    by = [(name, "ascending") for name in columns]
    return pc.sort_indices(pa.table(columns), sort_keys=by)


def valid_tuples(columns: KeyedTuples, table: pa.Table) -> pa.Table:
    """The tuples of a chunk, which has invalid ones only if they are to be refused."""
    if columns.arguments.options.invalid == "raise":
        tuples = columns.tuples(table)
        WindowColumns(tuples.schema, columns.arguments).unmatchable(tuples)
    return table
