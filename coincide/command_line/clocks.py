"""`coincide clocks`: how far clocks are off, from the events of two inputs, in this process."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from coincide.command_line.event_inputs import prepared, read_tables
from coincide.command_line.flags import typed
from coincide.command_line.options import CLOCKS
from coincide.command_line.outputs import check_page
from coincide.command_line.progress import Progress
from coincide.command_line.requests import EventRequest, InProcess, checked
from coincide.command_line.summary import Counted, plain_counts
from coincide.engine.clocks.arguments import ClockArguments
from coincide.engine.clocks.tables import ClockAnswers, ClockPlan, errors_of_tables
from coincide.engine.events.ticks import length_words, number_words
from coincide.engine.files.source import Source
from coincide.engine.join.pair_arguments import PairArguments
from coincide.engine.join.text_options import duration, keys, names, options_of
from coincide.engine.reports.join_report import JoinSummary, side_words
from coincide.model.clocks.errors import PARTS_PER_MILLION, ClockEstimate, Segment
from coincide.model.errors import ConditionError, argument, several
from coincide.model.sides import SIDES
from coincide.model.units import Tick

_MOST_CLOCKS = 8
"""On a page, and in the summary."""
_DIGITS = 15
_OF_SPARK: dict[str, Any] = {"engine": "local", "master": None, "conf": None}


@dataclass(frozen=True, kw_only=True)
class ClockRequest(EventRequest):
    """One `coincide clocks`."""

    doing: ClassVar[str] = "comparing clocks"
    left: str
    right: str
    arguments: ClockArguments
    page: str | None
    command: str

    @property
    def inputs(self) -> dict[str, str]:  # noqa: D102
        return dict(zip(SIDES, (self.left, self.right), strict=True))

    def job(self, arguments: PairArguments, tables: list[pa.Table]) -> ClockPlan:  # noqa: D102
        assert isinstance(arguments, ClockArguments)
        return ClockPlan.of(tables, arguments)

    def in_process(self, sources: list[Source], progress: Progress) -> InProcess:  # noqa: D102
        asked = prepared(self, sources)
        inputs = tuple(source.found for source in sources)
        if self.page is not None:
            check_page(self.page, self.output, self.overwrite, inputs)
        tables = read_tables(asked, progress.show)
        progress.show(self.doing)
        answers, summary = errors_of_tables(tables, asked.request.arguments)
        counted = _counted(answers, summary)
        if self.page is not None:
            from coincide.engine.clocks.drawing import ClockPage
            from coincide.engine.exploration.pages import write_file

            progress.show("drawing")
            plan, command = answers.plan, self.hide(self.command)
            page = ClockPage(plan.times[0].scales[0], plan.spec.limits)
            text = page.text(
                answers.views(_MOST_CLOCKS), len(answers.found), counted.lines, command
            )
            write_file(self.page, text.encode(), self.overwrite, inputs)
        found = answers.table
        if self.output_format == "csv":
            found = with_units(found)
        return InProcess(found.to_batches(), found.schema, lambda: counted)


def request(**words: Any) -> ClockRequest:
    """Check what was typed and make a request of it. Keywords are the options of `coincide clocks`."""
    arguments = ClockArguments(
        max_offset=duration("max_offset", words["max_offset"]),
        left_time=_column("left_time", words["left_time"]),
        right_time=_column("right_time", words["right_time"]),
        by=keys(words["by"]),
        match=keys(words["match"], "match"),
        jumps=not words["no_jumps"],
        options=options_of(words),
        max_drift=_drift(words["max_drift"]),
        chance=words["chance"],
    )
    return ClockRequest(
        left=words["left"],
        right=words["right"],
        arguments=arguments,
        page=words["page"],
        command=typed("clocks", CLOCKS, words),
        **checked({**words, **_OF_SPARK}, {}),
    )


def _drift(word: str) -> float:
    """A fraction, or parts per million."""
    number = word.strip().removesuffix("ppm")
    try:
        return float(number) / (PARTS_PER_MILLION if word.strip() != number else 1)
    except ValueError:
        raise ConditionError(
            f"{argument('max_drift')} takes parts per million, such as 50ppm, or a fraction, such as"
            f" 0.00005 (found {word!r})."
        ) from None


def _column(option: str, word: str) -> str:
    found = names(option, [word])
    if len(found) != 1:
        raise ConditionError(
            f"{argument(option)} takes one column of exact times (found {word!r})."
        )
    return found[0]


def _counted(answers: ClockAnswers, summary: JoinSummary) -> Counted:
    """How many answers of each status there are, the first ones, and what the rows were."""
    statuses = Counter(each.status for each in answers.found)
    sides = dict(zip(SIDES, (summary.left, summary.right), strict=True))
    lines = []
    for side, counts in sides.items():
        assert counts is not None
        lines.append(
            (side, "; ".join([f"{counts.rows:,} rows", *side_words(counts, summary.tick)]))
        )
    words = ", ".join(f"{count:,} {status}" for status, count in sorted(statuses.items()))
    shown = list(enumerate(answers.found[:_MOST_CLOCKS]))
    values: dict[str, object] = {
        **{side: plain_counts(counts) for side, counts in sides.items() if counts is not None},
        "clocks": dict(statuses),
        "segments": sum(len(each.segments) for each in answers.found),
        "errors": [
            {"clock": answers.name(k), "status": one.status, "segments": _lines(one, summary.tick)}
            for k, one in shown
        ],
        "tick": summary.tick.unit,
    }
    first = [(answers.name(k) or "error", _words(one, summary.tick)) for k, one in shown]
    return Counted(values, [*lines, ("clocks", words or "none"), *first])


def _lines(found: ClockEstimate, tick: Tick) -> list[dict[str, object]]:
    """The errors of one clock as plain values: lengths as texts, drifts in ppm."""
    return [
        {
            **{name: length_words(length, tick, _DIGITS) for name, length in _lengths(segment)},
            "drift": segment.line.drift * PARTS_PER_MILLION,
            "drift_error": segment.drift_error * PARTS_PER_MILLION,
            "pairs": round(segment.pairs),
        }
        for segment in found.segments
    ]


def _lengths(segment: Segment) -> list[tuple[str, float]]:
    own = segment.line.offset, segment.offset_error, segment.spread
    return list(zip(("offset", "offset_error", "spread"), own, strict=True))


def _words(found: ClockEstimate, tick: Tick) -> str:
    """The errors of one clock in a line: those of its first segment."""
    if not found.segments:
        return found.status
    first, *more = found.segments
    offset = length_words(first.line.offset, tick, 8)
    error, spread = (length_words(each, tick, 2) for each in (first.offset_error, first.spread))
    drift, its_error = (PARTS_PER_MILLION * each for each in (first.line.drift, first.drift_error))
    and_more = f"; the output has {several(len(more), 'more segment')}" if more else ""
    return (
        f"offset {offset} (± {error}), drift {number_words(drift, 4)} ppm (±"
        f" {number_words(its_error, 2)}), spread {spread},"
        f" {first.pairs:,.0f} pairs{and_more}"
    )


def with_units(found: pa.Table) -> pa.Table:
    """Durations as texts, such as ``15us``: CSV has no type that says their unit."""
    for i, field in enumerate(found.schema):
        if pa.types.is_duration(field.type):
            numbers = found.column(i).cast(pa.int64()).cast(pa.string())
            texts = pc.binary_join_element_wise(numbers, field.type.unit, "")
            found = found.set_column(i, field.name, texts)
    return found
