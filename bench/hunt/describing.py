"""A case in full, for a person who looks for the fault."""

from __future__ import annotations

from collections.abc import Iterator

from bench.hunt.cases import CASES_PER_DATA_SET, Case, Verdict
from bench.hunt.data import DataSet, Side
from bench.hunt.meaning import meaning_of

_SHOWN = 40


def headline(case: Case, verdict: Verdict) -> str:
    """One line."""
    return (
        f"case {case.number} of seed {case.seed}, {case.way.name}: {verdict.kind}: {verdict.text}"
    )


def description(experiment: str, case: Case, verdict: Verdict) -> str:
    """Everything of a case, rows as their columns hold them."""
    return "\n".join(_lines(experiment, case, verdict)) + "\n"


def _lines(experiment: str, case: Case, verdict: Verdict) -> Iterator[str]:
    data, job = case.data, case.job
    yield headline(case, verdict)
    yield f"again: python -m bench run {experiment} --seed {case.seed} --case {case.number}"
    yield f"data set {case.number // CASES_PER_DATA_SET} of its seed"
    yield f"within [{data.lo}, {data.hi}] ticks, confidence {data.confidence!r}, unit {data.unit}"
    yield f"how {job.how}, emit {job.emit}, probability {job.probability}, options {job.options}"
    if job.aggregates:
        yield f"aggregates {job.aggregates}{' by probability' * job.has_weights}"
    if job.has_previous:
        yield "with the event before the window"
    if job.text:
        yield "durations as text"
    if job.nonsense is not None:
        yield f"nonsense: {job.nonsense}"
    keys = zip(data.names.keys, data.key_types, strict=True)
    yield f"keys { ({name: kind.name for name, kind in keys}) }"
    if data.extra is not None:
        yield f"extra {data.extra.name}, in the output {job.has_extra}"
    for i, name in enumerate(("left", "right")):
        yield from _side(name, data.sides[i], data, i)


def _side(name: str, side: Side, data: DataSet, number: int) -> Iterator[str]:
    kinds = [kind.name for kind in side.types]
    meaning = meaning_of(data, number)
    yield (
        f"{name}: {data.time_names(number)} of {kinds}, {meaning.rows} rows, {meaning.unmatchable}"
        f" match nothing, invalid {dict(meaning.invalid)}"
    )
    if side.templates is not None:
        yield f"  templates {side.templates}"
    for row in side.rows[:_SHOWN]:
        shape = "" if side.templates is None else f" template {row.template!r}"
        ends = f"{row.low!r} .. {row.high!r}{shape}"
        yield f"  {ends} id {row.number} keys {row.keys} {row.extra!r}"
    if len(side.rows) > _SHOWN:
        yield f"  and {len(side.rows) - _SHOWN} more"
