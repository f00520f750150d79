"""Values and types of aggregates: sums that do not fit, rounding, order and nulls."""

from __future__ import annotations

import gc
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coincide import (
    CorrelateOptions,
    DataError,
    TimingCondition,
    correlate_tables,
    within,
)
from cpu_fallback.reference.aggregates import (
    Aggregate,
    is_same,
    reduced,
)
from tests.helpers.aggregates import (
    EXACT,
    INF,
    KINDS,
    LARGEST,
    LEAST,
    NAN,
    NUMBERS,
    OF_A_PAIR,
    ORDERED,
    array,
    joined,
    output_type,
    plain,
)
from tests.helpers.joins import local_files_join


def test_rows_of_files_decide_in_every_slice(tmp_path: Path) -> None:
    """The later of two rows of one time is the last, also where a slice has it from its neighbour."""
    times = [5, 15, 25, 35, 35, 45, 55, 65]
    tables = (
        pa.table({"id": range(8), "t": range(0, 80, 10)}),
        pa.table({"t": times, "v": range(8)}),
    )
    paths = [tmp_path / "left.parquet", tmp_path / "right.parquet"]
    for table, path in zip(tables, paths, strict=True):
        pq.write_table(table, path, row_group_size=1)
    asked: dict[str, Any] = {
        "left_time": "t", "right_time": "t", "how": "left", "emit": "aggregates",
        "aggregates": {"first": ("v", "first"), "last": ("v", "last")},
    }  # fmt: skip
    for lo, hi, including in ((-10, 10, None), (-2, -1, "previous")):
        condition = TimingCondition(within(lo, hi), 1.0)
        given = asked | {"including": including}
        wanted = correlate_tables(*tables, condition, **given)
        for slices in (1, 2, 4, 8):
            options = CorrelateOptions(way="files", slices=slices)
            job = local_files_join(*paths, condition, options=options, **given)
            found = pa.Table.from_batches(job.batches(), job.schema)
            assert found.sort_by("left_id").equals(wanted), (slices, lo)


def test_nothing_waits_for_the_collector_of_garbage() -> None:
    """Values of the batches of pairs would, and memory would grow with the number of pairs."""
    table = pa.table({"id": range(400), "value": np.arange(400) / 3, "text": ["a", "b"] * 200})
    aggregates: dict[str, Aggregate] = {f"{f} delta": ("delta", f) for f in OF_A_PAIR}
    aggregates |= {f"{f} value": ("value", f) for f in NUMBERS}
    aggregates |= {f"{f} text": ("text", f) for f in ORDERED}
    asked: dict[str, Any] = {"left_time": "id", "right_time": "id", "within": (-9, 9)}
    options = CorrelateOptions(threads=1, batch_pairs=500)

    def joined() -> int:
        return correlate_tables(
            table, table, emit="aggregates", aggregates=aggregates, options=options, **asked
        ).num_rows  # fmt: skip

    joined()
    gc.collect()
    gc.disable()
    try:
        joined()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        held = [each for each in gc.garbage if type(each).__module__.startswith("coincide")]
        assert not held
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def test_sums_of_far_times_that_are_too_large() -> None:
    far = 2**60 - 8
    left = pa.table({"id": [0], "min_time": [-far], "max_time": [-far]})
    condition = TimingCondition(within(0, 2**61 - 1), 1.0)
    asked: dict[str, Any] = {"emit": "aggregates", "aggregates": {"apart": ("delta", "sum")}}
    right = pa.table({"min_time": [far] * 5, "max_time": [far] * 5})
    found = correlate_tables(left, right[:4], condition, **asked)
    assert found.to_pydict() == {"left_id": [0], "apart": [8 * far]}
    with pytest.raises(DataError, match=r"apart|delta"):
        correlate_tables(left, right, condition, **asked)


UP, DOWN, FULL = 2**63 - 1, -(2**63), 2**64 - 1
NINES, LONG_NINES = Decimal("9" * 38), Decimal("9" * 76)
LESS = NINES.copy_negate()


