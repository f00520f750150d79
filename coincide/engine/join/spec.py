"""What a join computes, and the columns of its output."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import pyarrow as pa

from coincide.engine.events.timestamps import INTERVALS, Bounds, Pairs, SideModel, pair_model
from coincide.engine.join.pair_filter import PairFilter
from coincide.model.bands import longest_useful
from coincide.model.condition import Window
from coincide.model.errors import ConditionError
from coincide.model.options import Emit, How
from coincide.model.partners import MOST_PROBABLE, Matching, Partners
from coincide.model.sides import SIDES


class AnySpec(ABC):
    """What ways know of what a join computes, whatever its condition: everything but the data.

    A frozen dataclass.

    Attributes
    ----------
    prefixes : (str, str)
        What columns of the two sides are called.
    """

    prefixes: ClassVar[tuple[str, str]] = SIDES

    @property
    @abstractmethod
    def widest(self) -> Window:
        """Widest window on delta, and the confidence that is asked for."""

    @property
    def widest_of_rows(self) -> Window:
        """`widest`, on delta of the times that rows have, where right ones are taken to be moved."""
        return self.widest

    @property
    @abstractmethod
    def how(self) -> How:
        """As of `coincide.correlate`, like `emit`."""

    @property
    @abstractmethod
    def emit(self) -> Emit:  # noqa: D102
        ...

    @property
    @abstractmethod
    def backend(self) -> str:
        """That joins: ``"auto"``, ``"cpu"`` or ``"gpu"``."""

    @property
    def models(self) -> tuple[SideModel, SideModel]:
        """Of the timestamps of both sides."""
        return INTERVALS, INTERVALS

    in_order: bool = False
    """Whether rows come in the order of left rows."""

    @property
    def has_histograms(self) -> bool:
        """Whether timestamps of a side are histograms."""
        return any(model.table is not None for model in self.models)

    @property
    def largest_useful(self) -> tuple[int, int]:
        """The largest shapes that a left and a right event of a pair can have."""
        longest = longest_useful(self.widest)
        left, right = (
            longest if model.table is None else len(model.table) - 1 for model in self.models
        )
        return left, right

    @property
    def coordinates(self) -> int:
        """Of an event: none where it does not matter where events are."""
        return 0

    @property
    def is_one_stream(self) -> bool:
        """Whether the sides are parts of one stream, whose events have an identity."""
        return False

    @property
    def pairs_once(self) -> bool:
        """Whether of one stream each pair counts in one order only: that of `emit="pairs"`."""
        return False

    @property
    def case_fold(self) -> bool:
        """Whether keys that are texts are equal if they are so in lower case."""
        return False

    @property
    def where(self) -> PairFilter | None:
        """What pairs must meet besides."""
        return None

    @property
    @abstractmethod
    def measures(self) -> dict[str, pa.DataType]:
        """Columns of a pair of its own, beside those of its events."""

    @property
    @abstractmethod
    def pairs(self) -> Bounds:
        """The condition on the timestamps of both sides."""

    @property
    def partners(self) -> Partners:
        """Which partners of an event are handed out."""
        return MOST_PROBABLE

    @property
    def k(self) -> int:
        """How many of the best partners of an event are handed out."""
        return self.partners.k

    @property
    def matching(self) -> Matching | None:
        """How events are matched one to one, if they are."""
        return self.partners.matching

    @property
    def compares_tasks(self) -> bool:
        """Whether pairs are chosen by what several tasks tell of their events."""
        return self.matching in ("mutual", "unambiguous") and not self.is_one_stream

    @abstractmethod
    def with_merits(self) -> Self:
        """The same with columns of a pair that tell by what the best partner was chosen."""

    @abstractmethod
    def moved(self, ticks: int) -> Self:
        """How many pairs there are of each left event when right times are moved by so many ticks."""

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

    def but(self, **changes: Any) -> Self:
        """The same with some attributes changed."""
        return replace(self, **changes)  # type: ignore[type-var]


MERITS_OF_BOTH = (
    "preferred", "from_middle", "max_of_left", "min_of_left", "max_of_right", "min_of_right",
)  # fmt: skip
"""By what the best partners of either side are chosen, after the probability: half ticks and ticks."""


@dataclass(frozen=True)
class JoinSpec(AnySpec):
    """What a join by probability computes, resolved to ticks."""

    window: Window
    how: How = "inner"
    emit: Emit = "pairs"
    probability: bool = False
    backend: str = "auto"
    classes: int | None = None
    threads: int = 1
    batch_pairs: int = 1_000_000
    models: tuple[SideModel, SideModel] = (INTERVALS, INTERVALS)
    is_one_stream: bool = False
    pairs_once: bool = False
    shift: int = 0
    case_fold: bool = False
    where: PairFilter | None = None
    partners: Partners = MOST_PROBABLE
    merits: bool = False
    in_order: bool = False

    @property
    def measures(self) -> dict[str, pa.DataType]:
        """The probability, if asked for; of the best how-many-best it is, or by what it was chosen."""
        measures = {"probability": pa.float64()} if self.probability else {}
        if self.merits and self.partners.matching:
            return {**measures, **dict.fromkeys(MERITS_OF_BOTH, pa.int64())}
        if self.merits and self.partners.prefer != "probability":
            measures["preferred"] = pa.int64()
        if not self.merits and self.partners.k > 1:
            measures["rank"] = pa.int64()
        return measures

    @property
    def widest(self) -> Window:  # noqa: D102
        return self.window

    @property
    def pairs(self) -> Pairs:
        """The timing condition on the timestamps of both sides."""
        return pair_model(self.window, *self.models)

    def with_merits(self) -> JoinSpec:  # noqa: D102
        return self.but(probability=True, merits=True)

    def moved(self, ticks: int) -> JoinSpec:
        """As of `AnySpec`: the window moves instead, the other way."""
        return self.but(
            window=self.window.moved(-ticks), how="inner", emit="counts", probability=False, shift=ticks,
            partners=MOST_PROBABLE,
        )  # fmt: skip


def hands_out_partners(how: str, emit: str) -> bool:
    """Whether right columns are in the output: not of semi, anti and counts, which do not need any."""
    return how not in ("semi", "anti") and emit != "counts"


def output_schema(
    spec: AnySpec, by: list[pa.Field], left: list[pa.Field], right: list[pa.Field]
) -> pa.Schema:
    """Fields of the output: `by`, left columns, right columns or `matches`, those of pairs."""
    fields = [*by, *left]
    if spec.emit == "counts":
        fields.append(pa.field("matches", pa.int64(), nullable=False))
    elif spec.hands_out_partners:
        wrap = pa.list_ if spec.emit == "lists" else lambda kind: kind
        measures = [pa.field(name, kind) for name, kind in spec.measures.items()]
        fields += [pa.field(f.name, wrap(f.type)) for f in (*right, *measures)]
    check_output_names([field.name for field in fields])
    return pa.schema(fields)


def check_output_names(names: list[str]) -> None:
    """Refuse output columns of the same name, and an output without columns."""
    if not names:
        raise ConditionError(
            "the output would have no columns; ask for at least one, such as an id"
        )
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ConditionError(f"two output columns would be called {', '.join(doubled)}; rename one")


def check_emission(how: str, emit: str, probability: bool) -> None:
    """Refuse combinations that have no meaning."""
    if how in ("right", "full") and emit != "pairs":
        raise ConditionError(
            f"how={how!r} gives right events without a partner beside pairs, and emit={emit!r} a row for"
            " each left event: leave out one, or swap the sides and mirror the window, for a row for each"
            " right event"
        )
    if how in ("semi", "anti") and emit != "pairs":
        raise ConditionError(f"how={how!r} gives one row per left event; leave out emit={emit!r}")
    if probability and (how in ("semi", "anti") or emit == "counts"):
        shape = f"how={how!r}" if how in ("semi", "anti") else "emit='counts'"
        raise ConditionError(
            f"{shape} has no pair to give a probability of; leave out probability=True"
        )
