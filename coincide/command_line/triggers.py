"""What the triggers of a streaming query have done, by what Spark reports of each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from coincide.command_line.feeds import SKIPPED
from coincide.command_line.summary import Counted
from coincide.engine.room import bytes_words
from coincide.model.sides import SIDES

_OUTPUT, _ROWS, _AHEAD = "coincide_output", "rows", "ahead"
_OF_SIDE = (_ROWS, "unmatchable", "invalid", "too_long")
"""What `correlate_streams` counts of the rows of each side."""


class Triggers:
    """Sums over all triggers, and what the last one was like.

    `delays` are those of the sides, None where what they count is not known.
    """

    def __init__(self, delays: Sequence[timedelta | None]) -> None:
        self._delays = dict(zip(SIDES, delays, strict=False))
        self._until = ""
        self._watermark: str | None = None
        self._last: dict[str, Any] = {}
        self._seen: dict[str, datetime] = {}
        self.count = 0
        self.sides: dict[str, Counter[str]] = {side: Counter() for side in self._delays}
        self.rows = 0

    def take(self, reports: Iterable[Any]) -> None:
        """Add those reports of Spark that are new."""
        for report in reports:
            told = json.loads(report.json)
            if told["timestamp"] > self._until:
                self._until = told["timestamp"]
                self._add(told)

    def _add(self, told: dict[str, Any]) -> None:
        metrics = told.get("observedMetrics") or {}
        self._watermark = (told.get("eventTime") or {}).get("watermark") or self._watermark
        self.rows += _number(metrics, _OUTPUT, _ROWS)
        for side, counts in self.sides.items():
            counts["late"] += _number(metrics, "coincide_late", side)
            counts[_AHEAD] += _number(metrics, "coincide_late", f"{side}_ahead")
            counts[SKIPPED] += _number(metrics, f"{side}_{SKIPPED}", SKIPPED)
            for name in _OF_SIDE:
                counts[name] += _number(metrics, f"coincide_{side}", name)
            # Where rows can be set aside, those that are move no clock.
            clock = metrics.get(f"coincide_{side}_clock") or metrics.get(f"coincide_{side}") or {}
            latest = clock.get("latest")
            if latest is not None:
                seen = datetime.fromisoformat(latest).replace(tzinfo=None)
                self._seen[side] = max(seen, self._seen.get(side, seen))
        if metrics:
            self.count += 1
            self._last = told

    def line(self) -> str:
        """What is shown while it works: of the last trigger, and in all."""
        if not self._last:
            return "waiting for events"
        seconds = max(0.001, self._last["durationMs"].get("triggerExecution", 0) / 1000)
        metrics = self._last["observedMetrics"]
        sides = [
            f"{side} {_number(metrics, f'coincide_{side}', _ROWS) / seconds:,.0f} events/s{self._to(side)}"
            for side in self._delays
        ]
        state = self._last.get("stateOperators") or []
        rows = sum(each["numRowsTotal"] for each in state)
        size = bytes_words(sum(each["memoryUsedBytes"] for each in state))
        late = sum(counts["late"] for counts in self.sides.values())
        return (
            f"{', '.join(sides)}; state {rows:,} rows, {size}; {late:,} late;"
            f" {self.rows:,} rows written"
        )

    def _to(self, side: str) -> str:
        """Up to when a side has come, and whether the other one waits for it."""
        if side not in self._seen:
            return " (holds)" if self._seen else ""
        holds = " (holds)" if self._holding() == side else ""
        return f" to {self._seen[side].isoformat(' ', 'milliseconds')}{holds}"

    def _holding(self) -> str | None:
        """The side whose watermark is the earlier one."""
        marks = {
            side: self._seen[side] - delay
            for side, delay in self._delays.items()
            if delay is not None and side in self._seen
        }
        return min(marks, key=marks.__getitem__) if len(marks) == len(SIDES) else None

    def counted(self) -> Counted:
        """What all triggers together did."""
        values: dict[str, object] = {
            side: {_ROWS: counts[_ROWS], "late": counts["late"]} | +counts
            for side, counts in self.sides.items()
        }
        return Counted(
            {**values, "triggers": self.count, "watermark": self._watermark},
            [
                *((side, _words(counts)) for side, counts in self.sides.items()),
                ("triggers", f"{self.count:,}"),
                *([("watermark", self._watermark)] if self._watermark else []),
            ],
        )


def _words(counts: Counter[str]) -> str:
    """What the rows of a side were."""
    said = {
        "late": "late",
        _AHEAD: "set aside, too far ahead",
        SKIPPED: "records skipped, which have no value or are not of the schema",
        "unmatchable": "without time or key, so they match nothing",
        "invalid": "invalid, skipped",
        "too_long": "longer than any match can be with this window and confidence",
    }
    parts = [f"{counts[name]:,} {words}" for name, words in said.items() if counts[name]]
    return "; ".join([f"{counts[_ROWS]:,} rows", *parts])


def _number(metrics: dict[str, Any], name: str, of: str) -> int:
    return int((metrics.get(name) or {}).get(of) or 0)
