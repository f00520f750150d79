"""The charts of an exploration, by Altair: a few hundred rows each, readable in print."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from spark_plugin.worker.arrow.time_words import length_words
from spark_plugin.worker.exploration.exploration import Exploration
from spark_plugin.worker.exploration.partners import LABELS
from spark_plugin.worker.exploration.units import suiting_unit

WIDTH, HEIGHT = 680, 260
BLUE, ORANGE = "#0072b2", "#d55e00"
# Okabe and Ito's, told apart by all eyes, dark first.
_COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7")
_COUNT = ",d"
_APART = 70
"""Width of a bar that stands apart."""
_NO_LABELS = alt.Axis(labels=False, ticks=False, grid=False)
_TENTHS = alt.Axis(values=[i / 10 for i in range(11)], format=".1f")
_LIGHT_TO_DARK = alt.SchemeParams("blues", extent=[0.15, 1.0])


def charts_of(found: Exploration) -> dict[str, alt.Chart]:
    """The charts by name; none without candidates."""
    if not found.candidates:
        return {}
    return {
        "probabilities": _probabilities(found),
        "curve": _curve(found),
        "partners": _partners(found),
        "delays": _delays(found),
    }


def together(charts: dict[str, alt.Chart]) -> Any:
    """All charts below each other, as one."""
    stacked = alt.vconcat(*charts.values(), spacing=40).resolve_scale(color="independent")
    return with_style(stacked)


def with_style(chart: Any) -> Any:
    """A chart of the first level, with what all of them have in common."""
    return (
        chart.configure_view(stroke="#bbbbbb")
        .configure_axis(labelFontSize=12, titleFontSize=13, grid=True, gridColor="#e6e6e6")
        .configure_legend(labelFontSize=12, titleFontSize=13)
        .configure(padding=10, background="white")
    )


def _title(words: str) -> alt.TitleParams:
    return alt.TitleParams(words, fontSize=16, anchor="start")


def _pairs_title(found: Exploration) -> str:
    return "pairs" if found.sample.is_all else "pairs, scaled up from a sample"


def _probabilities(found: Exploration) -> Any:
    rows = found.probabilities.to_pandas()
    certain = rows["lower"] == 1.0
    rows["shown"] = rows["upper"].mask(certain, 1.02)
    rows["what"] = certain.map({True: "P = 1", False: "P < 1"})
    rows["range"] = [
        "P = 1" if sure else f"{low:.2f} ≤ P < {high:.2f}"
        for sure, low, high in zip(certain, rows["lower"], rows["upper"], strict=True)
    ]
    title = _title("Candidates by probability")
    if not found.certain_stand_apart:
        return _bars(rows, found, WIDTH, 1.02).properties(title=title)
    rows["shown"] = rows["upper"].mask(certain, 1.04)
    below = _bars(rows[~certain], found, WIDTH - 2 * _APART, 1.0)
    alone = _bars(rows[certain], found, _APART, 1.04).encode(
        x=alt.X("lower:Q", title="P = 1", scale=alt.Scale(domain=[1.0, 1.04]), axis=_NO_LABELS),
        y=alt.Y("pairs:Q", title="pairs with P = 1: a scale of their own",
                axis=alt.Axis(format=",~r", orient="right")),
    )  # fmt: skip
    return alt.hconcat(below, alone, spacing=8, title=title).resolve_scale(y="independent")


def _bars(rows: pd.DataFrame, found: Exploration, width: int, end: float) -> alt.Chart:
    return (
        alt.Chart(rows, width=width, height=HEIGHT)
        .mark_bar(stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X("lower:Q", title="probability P of the pair", scale=_unit_scale(end), axis=_TENTHS),
            x2="shown:Q",
            y=alt.Y("pairs:Q", title=_pairs_title(found), axis=alt.Axis(format=",~r")),
            y2=alt.datum(0),
            color=alt.Color(
                "what:N",
                title=None,
                scale=alt.Scale(domain=["P < 1", "P = 1"], range=[BLUE, ORANGE]),
            ),
            tooltip=[alt.Tooltip("range:N", title="probability"),
                     alt.Tooltip("pairs:Q", format=_COUNT)],
        )
    )  # fmt: skip


def _unit_scale(end: float = 1.0) -> alt.Scale:
    return alt.Scale(domain=[0.0, end], nice=False)


def _curve(found: Exploration) -> Any:
    rows = found.curve.to_pandas()
    rows["what"] = "found"
    base = alt.Chart(rows, width=WIDTH, height=HEIGHT, title=_title("Pairs by confidence")).encode(
        x=alt.X("confidence:Q", title="confidence asked for", scale=_unit_scale(), axis=_TENTHS)
    )
    lines = ["found"]
    tooltip = [alt.Tooltip("confidence:Q", format=".2f"), alt.Tooltip("pairs:Q", format=_COUNT)]
    layers = []
    if found.shifts:
        lines.append("by chance")
        rows["chance"] = "by chance"
        spread = rows["accidental_spread"].fillna(0.0)
        rows["least"] = (rows["accidental_pairs"] - spread).clip(lower=0.0)
        rows["most"] = rows["accidental_pairs"] + spread
        tooltip += [
            alt.Tooltip("accidental_pairs:Q", title="by chance", format=",.1f"),
            alt.Tooltip("accidental_spread:Q", title="±", format=",.1f"),
        ]
        layers += [
            base.mark_area(color=ORANGE, opacity=0.35).encode(y="least:Q", y2="most:Q"),
            base.mark_line(strokeDash=[6, 3]).encode(
                y="accidental_pairs:Q", color=_line_colour("chance", lines)
            ),
        ]
    pairs = alt.Y("pairs:Q", title=_pairs_title(found), axis=alt.Axis(format=",~r"))
    layers += [
        base.mark_line().encode(y=pairs, color=_line_colour("what", lines)),
        base.mark_circle(size=28, opacity=1).encode(
            y=pairs, color=_line_colour("what", lines), tooltip=tooltip
        ),
        _rule(found.confidence),
    ]
    return alt.layer(*layers)


def _line_colour(field: str, lines: list[str]) -> alt.Color:
    scale = alt.Scale(domain=lines, range=[BLUE, ORANGE][: len(lines)])
    return alt.Color(f"{field}:N", title=None, scale=scale)


def _rule(confidence: float) -> alt.Chart:
    """Where delays are shown."""
    at = pd.DataFrame({"at": [confidence]})
    return (
        alt.Chart(at)
        .mark_rule(color="#555555", strokeDash=[2, 2])
        .encode(x="at:Q", tooltip=alt.Tooltip("at:Q", title="delays below are at", format=".3~f"))
    )


def _partners(found: Exploration) -> Any:
    rows = found.partners.to_pandas()
    rows = rows[rows["partners"].isin(_needed(rows))].copy()
    rows["of"] = "events" if found.spec.is_one_stream else rows["side"] + " events"
    totals = rows.groupby(["side", "confidence"])["events"].transform("sum")
    rows["share"] = rows["events"] / totals.clip(lower=1)
    rows["at"] = rows["confidence"].map("{:g}".format)
    confidences = [f"{each:g}" for each in found.confidences]
    colours = alt.Scale(domain=confidences, range=_COLOURS[: len(confidences)])
    chart = (
        alt.Chart(rows, width=WIDTH, height=HEIGHT * 0.7)
        .mark_bar()
        .encode(
            x=alt.X("partners:N", title="partners of an event", sort=list(LABELS),
                    axis=alt.Axis(labelAngle=0)),
            xOffset=alt.XOffset("at:N", sort=confidences),
            y=alt.Y("events:Q", title="events", axis=alt.Axis(format=",~r")),
            color=alt.Color("at:N", title="confidence", sort=confidences, scale=colours),
            tooltip=[
                alt.Tooltip("of:N", title="of"), alt.Tooltip("at:N", title="confidence"),
                alt.Tooltip("partners:N"), alt.Tooltip("events:Q", format=_COUNT),
                alt.Tooltip("share:Q", format=".2%"),
            ],
        )
    )  # fmt: skip
    return (
        chart.facet(row=alt.Row("of:N", title=None, header=alt.Header(labelFontSize=13)))
        .resolve_scale(y="independent")
        .properties(title=_title("Partners by event"))
    )


def _needed(rows: pd.DataFrame) -> list[str]:
    """Labels up to the last that any event has, and those of 0, 1 and 2."""
    held = rows.groupby("partners")["events"].sum()
    last = max(i for i, label in enumerate(LABELS) if held[label] or i <= 2)
    return list(LABELS[: last + 1])


def _delays(found: Exploration) -> Any:
    rows = found.delays.to_pandas()
    tick = found.evidence[0].scale.tick
    unit, size = suiting_unit(found.spec.window, tick)
    half = found.delay_step / 2
    rows["from"], rows["to"] = (rows["delay"] - half) / size, (rows["delay"] + half) / size
    rows["words"] = [length_words(delay, tick) for delay in rows["delay"]]
    scale = found.evidence[0].scale
    begins = [found.parts.begin(part, scale) for part in range(25)]
    rows["next"] = rows["part"] + 1
    rows["begin"] = [begins[part] for part in rows["part"]]
    is_hours = found.parts.is_hours
    axis = alt.Axis(values=list(range(0, 25, 3 if is_hours else 8)), labelAngle=0,
                    labelExpr=_labels(begins, is_hours))  # fmt: skip
    own, other = ("earlier", "later") if found.spec.is_one_stream else ("left", "right")
    title = found.parts.title(scale, own)
    return (
        alt.Chart(rows, width=WIDTH, height=HEIGHT * 1.2,
                  title=_title(f"Delays by time, of pairs at confidence {found.confidence:g}"))
        .mark_rect(stroke="white", strokeWidth=0.3)
        .encode(
            x=alt.X("part:Q", title=title, axis=axis, scale=alt.Scale(domain=[0, 24], nice=False)),
            x2="next:Q",
            y=alt.Y("from:Q", title=f"delay Δ of the middles, {unit} ({other} after {own}: above 0)",
                    scale=alt.Scale(zero=False, nice=False)),
            y2="to:Q",
            color=alt.Color("pairs:Q", title="pairs", scale=alt.Scale(scheme=_LIGHT_TO_DARK),
                            legend=alt.Legend(format=",~r")),
            tooltip=[
                alt.Tooltip("begin:N", title="from"), alt.Tooltip("words:N", title="Δ about"),
                alt.Tooltip("pairs:Q", format=_COUNT),
            ],
        )
    )  # fmt: skip


def _labels(begins: list[str], is_hours: bool) -> str:
    """An expression of Vega that names the borders of parts."""
    if is_hours:
        return "datum.value"
    words = ", ".join(f"'{each}'" for each in begins)
    return f"[{words}][datum.value]"
