"""Templates in columns of less common types, and in files of less common names."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from coincide import ConditionError, DataError, Tick, templates_from_delays
from coincide.engine.events.template_frames import templates_of

MICRO = Tick("us")
ENDS = [[-3000, -1500, 0]]
DECIMALS = [[Decimal("0"), Decimal("1.5"), Decimal("3.00")]]


@pytest.mark.parametrize(
    ("edges", "unit"),
    [
        (pa.array(DECIMALS, pa.list_(pa.decimal128(10, 2))), "ms"),
        (pa.array([[0, 1500, 3000]], pa.list_(pa.int32(), 3)), "us"),
        (pa.array([[0, 1500, 3000]], pa.list_(pa.duration("us"), 3)), None),
        (pa.array(DECIMALS, pa.list_(pa.decimal256(50, 30), 3)), "ms"),
    ],
)
@pytest.mark.parametrize("kind", [pa.list_(pa.float64(), 2), pa.large_list(pa.decimal128(5, 2))])
def test_lists(edges: pa.Array, unit: str | None, kind: pa.DataType) -> None:
    masses = [[Decimal("0.60"), Decimal("0.40")]]
    if pa.types.is_fixed_size_list(kind):
        masses = [list(map(float, masses[0]))]
    rows = pa.table({"template": ["a"], "edges": edges, "masses": pa.array(masses, kind)})
    table = templates_of(rows, unit).table(MICRO)
    assert [table.edges.tolist()] == ENDS
    assert table.given.tolist() == [0.6, 0.4, 0.0]


def rows(**changes: Any) -> pa.Table:
    given = {"template": ["a"], "lower": ["0.5"], "upper": ["2.5"], "mass": ["1.00"]} | changes
    kinds = {name: pa.decimal128(20, 4) for name in ("lower", "upper", "mass")}
    return pa.table(
        {
            name: pa.array([Decimal(v) for v in values], kinds[name]) if name in kinds else values
            for name, values in given.items()
        }
    )


@pytest.mark.parametrize("name", ["T.PARQUET", "t.Csv", "t.FEATHER"])
def test_names_of_files_in_capitals(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if path.suffix == ".FEATHER":
        with pa.ipc.new_file(path, rows().schema) as writer:
            writer.write_table(rows())
    else:
        write = pq.write_table if path.suffix == ".PARQUET" else pa.csv.write_csv
        write(rows(), path)
    assert templates_of(path, "ms").table(MICRO).edges.tolist() == [-2000, 0]


def test_decimals_that_make_no_template() -> None:
    with pytest.raises(DataError, match=r"template .a.: the masses must sum to 1 \(found"):
        templates_of(rows(mass=["1.01"]), "ms").table(MICRO)
    with pytest.raises(DataError, match="template 'a': edges must not fall"):
        templates_of(rows(lower=["3.5"]), "ms").table(MICRO)
    with pytest.raises(ConditionError, match=r"the edge 0.5000 is not a whole number of ticks"):
        templates_of(rows()).table(Tick())
    with pytest.raises(DataError, match="an edge must be a finite number"):
        templates_of({"a": ([Decimal("NaN"), Decimal(1)], [1.0])}).table(Tick())
    # 2**60 ns to the last digit.
    with pytest.raises(DataError, match=r"reaches 2\^60"):
        templates_of(rows(lower=["0"], upper=["1152921504606846.976"]), "us").table(Tick("ns"))


def test_too_few_delays_to_pool_name_a_template() -> None:
    delays = pa.table({"d": [1, 2, 3], "k": ["b", "a", "a"]})
    with pytest.raises(DataError, match="'a': all ids together have 3 delays, fewer than 30"):
        templates_from_delays(delays, delay="d", by="k", pool=True)
