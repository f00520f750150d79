"""Exploring two tables: read them, look at all candidates once, count the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from spark_plugin.worker.arrow.counts import SideCounts
from spark_plugin.worker.arrow.schemas import with_like_keys
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.backends.devices import load_task_backend
from spark_plugin.worker.exploration.arguments import LEAST_CONFIDENCE, ExploreArguments
from spark_plugin.worker.exploration.candidates import (
    Candidates,
    Pairs,
    at_confidence,
    sampled,
)
from spark_plugin.worker.exploration.curve import STEPS, curve_table, histogram_table, steps_of
from spark_plugin.worker.exploration.delays import PARTS, DayParts, DelayGrid
from spark_plugin.worker.exploration.exploration import Exploration
from spark_plugin.worker.exploration.partners import partner_table
from spark_plugin.worker.join import TablePlan, as_schema, plan_tables
from spark_plugin.worker.reports.emptiness import evidence_of, explain_emptiness, highest
from spark_plugin.worker.shifted_sides import check_shifted
from spark_plugin.worker.shifts import ShiftPlan

Say = Callable[[str], None]


class TableExploration:
    """An exploration of two tables, or of one that is joined with itself.

    Everything that can be known without the rows is checked when it is made.

    Parameters
    ----------
    tables : sequence of pa.Table
        Left and right; one, where the arguments say that there is one stream.
    arguments : ExploreArguments
    """

    def __init__(self, tables: Sequence[pa.Table], arguments: ExploreArguments) -> None:
        join = arguments.join.settled(tables[0].schema, tables[-1].schema)
        keys = join.keys, join.right_keys
        schemas = with_like_keys([table.schema for table in tables], *keys)
        self._tables = [as_schema(*each) for each in zip(tables, schemas, keys, strict=False)]
        self._arguments = arguments
        self._plan = plan_tables(schemas[0], schemas[-1], join)
        self._spec = at_confidence(self._plan.spec, LEAST_CONFIDENCE)
        self._shifts = ShiftPlan.of(join.shifts, self._spec, self._plan.tick)

    def explore(self, say: Say = lambda text: None) -> Exploration:
        """Look at all candidates.

        Parameters
        ----------
        say : function of str
            Is told what is being done.

        Raises
        ------
        DataError
            If rows are invalid and ``options.invalid`` is ``"raise"``.
        """
        plan = self._plan
        left, right, rows = self._read()
        if self._shifts is not None:
            check_shifted(self._shifts, self._spec, left, right)
        backend = load_task_backend(plan.spec.backend)
        say("counting candidates")
        candidates = Candidates(left, right, plan.spec, backend)
        number = candidates.number
        some, sample = sampled(left, number, self._arguments.most_pairs)
        if not sample.is_all:
            candidates = Candidates(some, right, plan.spec, backend)
        seen = _looked_at(candidates, some, right, plan, say)
        accidental = [
            sample.scaled(_steps(Candidates(some, right, spec, backend), say))
            for spec in _moved(self._shifts, say)
        ]
        say("counting partners")
        partners = partner_table(left, right, plan.spec, self._arguments.confidences, backend)
        steps = sample.scaled(seen.steps)
        delays = sample.scaled(seen.delays)
        return Exploration(
            histogram_table(steps), curve_table(steps, accidental), partners,
            seen.grid.table(delays), int(delays[-1]), number, sample, rows,
            parts=seen.parts, delay_step=seen.grid.step, spec=plan.spec,
            confidences=tuple(self._arguments.confidences),
            shifts=() if self._shifts is None else tuple(map(str, self._shifts.given)),
            **self._evidence(left, right, number),
        )  # fmt: skip

    def _read(self) -> tuple[Side, Side, tuple[SideCounts, ...]]:
        """Both sides, and what the rows of each table were."""
        if self._plan.spec.is_one_stream:
            left, right, counts = self._plan.read_stream(self._tables[0])
            # Of a sample of the stream, too, it is known who is the earlier one.
            ranks = np.arange(len(left))
            return replace(left, ranks=ranks), replace(right, ranks=ranks), (counts,)
        read = [self._plan.read(side, table) for side, table in enumerate(self._tables)]
        return read[0][0], read[1][0], tuple(counts for _, counts in read)

    def _evidence(self, left: Side, right: Side, number: int) -> dict[str, Any]:
        """What is known of the sides, and why there is no candidate, if so."""
        plan = self._plan
        scales = [times.scales[0] for times in plan.times]
        own, other = evidence_of(left, scales[0]), evidence_of(right, scales[1])
        is_one = plan.spec.is_one_stream
        keys = None if is_one else plan.key_overlap(left, right)
        best = None
        if own.events and other.events:
            best = highest(plan.spec.pairs, own, other, plan.spec.window)[0]
        why = () if number else explain_emptiness(own, other, self._spec, keys).lines
        return {
            "evidence": (own,) if is_one else (own, other), "keys": keys,
            "highest_probability": best, "why_none": why,
        }  # fmt: skip


@dataclass(frozen=True)
class _Seen:
    """What all candidates have been counted into."""

    parts: DayParts
    grid: DelayGrid
    steps: np.ndarray
    delays: np.ndarray


def _looked_at(candidates: Candidates, left: Side, right: Side, plan: TablePlan, say: Say) -> _Seen:
    parts = DayParts.of(left, plan.tick)
    grid = DelayGrid.of(left, right, plan.spec, parts.parts(left))

    def tally(pairs: Pairs) -> np.ndarray:
        return np.concatenate([steps_of(pairs), grid.counts(pairs)])

    counts = candidates.tallied(tally, _telling(candidates, say))
    if counts is None:
        counts = np.zeros(STEPS + 1 + PARTS * grid.bins + 1, np.int64)
    return _Seen(parts, grid, counts[: STEPS + 1], counts[STEPS + 1 :])


def _telling(candidates: Candidates, say: Say) -> Callable[[int], None]:
    return lambda seen: say(f"looking at candidates: {seen:,} of {candidates.number:,}")


def _steps(candidates: Candidates, say: Say) -> np.ndarray:
    counts = candidates.tallied(steps_of, _telling(candidates, say))
    return np.zeros(STEPS + 1, np.int64) if counts is None else counts


def _moved(shifts: ShiftPlan | None, say: Say) -> Sequence[Any]:
    if shifts is None:
        return ()
    say("counting accidental pairs")
    return shifts.specs
