"""Templates as they are given: mappings, tables, files; and what makes no histogram."""

from __future__ import annotations

import math
import pickle
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import coincide
from coincide import ConditionError, DataError, SchemaError, Tick
from coincide.engine.events.template_frames import template_rows, templates_of
from coincide.model.templates.template import (
    GivenTemplate,
    Template,
    Templates,
    TemplateTable,
    template_table,
)

BARE = Tick()
EXAMPLE = {
    "1": ([0, 20, 30, 40], [0.1, 0.3, 0.6]),
    "2": ([0, 10, 20, 30, 40], [0.15, 0.3, 0.4, 0.15]),
}


def content(table: TemplateTable) -> dict[str, tuple]:
    rows = {}
    for number, name in enumerate(table.ids):
        part = slice(int(table.starts[number]), int(table.starts[number + 1]))
        rows[name] = (
            table.edges[part].tolist(),
            table.given[part].tolist()[:-1],
            int(table.offsets[number]),
        )
    return rows


def test_delays_are_mirrored_into_the_timestamp() -> None:
    """Example 3: of an event seen at 40, the delay (0, 10, 0.6) says (30, 40, 0.6)."""
    template = Template.of_delays([0, 10, 20, 40], [0.6, 0.3, 0.1])
    assert template.edges == (-40, -20, -10, 0)
    assert template.masses == (0.1, 0.3, 0.6)
    assert template.observed
    late = template_table({"a": Template.of_delays([5, 15], [1.0])})
    # An event seen at t took place 5 ticks before at the latest.
    assert content(late) == {"a": ([-10, 0], [1.0], -5)}


EXPECTED = {
    "1": ([-40, -20, -10, 0], [0.1, 0.3, 0.6], 0),
    "2": ([-40, -30, -20, -10, 0], [0.15, 0.3, 0.4, 0.15], 0),
}


def in_lists() -> pa.Table:
    names = list(EXAMPLE)
    edges, masses = ([EXAMPLE[name][k] for name in names] for k in range(2))
    return pa.table({"template": names, "edges": edges, "masses": masses})


def in_rows() -> pa.Table:
    rows = [
        (int(name), edges[k], edges[k + 1], masses[k])
        for name, (edges, masses) in EXAMPLE.items()
        for k in range(len(masses))
    ]
    rows.reverse()  # in no order
    names = ("template", "lower", "upper", "mass")
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


@pytest.mark.parametrize("source", [EXAMPLE, in_lists(), in_rows(), in_rows().to_pandas()])
def test_sources(source: Any) -> None:
    assert content(templates_of(source).table(BARE)) == EXPECTED


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow"])
def test_files(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"templates.{kind}"
    if kind == "csv":
        pa.csv.write_csv(in_rows(), path)
    elif kind == "parquet":
        pq.write_table(template_rows(templates_of(EXAMPLE)), path)
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, in_rows().schema) as writer:
            writer.write_table(in_rows())
    assert content(templates_of(str(path)).table(BARE)) == EXPECTED


def test_fitted_templates_are_kept_with_their_unit(tmp_path: Path) -> None:
    fit = coincide.templates_from_delays(
        pa.table({"d": [0.001 * k for k in range(80)]}), delay="d", unit="s"
    )
    pq.write_table(coincide.template_rows(fit), tmp_path / "kept.parquet")
    again = templates_of(tmp_path / "kept.parquet")
    for tick in (Tick("us"), Tick("ns")):
        assert content(again.table(tick)) == content(templates_of(fit).table(tick))


def test_decimals_are_kept() -> None:
    """With a gap, and among floats."""
    rows = {
        name: pa.array([Decimal(value) for value in values], pa.decimal128(9, 3))
        for name, values in {"lower": (0, 30), "upper": (10, 40), "mass": ("0.5", "0.5")}.items()
    }
    rows["template"] = pa.array(["a", "a"])
    of_decimals = templates_of(pa.table(rows)).given["a"]
    given = Templates({"a": of_decimals, "b": GivenTemplate((Decimal(0), 2.0, 4), (0.5, 0.5))})
    for unit in (None, "us"):
        again = templates_of(template_rows(Templates(given.given, unit)))
        assert content(again.table(Tick("us"))) == content(given.table(BARE))
    table = template_rows(Templates({"a": GivenTemplate((Decimal(0), Decimal("0.25")), (1.0,))}))
    assert table["edges"].to_pylist() == [[0.0, 0.25]]


