"""Tables of stamps and of the errors of their clocks; and what the lines say, in exact numbers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
import pyarrow as pa

from coincide.model.units import Duration

Ends = tuple[int | None, int | None]


@dataclass(frozen=True)
class Clocks:
    """Lines of errors by device and segment, numbers counted in ticks."""

    lines: list[dict[str, Any]]

    @classmethod
    def drawn(cls, rng: np.random.Generator, farthest: int = 300) -> Clocks:
        """Clocks of one to three devices, with one to three segments each."""
        lines: list[dict[str, Any]] = []
        for device in "abc"[: rng.integers(1, 4)]:
            edges = np.sort(rng.choice(4000, 2 * rng.integers(1, 4), replace=False))
            for start, end in edges.reshape(-1, 2).tolist():
                lines.append({
                    "device": device, "status": "found", "start": start, "end": end,
                    "offset": float(rng.integers(-farthest, farthest)) + 0.25,
                    "drift": float(rng.integers(-9, 9)) * 2.0**6,
                    "spread": float(rng.integers(0, 60)) / 4,
                })  # fmt: skip
        return cls(lines)

    @property
    def table(self) -> pa.Table:
        """As `coincide.clock_error_tables` gives it, in no order."""
        return pa.Table.from_pylist(self.lines[::-1])

    def ends(self, device: str | None, stamp: int | None, around: Duration | None = None) -> Ends:
        """The earliest and the latest time that a stamp may stand for; none of an unknown one."""
        own = [line for line in self.lines if line["device"] == device]
        if stamp is None:
            return None, None
        begun = [k for k, line in enumerate(own) if line["start"] <= stamp]
        if not begun:
            return None, None
        may = [own[begun[-1]]]
        if stamp > own[begun[-1]]["end"]:
            if len(begun) == len(own):
                return None, None
            may.append(own[len(begun)])
        times = []
        for line in may:
            drift = Fraction(line["drift"] / 1e6)
            time = stamp + round(Fraction(line["offset"]) + drift * (stamp - line["start"]))
            width = _width(line, around)
            times += [time - width, time + width]
        return min(times), max(times)

    def instant(self, device: str | None, stamp: int | None) -> int | None:
        """The one time that a stamp stands for, if there is one."""
        low, high = self.ends(device, stamp)
        return low if low == high else None


def _width(line: dict[str, Any], around: Any) -> int:
    """By whole numbers: the least one whose square is at least three times that of the spread."""
    if around is None:
        return 0
    if around != "fitted":
        return int(around)
    square = 3 * Fraction(line["spread"]) ** 2
    whole = -(-square.numerator // square.denominator)
    root = isqrt(whole)
    return root if root * root == whole else root + 1
