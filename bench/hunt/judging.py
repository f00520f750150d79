"""Judging what a way does with a case: the right answer, or the error that is due."""

from __future__ import annotations

import re
from collections.abc import Set

from bench.hunt.cases import RIGHT, Attempt, Case, Verdict
from bench.hunt.comparing import compare
from bench.hunt.data import DataSet
from bench.hunt.jobs import NONSENSE, Job
from bench.hunt.oracle import Oracle
from coincide.model.errors import CoincideError

_FROM_WORKER = re.compile(r"(?:coincide|spark_plugin)[\w.]*\.(\w+): ")
_FROM_SQL = "[USER_RAISED_EXCEPTION]"


class RefusedError(Exception):
    """The command line ended with exit code 2."""


def errors_due(data: DataSet, job: Job, oracle: Oracle) -> set[str]:
    """The classes of errors that may be raised; none: an answer is due."""
    due = set()
    if job.nonsense is not None:
        due.update(NONSENSE[job.nonsense][1].split())
    if oracle.is_too_fine or (oracle.is_invalid and job.options.get("invalid") != "drop"):
        due.add("DataError")
    if job.has_previous and job.options.get("way") == "broadcast-left":
        due.add("ConditionError")  # each task has some of the events before a window
    return due


def judge_join(case: Case, attempt: Attempt, may: Set[str] = frozenset()) -> Verdict:
    """Run a join whose inputs stay as they are; `may`: errors that may come where an answer is due."""
    due = errors_due(case.data, case.job, case.oracle)
    try:
        found = attempt()
    except Exception as error:
        return judge_error(error, due | may)
    if due:
        return Verdict("accepted", f"an answer of {found.table.num_rows} rows; {words(due)} is due")
    wrong = compare(found, case.data, case.job, case.oracle)
    return Verdict("wrong", wrong) if wrong else RIGHT


def judge_error(error: BaseException, due: Set[str]) -> Verdict:
    """Whether an error is one that is due, and one of ours."""
    names = error_names(error)
    text = f"{type(error).__name__}: {short(str(error))}"
    if "NotDirect" in names:
        return Verdict("closed", text)
    if names & due or (due and isinstance(error, RefusedError)):
        return Verdict("refused", text)
    return Verdict("error", f"{text}; {words(due) if due else 'an answer'} is due")


def error_names(error: BaseException) -> set[str]:
    """The classes of our errors that an error is, or that Spark tells of."""
    if isinstance(error, CoincideError):
        return {kind.__name__ for kind in type(error).__mro__}
    text = str(error)
    names = set(_FROM_WORKER.findall(text)[-1:])
    return names | {"DataError"} if _FROM_SQL in text else names


def words(due: Set[str]) -> str:
    """Errors by name."""
    return " or ".join(sorted(due))


def short(text: str, width: int = 500) -> str:
    """The first and the last part of a message, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width // 2]} ... {line[-width // 2 :]}"
