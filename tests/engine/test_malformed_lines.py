"""Lines of CSV that are no rows, given by path from Python: an error, or skipped and counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import coincide
from coincide import (
    CausalityCondition,
    CorrelateOptions,
    DataError,
    Spatial,
    Temporal,
    border_crossing_tables,
    causality_tables,
)
from coincide.model.errors import DroppedRowsWarning

ROWS = "id,t\n1,2026-03-01T08:00:00Z\n2,2026-03-01T08:00:05Z\n"
TORN = ROWS + "3,2026-03-01T08:\n4\n5,6,7\n"
DROP = CorrelateOptions(invalid="drop")
AT = {"left_time": "t", "right_time": "t"}
SKIPPED = r"left: 3 lines of .*torn\.csv skipped, with more or fewer cells than the header"


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, Path]:
    torn, whole = tmp_path / "torn.csv", tmp_path / "whole.csv"
    torn.write_text(TORN)
    whole.write_text(ROWS)
    return torn, whole


def test_such_a_line_is_an_error_that_says_how_to_skip_it(paths: tuple[Path, Path]) -> None:
    words = r"line 5 has 1 cell where the header has 2.*options=CorrelateOptions\(invalid='drop'\)"
    with pytest.raises(DataError, match=words):
        coincide.correlate_tables(*paths, within=("0s", "1s"), **AT)


def test_tables_skip_them(paths: tuple[Path, Path], recwarn: pytest.WarningsRecorder) -> None:
    for names in (paths, [[str(path)] for path in paths]):
        with pytest.warns(DroppedRowsWarning, match=SKIPPED):
            found = coincide.correlate_tables(*names, within=("0s", "1s"), **AT, options=DROP)
        assert found.num_rows == 2
    whole = paths[1]
    recwarn.clear()
    assert coincide.correlate_tables(whole, whole, within=0, **AT, options=DROP).num_rows == 2
    assert not recwarn.list


def test_streams_skip_them(paths: tuple[Path, Path]) -> None:
    asked: dict[str, Any] = {**AT, "left_delay": "1s", "right_delay": "1s", "options": DROP}
    stream = coincide.stream_tables(within=("0s", "1s"), **asked)
    with pytest.warns(DroppedRowsWarning, match=SKIPPED):
        stream.push("left", paths[0])
    found = stream.push("right", paths[1])
    assert found.num_rows + stream.flush().num_rows == 2


def test_transitions_skip_them(tmp_path: Path) -> None:
    path = tmp_path / "torn.csv"
    rows = ["q,s,I,2026-03-01T08:00:00Z", "q,s,O,2026-03-01T08:00:09Z"]
    path.write_text("\n".join(["query_id,stream_id,event,t", *rows, "q,s", ""]))
    with pytest.warns(DroppedRowsWarning, match=r"1 line of .*torn\.csv skipped"):
        found = coincide.transition_tables(path, within="5s", time="t", options=DROP)
    assert found.num_rows == 1


def test_values_that_are_no_numbers_are_errors_as_of_the_commands(tmp_path: Path) -> None:
    """Only times and torn lines are skipped: a bad value or coordinate is not counted as these."""
    events, words = tmp_path / "events.csv", r"line 3, column 'x': 'oops' is not a number"
    events.write_text("id,time,x\n0,0,13.2\n1,1,oops\n2,2,13.2\n")
    condition = CausalityCondition([Temporal(0, 5), Spatial(1)])
    with pytest.raises(DataError, match=words):
        causality_tables(events, events, condition, cause_place="x", options=DROP)
    with pytest.raises(DataError, match=words):
        coincide.clusters(events, condition, place="x", options=DROP)
    queries = pa.table({"query_id": [1], "lower": [0.0], "upper": [1.0]})
    with pytest.raises(DataError, match=words):
        border_crossing_tables(events, queries, stream=None, values="x", invalid="drop")


def test_values_of_many_digits_are_numbers(tmp_path: Path) -> None:
    digits = "0.10000000000000000555"
    readings, queries = tmp_path / "readings.csv", tmp_path / "queries.csv"
    readings.write_text(f"stream_id,time,value\na,0,0.05\na,1,{digits}\n")
    queries.write_text(f"query_id,lower,upper\n1,{digits},0.5\n")
    found = border_crossing_tables(readings, queries)
    assert found.select(["event", "max_time"]).to_pylist() == [{"event": "I", "max_time": 1}]
    events = tmp_path / "events.csv"
    events.write_text(f"id,time,x\n0,0,{digits}\n1,1,{digits}\n")
    condition = CausalityCondition([Temporal(0, 5), Spatial(1)])
    assert causality_tables(events, events, condition, cause_place="x").num_rows == 3