@pytest.mark.parametrize(
    ("kind", "values", "total"),
    [
        (pa.int64(), [UP, 1], None), (pa.int64(), [UP, 1, -1], UP), (pa.int64(), [DOWN, -1], None),
        (pa.int64(), [DOWN, -1, 1], DOWN), (pa.int64(), [UP, UP, DOWN, DOWN, 2], 0),
        # What modular sums take for 0, and for 5.
        (pa.int64(), [UP, UP, 2], None), (pa.int64(), [DOWN, DOWN, 5], None),
        (pa.int64(), [UP, UP, UP, UP, 4], None), (pa.int64(), [UP] * 9 + [-UP] * 8, UP),
        (pa.uint64(), [FULL, 1], None), (pa.uint64(), [FULL, 0], FULL), (pa.uint64(), [2**63] * 2, None),
        (pa.uint64(), [2**63, 2**63 - 1], FULL), (pa.uint64(), [FULL, FULL, FULL, 3], None),
        (pa.decimal128(38, 0), [NINES, 1], None), (pa.decimal128(38, 0), [NINES, 1, -1], NINES),
        (pa.decimal128(38, 0), [LESS, -1], None),
        (pa.decimal128(38, 0), [NINES] * 3 + [LESS] * 2, NINES),
        (pa.decimal128(38, 0), [NINES] * 5, None), (pa.decimal128(38, 30), [Decimal("99999999")] * 2, None),
        (pa.decimal128(38, 0), [NINES] * 1000, None), (pa.decimal128(38, 0), [NINES, LESS] * 500, 0),
        (pa.decimal256(76, 0), [LONG_NINES, 1], None),
        (pa.decimal256(76, 0), [LONG_NINES, 1, -1], LONG_NINES),
        (pa.decimal256(76, 0), [LONG_NINES] * 4 + [LONG_NINES.copy_negate()] * 3, LONG_NINES),
        (pa.decimal256(76, 0), [LONG_NINES] * 6, None),
        (pa.duration("ns"), [UP, 1], None), (pa.duration("ns"), [UP, 1, -1], UP),
    ],
)  # fmt: skip
def test_sums_that_do_not_fit(kind: pa.DataType, values: list[Any], total: Any) -> None:
    given = array(values, kind)
    if total is None:
        with pytest.raises(DataError, match=r"(energy|amp).*\. [A-Z].*\.$") as raised:
            joined(given, {"energy": ("amp", "sum")})
        assert "\n" not in str(raised.value)
    else:
        found = joined(given, {"energy": ("amp", "sum")})
        assert is_same(plain(found["energy"])[0], Fraction(total))
    # No other function minds.
    means = {"least": ("amp", "min"), "n": ("amp", "count")}
    if not pa.types.is_duration(kind):
        means["mean"] = ("amp", "mean")
        means["std"] = ("amp", "std")
    for name, (_, function) in means.items():
        value = plain(joined(given, {name: means[name]})[name])[0]
        assert is_same(value, reduced(function, plain(given)), function)


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.decimal128(38, 0)], ids=str)
def test_an_event_whose_sum_does_not_fit_is_one_of_many(kind: pa.DataType) -> None:
    """The sum of all right events does not fit, but that of the matches of each left event does."""
    value = 2**62 if kind != pa.decimal128(38, 0) else Decimal(4 * 10**37)
    count = 60
    right = pa.table({"t": [10 * i for i in range(count)], "amp": array([value] * count, kind)})
    left = pa.table({"id": list(range(count)), "t": [10 * i for i in range(count)]})
    asked = EXACT | {"aggregates": {"energy": ("amp", "sum")}}
    found = correlate_tables(left, right, **asked)
    assert {Fraction(total) for total in found["energy"].to_pylist()} == {Fraction(value)}
    crowded = right.set_column(
        0, "t", pa.array([10 * i - 90 * (39 < i < 46) for i in range(count)])
    )
    asked |= {"condition": TimingCondition(within(0, 29), 1.0)}
    with pytest.raises(DataError):
        correlate_tables(left, crowded, **asked)


