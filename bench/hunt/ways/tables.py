"""Tables in this process: `correlate_tables`, and the join behind it, which counts."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from bench.hunt.cases import Case, Verdict, Way
from bench.hunt.chance import Chance
from bench.hunt.comparing import Found, counts_of
from bench.hunt.jobs import arguments
from bench.hunt.judging import judge_join
from coincide import correlate_tables
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.join import TableJoin


def _judge(case: Case, folder: Path) -> Verdict:
    return judge_join(case, lambda: _join(case))


def _join(case: Case) -> Found:
    chance = case.chance("tables")
    condition, given = arguments(case.data, case.job)
    left, right = (_chunked(case.data.table(side), chance) for side in (0, 1))
    if chance.happens(50):
        return Found(correlate_tables(left, right, condition, **given))
    job = TableJoin(left, right, JoinArguments(condition, **given))
    return finished(job)


def finished(job: TableJoin) -> Found:
    """The answer of a join of batches, with what it counted."""
    table = pa.Table.from_batches(list(job.batches()), schema=job.schema)
    summary = job.summary
    assert summary is not None
    return Found(table, counts_of(summary.left), counts_of(summary.right))


def _chunked(table: pa.Table, chance: Chance) -> pa.Table:
    """The same rows in one chunk or several, empty ones among them."""
    if chance.happens(60):
        return table
    cuts = sorted(chance.integer(0, table.num_rows) for _ in range(2))
    edges = [0, *cuts, table.num_rows]
    return pa.concat_tables([table.slice(a, b - a) for a, b in pairwise(edges)])


WAYS = [Way("tables", _judge, weight=38)]
