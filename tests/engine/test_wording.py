"""Advice fits where it appears: arguments in Python, options on the command line and in SQL."""

from __future__ import annotations

from importlib import metadata

import pandas as pd
import pytest

from coincide import TimingCondition, correlate_tables, within
from coincide.command_line.problems import report
from coincide.engine.reports.wording import for_command_line, for_sql, install_gpu_packages
from coincide.model.errors import BackendError, ConditionError, SchemaError
from tests.helpers.workplace import Workplace, events

MESSAGES = [
    ("count in ns, options=CorrelateOptions(unit='ns'), or", "--unit ns", "unit 'ns'"),
    ("it fails, but why; or use backend='cpu'", "--backend cpu", "backend 'cpu'"),
    ("too long (batch_pairs=100)", "--batch-pairs 100", "batch_pairs '100'"),
    ("no pair; leave out probability=True", "leave out --probability", "probability 'true'"),
]


@pytest.mark.parametrize(("text", "typed", "in_sql"), MESSAGES)
def test_arguments(text: str, typed: str, in_sql: str) -> None:
    start, end = text[:10], text[-3:]
    for found, words in ((for_command_line(text), typed), (for_sql(text), in_sql)):
        assert words in found
        assert "Correlate" not in found
        assert found.startswith(start)
        assert found.count("(") == found.count(")")
        assert end[-2:] in found or words in found


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("k must be an int of at least 1; found 0", "--k must be an int of at least 1; found 0"),
        ("case_fold is of keys: name them in by, or leave it out",
         "--case-fold is of keys: name them in --by, or leave it out"),
        ("matching is of two sides: leave matching out, or give the events a second time as right",
         "--matching is of two sides: leave --matching out, or give the events a second time as RIGHT"),
        ("same times: leave right_time out", "same times: leave --right-time out"),
        ("where='foo(': foo is no function", "--where 'foo(': foo is no function"),
        ("around('t') would have events end", "the clock 't' would have events end"),
        ("left_columns is '*'; the column 'left_columns' of left.left_time, k=a",
         "--left-columns is '*'; the column 'left_columns' of left.left_time, k=a"),
    ],
)  # fmt: skip
def test_names_of_python_are_options(text: str, typed: str) -> None:
    assert for_command_line(text) == typed


@pytest.mark.parametrize(
    "text",
    [
        "left: min above max in 1 row, for example name='x', id=3 (see slice_rows=4)",
        "left: /data/left_time.csv, line 3 has 2 cells", "left: cannot read left_time-2/a.csv as csv",
        "left: cannot read left_columns.csv as csv", "right: sorted in by.csv, line 2 has 1 cell",
    ],
)  # fmt: skip
def test_other_words_stay(text: str) -> None:
    assert for_command_line(text) == for_sql(text) == text


def test_an_error_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    report(BackendError("backend='gpu' was asked for, but no; or use backend='cpu'"), debug=False)
    assert "or use --backend cpu" in capsys.readouterr().err


def test_a_unit_that_is_missing(work: Workplace) -> None:
    condition = TimingCondition(within("-3ms", "5ms"), 0.5)
    with pytest.raises(ConditionError, match=r"options=CorrelateOptions\(unit='us'\)"):
        correlate_tables(events(), events(), condition)
    said = work.refused("--within", "-3ms", "5ms", "--confidence", "0.5")
    assert "--unit us" in said
    assert "CorrelateOptions" not in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--how", "semi", "--emit", "counts"), "one row per left event; leave out --emit counts"),
        (("--how", "anti", "--probability"), "--how anti has no pair to give"),
        (("--emit", "counts", "--probability"), "a probability of; leave out --probability"),
    ],
)  # fmt: skip
def test_what_does_not_go_together(work: Workplace, options: tuple[str, ...], words: str) -> None:
    assert words in work.refused("--within", "-3", "5", "--confidence", "0.5", *options)


def test_the_summary_speaks_as_errors_do(work: Workplace) -> None:
    times = [0.0, 1.0, 2.0, 4e9]
    for side in ("left", "right"):
        work.write(f"{side}.parquet", events(min_time=times, max_time=times))
    more = ("--unit", "s", "--invalid", "drop")
    code, out, _ = work.join("--within", "0s", "1s", "--confidence", "0.5", *more)
    assert code == 0
    assert "1 invalid, left out (1 out of range): a tick is 1 ns, which reaches 73 years" in out
    assert "; --tick us reaches 73,000" in out


def test_what_is_no_table_says_what_makes_one() -> None:
    condition = TimingCondition(within(-3, 5), 0.5)
    with pytest.raises(SchemaError, match=r"C stream.* found pandas\.Index\. \.collect\(\) makes"):
        correlate_tables(pd.Index([1]), events(), condition)


def test_how_to_install_gpu_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    assert install_gpu_packages() == "pip install 'coincide[gpu]'"

    def none(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr("coincide.engine.reports.wording.distribution", none)
    assert "in the folder of Coincide's sources" in install_gpu_packages()
