"""The satisfaction probability of two timestamps, and the decision on it, as columns of Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from coincide.model.condition import TimingCondition, Within
from coincide.model.docstrings import documented
from coincide.model.errors import ConditionError, SchemaError, argument, with_options
from coincide.model.units import TIME_LIMIT, Tick

if TYPE_CHECKING:
    from pyspark.sql import Column

    Ticks = str | Column
    GivenTicks = Ticks | Sequence[Ticks]

_UNFIT = (
    "satisfaction_probability: a timestamp has its min above its max, or is not within 2^61"
    " ticks. Fix the data, or filter such rows before."
)


def satisfaction_probability(
    left_time: GivenTicks, right_time: GivenTicks, predicate: Within, *, unit: str | None = None
) -> Column:
    """P(lo <= T_right - T_left <= hi) of two timestamps of a row, for any query.

    A Column of the closed form of `docs/meaning.md`, which Spark computes in its JVM, in classic sessions
    and on Spark Connect. It has the bits of the kernels: what `correlate` gives as ``probability``.

    Parameters
    ----------
    left_time, right_time : (str or Column, str or Column), or one of them
        Min and max of an interval, in ticks: integers; of timestamps say ``F.unix_micros("min_time")``,
        which makes ticks of 1 us. One for an exact instant.
    predicate : Within
        Made by `within` or `mutual_deadline`.
    unit : str, optional
        What a tick is, ``"us"`` of ``F.unix_micros``; needed where the predicate's ends are no plain ints.

    Returns
    -------
    Column
        double, called ``probability`` unless it is given another name; null where a time is null.

    Raises
    ------
    ConditionError
        If the predicate leaves an end open, or an end is no whole number of ticks.
    SchemaError
        If a timestamp is neither one column nor two.

    Notes
    -----
    A row whose min is above its max, or with a time that is not within 2**61 ticks, fails the query, by
    Spark's USER_RAISED_EXCEPTION. Columns that are no integers are refused by Spark's analysis.

    Examples
    --------
    >>> rows.withColumn("p", satisfaction_probability(("a0", "a1"), ("b0", "b1"), within(-250, 250)))
    """
    if not isinstance(predicate, Within):
        raise ConditionError(
            f"the predicate must be made by within() or mutual_deadline() (found {predicate!r})."
        )
    with _in_its_words():
        lo, hi = predicate.window(Tick(unit))
    return _checked_probability(left_time, right_time, lo, hi).alias("probability")


@documented(satisfaction_probability)
def qualifies(
    left_time: GivenTicks,
    right_time: GivenTicks,
    condition: TimingCondition,
    *,
    unit: str | None = None,
) -> Column:
    """Whether two timestamps of a row meet a timing condition: P >= ct - 2**-50, as everywhere.

    Parameters
    ----------
    left_time, right_time, unit
        As in `coincide.satisfaction_probability`.
    condition : TimingCondition

    Returns
    -------
    Column
        boolean, called ``qualifies``; null where a time is null. As a condition of a join it needs equal
        time buckets next to it, or Spark compares every row with every other one: `correlate` does without.

    Raises
    ------
    ConditionError, SchemaError
        As `satisfaction_probability`.
    """
    from spark_plugin.frames.timestamps import reaches

    if not isinstance(condition, TimingCondition):
        raise ConditionError(
            f"{argument('condition')} must be a TimingCondition(predicate, confidence) (found"
            f" {condition!r})."
        )
    with _in_its_words():
        window = condition.window(Tick(unit))
    probability = _checked_probability(left_time, right_time, window.lo, window.hi)
    return reaches(probability, window).alias("qualifies")


@contextmanager
def _in_its_words() -> Iterator[None]:
    try:
        yield
    except ConditionError as error:
        # Functions of columns have no options.
        raise ConditionError(with_options(error, "")) from None


def _checked_probability(left: GivenTicks, right: GivenTicks, lo: int, hi: int) -> Column:
    from pyspark.sql import functions as F

    from spark_plugin.frames.timestamps import window_probability

    (low1, high1), (low2, high2) = _ends("left", left), _ends("right", right)
    unknown = low1.isNull() | high1.isNull() | low2.isNull() | high2.isNull()
    # Only the outer ones of ordered ends can be out of range.
    unfit = (low1 > high1) | (low2 > high2)
    unfit |= F.least(low1, low2) <= F.lit(-TIME_LIMIT)
    unfit |= F.greatest(high1, high2) >= F.lit(TIME_LIMIT)
    found = window_probability(high2 - high1, high1 - low1, high2 - low2, lo, hi)
    raised = F.raise_error(F.lit(_UNFIT)).cast("double")
    return F.when(unknown, F.lit(None).cast("double")).when(unfit, raised).otherwise(found)


def _ends(side: str, given: GivenTicks) -> tuple[Column, Column]:
    """Min and max of a timestamp as bigint, by an operation that only integers have: a cast takes more."""
    from pyspark.sql import Column
    from pyspark.sql import functions as F

    parts = [given] if isinstance(given, (str, Column)) else list(given)
    if len(parts) not in (1, 2) or not all(isinstance(part, (str, Column)) for part in parts):
        raise SchemaError(
            f"{side}_time must be a column, or two for min and max, by name or as Column (found"
            f" {given!r})."
        )
    whole = [
        (F.col(part) if isinstance(part, str) else part).bitwiseOR(F.lit(0).cast("long"))
        for part in parts
    ]
    return whole[0], whole[-1]
