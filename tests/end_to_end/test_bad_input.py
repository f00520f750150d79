"""Bad input gives the right error, with one clear line."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

from coincide import CorrelateOptions, TimingCondition, correlate_tables, deadline, delay, within
from coincide.model.errors import (
    BackendError,
    CoincideError,
    ConditionError,
    DataError,
    MemoryBudgetError,
    SchemaError,
)
from tests.helpers.joins import table_join

CONDITION = TimingCondition(within(-5, 5), 0.5)
OF_STAMPS = TimingCondition(within("-5us", "5us"), 0.5)
NAN, INF = float("nan"), float("inf")


def table(low: list[Any], high: list[Any] | None = None, kind: Any = None, **more: Any) -> pa.Table:
    times = {"min_time": pa.array(low, kind), "max_time": pa.array(high or low, kind)}
    return pa.table({**times, "id": range(len(low)), **more})


GOOD = table([0, 10, 20])


def refused(error: type[CoincideError], *words: str, left: pa.Table = GOOD, right: pa.Table = GOOD,
            condition: Any = CONDITION, **arguments: Any) -> str:  # fmt: skip
    """The message of the refusal; all `words` (regular expressions) must match in it."""
    with pytest.raises(error) as caught:
        correlate_tables(left, right, condition, **arguments)
    assert type(caught.value) is error
    message = str(caught.value)
    assert message
    assert "\n" not in message
    for word in words:
        assert re.search(word, message), message
    return message


def test_each_error_is_also_a_builtin() -> None:
    tree = {
        SchemaError: TypeError, ConditionError: ValueError, DataError: ValueError,
        BackendError: RuntimeError, MemoryBudgetError: MemoryError,
    }  # fmt: skip
    for error, builtin in tree.items():
        assert issubclass(error, CoincideError)
        assert issubclass(error, builtin)


# --- columns ---


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize(
    "arguments",
    [
        {"{}_time": ("start", "max_time")},
        {"{}_time": "start"},
        {"{}_columns": ("id", "start")},
        {"by": "start"},
    ],
)
def test_missing_column(side: str, arguments: dict[str, Any]) -> None:
    arguments = {name.format(side): value for name, value in arguments.items()}
    other = "left" if side == "right" else "right"
    tables = {other: GOOD.append_column("start", GOOD["id"])}
    refused(SchemaError, side, "'start'", "'min_time', 'max_time', 'id'", **tables, **arguments)


def test_blanks_in_names_show() -> None:
    padded = GOOD.rename_columns([" min_time", "max_time", "id"])
    refused(SchemaError, "found ' min_time', 'max_time', 'id'", left=padded)


def test_a_column_that_stands_twice() -> None:
    doubled = GOOD.append_column("id", GOOD["id"])
    refused(SchemaError, "left", "2 columns", "'id'", left=doubled)


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.bool_(), pa.time64("us"), pa.month_day_nano_interval()],
    ids=str,
)
def test_times_of_a_wrong_type(kind: pa.DataType) -> None:
    wrong = table([None, None], kind=kind)
    refused(SchemaError, "left.min_time", re.escape(str(kind)), "[Cc]ast", left=wrong)
    refused(SchemaError, "right.min_time", re.escape(str(kind)), "[Cc]ast", right=wrong)


def test_float_times_need_a_unit() -> None:
    floats = table([0.5, 1.5])
    refused(SchemaError, "left.min_time, left.max_time", "need a unit", "unit='s'", left=floats)
    refused(SchemaError, "right.max_time", "unit='s'", right=floats)


@pytest.mark.parametrize(
    "kinds",
    [
        (pa.timestamp("us"), pa.int64()),
        (pa.timestamp("us", "UTC"), pa.timestamp("us")),
        (pa.timestamp("us"), pa.float64()),
    ],
)
def test_kinds_of_time_do_not_mix(kinds: tuple[pa.DataType, pa.DataType]) -> None:
    left, right = (table([0, 1], kind=kind) for kind in kinds)
    options = CorrelateOptions(unit="us")
    refused(
        SchemaError,
        "must all be instants",
        "a line of docs/files.md for Parquet",
        left=left,
        right=right,
        options=options,
    )


def test_timestamps_take_no_coarse_unit() -> None:
    stamps = table([0, 1], kind=pa.timestamp("us"))
    refused(
        ConditionError, "unit='s'", "Remove the unit",
        left=stamps, right=stamps, options=CorrelateOptions(unit="s"),
    )  # fmt: skip


def test_nanoseconds_are_not_lost() -> None:
    fine = table([0, 1001], kind=pa.timestamp("ns"))
    words = "left.min_time", "unit='ns'"
    refused(DataError, *words, left=fine, right=fine, condition=OF_STAMPS)


@pytest.mark.parametrize("names", [("a", "b", "c"), (), (1, 2)])
def test_time_names(names: tuple[Any, ...]) -> None:
    refused(ConditionError, "left_time", "pair of names", left_time=names)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.array([1, 2, 3]), pa.array(["1", "2", "3"])),
        (pa.array([1, 2, 3], pa.int32()), pa.array([True, False, True])),
        (pa.array(["1"] * 3).dictionary_encode(), pa.array([1, 2, 3])),
    ],
)
def test_keys_of_two_types(left: pa.Array, right: pa.Array) -> None:
    tables = {"left": GOOD.append_column("k", left), "right": GOOD.append_column("k", right)}
    message = refused(SchemaError, "'k'", "on the left", "on the right", "Cast", by="k", **tables)
    assert "dictionary" not in message


@pytest.mark.parametrize(
    "key",
    [
        pa.array([0.1, 0.2, NAN]),
        pa.array([0.1, 0.2, 0.3]).dictionary_encode(),
        pa.array([[1], [2], [3]]),
        pa.array([{"a": 1}] * 3),
        pa.nulls(3),
    ],
    ids=lambda key: str(key.type),
)
def test_keys_that_cannot_be_compared(key: pa.Array) -> None:
    side = GOOD.append_column("k", key)
    refused(SchemaError, "'k'", "compared exactly", left=side, right=side, by="k")


@pytest.mark.parametrize(
    "arguments",
    [
        {"by": ("id", "id")},
        {"left_columns": ("id", "id")},
        {"right_columns": ["id", "id"]},
    ],
)
def test_output_columns_of_one_name(arguments: dict[str, Any]) -> None:
    refused(ConditionError, "two output columns", "Rename", **arguments)


def test_a_key_that_takes_an_output_name() -> None:
    side = GOOD.append_column("left_id", GOOD["id"]).append_column("matches", GOOD["id"])
    refused(ConditionError, "left_id", left=side, right=side, by="left_id")
    refused(ConditionError, "matches", left=side, right=side, by="matches", emit="counts")


def test_no_output_columns() -> None:
    refused(ConditionError, "no columns", left_columns=(), right_columns=())
    refused(ConditionError, "no columns", left_columns=(), how="semi")


# --- conditions and arguments ---


@pytest.mark.parametrize("confidence", [0, -1, 1.5, NAN, INF])
def test_confidence(confidence: float) -> None:
    with pytest.raises(ConditionError, match=r"\(0, 1\]"):
        TimingCondition(within(0, 1), confidence)


def test_empty_window() -> None:
    with pytest.raises(ConditionError, match="above hi"):
        within(1, 0)
    mixed = TimingCondition(within(6, "5us"), 0.5)
    refused(ConditionError, "above hi", condition=mixed, options=CorrelateOptions(unit="us"))


@pytest.mark.parametrize("predicate", [deadline(5), delay(5)])
def test_one_sided_predicates(predicate: Any) -> None:
    condition = TimingCondition(predicate, 0.5)
    refused(ConditionError, "both ends", "within=", condition=condition)


def test_durations_without_a_unit_of_the_columns() -> None:
    condition = TimingCondition(within("-1s", "1s"), 0.5)
    refused(ConditionError, "'1s'", "unit='us'", condition=condition)


def test_durations_finer_than_a_tick() -> None:
    condition = TimingCondition(within("-1ms", "1ms"), 0.5)
    options = CorrelateOptions(unit="s")
    refused(ConditionError, "whole number", condition=condition, options=options)


def test_bounds_out_of_range() -> None:
    with pytest.raises(ConditionError, match=r"2\^61"):
        within(0, 2**61)
    years = TimingCondition(within("0s", "30000000d"), 0.5)
    options = CorrelateOptions(unit="us")
    refused(ConditionError, r"2\^61", condition=years, options=options)


def test_not_a_condition() -> None:
    with pytest.raises(CoincideError, match="TimingCondition"):
        correlate_tables(GOOD, GOOD, within(0, 1))


@pytest.mark.parametrize(
    ("side", "given"),
    [
        ("left", None),
        *((side, bad) for side in ("left", "right") for bad in (b"a", 3.5)),
    ],
    ids=repr,
)
def test_not_a_table(side: str, given: Any) -> None:
    refused(
        SchemaError, f"{side} must be a table that offers Arrow.s C stream.*found", **{side: given}
    )


@pytest.mark.parametrize(
    "arguments",
    [
        {"by": None},
        {"by": [None]},
        {"by": 1},
        {"left_columns": None},
        {"right_columns": [1]},
        {"left_time": None},
        {"right_time": 5},
        {"options": {}},
        {"options": None},
    ],
    ids=repr,
)
def test_arguments_of_a_wrong_type(arguments: dict[str, Any]) -> None:
    ((name, value),) = arguments.items()
    refused(ConditionError, f"{name} must be .* .found {re.escape(repr(value))}", **arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"how": "outer"},
        {"emit": "sets"},
        {"backend": "tpu"},
        {"how": "semi", "emit": "lists"},
        {"how": "anti", "emit": "counts"},
        {"how": "semi", "probability": True},
        {"how": "anti", "probability": True},
        {"emit": "counts", "probability": True},
    ],
)
def test_arguments(arguments: dict[str, Any]) -> None:
    refused(ConditionError, *(str(value) for value in list(arguments.values())[:1]
                              if value is not True), **arguments)  # fmt: skip


# --- rows ---

BAD_ROWS: dict[str, tuple[pa.Table, dict[str, Any], tuple[str, ...]]] = {
    "order": (
        table([0, 9, 9], [0, 8, 7]),
        {},
        ("min above max", "min_time and max_time", "2 rows", "min_time=9, max_time=8"),
    ),
    "not_finite": (
        table([0.0, NAN, INF, -INF, None]),
        {"unit": "s", "tick": "ns"},
        ("NaN or infinity", "3 rows", "min_time=nan"),
    ),
    "not_finite alone": (
        table([NAN, 0.0], [5.0, 1.0]),
        {"unit": "s", "tick": "ns"},
        ("NaN or infinity", "1 row .found", "min_time=nan"),
    ),
    "not_finite max": (
        table([0.0, 1.0], [0.5, INF]),
        {"unit": "s", "tick": "ns"},
        ("NaN or infinity", "1 row .found", "max_time=inf"),
    ),
    "range": (
        table([0, 2**61, -(2**61), 2**61 - 1, 1 - 2**61]),
        {},
        (r"reach 2\^61", "2 rows", f"min_time={2**61}"),
    ),
    "range int64": (table([-(2**63), 2**63 - 1, 0]), {}, (r"reach 2\^61", "2 rows")),
    "range float": (table([0.0, 1e300, 3e12]), {"unit": "s", "tick": "ns"}, (r"reach 2\^61", "2 rows")),
    "range timestamp": (
        table([0, 2**61 // 10**6 + 1, 2**61 // 10**6], kind=pa.timestamp("s")),
        {},
        (r"reach 2\^61", "1 row .found", f"min_time={2**61 // 10**6 + 1}"),
    ),
    "range zoned": (
        table([2**62, 0], kind=pa.timestamp("us", "Europe/Rome")),
        {},
        (r"reach 2\^61", "1 row .found"),
    ),
    "order timestamp": (table([5, 2**60], [6, 2**59], kind=pa.timestamp("us")), {}, ("1 row .found",)),
    "order ns": (table([5, 7], [6, 6], pa.timestamp("ns")), {"unit": "ns"}, ("min above max",)),
    "length": (
        table([0, 0, 0], [5, 6, 7]),
        {"longest": 5},
        ("longer than the declared longest", "2 rows", "max_time=6"),
    ),
    "text": (
        table([1], [0], s=["two\nlines" * 50]),
        {},
        ("min above max", r"\.\.\."),
    ),
}  # fmt: skip


def options_for(side: str, settings: dict[str, Any], **more: Any) -> CorrelateOptions:
    settings = dict(settings)
    longest = settings.pop("longest", None)
    return CorrelateOptions(**settings, **{f"{side}_longest": longest}, **more)


def good_like(bad: pa.Table) -> pa.Table:
    kind = bad.schema.field("min_time").type
    zero = pa.array([0], pa.int64()).cast(kind)
    return pa.table({"min_time": zero, "max_time": zero, "id": [0]})


def near(rows: pa.Table) -> TimingCondition:
    return OF_STAMPS if pa.types.is_timestamp(rows.schema.field("min_time").type) else CONDITION


@pytest.mark.parametrize("name", BAD_ROWS)
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.filterwarnings("error")
def test_bad_rows(name: str, side: str) -> None:
    bad, settings, words = BAD_ROWS[name]
    sides = {"left": good_like(bad), "right": good_like(bad), side: bad}
    hint = ("invalid='drop'", f"^{side}")
    options = options_for(side, settings)
    refused(DataError, *words, *hint, **sides, condition=near(bad), options=options)


@pytest.mark.parametrize("name", BAD_ROWS)
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.filterwarnings("error")
def test_bad_rows_dropped_and_counted(name: str, side: str) -> None:
    bad, settings, words = BAD_ROWS[name]
    sides = {"left": good_like(bad), "right": good_like(bad), side: bad}
    job = table_join(
        sides["left"], sides["right"], near(bad), how="left",
        options=options_for(side, settings, invalid="drop"),
    )  # fmt: skip
    found = pa.Table.from_batches(job.batches(), job.schema)
    counts = job.summary.left if side == "left" else job.summary.right
    reason = name.split()[0] if name != "text" else "order"
    stated = next((int(m[1]) for w in words if (m := re.match(r"(\d) row", w))), 1)
    assert counts.rows == bad.num_rows
    assert counts.invalid == {reason: counts.dropped}
    assert counts.dropped == stated
    if side == "left":
        kept = bad.num_rows - counts.dropped
        assert len(set(found["left_id"].to_pylist())) == kept


def test_both_sides_are_checked_even_if_one_is_empty() -> None:
    empty = GOOD.slice(0, 0)
    refused(DataError, "^right", left=empty, right=table([1], [0]))


def test_all_reasons_are_named_at_once() -> None:
    bad = table([1, 2**61], [0, 2**61])
    refused(DataError, "min above max", r"reach 2\^61", left=bad)


def test_nulls_are_no_error_whatever_stands_beside_them() -> None:
    odd = pa.table({
        "min_time": pa.array([None, 2**61, 5, None]),
        "max_time": pa.array([-(2**62), None, 5, None]),
        "id": [0, 1, 2, 3],
    })  # fmt: skip
    for how, expected in (("left", 4), ("inner", 1), ("anti", 3)):
        job = table_join(odd, table([5]), CONDITION, how=how)
        found = pa.Table.from_batches(job.batches(), job.schema)
        assert found.num_rows == expected
        assert job.summary.left.unmatchable == 3
        assert job.summary.left.dropped == 0


def test_a_float_null_is_not_a_nan() -> None:
    floats = pa.table({"min_time": [None, 1.0], "max_time": [1.0, 1.0], "id": [0, 1]})
    options = CorrelateOptions(unit="us", tick="us")
    job = table_join(floats, floats, CONDITION, options=options)
    assert sum(batch.num_rows for batch in job.batches()) == 1
    assert job.summary.left.unmatchable == 1


def test_errors_known_from_the_schema_come_before_any_row() -> None:
    with pytest.raises(SchemaError):
        table_join(GOOD, GOOD, CONDITION, by="nope")
    with pytest.raises(ConditionError):
        table_join(GOOD, GOOD, TimingCondition(deadline(5), 0.5))
    table_join(table([1], [0]), GOOD, CONDITION)
