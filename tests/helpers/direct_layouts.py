"""Tables as Parquet files in all sorts of layouts."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.helpers.strategies import JoinCase


def write_layout(
    folder: Path,
    table: pa.Table,
    random: np.random.Generator,
    *,
    order: str | None = None,
    most_files: int = 3,
) -> Path:
    """Write a table to a new folder: several files, row groups of several sizes, in some order.

    `order` is "time", "shuffled" or "given"; drawn if None.
    """
    folder.mkdir(parents=True)
    table = _ordered(table, order or random.choice(["time", "shuffled", "given"]), random)
    cuts = np.sort(random.integers(0, table.num_rows + 1, random.integers(0, most_files)))
    edges = [0, *cuts.tolist(), table.num_rows]
    for i, (start, stop) in enumerate(pairwise(edges)):
        part = table.slice(start, stop - start)
        if "station" in part.column_names and random.random() < 0.5:
            place = part.column_names.index("station")
            part = part.set_column(place, "station", part["station"].dictionary_encode())
        rows = int(random.integers(1, max(2, part.num_rows + 1)))
        pq.write_table(part, folder / f"{i}.parquet", row_group_size=rows)
    return folder


def as_stored(case: JoinCase, left: Path, right: Path) -> JoinCase:
    """A case whose rows are in the order of the files that `write_layout` made of them."""
    sides = []
    for rows, folder in zip(case[:2], (left, right), strict=True):
        by_id = {row["id"]: row for row in rows}
        sides.append([by_id[number] for number in pq.read_table(folder)["id"].to_pylist()])
    return JoinCase(sides[0], sides[1], *case[2:])


def _ordered(table: pa.Table, order: str, random: np.random.Generator) -> pa.Table:
    if order == "time":
        return table.sort_by("min_time")
    return table.take(random.permutation(table.num_rows)) if order == "shuffled" else table
