"""Whatever argument is wrong: tables, DataFrames and the command line each name it in their words."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer

import coincide as c
from coincide.command_line import run
from coincide.command_line.app import program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS = pa.table({
    "id": [1, 2], "time": [0, 10], "min_time": [0, 10], "max_time": [4, 14], "x": [0.0, 1.0],
    "y": [0.0, 1.0], "key": ["a", "b"], "query_id": [1, 1], "stream_id": [1, 1],
    "event": ["I", "O"], "value": [1.0, 2.0],
})  # fmt: skip
QUERIES = pa.table({"query_id": [1], "lower": [0], "upper": [5]})
SPANS = c.spans("min_time", "max_time")
PLACED = c.CausalityCondition([c.Temporal(0, 5), c.Spatial(5)])

_OF_PAIRS: dict[str, Any] = {
    "by": 3, "how": "outer", "emit": "all",
    "probability": {"probability": True, "emit": "counts"}, "backend": "cuda", "options": 3,
    "report": 3, "where": 3, "prefer": 3, "k": 0, "matching": "any",
    "largest_group": 1, "aggregates": {"emit": "aggregates", "aggregates": {"n": "many"}},
    "weights": {"emit": "aggregates", "aggregates": {"n": "count"}, "weights": "delta"},
}  # fmt: skip
_OF_SPANS: dict[str, Any] = {"events": 3, "time": 3, "by": 3, "options": 3}
_OF_STREAMS: dict[str, Any] = {
    "tables": 3, "confidence": 2, "names": 3, "time": 3, "by": 3, "columns": 3,
    "probability": 3, "backend": "cuda", "options": 3, "report": 3, "where": 3,
}  # fmt: skip
_OF_TWO: dict[str, Any] = {
    "left": 3, "right": 3, "left_time": 3, "right_time": 3, "by": 3, "options": 3,
}  # fmt: skip
WRONG: dict[str, dict[str, Any]] = {
    "correlate": {
        "left": 3, "right": 3, "condition": {"condition": 3, "within": None, "confidence": None},
        "within": "5 steps", "confidence": 2, "left_time": 3, "right_time": 3, "left_columns": 3,
        "right_columns": 3, "pair_columns": "speed", "ties": "some",
        "including": {"emit": "aggregates", "aggregates": {"n": "count"}, "including": "next"}, **_OF_PAIRS,
    },
    "causality": {
        "causes": 3, "effects": 3, "condition": 3, "cause_time": 3, "effect_time": 3,
        "cause_place": {"cause_place": ("x",), "effect_place": ("x", "y")}, "effect_place": ("x",),
        "cause_columns": 3, "effect_columns": 3, **_OF_PAIRS,
    },
    "border_crossings": {
        "readings": 3, "queries": 3, "stream": 3, "time": 3, "values": 3, "query": 3,
        "closed_column": 3, "options": 3, "report": 3, "first": "none", "pass_through": 3,
        "interpolate": 3, "closed": "open", "hysteresis": "much", "processing": "fast",
        "invalid": "keep", "unit": "steps", "tick": "steps", "backend": "cuda", "batch_events": 0,
        "threads": 0,
    },
    "transitions": {
        "events": 3, "within": "5 steps", "confidence": 2, "until": "never", "query": 3, "stream": 3,
        "event": 3, "time": 3, "repeated": "twice", "options": 3, "report": 3,
    },
    "windowed_causality": {
        "events": 3, "condition": 3, "by": 3, "arrival": 3, "time": 3, "place": tuple("abcd"), "role": 3,
        "home": "here", "columns": 3, "options": 3, "report": 3,
    },
    "clock_errors": {
        "left": 3, "right": 3, "max_offset": 0, "max_drift": 200, "by": 3, "match": 3, "left_time": 3,
        "right_time": 3, "chance": 2, "jumps": 3, "options": 3, "report": 3,
    },
    "delay_histogram": {
        **_OF_TWO, "edges": {"edges": 3, "within": None}, "within": "5 steps", "bins": 0, "chance": 3,
        "report": 3,
    },
    "clusters": {
        "events": 3, "condition": 3, "time": 3, "place": tuple("abcd"), "by": 3,
        "columns": 3, "options": 3, "report": 3, "where": 3,
    },
    "sequences": {
        **_OF_STREAMS, "windows": [5, 5], "total": ("0s", "5 steps"), "how": "outer", "emit": "all",
        "prefer": "last", "link_probability": {"link_probability": True, "how": "anti"},
    },
    "coincidences": {**_OF_STREAMS, "within": "5 steps", "at_least": 1},
    "coverage": {**_OF_SPANS, "bounds": 3, "zeros": 3},
    "covered": _OF_TWO,
    "difference": _OF_TWO,
    "gaps": {**_OF_SPANS, "bounds": (9, 3)},
    "labelled": {**_OF_SPANS, "gap": -1},
    "merged": {**_OF_SPANS, "gap": -1},
}  # fmt: skip
"""A wrong value of each argument, or what has to be given so that it is wrong."""

Given = dict[str, Any]
_PLACES: Given = {"condition": PLACED, "cause_place": ("x", "y"), "cause_time": "time"}
RIGHT: dict[str, Callable[[Any, Any], Given]] = {
    "correlate": lambda events, _: {"left": events, "right": events, "within": 5, "confidence": 0.5},
    "causality": lambda events, _: {"causes": events, "effects": events, **_PLACES},
    "border_crossings": lambda events, queries: {"readings": events, "queries": queries},
    "transitions": lambda events, _: {"events": events, "within": 5, "confidence": 0.5},
    "windowed_causality": lambda events, _: {
        "events": events, "condition": PLACED, "place": ("x", "y"), "by": "key", "arrival": "time",
    },
    "clock_errors": lambda events, _: {"left": events, "right": events, "max_offset": 1},
    "delay_histogram": lambda events, _: {"left": events, "right": events, "within": 50},
    "clusters": lambda events, _: {"events": events, "condition": PLACED, "place": ("x", "y")},
    "sequences": lambda events, _: {"tables": [events, events], "windows": [5], "confidence": 0.5},
    "coincidences": lambda events, _: {
        "tables": [events, events.slice(0)], "within": 5, "confidence": 0.5,
    },
    **dict.fromkeys(
        ("coverage", "gaps", "labelled", "merged"), lambda events, _: {"events": events, "time": SPANS}
    ),
    **dict.fromkeys(
        ("covered", "difference"),
        lambda events, _: {
            "left": events, "right": events, "left_time": SPANS, "right_time": SPANS,
        },
    ),
}  # fmt: skip
"""Arguments of each operator that are right, but for options."""

OF_TABLES: dict[str, Callable[..., Any]] = {
    "correlate": c.correlate_tables, "causality": c.causality_tables,
    "border_crossings": c.border_crossing_tables, "transitions": c.transition_tables,
    "clock_errors": c.clock_error_tables, "clusters": c.clusters,
    "delay_histogram": c.delay_histogram,
    "sequences": c.sequence_tables, "coincidences": c.coincidence_tables,
    "coverage": c.coverage, "merged": c.merged, "labelled": c.labelled, "gaps": c.gaps,
    "covered": c.covered, "difference": c.difference,
}  # fmt: skip
OF_FRAMES: dict[str, Callable[..., Any]] = {
    "correlate": c.correlate, "causality": c.causality, "border_crossings": c.border_crossings,
    "clock_errors": c.clock_errors, "transitions": c.transitions,
    "windowed_causality": c.windowed_causality,
}  # fmt: skip


def arguments_of(function: Callable[..., Any]) -> set[str]:
    """Names of the arguments, those of words among them."""
    found = set(inspect.signature(function).parameters)
    if "words" not in found:
        return found
    from coincide.model.borders.options import BorderWords

    return found - {"words"} | set(BorderWords.__annotations__)


def each(functions: dict[str, Callable[..., Any]]) -> Iterator[Any]:
    for operator, function in functions.items():
        for name in sorted(arguments_of(function)):
            yield pytest.param(function, operator, name, id=f"{operator}-{name}")


@pytest.mark.parametrize("functions", [OF_TABLES, OF_FRAMES], ids=["tables", "frames"])
def test_there_is_a_wrong_value_of_each_argument(functions: dict[str, Callable[..., Any]]) -> None:
    for operator, function in functions.items():
        assert arguments_of(function) == WRONG[operator].keys()


def check_named(function: Callable[..., Any], given: Given, operator: str, name: str) -> None:
    wrong = WRONG[operator][name]
    with pytest.raises(c.CoincideError) as raised:
        function(**given | (wrong if isinstance(wrong, dict) else {name: wrong}))
    assert re.search(rf"\b{name}\b", str(raised.value))
    assert "--" not in str(raised.value)


@pytest.mark.parametrize(("function", "operator", "name"), list(each(OF_TABLES)))
def test_of_tables(function: Callable[..., Any], operator: str, name: str) -> None:
    check_named(function, RIGHT[operator](EVENTS, QUERIES), operator, name)


@pytest.mark.parametrize(("function", "operator", "name"), list(each(OF_FRAMES)))
def test_of_frames(
    spark: SparkSession, function: Callable[..., Any], operator: str, name: str
) -> None:
    given = RIGHT[operator](spark.createDataFrame(EVENTS), QUERIES)
    check_named(function, given, operator, name)


COMMANDS = {
    "join": "a.parquet a.parquet -o o.parquet --within -5 5 --confidence 0.5",
    "causality": "a.parquet a.parquet -o o.parquet --delta -5 5 --cause-place x,y --radius 5",
    "borders": "a.parquet q.parquet -o o.parquet",
    "transitions": "a.parquet -o o.parquet --within 5 --confidence 0.5",
    "clocks": "a.parquet a.parquet -o o.parquet --max-offset 1",
    "clusters": "a.parquet -o o.parquet --delta 0 5 --place x,y --radius 5",
    "explore": "a.parquet a.parquet -o o.html --within -5 5",
    "histogram": "a.parquet a.parquet -o o.parquet --within -5 5 --bins 2",
    "sequence": "a.parquet b.parquet a.parquet -o o.parquet --time time --confidence 0.5"
    " --within -5 5 --within 0 5",
    "coincidence": "a.parquet b.parquet -o o.parquet --time time --confidence 0.5 --within 5",
    "stream": ". . -o o --checkpoint kept --within -5ms 5ms --unit ms --confidence 0.5 --left-delay 5ms",
}
WORDS = {
    "--output": "", "--checkpoint": "", "--key": "", "--master": "", "--by": "", "--match": "",
    "--names": "",
    "--left-columns": "", "--right-columns": "",
    "--cause-columns": "", "--effect-columns": "", "--columns": "", "--values": "",
    "--left-time": "a,b,c", "--right-time": "a,b,c", "--cause-time": "a,b,c",
    "--effect-time": "a,b,c", "--cause-place": "x", "--effect-place": "x",
}  # fmt: skip
"""What is wrong of an option, where any text can be right."""
BESIDE = {
    "--per": "--speed 1 5", "--propagation-time": "--tolerance 5",
    "--cause-place": "--effect-place x,y", "--left-clock": "--left-time time",
    "--right-clock": "--right-time time",
}  # fmt: skip
"""What an option needs."""
COLUMNS = {
    "--stream", "--query", "--event", "--closed-column", "--time", "--place", "--around-column",
    "--cause-around-column", "--effect-around-column",
}  # fmt: skip
"""Options whose value is the name of a column, which a message repeats."""


def options() -> Iterator[Any]:
    """Each command with each of its options that takes a value."""
    known = typer.main.get_command(program())
    for command in COMMANDS:
        for option in known.commands[command].params:  # type: ignore[attr-defined]
            flag = option.opts[0]
            if flag.startswith("-") and not option.is_flag and not option.is_eager:
                yield pytest.param(command, option.opts, option.nargs, id=f"{command}{flag}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("inputs")
    for name in ("a.parquet", "b.parquet"):
        pq.write_table(EVENTS, found / name)
    pq.write_table(QUERIES, found / "q.parquet")
    return found


@pytest.mark.parametrize(("command", "flags", "count"), list(options()))
def test_of_the_command_line(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    flags: list[str],
    count: int,
) -> None:
    flag = flags[0]
    monkeypatch.chdir(folder)
    right = f"{COMMANDS[command]} {BESIDE.get(flag, '')}".replace("-o ", f"-o {tmp_path}/").split()
    code = run([command, *right, flag, *[WORDS.get(flag, "?!")] * count])
    said = capsys.readouterr().err
    assert (code, said.count("\n"), list(tmp_path.iterdir())) == (2, 1, []), said
    named = "|".join(flags) + ("|no column '[?]!'" if flag in COLUMNS else "")
    assert re.match(rf"coincide: .*({named})", said), said
