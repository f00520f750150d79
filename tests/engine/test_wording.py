"""Advice fits where it appears: arguments in Python, options on the command line and in SQL."""

from __future__ import annotations

import pickle
from importlib import metadata

import pandas as pd
import pytest

from coincide import TimingCondition, correlate_tables, within
from coincide.command_line.problems import in_options, report
from coincide.model.errors import (
    BackendError,
    ConditionError,
    SchemaError,
    Words,
    argument,
    call,
    option,
    with_options,
    worded,
)
from coincide.model.extras import how_to_install
from spark_plugin.ways.files.source import as_source_option
from tests.helpers.workplace import Workplace, events

ARGUMENTS = [
    (argument("k"), "k", "--k", "k"),
    (argument("left_time"), "left_time", "--left-time", "left_time"),
    (argument("batch_pairs", 100), "batch_pairs=100", "--batch-pairs 100", "batch_pairs '100'"),
    (argument("probability", True), "probability=True", "--probability", "probability 'true'"),
    (argument("way", "broadcast"), "way='broadcast'", "--way broadcast", "way 'broadcast'"),
    (argument("where", "foo("), "where='foo('", "--where 'foo('", "where 'foo('"),
    (argument("right"), "right", "RIGHT", "right"),
    (argument("by", [("a", "b")]), "by=[('a', 'b')]", "--by a=b", "by 'a=b'"),
    (option("unit", "us"), "options=CorrelateOptions(unit='us')", "--unit us", "unit 'us'"),
    (call("around", "t"), "around('t')", "the clock 't'", "around 't'"),
]


@pytest.mark.parametrize(("given", "in_python", "typed", "in_sql"), ARGUMENTS)
def test_each_front_end_says_what_an_argument_is_called(
    given: str, in_python: str, typed: str, in_sql: str
) -> None:
    error = pickle.loads(pickle.dumps(ConditionError(f"no {given}; left: k=3, left_time.csv")))
    for said, words in (
        (str(error), in_python),
        (in_options(error), typed),
        (worded(error, as_source_option), in_sql),
    ):
        assert said == f"no {words}; left: k=3, left_time.csv"
        assert said.isascii()


def test_options_of_an_operator_are_of_its_own_class() -> None:
    error = ConditionError(f"say {option('unit', 'us')}")
    assert (
        str(Words(with_options(error, "BorderOptions"))) == "say options=BorderOptions(unit='us')"
    )
    assert str(Words(with_options(error, ""))) == "say unit='us'"


def test_an_error_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    report(BackendError(f"no GPU, or use {argument('backend', 'cpu')}"), debug=False)
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
        (("--how", "semi", "--emit", "counts"), "one row per left event. Remove --emit counts"),
        (("--how", "anti", "--probability"), "--how anti gives no pairs"),
        (("--emit", "counts", "--probability"), "no probability. Remove --probability"),
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
    assert "skipped 1 invalid row (1 out of range): a tick is 1 ns, which reaches 73 years" in out
    assert "; --tick us reaches 73,000" in out


def test_what_is_no_table_says_what_makes_one() -> None:
    condition = TimingCondition(within(-3, 5), 0.5)
    with pytest.raises(SchemaError, match=r"C stream.*found pandas\.Index.. Use .collect"):
        correlate_tables(pd.Index([1]), events(), condition)


def test_how_to_install_gpu_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    assert how_to_install("gpu") == "pip install 'coincide[gpu]'"

    def none(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr("coincide.command_line.doctor.distribution", none)
    assert "in the folder of Coincide's sources" in how_to_install("gpu")