def test_gaps_are_buckets_of_no_mass() -> None:
    rows = {"template": ["a", "a"], "lower": [30, 0], "upper": [40, 10], "mass": [0.5, 0.5]}
    table = templates_of(pa.table(rows)).table(BARE)
    assert content(table) == {"a": ([-40, -30, -10, 0], [0.5, 0.0, 0.5], 0)}


def test_units() -> None:
    micro = Tick("us")
    assert content(templates_of({"a": (["0ms", "1.5ms"], [1.0])}).table(micro)) == {
        "a": ([-1500, 0], [1.0], 0)
    }
    assert templates_of({"a": ([0.0, 0.25], [1.0])}, "s").table(micro).lengths.tolist() == [250_000]
    durations = pa.array([0, 3], pa.duration("ms"))
    table = pa.table(
        {
            "template": ["a"],
            "delay_lower": durations[:1],
            "delay_upper": durations[1:],
            "mass": [1.0],
        }
    )
    assert templates_of(table).table(micro).lengths.tolist() == [3000]
    with pytest.raises(ConditionError, match="unit of the time columns is unknown"):
        templates_of({"a": (["0ms", "1ms"], [1.0])}).table(BARE)
    with pytest.raises(ConditionError, match="is not a whole number of ticks"):
        templates_of({"a": ([0.0, 0.5], [1.0])}).table(BARE)
    with pytest.raises(ConditionError, match=r"template 'a': cannot read the duration '0'"):
        templates_of({"a": (["0", "10us"], [1.0])}).table(micro)
    with pytest.raises(ConditionError, match=r"is unknown\. Use one of"):
        templates_of(EXAMPLE, "fortnight")
    seconds = templates_of({"a": ([0, 1], [1.0])}, "s")
    assert templates_of(seconds, "s") == templates_of(seconds) == seconds
    with pytest.raises(
        ConditionError, match=r"templates: the edges have the unit s already \(found unit='ms'"
    ):
        templates_of(seconds, "ms")


@pytest.mark.parametrize(
    ("edges", "masses", "words"),
    [
        ([0, 10], [0.9], "found 0.9"),
        ([0, 10, 20], [1.5, -0.5], "a mass is a probability, so at least 0 .found -0.5"),
        ([0, 10], [math.nan], "a mass is a probability"),
        ([0, 10], [math.inf], "a mass is a probability"),
        ([0, 20, 10], [0.5, 0.5], "edges must not fall .found 10 after 20"),
        ([0], [], "n buckets have n \\+ 1 edges"),
        ([0, 1, 2], [1.0], "found 3 edges and 1 masses"),
        ([0, 2**60], [1.0], "reaches 2\\^60 ticks"),
        ([0, math.inf], [1.0], "an edge must be a finite number"),
        ([0, None], [1.0], "an edge must be a finite number"),
    ],
)
def test_what_makes_no_template(edges: list, masses: list, words: str) -> None:
    with pytest.raises(DataError, match=words) as error:
        templates_of({"dev": (edges, masses)}).table(BARE)
    assert "'dev'" in str(error.value)


def test_masses_that_nearly_sum_to_1_are_normalised() -> None:
    table = template_table({"a": Template([0, 1, 2], [0.5, 0.5 + 9e-10])})
    assert abs(table.buckets.masses.sum() - 1.0) < 1e-15
    with pytest.raises(DataError, match="must sum to 1"):
        Template([0, 1, 2], [0.5, 0.5 + 2e-9])


