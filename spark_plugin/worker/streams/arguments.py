"""The arguments of a join of streams of tables, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from coincide.errors import ConditionError, SchemaError
from coincide.sides import SIDES
from coincide.units import Duration, Tick, size_of
from spark_plugin.worker.arguments import JoinArguments


@dataclass(frozen=True)
class StreamArguments:
    """What is asked of a join of streams.

    Parameters
    ----------
    join : JoinArguments
        All that a join of tables is asked.
    left_delay, right_delay : int, str or timedelta
        How long after its max_time an event of the side may arrive.

    Raises
    ------
    ConditionError
        If a delay is no duration, or negative.
    """

    join: JoinArguments
    left_delay: Duration
    right_delay: Duration

    def __post_init__(self) -> None:
        for side, delay in zip(SIDES, (self.left_delay, self.right_delay), strict=True):
            if size_of(delay) < 0:
                raise ConditionError(
                    f"{side}_delay is how long after its time an event may arrive, and cannot be negative;"
                    f" found {delay!r}"
                )

    @property
    def gives_pairs_at_once(self) -> bool:
        """Whether rows are pairs, which are final as soon as both events are there."""
        return self.join.how == "inner" and self.join.emit == "pairs"

    def delays(self, tick: Tick) -> tuple[int, int]:
        """Both delays in ticks.

        Raises
        ------
        ConditionError
            If one is no whole number of ticks, or ticks are bare and it has a unit.
        """
        return tick.count(self.left_delay), tick.count(self.right_delay)


def given_schema(side: str, given: Any) -> pa.Schema | None:
    """The schema that a caller declares for a side, or that of a table like those to come.

    Raises
    ------
    SchemaError
        If it is none.
    """
    if given is None or isinstance(given, pa.Schema):
        return given
    if hasattr(given, "__arrow_c_schema__"):
        return pa.schema(given)
    if isinstance(schema := getattr(given, "schema", None), pa.Schema):
        return schema
    raise SchemaError(
        f"{side}_schema must be a pyarrow.Schema; found {type(given).__name__}. The .schema of a"
        " pyarrow.Table is one"
    )
