"""Tables of a join in one process, moved to count the pairs that chance alone makes."""

from __future__ import annotations

from coincide.engine.accidental.pairs import AccidentalArguments, AccidentalPairs, check_shifted
from coincide.engine.join.chosen_pairs import count_pairs
from coincide.engine.join.join import TableJoin
from coincide.engine.reports.join_report import JoinSummary


class MovedTables:
    """A join of tables, the right one of which is moved to count accidental pairs.

    Everything that can be known without the rows is checked when it is made.
    """

    def __init__(self, asked: AccidentalArguments, job: TableJoin) -> None:
        self._job = job
        self._moves = asked.plan(job.plan.spec, job.plan.tick)
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
