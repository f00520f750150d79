"""Clock errors of tables: types, keys, statuses, bad input; and joins on clocks that were put right."""

from __future__ import annotations

import datetime as dt
import os
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pytest

from bench.clocks import SECOND, Case, Truth, made
from bench.hunt.clock_lines import Clocks
from bench.hunt.questions import clock_keys
from coincide import (
    ClockLimitsWarning,
    ConditionError,
    CorrelateOptions,
    DataError,
    DroppedRowsWarning,
    JoinReport,
    SchemaError,
    UnmatchableRowsWarning,
    border_crossing_tables,
    clock_error_tables,
    corrected,
    corrected_clock,
    correlate_tables,
    merged,
    overlapping,
    spans,
    stream_tables,
)
from coincide.model.clocks.correction import Segments, bounds_of, correct

STAMP = pa.timestamp("us", "UTC")

TRUTH = Truth(7.5, 60e-6, 0.002, 8000.0)


def case(truth: Truth = TRUTH) -> Case:
    return made(np.random.default_rng(1), 150, 250, 250, truth)


def stamps(times: np.ndarray) -> pa.Array:
    return pa.array(times + 1_700_000_000 * SECOND).view(STAMP)


def tables(one: Case) -> tuple[pa.Table, pa.Table]:
    own, others = (
        pa.table({"id": np.arange(times.size), "time": stamps(times)})
        for times in (one.left, one.right)
    )
    return own, others


def test_stamps_have_durations() -> None:
    one = case()
    report = JoinReport()
    found = clock_error_tables(*tables(one), max_offset="60s", report=report)
    (row,) = found.to_pylist()
    assert found.schema.field("start").type == STAMP
    assert found.schema.field("offset").type == pa.duration("us")
    assert (row["status"], row["segment"]) == ("found", 0)
    start = row["start"].timestamp() - 1_700_000_000
    assert row["offset"].total_seconds() == pytest.approx(7.5 + 60e-6 * start, abs=0.001)
    assert row["drift"] == pytest.approx(60, abs=5 * row["drift_error"])
    assert row["spread"].total_seconds() == pytest.approx(0.002, rel=0.2)
    assert row["low"] < dt.timedelta(0) < row["high"]
    assert row["pairs"] == pytest.approx(150, abs=8)
    assert row["chance"] < 1e-6
    assert row["rival_offset"] is None
    assert (row["left_rows"], row["right_rows"]) == (250, 250)
    assert report.summary().left.rows == 250


def test_numbers_have_ticks() -> None:
    one = case()
    own, others = (pa.table({"time": times / SECOND}) for times in (one.left, one.right))
    options = CorrelateOptions(unit="s", tick="us")
    (row,) = clock_error_tables(own, others, max_offset="60s", options=options).to_pylist()
    (plain,) = clock_error_tables(
        pa.table({"time": one.left}), pa.table({"time": one.right}), max_offset=60 * SECOND
    ).to_pylist()
    assert row == plain
    assert isinstance(row["start"], int)
    assert row["offset"] == pytest.approx(7.5 * SECOND, abs=SECOND)


def test_units_change_nothing() -> None:
    one = case()
    fine = [
        pa.table({"time": pa.array(t * 1000).view(pa.timestamp("ns"))})
        for t in (one.left, one.right)
    ]
    coarse = [
        pa.table({"time": pa.array(t).view(pa.timestamp("us"))}) for t in (one.left, one.right)
    ]
    options = CorrelateOptions(unit="ns")
    (a,) = clock_error_tables(*fine, max_offset="60s", options=options).to_pylist()
    (b,) = clock_error_tables(*coarse, max_offset="60s").to_pylist()
    assert a["status"] == b["status"] == "found"
    assert a["drift"] == pytest.approx(b["drift"], abs=1e-3)
    assert a["pairs"] == pytest.approx(b["pairs"], abs=1e-3)


