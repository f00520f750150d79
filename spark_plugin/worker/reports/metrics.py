"""What tasks count, as numbers of one row that Spark adds up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple

import numpy as np
import pyarrow as pa

from coincide.results import JoinCounters
from coincide.sides import SIDES
from spark_plugin.worker.arrow.counts import SideCounts
from spark_plugin.worker.arrow.time_columns import INVALID_REASONS

COUNTERS = ("candidates", "probed", "pairs")
_OF_SIDE = ("rows", "unmatchable", *INVALID_REASONS, "rounded")
WITH_SIDES = (*COUNTERS, *(f"{side}_{name}" for side in SIDES for name in _OF_SIDE))
"""Names of all numbers, in order."""


def merged(name: str, value: str) -> str:
    """SQL that makes one number of those of all tasks."""
    return f"{'max' if name.endswith('rounded') else 'sum'}({value})"


def numbers(counters: JoinCounters, left: SideCounts, right: SideCounts) -> list[int]:
    """As numbers, in the order of `WITH_SIDES`."""
    return [*astuple(counters), *_numbers(left), *_numbers(right)]


def _numbers(counts: SideCounts) -> list[int]:
    reasons = [counts.invalid.get(reason, 0) for reason in INVALID_REASONS]
    # Bits of floats that are not negative are in order as the floats are.
    return [
        counts.rows,
        counts.unmatchable,
        *reasons,
        int(np.float64(counts.rounded).view(np.int64)),
    ]


def with_metrics(
    columns: Sequence[pa.Array], names: Sequence[str], metrics: str | None, told: list[int] | None
) -> pa.RecordBatch:
    """Output columns, and one for numbers if `metrics` names it: null, or those of a last row."""
    if metrics is None:
        return pa.RecordBatch.from_arrays(list(columns), names=list(names))
    kind = pa.list_(pa.int64())
    values = pa.nulls(len(columns[0]), kind) if told is None else pa.array([told], kind)
    return pa.RecordBatch.from_arrays([*columns, values], names=[*names, metrics])


def counters_of(found: Mapping[str, int | None]) -> JoinCounters:
    """Back from merged numbers."""
    return JoinCounters(*(int(found[name] or 0) for name in COUNTERS))


def side_of(found: Mapping[str, int | None], side: str) -> SideCounts:
    """The counts of ``"left"`` or ``"right"``."""
    values = {name: int(found[f"{side}_{name}"] or 0) for name in _OF_SIDE}
    return SideCounts(
        values["rows"],
        values["unmatchable"],
        {reason: values[reason] for reason in INVALID_REASONS if values[reason]},
        float(np.int64(values["rounded"]).view(np.float64)),
    )
