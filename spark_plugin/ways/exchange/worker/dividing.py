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
from spark_plugin.ways.exchange.worker.blobs import opened, unpacked
from spark_plugin.ways.exchange.worker.packing import PackTask, Placing
from spark_plugin.worker.timestamps.models import SideModel

Batches = list[pa.RecordBatch]
"""Packs of a side, as `opened`."""


class Dividing(Placing, Protocol):
    """A plan whose slices can be divided."""

    def finer(self, count: int) -> Placing:
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

    def holds(self, packs: tuple[Batches, Batches]) -> bool:
        """Whether a slice is joined as it is."""
        return self.parts(packs) == 1

    def parts(self, packs: tuple[Batches, Batches]) -> int:
        """Into how many parts it is to be divided."""
        both = [pack for of_side in packs for pack in of_side]
        rows, size = sum(pack.num_rows for pack in both), sum(pack.nbytes for pack in both)
        return max(1, -(-rows // self.rows), -(-size // self.bytes))


def divided(
    packs: tuple[Batches, Batches],
    room: Room,
    schemas: tuple[pa.Schema, pa.Schema],
    models: tuple[SideModel, SideModel],
) -> Iterator[tuple[Batches, Batches]]:
    """The parts of a slice, each with all partners of its left events.

    Parameters
    ----------
    packs : (list of pa.RecordBatch, list of pa.RecordBatch)
        Of both sides; taken out of the lists, so that they need not be held twice.
    room : Room
    schemas : (pa.Schema, pa.Schema)
        Of the events of each side.
    models : (SideModel, SideModel)
        Of their timestamps.
    """
    count = room.parts(packs)
    plan, numbers = room.plan.finer(count), np.arange(count)
    parts: list[tuple[Batches, Batches]] = [([], []) for _ in range(count)]
    sides: tuple[SideName, SideName] = ("left", "right")
    for i, side in enumerate(sides):
        task = PackTask(side, schemas[i], models[i], plan, numbers)
        while packs[i]:
            for number, blob in task.packs(unpacked([packs[i].pop()]).to_batches()):
                parts[number][i].append(opened(blob))
    parts.reverse()
    while parts:
        yield parts.pop()