def keyed() -> tuple[pa.Table, pa.Table, dict[str, float]]:
    """Three devices; c has nothing in common, and d is on one side alone."""
    offsets = {"a": 3.0, "b": -11.0}
    rng = np.random.default_rng(5)
    sides: list[list[tuple[str, int]]] = [[], []]
    for device, offset in offsets.items():
        one = made(rng, 120, 200, 200, Truth(offset, 30e-6, 0.003, 5000.0))
        for side, times in zip(sides, (one.left, one.right), strict=True):
            side += [(device, int(t)) for t in times]
    for side in sides:
        side += [("c", int(t)) for t in rng.uniform(0, 5000, 150) * SECOND]
    sides[0] += [("d", 5), ("d", 6)]
    own, others = (
        pa.table({"device": [d for d, _ in side], "time": [t for _, t in side]}) for side in sides
    )
    return own, others, offsets


def test_each_key_has_a_row() -> None:
    own, others, offsets = keyed()
    found = clock_error_tables(own, others, max_offset=60 * SECOND, by="device")
    assert found["device"].to_pylist() == ["a", "b", "c", "d"]
    assert found["status"].to_pylist() == ["found", "found", "not found", "too few"]
    for row in found.to_pylist():
        if row["status"] == "found":
            assert row["offset"] == pytest.approx(offsets[row["device"]] * SECOND, abs=0.2 * SECOND)
        else:
            assert row["offset"] is row["start"] is row["segment"] is row["chance"] is None
    assert found.to_pylist()[3]["right_rows"] == 0
    rng = np.random.default_rng(1)
    mixed = [t.take(pa.array(rng.permutation(t.num_rows))) for t in (own, others)]
    assert clock_error_tables(*mixed, max_offset=60 * SECOND, by="device").equals(found)
    renamed = others.rename_columns(["unit", "time"])
    other = clock_error_tables(own, renamed, max_offset=60 * SECOND, by=[("device", "unit")])
    assert other.equals(found)


def test_matched_columns_share_the_clock() -> None:
    rng = np.random.default_rng(6)
    causes = rng.uniform(0, 4000, 40)
    tags = rng.integers(0, 40, 1000)
    left = np.concatenate([causes, rng.uniform(0, 4000, 960)])
    right = np.concatenate([causes + 5 + rng.normal(0, 0.05, 40), rng.uniform(5, 4005, 960)])
    right_tags = np.concatenate([tags[:40], rng.integers(0, 40, 960)])
    options = CorrelateOptions(unit="s", tick="us")
    own = pa.table({"time": left, "tag": [f"t{k}" for k in tags]})
    others = pa.table({"time": right, "tag": [f"t{k}" for k in right_tags]})
    given: dict[str, Any] = {"max_offset": "60s", "options": options}
    assert clock_error_tables(own, others, **given)["status"].to_pylist() == ["not found"]
    (row,) = clock_error_tables(own, others, match="tag", **given).to_pylist()
    assert row["status"] == "found"
    assert row["offset"] == pytest.approx(5 * SECOND, abs=0.1 * SECOND)


def test_a_join_on_a_corrected_clock() -> None:
    one = case()
    own, others = tables(one)
    errors = clock_error_tables(own, others, max_offset="60s")
    given: dict[str, Any] = {"right_time": "time", "within": "8ms", "confidence": 0.5}
    raw = correlate_tables(own, others, left_time="time", **given)
    assert raw.num_rows < 10
    with pytest.warns(UnmatchableRowsWarning, match="without time or key"):
        found = correlate_tables(own, others, left_time=corrected_clock("time", errors), **given)
    assert found.num_rows >= 148
    # The right clock put on the left one by errors that were found the other way.
    back = clock_error_tables(others, own, max_offset="60s")
    with pytest.warns(UnmatchableRowsWarning):
        mirrored = correlate_tables(
            own, others, within="8ms", confidence=0.5, left_time="time",
            right_time=corrected_clock("time", back),
        )  # fmt: skip
    assert abs(mirrored.num_rows - found.num_rows) <= 2


def error_rows(**changed: Any) -> pa.Table:
    plain: dict[str, Any] = {
        "device": ["a", "a", "b", "c"],
        "status": ["found", "found", "found", "not found"],
        "start": pa.array([100, 300, 0, None], pa.int64()),
        "end": pa.array([200, 400, 1000, None], pa.int64()),
        "offset": [10.0, -20.0, 5.4, None],
        "drift": [0.0, 0.0, 1000.0, None],
    }
    return pa.table({**plain, **changed})


