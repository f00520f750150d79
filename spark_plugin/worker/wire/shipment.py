"""A table that goes to every worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class Shipment:
    """A table on its way to the workers: `spark_plugin.dataframes.shipping.ship` sends it.

    Parameters
    ----------
    content : pyspark.Broadcast or bytes
        The table as an Arrow stream. Broadcast, it reaches each worker once; else with every task.
    """

    content: Any

    def close(self) -> None:
        """Let go of it: it can be joined with no longer."""
        if hasattr(self.content, "destroy"):
            self.content.destroy()

    def table(self) -> pa.Table:
        """The table, where it has arrived; no copy is made."""
        content = getattr(self.content, "value", self.content)
        return pa.ipc.open_stream(pa.py_buffer(content)).read_all()


def as_stream(table: pa.Table) -> bytes:
    """A table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content
