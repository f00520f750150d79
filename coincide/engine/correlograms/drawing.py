"""The charts of a histogram of delays, and the page of them."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from coincide.engine.correlograms.histogram import DelayHistogram
from coincide.engine.exploration.pages import (
    BLUE,
    COLOURS,
    NUMBERS,
    ORANGE,
    Section,
    alt,
    chart_of,
    page_with,
    suiting_unit,
    title_of,
)
from coincide.engine.reports.lines import Line

_MOST_KEYS = 8
_MOST_BARS = 1000
_LINES = {"expected": ("expected", COLOURS[0], []), "chance": ("by chance", ORANGE, [6, 3])}
"""Columns that are drawn as lines: what they are called, their colour, and their dashes."""
_WORDS = {
    "expected": (
        "The black line spreads each pair over the buckets that its uncertain times may put it in."
    ),
    "chance": (
        "The dashed line is what chance gives on average, n pairs. About √n more or fewer are chance, too."
    ),
}


def page_of(found: DelayHistogram, head: Sequence[Line], command: str | None) -> str:
    """The page, of the first few keys."""
    keys = found.keys.slice(0, _MOST_KEYS).to_pylist() if found.keys.num_columns else [{}]
    sections = []
    for number, key in enumerate(keys):
        name = ", ".join(f"{column} {value}" for column, value in key.items())
        sections.append(
            Section(
                f"delays{number}", name or "Pairs by delay", _words(found), _chart(found, number)
            )
        )
    notes = []
    if found.keys.num_rows > len(keys):
        notes.append(
            f"The page shows the first {len(keys)} of {found.keys.num_rows:,} keys. The output has all."
        )
    if not sections:
        notes.append("No key is on both sides, so there is nothing to draw.")
    summary = "".join(f'<p class="note">{html.escape(note)}</p>' for note in notes)
    return page_with("How long after left events right ones come", head, summary, sections, command)


def _words(found: DelayHistogram) -> str:
    own = "Each bar counts the pairs whose delay, right less left, is in its bucket."
    return " ".join([own, *(_WORDS[name] for name in found.names[1:])])


def _chart(found: DelayHistogram, number: int) -> Any:
    """Pairs as bars; what is expected, and what chance gives, as lines."""
    edges = found.edges[0], found.edges[-1]
    unit, size = suiting_unit(max(map(abs, edges)), found.tick)
    bounds, counted = found.joined(_MOST_BARS, number)
    bounds = bounds / size
    called = {"pairs": "pairs", **{name: _LINES[name][0] for name in found.names[1:]}}
    colours = alt.Scale(
        domain=list(called.values()),
        range=[BLUE, *(_LINES[name][1] for name in found.names[1:])],
    )
    rows = [
        {"from": low, "to": high, **dict(zip(called, values, strict=True)),
         **{f"of {name}": words for name, words in called.items()}}
        for low, high, *values in zip(
            bounds[:-1].tolist(), bounds[1:].tolist(),
            *(each.tolist() for each in counted.values()), strict=True,
        )
    ]  # fmt: skip
    base = chart_of(rows)
    tooltip = [
        alt.Tooltip("from:Q", title=f"from, {unit}"), alt.Tooltip("to:Q", title=f"to, {unit}"),
        *(alt.Tooltip(f"{name}:Q", title=words, format=",.6~g") for name, words in called.items()),
    ]  # fmt: skip
    scale = alt.Scale(domain=[bounds[0], bounds[-1]], nice=False)
    layers = [
        base.mark_bar(stroke="white", strokeWidth=0.3).encode(
            x=alt.X("from:Q", title=f"delay Δ, {unit}", scale=scale), x2="to:Q",
            y=alt.Y("pairs:Q", title="pairs", axis=NUMBERS), y2=alt.datum(0),
            color=alt.Color("of pairs:N", title=None, scale=colours), tooltip=tooltip,
        )
    ]  # fmt: skip
    # A line steps at each edge, and goes on to the last one.
    stepped = chart_of([*rows, {**rows[-1], "from": rows[-1]["to"]}])
    for name in found.names[1:]:
        layers.append(
            stepped.mark_line(strokeDash=_LINES[name][2], interpolate="step-after").encode(
                x="from:Q", y=f"{name}:Q",
                color=alt.Color(f"of {name}:N", title=None, scale=colours),
            )
        )  # fmt: skip
    return alt.layer(*layers).properties(title=title_of("Pairs by delay"))
