"""What a causality join computes, and the columns of its pairs.

Tasks that hold such a spec find here what a join of theirs emits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa

from coincide.cause_and_effect.condition import CausalityModel
from coincide.cause_and_effect.spaces import Space
from coincide.condition import Window
from coincide.options import Emit, How
from coincide.partners import MOST_PROBABLE, Partners
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.causality.bounds import CausalBounds
from spark_plugin.worker.causality.events import moved_effects, placed_events
from spark_plugin.worker.causality.measures import DELTA
from spark_plugin.worker.causality.shapes import causal_emission
from spark_plugin.worker.emission import task_emission
from spark_plugin.worker.emission.emission import Emission
from spark_plugin.worker.emission.spec import MERITS_OF_BOTH, AnySpec
from spark_plugin.worker.one_stream import numbered
from spark_plugin.worker.timestamps.models import INTERVALS, SideModel
from spark_plugin.worker.where.pair_filter import PairFilter


@dataclass(frozen=True)
class CausalitySpec(AnySpec):
    """What a causality join computes, resolved to ticks: everything but the data.

    Parameters
    ----------
    model : CausalityModel
    space : Space
    coordinates : int
        Of an event. If there are any pairs have a distance.
    is_one_stream, pairs_once : bool
        As of `spark_plugin.worker.emission.spec.JoinSpec`.
    shift : int
        Ticks by which effects are moved, where accidental pairs are counted.
    merits : bool
        Whether a best pair tells by what it was chosen.
    models : (SideModel, SideModel)
        Of the timestamps of causes and of effects.
    case_fold : bool
        Whether keys that are texts are equal if they are so in lower case.
    where : PairFilter or None
        What pairs must meet besides the condition.
    partners : Partners
        Which effects of a cause are handed out.
    probability : bool
        Whether the probability of a pair is told.
    delta_name : str
        Of the column of delta: `spark_plugin.worker.causality.measures.delta_name`.
    how, emit, threads, batch_pairs, backend
        As `spark_plugin.worker.emission.spec.JoinSpec`.
    """

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
