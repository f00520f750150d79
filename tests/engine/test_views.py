"""Views of texts, binaries and lists at any depth: every operator takes them as what they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from bench.hunt.questions import nested
from coincide import (
    CausalityCondition,
    Temporal,
    border_crossing_tables,
    causality_tables,
    correlate_tables,
    stream_tables,
)

pl = pytest.importorskip("polars")
pd = pytest.importorskip("pandas")
TEXTS, BINARIES = pa.string_view(), pa.binary_view()
LISTS = [["a"], ["b", None, "longer than twelve letters"], None, []]
NESTED = {
    "list": (pa.list_(TEXTS), LISTS),
    "large": (pa.large_list(TEXTS), LISTS),
    "fixed": (pa.list_(TEXTS, 2), [["a", "b"], None, ["c", None], ["d", "e"]]),
    "view": (pa.list_view(TEXTS), LISTS),
    "large_view": (pa.large_list_view(pa.int64()), [[1], [2, 3], None, []]),
    "struct": (pa.struct([("x", TEXTS)]), [{"x": "a"}, None, {"x": None}, {"x": "d"}]),
    "map": (pa.map_(TEXTS, BINARIES), [[("k", b"v")], None, [("m", None)], []]),
    "deep": (pa.list_(pa.list_view(BINARIES)), [[[b"x"]], None, [None, [b"yy", b"z"]], []]),
    "plain": (TEXTS, ["a", None, "b", "longer than twelve letters"]),
}
EVENTS = pa.table({
    "t": [0, 10, 20, 30], "id": [0, 1, 2, 3],
    **{name: pa.array(values, kind) for name, (kind, values) in NESTED.items()},
})  # fmt: skip
EXPECTED = EVENTS.select(list(NESTED)).to_pylist()
EXACT: dict[str, Any] = {"within": (0, 5), "left_time": "t", "right_time": "t"}


def named(rows: list[dict[str, Any]], prefix: str) -> list[dict[str, Any]]:
    names = {f"{prefix}_{name}": name for name in NESTED}
    return [{names[name]: row[name] for name in names} for row in rows]


@pytest.mark.parametrize("cut", [0, 1])
@pytest.mark.parametrize("emit", ["pairs", "lists", "best"])
def test_joins(cut: int, emit: Any) -> None:
    table = EVENTS.slice(cut)
    found = correlate_tables(table, table, left_columns="*", right_columns="*", emit=emit, **EXACT)
    rows = found.sort_by("left_id").to_pylist()
    assert named(rows, "left") == EXPECTED[cut:]
    if emit == "lists":
        rows = [{name: value[0] for name, value in row.items() if "right" in name} for row in rows]
    assert named(rows, "right") == EXPECTED[cut:]


def test_files(tmp_path: Any) -> None:
    feather.write_feather(EVENTS, tmp_path / "a.feather")
    pq.write_table(EVENTS.drop_columns(["view", "large_view", "deep"]), tmp_path / "a.parquet")
    for path in (tmp_path / "a.feather", tmp_path / "a.parquet"):
        found = correlate_tables(str(path), EVENTS, left_columns="*", **EXACT).sort_by("right_id")
        assert found["left_list"].to_pylist() == LISTS
        assert found["left_struct"].to_pylist() == EVENTS["struct"].to_pylist()


def test_causality_and_streams() -> None:
    second = EVENTS.set_column(0, "t", pa.array([1, 11, 21, 31]))
    condition = CausalityCondition([Temporal(0, 5)])
    found = causality_tables(
        EVENTS, second, condition, cause_time="t", effect_time="t", cause_columns="*"
    )
    assert named(found.sort_by("effect_id").to_pylist(), "cause") == EXPECTED
    live = stream_tables(left_columns="*", left_delay=0, right_delay=0, **EXACT)
    parts = []
    for start in (0, 2):
        part = EVENTS.slice(start, 2)
        parts += [live.push("left", part), live.push("right", part.select(["t", "id"]))]
    parts = [part for part in [*parts, live.flush()] if part.num_rows]
    rows = pa.concat_tables(parts).sort_by("left_id").to_pylist()
    assert named(rows, "left") == EXPECTED


def test_frames_of_polars() -> None:
    frame = pl.DataFrame({
        "t": [0, 10], "id": [0, 1], "tags": [["a"], ["b", "c"]], "place": [{"x": "u"}, {"x": None}],
        "bytes": [[b"1"], []],
        "kinds": pl.Series([["q"], ["r", "q"]], dtype=pl.List(pl.Categorical)),
        "two": pl.Series([["a", "b"], ["c", "d"]], dtype=pl.Array(pl.String, 2)),
    })  # fmt: skip
    found = correlate_tables(frame, frame, left_columns="*", right_columns="*", **EXACT)
    for side in ("left", "right"):
        for name in ("tags", "place", "bytes", "kinds", "two"):
            assert found[f"{side}_{name}"].to_pylist() == frame[name].to_list()


def test_borders_by_texts_in_views() -> None:
    readings = pa.table({
        "stream_id": pa.array(["s", "s"], TEXTS), "time": [0, 1], "value": [0.0, 2.0],
        "tags": pa.array([["x"], ["y"]], pa.list_(TEXTS)),
    })  # fmt: skip
    queries = pa.table({"query_id": pa.array(["q"], TEXTS), "lower": [1.0], "upper": [3.0]})
    assert border_crossing_tables(readings, queries).num_rows == 1


def test_a_category_without_categories_in_where() -> None:
    empty = pd.DataFrame({"t": [0, 10], "id": [0, 1], "kind": pd.Categorical([None, None])})
    other = pa.table({"t": [0, 10], "id": [0, 1], "kind": ["a", "b"]})
    for where in (
        "left_kind IS NULL",
        "(left_kind = right_kind) IS NULL",
        "NOT left_kind = 'a' OR TRUE",
    ):
        assert correlate_tables(empty, other, where=where, **EXACT).num_rows == 2
    found = correlate_tables(empty, other, where="left_kind = right_kind", how="left", **EXACT)
    assert found["right_id"].to_pylist() == [None, None]


def test_runs_of_views() -> None:
    runs = pa.RunEndEncodedArray.from_arrays([1, 3, 4], pa.array(["a", None, "b"], TEXTS))
    table = EVENTS.select(["t", "id"]).append_column("k", runs).slice(1)
    found = correlate_tables(table, table, left_columns="*", **EXACT).sort_by("left_id")
    assert found["left_k"].to_pylist() == [None, None, "b"]


@pytest.mark.parametrize("seed", range(80))
def test_drawn_types(seed: int) -> None:
    assert nested.wrong(np.random.default_rng(seed)) is None
