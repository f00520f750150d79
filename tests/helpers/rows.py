"""Rows of results, to be compared: as they come, or whatever their order."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def tuples(table: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    """The rows as they come: of the named columns, or of all."""
    columns = [table[name].to_pylist() for name in names or table.column_names]
    return list(zip(*columns, strict=True))


def pair_ids(table: pa.Table) -> list[tuple[Any, Any]]:
    """The pairs of ids, in order."""
    return sorted(tuples(table, "left_id", "right_id"))


def in_order(table: pa.Table) -> list[str]:
    """The rows whatever their order; names, nulls, NaN, integers and floats are told apart."""
    return sorted(map(repr, table.to_pylist()))


def lists_in_order(table: pa.Table) -> list[str]:
    """As `in_order`, whatever the order in the lists too; what belongs together in them stays so."""
    return sorted(repr(_entries_in_order(row)) for row in table.to_pylist())


def _entries_in_order(row: dict[str, Any]) -> dict[str, Any]:
    lists = [name for name, value in row.items() if isinstance(value, list)]
    entries = sorted(zip(*(row[name] for name in lists), strict=True), key=repr)
    rest = {name: value for name, value in row.items() if name not in lists}
    return rest | {" ".join(lists): entries}


def sorted_table(table: pa.Table) -> pa.Table:
    """The rows by all their columns, so that types are compared too."""
    return table.sort_by([(name, "ascending") for name in table.column_names])
