"""Charts on pages that need no network, and what all charts have in common."""

from __future__ import annotations

import html
import io
import json
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from coincide.engine.files.finding import ParquetFiles
from coincide.engine.files.publishing import Output
from coincide.model.extras import EXPLORE, missing
from coincide.model.units import NANOSECONDS_PER_UNIT, Tick

try:
    import altair
    import vl_convert
except ModuleNotFoundError as error:
    name = str(error.name).partition(".")[0]
    if name not in EXPLORE.requirements:
        raise
    raise missing(EXPLORE, name) from error

alt = altair
WIDTH, HEIGHT = 680, 260
BLUE, ORANGE = "#0072b2", "#d55e00"
# Okabe and Ito's, told apart by all eyes, dark first.
COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7")
NUMBERS = alt.Axis(format=",~r")
PAIRS = alt.Tooltip("pairs:Q", format=",d")
_SCALE = 1.5
"""Pixels of a picture for each of a chart."""


def with_style(chart: Any) -> Any:
    """A chart of the first level, with what all of them have in common."""
    return (
        # First: it replaces all that was configured before.
        chart.configure(padding=10, background="white")
        .configure_view(stroke="#bbbbbb")
        .configure_axis(labelFontSize=12, titleFontSize=13, grid=True, gridColor="#e6e6e6")
        .configure_legend(labelFontSize=12, titleFontSize=13, orient="bottom")
    )


def chart_of(rows: list[dict[str, Any]], width: float = WIDTH, height: float = HEIGHT) -> Any:
    """A chart of rows, without marks."""
    return alt.Chart(alt.InlineData(values=rows), width=width, height=height)


def title_of(words: str) -> Any:
    """The title of a chart."""
    return alt.TitleParams(words, fontSize=16, anchor="start")


def suiting_unit(length: float, tick: Tick) -> tuple[str, float]:
    """A unit in which lengths up to some ticks are handy numbers, and how many ticks it has."""
    if tick.nanoseconds is None:
        return "ticks", 1.0
    largest = max(length, 1) * tick.nanoseconds
    unit, size = [(u, n) for u, n in NANOSECONDS_PER_UNIT.items() if n <= largest][-1]
    return unit, float(size / tick.nanoseconds)


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #111; background: #fff;
       max-width: 54rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
table { border-collapse: collapse; } th { text-align: left; padding-right: 1.5rem; vertical-align: top;
       white-space: nowrap; font-weight: 600; } td { padding-bottom: .2rem; }
pre { background: #f4f4f4; padding: .8rem; white-space: pre-wrap; overflow-wrap: anywhere; }
.chart, .chart.vega-embed { display: block; overflow-x: auto; min-height: 200px; }
.chart svg.marks { max-width: 100%; height: auto; }
.note { border-left: 4px solid #d55e00; padding-left: .8rem; }
section { break-inside: avoid; }
@media print { body { margin: 0; max-width: none; } details { display: none; } }
"""
_DRAW = """
// A narrow window gets narrow charts, with room for axes.
const fit = (spec, by) => { for (const [name, part] of Object.entries(spec)) {
  if (name === "width" && typeof part === "number") spec.width = Math.round(part * by);
  else if (["spec", "layer", "hconcat"].includes(name)) [part].flat().forEach((each) => fit(each, by)); } };
const room = document.querySelector(".chart").clientWidth;
Object.values(charts).forEach((spec) => fit(spec, Math.min(1, (room - 120) / WIDTH)));
const options = {renderer: "svg", actions: {export: true, source: false, compiled: false, editor: false}};
Promise.all(Object.entries(charts).map(([name, spec]) => vegaEmbed("#" + name, spec, options)))
  .then(() => { document.body.dataset.drawn = "yes"; });
""".replace("WIDTH", str(WIDTH))


class Section(NamedTuple):
    """A heading, a sentence or two, and a chart, by its name."""

    name: str
    title: str
    words: str
    chart: Any


def page_with(
    title: str,
    head: Sequence[tuple[str, str]],
    summary: str,
    sections: Sequence[Section],
    command: str | None,
) -> str:
    """A page as text: about a megabyte, most of it Vega. The summary is HTML."""
    charts = {each.name: with_style(each.chart).to_dict() for each in sections}
    rows = "\n".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(words)}</td></tr>"
        for name, words in head
    )
    shown = [
        f"<section><h2>{html.escape(each.title)}</h2>\n<p>{html.escape(each.words)}</p>\n"
        f'<div class="chart" id="{each.name}"></div></section>'
        for each in sections
    ]
    # A text of the data must not end the script.
    specs = json.dumps(charts).replace("<", "\\u003c")
    scripts = [
        f'<script type="module">{_library()}\n</script>',
        f'<script type="module">const charts = {specs};{_DRAW}</script>',
    ]
    return "\n".join([
        "<!DOCTYPE html>", '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Coincide: {html.escape(title.lower())}</title>", f"<style>{_STYLE}</style></head><body>",
        f"<h1>{html.escape(title)}</h1>", summary, f"<table>{rows}</table>",
        f"<p>Made by</p><pre>{html.escape(command)}</pre>" if command else "",
        *shown, *(scripts if charts else ()), "</body></html>", "",
    ])  # fmt: skip


@cache
def _library() -> str:
    """Vega, Vega-Lite and Vega-Embed, as a script that needs no other; takes a second to make."""
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    library = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", version)
    return str(library).replace("</script", "<\\/script")


def picture_of(chart: Any) -> bytes:
    """A chart of Altair as PNG."""
    pixels = io.BytesIO()
    chart.save(pixels, format="png", scale_factor=_SCALE)
    return pixels.getvalue()


def checked_place(path: str, overwrite: bool, inputs: tuple[ParquetFiles, ...] = ()) -> Output:
    """Where a page or a picture is written; refuses what could not be written."""
    return Output(path, overwrite, inputs, is_folder=False, replaces_files=True)


def is_page(path: str) -> bool:
    """Whether a name is that of a page."""
    return path.lower().endswith((".html", ".htm"))


def write_file(
    path: str, content: bytes, overwrite: bool, inputs: Sequence[ParquetFiles] = ()
) -> None:
    """Write a page or a picture, whole or not at all."""
    with checked_place(path, overwrite, tuple(inputs)) as output:
        with output.filesystem.open_output_stream(output.aside) as stream:
            stream.write(content)
        output.publish()
