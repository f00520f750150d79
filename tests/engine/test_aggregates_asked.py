"""Arguments of aggregates: what is refused, and the names and words of columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from coincide import (
    CausalityCondition,
    CoincideError,
    ConditionError,
    SchemaError,
    Temporal,
    around,
    causality_tables,
    correlate_tables,
    overlapping,
    spans,
)
from coincide.engine.join.text_options import aggregated as worded
from tests.helpers.aggregates import (
    EXACT,
    LEFT,
    joined,
    right_of,
)


def test_of_right_events_left_needs_no_column_but_those_aggregated() -> None:
    left, right = {"t": [0, 10, 20], "x": [1.5, 2.5, None]}, [{"t": 12, "y": 1}, {"t": 99, "y": 2}]
    asked: dict[str, Any] = {
        "within": (-15, 15), "left_time": "t", "right_time": "t", "how": "right",
        "emit": "aggregates", "aggregates": {"x": ("x", "sum")},
    }  # fmt: skip
    found = correlate_tables(left, right, **asked)
    assert found.to_pylist() == [{"right_id": 0, "x": 4.0}, {"right_id": 1, "x": None}]
    found = correlate_tables(left, right, right_columns="*", **asked)
    assert found.column_names == ["right_t", "right_y", "x"]


def test_right_columns_decide_nothing() -> None:
    """A column need not come out, a key or a time may be one, and two names may ask for the same."""
    values = pa.array([1, 2, None])
    asked = {"a": ("amp", "sum"), "b": ("amp", "sum"), "at": ("t", "max")}
    found = joined(values, asked, right_columns=[])
    assert found.to_pylist() == [{"left_id": 1, "a": 3, "b": 3, "at": 3}]
    assert joined(values, asked, right_columns="*").equals(found)
    keyed = joined(
        values, {"key": ("t", "count")}, LEFT.append_column("amp", pa.array([2, 1])), by="amp"
    )
    assert keyed.to_pylist() == [{"amp": 2, "left_id": 1, "key": 1}]


def test_a_column_named_delta_that_is_not_asked_for() -> None:
    right = right_of(pa.array([4, 5])).rename_columns(["t", "delta"])
    found = correlate_tables(LEFT, right, aggregates={"n": "count"}, **EXACT)
    assert found.to_pylist() == [{"left_id": 1, "n": 2}]


TABLE = pa.table({
    "id": [1], "t": [0], "amp": [1.5], "name": ["a"], "at": pa.array([1], pa.timestamp("us")),
    "day": pa.array([1], pa.date32()), "lasted": pa.array([1], pa.duration("s")), "flag": [True],
    "many": [[1]], "pair": [{"a": 1}], "noon": pa.array([1], pa.time32("s")), "raw": [b"a"],
    "delta": [1], "probability": [0.5], "overlap": [2], "n_id": [3],
})  # fmt: skip
COUNT = {"aggregates": {"n": "count"}}
ANY_OF = (ConditionError, SchemaError)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({}, ConditionError, r"aggregates"),
        ({"aggregates": {}}, ConditionError, r"aggregates"),
        ({"aggregates": None}, ConditionError, r"aggregates"),
        ({"aggregates": "count"}, ANY_OF, r"aggregates"),
        ({"aggregates": ["count"]}, ANY_OF, r"aggregates"),
        ({"aggregates": {"n": "sum"}}, ANY_OF, r"sum"),
        ({"aggregates": {"n": ("amp",)}}, ANY_OF, r"amp"),
        ({"aggregates": {"n": ("amp", "sum", "max")}}, ANY_OF, r"amp"),
        ({"aggregates": {"n": 3}}, ANY_OF, r"3"),
        ({"aggregates": {3: "count"}}, ANY_OF, r"3"),
        ({"aggregates": {"": "count"}}, ANY_OF, r"name"),
        ({"aggregates": {"n": ("amp", "median")}}, ANY_OF, r"median"),
        ({"aggregates": {"n": ("amp", "SUM")}}, ANY_OF, r"SUM"),
        ({"aggregates": {"n": (3, "sum")}}, ANY_OF, r"3"),
        ({"aggregates": {"n": ("amplitude", "sum")}}, SchemaError, r"amplitude"),
        ({"aggregates": {"n": ("right_amp", "sum")}}, SchemaError, r"right_amp"),
        *(({"aggregates": {"n": (column, function)}}, CoincideError, rf"{function}.*{column}")
          for column in ("delta", "probability") for function in ("first", "last", "any")),
        ({"aggregates": {"left_id": "count"}}, ANY_OF, r"left_id.*(Rename|[Nn]ame)"),
        ({"aggregates": {"name": "count"}, "by": "name"}, ANY_OF, r"name.*(Rename|[Nn]ame)"),
        *(({**COUNT, "emit": emit}, ConditionError, r"aggregates")
          for emit in ("pairs", "lists", "counts", "best")),
        *(({**COUNT, "how": how}, ConditionError, rf"how.*{how}.*(inner|left|[Rr]emove|[Ss]wap)")
          for how in ("full", "semi", "anti")),
        *(({**COUNT, "including": "previous", **more}, ConditionError, rf"='previous' adds.*{word}")
          for more, word in (
              ({"how": "right"}, "right"), ({"right_time": around("t", 2)}, "uncertain"),
              ({"where": "left_id = right_id"}, "Filter"), ({"emit": "counts", "aggregates": None}, "emit"),
          )),
        ({**COUNT, "including": "next"}, ConditionError, r"including.*previous.*'next'"),
        ({**COUNT, "weights": "p"}, ConditionError, r"weights.*probability.*'p'"),
        ({"weights": "probability", "emit": "counts"}, ConditionError, r"weights.*emit='aggregates'"),
        *(({"aggregates": {"n": ("amp", each)}, "weights": "probability"}, ConditionError,
           rf"takes count, sum, mean.*{each}") for each in ("min", "max", "std", "first", "last")),
        ({"aggregates": {"n": ("lasted", "sum")}, "weights": "probability"}, SchemaError,
         r"'sum' takes numbers and truth values \(found 'lasted'"),
        *(({**COUNT, "matching": each}, ConditionError, r"matching|emit")
          for each in ("mutual", "optimal", "unambiguous")),
        ({**COUNT, "prefer": "nearest"}, ConditionError, r"prefer|emit='best'"),
        ({**COUNT, "k": 2}, ConditionError, r"k=2|emit='best'"),
        ({**COUNT, "ties": "all"}, ConditionError, r"ties|emit='best'"),
        ({**COUNT, "probability": True}, ConditionError, r"probability"),
        ({**COUNT, "pair_columns": "delta"}, ConditionError, r"delta|pair_columns"),
        *(({"aggregates": {"n": (column, function)}}, SchemaError, rf"{column}")
          for column, functions in {
              "name": ("sum", "mean", "std", "any"), "raw": ("sum", "mean", "std", "any"),
              "at": ("sum", "mean", "std", "any"), "day": ("sum", "mean", "std", "any"),
              "noon": ("sum", "mean", "std", "any"), "lasted": ("mean", "std", "any"),
              "amp": ("any",), "many": ("sum", "min", "any"),
              "pair": ("max", "mean"),
          }.items() for function in functions),
        *(({"aggregates": {"n": (column, "min")}}, CoincideError, rf"{column}.*Rename|Rename.*{column}")
          for column in ("delta", "probability")),
    ],
    ids=str,
)  # fmt: skip
def test_refused(changes: dict[str, Any], error: Any, words: str) -> None:
    """One line that says what is wrong, and what to do about it."""
    with pytest.raises(error, match=words) as raised:
        correlate_tables(TABLE, TABLE, **(EXACT | changes))
    assert "\n" not in str(raised.value)
    assert str(raised.value)[-1] in ".?"


@pytest.mark.parametrize("column", ["delta", "overlap", "probability"])
def test_columns_of_pairs_that_there_are_not(column: str) -> None:
    """Only spans have an overlap."""
    bare = TABLE.drop_columns(["delta", "probability", "overlap"])
    asked: dict[str, Any] = {"aggregates": {"n": (column, "max")}}
    if column == "overlap":
        with pytest.raises(CoincideError, match="overlap"):
            correlate_tables(bare, bare, **EXACT, **asked)
    else:
        assert correlate_tables(bare, bare, **EXACT, **asked).num_rows == 1


def test_a_column_of_spans_that_has_the_name_of_a_pair_column() -> None:
    time = spans("t", "id")
    with pytest.raises(CoincideError, match=r"overlap.*Rename|Rename.*overlap"):
        correlate_tables(
            TABLE, TABLE, overlapping(), left_time=time, right_time=time, emit="aggregates",
            aggregates={"n": ("overlap", "max")},
        )  # fmt: skip


def test_what_has_no_weights() -> None:
    """Spans whose ends are known, and a causality that takes certain pairs alone."""
    asked: dict[str, Any] = {"emit": "aggregates", "aggregates": {"n": "count"}}
    time = spans("t", "id")
    with pytest.raises(ConditionError, match=r"holds or not. Remove weights"):
        correlate_tables(
            TABLE, TABLE, overlapping(), left_time=time, right_time=time, weights="probability", **asked
        )  # fmt: skip
    condition = CausalityCondition([Temporal(0, 5)])
    with pytest.raises(ConditionError, match=r"confidence of 1.*0\.001"):
        causality_tables(TABLE, TABLE, condition, cause_time="t", weights="probability", **asked)


def test_names_of_columns_and_their_order() -> None:
    """Names as they are given, after the keys and the left columns."""
    asked = {"z": "count", "a": ("amp", "max"), "left_amp2": ("amp", "min"), "amp": ("amp", "mean")}
    found = correlate_tables(
        TABLE, TABLE, aggregates=asked, by="name", left_columns=["t", "id", "amp"], **EXACT
    )
    assert found.column_names == ["name", "left_t", "left_id", "left_amp", *asked]
    assert found.to_pylist()[0]["amp"] == 1.5


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("n=count", {"n": "count"}),
        ("n=count(*)", {"n": "count"}),
        ("n=count(amp), e = SUM( amp )", {"n": ("amp", "count"), "e": ("amp", "sum")}),
        ('"x, y"=max("a=b"),z=max(a (m/s))', {"x, y": ("a=b", "max"), "z": ("a (m/s)", "max")}),
    ],
)
def test_aggregates_as_words(text: str, found: dict[str, Any]) -> None:
    assert worded({"aggregates": [text]}) == {"aggregates": found, "emit": "aggregates"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("n", r"takes NAME=FUNCTION.COLUMN., or NAME=count .found 'n'.\. Write it as"),
        ("z=sum(amp))", r"takes NAME=FUNCTION.COLUMN.*found 'z=sum.amp..'"),
        ("z=keV(SUM)", r"function first .found 'z=keV.SUM.'.\. Write z=sum.keV."),
        ("z=amp", r"needs a function for the column amp .*Write z=sum.amp."),
        ("z=max( )", r"needs a column for max .*Write z=max.COLUMN."),
        ("z=max(a),z=min(a)", r"twice .found z=max.a., z=min.a..\. Give each another name"),
    ],
)
def test_words_that_are_no_aggregates(text: str, problem: str) -> None:
    with pytest.raises(ConditionError, match=problem):
        worded({"aggregates": [text]})