def test_between_segments_both_lines_may_hold() -> None:
    stamps = [("a", 100), ("a", 200), ("a", 250), ("a", 300), ("b", 1000), ("b", 0)]
    stamps += [("a", 99), ("a", 401), ("c", 150), ("x", 150)]
    own = pa.table({"id": range(10), "unit": [d for d, _ in stamps], "t": [t for _, t in stamps]})
    others = pa.table({"id": range(500), "t": range(90, 1090, 2)})
    clock = corrected_clock("t", error_rows(), by=[("unit", "device")])
    with pytest.warns(UnmatchableRowsWarning, match="4 without time or key"):
        found = correlate_tables(
            own, others, within=(0, 0), confidence=1e-9, left_time=clock, right_time="t",
            emit="lists", right_columns=["t"],
        )  # fmt: skip
    got = dict(zip(found["left_id"].to_pylist(), found["right_t"].to_pylist(), strict=True))
    assert {k: sorted(v) for k, v in got.items()} == {0: [110], 1: [210], 3: [280], 4: [1006]}
    with pytest.warns(UnmatchableRowsWarning):
        wide = correlate_tables(
            own, others, within=(0, 4), confidence=1e-9, left_time=clock, right_time="t",
            right_columns=["t"],
        )  # fmt: skip
    times = [r["right_t"] for r in wide.to_pylist() if r["left_id"] == 2]
    assert (min(times), max(times)) == (232, 262)  # 230 and 264 have no chance


