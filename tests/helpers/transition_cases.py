"""Cases of region transitions: events, a limit, a confidence; and tables of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

from bench.hunt.intervals import CONFIDENCES
from cpu_fallback.reference.decision import satisfaction_probability
from cpu_fallback.reference.transitions import FAR, Event, Row
from tests.helpers.rows import tuples
from tests.helpers.strategies import EPOCH_NS

PLACES = ((0, "a"), (0, "b"), (7, "a"), (2**53 + 1, ""))


def at(time: int, kind: str, car: str = "car") -> Event:
    """An event at an exact instant."""
    return 1, car, kind, time, time


# Section 6.1 of the BMQ paper: up to 3 minutes in a garage are free, and a ticket is good for 3 minutes
# outside. Seconds since eight o'clock.
GARAGE = [
    at(0, "I", "free"), at(150, "O", "free"),
    at(0, "I", "to the second"), at(180, "O", "to the second"),
    at(0, "I", "pays"), at(181, "O", "pays"), at(300, "I", "pays"), at(1000, "O", "pays"),
    at(400, "I", "still there"),
    at(900, "I", "just came"),
]  # fmt: skip
"""Events of a hand-worked example."""


class Case(NamedTuple):
    """Events in order of their midpoints, and the question."""

    events: list[Event]
    within: int
    confidence: float
    until: int | None
    repeated: str


@st.composite
def transition_cases(draw: Any) -> Case:
    """Mostly alternating events at few places, on a grid, so that times, limits and confidences tie."""
    step = draw(st.sampled_from((1, 10, 999_983, 10**9)))
    origin = draw(st.sampled_from((0, -7 * step, EPOCH_NS)))
    kind = draw(st.sampled_from(("successive", "instants", "overlapping")))
    honest = draw(st.booleans())
    moves = draw(
        st.lists(
            st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 6), st.integers(0, 6)),
            max_size=14,
        )
    )
    clocks, last = dict.fromkeys(PLACES, origin), {}
    events: list[Event] = []
    for place, repeats, gap, length in moves:
        where = PLACES[place]
        word = "O" if (last.get(where) == "I") != (repeats == 9 and not honest) else "I"
        last[where] = word
        low = clocks[where] + gap * step
        high = low if kind == "instants" else low + length * step
        if kind == "overlapping":  # events of one place in order of midpoints, whatever the lengths
            low, high = low - length * step, low + length * step
        clocks[where] = high if kind == "successive" else max(clocks[where], (low + high) // 2)
        events.append((*where, word, low, high))
    events.sort(key=lambda each: each[3] + each[4])
    within = draw(st.integers(0, 12)) * step + draw(st.sampled_from((0, 0, 0, 1, step // 2)))
    ties = [p for p in _probabilities(events, within) if p > 2.0**-40]
    confidence = draw(st.sampled_from((*CONFIDENCES, *ties, *ties)))
    until = draw(st.none() | st.integers(-2, 30).map(lambda k: origin + k * step))
    return Case(
        events, within, confidence, until, draw(st.sampled_from(("raise", "first", "last")))
    )


def _probabilities(events: Sequence[Event], within: int) -> list[float]:
    """The probabilities of transitions and stays, as exactly as floats can be."""
    found: dict[Any, Event] = {}
    values = []
    for event in events:
        first = found.get(event[:2])
        found[event[:2]] = event
        if first is not None:
            times = *first[3:], *event[3:]
            soon = satisfaction_probability(*times, 0, within)
            soon /= satisfaction_probability(*times, 0, FAR)
            values += [float(soon), float(1 - soon)]
    return sorted(set(values))


def event_table(events: Sequence[Event], kind: pa.DataType | None = None) -> pa.Table:
    """A table of events; `kind` is the type of its times."""
    columns = list(zip(*events, strict=True)) or [()] * 5
    time = kind or pa.int64()
    kinds = (pa.int64(), pa.string(), pa.string(), time, time)
    names = ("query_id", "stream_id", "event", "min_time", "max_time")
    arrays = [pa.array(values, of) for values, of in zip(columns, kinds, strict=True)]
    return pa.table(arrays, names=names)


def result_rows(*tables: pa.Table) -> list[Row]:
    """The rows of results, sorted."""
    return in_order(row for table in tables for row in tuples(table))


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Rows, some of which have None, as `result_rows` sorts them."""
    return sorted(rows, key=repr)


def of_stream(rows: Iterable[Row], word: int = 2) -> list[Row]:
    """What a stream tells of rows, whose transition has a place: no end of a stay. As `result_rows`."""
    return in_order(row[:-4] + (None,) * 4 if "!" in row[word] else row for row in rows)


def stream_rows(found: pa.Table) -> list[dict[str, Any]]:
    """What a stream tells of the rows of a result: no end of a stay."""
    ends = dict.fromkeys(found.column_names[-4:])
    return [row | ends if "!" in row["transition"] else row for row in found.to_pylist()]
