"""A page of all charts in one file: scripts inline, nothing is fetched."""

from __future__ import annotations

import html
import json
from functools import cache

import altair as alt
import vl_convert

from spark_plugin.worker.exploration.charts import charts_of, with_style
from spark_plugin.worker.exploration.exploration import Exploration
from spark_plugin.worker.exploration.words import flat_words, head_of, readings_of, sample_words

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
    """The page as text: about a megabyte, most of it Vega.

    Parameters
    ----------
    found : Exploration
    command : str or None
        What made it.
    """
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