@pytest.mark.parametrize(
    ("table", "error", "words"),
    [
        ({"id": [1]}, SchemaError, "Give a row per bucket"),
        ({"template": [], "edges": [], "masses": []}, (SchemaError, DataError), "template"),
        (
            {"template": ["a", "a"], "edges": [[0, 1]] * 2, "masses": [[1.0]] * 2},
            DataError,
            "the id 'a' is given twice",
        ),
        (
            {"template": ["a", "a"], "lower": [0, 5], "upper": [10, 15], "mass": [0.5, 0.5]},
            DataError,
            "two buckets overlap, at 5",
        ),
        (
            {"template": ["a"], "lower": [0], "upper": [None], "mass": [1.0]},
            DataError,
            "upper must not be null",
        ),
        (
            {
                "template": ["a"],
                "lower": pa.array([0], pa.duration("ms")),
                "upper": [5],
                "mass": [1.0],
            },
            SchemaError,
            "Give both as durations, or both as numbers",
        ),
        (
            {"template": [None], "edges": [[0, 1]], "masses": [[1.0]]},
            (SchemaError, DataError),
            "template",
        ),
        ({"template": ["a"], "edges": [5], "masses": [[1.0]]}, SchemaError, "edges must be a list"),
        (
            {"template": ["a"], "edges": [[0, None]], "masses": [[1.0]]},
            DataError,
            "must not be null",
        ),
    ],
)
def test_tables_that_are_refused(table: dict, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        templates_of(pa.table(table))


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        ({7: ([0, 1], [1.0]), "7": ([0, 2], [1.0])}, DataError, "the id '7' is given twice"),
        ({None: ([0, 1], [1.0])}, SchemaError, "an id must be text or an integer .found None"),
        ({"a": (5, [1.0])}, SchemaError, "must be sequences .found 5"),
        ({"a": ([0, 5], 1.0)}, SchemaError, "must be sequences .found 1.0"),
        ({"a": ([0, 5], [10**400])}, DataError, "a mass must be a number"),
        ({"a": ([0, 10**400], [1.0])}, DataError, "reaches 2\\^60 ticks"),
        ({"a": ([0, Fraction(5, 2)], [1.0])}, ConditionError, "is not a whole number of ticks"),
        ({"a": (np.array([0, 5], "m8[ns]"), [1.0])}, ConditionError, "its edges have a unit"),
        ({"a": ([True, 5], [1.0])}, DataError, "an edge must be a finite number"),
        ([1, 2], SchemaError, "templates must be a mapping, the path of a file, or a"),
        (None, SchemaError, "templates must be a mapping, the path of a file, or a"),
    ],
)
def test_mappings_that_are_refused(source: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        templates_of(source).table(BARE)


@pytest.mark.parametrize("kind", ["f4", "u1", "i2"])
def test_edges_of_any_numpy_type_have_units(kind: str) -> None:
    table = templates_of({"a": (np.array([0, 5], kind), [1.0])}, "ms").table(Tick("us"))
    assert table.lengths.tolist() == [5000]


def test_edges_that_are_timedeltas() -> None:
    microseconds = np.array([-5, 0], "m8[us]"), [1.0]
    given = templates_of({"a": ([timedelta(0), timedelta(hours=1.5)], [1.0]), "b": microseconds})
    assert sorted(given.table(Tick("us")).lengths) == [5, 5_400_000_000]


def test_buckets_in_any_order() -> None:
    rows = [("20ms", "30ms", 0.2), ("500us", "20ms", 0.7), ("0ms", "100us", 0.1)]
    lower, upper, mass = zip(*rows, strict=True)
    table = pa.table({"template": ["a"] * 3, "lower": lower, "upper": upper, "mass": mass})
    edges, masses = ("0ms", "100us", "500us", "20ms", "30ms"), (0.1, 0.0, 0.7, 0.2)
    assert templates_of(table).given == {"a": GivenTemplate(edges, masses)}


@pytest.mark.parametrize("kind", [pa.string_view(), pa.large_string()])
def test_ids_of_any_text_type(kind: pa.DataType) -> None:
    """Polars gives views."""
    table = in_lists()
    texts = pa.chunked_array([pa.array(table["template"].to_pylist(), kind)])
    assert content(templates_of(table.set_column(0, "template", texts)).table(BARE)) == EXPECTED


def test_ids_in_csv_are_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "templates.csv"
    path.write_text("template,lower,upper,mass\n007,0,10,1\n7,0,5,1\n")
    assert sorted(templates_of(path).given) == ["007", "7"]
    path.write_text("template,lower,upper,mass\n2024-01-01,0,10,1\n")
    assert list(templates_of(path).given) == ["2024-01-01"]
    path.write_text("template,lower,upper,mass\n,0,10,1\n")
    with pytest.raises(DataError, match="an id is null"):
        templates_of(path)
    path.write_text("template,lower,upper,mass,mass\na,0,10,1,1\n")
    with pytest.raises(SchemaError, match="2 columns called 'mass'"):
        templates_of(path)


def test_durations_beside_numbers_are_refused() -> None:
    """Numbers among durations have no unit, and none is given."""
    lower, upper = pa.array([5]), pa.array([10], pa.duration("us"))
    table = pa.table({"template": ["a"], "lower": lower, "upper": upper, "mass": [1.0]})
    with pytest.raises(SchemaError, match=r"found int64 and duration\[us\]"):
        templates_of(table)
    far = pa.array([10**13], pa.duration("s"))
    table = pa.table({"template": ["a"], "lower": far, "upper": far, "mass": [1.0]})
    with pytest.raises(DataError, match=r"reaches 2\^63 ns"):
        templates_of(table)


def test_files_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        templates_of(tmp_path / "none.parquet")
    with pytest.raises(SchemaError, match=r"is unknown. Give a .parquet, .csv, .arrow or .feather"):
        templates_of("templates.txt")
    (tmp_path / "bad.parquet").write_bytes(b"no")
    with pytest.raises(DataError, match="cannot be read"):
        templates_of(tmp_path / "bad.parquet")
    twice = pa.Table.from_arrays(
        [pa.array([0])] * 5, ["template", "lower", "upper", "mass", "mass"]
    )
    pq.write_table(twice, tmp_path / "twice.parquet")
    with pytest.raises(SchemaError, match="2 columns called 'mass'"):
        templates_of(tmp_path / "twice.parquet")
    folder = tmp_path / "folder.parquet"  # as Spark writes
    folder.mkdir()
    with pytest.raises(SchemaError, match="found no column"):
        templates_of(folder)
    pq.write_table(in_rows(), folder / "part-0.parquet")
    assert content(templates_of(folder).table(BARE)) == EXPECTED
    with pytest.raises(DataError, match="table of templates is empty"):
        templates_of({})
    with pytest.raises(ConditionError, match="name of a column"):
        coincide.histograms(3, template="device", templates=EXAMPLE)  # type: ignore[arg-type]


def test_tables_of_equal_content_are_equal_and_travel() -> None:
    table = templates_of(EXAMPLE).table(BARE)
    _ = table.buckets, table.leans
    again = pickle.loads(pickle.dumps(table))
    assert again == table == templates_of(in_rows()).table(BARE)
    assert hash(again) == hash(table)
    assert table != template_table({"1": Template([0, 40], [1.0])})
    assert b"beyond" not in pickle.dumps(table)


def test_numbers_and_tables_joined() -> None:
    table = template_table({"wide": Template([0, 100], [1.0]), "narrow": Template([0, 1], [1.0])})
    assert table.ids == ("narrow", "wide")
    assert table.numbered(["wide", None, "narrow", "?"]).tolist() == [1, -1, 0, -1]
    more = table.joined(template_table({"new": Template([0, 5, 9], [0.5, 0.5])}))
    assert more.ids == ("narrow", "wide", "new")
    assert more.lengths.tolist() == [1, 100, 9]
    assert more.only(np.array([2, 0])).lengths.tolist() == [9, 1]
    with pytest.raises(DataError, match="'narrow' is in both tables"):
        table.joined(table)