@pytest.mark.parametrize("kind", clock_keys.KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_a_key_can_name_a_clock(kind: str, seed: int) -> None:
    assert clock_keys.wrong_of(kind, np.random.default_rng(seed)) is None


@pytest.mark.parametrize(
    ("kind", "stored"),
    [(pa.date32(), pa.string()), (pa.bool_(), pa.int64()), (pa.timestamp("us"), pa.timestamp("us", "UTC")),
     (pa.binary(), pa.string()), (pa.decimal128(5, 0), pa.int64()), (pa.date32(), pa.timestamp("us"))],
    ids=str,
)  # fmt: skip
def test_names_of_clocks_are_of_one_kind(kind: pa.DataType, stored: pa.DataType) -> None:
    errors = error_rows().set_column(0, "device", pa.nulls(4, pa.int64()).cast(stored))
    own = pa.table({"id": [1], "t": [2], "unit": pa.nulls(1, kind)})
    clock = corrected_clock("t", errors.slice(0, 1), by=[("unit", "device")])
    with pytest.raises(SchemaError, match=r"left\.unit is .* Cast one so that both are the same"):
        correlate_tables(own, own, left_time=clock, right_time="t", within=(0, 5), confidence=0.5)


def test_what_is_no_key_cannot_name_a_clock() -> None:
    own = pa.table({"id": [1], "t": [2], "unit": [0.5]})
    clock = corrected_clock("t", error_rows(), by=[("unit", "device")])
    with pytest.raises(SchemaError, match=r"left\.unit has a type that cannot be compared exactly"):
        correlate_tables(own, own, left_time=clock, right_time="t", within=(0, 5), confidence=0.5)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"max_offset": 0}, ConditionError, "max_offset is the largest offset"),
        ({"max_offset": "-3s"}, ConditionError, "must be positive"),
        ({"max_drift": 200}, ConditionError, "For 200 ppm write 0.0002"),
        ({"max_drift": -1e-6}, ConditionError, "max_drift is a fraction"),
        ({"chance": 0}, ConditionError, "chance must be above 0"),
        ({"left_time": ("a", "b")}, ConditionError, "left_time must be the name of a column"),
        ({"left_time": "when"}, SchemaError, "left has no column 'when'"),
        ({"by": "device"}, SchemaError, "left has no column 'device'"),
        ({"match": 3}, ConditionError, "match"),
        ({"options": CorrelateOptions(tick="ms")}, ConditionError, "us, or in ns"),
    ],
)
def test_bad_arguments(changed: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        clock_error_tables(*tables(case()), **{"max_offset": "60s", **changed})


def test_the_largest_offset_has_no_default() -> None:
    with pytest.raises(TypeError, match="max_offset"):
        clock_error_tables(*tables(case()))  # type: ignore[call-arg]


def test_bad_rows_are_refused_or_dropped() -> None:
    one = case()
    own = pa.table({"time": [*(one.left / SECOND), float("nan"), None]})
    others = pa.table({"time": one.right / SECOND})
    options = {"unit": "s", "tick": "us"}
    with pytest.raises(DataError, match="left: NaN or infinity in time in 1 row"):
        clock_error_tables(own, others, max_offset="60s", options=CorrelateOptions(**options))
    drop = CorrelateOptions(invalid="drop", **options)
    with (
        pytest.warns(DroppedRowsWarning),
        pytest.warns(UnmatchableRowsWarning, match="1 without time or key"),
    ):
        (row,) = clock_error_tables(own, others, max_offset="60s", options=drop).to_pylist()
    assert (row["status"], row["left_rows"]) == ("found", 250)


def test_limits_that_do_not_fit_are_said() -> None:
    one = case(truth=Truth(7.5, 190e-6, 0.002, 8000.0))
    with pytest.warns(ClockLimitsWarning, match="at the limit max_drift. Widen it"):
        clock_error_tables(*tables(one), max_offset="60s", max_drift=190e-6)
    with pytest.warns(ClockLimitsWarning, match=r"less than 8 times max_offset .found 20 min"):
        found = clock_error_tables(*tables(one), max_offset="1200s")
    assert found["status"].to_pylist() == ["too few"]


def at_both_ends(taps: np.ndarray) -> np.ndarray:
    """Seconds: the same few events, and a day later again, a bit slower."""
    return np.concatenate([taps, 86400 + 1.13 * taps])


@pytest.mark.parametrize(
    ("max_offset", "max_drift"),
    [("3s", 2e-4), ("5s", 2e-4), ("8s", 2e-4), ("10s", 2e-4), ("3s", 69e-6)],
)
def test_events_at_both_ends_of_a_day_are_found(max_offset: str, max_drift: float) -> None:
    own = at_both_ends(np.array([0, 1.9, 4.3, 6.1, 9.2, 11.8]))
    others = own + 0.622 + 20.6e-6 * own
    sides = [{"time": np.rint(each * SECOND).astype(np.int64)} for each in (own, others)]
    options = CorrelateOptions(unit="us")
    (row,) = clock_error_tables(
        *sides, max_offset=max_offset, max_drift=max_drift, options=options
    ).to_pylist()
    assert (row["status"], row["segment"]) == ("found", 0)
    assert row["offset"] == pytest.approx(0.622 * SECOND, abs=2)
    assert row["drift"] == pytest.approx(20.6, abs=1e-3)


def test_an_offset_that_was_not_looked_for_is_not_found_by_a_wider_search() -> None:
    own = at_both_ends(np.array([0, 1.9, 4.3, 6.1, 9.2, 11.8]))
    sides = [{"time": np.rint(each * SECOND).astype(np.int64)} for each in (own, own + 4.5)]
    options = CorrelateOptions(unit="us")
    said = "max_drift alone moves the offset by more than max_offset .* .found 8.64[0-9]* s and 3 s.. Give"
    with pytest.warns(ClockLimitsWarning, match=said):
        found = clock_error_tables(*sides, max_offset="3s", options=options)
    assert found["status"].to_pylist() == ["not found"]


def test_nothing_is_said_of_empty_tables() -> None:
    schema = pa.schema([("time", pa.int64()), ("device", pa.string())])
    empty = schema.empty_table()
    (row,) = clock_error_tables(empty, empty, max_offset=60).to_pylist()
    assert (row["status"], row["left_rows"]) == ("too few", 0)
    assert clock_error_tables(empty, empty, max_offset=60, by="device").num_rows == 0


def test_what_errors_can_be_bounds_times() -> None:
    ends = np.array([0, 2, 3])
    starts, stops = np.array([100, 300, 0]), np.array([200, 400, 1000])
    offsets, drifts = np.array([10.0, -20.0, 5.0]), np.array([0.1, -0.2, 0.001])
    widths = np.array([0, 0, 0])
    segments = Segments(ends, starts, stops, offsets, drifts, widths)
    times = np.arange(1001)
    low, high = bounds_of(segments)
    for clock in (0, 1):
        clocks = np.full(times.size, clock)
        earliest, latest, known = np.zeros(1001, int), np.zeros(1001, int), np.zeros(1001, bool)
        correct(times, clocks, segments, earliest, latest, known)
        assert known.sum() == (301, 1001)[clock]
        assert ((earliest - times)[known] >= low).all()
        assert ((latest - times)[known] <= high).all()
    assert (low, high) == (-41, 31)
    assert bounds_of(segments._replace(widths=np.array([0, 7, 0]))) == (-48, 31)
    assert bounds_of(Segments(ends[:1], *(each[:0] for each in segments[1:]))) == (0, 0)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"time": 3}, ConditionError, "time must be the name of a column"),
        ({"errors": 3}, SchemaError, "errors must be a table"),
        ({"errors": pa.table({"start": [1]})}, SchemaError, "errors has no column 'status'"),
        ({"by": "device"}, SchemaError, "errors has no column 'device'"),
        ({}, ConditionError, "errors has several clocks .* for example by='device'"),
    ],
)
def test_bad_errors(given: dict[str, Any], error: type[Exception], message: str) -> None:
    plain = {"time": "t", "errors": error_rows().drop_columns("device")}
    with pytest.raises(error, match=message):
        corrected_clock(**{**plain, **given})


