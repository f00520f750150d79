"""`stream_tables` as users meet it: deadlines missed, types and units, clocks, errors, memory."""

from __future__ import annotations

import copy
import pickle
import warnings
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from coincide import (
    ConditionError,
    CorrelateOptions,
    DataError,
    LateRowsWarning,
    SchemaError,
    StreamJoin,
    StreamSummary,
    TimingCondition,
    around,
    correlate_tables,
    histograms,
    resolution,
    stream_tables,
    within,
)
from tests.helpers.rows import in_order, lists_in_order

CONDITION = TimingCondition(within("0s", "5s"), 0.9)
START = datetime(2026, 5, 1, 8, tzinfo=UTC)
CLOCKS: dict[str, Any] = {
    "left_time": around("sent", "10ms"), "right_time": around("seen", "10ms"),
}  # fmt: skip


def requests(*rows: tuple[float, str]) -> pa.Table:
    times = [START + timedelta(seconds=seconds) for seconds, _ in rows]
    kind = pa.timestamp("ms", "UTC")
    return pa.table(
        {
            "sent": pa.array(times, kind),
            "order": pa.array([order for _, order in rows], pa.string()),
        }
    )


def answers(*rows: tuple[float, str]) -> pa.Table:
    return requests(*rows).rename_columns(["seen", "order"])


def deadlines(**more: Any) -> StreamJoin:
    asked = {"how": "anti", "left_columns": ["sent"], **CLOCKS, **more}
    return stream_tables(CONDITION, by="order", left_delay="1s", right_delay="2 seconds", **asked)


def test_a_deadline_is_missed_when_no_answer_can_come_any_more() -> None:
    stream = deadlines()
    assert stream.push("left", requests((0, "a"), (1, "b"), (2, "c"))).num_rows == 0
    assert stream.push("right", answers((4, "a"), (6.9, "x"))).num_rows == 0
    # An answer to b may be seen up to 6.01 s, or a hundredth of its interval later, and come 2 s after.
    assert stream.advance(START + timedelta(seconds=8.01), "right").num_rows == 0
    missed = stream.advance(START + timedelta(seconds=8.03), "right")
    assert missed.to_pylist() == [{"order": "b", "left_sent": START + timedelta(seconds=1)}]
    assert stream.push("right", answers((8, "c"))).num_rows == 0
    assert stream.flush()["order"].to_pylist() == ["c"]
    assert stream.summary().counters.pairs == 1


def test_tables_of_other_libraries() -> None:
    left, right = requests((0, "a"), (1, "b"), (20, "a")), answers((3, "a"), (5, "b"), (21, "c"))
    want = correlate_tables(left, right, CONDITION, by="order", left_columns=["sent"],
                            right_columns=["seen"], probability=True, **CLOCKS)  # fmt: skip
    makers = (
        pa.Table.to_pandas,
        pl.from_arrow,
        lambda t: t.to_batches()[0],
        lambda t: t.to_reader(),
    )
    for make in makers:
        stream = stream_tables(
            CONDITION, by="order", left_delay="1s", right_delay=timedelta(seconds=1),
            left_columns=["sent"], right_columns=["seen"], probability=True, **CLOCKS,
        )  # fmt: skip
        stream.push("left", make(left))
        found = stream.push("right", make(right))
        assert found.num_rows == want.num_rows == 2
        assert found["probability"].to_pylist() == want["probability"].to_pylist()
        assert found["order"].to_pylist() == want["order"].to_pylist()


