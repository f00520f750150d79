"""Exploring two tables: what a join would find at any confidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coincide.engine.events.keys import Keys
from coincide.engine.events.time_names import GivenTimes
from coincide.engine.exploration.candidates import ExploreArguments
from coincide.engine.exploration.exploring import Exploration, TableExploration
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.pair_arguments import GivenWindow, window_of
from coincide.engine.join.pair_filter import GivenWhere
from coincide.engine.join.tables import given_tables
from coincide.engine.reports.reports import side_warnings
from coincide.engine.reports.warnings import warn, warn_of_losses
from coincide.model.condition import TimingCondition
from coincide.model.errors import NoPairsWarning
from coincide.model.options import Backend, CorrelateOptions


def explore_tables(
    left: Any,
    right: Any = None,
    *,
    within: GivenWindow,
    left_time: GivenTimes = ("min_time", "max_time"),
    right_time: GivenTimes = ("min_time", "max_time"),
    by: Keys = (),
    case_fold: bool = False,
    where: GivenWhere = None,
    confidence: float = 0.5,
    confidences: Sequence[float] = (0.1, 0.5, 0.9),
    shifts: Sequence[int | str] | None = None,
    backend: Backend = "auto",
    options: CorrelateOptions = CorrelateOptions(),
    most_pairs: int = 20_000_000,
) -> Exploration:
    """Show what a join would find at any confidence, to choose one by.

    Looks at all candidates, the pairs of a probability of at least 1e-9, run by run: memory is taken for
    the rows and for a few runs of pairs, however many candidates there are.

    Parameters
    ----------
    left, right : pa.Table, whatever offers Arrow's C stream, list of dicts, or path
        As of `coincide.correlate_tables`; ids are not needed. Without `right` pairs are those of one
        stream, each once, as by `coincide.correlate_tables`.
    within : (lo, hi), one duration for both, or what `coincide.within` and `coincide.mutual_deadline` make
        The window on T_right - T_left: durations.
    left_time, right_time, by, case_fold, where, backend, options
        As of `coincide.correlate_tables`.
    confidence : float
        At which delays are shown.
    confidences : sequence of float
        At which partners are counted by event; at most six.
    shifts : sequence of int and str, optional
        Durations by which right times are moved to learn how many pairs chance alone makes, at each
        confidence: as of `coincide.correlate_tables`.
    most_pairs : int
        Where there are more candidates, those of so many left events are looked at, drawn at random, as
        have about `most_pairs` of them, and numbers of pairs are scaled up. `Exploration.sample` tells.

    Returns
    -------
    Exploration
        Tables of counts, `Exploration.charts`, and `Exploration.save` for a page or pictures.

    Raises
    ------
    SchemaError, ConditionError, DataError, BackendError
        As `coincide.correlate_tables`.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning, NoPairsWarning, ShortShiftsWarning

    Examples
    --------
    >>> explore_tables(picks, others, within=("-250ms", "250ms"), by="station").save("picks.html")
    """
    join = JoinArguments(
        TimingCondition(window_of(within), confidence), left_time=left_time, right_time=right_time,
        by=by, case_fold=case_fold, left_columns=(), right_columns=(), probability=True,
        backend=backend, options=options, shifts=shifts, where=where, is_one_stream=right is None,
    )  # fmt: skip
    arguments = ExploreArguments(join, confidences, most_pairs)
    found = TableExploration(given_tables(left, right, join), arguments).explore()
    _warn_of(found)
    return found


def _warn_of(found: Exploration) -> None:
    """Warn as a join of rows that were left out, and of no candidate."""
    for side, counts, evidence in zip(found.sides, found.rows, found.evidence, strict=True):
        warn_of_losses(side, counts.rows, side_warnings(counts, evidence.scale.tick))
    if found.why_none and all(counts.rows for counts in found.rows):
        warn(f"no pair could qualify: {'; '.join(found.why_none)}", NoPairsWarning)
