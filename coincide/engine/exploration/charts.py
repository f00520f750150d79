"""The charts of an exploration, what they say in words, and pages and pictures of them."""

from __future__ import annotations

import html
import io
import json
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import altair as alt
import pandas as pd
import vl_convert

from coincide.engine.events.ticks import length_words
from coincide.engine.exploration.candidates import LABELS
from coincide.engine.exploration.exploring import CHARTS, Exploration
from coincide.engine.files.finding import ParquetFiles
from coincide.engine.files.publishing import Output
from coincide.engine.reports.emptiness import Evidence
from coincide.engine.reports.reports import side_words
from coincide.model.condition import Window
from coincide.model.errors import DataError, Words
from coincide.model.probability import highest_probability
from coincide.model.units import NANOSECONDS_PER_UNIT, Tick

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


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #111; background: #fff;
       max-width: 54rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
table { border-collapse: collapse; } th { text-align: left; padding-right: 1.5rem; vertical-align: top;
       white-space: nowrap; font-weight: 600; } td { padding-bottom: .2rem; }
pre { background: #f4f4f4; padding: .8rem; white-space: pre-wrap; overflow-wrap: anywhere; }
.chart { overflow-x: auto; min-height: 200px; }
.note { border-left: 4px solid #d55e00; padding-left: .8rem; }
section { break-inside: avoid; }
@media print { body { margin: 0; max-width: none; } details { display: none; } }
"""
_TITLES = {
    "probabilities": "How probable the candidates are",
    "curve": "How many pairs each confidence gives",
    "partners": "How many partners events have",
    "delays": "When, and how late",
}
_DRAW = """
const options = {renderer: "svg", actions: {export: true, source: false, compiled: false, editor: false}};
Promise.all(Object.entries(charts).map(([name, spec]) => vegaEmbed("#" + name, spec, options)))
  .then(() => { document.body.dataset.drawn = "yes"; });
"""


def page_of(found: Exploration, command: str | None) -> str:
    """The page as text: about a megabyte, most of it Vega."""
    charts = {name: with_style(chart).to_dict() for name, chart in charts_of(found).items()}
    readings = readings_of(found)
    sections = [
        f"<section><h2>{html.escape(_TITLES[name])}</h2>\n<p>{html.escape(readings[name])}</p>\n"
        f'<div class="chart" id="{name}"></div></section>'
        for name in charts
    ]
    parts = [
        "<!DOCTYPE html>", '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<title>Coincide: which confidence?</title>", f"<style>{_STYLE}</style></head><body>",
        "<h1>Which confidence?</h1>", _summary(found), _head(found, command), *sections,
        _scripts(charts) if charts else "", "</body></html>", "",
    ]  # fmt: skip
    return "\n".join(parts)


def _summary(found: Exploration) -> str:
    if not found.candidates:
        reasons = "".join(f"<li>{html.escape(line)}</li>" for line in found.why_none)
        return f'<p class="note">There are no candidates, at any confidence:</p><ul>{reasons}</ul>'
    notes = f"<p>{html.escape(flat_words(found))}</p>"
    if not found.sample.is_all:
        notes += f'<p class="note">A sample: {html.escape(sample_words(found))}.</p>'
    return notes


def _head(found: Exploration, command: str | None) -> str:
    rows = "\n".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(words)}</td></tr>"
        for name, words in head_of(found)
    )
    made = f"<p>Made by</p><pre>{html.escape(command)}</pre>" if command else ""
    return f"<table>{rows}</table>{made}"


def _scripts(charts: dict[str, object]) -> str:
    # A text of the data must not end the script.
    specs = json.dumps(charts).replace("<", "\\u003c")
    return (
        f'<script type="module">{_library()}\n</script>\n'
        f'<script type="module">const charts = {specs};{_DRAW}</script>'
    )


@cache
def _library() -> str:
    """Vega, Vega-Lite and Vega-Embed, as a script that needs no other; takes a second to make."""
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    library = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", version)
    return str(library).replace("</script", "<\\/script")


_SCALE = 1.5
"""Pixels of a picture for each of a chart."""
_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def picture_of(chart: Any) -> bytes:
    """A chart of Altair as PNG."""
    pixels = io.BytesIO()
    chart.save(pixels, format="png", scale_factor=_SCALE)
    return squeezed(pixels.getvalue())


def squeezed(png: bytes) -> bytes:
    """The same picture, its pixels compressed as well as zlib can."""
    chunks = list(_chunks(png))
    pixels = zlib.decompress(b"".join(data for kind, data in chunks if kind == b"IDAT"))
    head = [chunk for chunk in chunks if chunk[0] not in (b"IDAT", b"IEND")]
    written = [*head, (b"IDAT", zlib.compress(pixels, 9)), (b"IEND", b"")]
    return _SIGNATURE + b"".join(_chunk(*each) for each in written)


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_SIGNATURE)
    while at < len(png):
        size, kind = struct.unpack_from(">I4s", png, at)
        yield kind, png[at + 8 : at + 8 + size]
        at += 12 + size


def _chunk(kind: bytes, data: bytes) -> bytes:
    checked = kind + data
    return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))


_PAGES = (".html", ".htm")


def save(
    found: Exploration,
    path: str,
    overwrite: bool,
    command: str | None = None,
    inputs: tuple[ParquetFiles, ...] = (),
) -> list[str]:
    """Write the page, one picture, or a folder of pictures: what the name says."""
    planned = _planned(found, path, command)
    for file, content in planned:
        with Output(file, overwrite, inputs, is_folder=False, replaces_files=True) as output:
            with output.filesystem.open_output_stream(output.aside) as stream:
                stream.write(content())
            output.publish()
    return [file for file, _ in planned]


def check_places(
    paths: Sequence[str], overwrite: bool, inputs: tuple[ParquetFiles, ...] = ()
) -> None:
    """Refuse, before anything is computed, what could not be written afterwards."""
    for path in paths:
        is_folder = os.path.isdir(path) and not is_page(path) and not is_picture(path)
        for name in pictures(path) if is_folder else [path]:
            Output(name, overwrite, inputs, is_folder=False, replaces_files=True)


def pictures(folder: str) -> list[str]:
    """The pictures of a folder."""
    return [os.path.join(folder, f"{name}.png") for name in CHARTS]


def is_page(path: str) -> bool:
    """Whether a name is that of a page."""
    return path.lower().endswith(_PAGES)


def is_picture(path: str) -> bool:
    """Whether a name is that of one picture."""
    return path.lower().endswith(".png")


def _planned(
    found: Exploration, path: str, command: str | None
) -> list[tuple[str, Callable[[], bytes]]]:
    if is_page(path):
        return [(path, lambda: found.to_html(command).encode())]
    from coincide.engine.exploration.charts import charts_of, together, with_style

    charts = charts_of(found)
    if not charts:
        raise DataError(
            f"there are no candidates, so no charts to write to {path}: {'; '.join(found.why_none)}"
        )
    if is_picture(path):
        return [(path, lambda: picture_of(together(charts)))]
    _make_folder(path)
    return [
        (file, lambda chart=chart: picture_of(with_style(chart)))  # type: ignore[misc]
        for file, chart in zip(pictures(path), charts.values(), strict=True)
    ]


def _make_folder(path: str) -> None:
    ending = os.path.splitext(path)[1]
    if ending and not os.path.isdir(path):
        raise DataError(
            f"cannot tell what to write to {path}: name a page .html, a picture .png, or a folder for"
            " pictures"
        )
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot make the folder {path}: {error.strerror}") from error


def suiting_unit(window: Window, tick: Tick) -> tuple[str, float]:
    """A unit in which the ends of a window are handy numbers, and how many ticks it has."""
    if tick.nanoseconds is None:
        return "ticks", 1.0
    largest = max(abs(window.lo), abs(window.hi), 1) * tick.nanoseconds
    fitting = [unit for unit, size in NANOSECONDS_PER_UNIT.items() if size <= largest]
    unit = fitting[-1]
    return unit, NANOSECONDS_PER_UNIT[unit] / tick.nanoseconds


def head_of(found: Exploration) -> list[tuple[str, str]]:
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
        lines.append(("sample", sample_words(found)))
    if found.shifts:
        lines.append(("shifts", ", ".join(found.shifts)))
    return lines


def _highest(found: Exploration) -> str:
    """What confidence no pair can reach, or few can; nothing where all can be certain."""
    best = found.highest_probability
    if best is None:
        return ""
    words = f"{best:.4g}, which no pair exceeds"
    if found.spec.has_histograms:
        return words + ": the templates and the window allow no more" if best < 1.0 else ""
    # The same length on both sides for all: the shortest are the typical ones.
    lengths = [found.evidence[side].typical or 0 for side in (0, -1)]
    typical = highest_probability(lengths[0], lengths[1], found.spec.window.width)
    if typical == 1.0:
        return ""
    if typical == best:
        return words + ": the window is narrow for timestamps so long"
    return f"{best:.4g}; of pairs of timestamps as long as half of them or more are, {typical:.4g}"


def _times(evidence: Evidence) -> str:
    first, last = evidence.words_of_times
    tick = evidence.scale.tick
    lengths = f"{length_words(evidence.shortest, tick)} long"
    if evidence.typical is not None and evidence.typical != evidence.shortest:
        typical = length_words(evidence.typical, tick)
        lengths = f"at least {lengths}, half of them {typical} or more"
    return f"{first} to {last}; timestamps are {lengths}"


def sample_words(found: Exploration) -> str:
    """What was looked at, of a sample."""
    sample = found.sample
    events = "events as earlier ones" if found.spec.is_one_stream else "left events"
    return (
        f"pairs of {sample.events:,} of {sample.of:,} {events}, drawn at random, were looked at, and"
        f" their numbers multiplied by {sample.factor:,.4g}. Candidates and partners are counted of all"
    )


def flat_words(found: Exploration) -> str:
    """Whether it matters which confidence is asked for."""
    if not found.candidates:
        return ""
    if found.flat is None:
        return (
            "No range of confidences 0.1 wide gives the same pairs within 1 %: how many there are"
            " depends on the confidence everywhere."
        )
    low, high = found.flat
    return f"Any confidence between {low:g} and {high:g} gives the same pairs within 1 %."


def readings_of(found: Exploration) -> dict[str, str]:
    """A sentence or two for each chart, by its name."""
    apart = " These are so many that they stand apart, on a scale of their own."
    return {
        "probabilities": (
            "Each bar counts the pairs whose probability to lie in the window is in its range; the last"
            " one those that are certain. Pairs near 1 are in whatever is asked for, pairs near 0 are"
            " out; those between are the ones that the confidence decides."
            + (apart if found.certain_stand_apart else "")
        ),
        "curve": f"How many pairs a join finds at each confidence. {flat_words(found)}{_chance(found)}",
        "partners": (
            "How many events have no partner, one, or several. Events without any grow with the"
            " confidence; events with several say that the window holds more than one candidate, and"
            " that only the best one may be meant."
        ),
        "delays": _delays_in_words(found),
    }


def _chance(found: Exploration) -> str:
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
        f" At {row['confidence']:g} there are {row['pairs']:,}, of which chance alone would make"
        f" {row['accidental_pairs']:,.1f}{spread_words}."
    )


def _delays_in_words(found: Exploration) -> str:
    part = "hour of the day" if found.parts.is_hours else "part of the time range"
    own, other = ("earlier", "later") if found.spec.is_one_stream else ("left", "right")
    words = (
        f"By the {part} of the {own} event, how far the middle of the {other} timestamp lies after that of"
        f" the {own} one. A level other than 0 is a steady lag; one that wanders, a clock that drifts;"
        " a band without a centre, pairs by chance."
    )
    if found.far_delays:
        words += f" {found.far_delays:,} pairs lie beyond what is shown."
    return words
