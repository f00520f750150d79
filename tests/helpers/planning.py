"""Planning with other limits, and questions that are asked of rules without Spark."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest

from coincide import CorrelateOptions, TimingCondition, within
from coincide.engine.events.timestamps import TimestampColumns
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.join import resolved
from coincide.model.options import SideName
from spark_plugin.frames.estimates import Estimate
from spark_plugin.ways import limits
from spark_plugin.ways.choosing import Question, rules_for
from spark_plugin.ways.limits import PlannerLimits

EVENTS = pa.schema([(name, pa.int64()) for name in ("id", "min_time", "max_time")])
EVENTS = EVENTS.append(pa.field("word", pa.string()))
MIB = 1 << 20


def set_limits(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Joins are planned with other limits than `LIMITS`."""
    monkeypatch.setattr(limits, "LIMITS", replace(limits.LIMITS, **changes))


@dataclass
class Known:
    """`SideFacts` of a side of which everything is known."""

    bytes: int | None
    needed: Estimate | None = None
    is_computed: bool = False
    surely: int | None = None  # bytes that it is read from; None: as many as it has
    side: SideName = "left"
    times: TimestampColumns | None = None
    by: tuple[str, ...] = ()

    def is_surely_larger(self, size: int) -> bool:
        held = self.bytes if self.surely is None else self.surely
        return held is not None and held >= size


@dataclass
class Session:
    """`SessionFacts`."""

    tasks: int = 4
    is_accelerated: bool = False


def known(mebibytes: float, *, is_filtered: bool = False, **facts: Any) -> Known:
    """A side with this number of MiB, all of them in needed columns of 8 bytes a row."""
    size = int(mebibytes * MIB)
    return Known(size, Estimate(size, size // 8, is_filtered), **facts)


def question(
    left: Known, right: Known, *, condition: TimingCondition | None = None,
    session: Session | None = None, limits: PlannerLimits | None = None, **words: Any,
) -> Question:  # fmt: skip
    """What rules ask of a join of two sides."""
    options = words.get("options", CorrelateOptions())
    arguments = JoinArguments(condition or TimingCondition(within(-40, 60), 0.5), **words)
    spec, times = resolved(EVENTS, EVENTS, arguments)
    sides = replace(left, side="left", times=times[0]), replace(right, side="right", times=times[1])
    return Question(sides, session or Session(), spec, options, limits or PlannerLimits())  # type: ignore[arg-type]


def names_of_rules(*sides: Known, **words: Any) -> list[str]:
    """The rules that apply, in order: the first that gives a plan holds."""
    return [rule.name for rule in rules_for(question(*sides, **words))]
