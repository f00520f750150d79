"""The two sides that an exchange brings together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from spark_plugin.dataframes.events import EventFrame
from spark_plugin.dataframes.wire_rows import wire_rows
from spark_plugin.ways.exchange.cells import CellPlan
from spark_plugin.ways.exchange.plan import SlicePlan
from spark_plugin.worker.wire.columns import HASHES, WireLayout


@dataclass(frozen=True)
class ExchangedSides:
    """Both sides, and what decides where their events go.

    Parameters
    ----------
    sides : (EventFrame, EventFrame)
    own, layout : WireLayout
        With the columns of the result, and of what crosses: with `HASHES` besides, or the same.
    plan : SlicePlan or CellPlan
    salts : sequence of str
        SQL of bigints that deal the events of a cell, left and right.
    keeps_unmatched, raise_invalid : bool
        As of `wire_rows`.
    """

    sides: tuple[EventFrame, EventFrame]
    own: WireLayout
    layout: WireLayout
    plan: SlicePlan | CellPlan
    salts: Sequence[str]
    keeps_unmatched: bool
    raise_invalid: bool

    def rows(self, side: EventFrame, own: WireLayout, place: Sequence[str]) -> DataFrame:
        """One side on the wire, with columns that tell where its rows go."""
        if self.plan.deals_right:
            place = (*place, *HASHES)
        return wire_rows(side, own, self.keeps_unmatched, self.raise_invalid, place=place)
