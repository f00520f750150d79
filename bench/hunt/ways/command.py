"""``coincide join --engine local`` on Parquet, CSV and Arrow IPC."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pyarrow.dataset as ds

from bench.hunt.cases import Case, Verdict, Way
from bench.hunt.comparing import Found, counts_of
from bench.hunt.judging import RefusedError, judge_join, short
from bench.hunt.layouts import can_be_csv, can_be_parquet, write_csv, write_ipc
from bench.hunt.ways.files import write_sides
from bench.hunt.wording import command_words
from coincide.command_line import run
from coincide.engine.files.planning import NotDirect


class FailedError(Exception):
    """The command line ended with another exit code than 0 and 2, or left what it should not."""


def _judge_parquet(case: Case, folder: Path) -> Verdict:
    inputs = write_sides(case.data, case.chance("command"), folder)
    return judge_join(case, lambda: joined(case, inputs, folder, "local"))


def _judge_csv(case: Case, folder: Path) -> Verdict:
    inputs = [str(write_csv(folder / f"{i}.csv", case.data, i)) for i in (0, 1)]
    return judge_join(case, lambda: joined(case, inputs, folder, "local"))


def _judge_ipc(case: Case, folder: Path) -> Verdict:
    chance = case.chance("command")
    inputs = [str(write_ipc(folder / f"{i}.arrow", case.data.table(i), chance)) for i in (0, 1)]
    return judge_join(case, lambda: joined(case, inputs, folder, "local"))


def joined(case: Case, inputs: list[str], folder: Path, engine: str, *more: str) -> Found:
    """The output of the command line, and what its summary says; an error of how it ended."""
    output = folder / "results" / "out"
    output.parent.mkdir()
    words = ["join", *inputs, "-o", str(output), *command_words(case, folder, engine), *more]
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(words)
    said = err.getvalue()
    if code != 0 and any(output.parent.iterdir()):
        raise FailedError(f"exit code {code}, but {list(output.parent.iterdir())} is left")
    if code == 2 and "coincide: " in said and "Traceback" not in said:
        raise (NotDirect if "--way files is not possible" in said else RefusedError)(said)
    if code != 0:
        raise FailedError(f"exit code {code}: {short(said)}")
    summary = json.loads(out.getvalue())
    table = ds.dataset(str(output), format="parquet").to_table()
    return Found(table, counts_of(summary.get("left")), counts_of(summary.get("right")))


WAYS = [
    Way("command, Parquet", _judge_parquet, suits=can_be_parquet, weight=8),
    Way("command, CSV", _judge_csv, suits=can_be_csv, weight=25),
    Way("command, Arrow", _judge_ipc, weight=4),
]
