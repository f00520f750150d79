"""The arguments of a join of streams of tables, checked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from coincide.engine.join.arguments import JoinArguments
from coincide.model.errors import ConditionError, SchemaError
from coincide.model.sides import SIDES
from coincide.model.units import Duration, Tick, size_of


@dataclass(frozen=True)
class StreamArguments:
    """What is asked of a join of streams."""

    join: JoinArguments
    left_delay: Duration
    right_delay: Duration | None

    def __post_init__(self) -> None:
        if self.join.matching == "optimal":
            raise ConditionError(
                "matching='optimal' weighs events against each other that hang together by any number of"
                " pairs, in a stream without end: use matching='mutual', or correlate_tables"
            )
        if self.join.keeps_right:
            raise ConditionError(
                f"how={self.join.how!r} is of tables that are whole: in streams swap the sides and mirror"
                " the window, with how='left' or how='anti'"
            )
        if self.join.matching is not None and self.join.is_one_stream:
            raise ConditionError(
                "right_delay is missing, or else matching is of one stream, in which better partners of"
                " both events may come: leave matching out, or use correlate_tables"
            )
        delays = (
            (self.left_delay,) if self.right_delay is None else (self.left_delay, self.right_delay)
        )
        for side, delay in zip(SIDES, delays, strict=False):
            if size_of(delay) < 0:
                raise ConditionError(
                    f"{side}_delay is how long after its time an event may arrive, and cannot be negative;"
                    f" found {delay!r}"
                )

    @property
    def sides(self) -> tuple[str, ...]:
        """What messages call the streams, of which there may be one."""
        return self.join.sides[: 1 if self.join.is_one_stream else 2]

    def settled(self, schemas: Sequence[pa.Schema]) -> StreamArguments:
        """The same for streams of these columns: it is known then which are handed out and needed."""
        return replace(self, join=self.join.settled(schemas[0], schemas[-1]))

    @property
    def gives_pairs_at_once(self) -> bool:
        """Whether rows are pairs, which are final as soon as both events are there."""
        join = self.join
        return join.how == "inner" and join.emit == "pairs" and join.matching is None

    def delays(self, tick: Tick) -> tuple[int, int]:
        """Both delays in ticks."""
        right = self.left_delay if self.right_delay is None else self.right_delay
        return tick.count(self.left_delay), tick.count(right)


def given_schema(side: str, given: Any) -> pa.Schema | None:
    """The schema that a caller declares for a side, or that of a table like those to come."""
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
