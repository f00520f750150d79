"""What a causality join computes of its sides, and the columns of its pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from coincide.engine.causality.shapes import DELTA, causal_emission
from coincide.engine.events.sides import Side, grouped_events
from coincide.engine.events.timestamps import INTERVALS, SideModel
from coincide.engine.join.emission import Emission
from coincide.engine.join.emissions import task_emission
from coincide.engine.join.one_stream import numbered
from coincide.engine.join.pair_filter import PairFilter
from coincide.engine.join.spec import MERITS_OF_BOTH, AnySpec
from coincide.model.causality.condition import CausalityModel
from coincide.model.causality.spaces import PlacedEvents, Space
from coincide.model.causality.template_rule import with_templates
from coincide.model.classes import ShapeClasses
from coincide.model.condition import Window
from coincide.model.errors import ConditionError
from coincide.model.options import Emit, How
from coincide.model.partners import MOST_PROBABLE, Partners
from coincide.model.sides import LEFT
from coincide.model.templates.template import TemplateTable
from coincide.model.timestamps.mixed import around_keys
from coincide.model.units import TIME_LIMIT


@dataclass(frozen=True)
class CausalitySpec(AnySpec):
    """What a causality join computes, resolved to ticks: everything but the data."""

    model: CausalityModel
    space: Space
    coordinates: int = 0
    how: How = "inner"
    emit: Emit = "pairs"
    threads: int = 1
    batch_pairs: int = 1_000_000
    is_one_stream: bool = False
    pairs_once: bool = False
    backend: str = "auto"
    shift: int = 0
    merits: bool = False
    models: tuple[SideModel, SideModel] = (INTERVALS, INTERVALS)
    case_fold: bool = False
    where: PairFilter | None = None
    partners: Partners = MOST_PROBABLE
    probability: bool = False
    delta_name: str = DELTA
    in_order: bool = False

    prefixes: ClassVar[tuple[str, str]] = ("cause", "effect")

    @property
    def widest(self) -> Window:
        """As of `AnySpec`, exactly; of no delta at all where one would be looked for."""
        (lo, hi), threshold = self.model.deltas, self.model.rule.threshold
        return Window(*((lo, hi) if lo <= hi else self.model.window), threshold)

    @property
    def widest_of_rows(self) -> Window:  # noqa: D102
        lo, hi = self.model.window
        return replace(self.widest, lo=lo - self.shift, hi=hi - self.shift)

    @property
    def measures(self) -> dict[str, pa.DataType]:
        """Delta, distance and probability, where there are such, and by what best pairs were chosen."""
        measures = {self.delta_name: pa.int64()}
        if self.coordinates:
            measures["distance"] = pa.float64()
        if self.probability or self.merits:
            measures["probability"] = pa.float64()
        if self.merits:
            has_order = self.partners.prefer != "probability"
            names = MERITS_OF_BOTH if self.matching else MERITS_OF_BOTH[not has_order : 2]
            return {**measures, **dict.fromkeys(names, pa.int64())}
        return {**measures, "rank": pa.int64()} if self.k > 1 else measures

    @property
    def pairs(self) -> CausalBounds:
        """The condition on the timestamps of both sides."""
        own, others = (model.table for model in self.models)
        return CausalBounds(*self.model.window, self.shift, self.model, (own, others))

    def with_merits(self) -> CausalitySpec:  # noqa: D102
        return self.but(merits=True)

    def moved(self, ticks: int) -> CausalitySpec:
        """As of `AnySpec`: effects are moved where they are joined."""
        return self.but(
            shift=ticks, how="inner", emit="counts", partners=MOST_PROBABLE, probability=False
        )


@task_emission.register
def _(spec: CausalitySpec, left: Side, right: Side, schema: pa.Schema) -> Emission:
    if spec.is_one_stream:
        left, right = numbered(left, right)
    own, others = placed_events(left, right, spec.space, case_fold=spec.case_fold)
    if spec.shift:
        right, others = moved_effects(right, others, spec.shift)
    return causal_emission(left, right, (own, others), spec, schema)


_FARTHEST = 2**63 - 1
"""Half ticks; no two midpoints are as far apart."""


@dataclass(frozen=True)
class CausalBounds:
    """How far apart causes and effects can be: `coincide.engine.events.timestamps.Bounds`."""

    lo: int
    hi: int
    shift: int = 0
    model: CausalityModel | None = None
    tables: tuple[TemplateTable | None, TemplateTable | None] = (None, None)

    def bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:
        """Bounds on the difference of doubled midpoints; delta may be off by the intervals' lengths."""
        sides = (own, other) if base_side == LEFT else (other, own)
        causes, effects = (around_keys(*each) for each in zip(self.tables, sides, strict=True))
        before, after = np.add.outer(causes[0], effects[1]), np.add.outer(causes[1], effects[0])
        first, last = 2 * self.lo - before, 2 * self.hi + after
        first, last = first - 2 * self.shift, last - 2 * self.shift
        if base_side != LEFT:
            first, last = -last.T, -first.T
        first, last = (np.clip(ends, -_FARTHEST, _FARTHEST) for ends in (first, last))
        return np.stack([first, first, last, last], axis=-1).astype(np.int64)


def points_of(side: Side, space: Space) -> np.ndarray | None:
    """Where the events of a side are, as `PlacedEvents.points`; None of a side without coordinates."""
    return space.points([column.to_numpy() for column in side.places]) if side.places else None


def placed_events(
    causes: Side,
    effects: Side,
    space: Space,
    *,
    case_fold: bool = False,
) -> tuple[PlacedEvents, PlacedEvents]:
    """Both sides as a causality join takes them."""
    grouped = grouped_events(causes, effects, case_fold=case_fold)
    own, others = (
        PlacedEvents(
            side.max_time,
            points_of(side, space),
            side.shapes if side.shapes.any() or side.model.table is not None else None,
            events.group,
            events.groups,
            templates=side.model.table,
        )
        for side, events in zip((causes, effects), grouped, strict=True)
    )
    if own.templates is None and others.templates is None:
        return own, others
    return with_templates(own), with_templates(others)


def moved_effects(effects: Side, events: PlacedEvents, ticks: int) -> tuple[Side, PlacedEvents]:
    """Effects, their times moved and no other column copied."""
    times = events.times if events.group is None else events.times[events.group >= 0]
    farthest = max(abs(int(times.min(initial=0)) + ticks), abs(int(times.max(initial=0)) + ticks))
    if farthest >= TIME_LIMIT:
        raise ConditionError(
            f"a shift of {ticks} ticks moves effects beyond 2^61 ticks. Use a shorter one, or a coarser"
            " tick"
        )
    moved = events.times + ticks
    return replace(effects, max_time=moved), replace(events, times=moved)


def placed_stream(events: Side, space: Space, *, case_fold: bool = False) -> PlacedEvents:
    """One stream as a causality join with itself takes it."""
    nothing = events.rows(np.empty(0, np.int64))
    return placed_events(events, nothing, space, case_fold=case_fold)[0]
