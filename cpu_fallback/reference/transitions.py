"""The oracle of region transitions: two windows, event by event, decided in exact arithmetic.

Tran-Seq (section 6.4 of the BMQ paper), with what is too old told as a stay before, and not after,
the new event looks for its match. An event is a tuple (query, stream, "I" or "O", min_time,
max_time) of integer ticks; a row is (query, stream, transition, min and max of the first event, min
and max of when it came true, min and max of the event that ended it or None, shortest and longest
duration or None).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any

from cpu_fallback.reference.decision import qualifies, satisfaction_probability

Event = tuple[Hashable, Hashable, str, int, int]
Row = tuple[Any, ...]

# No difference of two times reaches as far.
FAR = 2**70


def transitions(
    events: Sequence[Event],
    within: int,
    confidence: float,
    until: int | None = None,
    repeated: str = "raise",
) -> tuple[list[Row], int]:
    """Region transition events, and how many events are left of which nothing is certain."""
    if until is None:
        until = max((event[4] for event in events), default=0)
    windows: dict[str, dict[tuple[Hashable, Hashable], Event]] = {"I": {}, "O": {}}
    rows: list[Row] = []
    for event in sorted(events, key=lambda each: each[3] + each[4]):
        kind, place = event[2], (event[0], event[1])
        other = "O" if kind == "I" else "I"
        if place in windows[kind] and repeated == "raise":
            raise ValueError(f"{event} repeats {windows[kind][place]}")
        if place in windows[kind] and repeated == "first":
            continue
        # Whoever waits longer than `within` by now has stayed.
        for window in windows.values():
            if place in window and _qualifies_longer(window[place], event, within, confidence):
                end = event if window is windows[other] else None
                rows.append(_stay(window[place], within, end))
        # Whoever waits in the other window, and not longer than `within`, has gone over.
        match = windows[other].pop(place, None)
        if match is not None and qualifies(_shorter(match, event, within), confidence):
            row = (*place, f"{other}>{kind}", *match[3:], *event[3:])
            rows.append((*row, *_end(match, event)))
        windows[kind][place] = event
    left = [event for window in windows.values() for event in window.values()]
    sure = [event for event in left if qualifies(_passed(event, within, until), confidence)]
    return rows + [_stay(event, within) for event in sure], len(left) - len(sure)


def _stay(event: Event, within: int, end: Event | None = None) -> Row:
    query, stream, kind, low, high = event
    name = "I>!O" if kind == "I" else "O>!I"
    return (query, stream, name, low, high, low + within, high + within, *_end(event, end))


def _end(first: Event, second: Event | None) -> Row:
    """The timestamp of the event that ends a stay or a transition, and the durations that there may be."""
    if second is None:
        return (None,) * 4
    gaps = [end - begin for begin in first[3:] for end in second[3:]]
    return (*second[3:], max(min(gaps), 0), max(gaps))


def _between(first: Event, second: Event, lo: int, hi: int) -> Fraction:
    """The probability of a dwell time in [lo, hi], among those that are not negative."""
    a, b, c, d = first[3], first[4], second[3], second[4]
    in_order = satisfaction_probability(a, b, c, d, 0, FAR)
    return satisfaction_probability(a, b, c, d, lo, hi) / in_order


def _shorter(first: Event, second: Event, within: int) -> Fraction:
    return _between(first, second, 0, within)


def _longer(first: Event, second: Event, within: int) -> Fraction:
    """Above `within`: it makes a difference to whole ticks, and else none."""
    instants = first[3] == first[4] and second[3] == second[4]
    return _between(first, second, within + instants, FAR)


def _qualifies_longer(first: Event, second: Event, within: int, confidence: float) -> bool:
    return qualifies(_longer(first, second, within), confidence)


def _passed(event: Event, within: int, until: int) -> Fraction:
    """The probability that the event and `within` lie before `until`."""
    low, high = event[3] + within, event[4] + within
    if low == high:
        return Fraction(int(low < until))
    return Fraction(min(max(until - low, 0), high - low), high - low)
