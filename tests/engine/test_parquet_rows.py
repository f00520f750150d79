"""Result rows to Parquet: whole, and written as suits them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coincide.engine.files.result_rows import ParquetRows
from coincide.model.errors import DataError

PLACE = np.arange(50_000)
IDS = PLACE * 10 + np.random.default_rng(0).integers(0, 100, PLACE.size)
FEW = pa.table({"left": PLACE, "right": IDS})
# Neighbours have nearly the same matches.
MANY = pa.table({"left": PLACE // 100, "right": IDS[PLACE // 100 + PLACE % 100]})


def written(path: Path, table: pa.Table) -> pq.FileMetaData:
    with ParquetRows(str(path), lambda: pa.OSFile(str(path), "wb"), table.schema) as rows:
        for batch in table.to_batches(max_chunksize=7_000):
            rows.write(batch)
    assert rows.rows == table.num_rows
    assert pq.read_table(path).equals(table)
    return pq.read_metadata(path)


@pytest.mark.parametrize(
    ("table", "compression", "encoding"),
    [(FEW, "SNAPPY", "DELTA_BINARY_PACKED"), (MANY, "LZ4", "PLAIN")],
    ids=["few matches", "many matches"],
)
@pytest.mark.parametrize("lists", [False, True])
def test_numbers_are_written_as_suits_them(
    tmp_path: Path, table: pa.Table, compression: str, encoding: str, lists: bool
) -> None:
    names = np.array(["door", "gate"])[np.arange(50_000) % 2]
    table = table.append_column("text", pa.array(names))
    if lists:
        ends = pa.array(np.arange(0, 50_001, 10), pa.int32())
        column = pa.ListArray.from_arrays(ends, table["right"].combine_chunks())
        table = pa.table({"left": table["left"][::10], "right": column, "text": names[::10]})
    group = written(tmp_path / "a.parquet", table).row_group(0)
    assert group.column(1).compression == compression
    assert encoding in group.column(1).encodings
    assert "RLE_DICTIONARY" in group.column(2).encodings
    assert group.column(2).compression == "SNAPPY"
    assert group.column(0).is_stats_set


def test_nothing_to_write(tmp_path: Path) -> None:
    assert written(tmp_path / "a.parquet", FEW.slice(0, 0)).num_rows == 0
    text = pa.table({"text": ["a", None], "share": [0.5, None]})
    assert written(tmp_path / "b.parquet", text).num_rows == 2


def test_a_place_that_takes_no_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot write .*/none/a\.parquet: No such file"):
        written(tmp_path / "none" / "a.parquet", FEW)
