"""Queries that go to every worker, and are made an index there once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from coincide.borders.monitor import Monitor
from coincide.borders.options import BorderOptions
from spark_plugin.worker.arrow.wide_columns import narrow_type, one_array
from spark_plugin.worker.borders.queries import Queries
from spark_plugin.worker.borders.searching import NewSearch
from spark_plugin.worker.wire.shipment import Shipment

_ID, _CLOSED = "query", "closed"


class Watch(NamedTuple):
    """Queries, and before any reading what tells of their crossings.

    Parameters
    ----------
    ids : pa.Array
    monitor : Monitor
        The number of a query is its row.
    """

    ids: pa.Array
    monitor: Monitor

    @property
    def kind(self) -> pa.DataType:
        """The type in which ids are handed out."""
        return narrow_type(self.ids.type)


@dataclass(frozen=True)
class ShippedQueries:
    """Queries on their way to the workers.

    Parameters
    ----------
    key : str
        What no others are called.
    shipment : Shipment
        A table of `as_table`.
    """

    key: str
    shipment: Shipment

    def watch(self, options: BorderOptions) -> Watch:
        """The queries, in a worker: their index is kept for the tasks that follow."""
        if self.key not in _kept:
            # One at a time: it may be large.
            _kept.clear()
            _kept[self.key] = _watch_of(self.shipment.table(), options)
        ids, monitor = _kept[self.key]
        return Watch(ids, monitor.restarted())


_kept: dict[str, Watch] = {}


def as_table(queries: Queries, ids: pa.Array) -> pa.Table:
    """Queries to be sent, with their ids as they cross."""
    borders = np.concatenate([queries.lower, queries.upper], axis=1)
    columns = {str(k): borders[:, k] for k in range(borders.shape[1])}
    return pa.table({_ID: ids, _CLOSED: queries.closed, **columns})


def _watch_of(table: pa.Table, options: BorderOptions) -> Watch:
    ids, closed, *columns = (one_array(column) for column in table.columns)
    lower, upper = np.split(np.stack([column.to_numpy() for column in columns], axis=1), 2, axis=1)
    monitor = Monitor(lower.shape[1], options, NewSearch(options.backend, options.threads or 1))
    monitor.add(np.ascontiguousarray(lower), np.ascontiguousarray(upper), closed.to_numpy())
    return Watch(ids, monitor)
