"""`accidental_pair_tables`: the pairs that chance alone makes, of tables in one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from coincide.engine.accidental.pairs import (
    AccidentalArguments,
    AccidentalPairs,
    AnyCondition,
    Shifts,
    accidental_arguments,
    check_shifted,
)
from coincide.engine.causality.arguments import CausalityArguments
from coincide.engine.causality.join import TableCausality
from coincide.engine.join.chosen_pairs import count_pairs
from coincide.engine.join.join import TableJoin, correlate_tables, given_tables
from coincide.engine.join.pair_arguments import GivenWindow, check_second
from coincide.engine.reports.join_report import JoinReport, JoinSummary
from coincide.model.condition import Confidence
from coincide.model.docstrings import documented


class MovedTables:
    """The tables of a join, the right one of which is moved to count accidental pairs.

    Everything that can be known without the rows is checked when it is made.
    """

    def __init__(self, asked: AccidentalArguments, tables: Sequence[pa.Table]) -> None:
        join, second = asked.join, tables[1] if len(tables) > 1 else None
        self._job = (
            TableCausality(tables[0], second, join)
            if isinstance(join, CausalityArguments)
            else TableJoin(tables[0], second, join)
        )
        self._moves = asked.plan(self._job.plan.spec, self._job.plan.tick)
        self.pairs: AccidentalPairs | None = None

    def count(self) -> JoinSummary:
        """Count `pairs`, and tell what the rows were; nothing but the number of pairs is computed."""
        job, plan, moves = self._job, self._job.plan, self._moves
        left, right, (own, others) = job.read()
        check_shifted(moves, plan.spec, left, right)
        counts = [count_pairs(left, right, spec, plan.schema) for spec in moves.specs]
        self.pairs = moves.counted(counts)
        return JoinSummary(
            own,
            others,
            None,
            None,
            "in memory",
            plan.tick,
            sides=job.sides,
            matchless=job.matchless,
        )


@documented(correlate_tables)
def accidental_pair_tables(
    left: Any,
    right: Any = None,
    condition: AnyCondition | None = None,
    *,
    shifts: Shifts,
    within: GivenWindow | None = None,
    confidence: Confidence | None = None,
    **arguments: Any,
) -> AccidentalPairs:
    """Count the pairs that chance alone makes, in two tables in this process.

    All right times are moved by each shift, so that no true pair qualifies, and the pairs that still do
    are counted. About that many pairs of the join are accidental, which is `coincide.correlate_tables`,
    or for causes and effects `coincide.causality_tables`. Give both the same arguments.
    `coincide.accidental_pairs` counts those of DataFrames of Spark.

    Parameters
    ----------
    left, right : pa.Table, whatever offers Arrow's C stream, dict of arrays, list of dicts, or path
        As in the join: events, or causes and effects. Without `right` the stream `left` is moved against
        itself.
    condition : TimingCondition or CausalityCondition
        The condition of the join, which tells its kind.
    shifts : sequence of int and str
        Durations by which the times of right events, or of effects, are moved, such as
        ``("30s", "-30s", "47s")``. Each must be longer than the window, or the widest window of the
        condition; for one stream it must be longer than twice the farther end.
    within, confidence
        As in `coincide.correlate_tables`.
    **arguments
        All other arguments of the join but `report`. Those of them count that say which pairs there are:
        times, places, `by`, `where`, `options`. Pairs one to one are counted once events are matched, else
        all that qualify. ``emit="pairs"`` counts each pair of one stream once.

    Returns
    -------
    AccidentalPairs
        The counts by shift, ``expected``, which is their mean, and ``spread``, their standard deviation.

    Raises
    ------
    SchemaError, ConditionError, DataError, BackendError
        As the join does.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning, ShortShiftsWarning

    Examples
    --------
    >>> asked = {"within": ("-250ms", "250ms"), "confidence": 0.5, "by": "station"}
    >>> pairs = correlate_tables(picks, others, **asked)
    >>> chance = accidental_pair_tables(picks, others, shifts=("30s", "-30s", "47s"), **asked)
    >>> print(f"{len(pairs)} pairs, of which about {chance.expected:.0f} are accidental")
    """
    check_second(right)
    asked = accidental_arguments(
        condition, within, confidence, shifts, arguments, is_one_stream=right is None
    )
    moved = MovedTables(asked, given_tables(left, right, asked.join))
    JoinReport.tell(moved.count(), None)
    assert moved.pairs is not None
    return moved.pairs
