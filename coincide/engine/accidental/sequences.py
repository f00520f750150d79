"""`accidental_sequence_tables`: the sequences that chance alone makes, of tables in one process."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from coincide.engine.accidental.pairs import AccidentalPairs, ShiftPlan, Shifts, check_shifts
from coincide.engine.join.pair_arguments import GivenWindow
from coincide.engine.reports.lines import Line
from coincide.engine.sequences.links import with_needed
from coincide.engine.sequences.reports import SequenceReport
from coincide.engine.sequences.tables import (
    SequenceArguments,
    SequenceJob,
    sequence_arguments,
    sequence_tables,
)
from coincide.model.condition import Confidence
from coincide.model.docstrings import documented
from coincide.model.errors import ConditionError, argument, call
from coincide.model.units import TIME_LIMIT


@dataclass(frozen=True)
class AccidentalSequences(AccidentalPairs):
    """Sequences that qualify when the streams are moved apart, where none is a true one.

    Parameters
    ----------
    shifts : tuple of int and str
        As they were given.
    counts : tuple of int
        Qualifying sequences by each shift.
    found : int
        Those where nothing is moved.
    """

    found: int

    @property
    def lines(self) -> list[Line]:
        """The numbers, for people."""
        return [("found", f"{self.found:,}"), *super().lines]

    def as_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        values = super().as_dict()
        expected = values.pop("accidental_pairs")
        return {"sequences": self.found, "accidental_sequences": expected, **values}


_OWN = "tables", "check"
"""Arguments of the question that have a place of their own here, or none."""


@documented(sequence_tables)
def accidental_sequence_tables(
    tables: Sequence[Any] | Mapping[str, Any],
    windows: Sequence[GivenWindow],
    confidence: Confidence | None = None,
    *,
    shifts: Shifts,
    **arguments: Any,
) -> AccidentalSequences:
    """Count the sequences that chance alone makes, in tables in this process.

    By each shift the second stream is moved once, the third twice, and so on, so that any two streams are
    moved apart and no true sequence qualifies. Those that still do are counted. About that many are
    accidental among the sequences of `coincide.sequence_tables`. Give both the same arguments.

    Parameters
    ----------
    tables : list of tables, or dict of them by name, at least two
        Each once: a table is not moved against itself.
    windows, confidence
        As in `coincide.sequence_tables`.
    shifts : sequence of int and str
        Durations by which each stream is moved against the one before, such as ``("30s", "-30s", "47s")``.
        Each must be longer than the window of any step.
    **arguments
        All other arguments of `coincide.sequence_tables` but `report`. Those of them count that say which
        sequences there are: `total`, `names`, `time`, `by`, `where`, `options`.

    Returns
    -------
    AccidentalSequences
        The counts by shift, ``expected``, which is their mean, ``spread``, their standard deviation, and
        ``found``, the count where nothing is moved.

    Raises
    ------
    SchemaError, DataError, MemoryBudgetError
        As `sequence_tables` does.
    ConditionError
        The same, or if a shift moves nothing or too little, or a table is given twice.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning, ShortShiftsWarning

    Examples
    --------
    >>> click, cart, pay = {"t": [0, 100]}, {"t": [4, 63]}, {"t": [9, 128]}
    >>> chance = accidental_sequence_tables(
    ...     [click, cart, pay], [(0, 9), (0, 9)], time="t", shifts=[41, -50]
    ... )
    >>> chance.found, chance.counts, chance.expected
    (1, (1, 0), 0.5)
    """
    check_shifts(shifts)
    asked = _counting(sequence_arguments(tables, windows, confidence, **_checked(arguments)))
    streams = asked.streams
    for i, j in streams.twins:
        raise ConditionError(
            f"{argument('shifts')} move streams against each other, but one table is at two places (found"
            f" it as {streams.names[i]} and as {streams.names[j]}). Give each stream once. For the pairs of"
            f" one stream use {call('accidental_pair_tables')}."
        )
    # What is given is read once, whatever the number of shifts.
    asked = replace(asked, streams=replace(streams, tables=tuple(with_needed(streams))))
    job = SequenceJob(asked)
    plans = [ShiftPlan.of(shifts, spec, job.tick) for spec in job.specs]
    plan = plans[0]
    sizes = [job.tick.count(each) for each in plan.given]
    _check_whole(plan.given, sizes, len(streams))
    specs = job.specs
    found = job.count()
    SequenceReport.tell(replace(job.summary(), may_be_none=True), None)
    longest = job.longest()
    reach = [spec.window.width + longest[k] + longest[k + 1] for k, spec in enumerate(specs)]
    widest = max(range(len(reach)), key=reach.__getitem__)
    plan.warn_of_short(specs[widest], (longest[widest], longest[widest + 1]))
    return AccidentalSequences(plan.given, tuple(_moved(asked, each) for each in sizes), found)


def _moved(asked: SequenceArguments, ticks: int) -> int:
    """How many sequences there are once the streams were moved apart."""
    job = SequenceJob(asked)
    job.move_apart(ticks)
    return job.count()


def _counting(asked: SequenceArguments) -> SequenceArguments:
    """The question of how many sequences there are."""
    return replace(
        asked, how="inner", emit="counts", probability=False, link_probability=False,
        prefer="probability",
    )  # fmt: skip


def _checked(words: Mapping[str, Any]) -> Mapping[str, Any]:
    """Refuse what is no argument of a search for sequences."""
    if "report" in words:
        raise ConditionError(
            f"{argument('report')} belongs to {call('sequence_tables')}; the counts are what comes back"
            f" here. Remove {argument('report')}."
        )
    known = [each for each in inspect.signature(sequence_arguments).parameters if each not in _OWN]
    for word in words:
        if word not in known:
            raise ConditionError(
                f"there is no argument {word!r}. Use one of sequence_tables's: {', '.join(known)}."
            )
    return words


def _check_whole(given: Sequence[int | str], sizes: Sequence[int], streams: int) -> None:
    """Refuse shifts that would move the last stream further from the first than times may be."""
    for words, size in zip(given, sizes, strict=True):
        if 2 * abs(size) * (streams - 1) >= TIME_LIMIT:
            raise ConditionError(
                f"the shift {words!r} moves the last stream beyond 2^60 ticks. Use a shorter one, or a"
                " coarser tick."
            )