@pytest.mark.parametrize(
    ("values", "total", "mean", "std"),
    [
        ([1e308, 1e308], INF, 1e308, 0.0), ([LARGEST, 2.0**969], LARGEST, None, None),
        ([LARGEST, 2.0**970], INF, None, None), ([LARGEST, LARGEST, -LARGEST], LARGEST, None, INF),
        ([-1e308, -1e308], -INF, -1e308, 0.0), ([3e300, -1e300, 1e300], 3e300, 1e300, 2e300),
        ([-0.0], 0.0, 0.0, None),
        ([-0.0, -0.0], 0.0, 0.0, 0.0), ([1.0, 2.0**-53], 1.0, None, None),
        ([1.0, 2.0**-53, LEAST], 1.0 + 2.0**-52, None, None), ([1e16, 1.0, -1e16], 1.0, None, None),
        ([1.0, -(2.0**-54), -LEAST], 1.0 - 2.0**-53, None, None), ([LEAST, LEAST], 2 * LEAST, LEAST, 0.0),
        ([LEAST], LEAST, LEAST, None), ([INF, 1.0], INF, INF, NAN), ([-INF, -INF], -INF, -INF, NAN),
        ([INF, -INF], NAN, NAN, NAN), ([NAN, 1.0], NAN, NAN, NAN), ([INF, NAN], NAN, NAN, NAN),
        ([NAN], NAN, NAN, None), ([INF], INF, INF, None), ([None, 0.1], 0.1, 0.1, None),
        ([0.1] * 10, 1.0, 0.1, 0.0),
        ([1e-200, 2e-200, 3e-200], 6e-200, 2e-200, None), ([1.0, 2.0, 4.0], 7.0, 7 / 3, 1.5275252316519468),
    ],
)  # fmt: skip
def test_floats_are_rounded_once(
    values: list[Any], total: float, mean: float | None, std: float | None
) -> None:
    """By hand; None where only the reference says it."""
    asked: dict[str, Aggregate] = {f: ("amp", f) for f in ("sum", "mean", "std")}
    found = joined(pa.array(values, pa.float64()), asked).to_pylist()[0]
    assert is_same(found["sum"], total)
    for name, value in (("mean", mean), ("std", std)):
        assert is_same(found[name], reduced(name, values), name)
        if value is not None:
            assert is_same(found[name], value, name)


