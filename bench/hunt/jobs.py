"""The question to a data set: the shape of the result, options, and now and then nonsense."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bench.hunt.aggregates import draw_aggregates
from bench.hunt.chance import Chance
from bench.hunt.columns import NANOSECONDS
from bench.hunt.data import DataSet
from bench.hunt.meaning import LIMIT
from bench.hunt.oracle import Oracle
from coincide import CorrelateOptions, TimingCondition, deadline, histograms, within
from coincide.engine.events.time_arguments import Histograms
from coincide.model.templates.template import GivenTemplate
from cpu_fallback.reference.aggregates import Aggregate

SHAPES = [
    *((how, emit, p) for how in ("inner", "left") for emit in ("pairs", "lists", "best")
      for p in (False, True)),
    *((how, "counts", False) for how in ("inner", "left")),
    *((how, "pairs", False) for how in ("semi", "anti")),
    *((how, "pairs", p) for how in ("right", "full") for p in (False, True)),
    *(("right", "best", p) for p in (False, True)),
    *((how, "aggregates", False) for how in ("inner", "left", "right")),
]  # fmt: skip
"""Every (how, emit, probability) that has a meaning."""

UNITS = {nanoseconds: unit for unit, nanoseconds in NANOSECONDS.items()}


@dataclass(frozen=True)
class Job:
    """One join of a data set."""

    how: str
    emit: str
    probability: bool
    options: dict[str, Any] = field(
        default_factory=dict
    )  # for `CorrelateOptions`; lengths in ticks
    text: bool = False  # whether durations are given as text with a unit
    # Whether the column ``extra`` is asked for, left and right.
    has_extra: tuple[bool, bool] = (False, False)
    nonsense: str | None = None  # a name of `NONSENSE`
    aggregates: dict[str, Aggregate] = field(default_factory=dict)
    has_weights: bool = False  # whether each match counts by its probability
    has_previous: bool = False  # whether the last right event before the window counts
    is_swapped: bool = False  # whether the sides have changed places, and delta still has its sign

    @property
    def longest(self) -> tuple[int | None, int | None]:
        """Declared longest lengths, ticks."""
        return self.options.get("left_longest"), self.options.get("right_longest")

    @property
    def is_of_right(self) -> bool:
        """Whether a row belongs to a right event, and tells of its left matches."""
        return self.how == "right" and self.emit in ("best", "aggregates")

    @property
    def per_event(self) -> bool:
        """Whether only left events come out."""
        return self.how in ("semi", "anti")


def draw_job(
    chance: Chance, data: DataSet, oracle: Oracle, ways_options: Callable[[Chance], dict[str, Any]]
) -> Job:
    """A job that has a meaning, or one of `NONSENSE`; the oracle is without declared lengths."""
    how, emit, probability = chance.choice(SHAPES)
    options: dict[str, Any] = {
        "threads": chance.choice((1, 1, 2)), **_lengths(chance, oracle), **ways_options(chance),
    }  # fmt: skip
    if chance.happens(30):
        options["classes"] = chance.choice((1, 1, 2, 3, 16))
    if chance.happens(30):
        options["batch_pairs"] = chance.choice((1, 2, 7, 50))
    if chance.happens(80 if oracle.is_invalid else 20) or _shorter(oracle, options):
        options["invalid"] = "raise" if chance.happens(15) else "drop"
    nonsense = None
    if chance.happens(3):
        nonsense = chance.choice([name for name, (able, _, _) in NONSENSE.items() if able(data)])
    extra = data.extra is not None and chance.happens(80)
    is_aggregated = emit == "aggregates"
    has_weights = is_aggregated and data.confidence < 1 and chance.happens(30)
    may_have_previous = is_aggregated and how != "right" and not data.has_histograms
    has_previous = may_have_previous and not has_weights and nonsense is None and chance.happens(60)
    return Job(
        how, emit, probability, options,
        text=data.tick is not None and chance.happens(30),
        has_extra=(extra, extra and chance.happens(70)),
        nonsense=nonsense,
        aggregates=draw_aggregates(chance, data, has_weights) if is_aggregated else {},
        has_weights=has_weights,
        has_previous=has_previous,
    )  # fmt: skip


def _lengths(chance: Chance, oracle: Oracle) -> dict[str, int]:
    """Declared longest lengths: as they are, longer, and rarely too short."""
    found = {}
    percent = chance.choice((0, 0, 20, 60, 100))
    names = ("left_longest", "right_longest")
    for name, actual, side in zip(names, longest(oracle), oracle.data.sides, strict=True):
        if side.templates is not None:
            continue  # as long as their templates
        if chance.happens(percent):
            length = chance.choice((actual, actual, actual + 1, actual * 3, actual, actual // 2))
            found[name] = min(length, LIMIT - 1)
    return found


def longest(oracle: Oracle) -> tuple[int, int]:
    """The longest timestamp of each side, ticks."""
    left, right = (
        max((event.high - event.low for event in side.events), default=0) for side in oracle.sides
    )
    return left, right


def _shorter(oracle: Oracle, options: dict[str, Any]) -> bool:
    names = ("left_longest", "right_longest")
    return any(
        options.get(name, actual) < actual
        for name, actual in zip(names, longest(oracle), strict=True)
    )


def arguments(data: DataSet, job: Job) -> tuple[TimingCondition, dict[str, Any]]:
    """The condition and the keyword arguments of `correlate` and its like."""
    unit = None if data.tick is None else UNITS[data.tick]
    is_text = job.text or data.needs_units

    def duration(ticks: int) -> int | str:
        return f"{ticks}{unit}" if is_text else ticks

    options = {
        name: duration(value) if name.endswith("_longest") else value
        for name, value in job.options.items()
    }
    given: dict[str, Any] = {
        "left_time": _timestamps(data, 0, duration),
        "right_time": _timestamps(data, 1, duration),
        "by": list(data.names.keys),
        "left_columns": ["id", *["extra"] * job.has_extra[0]],
        "right_columns": ["id", *["extra"] * job.has_extra[1]],
        "how": job.how,
        "emit": job.emit,
        "probability": job.probability,
        "options": {"unit": data.unit, **options},
    }
    if job.aggregates:
        given["aggregates"] = job.aggregates
    if job.has_weights:
        given["weights"] = "probability"
    if job.has_previous:
        given["including"] = "previous"
    condition: dict[str, Any] = {
        "predicate": within(duration(data.lo), duration(data.hi)),
        "confidence": data.confidence,
    }
    if job.nonsense is not None:
        NONSENSE[job.nonsense][2](given, condition)
    given["options"] = CorrelateOptions(**given["options"])
    return TimingCondition(**condition), given


def _timestamps(
    data: DataSet, side: int, duration: Callable[[int], int | str]
) -> tuple[str, ...] | Histograms:
    """The columns of the times of a side, or what says that they are histograms."""
    templates, names = data.sides[side].templates, data.time_names(side)
    if templates is None:
        return names
    given = {
        name: GivenTemplate(tuple(map(duration, edges)), masses, templates.delays)
        for name, edges, masses in templates.given
    }
    return histograms(names[0], template=data.names.template, templates=given)


_Change = Callable[[dict[str, Any], dict[str, Any]], object]


def _set(**changes: Any) -> _Change:
    return lambda given, condition: given.update(changes)


def _option(**changes: Any) -> _Change:
    return lambda given, condition: given["options"].update(changes)


def _always(data: DataSet) -> bool:
    return True


def _has_histograms(data: DataSet) -> bool:
    return data.sides[0].templates is not None


def _is_bare(data: DataSet) -> bool:
    return data.tick is None


def _has_floats(data: DataSet) -> bool:
    return "float" in data.families


def _is_stamped(data: DataSet) -> bool:
    return any(family.startswith("timestamp") for family in data.families)


NONSENSE: dict[str, tuple[Callable[[DataSet], bool], str, _Change]] = {
    "no such key": (_always, "SchemaError", _set(by=["nothing"])),
    "a key of no name": (_always, "SchemaError ConditionError", _set(by=[""])),
    "no such column": (_always, "SchemaError", _set(left_columns=["id", "nothing"])),
    "no such time": (_always, "SchemaError", _set(right_time=("nothing", "id"))),
    "how": (_always, "ConditionError", _set(how="outer")),
    "emit": (_always, "ConditionError", _set(emit="all")),
    "probability of a number": (
        _always, "ConditionError", _set(how="inner", emit="counts", probability=True),
    ),
    "lists of nothing": (_always, "ConditionError", _set(how="anti", emit="lists")),
    "a negative length": (_always, "ConditionError", _option(left_longest=-1)),
    "a length of histograms": (_has_histograms, "ConditionError", _option(left_longest=5)),
    "an unknown unit": (_always, "ConditionError", _option(unit="fortnight")),
    "an open window": (
        _always, "ConditionError", lambda given, condition: condition.update(predicate=deadline(5)),
    ),
    "a window the wrong way round": (
        _always, "ConditionError",
        lambda given, condition: condition.update(predicate=within(1, 0)),
    ),
    "confidence of nothing": (
        _always, "ConditionError", lambda given, condition: condition.update(confidence=0.0),
    ),
    "no unit for text": (
        _is_bare, "ConditionError",
        lambda given, condition: condition.update(predicate=within("0ms", "1ms")),
    ),
    "no unit for floats": (_has_floats, "SchemaError", _option(unit=None)),
    "a unit of timestamps": (_is_stamped, "ConditionError", _option(unit="ms")),
}  # fmt: skip
"""What makes no sense: whether it can be asked of a data set, the errors that are due, the change."""
