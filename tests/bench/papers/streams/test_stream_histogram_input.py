"""Bad input to correlators of histogram streams: clear errors, and nothing taken in; late events."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import coincide
from bench.papers.streams import stream_correlator
from bench.papers.streams.correlator import StreamCorrelator
from bench.papers.streams.results import LateEvents, LateHistogramEvents
from coincide import Window
from coincide.engine.events.template_frames import templates_of
from coincide.model.errors import ConditionError, DataError, MemoryBudgetError, SchemaError
from coincide.model.templates.template import Template, template_table
from coincide.model.timestamps.histograms import HistogramEvents
from tests.helpers.stream_cases import sorted_pairs

TABLE = template_table({"a": Template([-4, 0], [1.0]), "b": Template([-9, -3, 0], [0.2, 0.8])})
ANOTHER = template_table({"a": Template([-4, 0], [1.0]), "b": Template([-9, -3, 0], [0.3, 0.7])})
WINDOW = Window(-20, 20, 0.5)
DELAYS = {"left_delay": 5, "right_delay": 5}


def of_table(table: Any, group: np.ndarray | None = None) -> HistogramEvents:
    return HistogramEvents(np.array([3]), np.array([0]), table, group)


def templates(**options: Any) -> StreamCorrelator:
    given = DELAYS | {"left_templates": TABLE, "right_templates": TABLE} | options
    return stream_correlator("eager", WINDOW, **given)


def beside(interval_side: str, **options: Any) -> StreamCorrelator:
    other = {"left": "right", "right": "left"}[interval_side]
    given = {f"{interval_side}_longest": 10, f"{other}_templates": TABLE}
    return stream_correlator("eager", WINDOW, **(DELAYS | given | options))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"left_longest": 9},
            ConditionError,
            "left_longest and left_shortest apply to intervals, but",
        ),
        (
            {"right_shortest": 1},
            ConditionError,
            "right_longest and right_shortest apply to intervals, but",
        ),
        ({"left_templates": None}, ConditionError, "Give left_longest, .*give left_templates"),
        (
            {"left_templates": {}},
            ConditionError,
            "left_templates must be Templates or .* .found dict",
        ),
        ({"most_lengths": 0}, ConditionError, "most_lengths must be at least 1 .found 0"),
        ({"left_delay": -1}, ConditionError, "left_delay must be 0 or more"),
    ],
)
def test_bad_declarations(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        templates(**options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"left_templates": None, "left_longest": 3},
        {"right_templates": None, "right_longest": 3},
    ],
)
def test_the_look_up_table_is_for_intervals(options: dict[str, Any]) -> None:
    given = DELAYS | {"left_templates": TABLE, "right_templates": TABLE} | options
    with pytest.raises(
        ConditionError, match=r"for intervals on both sides.* Use 'lazy' or 'classes'"
    ):
        stream_correlator("lookup", WINDOW, **given)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (([3, 4], [0, 2]), DataError, "left: event 1 of this push, of template 2 at 4, has a template"),
        (([3], [-1]), DataError, "numbered gives -1 for an unknown id"),
        (([2**61], [1]), DataError, r"reaches 2\^61 ticks"),
        (([3, 4], [0, None]), DataError, "template must hold no nulls, masked .* at position 1"),
        (([3, 4], ["a", "c"]), DataError, "left: event 1 .* not among .*found 'c'"),
        (([3, 4], ["a", None]), DataError, "left: event 1 of this push has a template that is not"),
        (([3], [1.5]), SchemaError, r"template must be .* \(their ids\) .found float64 .*numbered"),
        (([3, 4], [0]), SchemaError, "template has 1 entries, but max_time has 2"),
        (([3.5], [0]), SchemaError, "max_time must be .*ticks.* .found float64"),
        ([[3], [0]], SchemaError, r"HistogramEvents or a pair .*\(max_time, template\) .found list"),
        (of_table(ANOTHER), SchemaError, "another TemplateTable than left"),
        (of_table(TABLE, np.array([0])), DataError, "a stream correlator has no groups"),
    ],
)  # fmt: skip
def test_bad_events(given: Any, error: type[Exception], message: str) -> None:
    # A template, and an interval of length 2.
    for made, kind in ((templates(), 1), (beside("right"), 5)):
        made.push("right", ([3], [kind]))
        with pytest.raises(error, match=message):
            made.push("left", given)
        assert made.stats.arrived == (0, 1)
        assert made.push("left", of_table(TABLE)).count == 1


def test_arrivals_that_go_back() -> None:
    made = templates()
    made.push("left", ([3], [0]), arrival=[8])
    with pytest.raises(
        DataError, match=r"of template 1 at 4, arrives at 7, before an earlier .* at 8"
    ):
        made.push("left", ([4], [1]), arrival=[7])
    # The first of two things that are wrong is reported.
    with pytest.raises(DataError, match=r"event 0 .* arrives at 7"):
        made.push("left", ([4, 5], [1, 9]), arrival=[7, 9])
    with pytest.raises(DataError, match=r"event 0 .* not in left_templates"):
        made.push("left", ([4, 5], [9, 1]), arrival=[9, 7])


def test_bad_mixed_pushes() -> None:
    made = beside("left")
    intervals, of_templates = ([1, 2], [3, 4]), ([5], [1])
    for sides, events, error, message in (
        ([0, 1, 0], ([1, 2, 3], [3, 4, 5]), SchemaError, "IntervalEvents or a pair"),
        ([0, 1, 0], [intervals, of_templates], SchemaError, r"takes a pair\s+\(left events, right"),
        ([0, 1, 1], (intervals, of_templates), SchemaError, r"1 entries for side 0 \(left\), but"),
        ([0, 1, 0], (intervals, ([5], [2])), DataError, "right: event 0 .* not in right_templates"),
        ([0, 1, 0], (([1, 9], [3, 4]), of_templates), DataError, "left: event 1 .* min_time above"),
        ([0, 1, 0], (([1, 2], [3, 40]), of_templates), DataError, "38 ticks long, but left_longest is 10"),
    ):  # fmt: skip
        with pytest.raises(error, match=message):
            made.push_mixed(sides, events)
    with pytest.raises(SchemaError, match="arrival has 1 entries, but sides has 3"):
        made.push_mixed([0, 1, 0], (intervals, of_templates), arrival=[7])
    assert made.stats.arrived == (0, 0)
    assert made._intake._numbers.lengths.size == 0
    assert made.push_mixed([0, 1, 0], (intervals, of_templates), arrival=[7, 7, 8]).count == 2


@pytest.mark.parametrize("side", ["left", "right"])
def test_too_many_lengths(side: str) -> None:
    made = beside(side, most_lengths=3)
    made.push(side, ([0, 0], [1, 2]))
    message = (
        f"{side}: the intervals have 4 different lengths.* 3 are allowed.* larger most_lengths"
    )
    with pytest.raises(MemoryBudgetError, match=message):
        made.push(side, ([0, 0], [3, 4]))
    assert sum(made.stats.arrived) == 2
    # Nothing was taken: there is room for one more length still, and then for those that are known.
    made.push(side, ([0, 1, 2], [3, 4, 4]))
    with pytest.raises(MemoryBudgetError):
        made.push(side, ([0], [0]))


def test_late_events_are_as_they_were_pushed() -> None:
    made = beside("right")
    made.push("left", ([100, 94, 95, 2], [1, 1, 0, 0]))
    made.push("right", ([95, 90, 95, 1], [100, 94, 95, 2]))
    late = made.take_late("left"), made.take_late("right")
    assert isinstance(late[0], LateHistogramEvents)
    assert isinstance(late[1], LateEvents)
    assert [each.numbers.tolist() for each in late] == [[1, 3], [1, 3]]
    assert (late[0].max_time.tolist(), late[0].template.tolist()) == ([94, 2], [1, 0])
    assert (late[1].min_time.tolist(), late[1].max_time.tolist()) == ([90, 1], [94, 2])
    assert [len(made.take_late(side)) for side in ("left", "right")] == [0, 0]
    assert made.stats.late == (2, 2)


def test_two_tables_in_one_mixed_push() -> None:
    made = templates(right_templates=ANOTHER)
    with pytest.raises(SchemaError, match="another TemplateTable than right_templates"):
        made.push_mixed([0], of_table(TABLE))
    with pytest.raises(SchemaError, match="template: in a mixed push an id does not name its side"):
        made.push_mixed([0, 1], ([3, 4], ["a", "b"]))
    assert made.push_mixed([0, 1], ([3, 4], [0, 1])).count == 1


def test_templates_as_they_are_given_and_ids() -> None:
    given = {"b": ([-9, -3, 0], [0.2, 0.8]), "a": ([0, 4], [1.0])}
    limits = {**DELAYS, "right_templates": templates_of(given), "left_templates": TABLE}
    pairs = []
    for right in (
        ["b", "a"],
        pa.array(["b", "a"]),
        np.array(["b", "a"]),
        TABLE.numbered(["b", "a"]),
    ):
        made = stream_correlator("lazy", WINDOW, **limits, block=1)
        made.push("left", ([3, 20], ["a", "b"]))
        pairs.append(sorted_pairs([made.push("right", ([-12, 40], right))]).tolist())
        assert made.flush().count == 0
    assert pairs == [[[0, 0], [1, 1]]] * 4
    seconds = coincide.Templates({"a": coincide.GivenTemplate((0, 4), (1.0,))}, "s")
    with pytest.raises(ConditionError, match=r"templates=templates.table\(Tick"):
        stream_correlator("lazy", WINDOW, **(limits | {"left_templates": seconds}))