def long_stream(keys: int, rows: int, seed: int, longest: int = 200) -> pa.Table:
    """Some rows a tick, in disorder by up to 300 ticks; among them nulls and texts."""
    random = np.random.default_rng(seed)
    ends = np.sort(random.integers(0, 50 * rows // keys, rows))
    lengths = random.integers(0, longest, rows, endpoint=True)
    order = np.argsort(ends + random.integers(0, 300, rows), kind="stable")
    keyed = pa.array(random.integers(0, keys, rows)[order], mask=random.random(rows) < 0.01)
    return pa.table({
        "id": np.arange(rows), "min_time": (ends - lengths)[order], "max_time": ends[order],
        "key": keyed, "note": [f"note {i}" for i in range(rows)],
    })  # fmt: skip


def pieces(table: pa.Table, size: int) -> list[pa.Table]:
    return [table.slice(start, size) for start in range(0, table.num_rows, size)]


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@pytest.mark.parametrize(
    "asked",
    [{}, {"how": "anti"}, {"how": "left"}, {"emit": "counts"}, {"emit": "lists"}],
    ids=["pairs", "anti", "left", "counts", "lists"],
)
@pytest.mark.parametrize("size", [37, 700])
def test_a_long_stream_in_disorder(asked: dict[str, Any], size: int) -> None:
    condition = TimingCondition(within(-100, 400), 0.6)
    left, right = long_stream(7, 2000, 1), long_stream(7, 2000, 2)
    asked = {"by": "key", "left_columns": ["id", "note"], **asked}
    stream = stream_tables(condition, left_delay=300, right_delay=300, **asked)
    found, most = [], 0
    for one, other in zip(pieces(left, size), pieces(right, size), strict=True):
        found += [stream.push("right", other), stream.push("left", one)]
        most = max(most, *stream.summary().live)
    found.append(stream.flush())
    want = correlate_tables(left, right, condition, **asked)
    got = pa.concat_tables(part for part in found if part.num_columns)
    assert lists_in_order(got) == lists_in_order(want)
    assert stream.summary().late == (0, 0)
    assert most < 1200, most


def test_memory_is_that_of_live_events() -> None:
    """5,000 keys: what is held after many pushes is no more than after a few, texts included."""
    condition = TimingCondition(within(0, 100), 0.5)
    stream = stream_tables(
        condition,
        left_delay=300,
        right_delay=300,
        by="key",
        how="anti",
        left_columns=["id", "note"],
    )
    held = []
    for left, right in zip(
        pieces(long_stream(5000, 300_000, 1, 50), 10_000),
        pieces(long_stream(5000, 300_000, 2, 50), 10_000),
        strict=True,
    ):
        stream.push("left", left)
        stream.push("right", right)
        held.append((sum(stream.summary().live), stream.summary().nbytes))
    events, nbytes = np.array(held[:-3]).T  # at the end clocks do not move
    # A tick brings 100 events a side; they can matter for some 500 ticks of 3,000.
    assert events[10:].max() < 200_000
    assert events[10:].max() <= 1.3 * events[5:10].max()
    assert nbytes[10:].max() <= 1.3 * nbytes[5:10].max()
    assert nbytes[-1] < 200 * events[-1]


def test_it_pickles_and_copies() -> None:
    stream = deadlines()
    stream.push("left", requests((0, "a")))  # the right side's columns are not known yet
    stream = pickle.loads(pickle.dumps(stream))
    stream.push("right", answers((1, "x")))
    stream.push("left", requests((2, "b"), (0.5, "late")))
    other, third = pickle.loads(pickle.dumps(stream)), copy.deepcopy(stream)
    for each in (stream, other, third):
        assert each.take_late("left")["order"].to_pylist() == ["late"]
        each.push("right", answers((3, "b")))
        assert each.flush()["order"].to_pylist() == ["a"]


def test_late_rows_are_handed_out_once() -> None:
    stream = deadlines(left_schema=requests().schema, right_schema=answers().schema)
    stream.push("left", requests((9, "a"), (8, "in time"), (7.9, "late"), (1, "later")))
    assert stream.take_late("left")["order"].to_pylist() == ["late", "later"]
    assert stream.take_late("left").num_rows == 0
    stream.advance(START + timedelta(seconds=20), "left")
    stream.push("left", requests((18, "too late")))
    assert stream.take_late("left").to_pylist() == requests((18, "too late")).to_pylist()
    assert stream.summary().late == (3, 0)


def test_late_rows_are_of_the_types_that_were_pushed() -> None:
    """Keys are joined as large strings where one side has such; late rows are not of the join."""
    join = deadlines()
    answer = answers((200.0, "a"))
    kinds = answer.schema.set(1, pa.field("order", pa.large_string()))
    wide = answer.cast(kinds)
    join.push("right", wide)
    join.push("left", requests((200.0, "a")))
    assert join.take_late("left").schema.field("order").type == pa.string()
    join.push("left", requests((1.0, "late")))
    late = join.take_late("left")
    assert late.schema.field("order").type == pa.string()
    assert late["order"].to_pylist() == ["late"]
    join.push("right", answers((1.0, "x")).cast(kinds))
    assert join.take_late("right").schema.field("order").type == pa.large_string()


def test_declared_schemas_give_the_output_from_the_start() -> None:
    stream = deadlines(left_schema=requests().schema, right_schema=answers())
    assert stream.schema.names == ["order", "left_sent"]
    assert stream.push("left", requests((0, "a"))).schema == stream.schema


def test_invalid_rows() -> None:
    columns = {"id": [1, 2, 3], "min_time": [0.0, 5.0, float("nan")], "max_time": [1.0, 4.0, 6.0]}
    condition = TimingCondition(within("0s", "2s"), 0.5)
    asked: dict[str, Any] = {"left_delay": "1s", "right_delay": "1s"}
    strict = stream_tables(condition, options=CorrelateOptions(unit="s"), **asked)
    with pytest.raises(DataError, match=r"left: NaN or infinity in min_time and max_time in 1 row"):
        strict.push("left", pa.table(columns))
    assert strict.summary() == StreamSummary()
    options = CorrelateOptions(unit="s", invalid="drop")
    lenient = stream_tables(condition, options=options, **asked)
    lenient.push("left", pa.table(columns))
    found = lenient.push("right", pa.table({"id": [7], "min_time": [1.0], "max_time": [1.5]}))
    assert found.to_pylist() == [{"left_id": 1, "right_id": 7}]
    assert lenient.summary().left.invalid == {"not_finite": 1, "order": 1}


def test_columns_that_change() -> None:
    stream = deadlines(left_schema=requests().schema, right_schema=answers().schema)
    empty = pa.table({"sent": pa.nulls(0), "order": pa.nulls(0)})
    assert stream.push("left", empty).num_rows == 0
    wide = requests((0, "a")).set_column(1, "order", pa.array(["a"], pa.large_string()))
    stream.push("left", wide)
    numbers = requests((0, "a")).set_column(1, "order", pa.array([1]))
    with pytest.raises(SchemaError, match=r"left.order was string in the first table"):
        stream.push("left", numbers)
    with pytest.raises(SchemaError, match=r"left has no column 'order' .found 'sent'"):
        stream.push("left", requests((0, "a")).drop(["order"]))
    assert stream.summary().left.rows == 1


def test_histograms_and_resolution() -> None:
    templates = {"slow": ([-40, -20, -10, 0], [0.1, 0.3, 0.6]), "fast": ([-15, -5, 0], [0.2, 0.8])}
    condition = TimingCondition(within(-50, 50), 0.8)
    left = pa.table({"t": [1000, 1020, 1400, 1500], "of": ["slow", "fast", "slow", "fast"],
                     "id": [1, 2, 3, 4]})  # fmt: skip
    right = pa.table({"t": [1010, 1380, 1600], "id": [1, 2, 3]})
    asked: dict[str, Any] = {
        "left_time": histograms("t", template="of", templates=templates),
        "right_time": resolution("t", 20), "probability": True, "how": "left",
    }  # fmt: skip
    stream = stream_tables(condition, left_delay=0, right_delay=0, **asked)
    found = []
    for i in range(4):
        found.append(stream.push("left", left.slice(i, 1)))
        found.append(stream.push("right", right.slice(i, 1)))
    found.append(stream.flush())
    want = correlate_tables(left, right, condition, **asked)
    got = pa.concat_tables(part for part in found if part.num_columns)
    assert in_order(got) == in_order(want)
    assert want["right_id"].null_count == 1


def refused(match: str, error: type[Exception], **changed: Any) -> None:
    with pytest.raises(error, match=match):
        deadlines(**changed)


def test_what_is_refused_when_it_is_made() -> None:
    refused("right_columns must be a column name", ConditionError, right_columns=3)
    refused("left_schema must be a pyarrow.Schema .found int", SchemaError, left_schema=5)
    refused(
        "left has no column 'order'", SchemaError, left_schema=pa.schema([("sent", pa.int64())])
    )
    with pytest.raises(ConditionError, match=r"left_delay is how long .* cannot be negative"):
        stream_tables(CONDITION, left_delay="-1s", right_delay=0)
    with pytest.raises(ConditionError, match="cannot read the duration 'soon'"):
        stream_tables(CONDITION, left_delay="soon", right_delay=0)


def test_what_is_refused_when_it_runs() -> None:
    stream = deadlines()
    with pytest.raises(
        ConditionError, match=r"advance needs the columns of both sides \(found none for"
    ):
        stream.advance(START)
    with pytest.raises(SchemaError, match=r"left events must be a table .*found int"):
        stream.push("left", 5)
    with pytest.raises(ConditionError, match="side must be 'left' or 'right'"):
        stream.push("middle", requests())
    stream.push("left", requests((0, "a")))
    with pytest.raises(ConditionError, match=r"flush needs .*found none for right"):
        stream.flush()
    stream.push("right", pd.DataFrame({"seen": [pd.Timestamp(START)], "order": ["a"]}))
    with pytest.raises(ConditionError, match=r"time must be a time like those of left.sent"):
        stream.advance(5)
    stream.flush()
    with pytest.raises(DataError, match="was flushed and takes no more events"):
        stream.push("left", requests())


def test_a_refused_push_takes_nothing() -> None:
    stream = stream_tables(TimingCondition(within(0, 10), 0.5), left_delay=0, right_delay=0)
    good = pa.table({"id": [1], "min_time": [0], "max_time": [4]})
    stream.push("left", good)
    stream.push("right", good)
    before = stream.summary()
    bad = pa.table({"id": [2, 3], "min_time": [5, 9], "max_time": [6, 8]})
    with pytest.raises(DataError, match="left: min above max"):
        stream.push("left", bad)
    assert stream.summary() == before


def test_late_rows_are_warned_of_with_the_delay_that_takes_them() -> None:
    """Once a push; where a warning is an error, the push takes nothing."""
    stream = deadlines(how="inner", right_columns=[])
    first = requests((100, "a"), (99.5, "b"), (40, "c"), (20.5, "d"))
    words = r"left, 4 rows: skipped 2 that came too late, by up to 1.325 min. .*left_delay='80s'"
    stream.push("right", answers())
    with pytest.warns(LateRowsWarning, match=words) as said:
        stream.push("left", first)
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream.push("left", requests((100, "e")))
        with pytest.raises(LateRowsWarning, match="left, 1 row: "):
            stream.push("left", requests((98, "f")))
    assert stream.summary().late == (2, 0)
    assert stream.summary().left.rows == 5
    patient = stream_tables(CONDITION, by="order", left_delay="80s", right_delay=0, left_columns=["sent"],
                            right_columns=[], **CLOCKS)  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        patient.push("left", first)
        patient.push("right", answers())
    assert patient.summary().late == (0, 0)


def test_late_rows_among_those_that_waited_for_the_other_side() -> None:
    stream = deadlines(how="inner", right_columns=[])
    stream.push("left", requests((100, "a"), (40, "c")))
    with pytest.warns(LateRowsWarning, match="left, 2 rows: skipped 1 that came too late"):
        stream.push("right", answers())
