"""Files that change between the plan and the reading: the right answer or an error, never a wrong one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.hunt.cases import RIGHT, Case, Verdict, Way
from bench.hunt.chance import Chance
from bench.hunt.comparing import Found, compare
from bench.hunt.data import DataSet, Row, Side
from bench.hunt.jobs import arguments
from bench.hunt.judging import error_names, errors_due, judge_error
from bench.hunt.layouts import can_be_parquet
from bench.hunt.oracle import Oracle
from bench.hunt.ways.files import slicing, write_sides
from coincide.engine.files.planning import LocalFilesJoin
from coincide.engine.join.arguments import JoinArguments


def moved(data: DataSet, chance: Chance) -> DataSet:
    """As many rows with other times: those of other rows, drawn again."""

    def other(side: Side) -> Side:
        if not side.rows:
            return side
        # Rows of one id are copies of one row, and stay so.
        drawn = {row.number: chance.choice(side.rows) for row in side.rows}
        rows = [r._replace(low=(d := drawn[r.number]).low, high=d.high) for r in side.rows]
        return replace(side, rows=tuple(rows))

    which = chance.choice((0, 1, 2))
    left = other(data.left) if which != 1 else data.left
    right = other(data.right) if which != 0 else data.right
    return replace(data, left=left, right=right)


def _grown(data: DataSet, chance: Chance) -> DataSet:
    """More rows."""

    def more(rows: tuple[Row, ...]) -> tuple[Row, ...]:
        return rows + tuple(row._replace(number=row.number + 5000) for row in rows[:3])

    return data.with_rows(more(data.left.rows), more(data.right.rows))


def _rewrite(data: DataSet, case: Case, folder: Path) -> None:
    """The files again, of other rows, cut as before."""
    shutil.rmtree(folder / "left")
    shutil.rmtree(folder / "right")
    write_sides(data, case.chance("changing"), folder, old=False)


def _files(folder: Path) -> list[Path]:
    return sorted(path for side in ("left", "right") for path in (folder / side).glob("*.parquet"))


def _truncate(case: Case, folder: Path) -> None:
    chance = case.chance("fault")
    path = chance.choice(_files(folder))
    os.truncate(path, chance.integer(0, path.stat().st_size - 1))


def _remove(case: Case, folder: Path) -> None:
    case.chance("fault").choice(_files(folder)).unlink()


def _retype(case: Case, folder: Path) -> None:
    """Another type in the place of a column of times."""
    path = case.chance("fault").choice(_files(folder))
    table = pq.read_table(path)
    name = case.data.names.low
    place = table.column_names.index(name)
    pq.write_table(table.set_column(place, name, pa.array(["x"] * table.num_rows)), path)


def _nothing(case: Case, folder: Path) -> None:
    """The same bytes, written again."""
    for path in _files(folder):
        path.write_bytes(path.read_bytes())


def _forbid(case: Case, folder: Path) -> None:
    case.chance("fault").choice(_files(folder)).chmod(0)


_CHANGES: dict[str, Callable[[Case, Path], None]] = {
    "truncated": _truncate, "removed": _remove, "retyped": _retype, "written again": _nothing,
}  # fmt: skip
_NEW_ROWS: dict[str, Callable[[DataSet, Chance], DataSet]] = {"moved": moved, "grown": _grown}
if os.geteuid() != 0:  # whom nothing is forbidden
    _CHANGES["forbidden"] = _forbid
KINDS = (*_NEW_ROWS, "moved", "moved", *_CHANGES)


def change_files(kind: str, case: Case, folder: Path) -> DataSet:
    """Change the files of a case; the rows that they hold then."""
    if kind not in _NEW_ROWS:
        _CHANGES[kind](case, folder)
        return case.data
    later = _NEW_ROWS[kind](case.data, case.chance("rows"))
    _rewrite(later, case, folder)
    return later


def _judge(case: Case, folder: Path) -> Verdict:
    write_sides(case.data, case.chance("changing"), folder, old=False)
    kind = case.chance("kind").choice(KINDS)
    try:
        condition, given = arguments(case.data, case.job)
        job = LocalFilesJoin(
            str(folder / "left"), str(folder / "right"), JoinArguments(condition, **given)
        )
        batches = job.batches()
        taken = _first(batches) if case.chance("when").happens(20) else []
        later = change_files(kind, case, folder)
        table = pa.Table.from_batches([*taken, *batches], schema=job.schema)
    except Exception as error:
        return judge_changed(case, error)
    return judge_either(case, [case.data, later], Found(table), kind)


def _first(batches: Iterator[pa.RecordBatch]) -> list[pa.RecordBatch]:
    return [batch for batch in (next(batches, None),) if batch is not None]


def judge_changed(case: Case, error: Exception) -> Verdict:
    """A change is a matter of data; what else is wrong may be reported first."""
    if error_names(error) & {"DataError", "SchemaError"}:
        return Verdict("refused", str(error))
    return judge_error(error, errors_due(case.data, case.job, case.oracle) | {"DataError"})


def judge_either(case: Case, allowed: list[DataSet], found: Found, kind: str) -> Verdict:
    """Whether an answer is that of one of several states of the source."""
    wrong = ""
    for data in allowed:
        oracle = Oracle(data, case.job.longest)
        if errors_due(data, case.job, oracle):
            wrong = wrong or "an answer; an error is due"
            continue
        text = compare(found, data, case.job, oracle)
        if text is None:
            return RIGHT
        wrong = text
    return Verdict("wrong", f"{kind}: {wrong}")


WAYS = [Way("changing files", _judge, slicing, can_be_parquet, weight=6)]
