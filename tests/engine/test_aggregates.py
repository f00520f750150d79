"""Aggregates of the matches of each left event: the reference's values, whatever the types and batches."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide import (
    CausalityCondition,
    CorrelateOptions,
    DataError,
    Temporal,
    TimingCondition,
    around,
    causality_tables,
    correlate_tables,
    overlapping,
    spans,
    within,
)
from cpu_fallback.reference.aggregates import (
    Aggregate,
    Expected,
    aggregated,
    expected_numbers,
    is_same,
    reduced,
)
from cpu_fallback.reference.join import Asked, Row, others
from cpu_fallback.reference.spans import Span, is_overlapping, overlap
from tests.helpers.aggregates import (
    CASES,
    INF,
    KINDS,
    LARGEST,
    LEAST,
    NAN,
    NUMBERS,
    OF_A_PAIR,
    OF_PAIRS,
    OPTIONS,
    WHERES,
    array,
    check,
    fits,
    function_of,
    numbered,
    output_type,
    plain,
    values_of,
)
from tests.helpers.comparison import condition_of as condition_of_case
from tests.helpers.comparison import ticks_of
from tests.helpers.histogram_tables import by_device, events, histograms_of, random_templates
from tests.helpers.match_cases import condition_of, match_cases, tables_of
from tests.helpers.strategies import random_cases


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=max(1, CASES // 15))
@given(data=st.data())
def test_values_are_the_references(name: str, data: st.DataObject) -> None:
    kind = KINDS[name]
    drawn = data.draw(match_cases(10))
    is_one, how = data.draw(st.booleans()), data.draw(st.sampled_from(["inner", "left"]))
    where, admits = data.draw(st.sampled_from(WHERES))
    left, right = (numbered(side) for side in drawn[:2])
    right = left if is_one else right
    values = data.draw(values_of(kind, len(right)))
    right = [{**row, "value": value} for row, value in zip(right, values, strict=True)]
    left = right if is_one else left
    asked = drawn._replace(left=left, right=right, admits=others(admits) if is_one else admits)
    pairs = data.draw(st.lists(st.sampled_from(list(OF_PAIRS)), unique=True, max_size=4))
    of_value: dict[str, Aggregate] = {f: ("value", f) for f in kind.functions}
    named = of_value | {each: OF_PAIRS[each] for each in pairs}
    aggregates = {each: named[each] for each in data.draw(st.permutations(list(named)))}
    tables = list(tables_of(asked))
    tables[1] = tables[1].append_column("value", array(values, kind.type))
    sides = (tables[1], None) if is_one else tuple(tables)
    asking: dict[str, Any] = {
        "by": asked.by, "where": where, "how": how, "left_columns": "row", "emit": "aggregates",
        "options": data.draw(OPTIONS),
    }  # fmt: skip
    expected = aggregated(asked, aggregates)
    if not all(
        fits(own["sum"], output_type(kind.type, "sum")) for own in expected if own and "sum" in own
    ):
        with pytest.raises(DataError):
            correlate_tables(*sides, condition_of(asked), aggregates=aggregates, **asking)
        del aggregates["sum"]
    found = correlate_tables(*sides, condition_of(asked), aggregates=aggregates, **asking)
    check(found, expected, aggregates, how)
    assert found.column_names == [*asked.by, "left_row", *aggregates]
    for function in aggregates.keys() & set(kind.functions):
        assert found.schema.field(function).type == output_type(kind.type, function)


def is_near(found: float | None, expected: Expected) -> bool:
    """Whether a sum of rounded products, rounded once or divided, is the exact one but for rounding."""
    value, size = expected
    if found is None or not isinstance(value, Fraction):
        return is_same(found, value)
    rounding = size / 2**48 + Fraction(5, 10**322)
    if math.isinf(found):  # what is a little above the largest float may be rounded to it, or up
        return abs(value) + rounding > Fraction(LARGEST) and (found > 0) == (value > 0)
    return abs(Fraction(found) - value) <= rounding


@pytest.mark.parametrize("name", ["int64", "float64", "largest", "decimal, 2", "uint64", "bool"])
@settings(max_examples=max(1, CASES // 8))
@given(data=st.data())
def test_expected_numbers_are_the_references(name: str, data: st.DataObject) -> None:
    kind = KINDS[name]
    drawn = data.draw(match_cases(10))
    is_one, how = data.draw(st.booleans()), data.draw(st.sampled_from(["inner", "left"]))
    has_confidence = data.draw(st.booleans())
    where, admits = data.draw(st.sampled_from(WHERES))
    left, right = (numbered(side) for side in drawn[:2])
    right = left if is_one else right
    values = data.draw(values_of(kind, len(right)))
    right = [{**row, "value": value} for row, value in zip(right, values, strict=True)]
    left = right if is_one else left
    asked = drawn._replace(left=left, right=right, admits=others(admits) if is_one else admits)
    asked = asked._replace(confidence=min(asked.confidence, 0.5) if has_confidence else 2.0**-48)
    aggregates: dict[str, Aggregate] = {
        "n": "count", "values": ("value", "count"), "sum": ("value", "sum"), "mean": ("value", "mean"),
        "apart": ("delta", "sum"), "usual": ("delta", "mean"), "likely": ("probability", "mean"),
    }  # fmt: skip
    aggregates = {each: aggregates[each] for each in data.draw(st.permutations(list(aggregates)))}
    tables = list(tables_of(asked))
    tables[1] = tables[1].append_column("value", array(values, kind.type))
    sides = (tables[1], None) if is_one else tuple(tables)
    given: dict[str, Any] = {"condition": condition_of(asked)}
    found = correlate_tables(
        *sides, **given if has_confidence else {"within": (asked.lo, asked.hi)}, by=asked.by,
        where=where, how=how, left_columns="row", emit="aggregates", aggregates=aggregates,
        weights="probability", options=data.draw(OPTIONS),
    )  # fmt: skip
    expected = expected_numbers(asked, aggregates)
    rows = [i for i, own in enumerate(expected) if own is not None or how == "left"]
    assert sorted(found["left_row"].to_pylist()) == rows
    for row in found.to_pylist():
        own = expected[row["left_row"]]
        for each, asking in aggregates.items():
            nothing = Expected(Fraction(0) if function_of(asking) == "count" else None, Fraction(0))
            assert is_near(row[each], nothing if own is None else own[each]), (row, each)
    assert set(found.schema.types[-len(aggregates) :]) == {pa.float64()}


@pytest.mark.parametrize(
    ("seed", "cases", "is_huge"),
    [(31, 80, False), (32, 40, True), pytest.param(33, 800, False, marks=pytest.mark.slow)],
)
def test_times_and_keys_of_any_size(seed: int, cases: int, is_huge: bool) -> None:
    """Epochs in nanoseconds, times near the limits, keys of texts and numbers, duplicates."""
    aggregates: dict[str, Aggregate] = {
        "n": "count", "first": ("id", "first"), "last": ("id", "last"), "ids": ("id", "sum"),
        "latest": ("max_time", "max"), "soonest": ("delta", "min"), "farthest": ("delta", "max"),
        "usual": ("delta", "mean"), "spread": ("delta", "std"),
    }  # fmt: skip
    matched = 0
    for number, case in enumerate(random_cases(seed, cases, max_size=14, huge=is_huge)):
        how = ("inner", "left")[number % 2]
        sides = numbered(case.left), case.right
        tables = [ticks_of(side, case.by) for side in sides]
        expected = aggregated(Asked(*sides, *case[2:]), aggregates)
        found = correlate_tables(
            *tables, condition_of_case(case), by=case.by, how=how, emit="aggregates",
            aggregates=aggregates,
            options=CorrelateOptions(threads=1 + number % 2, batch_pairs=1 + number % 7),
        )  # fmt: skip
        check(found, expected, aggregates, how, "left_id")
        matched += sum(own["n"] for own in expected if own)
    assert matched > cases


@pytest.mark.parametrize("where", [None, "delta >= 2"])
def test_of_right_events(where: str | None) -> None:
    """What the join with its sides swapped finds, delta still from left to right."""
    aggregates: dict[str, Aggregate] = {
        "n": "count", "first": ("id", "first"), "ids": ("id", "sum"), "soonest": ("delta", "min"),
        "farthest": ("delta", "max"), "usual": ("delta", "mean"), "all": ("delta", "sum"),
        "spread": ("delta", "std"),
    }  # fmt: skip
    matched = alone = 0
    for number, case in enumerate(random_cases(34, 20, max_size=14)):
        left, right = ticks_of(case.left, case.by), ticks_of(case.right, case.by)
        asked: dict[str, Any] = {
            "by": case.by, "emit": "aggregates", "aggregates": aggregates,
            "options": CorrelateOptions(threads=1 + number % 2, batch_pairs=1 + number % 7),
        }  # fmt: skip
        condition = condition_of_case(case)
        found = correlate_tables(left, right, condition, how="right", where=where, **asked)
        turned = where and "delta <= -2"
        wanted = correlate_tables(
            right, left, condition.mirrored(), how="left", where=turned, **asked
        ).to_pylist()
        assert found.column_names == [*case.by, "right_id", *aggregates]
        for row, other in zip(found.to_pylist(), wanted, strict=True):
            other["right_id"] = other.pop("left_id")
            other["soonest"], other["farthest"] = other["farthest"], other["soonest"]
            for name in ("soonest", "farthest", "usual", "all"):
                other[name] = None if other[name] is None else 0 - other[name]
            assert row == other
            matched, alone = matched + row["n"], alone + (row["n"] == 0)
    assert matched > 20
    assert alone > 5


WIDE = {
    "amp": KINDS["float64"]._replace(
        values=(1e300, 1e-300, -1e300, -1e-300, 1.0, LEAST, -0.1, 2.0**-53, 1e16, 3.5)
    ),
    "small": KINDS["int16"], "large": KINDS["int64"]._replace(values=(2**54, -(2**54), 5, -3, 2**53)),
    "seq": KINDS["uint64"]._replace(values=(2**53 + 1, 0, 7, 2**40)),
    "cost": KINDS["decimal, 18"]._replace(
        values=tuple(map(Decimal, ("12345678.000000000000000001", "-0.5", "0.25", "-12345678")))
    ),
    "single": KINDS["float32"]._replace(values=(0.1, -0.1, 3e38, -3e38, 1e-45)),
    "flag": KINDS["bool"], "name": KINDS["string"], "at": KINDS["timestamp us"],
    "lasted": KINDS["duration s"],
}  # fmt: skip
"""Columns of the wide windows, whose sums fit."""
WIDE_AGGREGATES: dict[str, Aggregate] = OF_PAIRS | {
    f"{function} {name}": (name, function)
    for name, kind in (*WIDE.items(), ("odd", KINDS["float64"]))
    for function in kind.functions
}


def crowd(seed: int, count: int, longest: int, span: int = 3000) -> list[Row]:
    """Events of a few lengths, in no order, with nulls in all columns."""
    rng = np.random.default_rng([7, seed])
    low = rng.integers(0, span, count)
    lengths = rng.choice([0, min(1, longest), longest // 4, longest], count)
    columns = {
        name: [None if k < 0 else held[k] for k in rng.integers(-1, len(held), count)]
        for name, kind in WIDE.items()
        for held in [plain(array(kind.values, kind.type))]
    }
    # A few of these make a part of the sums infinite, and some NaN.
    odd = [
        [INF, -INF, NAN, -0.0, 2.5][k]
        for k in rng.choice(5, count, p=[0.002, 0.002, 0.002, 0.5, 0.494])
    ]
    keys = rng.choice(["a", "b"], count).tolist()
    return [
        {
            "min_time": int(low[i]), "max_time": int(low[i] + lengths[i]), "id": i, "key": keys[i],
            **{name: column[i] for name, column in columns.items()}, "odd": odd[i],
        }
        for i in range(count)
    ]  # fmt: skip


def _is_smaller(left: Row, right: Row) -> bool:
    own, other = left["small"], right["small"]
    return None not in (own, other) and own < other


def table_of(rows: list[Row]) -> pa.Table:
    columns = {name: array([row[name] for row in rows], kind.type) for name, kind in WIDE.items()}
    for name in ("min_time", "max_time", "id", "key", "odd"):
        columns[name] = pa.array([row[name] for row in rows])
    return pa.table(columns)


@pytest.mark.parametrize("what", ["plain", "keys", "where", "instants", "one stream", "sure"])
def test_wide_windows(what: str) -> None:
    """Hundreds of matches of each event: most are sure by their bounds, others are probed."""
    is_one, longest = what == "one stream", 0 if what == "instants" else 64
    right = crowd(1, 65, longest, 400) if is_one else crowd(1, 2000, longest)
    left = right if is_one else crowd(2, 8, longest)
    admits = WHERES[0][1]
    if what == "where":
        admits = _is_smaller
    asked = Asked(
        left, right, -240, 260, 1.0 if what == "sure" else 0.6, ("key",) if what == "keys" else (),
        others(admits) if is_one else admits,
    )  # fmt: skip
    expected = aggregated(asked, WIDE_AGGREGATES)
    counts = [own["n"] if own else 0 for own in expected]
    assert max(counts) > (250 if what in ("plain", "instants", "sure") else 60)
    sides = (table_of(right), None) if is_one else (table_of(left), table_of(right))
    given: dict[str, Any] = {} if longest else {"left_time": "min_time"}
    if not longest:
        given["right_time"] = "min_time"
    for options in (
        CorrelateOptions(threads=2),
        CorrelateOptions(threads=1, classes=1, batch_pairs=100),
    ):
        found = correlate_tables(
            *sides, condition_of(asked), emit="aggregates", aggregates=WIDE_AGGREGATES, how="left",
            by=asked.by, where="left_small < right_small" if what == "where" else None,
            options=options, **given,
        )  # fmt: skip
        check(found, expected, WIDE_AGGREGATES, "left", "left_id")


def test_probabilities_are_those_of_pairs() -> None:
    """To the last bit, where a probability is rounded, too."""
    left, right = (table_of(crowd(seed, n, 61)) for seed, n in ((3, 60), (4, 900)))
    condition = TimingCondition(within(-100, 133), 0.3)
    lists = correlate_tables(left, right, condition, emit="lists", probability=True)
    own = {row["left_id"]: row["probability"] for row in lists.to_pylist()}
    aggregates: dict[str, Aggregate] = {
        function: ("probability", function) for function in ("sum", "mean", "std", "min", "max", "count")
    }  # fmt: skip
    for batch in (None, 7):
        found = correlate_tables(
            left, right, condition, emit="aggregates", aggregates=aggregates,
            options=CorrelateOptions(batch_pairs=batch),
        ).to_pylist()  # fmt: skip
        assert {row["left_id"] for row in found} == own.keys()
        for row in found:
            for function in aggregates:
                assert is_same(row[function], reduced(function, own[row["left_id"]]), function)
    assert any(0.3 < p < 0.99 for each in own.values() for p in each)


@pytest.mark.parametrize("seed", range(3))
def test_right_tables_in_chunks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    right, left = table_of(crowd(8, 300, 64)), table_of(crowd(9, 20, 64))
    asked: dict[str, Any] = {
        "condition": TimingCondition(within(-90, 90), 0.6), "emit": "aggregates",
        "aggregates": WIDE_AGGREGATES, "how": "left",
    }  # fmt: skip
    whole = correlate_tables(left, right, **asked)
    cuts = np.sort(rng.integers(0, 300, 4)).tolist()
    edges = [0, *cuts, 300]
    pieces = [right.slice(a, b - a) for a, b in pairwise(edges)]
    parts = correlate_tables(left, pa.concat_tables(pieces), **asked)
    assert list(map(repr, parts.to_pylist())) == list(map(repr, whole.to_pylist()))
    offset = pa.concat_tables([right[:7], right]).slice(7)
    assert list(map(repr, correlate_tables(left, offset, **asked).to_pylist())) == list(
        map(repr, whole.to_pylist())
    )


def test_deltas_are_between_stamps() -> None:
    """As `pair_columns` has them, in the unit of the tick."""
    rng = np.random.default_rng(5)
    table = pa.table(
        {"id": range(80), "t": pa.array(rng.integers(0, 9000, 80), pa.timestamp("ms"))}
    )
    asked: dict[str, Any] = {
        "within": "1s", "confidence": 0.9, "left_time": around("t", "10ms"), "right_time": "t",
    }  # fmt: skip
    aggregates = {f: ("delta", f) for f in OF_A_PAIR}
    for options, name in (
        (CorrelateOptions(), "delta_us"),
        (CorrelateOptions(unit="ns"), "delta_ns"),
    ):
        asked["options"] = options
        lists = correlate_tables(
            table, table, emit="lists", pair_columns="delta", **asked
        ).to_pylist()
        own = {row["left_id"]: row[name] for row in lists}
        rows = correlate_tables(table, table, emit="aggregates", aggregates=aggregates, **asked)
        assert rows.schema.field("sum").type == rows.schema.field("min").type == pa.int64()
        found = rows.to_pylist()
        assert {row["left_id"] for row in found} == own.keys()
        for row in found:
            for function in OF_A_PAIR:
                want = reduced(function, own[row["left_id"]])
                assert is_same(row[function], want, function), (row, function)


@pytest.mark.parametrize("by", [(), "place"])
@pytest.mark.parametrize("is_one", [False, True])
def test_histograms(is_one: bool, by: Any) -> None:
    """The values, deltas and probabilities of the lists, in the order of their midpoints."""
    rng = np.random.default_rng(3)
    templates = random_templates(2)
    amounts = [
        None if k < 0 else [0.1, -1e300, 1e-300, 7.0, 1e300][k] for k in rng.integers(-1, 5, 400)
    ]
    right = events(2, 400).append_column("amp", pa.array(amounts, pa.float64()))
    left = right if is_one else events(1, 60)
    ends = [
        (max(b for _, b, _ in each), min(a for a, _, _ in each))
        for each in histograms_of(right, templates)
    ]
    asked: dict[str, Any] = {
        "condition": TimingCondition(within(-60, 150), 0.5), "left_time": by_device(templates), "by": by,
    }  # fmt: skip
    sides = (left, None) if is_one else (left, right)
    if not is_one:
        asked["right_time"] = by_device(templates)
    aggregates: dict[str, Aggregate] = {"n": "count"}
    for column in ("amp", "probability", "delta"):
        functions = NUMBERS if column == "amp" else OF_A_PAIR
        aggregates |= {f"{f} {column}": (column, f) for f in functions}
    lists = correlate_tables(*sides, emit="lists", probability=True, pair_columns="delta", **asked)
    found = correlate_tables(*sides, emit="aggregates", aggregates=aggregates, how="left", **asked)
    assert found["left_id"].to_pylist() == list(range(left.num_rows))
    own = {row["left_id"]: row for row in lists.to_pylist()}
    assert max(len(row["right_id"]) for row in own.values()) > 8
    for row in found.to_pylist():
        if (of := own.get(row["left_id"])) is None:
            assert row["n"] == row["count amp"] == row["count delta"] == 0
            assert row["sum amp"] is row["first amp"] is row["max probability"] is None
            continue
        order = sorted(
            zip(of["right_id"], of["probability"], of["delta"], strict=True),
            key=lambda each: (sum(ends[each[0]]), *ends[each[0]], each[0]),
        )
        ids, probabilities, deltas = zip(*order, strict=True)
        values = {"amp": [amounts[j] for j in ids], "probability": probabilities, "delta": deltas}
        assert row["n"] == len(ids)
        for column, known in values.items():
            for function in NUMBERS if column == "amp" else OF_A_PAIR:
                got, want = row[f"{function} {column}"], reduced(function, list(known))
                assert is_same(got, want, function), (row["left_id"], function, column, got, want)


@pytest.mark.parametrize("is_one", [False, True])
def test_spans(is_one: bool) -> None:
    """What they have in common, and the values of the earliest to the latest start."""
    rng = np.random.default_rng(6)
    sides = []
    for count in (12, 55):
        starts = rng.permutation(320)[:count]
        sides.append(
            [
                Span(int(a), int(a) + int(n))
                for a, n in zip(starts, rng.integers(0, 90, count), strict=True)
            ]
        )
    sides[0] = sides[1] if is_one else sides[0]
    left, right = sides
    amounts = [None if k < 0 else [3, -2, 11, 2**40][k] for k in rng.integers(-1, 4, len(right))]
    tables: list[pa.Table | None] = [
        pa.table({
            "id": range(len(side)), "start": [span.start for span in side],
            "end": [span.end for span in side],
        })
        for side in sides
    ]  # fmt: skip
    assert tables[1] is not None
    tables[1] = tables[1].append_column("amp", pa.array(amounts, pa.int64()))
    if is_one:
        tables = [tables[1], None]
    aggregates: dict[str, Aggregate] = {"n": "count"}
    for column, functions in (("amp", NUMBERS), ("overlap", OF_A_PAIR)):
        aggregates |= {f"{f} {column}": (column, f) for f in functions}
    given: dict[str, Any] = {} if is_one else {"right_time": spans("start", "end")}
    for options in (CorrelateOptions(), CorrelateOptions(threads=2, batch_pairs=7)):
        found = correlate_tables(
            *tables, overlapping(), left_time=spans("start", "end"), emit="aggregates", how="left",
            aggregates=aggregates, options=options, **given,
        )  # fmt: skip
        expected: list[dict[str, Any] | None] = []
        for i, span in enumerate(left):
            ids = [
                j
                for j, other in enumerate(right)
                if is_overlapping(span, other) and not (is_one and i == j)
            ]
            ids.sort(key=lambda j: right[j].start)
            values = {
                "amp": [amounts[j] for j in ids],
                "overlap": [overlap(span, right[j]) for j in ids],
            }
            row = {"n": len(ids)}
            for column, own in values.items():
                row |= {f"{f} {column}": reduced(f, own) for f in NUMBERS}
            expected.append(row if ids else None)
        check(found, expected, aggregates, "left", "left_id")
    assert max(row["n"] for row in expected if row) > 15


@pytest.mark.parametrize("emits", ["spans", "causality", "histograms"])
def test_expected_numbers_of_any_times(emits: str) -> None:
    """The probabilities of the pairs that are there at a confidence as good as none, added up."""
    rng = np.random.default_rng(8)
    sides = [
        pa.table(
            {"id": range(60), "t": start, "end": start + rng.integers(20, 50, 60), "x": start % 7}
        )
        for start in (rng.integers(0, 400, 60), rng.integers(0, 400, 60))
    ]
    asked: dict[str, Any] = {"emit": "aggregates", "aggregates": {"n": "count", "x": ("x", "sum")}}
    pairs: dict[str, Any] = {"probability": True}
    if emits == "causality":
        condition = CausalityCondition([Temporal(0, 50)], confidence=1e-9)
        times = {"cause_time": around("t", 9), "effect_time": "t"}
        found = causality_tables(*sides, condition, weights="probability", **times, **asked)
        rows = causality_tables(*sides, condition, effect_columns="x", **times, **pairs)
        names = "cause_id", "effect_x"
    elif emits == "spans":
        time = spans("t", "end", around=6)
        times = {"condition": overlapping(), "left_time": time, "right_time": time}
        found = correlate_tables(*sides, weights="probability", **times, **asked)
        rows = correlate_tables(*sides, confidence=1e-14, right_columns="x", **times, **pairs)
        names = "left_id", "right_x"
    else:
        templates = random_templates(2)
        sides = [events(1, 40), events(2, 60).append_column("x", pa.array(np.arange(60) % 5))]
        times = {"left_time": by_device(templates), "right_time": by_device(templates)}
        found = correlate_tables(*sides, within=(-60, 90), weights="probability", **times, **asked)
        rows = correlate_tables(
            *sides, within=(-60, 90), confidence=1e-14, right_columns="x", **times, **pairs
        )
        names = "left_id", "right_x"
    sums: dict[int, list[float]] = {}
    for row in rows.to_pylist():
        own = sums.setdefault(row[names[0]], [0.0, 0.0])
        own[0] += row["probability"]
        own[1] += row["probability"] * row[names[1]]
    assert len(found) == len(sums) > 20
    for row in found.to_pylist():
        assert [row["n"], row["x"]] == pytest.approx(sums[row[names[0]]], rel=1e-12)
    assert any(n % 1 for n, _ in sums.values())