@pytest.mark.parametrize(
    ("values", "least", "greatest"),
    [
        ([NAN, 1.0], 1.0, NAN), ([NAN], NAN, NAN), ([INF, NAN, -INF], -INF, NAN), ([-0.0], 0.0, 0.0),
        ([0.0, -0.0], 0.0, 0.0), ([None, -0.0, -1.0], -1.0, 0.0), ([None], None, None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_least_and_greatest_floats(
    kind: pa.DataType, values: list[Any], least: Any, greatest: Any
) -> None:
    found = joined(pa.array(values, kind), {"min": ("amp", "min"), "max": ("amp", "max")})
    row = found.to_pylist()[0]
    assert is_same(row["min"], least)
    assert is_same(row["max"], greatest)
    assert found.schema.field("min").type == kind


def test_first_and_last_skip_nulls_and_go_by_time() -> None:
    """By the midpoint, then by the later end, then by the row."""
    left = pa.table({"id": [1], "min_time": [0], "max_time": [0]})
    right = pa.table({
        "min_time": [4, 2, 3, 0, 3, 1, 9, 9], "max_time": [4, 6, 5, 2, 5, 1, 9, 9],
        "amp": [1, 2, 3, None, 5, 6, 7, 8],
    })  # fmt: skip
    asked: dict[str, Any] = {
        "condition": TimingCondition(within(-99, 99), 1.0), "emit": "aggregates",
        "aggregates": {"first": ("amp", "first"), "last": ("amp", "last")},
    }  # fmt: skip
    for rows, first, last in (
        (range(8), 6, 8), ([3], None, None), ([3, 0, 1, 2, 4], 1, 2), ([2, 4, 3], 3, 5), ([4, 2], 5, 3),
        ([1, 0, 3], 1, 2), ([7, 6], 8, 7),
    ):  # fmt: skip
        found = correlate_tables(left, right.take(list(rows)), **asked).to_pylist()
        assert found == [{"left_id": 1, "first": first, "last": last}], rows


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("name", KINDS)
def test_types_where_nothing_matches(name: str, how: str) -> None:
    """No left event, no right one, or none of them near: the same columns, and no row or nulls."""
    kind = KINDS[name]
    aggregates = {"n": "count", **{f: ("value", f) for f in kind.functions}}
    right = pa.table({"t": [7, 8], "value": array(kind.values[:2], kind.type)})
    left = pa.table({"id": [1, 2], "t": [500, None], "key": ["a", "b"]})
    for sides in ((left, right), (left, right[:0]), (left[:0], right), (left[:0], right[:0])):
        found = correlate_tables(
            *sides, aggregates=aggregates, how=how, left_columns=["key", "id"], **EXACT
        )
        assert found.column_names == ["left_key", "left_id", *aggregates]
        assert found.schema.field("n").type == pa.int64()
        for function in kind.functions:
            assert found.schema.field(function).type == output_type(kind.type, function), function
        nulls = dict.fromkeys(kind.functions) | {"count": 0}
        rows = [{"left_key": k, "left_id": i, "n": 0, **nulls} for i, k in ((1, "a"), (2, "b"))]
        assert found.to_pylist() == (rows[: sides[0].num_rows] if how == "left" else [])


def test_any_of_a_column_of_the_null_type() -> None:
    found = joined(pa.nulls(3), {"any": ("amp", "any"), "n": ("amp", "count")})
    assert found.to_pylist() == [{"left_id": 1, "any": None, "n": 0}]


def test_a_column_of_the_null_type() -> None:
    """It has no value to count, and none to be the least."""
    found = joined(pa.nulls(3), {"n": ("amp", "count"), "all": "count"})
    assert found.to_pylist() == [{"left_id": 1, "n": 0, "all": 3}]
    for function in ("min", "max", "first", "last"):
        assert joined(pa.nulls(3), {"it": ("amp", function)})["it"].to_pylist() == [None]


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize(
    "values",
    [
        pa.array([None, [1, None], [], None], pa.list_(pa.int64())),
        pa.array([None, {"a": 1, "b": "x"}, {"a": None, "b": ""}, None]),
    ],
    ids=["list", "struct"],
)
def test_the_first_of_a_column_of_any_type(values: pa.Array, how: str) -> None:
    found = joined(
        values, {"n": ("amp", "count"), "a": ("amp", "first"), "b": ("amp", "last")}, how=how
    )
    held = values.to_pylist()
    rows = [{"left_id": 1, "n": 2, "a": held[1], "b": held[2]}]
    rows += [{"left_id": 2, "n": 0, "a": None, "b": None}] * (how == "left")
    assert found.to_pylist() == rows
    assert found.schema.field("a").type == values.type


def test_more_numbers_than_are_held_at_a_time() -> None:
    """Several walks of ranges, one column that is too wide for them, and values of pairs: one table."""
    random = np.random.default_rng(3)
    n = 300
    times = {"min_time": random.integers(0, 2_000, n)}
    times["max_time"] = times["min_time"] + random.integers(0, 20, n)
    columns = {f"c{i}": random.normal(size=n) * 10.0 ** random.uniform(-9, 9, n) for i in range(14)}
    columns["wide"] = random.normal(size=n) * 10.0 ** random.uniform(-300, 150, n)
    left, right = pa.table({"id": range(n), **times}), pa.table({**times, **columns})
    asked = {f"sum of {name}": (name, "sum") for name in columns}
    asked |= {"std": ("wide", "std"), "sure": ("probability", "sum"), "soon": ("delta", "min")}
    condition = TimingCondition(within(-60, 60), 0.4)
    given = {"emit": "aggregates", "how": "left"}
    together = correlate_tables(left, right, condition, **given, aggregates=asked)
    assert together.column_names == ["left_id", *asked]
    for name, each in asked.items():
        alone = correlate_tables(left, right, condition, **given, aggregates={name: each})
        assert alone.column(name).equals(together.column(name)), name


@pytest.mark.parametrize("function", ["first", "min", "max"])
def test_one_long_text_makes_no_batches_of_few_rows(function: str) -> None:
    """Batches are bounded by the texts that are in them, and not by the longest of all."""
    n = 2_000
    times = {"min_time": range(n), "max_time": range(n)}
    texts = [f"t{i}" for i in range(n)]
    texts[7] = "t7" * 2_000_000
    left, right = pa.table({"id": range(n), **times}), pa.table({**times, "text": texts})
    found = correlate_tables(
        left, right, TimingCondition(within(0, 0), 1.0), emit="aggregates",
        aggregates={"text": ("text", function)}, options=CorrelateOptions(threads=1),
    )  # fmt: skip
    assert found.column("text").to_pylist() == texts
    assert found.column("text").num_chunks == 1
