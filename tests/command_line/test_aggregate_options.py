"""`--aggregate` of inputs without rows, and what its refusals say."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.helpers.workplace import Workplace

OPTIONS = (
    *("--within", "0", "9", "--confidence", "0.9", "--left-time", "t", "--right-time", "t"),
    *("--how", "left"),
)


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ("a=sum(amp)", pa.float64()),
        ("a=mean(amp)", pa.float64()),
        ("a=std(amp)", pa.float64()),
        ("a=any(amp)", pa.bool_()),
        ("a=count(amp)", pa.int64()),
        ("a=last(amp)", pa.string()),
        ("a=sum(unlike)", None),
    ],
)
def test_csv_without_rows_has_no_types(
    work: Workplace, asked: str, kind: pa.DataType | None, end: str
) -> None:
    """Such as a sensor that saw nothing today: what is added up is then a number."""
    work.left, work.right = work.folder / "left.csv", work.folder / "right.csv"
    work.left.write_text("id,t\n1,5\n", "utf-8")
    work.right.write_text(f"id,t,amp{end}", "utf-8")
    if kind is None:
        assert "no column 'unlike'" in work.refused(*OPTIONS, "--aggregate", asked)
        return
    code, _, said = work.join(*OPTIONS, "--aggregate", asked)
    assert code == 0, said
    found = work.result()
    assert found.schema.field("a").type == kind
    assert found["a"].to_pylist() == [0 if "count" in asked else None]


def test_texts_of_rows_are_not_added_up(work: Workplace) -> None:
    work.left, work.right = work.folder / "left.csv", work.folder / "right.csv"
    work.left.write_text("id,t\n1,5\n", "utf-8")
    work.right.write_text("id,t,amp\n1,6,loud\n", "utf-8")
    assert "'sum' takes numbers" in work.refused(*OPTIONS, "--aggregate", "a=sum(amp)")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            "energy=amp",
            "--aggregate needs a function for the column amp (found 'energy=amp'). Write energy=sum(amp),"
            " or mean, std, min, max, first, last or any in place of sum.",
        ),
        (
            "energy=Max",
            "--aggregate needs a column for max (found 'energy=Max'). Write energy=max(COLUMN).",
        ),
    ],
)
def test_a_function_without_a_column_and_the_other_way_round(
    work: Workplace, asked: str, said: str
) -> None:
    assert work.refused(*OPTIONS, "--aggregate", asked) == f"coincide: {said}\n"