def test_errors_of_numbers_are_not_for_stamps() -> None:
    own, others = tables(case())
    clock = corrected_clock("time", error_rows().slice(0, 2))
    with pytest.raises(SchemaError, match=r"errors.start and left.time must both be timestamps"):
        correlate_tables(
            own, others, within="1s", confidence=0.5, left_time=clock, right_time="time"
        )


@pytest.mark.parametrize("name", ["start", "end", "offset", "drift"])
def test_what_is_found_has_a_line(name: str) -> None:
    column = error_rows()[name].to_pylist()
    clock = corrected_clock("t", error_rows(**{name: [None, *column[1:]]}), by="device")
    own = pa.table({"id": [1], "t": [150], "device": ["a"]})
    with pytest.raises(DataError, match=f"errors.{name} is null where an error is found"):
        correlate_tables(own, own, within=1, confidence=0.5, left_time=clock, right_time="t")


def test_no_key_is_no_clock() -> None:
    """Errors without a key, as a table made by hand may have them, correct nothing."""
    errors = error_rows(device=[None, None, "b", "c"])
    own = pa.table({"id": [1, 2], "t": [150, 150], "device": pa.array([None, "b"])})
    clock = corrected_clock("t", errors, by="device")
    with pytest.warns(UnmatchableRowsWarning, match="1 without time or key"):
        found = correlate_tables(
            own, pa.table({"id": [3], "t": [156]}), within=8, confidence=0.5, left_time=clock,
            right_time="t",
        )  # fmt: skip
    assert found["left_id"].to_pylist() == [2]


def test_offsets_of_stamps_are_durations() -> None:
    """Spark writes intervals to Parquet as whole microseconds, which would be taken for ticks."""
    own, others = tables(case())
    errors = clock_error_tables(own, others, max_offset="60s")
    place = errors.schema.get_field_index("offset")
    bare = errors.set_column(place, "offset", errors["offset"].cast(pa.int64()))
    with pytest.raises(SchemaError, match=r"errors.offset must hold durations.*found int64"):
        correlate_tables(
            own, others, within="1s", confidence=0.5, right_time="time",
            left_time=corrected_clock("time", bare),
        )  # fmt: skip


@pytest.mark.parametrize("is_file", [False, True])
def test_clocks_that_overlap_need_their_key(is_file: bool, tmp_path: Path) -> None:
    errors: Any = error_rows()
    if is_file:
        csv.write_csv(errors, tmp_path / "errors.csv")
        errors = tmp_path / "errors.csv"
    with pytest.raises(ConditionError, match=r"several clocks .*segments that overlap in time"):
        corrected_clock("t", errors)
    own = pa.table({"id": [1, 2], "t": [150, 150], "device": ["a", "b"]})
    others = pa.table({"id": [3], "t": [160]})
    clock = corrected_clock("t", errors, by="device")
    found = correlate_tables(own, others, within=1, confidence=0.5, left_time=clock, right_time="t")
    assert found["left_id"].to_pylist() == [1]
    assert repr(clock) == "corrected_clock('t', errors, by=[('device', 'device')])"


