"""The worker of the exchange: every partition is one slice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_plugin.emission import Emission
from spark_plugin.wire import CODED, is_left
from spark_plugin.wire_sides import read_side
from spark_plugin.wire_task import WireTask


@dataclass(frozen=True)
class SliceTask(WireTask):
    """Gathers one slice and joins it."""

    def emissions(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Emission]:
        """The join of the partition."""
        gathered = list(batches)
        if not gathered:
            return
        table = pa.Table.from_batches(gathered)
        del gathered
        is_base = is_left(table.column(CODED).to_numpy())
        left = read_side(table, self.layout, "left", np.flatnonzero(is_base))
        right = read_side(table, self.layout, "right", np.flatnonzero(~is_base))
        del table, is_base
        yield self.joined(left, right)
