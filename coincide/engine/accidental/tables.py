"""`accidental_pair_tables`: the pairs that chance alone makes, of tables in one process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coincide.engine.accidental.moved import MovedTables
from coincide.engine.accidental.pairs import (
    AccidentalArguments,
    AccidentalPairs,
    Shifts,
)
from coincide.engine.causality.arguments import CausalityArguments
from coincide.engine.causality.join import TableCausality
from coincide.engine.join.arguments import TIMES, JoinArguments
from coincide.engine.join.join import TableJoin, correlate_tables, given_tables
from coincide.engine.join.pair_arguments import GivenWindow, check_second, check_words, condition_of
from coincide.engine.reports.join_report import JoinReport
from coincide.model.causality.condition import CausalityCondition
from coincide.model.condition import Confidence, TimingCondition
from coincide.model.docstrings import documented
from coincide.model.errors import ConditionError, argument
from coincide.model.relations import SpanRelation
from coincide.model.sides import SIDES

AnyCondition = TimingCondition | SpanRelation | CausalityCondition


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
    join, (first, *rest) = asked.join, given_tables(left, right, asked.join)
    second = rest[0] if rest else None
    job = (
        TableCausality(first, second, join)
        if isinstance(join, CausalityArguments)
        else TableJoin(first, second, join)
    )
    moved = MovedTables(asked, job)
    JoinReport.tell(moved.count(), None)
    assert moved.pairs is not None
    return moved.pairs


def accidental_arguments(
    condition: AnyCondition | None,
    within: GivenWindow | None,
    confidence: Confidence | None,
    shifts: Shifts,
    words: Mapping[str, Any],
    *,
    is_one_stream: bool,
) -> AccidentalArguments:
    """The arguments, for a join whose other arguments are `words`; its condition tells its kind."""
    if "report" in words:
        raise ConditionError(
            f"{argument('report')} belongs to joins; the counts are what comes back here. Remove"
            f" {argument('report')}."
        )
    if isinstance(condition, CausalityCondition):
        for name, given in (("within", within), ("confidence", confidence)):
            if given is not None:
                raise ConditionError(
                    f"{argument(name)} belongs to pairs in time, but a CausalityCondition says all of"
                    f" causes and effects. Remove {argument(name)}."
                )
        check_words("causality", CausalityArguments, words)
        causal = CausalityArguments(condition, is_one_stream=is_one_stream, **words)
        return AccidentalArguments(causal, shifts)
    check_words("correlate", JoinArguments, words)
    sides = SIDES[:1] if is_one_stream else SIDES
    times = [words.get(f"{side}_time", TIMES) for side in sides]
    timing = condition_of(condition, within, confidence, times)
    join = JoinArguments(timing, is_one_stream=is_one_stream, **words)
    return AccidentalArguments(join, shifts)
