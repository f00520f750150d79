"""A second look at files, after a join of them found nothing: for the reasons, see `emptiness`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coincide.errors import CoincideError
from coincide.sides import LEFT, RIGHT
from spark_plugin.ways.files.plan import Parts
from spark_plugin.ways.files.worker.slice_join import DirectJoin
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.reports.emptiness import Evidence, NoPairs, evidence_of, explain_emptiness
from spark_plugin.worker.reports.metrics import JoinTally
from spark_plugin.worker.reports.reports import JoinSummary

_MOST_ROWS = 2_000_000
"""Rows of a side to look at, about: whole row groups, spread evenly over its files."""


def direct_summary(join: DirectJoin, tally: JoinTally) -> JoinSummary:
    """What a join by the direct way did, and, if it found nothing, why."""
    right = None if join.tables.spec.is_one_stream else tally.right
    return JoinSummary(
        tally.left, right, tally.counters, None, "direct", join.tables.tick,
        _no_pairs(join, tally), sides=called(join),
    )  # fmt: skip


def called(join: DirectJoin) -> tuple[str, str]:
    """What messages call the sides."""
    left, right = (each.files.side for each in join.files)
    return left, right


def _no_pairs(join: DirectJoin, tally: JoinTally) -> NoPairs | None:
    """Why a join found nothing; None if it found something, or if the files cannot be read again."""
    if tally.counters.pairs:
        return None
    try:
        sides = [_looked_at(join, side) for side in (LEFT, RIGHT)]
    except (CoincideError, OSError):
        return None
    evidence = [
        replace(found, events=counts.rows - counts.unmatchable - counts.dropped)
        for (_, found), counts in zip(sides, (tally.left, tally.right), strict=True)
    ]
    is_all = all(found.is_all for _, found in sides)
    keys = None
    if not join.tables.spec.is_one_stream:
        keys = join.tables.key_overlap(sides[0][0], sides[1][0], is_all)
    nearest = join.tables.nearest(sides[0][0], sides[1][0], is_all)
    return explain_emptiness(evidence[0], evidence[1], join.tables.spec, keys, nearest)


def _looked_at(join: DirectJoin, side: int) -> tuple[Side, Evidence]:
    """Events of row groups of the left (0) or right (1) files, and what is known of all."""
    tables = replace(join.tables, invalid="drop", payload=([], []), tested=([], []))
    places = (join.plan.slices.left, join.plan.right)[side]
    every = max(1, -(-int(places.rows.sum()) // _MOST_ROWS))
    # The last one too: files mostly lie in time order, so that first and last times are of all rows.
    spread = np.union1d(np.arange(0, len(places), every), max(len(places) - 1, 0))
    parts = Parts.whole(places.take(spread[: len(places)]))
    events, _ = tables.read(side, join.files[side].read(parts, tables.columns(side), threads=True))
    found = evidence_of(events, tables.times[side].scales[0])
    return events, replace(found, is_all=every == 1)
