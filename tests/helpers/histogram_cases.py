"""Templates and events of histograms, drawn at random, and what the reference says of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from coincide.model.condition import Window
from coincide.model.templates.template import Template, TemplateTable, template_table
from coincide.model.timestamps import HistogramEvents, IntervalEvents
from cpu_fallback.reference.join import Bucket, histogram_probability, placed

DECIMALS = (0.0, 0.0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 1.0)


@st.composite
def templates(draw: st.DrawFn, span: int = 40) -> Template:
    """A template with buckets of length 0, gaps and masses of 0, of decimals or of any doubles."""
    count = draw(st.integers(1, 5))
    edges = sorted(draw(st.lists(st.integers(0, span), min_size=count + 1, max_size=count + 1)))
    kind = st.sampled_from(DECIMALS) if draw(st.booleans()) else st.floats(0.0, 1.0)
    weights = draw(st.lists(kind, min_size=count, max_size=count).filter(lambda w: sum(w) > 0.01))
    return Template(edges, [weight / sum(weights) for weight in weights])


def tables(span: int = 40, most: int = 4) -> st.SearchStrategy[TemplateTable]:
    """Tables of one template or some."""
    several = st.lists(templates(span), min_size=1, max_size=most)
    return several.map(lambda each: template_table({str(k): t for k, t in enumerate(each)}))


@st.composite
def histogram_events(draw: st.DrawFn, table: TemplateTable, span: int = 120) -> HistogramEvents:
    """A few events of the templates of a table."""
    n = draw(st.integers(0, 8))
    times = draw(st.lists(st.integers(-span, span), min_size=n, max_size=n))
    numbers = draw(st.lists(st.integers(0, len(table) - 1), min_size=n, max_size=n))
    return HistogramEvents(np.array(times, np.int64), np.array(numbers, np.int64), table)


@st.composite
def interval_events(draw: st.DrawFn, span: int = 120) -> IntervalEvents:
    """A few intervals, instants among them."""
    n = draw(st.integers(0, 8))
    times = np.array(draw(st.lists(st.integers(-span, span), min_size=n, max_size=n)), np.int64)
    lengths = draw(st.lists(st.sampled_from([0, 0, 1, 7, 20]), min_size=n, max_size=n))
    return IntervalEvents(times - np.array(lengths, np.int64), times)


def histograms_of(events: Any) -> list[list[Bucket]]:
    """The events as the reference takes them."""
    if isinstance(events, IntervalEvents):
        ends = zip(events.min_time.tolist(), events.max_time.tolist(), strict=True)
        return [[(low, high, 1.0)] for low, high in ends]
    rows = zip(events.template.tolist(), events.max_time.tolist(), strict=True)
    return [placed(*_of_table(events.table, number), time) for number, time in rows]


def template_histogram(table: TemplateTable, number: int) -> list[Bucket]:
    """A template as the reference takes it, its max at 0."""
    return placed(*_of_table(table, number), 0)


def _of_table(table: TemplateTable, number: int) -> tuple[list[int], list[float]]:
    part = slice(int(table.starts[number]), int(table.starts[number + 1]))
    return table.edges[part].tolist(), table.given[part].tolist()[:-1]


class Case(NamedTuple):
    """Two sides and a condition."""

    left: Any
    right: Any
    window: Window


@st.composite
def cases(draw: st.DrawFn, mixed: bool = True) -> Case:
    """Histograms on both sides or one, and a window whose threshold some pair may just reach."""
    kinds = draw(st.sampled_from(["both", "left", "right"])) if mixed else "both"
    left, right = (
        draw(histogram_events(draw(tables())))
        if kinds in ("both", side)
        else draw(interval_events())
        for side in ("left", "right")
    )
    lo = draw(st.integers(-100, 100))
    hi = lo + draw(st.one_of(st.integers(0, 40), st.integers(0, 200)))
    confidence = draw(
        st.sampled_from([0.05, 0.1, 0.25, 0.5, 0.75, 0.8, 0.9, 1.0]) | st.floats(0.001, 1.0)
    )
    if len(left) and len(right) and draw(st.booleans()):
        one = histograms_of(left)[0], histograms_of(right)[0]
        tie = float(histogram_probability(*one, lo, hi))
        confidence = tie if tie > 1e-9 else confidence
    return Case(left, right, Window(lo, hi, confidence))
