"""The charts of clocks, what they say in words, and the page of them."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coincide.engine.clocks.viewing import STRETCHES, ClockView, Offsets, Residuals
from coincide.engine.events.ticks import length_words, time_words
from coincide.engine.events.time_columns import TimeScale
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
from coincide.model.clocks.errors import PARTS_PER_MILLION, Limits, Segment

_MOST_WORDS = 6
"""Segments of a clock that words say."""


@dataclass(frozen=True)
class ClockPage:
    """A page of clocks: how their times are counted, and what was looked for."""

    scale: TimeScale
    limits: Limits

    def text(
        self,
        views: Sequence[ClockView],
        clocks: int,
        head: Sequence[tuple[str, str]],
        command: str | None,
    ) -> str:
        """The page, of the first few of some clocks."""
        sections = [each for k, view in enumerate(views) for each in self._sections(k, view)]
        notes = ["The offset is right − left: add it to left times to get right ones."]
        if clocks > len(views):
            notes.append(
                f"The page shows the first {len(views)} of {clocks:,} clocks. The output has all."
            )
        summary = [f"<p>{html.escape(note)}</p>" for note in notes]
        summary += [
            f"<p>{html.escape(self._told(view))}</p>" for view in views if view.offsets is None
        ]
        return page_with("How far clocks are off", head, "\n".join(summary), sections, command)

    def _sections(self, k: int, view: ClockView) -> list[Section]:
        if view.offsets is None:
            return []
        of = f" of {view.name}" if view.name else ""
        told = (
            f"{self._told(view)} The chart shows how far the pairs at each offset stand out of what"
            " chance makes. One peak alone is an answer. A second one that is nearly as high is not."
        )
        sections = [Section(f"offsets{k}", f"Offsets{of}", told, self._offsets(view.offsets))]
        if view.residuals is not None:
            sections += [
                Section(
                    f"residuals{k}", f"Residuals{of}",
                    "Each dot is a pair near the line: how much later the right event is than the line of"
                    " the segment with most pairs says. Lines are segments. Dots far from all lines are"
                    " pairs by chance.",
                    self._residuals(view.residuals, view.found.segments),
                ),
                Section(
                    f"template{k}", f"Spread{of}",
                    "How far pairs are from the line of their segment. The steps are the template that"
                    " templates_from_delays makes of the pairs near it. Nine pairs of ten are between the"
                    " dashed rules: a window of a join must be as wide.",
                    self._template(view.residuals),
                ),
            ]  # fmt: skip
        return sections

    def _told(self, view: ClockView) -> str:
        """What was found of a clock, in words."""
        found, tick = view.found, self.scale.tick
        name = f"{view.name}: " if view.name else ""
        if found.status == "ambiguous" and found.best is not None:
            both = [length_words(each, tick) for each in (found.best.offset, found.rival)]
            return f"{name}ambiguous. The offsets {both[0]} and {both[1]} fit as well."
        if found.status == "too few":
            own, others = view.events
            return (
                f"{name}too few events, pairs or time ({own:,} left and {others:,} right events)."
            )
        if not found.segments:
            return f"{name}not found. Chance explains the highest peak."
        words = [self._line(segment) for segment in found.segments[:_MOST_WORDS]]
        if len(found.segments) > _MOST_WORDS:
            words.append(f"The output has all {len(found.segments)} segments.")
        return f"{name}found. {' '.join(words)}"

    def _line(self, segment: Segment) -> str:
        tick, drift = self.scale.tick, segment.line.drift * PARTS_PER_MILLION
        return (
            f"From {time_words(segment.start, self.scale)} to {time_words(segment.end, self.scale)} the"
            f" offset is {length_words(segment.line.offset, tick)} and grows by {drift:.3g} ppm, by"
            f" {segment.pairs:,.0f} pairs."
        )

    def _offsets(self, seen: Offsets) -> Any:
        most = self.limits.max_offset
        unit, size = suiting_unit(most, self.scale.tick)
        edges = np.linspace(-most, most, STRETCHES + 1) / size
        rows = [
            {"from": low, "to": high, "height": height}
            for low, high, height in zip(edges, edges[1:], seen.heights.tolist(), strict=False)
        ]
        marks = [
            {"at": offset / size, "height": height, "what": what,
             "words": length_words(offset, self.scale.tick)}
            for what, (offset, height) in (("best", seen.peak), ("second best", seen.second))
        ]  # fmt: skip
        height = alt.Y("height:Q", title="standard deviations above chance", axis=NUMBERS)
        bars = chart_of(rows).mark_rect(color="#888888").encode(
            x=alt.X("from:Q", title=f"offset, {unit} (right − left)",
                    scale=alt.Scale(domain=[edges[0], edges[-1]], nice=False)),
            x2="to:Q", y=height, y2=alt.datum(0),
        )  # fmt: skip
        colours = alt.Scale(domain=["best", "second best"], range=[BLUE, ORANGE])
        dots = alt.Chart(alt.InlineData(values=marks)).mark_point(filled=True, size=90, opacity=1)
        dots = dots.encode(
            x="at:Q", y="height:Q", color=alt.Color("what:N", title=None, scale=colours),
            tooltip=[alt.Tooltip("words:N", title="offset"), alt.Tooltip("height:Q", format=".1f")],
        )  # fmt: skip
        return alt.layer(bars, dots).properties(title=title_of("Peaks by offset"))

    def _residuals(self, seen: Residuals, segments: Sequence[Segment]) -> Any:
        begin, tick = segments[0].start, self.scale.tick
        wide, long = suiting_unit(segments[-1].end - begin, tick)
        unit, size = suiting_unit(float(np.abs(seen.above).max(initial=1.0)), tick)
        names = [str(k) for k in range(len(segments))]
        rows = [
            {"time": (time - begin) / long, "above": above / size, "segment": names[number]}
            for time, above, number in zip(
                seen.times.tolist(), seen.above.tolist(), seen.numbers.tolist(), strict=True
            )
        ]
        ends = [
            {"time": (time - begin) / long, "above": above / size, "segment": name}
            for name, segment in zip(names, segments, strict=True)
            for time, above in seen.ends(segment)
        ]
        colours = [COLOURS[1 + k % (len(COLOURS) - 1)] for k in range(len(names))]
        colour = alt.Color(
            "segment:N", sort=names, scale=alt.Scale(domain=names, range=colours),
            legend=alt.Legend() if len(names) > 1 else None,
        )  # fmt: skip
        x = alt.X("time:Q", title=f"left time after {time_words(begin, self.scale)}, {wide}")
        y = alt.Y("above:Q", title=f"right − left above the main line, {unit}")
        dots = chart_of(rows).mark_circle(size=14, opacity=0.6).encode(x=x, y=y, color=colour)
        lines = alt.Chart(alt.InlineData(values=ends)).mark_line(strokeWidth=2)
        lines = lines.encode(
            x="time:Q", y="above:Q", detail="segment:N", color=alt.value("#000000")
        )
        return alt.layer(dots, lines).properties(title=title_of("Residuals by time"))

    def _template(self, seen: Residuals) -> Any:
        spread = seen.spread
        unit, size = suiting_unit(float(spread.edges[-1]), self.scale.tick)
        edges = (spread.edges / size).tolist()
        rows = [
            {"from": low, "to": high, "pairs": pairs}
            for low, high, pairs in zip(edges, edges[1:], spread.pairs.tolist(), strict=False)
        ]
        bars = chart_of(rows).mark_bar(color="#bbbbbb", stroke="white", strokeWidth=0.5).encode(
            x=alt.X("from:Q", title=f"residual, {unit}",
                    scale=alt.Scale(domain=[edges[0], edges[-1]], nice=False)),
            x2="to:Q", y=alt.Y("pairs:Q", title="pairs", axis=NUMBERS), y2=alt.datum(0),
        )  # fmt: skip
        steps = [
            {"from": low / size, "to": high / size, "pairs": height}
            for low, high, height in spread.template
        ]
        template = alt.Chart(alt.InlineData(values=steps)).mark_bar(
            filled=False, stroke=BLUE, strokeWidth=2
        )
        template = template.encode(x="from:Q", x2="to:Q", y="pairs:Q", y2=alt.datum(0))
        rules = alt.Chart(
            alt.InlineData(values=[{"at": at / size} for at in (spread.low, spread.high)])
        )
        rules = rules.mark_rule(color="#555555", strokeDash=[4, 3]).encode(x="at:Q")
        return alt.layer(bars, template, rules).properties(title=title_of("Pairs by residual"))
