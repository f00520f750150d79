"""What a join computes, and the columns of its output."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from coincide.condition import Window
from coincide.errors import ConditionError
from coincide.options import Emit, How
from spark_plugin.worker.timestamps.models import INTERVALS, Pairs, SideModel, pair_model


@dataclass(frozen=True)
class JoinSpec:
    """What a join computes, resolved to ticks: everything but the data."""

    window: Window
    how: How = "inner"
    emit: Emit = "pairs"
    probability: bool = False
    backend: str = "auto"
    classes: int | None = None
    threads: int = 1
    batch_pairs: int = 1_000_000
    models: tuple[SideModel, SideModel] = (INTERVALS, INTERVALS)

    @property
    def pairs(self) -> Pairs:
        """The timing condition on the timestamps of both sides."""
        return pair_model(self.window, *self.models)

    @property
    def keeps_unmatched(self) -> bool:
        """Whether left events without a partner appear in the output."""
        return self.how in ("left", "anti")

    @property
    def one_row_per_event(self) -> bool:
        """Whether the right columns are absent: semi and anti."""
        return self.how in ("semi", "anti")

    @property
    def hands_out_partners(self) -> bool:
        """Whether right columns are in the output."""
        return hands_out_partners(self.how, self.emit)


def hands_out_partners(how: str, emit: str) -> bool:
    """Whether right columns are in the output: not of semi, anti and counts, which do not need any."""
    return how not in ("semi", "anti") and emit != "counts"


def output_schema(
    spec: JoinSpec, by: list[pa.Field], left: list[pa.Field], right: list[pa.Field]
) -> pa.Schema:
    """Fields of the output: `by`, left columns, right columns or `matches`, probability."""
    fields = [*by, *left]
    if spec.emit == "counts":
        fields.append(pa.field("matches", pa.int64(), nullable=False))
    elif spec.hands_out_partners:
        wrap = pa.list_ if spec.emit == "lists" else lambda kind: kind
        fields += [pa.field(f.name, wrap(f.type)) for f in right]
        if spec.probability:
            fields.append(pa.field("probability", wrap(pa.float64())))
    check_output_names([field.name for field in fields])
    return pa.schema(fields)


def check_output_names(names: list[str]) -> None:
    """Refuse output columns of the same name, and an output without columns.

    Raises
    ------
    ConditionError
    """
    if not names:
        raise ConditionError(
            "the output would have no columns; ask for at least one, such as an id"
        )
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ConditionError(f"two output columns would be called {', '.join(doubled)}; rename one")


def check_emission(how: str, emit: str, probability: bool) -> None:
    """Refuse combinations that have no meaning.

    Raises
    ------
    ConditionError
    """
    if how in ("semi", "anti") and emit != "pairs":
        raise ConditionError(f"how={how!r} gives one row per left event; leave out emit={emit!r}")
    if probability and (how in ("semi", "anti") or emit == "counts"):
        shape = f"how={how!r}" if how in ("semi", "anti") else "emit='counts'"
        raise ConditionError(
            f"{shape} has no pair to give a probability of; leave out probability=True"
        )
