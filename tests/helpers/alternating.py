"""The order of events whose rows have none, as one would put them by hand."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from cpu_fallback.reference.transitions import Event


def in_alternating_order(events: Sequence[Event]) -> list[Event]:
    """By query and stream and midpoint; at one midpoint I and O in turns, the shorter ones first."""
    ordered: list[Event] = []
    for _, group in groupby(sorted(events, key=_place), key=_place):
        mine: list[Event] = []
        for _, tied in groupby(sorted(group, key=_midpoint), key=_midpoint):
            waiting = sorted(tied, key=lambda event: event[4])
            inside = [event for event in waiting if event[2] == "I"]
            outside = [event for event in waiting if event[2] == "O"]
            if mine:
                wanted = "O" if mine[-1][2] == "I" else "I"
            else:
                wanted = "I" if len(inside) >= len(outside) else "O"
            while inside or outside:
                queue = inside if (wanted == "I" and inside) or not outside else outside
                mine.append(queue.pop(0))
                wanted = "O" if mine[-1][2] == "I" else "I"
        ordered += mine
    return sorted(ordered, key=_midpoint)


def _place(event: Event) -> tuple[str, str]:
    return repr(event[0]), repr(event[1])


def _midpoint(event: Event) -> int:
    return event[3] + event[4]