@pytest.mark.parametrize("is_file", [False, True])
def test_keys_that_tell_clocks_apart_must_be_named(is_file: bool, tmp_path: Path) -> None:
    """Also where one of the clocks alone is found: its errors are not those of the others."""
    own, others, _ = keyed()
    whole: Any = clock_error_tables(own, others, max_offset=60 * SECOND, by="device").slice(1, 2)
    one: Any = whole.slice(0, 1)
    if is_file:
        for name, table in (("whole", whole), ("one", one)):
            csv.write_csv(table, tmp_path / f"{name}.csv")
        whole, one = tmp_path / "whole.csv", str(tmp_path / "one.csv")
    with pytest.raises(ConditionError, match=r"found keys device.*for example by='device'"):
        corrected_clock("time", whole)
    assert corrected_clock("time", whole, by="device").errors.num_rows == 1
    assert corrected_clock("time", one).errors.num_rows == 1


def test_segments_that_touch_are_of_one_clock() -> None:
    assert corrected_clock("t", error_rows(end=[300, 400, 1000, None]).slice(0, 2)).by == ()
    one_after_the_other = error_rows(start=pa.array([100, 300, 500, None], pa.int64()))
    corrected_clock("t", one_after_the_other)


def test_offsets_may_be_texts() -> None:
    own, others = tables(case())
    errors = clock_error_tables(own, others, max_offset="60s")
    place = errors.schema.get_field_index("offset")
    texts = pa.array([f"{each}us" for each in errors["offset"].cast(pa.int64()).to_pylist()])
    given: dict[str, Any] = {"within": "1s", "confidence": 0.5, "right_time": "time"}
    wanted, found = (
        correlate_tables(own, others, left_time=corrected_clock("time", each), **given)
        for each in (errors, errors.set_column(place, "offset", texts))
    )
    assert wanted.num_rows
    assert found.equals(wanted)


@pytest.mark.parametrize("length", [2, 5, 30])
def test_pairs_of_bursts_are_no_independent_witnesses(length: int) -> None:
    """Events of shared bursts have many pairs each: an error by the number of pairs would be too small."""
    found = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        bursts, n = rng.uniform(0, 21_600, 40), 600
        # Shorter than a bin or two, a burst is one cause that is seen at many times.
        own, others = (rng.choice(bursts, n) + rng.exponential(length, n) for _ in range(2))
        left, right = (
            pa.table({"time": np.round(t * 1e6).astype(np.int64)}) for t in (own, others)
        )
        for row in clock_error_tables(left, right, max_offset=60 * SECOND).to_pylist():
            if row["status"] == "found":
                found += 1
                assert row["offset_error"] > 1.5 * row["spread"] / row["pairs"] ** 0.5
                assert abs(row["offset"]) < 4 * row["offset_error"]
    # Those that are longer than a peak may be are no common cause.
    assert (found > 0) == (length == 2)


CASES = int(os.environ.get("COINCIDE_CASES", "40"))


def right_of(lines: list[dict[str, Any]], device: str, stamp: int) -> int | None:
    """What a stamp becomes: of the one segment that holds it, in exact numbers."""
    for line in lines:
        if line["device"] == device and line["start"] <= stamp <= line["end"]:
            drift = Fraction(line["drift"] / 1e6)
            return stamp + round(Fraction(line["offset"]) + drift * (stamp - line["start"]))
    return None


