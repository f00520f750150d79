"""Causality joins of tables in one process, without a JVM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from coincide.engine.causality.arguments import CausalityArguments, Place
from coincide.engine.causality.emptiness import explain_no_effects, warn_of_names, warn_of_reach
from coincide.engine.causality.pairing import CausalitySpec, CausalPairing, placed_events
from coincide.engine.events.keys import Keys
from coincide.engine.events.places import check_coordinate_types
from coincide.engine.events.sides import Side
from coincide.engine.events.timestamp_names import GivenTimes
from coincide.engine.join.chosen_pairs import emission_of
from coincide.engine.join.emission import Emission
from coincide.engine.join.join import TableJoin, TablePlan, joined
from coincide.engine.join.pair_filter import GivenWhere
from coincide.engine.reports.emptiness import NoPairs, evidence_of
from coincide.engine.reports.join_report import JoinReport
from coincide.model.aggregates import Aggregates, Weights
from coincide.model.causality.condition import CausalityCondition
from coincide.model.options import (
    LARGEST_GROUP,
    Backend,
    CorrelateOptions,
    Emit,
    How,
    Matching,
    PreferEffect,
)


@dataclass(frozen=True)
class CausalPlan(TablePlan):
    """A causality join of tables of two schemas: everything but the rows, resolved and checked."""

    spec: CausalitySpec

    def join(self, left: Side, right: Side) -> Emission:
        """The output batches of a join of these events."""
        found = emission_of(left, right, self.spec, self.schema)
        assert isinstance(found.pairing, CausalPairing)
        places = [each.coordinates.given for each in self.times]
        warn_of_reach(self.spec.space, self.spec.model, found.pairing.events, places)
        return found

    def no_pairs(self, left: Side, right: Side) -> NoPairs:
        """Why a join of these events finds nothing, places included."""
        own, others = map(evidence_of, (left, right), [each.scales[0] for each in self.times])
        keys = None if self.spec.is_one_stream else self.key_overlap(left, right)
        events = placed_events(left, right, self.spec)
        return explain_no_effects(own, others, self.spec, keys, events)


class TableCausality(TableJoin):
    """A causality join of two tables, or of one with itself, batch by batch."""

    plan_kind = CausalPlan

    def __init__(
        self, causes: pa.Table, effects: pa.Table | None, arguments: CausalityArguments
    ) -> None:
        given = causes, causes if effects is None else effects
        for side, place, table in zip(arguments.sides, arguments.places, given, strict=True):
            check_coordinate_types(side, place, table.schema)
        warn_of_names(arguments.condition, arguments.places)
        super().__init__(causes, effects, arguments)


def causality_tables(
    causes: Any,
    effects: Any | None,
    condition: CausalityCondition,
    *,
    cause_time: GivenTimes = "time",
    effect_time: GivenTimes | None = None,
    cause_place: Place = (),
    effect_place: Place | None = None,
    by: Keys = (),
    cause_columns: str | Sequence[str] = ("id",),
    effect_columns: str | Sequence[str] = ("id",),
    how: How = "inner",
    emit: Emit = "pairs",
    probability: bool = False,
    backend: Backend = "auto",
    options: CorrelateOptions = CorrelateOptions(),
    report: JoinReport | None = None,
    where: GivenWhere = None,
    prefer: PreferEffect = "probability",
    k: int = 1,
    matching: Matching | None = None,
    largest_group: int = LARGEST_GROUP,
    aggregates: Aggregates | None = None,
    weights: Weights | None = None,
) -> pa.Table:
    """Find all pairs of a cause and its effect in two tables, in this process.

    Kwon & Li (2009), Definition 1, over all data: a pair qualifies when it meets every predicate of the
    condition.

    Parameters
    ----------
    causes : pa.Table, whatever offers Arrow's C stream, dict of arrays, list of dicts, or path
        Events: time columns (timestamps, integers or floats), coordinates, key columns, output
        columns. In options and units causes are the left side.
    effects : as causes, or None
        None: `causes` are one stream. Every event is a cause, and every other one may be its effect.
        ``emit="pairs"`` gives each unordered pair once; if both orders meet the condition, the
        earlier event is the cause.
    condition : CausalityCondition
    cause_time, effect_time : str, (str, str), Around or Histograms
        One column of exact instants, or the min and max column of interval timestamps; or as
        ``left_time`` of `coincide.correlate`. Effects have the times of causes unless you name others.
    cause_place, effect_place : sequence of str and float
        The coordinates, in the order of the condition's space: columns, or numbers that hold for every
        event. A null or NaN matches nothing. () where the condition is on times alone. Effects have
        the coordinates of causes unless you name others. For one stream name those of causes.
    by : str or sequence of str and (str, str)
        Columns that must be equal on both sides, ``("station", "sta")`` for a key with another name in
        effects: the output has that of causes. A null equals nothing; integers of any width are equal by
        value.
    cause_columns, effect_columns : str or sequence of str
        Columns for the output, as ``cause_<name>`` and ``effect_<name>``; ``"*"`` is all but keys.
        `effect_columns` have no effect with ``how="semi"``, ``how="anti"`` and ``emit="counts"``.
    how : {"inner", "left", "semi", "anti"}
        ``left`` keeps causes without an effect, ``semi`` and ``anti`` give one row per cause that has, or
        lacks, an effect.
    emit : {"pairs", "lists", "counts", "best"}
        One row a pair; or one row per cause with arrays (in no particular order), with the number of its
        ``matches``, or with its best effect. That is the most probable, then the nearest to the middle of
        the pair's own window, then the nearest in space, then the earliest (docs/causality.md).
    probability : bool
        Whether to add the column ``probability`` to pairs: how probably delta lies in the window that the
        condition leaves at their distance, to one part in 2**40. It is 1 for exact instants.
    backend : {"auto", "cpu", "gpu"}
    options : CorrelateOptions
        Units, tick, ``invalid``, longest lengths, ``batch_pairs`` and ``threads`` count here.
    report : JoinReport, optional
        Receives what the rows were and what was found.
    where : str or pyarrow.compute.Expression, optional
        What pairs must also meet. It may name the columns ``cause_<name>`` and ``effect_<name>`` of both
        events, in the output or not, delta, named as in the result, and ``distance``. Write
        ``"distance <= 10 * cause_magnitude"`` in a subset of SQL, or an expression of pyarrow.compute.
        A pair for which it is null or false does not count, and is never a best effect.
    prefer : {"probability", "nearest", "first", "last", "distance"}, str, or (str, str)
        With ``emit="best"`` or `matching`, which effect is the best one. A word: the most probable, the
        one whose midpoint is nearest to that of its cause, the earliest or latest by its midpoint, or the
        nearest in space. Or a column of `effects`: ``"snr"`` prefers its
        least value, ``"-snr"`` its greatest. ``["last", "-seq"]``: among equals in
        the first a column decides. Between equals the order of ``emit="best"`` decides.
    k : int
        With ``emit="best"``, the most effects of each cause. With more than one a row has its ``rank``,
        from 1 for the best.
    matching : {"mutual", "optimal", "unambiguous"}, optional
        Pairs one to one. ``"mutual"``: each event is the best match of the other. ``"optimal"``: the
        assignment with the greatest sum of probabilities; with ``prefer="nearest"`` the most pairs, then
        the least sum of differences of midpoints. ``"unambiguous"``: neither event has another match.
        ``how="left"`` adds the causes without a pair.
    largest_group : int
        Most events, of both sides, that an optimal assignment takes together.
    aggregates : dict, optional
        With ``emit="aggregates"``, columns of the output by name: ``"count"``, or a column of effects and
        a function of its values in the effects of a cause, ``{"n": "count", "energy": ("amp", "sum")}``.
        Functions are count, sum, mean, std, min, max, first, last and any. Missing values do not count.
        ``"delta"``, ``"distance"`` and ``"probability"`` are what pairs have.
    weights : {"probability"}, optional
        With ``emit="aggregates"``, expected numbers: each effect counts by its probability in count, sum
        and mean, which are floats then. The condition's confidence leaves out less probable pairs.

    Returns
    -------
    pa.Table
        Columns `by`, ``cause_...``, ``effect_...`` (or ``matches``), delta (int64), where there are places
        ``distance`` (float64), and if asked ``probability`` (float64). Delta is T_effect - T_cause between
        the stamps as given; for intervals it is between their midpoints, less half a tick if need be. Its
        name says what it counts: ``delta_us`` microseconds, ``delta_ms`` milliseconds, and
        ``delta`` what the time columns count, where no unit is known.

    Raises
    ------
    SchemaError
        If a column is missing or of a type that cannot serve.
    ConditionError
        If the condition or an argument makes no sense.
    DataError
        If rows are invalid, and ``options.invalid`` is ``"raise"``: an impossible time, an infinite
        coordinate, a latitude or longitude out of range.
    BackendError
        If the backend is not here.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning
    """
    JoinReport.check(report)
    arguments = CausalityArguments(
        condition, cause_time=cause_time, effect_time=effect_time, cause_place=cause_place,
        effect_place=effect_place, by=by, cause_columns=cause_columns,
        effect_columns=effect_columns, how=how, emit=emit, backend=backend, options=options,
        is_one_stream=effects is None, where=where, prefer=prefer, k=k,
        matching=matching, largest_group=largest_group, probability=probability, aggregates=aggregates,
        weights=weights,
    )  # fmt: skip
    return joined(TableCausality, causes, effects, arguments, report)
