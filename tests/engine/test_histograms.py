"""Histogram timestamps of tables and files, in one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coincide import (
    ConditionError,
    CorrelateOptions,
    DataError,
    JoinReport,
    NoPairsWarning,
    SchemaError,
    TimingCondition,
    correlate_tables,
    histograms,
    within,
)
from coincide.command_line import run
from coincide.model.condition import Window
from tests.helpers.histogram_tables import (
    by_device,
    events,
    histograms_of,
    in_order,
    intervals_of,
    one_bucket,
    pairs_by_definition,
    random_templates,
    spoiled,
    with_ends,
)

CONDITION = TimingCondition(within(-30, 50), 0.6)
LEFT, RIGHT = events(1, 300), events(2, 300)


def comparable(table: pa.Table, emit: str) -> list[dict[str, Any]]:
    """As `in_order`; of best matches how probable they are: formulas may break exact ties apart."""
    return in_order(table.drop_columns("right_id") if emit == "best" else table)


def ids(table: pa.Table) -> dict[tuple[int, int], float]:
    names = ("left_id", "right_id", "probability")
    return {(a, b): p for a, b, p in zip(*(table[n].to_pylist() for n in names), strict=True)}


@pytest.mark.parametrize("by", [(), "place"])
@pytest.mark.parametrize(
    ("emit", "how"),
    [(e, h) for e in ("pairs", "lists", "counts", "best") for h in ("inner", "left")]
    + [("pairs", "semi"), ("pairs", "anti")],
)
def test_one_bucket_is_an_interval(emit: str, how: str, by: Any) -> None:
    asked: dict[str, Any] = {"emit": emit, "how": how, "by": by}
    asked["probability"] = emit != "counts" and how not in ("semi", "anti")
    ends = ("min_time", "seen_at")
    want = correlate_tables(
        with_ends(LEFT), with_ends(RIGHT), CONDITION, left_time=ends, right_time=ends, **asked
    )
    one = by_device(one_bucket())
    found = correlate_tables(LEFT, RIGHT, CONDITION, left_time=one, right_time=one, **asked)
    assert found.schema.equals(want.schema)
    assert comparable(found, emit) == comparable(want, emit)
    mixed = correlate_tables(
        with_ends(LEFT), RIGHT, CONDITION, left_time=ends, right_time=one, **asked
    )
    assert comparable(mixed, emit) == comparable(want, emit)


@pytest.mark.parametrize("window", [(-30, 50, 0.6), (-2, 3, 0.02), (-200, 100, 1.0)])
def test_as_defined(window: tuple[int, int, float]) -> None:
    lo, hi, confidence = window
    mine, theirs = random_templates(1), random_templates(2)
    left, right = events(1, 120), with_ends(events(2, 120))
    asked: dict[str, Any] = {"by": "place", "probability": True, "left_time": by_device(mine)}
    condition = TimingCondition(within(lo, hi), confidence)
    for time, buckets in (
        (by_device(theirs), histograms_of(right, theirs)),
        (("min_time", "seen_at"), intervals_of(right)),
    ):
        found = ids(correlate_tables(left, right, condition, right_time=time, **asked))
        want = pairs_by_definition(
            (left, histograms_of(left, mine)), (right, buckets), Window(lo, hi, confidence)
        )
        assert found == pytest.approx(want, abs=1e-12)
        assert found


def test_a_template_may_be_named_by_a_number() -> None:
    numbers = {f"d{i}": 10 + i for i in range(4)}
    renamed = [
        table.set_column(1, "device", pa.array([numbers[n] for n in table["device"].to_pylist()]))
        for table in (LEFT, RIGHT)
    ]
    templates = one_bucket()
    by_number = templates.set_column(0, "template", pa.array(list(numbers.values()), pa.int32()))
    asked, one = by_device(by_number), by_device(templates)
    want = correlate_tables(LEFT, RIGHT, CONDITION, left_time=one, right_time=one)
    assert want.num_rows
    for kind in (pa.int16(), pa.string(), pa.dictionary(pa.int8(), pa.string())):
        sides = [
            t.set_column(1, "device", t["device"].cast(pa.string()).cast(kind)) for t in renamed
        ]
        found = correlate_tables(*sides, CONDITION, left_time=asked, right_time=asked)
        assert found.equals(want)


def test_invalid_rows() -> None:
    one, report = by_device(one_bucket()), JoinReport()
    asked: dict[str, Any] = {"left_time": one, "right_time": one, "how": "left", "emit": "counts"}
    with pytest.raises(DataError, match=r"ids of templates in device in 2 rows .found .*id=1"):
        correlate_tables(spoiled(LEFT).take([0, 1, 2]), RIGHT, CONDITION, **asked)
    with pytest.raises(DataError, match=r"in 1 row .found .*device=fridge, id=2"):
        correlate_tables(spoiled(LEFT).take([2]), RIGHT, CONDITION, **asked)
    with pytest.warns(match="2 with an unknown template"):
        found = correlate_tables(
            spoiled(LEFT), RIGHT, CONDITION, **asked, options=CorrelateOptions(invalid="drop"),
            report=report,
        )  # fmt: skip
    left = report.summary().left
    assert left is not None
    assert (left.invalid, left.unmatchable) == ({"template": 2}, 1)
    whole = correlate_tables(LEFT, RIGHT, CONDITION, **asked).to_pylist()
    kept = {row["left_id"]: row["matches"] for row in found.to_pylist()}
    assert kept == {r["left_id"]: r["matches"] for r in whole if r["left_id"] > 3} | {0: 0, 3: 0}


def test_supports_stay_within_time() -> None:
    one = by_device(one_bucket())
    table = LEFT.set_column(2, "seen_at", pa.array(np.full(300, 5 - 2**61)))
    with pytest.raises(DataError, match=r"times that reach 2\^61 ticks in seen_at"):
        correlate_tables(table, RIGHT, CONDITION, left_time=one, right_time=one)


WRONG: dict[str, tuple[type[Exception], str, dict[str, Any]]] = {
    "length": (ConditionError, "left_longest declares the longest interval, but",
               {"options": CorrelateOptions(left_longest=90)}),
    "no column": (SchemaError, "left has no column 'gadget'",
                  {"left_time": histograms("seen_at", template="gadget", templates=one_bucket())}),
    "no label": (SchemaError, "left.weight must hold ids of templates, texts or whole",
                 {"left_time": histograms("seen_at", template="weight", templates=one_bucket())}),
    "no time": (ConditionError, r"or histograms\(...\) .found 7", {"left_time": 7}),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_refused(name: str) -> None:
    kind, words, asked = WRONG[name]
    one = by_device(one_bucket())
    left = LEFT.append_column("weight", pa.array(np.zeros(300)))
    with pytest.raises(kind, match=words):
        correlate_tables(left, RIGHT, CONDITION, **{"left_time": one, "right_time": one, **asked})


def test_an_empty_answer_says_what_templates_can_reach() -> None:
    one, report = by_device(one_bucket().slice(2)), JoinReport()
    only = LEFT.set_column(1, "device", pa.array(["d2"] * 300))
    with pytest.warns(NoPairsWarning, match="highest probability that these templates"):
        correlate_tables(
            only, only, TimingCondition(within(-3, 3), 0.9), left_time=one, right_time=one,
            report=report,
        )  # fmt: skip
    no_pairs = report.summary().no_pairs
    assert no_pairs is not None
    assert no_pairs.highest_probability == pytest.approx(1 - (37 / 40) ** 2, abs=1e-12)
    far = only.set_column(2, "seen_at", pa.array(np.full(300, 10**6)))
    with pytest.warns(NoPairsWarning, match="all right times are"):
        correlate_tables(only, far, CONDITION, left_time=one, right_time="seen_at")


@pytest.mark.parametrize("way", ["files", "exchange"])
def test_command_line(tmp_path: Path, way: str) -> None:
    for name, table in (("left", LEFT), ("right", with_ends(RIGHT))):
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=40)
    pq.write_table(random_templates(3), tmp_path / "templates.parquet")
    words = ["join", *(str(tmp_path / f"{n}.parquet") for n in ("left", "right"))]
    words += ["-o", str(tmp_path / "out.parquet"), "--within", "-30", "50", "--confidence", "0.6"]
    words += ["--left-time", "seen_at", "--left-template", "device"]
    words += ["--right-time", "min_time,seen_at", "--engine", "local", "--way", way]
    assert run([*words, "--left-templates", str(tmp_path / "templates.parquet")]) == 0
    ends = ("min_time", "seen_at")
    time = by_device(random_templates(3))
    want = correlate_tables(LEFT, with_ends(RIGHT), CONDITION, left_time=time, right_time=ends)
    assert want.num_rows
    assert in_order(pq.read_table(tmp_path / "out.parquet")) == in_order(want)


def test_command_line_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["join", "l.parquet", "r.parquet", "-o", str(tmp_path / "out"), "--within", "-3", "5"]
    words += ["--confidence", "0.5", "--left-template", "device"]
    assert run(words) == 2
    assert "Add --left-templates" in capsys.readouterr().err
    assert run([*words, "--left-templates", "t.parquet"]) == 2
    assert "--left-time takes the one column" in capsys.readouterr().err
    assert run([*words, "--left-templates", "t.parquet", "--left-time", "seen_at"]) == 2
    assert "t.parquet does not exist" in capsys.readouterr().err