@pytest.mark.parametrize("seed", range(CASES))
def test_a_corrected_table_is_what_the_lines_say(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lines = Clocks.drawn(rng, 900).lines
    names = rng.choice(list("abcx"), 80).tolist()
    stamps_of = {name: rng.integers(0, 4000, 80).tolist() for name in ("start", "end")}
    kind = [pa.int64(), pa.timestamp("us"), pa.timestamp("us", "UTC")][seed % 3]
    given = pa.table({
        "unit": names, "x": range(80),
        **{name: pa.array(each, pa.int64()).view(kind) for name, each in stamps_of.items()},
    })  # fmt: skip
    errors = pa.Table.from_pylist(lines)
    if seed % 3:
        for name in ("start", "end"):
            i = errors.schema.get_field_index(name)
            errors = errors.set_column(i, name, errors[name].combine_chunks().view(kind))
        i = errors.schema.get_field_index("offset")
        text = [f"{line['offset'] * 1000:.0f}ns" for line in lines]
        errors = errors.set_column(i, "offset", pa.array(text))
    wanted = {
        name: [right_of(lines, *each) for each in zip(names, stamps_of[name], strict=True)]
        for name in ("start", "end")
    }
    kept = [row for row in range(80) if None not in (wanted["start"][row], wanted["end"][row])]
    said = f"table, 80 rows: skipped {80 - len(kept)} with start or end at a time that no segment"
    with pytest.warns(UnmatchableRowsWarning, match=said):
        found = corrected(given, ("start", "end"), errors, by=[("unit", "device")])
    assert found.column_names == given.column_names
    assert found.schema.field("start").type == kind
    for name, values in wanted.items():
        times = found[name].combine_chunks().view(pa.int64()).to_pylist()
        assert times == [values[row] for row in kept]
    assert found["x"].to_pylist() == kept


def test_an_end_that_no_clock_tells_goes_not_on() -> None:
    """An end after the last segment is unknown; one that is missing goes on, whatever the clock."""
    line = {"status": ["found"], "start": [0], "end": [1000], "offset": [50.0], "drift": [0.0]}
    stays = {"id": [1, 2, 3], "start": [10, 10, 20], "end": [30, 1001, None]}
    with pytest.warns(UnmatchableRowsWarning, match=r"skipped 1 .*.found start=10, end=1001"):
        put_right = corrected(stays, ("start", "end"), line)
    assert put_right.to_pylist() == [
        {"id": 1, "start": 60, "end": 80}, {"id": 3, "start": 70, "end": None},
    ]  # fmt: skip
    late = {"id": [9], "start": [5000], "end": [5001]}
    found = correlate_tables(
        put_right, late, condition=overlapping(), right_time=spans("start", "end"),
        left_time=spans("start", "end", open_ends=True),
    )  # fmt: skip
    assert found["left_id"].to_pylist() == [3]


def test_corrected_tables_serve_where_no_clock_is_taken() -> None:
    errors = {"status": ["found"], "start": [0], "end": [1000], "offset": [50.0], "drift": [0.0]}
    stays = {"id": [1, 2], "start": [10, 30], "end": [30, 90]}
    put_right = corrected(stays, ("start", "end"), errors)
    assert merged(put_right, time=spans("start", "end")).to_pylist()[0]["start"] == 60
    readings = {"stream_id": ["o"] * 2, "time": [0, 60], "value": [20.0, 230.0]}
    queries = {"query_id": ["hot"], "lower": [200.0], "upper": [250.0]}
    crossings = border_crossing_tables(corrected(readings, "time", errors), queries)
    assert crossings["min_time"].to_pylist() == [50]


def test_numbers_keep_their_unit() -> None:
    errors = {
        "status": ["found"],
        "start": [0],
        "end": [10**9],
        "offset": [250_000.0],
        "drift": [0.0],
    }
    options = CorrelateOptions(unit="s", tick="us")
    halves = pa.array([1.5, None]), pa.array([Decimal("1.5"), None])
    for times, wanted in [
        *((each, 1.75) for each in halves),
        (pa.array([2, None], pa.int32()), 2.25),
    ]:
        found = corrected(pa.table({"t": times}), "t", errors, options=options)
        assert found["t"].to_pylist() == [wanted, None]
    with pytest.raises(DataError, match="NaN or infinity"):
        corrected({"t": np.array([np.inf])}, "t", errors, options=options)


def test_a_stream_says_where_the_clock_ends() -> None:
    given: dict[str, Any] = {"within": (0, 5), "confidence": 0.5, "left_delay": 1, "right_delay": 1}
    clock = corrected_clock("t", error_rows().slice(0, 2))
    with pytest.warns(
        UnmatchableRowsWarning, match=r"of left_time after the last segment .* .found 400."
    ):
        stream_tables(**given, left_time=clock, right_time="t")
