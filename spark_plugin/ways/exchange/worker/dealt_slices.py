"""The worker of an exchange that deals right events: a left event meets its partners in several slices.

A slice knows some of the partners of its left events. It yields what it found with what tells events
apart; `spark_plugin.ways.exchange.dealt_results` adds it up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_plugin.ways.exchange.worker.task import SliceTask
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.emission.emission import Emission
from spark_plugin.worker.emission.spec import AnySpec
from spark_plugin.worker.numbering import numbers_in_runs
from spark_plugin.worker.partial_results import parts_of_best
from spark_plugin.worker.wire.columns import HASHES


def needs_adding_up(spec: AnySpec) -> bool:
    """Whether a slice that lacks partners of its left events yields no final rows."""
    return spec.how != "inner" or spec.emit != "pairs"


def dealt_spec(spec: AnySpec) -> AnySpec:
    """What a slice computes of a join whose parts are added up."""
    if spec.emit == "best":
        return spec.with_merits().but(how="left")
    if spec.one_row_per_event:
        return spec.but(how="left", emit="counts")
    return spec.but(how="left")


@dataclass(frozen=True, kw_only=True)
class DealtSliceTask(SliceTask):
    """Yields of each left event of a slice: which it is, its columns, what it met there.

    `spec` is from `dealt_spec`; the left payload ends with `HASHES`.

    Parameters
    ----------
    first_labels : int64 array
        Labels of the slices with first parts. They tell of each left event; others only of those that
        have partners there, and unless they yield pairs without their columns.
    """

    first_labels: np.ndarray

    def keeps_whole(self, label: int) -> bool:
        """Left events that match nothing are told of by slices with first parts alone."""
        return bool(np.isin(label, self.first_labels))

    def joined_slice(self, left: Side, right: Side, label: int | None) -> Emission:
        """The join of one slice."""
        is_first = label is None or bool(np.isin(label, self.first_labels))
        *columns, first_hash, second_hash = left.payload
        hashes = [first_hash, second_hash]
        event = [*hashes, pa.array(_occurrences(*(column.to_numpy() for column in hashes)))]
        if not is_first and self.spec.emit != "pairs":
            columns = [pa.nulls(len(left), column.type) for column in columns]
        told = [pa.array(np.full(len(left), is_first)), *event]
        if self.spec.emit == "best":
            told.append(pa.array(left.min_time + left.max_time))
            times = [pa.array(right.max_time), pa.array(right.min_time)]
            right = replace(right, payload=[*right.payload, *times])
        if self.spec.emit == "pairs":
            # Tells a partner whose columns are null from none.
            right = replace(
                right, payload=[pa.array(np.ones(len(right), np.int64)), *right.payload]
            )
        left = replace(left, payload=[*told, *columns])
        spec = self.spec if is_first else self.spec.but(how="inner")
        return replace(self, spec=spec).joined(left, right)

    def finished(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Which event, its keys and columns, what it met, and for the best what their order goes by."""
        keys, rest = np.split(np.arange(batch.num_columns), [len(self.layout.keys)])
        is_first, *columns = [batch.column(int(i)) for i in rest]
        own = [batch.column(int(i)) for i in keys]
        if self.spec.emit != "pairs":
            own = [pc.if_else(is_first, key, pa.scalar(None, key.type)) for key in own]
        known = len(HASHES) + 1
        event, columns = columns[:known], columns[known:]
        if self.spec.emit != "best":
            return [*event, *own, *columns]
        return [*event, *own, *parts_of_best(self.spec, columns)]


def _occurrences(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The how-many-eth of its kind each event is: int64 array.

    Events that are alike in all are together in all slices, so that numbers tell them apart everywhere.
    """
    order = np.lexsort((second, first))
    ordered = first[order], second[order]
    begins = np.ones(first.size, bool)
    begins[1:] = (ordered[0][1:] != ordered[0][:-1]) | (ordered[1][1:] != ordered[1][:-1])
    numbers = np.empty(first.size, np.int64)
    numbers[order] = numbers_in_runs(begins)
    return numbers
