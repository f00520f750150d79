"""What is looked for in the events of one key, and what is found."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, get_args

Status = Literal["found", "ambiguous", "not found", "too few"]
STATUSES: tuple[str, ...] = get_args(Status)

PARTS_PER_MILLION = 1e6
LEAST_SPANS = 8
"""The time that both sides share must be as many times the largest offset."""


@dataclass(frozen=True)
class Limits:
    """Which errors are looked for: offsets up to some ticks, drifts as a fraction, and how surely."""

    max_offset: int
    max_drift: float
    chance: float
    jumps: bool = True

    def drifted(self, span: int) -> float:
        """By how much the largest drift moves the offset from the middle of a time to its ends, ticks."""
        return self.max_drift * span / 2

    @property
    def log_chance(self) -> float:
        """Below it a line is no accident."""
        return math.log(self.chance)


@dataclass(frozen=True)
class Line:
    """An error that grows evenly: ticks by which the right clock is ahead, and by how much more a tick."""

    time: float
    offset: float
    drift: float

    def at(self, time: float) -> float:
        """The error at a time."""
        return self.offset + self.drift * (time - self.time)


@dataclass(frozen=True)
class Segment:
    """A stretch of left times in which the error is a line; all in ticks."""

    start: int
    end: int
    line: Line
    offset_error: float
    drift_error: float
    spread: float
    low: float
    high: float
    pairs: float
    accidental_pairs: float


@dataclass(frozen=True)
class ClockEstimate:
    """The error of one key's clock."""

    status: Status
    segments: list[Segment] = field(default_factory=list)
    log_chance: float = 0.0
    best: Line | None = None  # The line that was looked at, where no segment is given
    rival: float = math.nan  # The offset of another line, where they are ambiguous
    is_short: bool = False  # Whether the time is too short for the largest offset
    drifted: float = (
        0.0  # Ticks by which the largest drift carries the offset too far, where nothing is found
    )
