"""A second look at files, after a join of them found nothing: for the reasons, see `emptiness`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from event_model.errors import CoincideError
from event_model.results import JoinCounters
from spark_plugin.direct.footers import RowGroup
from spark_plugin.direct.slice_join import LEFT, RIGHT, DirectJoin, read_groups
from spark_plugin.emptiness import Evidence, NoPairs, evidence_of, explain_emptiness
from spark_plugin.key_overlap import key_overlap
from spark_plugin.sides import Side
from spark_plugin.tables import SideCounts

_MOST_ROWS = 2_000_000
"""Rows of a side to look at, about: whole row groups, spread evenly over its files."""


def no_pairs_of(
    join: DirectJoin, counters: JoinCounters, left: SideCounts, right: SideCounts
) -> NoPairs | None:
    """Why a join found nothing; None if it found something, or if the files cannot be read again."""
    if counters.pairs:
        return None
    groups = [p.group for slice_ in join.plan.slices for p in slice_.left], join.plan.right
    try:
        sides = [_looked_at(join, i, list(dict.fromkeys(groups[i]))) for i in (LEFT, RIGHT)]
    except (CoincideError, OSError):
        return None
    evidence = [
        replace(found, events=counts.rows - counts.unmatchable - counts.dropped)
        for (_, found), counts in zip(sides, (left, right), strict=True)
    ]
    is_all = all(found.is_all for _, found in sides)
    keys = key_overlap(sides[0][0], sides[1][0], join.tables.by, is_all=is_all)
    return explain_emptiness(evidence[0], evidence[1], join.tables.spec.window, keys)


def _looked_at(join: DirectJoin, side: int, groups: Sequence[RowGroup]) -> tuple[Side, Evidence]:
    """Events of some row groups, and what is known of all."""
    tables = replace(join.tables, invalid="drop", payload=([], []))
    rows = sum(group.rows for group in groups)
    every = max(1, -(-rows // _MOST_ROWS))
    looked_at = groups[::every]
    table = read_groups(replace(join, tables=tables), side, looked_at)
    events, _ = tables.read(side, table)
    found = evidence_of(events, join.tables.scales[side][0])
    timed = [(g.first, g.last) for g in groups if g.first is not None and g.last is not None]
    if every == 1 or not timed:
        return events, found
    first, last = min(t[0] for t in timed), max(t[1] for t in timed)
    return events, replace(found, first=first, last=last, is_all=False)
