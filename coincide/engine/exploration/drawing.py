"""The charts of an exploration, what they say in words, and pages and pictures of them."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Callable
from typing import Any

from coincide.engine.events.ticks import length_words
from coincide.engine.exploration.counting import LABELS, PARTS, ExplorationCounts
from coincide.engine.exploration.lags import clock_words
from coincide.engine.exploration.pages import (
    BLUE,
    COLOURS,
    HEIGHT,
    NUMBERS,
    ORANGE,
    PAIRS,
    WIDTH,
    Section,
    alt,
    chart_of,
    is_page,
    page_with,
    picture_of,
    suiting_unit,
    title_of,
    with_style,
    write_file,
)
from coincide.engine.files.finding import ParquetFiles
from coincide.engine.reports.emptiness import Evidence
from coincide.engine.reports.join_report import side_words
from coincide.model.errors import DataError, Words, marked
from coincide.model.probability import highest_probability

_APART = 70
"""Width of a bar that is apart."""
_TENTHS = alt.Axis(values=[i / 10 for i in range(11)], format=".1f")


def charts_of(found: ExplorationCounts) -> dict[str, Any]:
    """The charts of Altair by name; none without candidates."""
    if not found.candidates:
        return {}
    return {
        "probabilities": _probabilities(found), "curve": _curve(found),
        "matches": _matches(found), "delays": _delays(found),
    }  # fmt: skip


def _pairs_title(found: ExplorationCounts) -> str:
    return "pairs" if found.sample.is_all else "pairs, scaled up from a sample"


def _unit_scale(end: float = 1.0) -> Any:
    return alt.Scale(domain=[0.0, end], nice=False)


def _probabilities(found: ExplorationCounts) -> Any:
    end = 1.04 if found.certain_stand_apart else 1.02
    *below, certain = (
        {**row, "shown": row["upper"], "what": "P < 1",
         "range": f"{row['lower']:.2f} ≤ P < {row['upper']:.2f}"}
        for row in found.probabilities.to_pylist()
    )  # fmt: skip
    certain |= {"shown": end, "what": "P = 1", "range": "P = 1"}
    title = title_of("Candidates by probability")
    if not found.certain_stand_apart:
        return _bars([*below, certain], found, WIDTH, end).properties(title=title)
    alone = _bars([certain], found, _APART, end).encode(
        x=alt.X("lower:Q", title="P = 1", scale=alt.Scale(domain=[1.0, end]),
                axis=alt.Axis(labels=False, ticks=False, grid=False)),
        y=alt.Y("pairs:Q", title="pairs with P = 1: a scale of their own",
                axis=alt.Axis(format=",~r", orient="right")),
    )  # fmt: skip
    others = _bars(below, found, WIDTH - 2 * _APART, 1.0)
    return alt.hconcat(others, alone, spacing=8, title=title).resolve_scale(y="independent")


def _bars(rows: list[dict[str, Any]], found: ExplorationCounts, width: int, end: float) -> Any:
    return chart_of(rows, width).mark_bar(stroke="white", strokeWidth=0.5).encode(
        x=alt.X("lower:Q", title="probability P of the pair", scale=_unit_scale(end), axis=_TENTHS),
        x2="shown:Q",
        y=alt.Y("pairs:Q", title=_pairs_title(found), axis=NUMBERS),
        y2=alt.datum(0),
        color=alt.Color("what:N", title=None,
                        scale=alt.Scale(domain=["P < 1", "P = 1"], range=[BLUE, ORANGE])),
        tooltip=[alt.Tooltip("range:N", title="probability"), PAIRS],
    )  # fmt: skip


def _curve(found: ExplorationCounts) -> Any:
    rows = [{**row, "what": "found", "chance": "by chance"} for row in found.curve.to_pylist()]
    lines = ["found", "by chance"][: 1 + bool(found.shifts)]
    colours = alt.Scale(domain=lines, range=[BLUE, ORANGE][: len(lines)])
    base = chart_of(rows).encode(
        x=alt.X("confidence:Q", title="confidence", scale=_unit_scale(), axis=_TENTHS)
    )
    tooltip, layers = [alt.Tooltip("confidence:Q", format=".2f"), PAIRS], []
    if found.shifts:
        for row in rows:
            mean, spread = row["accidental_pairs"], row["accidental_spread"] or 0.0
            row |= {"least": max(mean - spread, 0.0), "most": mean + spread}
        tooltip += [
            alt.Tooltip("accidental_pairs:Q", title="by chance", format=",.1f"),
            alt.Tooltip("accidental_spread:Q", title="±", format=",.1f"),
        ]
        layers += [
            base.mark_area(color=ORANGE, opacity=0.35).encode(y="least:Q", y2="most:Q"),
            base.mark_line(strokeDash=[6, 3]).encode(
                y="accidental_pairs:Q", color=alt.Color("chance:N", title=None, scale=colours)
            ),
        ]
    line = base.encode(
        y=alt.Y("pairs:Q", title=_pairs_title(found), axis=NUMBERS),
        color=alt.Color("what:N", title=None, scale=colours),
    )
    at = alt.Chart(alt.InlineData(values=[{"at": found.confidence}]))
    rule = at.mark_rule(color="#555555", strokeDash=[2, 2]).encode(
        x="at:Q", tooltip=alt.Tooltip("at:Q", title="delays below are at", format=".3~f")
    )
    layers += [line.mark_line(), line.mark_circle(size=28, opacity=1).encode(tooltip=tooltip), rule]
    return alt.layer(*layers).properties(title=title_of("Pairs by confidence"))


def _matches(found: ExplorationCounts) -> Any:
    every = found.matches.to_pylist()
    held = [LABELS.index(row["matches"]) for row in every if row["events"]]
    rows = [row for row in every if LABELS.index(row["matches"]) <= max([2, *held])]
    totals: dict[tuple[str, float], int] = {}
    for row in rows:
        bar = row["side"], row["confidence"]
        totals[bar] = totals.get(bar, 0) + row["events"]
    for row in rows:
        row["of"] = "events" if found.spec.is_one_stream else f"{row['side']} events"
        row["share"] = row["events"] / max(totals[row["side"], row["confidence"]], 1)
        row["at"] = f"{row['confidence']:g}"
    confidences = [f"{each:g}" for each in found.confidences]
    colours = alt.Scale(domain=confidences, range=COLOURS[: len(confidences)])
    chart = chart_of(rows, WIDTH, HEIGHT * 0.7).mark_bar().encode(
        x=alt.X("matches:N", title="matches of an event", sort=list(LABELS),
                axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("at:N", sort=confidences),
        y=alt.Y("events:Q", title="events", axis=NUMBERS),
        color=alt.Color("at:N", title="confidence", sort=confidences, scale=colours),
        tooltip=[
            alt.Tooltip("of:N", title="of"), alt.Tooltip("at:N", title="confidence"),
            alt.Tooltip("matches:N"), alt.Tooltip("events:Q", format=",d"),
            alt.Tooltip("share:Q", format=".2%"),
        ],
    )  # fmt: skip
    return (
        chart.facet(row=alt.Row("of:N", title=None, header=alt.Header(labelFontSize=13)))
        .resolve_scale(y="independent")
        .properties(title=title_of("Matches by event"))
    )


def _delays(found: ExplorationCounts) -> Any:
    scale, half, window = found.evidence[0].scale, found.delay_step / 2, found.spec.window
    unit, size = suiting_unit(max(abs(window.lo), abs(window.hi)), scale.tick)
    begins = [found.parts.begin(part, scale) for part in range(PARTS + 1)]
    rows = [
        {"part": part, "next": part + 1, "begin": begins[part], "pairs": pairs,
         "from": (delay - half) / size, "to": (delay + half) / size,
         "words": length_words(delay, scale.tick)}
        for part, delay, pairs in zip(*found.delays.to_pydict().values(), strict=True)
    ]  # fmt: skip
    is_hours = found.parts.is_hours
    # An expression of Vega names the borders of parts.
    names = "datum.value" if is_hours else f"{json.dumps(begins)}[datum.value]"
    axis = alt.Axis(values=list(range(0, PARTS + 1, 3 if is_hours else 8)), labelAngle=0,
                    labelExpr=names)  # fmt: skip
    own = "earlier" if found.spec.is_one_stream else "left"
    return chart_of(rows, WIDTH, HEIGHT * 1.2).mark_rect(stroke="white", strokeWidth=0.3).encode(
        x=alt.X("part:Q", title=found.parts.title(scale, own), axis=axis,
                scale=alt.Scale(domain=[0, PARTS], nice=False)),
        x2="next:Q",
        y=alt.Y("from:Q", title=f"delay Δ, {unit}",
                scale=alt.Scale(zero=False, nice=False)),
        y2="to:Q",
        color=alt.Color("pairs:Q", title="pairs", legend=alt.Legend(format=",~r"),
                        scale=alt.Scale(scheme=alt.SchemeParams("blues", extent=[0.15, 1.0]))),
        tooltip=[alt.Tooltip("begin:N", title="from"), alt.Tooltip("words:N", title="Δ about"),
                 PAIRS],
    ).properties(
        title=title_of(f"Delays at confidence {found.confidence:g}")
    )  # fmt: skip


_TITLES = {
    "probabilities": "How probable the candidates are",
    "curve": "How many pairs each confidence gives",
    "matches": "How many matches events have",
    "delays": "When, and how late",
}


def page_of(found: ExplorationCounts, command: str | None) -> str:
    """The page as text."""
    readings = readings_of(found)
    sections = [
        Section(name, _TITLES[name], readings[name], chart)
        for name, chart in charts_of(found).items()
    ]
    return page_with("Which confidence?", head_of(found), _summary(found), sections, command)


def _summary(found: ExplorationCounts) -> str:
    if not found.candidates:
        reasons = "".join(f"<li>{html.escape(line)}</li>" for line in found.why_none)
        return f'<p class="note">There are no candidates, at any confidence:</p><ul>{reasons}</ul>'
    notes = f"<p>{html.escape(flat_words(found))}</p>"
    if not found.sample.is_all:
        notes += f'<p class="note">A sample: {html.escape(_sample_words(found))}.</p>'
    return notes


def save(
    found: ExplorationCounts,
    path: str,
    overwrite: bool,
    command: str | None = None,
    inputs: tuple[ParquetFiles, ...] = (),
) -> None:
    """Write the page, one picture, or a folder of pictures: what the name says."""
    for file, content in _planned(found, path, command):
        write_file(file, content(), overwrite, inputs)


def _planned(
    found: ExplorationCounts, path: str, command: str | None
) -> list[tuple[str, Callable[[], bytes]]]:
    """The files to write, and what makes the content of each."""
    if is_page(path):
        return [(path, lambda: page_of(found, command).encode())]
    charts = charts_of(found)
    if not charts:
        raise DataError(
            f"there are no candidates, so there are no charts to write to {path}:"
            f" {'; '.join(map(marked, found.why_none))}."
        )
    if path.lower().endswith(".png"):
        stacked = alt.vconcat(*charts.values(), spacing=40).resolve_scale(color="independent")
        return [(path, lambda: picture_of(with_style(stacked)))]
    if os.path.splitext(path)[1] and not os.path.isdir(path):
        raise DataError(
            f"the ending of {path} does not say what to write. End it in .html for a page or .png"
            " for a picture, or name a folder for pictures."
        )
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot make the folder {path}: {error.strerror}") from error
    return [
        (os.path.join(path, f"{name}.png"), lambda chart=chart: picture_of(with_style(chart)))  # type: ignore[misc]
        for name, chart in charts.items()
    ]


def head_of(found: ExplorationCounts) -> list[tuple[str, str]]:
    """Names and what there is to say."""
    tick, window = found.evidence[0].scale.tick, found.spec.window
    ends = " to ".join(length_words(end, tick) for end in (window.lo, window.hi))
    of = "T_later − T_earlier" if found.spec.is_one_stream else "T_right − T_left"
    lines = [("window", f"{ends}, of {of}")]
    for side, counts, evidence in zip(found.sides, found.rows, found.evidence, strict=True):
        rows = Words("; ".join([f"{counts.rows:,} rows", *side_words(counts, tick)]))
        lines.append(("events" if found.spec.is_one_stream else side, rows))
        if evidence.events:
            lines.append(("", _times(evidence)))
    if found.keys is not None:
        lines.append(("keys", found.keys.describe()))
    lines.append(("candidates", f"{found.candidates:,} pairs of a probability above 0"))
    if highest := _highest(found):
        lines.append(("highest P", highest))
    if not found.sample.is_all:
        lines.append(("sample", _sample_words(found)))
    if found.shifts:
        lines.append(("shifts", ", ".join(found.shifts)))
    return lines


def _highest(found: ExplorationCounts) -> str:
    """What confidence no pair can reach, or few can; nothing where all can be certain."""
    best = found.highest_probability
    if best is None:
        return ""
    words = f"{best:.4g}, which no pair exceeds"
    if not found.spec.are_uniform:
        return words + ". The templates and the window allow no more" if best < 1.0 else ""
    # The same length on both sides for all: the shortest are the typical ones.
    lengths = [found.evidence[side].typical or 0 for side in (0, -1)]
    typical = highest_probability(lengths[0], lengths[1], found.spec.window.width)
    if typical == 1.0:
        return ""
    if typical == best:
        return words + ". The window is narrow for timestamps of this length"
    return f"{best:.4g}. For pairs of timestamps at least as long as half of them: {typical:.4g}"


def _times(evidence: Evidence) -> str:
    first, last = evidence.words_of_times
    tick = evidence.scale.tick
    lengths = f"{length_words(evidence.shortest, tick)} long"
    if evidence.typical is not None and evidence.typical != evidence.shortest:
        typical = length_words(evidence.typical, tick)
        lengths = f"at least {lengths}, half of them {typical} or more"
    return f"{first} to {last}; timestamps are {lengths}"


def _sample_words(found: ExplorationCounts) -> str:
    """What was looked at, of a sample."""
    sample = found.sample
    events = "events as earlier ones" if found.spec.is_one_stream else "left events"
    return (
        f"this page shows pairs of {sample.events:,} of {sample.of:,} {events}, drawn at random,"
        f" and multiplies their numbers by {sample.factor:,.4g}. Candidates and matches count all"
        " events"
    )


def flat_words(found: ExplorationCounts) -> str:
    """Whether it matters which confidence is asked for."""
    if not found.candidates:
        return ""
    if found.flat is None:
        return (
            "No range of confidences 0.1 wide gives the same pairs within 1 %. The number depends"
            " on the confidence everywhere."
        )
    low, high = found.flat
    return f"Any confidence between {low:g} and {high:g} gives the same pairs within 1 %."


def readings_of(found: ExplorationCounts) -> dict[str, str]:
    """A sentence or two for each chart, by its name."""
    apart = " Pairs that are certain outnumber the others, so they have a scale of their own."
    return {
        "probabilities": (
            "Each bar counts the pairs whose probability to lie in the window is in its range."
            " The last bar counts the pairs that are certain. Every confidence takes the pairs"
            " near 1 and rejects those near 0. The confidence decides about the pairs between."
            + (apart if found.certain_stand_apart else "")
        ),
        "curve": f"How many pairs a join finds at each confidence. {flat_words(found)}{_chance(found)}",
        "matches": (
            "How many events have no match, one, or several. Events without a match grow with the"
            " confidence. Many events with several matches say that the window holds more than one"
            " candidate. You may then want the best match only."
        ),
        "delays": _delays_in_words(found),
    }


def _chance(found: ExplorationCounts) -> str:
    if not found.shifts:
        return ""
    row = next(
        row
        for row in reversed(found.curve.to_pylist())
        if row["confidence"] <= max(found.confidence, 0.01)
    )
    spread = row["accidental_spread"]
    spread_words = "" if spread is None else f" ± {spread:,.1f}"
    return (
        f" At {row['confidence']:g} there are {row['pairs']:,}, and chance alone would make"
        f" {row['accidental_pairs']:,.1f}{spread_words}."
    )


def _delays_in_words(found: ExplorationCounts) -> str:
    part = "hour of the day" if found.parts.is_hours else "part of the time range"
    own, other = ("earlier", "later") if found.spec.is_one_stream else ("left", "right")
    words = (
        f"The vertical axis shows how far the middle of the {other} timestamp lies after that of"
        f" the {own} one, by the {part} of the {own} event. A level other than 0 is a steady lag."
        " A level that wanders is a clock that drifts. A band without a centre is pairs by chance."
    )
    if found.far_delays:
        words += f" {found.far_delays:,} pairs lie outside the picture."
    return f"{words} {clock_words(found)}".rstrip()
