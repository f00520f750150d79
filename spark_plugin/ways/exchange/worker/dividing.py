"""A slice that has turned out too large: it is cut once more, in memory, and joined part by part.

Packs take a tenth of the memory that joining their events does. So they are what a worker holds of such a
slice, and of each part all that a join needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from coincide.options import SideName
from spark_plugin.ways.exchange.worker.blobs import rows_of, unpacked
from spark_plugin.ways.exchange.worker.packing import PackTask, Placing
from spark_plugin.worker.timestamps.models import SideModel
from spark_plugin.worker.wire.columns import SALT

Packed = tuple[list[pa.Buffer], list[pa.Buffer]]
"""Packs of both sides."""


class Divided(Placing, Protocol):
    """A plan of so many parts."""

    @property
    def count(self) -> int:
        """Number of parts."""


class Dividing(Protocol):
    """A plan whose slices can be divided."""

    def finer(self, count: int) -> Divided:
        """A plan for the events of one of its slices."""


@dataclass(frozen=True)
class Room:
    """What a worker may join at once.

    Parameters
    ----------
    plan : Dividing
        By which slices were cut.
    rows, bytes : int
        Most events of both sides, and bytes of their packs.
    """

    plan: Dividing
    rows: int
    bytes: int

    def parts(self, packs: Packed) -> int:
        """Into how many parts a slice is to be divided."""
        both = [pack for of_side in packs for pack in of_side]
        rows, size = sum(map(rows_of, both)), sum(pack.size for pack in both)
        return max(1, -(-rows // self.rows), -(-size // self.bytes))


def divided(
    packs: Packed,
    plan: Divided,
    schemas: tuple[pa.Schema, pa.Schema],
    models: tuple[SideModel, SideModel],
) -> Iterator[Packed]:
    """The parts of a slice, each with all partners of its left events.

    Parameters
    ----------
    packs : (list of pa.Buffer, list of pa.Buffer)
        Taken out of the lists as they are cut.
    plan : Divided
        Says in which parts an event is.
    schemas : (pa.Schema, pa.Schema)
        Of the events of each side.
    models : (SideModel, SideModel)
        Of their timestamps.
    """
    parts: list[Packed] = [([], []) for _ in range(plan.count)]
    sides: tuple[SideName, SideName] = ("left", "right")
    for i, side in enumerate(sides):
        task = PackTask(side, schemas[i], models[i], plan, np.arange(plan.count))
        for number, blob in task.packs(_rows(packs[i])):
            parts[number][i].append(blob)
    parts.reverse()
    while parts:
        yield parts.pop()


def _rows(packs: list[pa.Buffer]) -> Iterator[pa.RecordBatch]:
    """Events of all packs, with salts for those that match nothing: nobody cuts them another time."""
    while packs:
        rows = unpacked([packs.pop()])
        yield from rows.append_column(SALT, pa.array(np.arange(rows.num_rows))).to_batches()
