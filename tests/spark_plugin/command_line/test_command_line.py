"""`coincide join` in one process: what it prints, what it writes, and how it fails."""

from __future__ import annotations

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_plugin.command_line import run
from tests.helpers.workplace import WINDOW, events, rows

# What it does


def test_join_writes_the_pairs_of_the_worker(work):
    code, out, err = work.join(*WINDOW, "--by", "key", "--probability")
    assert (code, err) == (0, "")
    expected = work.expected(by="key", probability=True)
    assert expected.num_rows == 3
    assert work.result().equals(expected)
    assert [path.name for path in work.output.parent.iterdir()] == ["out.parquet"]
    assert "pairs" in out
    assert str(work.output) in out


@pytest.mark.parametrize(
    "window",
    [
        ("--within", "-3", "5"),
        ("--within=-3", "5"),
    ],
    ids=" ".join,
)
def test_a_window_may_begin_with_a_minus(work, window):
    assert work.join(*window, "--confidence", "0.5")[0] == 0
    assert rows(work.result()) == rows(work.expected())


def test_durations_with_a_unit_before_or_after_other_options(work):
    assert work.join("--unit", "ms", "--confidence", "0.5", "--within", "-3ms", "0.005s")[0] == 0
    assert rows(work.result()) == rows(work.expected())


def test_mutual_deadline(work):
    assert work.join("--mutual-deadline", "4", "--confidence", "0.5")[0] == 0
    assert rows(work.result()) == rows(work.expected(-4, 4))


@pytest.mark.parametrize("how", ["inner", "left", "semi", "anti"])
@pytest.mark.parametrize("emit", ["pairs", "lists", "counts", "best"])
def test_how_and_emit(work, how, emit):
    if how in ("semi", "anti") and emit != "pairs":
        assert f"leave out --emit {emit}" in work.refused(*WINDOW, "--how", how, "--emit", emit)
        return
    assert work.join(*WINDOW, "--how", how, "--emit", emit)[0] == 0
    assert rows(work.result()) == rows(work.expected(how=how, emit=emit))


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ("--emit best --prefer last --k 2", {"emit": "best", "prefer": "last", "k": 2}),
        ("--matching mutual --prefer first", {"matching": "mutual", "prefer": "first"}),
        ("--matching optimal --largest-group 9", {"matching": "optimal", "largest_group": 9}),
    ],
)
def test_which_partner(work, options, asked):
    assert work.join(*WINDOW, *options.split())[0] == 0
    assert rows(work.result()) == rows(work.expected(**asked))


@pytest.mark.parametrize(
    ("options", "cure"),
    [
        ("--prefer first", "add --emit best"),
        ("--matching optimal --prefer first", "use --matching mutual"),
        ("--matching mutual --k 3", "leave out --k 3"),
    ],
)
def test_partners_that_mean_nothing(work, options, cure):
    assert cure in work.refused(*WINDOW, *options.split())


def test_columns_to_hand_out_and_exact_times(work):
    options = ("--left-time", "min_time", "--left-columns", "key,min_time", "--right-columns", "id")
    assert work.join(*WINDOW, *options, "--right-columns", "max_time")[0] == 0
    assert work.result().column_names == [
        "left_key", "left_min_time", "right_id", "right_max_time"
    ]  # fmt: skip
    expected = work.expected(
        left_time="min_time", left_columns=["key", "min_time"], right_columns=["id", "max_time"]
    )
    assert rows(work.result()) == rows(expected)


def test_json_summary(work):
    work.write("left.parquet", events(min_time=[0, None, 99, 30]))
    code, out, _ = work.join(*WINDOW, "--invalid", "drop", "--json")
    assert code == 0
    summary = json.loads(out)
    assert summary["left"] == {"rows": 4, "unmatchable": 1, "invalid": {"order": 1}}
    assert summary["right"] == {"rows": 4, "unmatchable": 0, "invalid": {}}
    assert summary["pairs"] == summary["rows"] == work.result().num_rows
    assert {"candidates", "probed", "seconds", "output", "engine"} <= summary.keys()


def test_summary_counts_what_was_left_out(work):
    work.write("left.parquet", events(min_time=[0, None, 99, 30]))
    _, out, _ = work.join(*WINDOW, "--invalid", "drop")
    assert "4 rows; 1 without time or key; 1 invalid, left out (1 whose min is above max)" in out


def test_empty_inputs_give_an_empty_file(work):
    work.write("left.parquet", events().slice(0, 0))
    assert work.join(*WINDOW)[0] == 0
    assert work.result().num_rows == 0
    assert work.result().column_names == ["left_id", "right_id"]


def test_small_batches_are_gathered_into_row_groups(work):
    many = {"id": list(range(500)), "min_time": list(range(500)), "max_time": list(range(500))}
    for name in ("left.parquet", "right.parquet"):
        work.write(name, pa.table(many))
    assert work.join("--mutual-deadline", "3", "--confidence", "1", "--batch-pairs", "10")[0] == 0
    assert work.result().num_rows == 500 * 7 - 12
    assert pq.read_metadata(work.output).num_row_groups == 1


def test_overwrite_replaces_a_file(work):
    work.output.write_text("old")
    assert work.join(*WINDOW, "--overwrite")[0] == 0
    assert work.result().num_rows == work.expected().num_rows


def test_overwrite_replaces_a_folder_of_parquet(work):
    work.output.mkdir()
    pq.write_table(events(), work.output / "part-0.parquet")
    (work.output / "_SUCCESS").touch()
    assert work.join(*WINDOW, "--overwrite")[0] == 0
    assert work.output.is_file()
    assert [path.name for path in work.output.parent.iterdir()] == ["out.parquet"]


def test_a_failure_keeps_the_old_output(work):
    work.output.write_text("old")
    work.write("left.parquet", events(min_time=[9, 10, 20, 30]))
    work.refused(*WINDOW, "--overwrite")
    assert work.output.read_text() == "old"


# How it fails: bad usage


MANY_DIGITS = "9" * 5000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--confidence", "0.5"], "one of --within LO HI and --mutual-deadline D; found neither"),
        ([*WINDOW, "--mutual-deadline", "5"], "found both"),
        (["--within", "5", "-3", "--confidence", "0.5"], "lo (5) is above hi (-3)"),
        (["--mutual-deadline", "-5", "--confidence", "0.5"], "deadline must not be negative"),
        (["--within", "-3", "5"], "--confidence"),
        (["--within", "-3"], "--within"),
        (["--within", "-3ms", "5ms", "--confidence", "0.5"], "--unit us"),
        (["--within", "a", "b", "--confidence", "0.5"], "cannot read the duration 'a'"),
        ([*WINDOW, "--confidence", "0"], "must lie in (0, 1]; found 0.0"),
        ([*WINDOW, "--confidence", "-0.1"], "must lie in (0, 1]"),
        ([*WINDOW, "--confidence", "1.1"], "must lie in (0, 1]; found 1.1"),
        ([*WINDOW, "--confidence", "nan"], "must lie in (0, 1]; found nan"),
        ([*WINDOW, "--confidence", "half"], "--confidence"),
        ([*WINDOW, "--how", "outer"], "how must be one of inner, left, semi, anti; found 'outer'"),
        ([*WINDOW, "--emit", "rows"], "emit must be one of"),
        ([*WINDOW, "--engine", "dask"], "--engine must be one of auto, spark, local"),
        ([*WINDOW, "--backend", "tpu"], "backend must be one of"),
        ([*WINDOW, "--invalid", "keep"], "invalid must be one of"),
        ([*WINDOW, "--unit", "week"], "unknown unit 'week'"),
        ([*WINDOW, "--format", "json"], "--format must be one of"),
        ([*WINDOW, "--classes", "0"], "classes must be an int of at least 1"),
        ([*WINDOW, "--threads", "0"], "threads must be"),
        ([*WINDOW, "--left-time", "a,b,c"], "--left-time takes the columns MIN,MAX"),
        (
            [*WINDOW, "--master", "local[2]"],
            "--master means nothing with --engine local; leave it out",
        ),
        ([*WINDOW, "--conf", "a=b"], "--conf"),
        ([*WINDOW, "--slices", "4"], "--slices"),
        ([*WINDOW, "--nonsense"], "--nonsense"),
        ([*WINDOW, "another.parquet"], "another.parquet"),
        (
            [*WINDOW, "--by", "nothing"],
            "left has no column 'nothing'; it has 'id', 'min_time', 'max_time'",
        ),
        ([*WINDOW, "--left-time", "key"], "left.key is string; a time column must be"),
        ([*WINDOW, "--right-columns", "nothing"], "right has no column 'nothing'"),
        ([*WINDOW, "--left-longest", "x"], "cannot read the duration 'x'"),
        ([*WINDOW, "--by", ""], "--by has an empty entry in ''; name something, or leave"),
        ([*WINDOW, "--by", ","], "--by has an empty entry in ','"),
        ([*WINDOW, "--by", "key", "--by", ""], "--by has an empty entry in 'key,'"),
        ([*WINDOW, "--by", "key,,id"], "--by has an empty entry in 'key,,id'"),
        ([*WINDOW, "--left-columns", ""], "--left-columns has an empty entry"),
        ([*WINDOW, "--right-columns", ", "], "--right-columns has an empty entry"),
        ([*WINDOW, "--left-time", ""], "--left-time has an empty entry"),
        ([*WINDOW, "--right-time", "min_time,,max_time"], "--right-time has an empty entry"),
        ([*WINDOW, "--master", ""], "--master is empty"),
        (["--within", "0s", MANY_DIGITS, "--confidence", "0.5"], "cannot read the duration '999"),
        (["--within", "0s", MANY_DIGITS + "s", "--confidence", "0.5"], "has 5,000 digits; at most"),
        (["--mutual-deadline", f"0.{MANY_DIGITS}s", "--confidence", "1"], "has 5,002 digits"),
        (
            ["--mutual-deadline", MANY_DIGITS[:4000], "--confidence", "1"],
            "is an int of 13,288 bits",
        ),
        ([*WINDOW, "--left-longest", MANY_DIGITS + "d"], "has 5,000 digits"),
        ([*WINDOW, "--left-longest", "1e999s"], "cannot read the duration '1e999s'"),
        ([*WINDOW, "--confidence", "1e400"], "must lie in (0, 1]; found inf"),
        ([*WINDOW, "--confidence", MANY_DIGITS], "must lie in (0, 1]; found inf"),
        ([*WINDOW, "--threads", MANY_DIGITS], "--threads"),
        ([*WINDOW, "--threads", "9" * 30], "threads must be at most 9,223,372,036,854,775,807"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_bad_usage(work, options, words):
    line = work.refused(*options)
    assert words in line
    assert len(line) < 500


@pytest.mark.parametrize(
    "arguments", [["join"], ["join", "a"], ["nothing"], ["--nothing"]], ids=" ".join
)
def test_incomplete_usage(arguments, capsys):
    assert run(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("coincide: ")
    assert len(said.err.splitlines()) == 1


@pytest.mark.parametrize("slices", ["1000001", "9" * 30])
def test_more_slices_than_spark_has_tasks_for(work, slices):
    line = work.refused(*WINDOW, "--slices", slices, engine="spark")
    assert "slices must be at most 1,000,000; found" in line


@pytest.mark.parametrize("engine", ["local", "spark"])
@pytest.mark.parametrize("side", [0, 1])
def test_input_without_a_name(work, side, engine, monkeypatch):
    monkeypatch.chdir(work.folder)  # which holds Parquet files
    words = [str(work.left), str(work.right)]
    words[side] = ""
    assert run(["join", *words, "-o", str(work.output), *WINDOW, "--engine", engine]) == 2
    assert f"the {('left', 'right')[side]} input has no name" in work._capsys.readouterr().err


def test_a_seed_that_is_none(capsys):
    assert run(["demo", "--engine", "local", "--rows", "100", "--seed", "-1"]) == 2
    assert capsys.readouterr().err == "coincide: --seed must not be negative; found -1\n"


# How it fails: bad data

BIG = 2**61


@pytest.mark.parametrize(
    ("changes", "options", "words"),
    [
        (
            {"min_time": [0, 99, 20, 30]},
            [],
            "left: min above max in min_time and max_time in 1 row",
        ),
        ({"max_time": [4, 14, 24, BIG]}, [], "left: times that reach 2^61 ticks"),
        ({"min_time": [0, 10, 20, -BIG]}, [], "left: times that reach 2^61 ticks"),
        ({"max_time": [4.0, 14.0, float("nan"), 34.0]}, ["--unit", "s"], "left: NaN or infinity"),
        ({"max_time": [4.0, 14.0, float("inf"), 34.0]}, ["--unit", "s"], "left: NaN or infinity"),
        (
            {"max_time": [4.0, 14.0, 24.0, 34.0]},
            [],
            "float time columns need a unit: left.max_time",
        ),
        ({}, ["--left-longest", "3"], "left: timestamps longer than the declared longest length"),
        (
            {"key": [1, 2, 3, 4]},
            ["--by", "key"],
            "'key' is int64 on the left and string on the right",
        ),
        ({"key": [[1], [2], [3], [4]]}, ["--left-time", "key"], "left.key is list"),
    ],
    ids=lambda value: "",
)
def test_bad_data(work, changes, options, words):
    work.write("left.parquet", events(**changes))
    line = work.refused(*WINDOW, *options)
    assert words in line


def test_bad_data_of_the_right_side_shows_a_row(work):
    work.write("right.parquet", events(min_time=[0, 99, 20, 30], key=["a\nb", "c\nd", "e", "f"]))
    line = work.refused(*WINDOW, "--by", "key")
    assert "right: min above max" in line
    assert "min_time=99" in line
    assert "--invalid drop" in line


def test_keys_of_unlike_text_types_are_the_same(work):
    encoded = pa.array(["a", "a", "b", "b"]).dictionary_encode()
    work.write("left.parquet", events(key=encoded))
    work.write("right.parquet", events(key=pa.array(["a", "a", "b", "c"], pa.large_string())))
    assert work.join(*WINDOW, "--by", "key")[0] == 0
    assert [row[0] for row in rows(work.result())] == ["a", "a", "b"]


# How it fails: files


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.parquet", b"", "cannot read"),
        ("empty.csv", b"", "cannot read"),
        ("empty.arrow", b"", "cannot read"),
        ("corrupt.parquet", b"PAR1 this is no Parquet PAR1", "as parquet"),
        ("text.parquet", b"id,min_time,max_time\n1,2,3\n", "as parquet"),
        ("corrupt.arrow", b"ARROW1 this is no Arrow", "as arrow"),
        ("corrupt.ipc", b"nor is this", "as arrow"),
        (
            "ragged.csv",
            b"id,min_time,max_time\n1,2,3\n1,2\n",
            "line 3 has 2 cells where the header has 3",
        ),
        (
            "late.csv",
            b"id,min_time,max_time\n" + b"1,2,3\n" * 4_000_000 + b"1,x,3\n",
            "line 4,000,002, column 'min_time': 'x' is no whole",
        ),
        ("headless.csv", b"1,2,3\n", "left has no column 'min_time'"),
        (
            "semicolons.csv",
            b"id;min_time;max_time\n",
            "say --csv-delimiter ';'",
        ),
        ("decimals.csv", b"id;min_time;max_time\n1;0,5;1,5\n", "separated by semicolons"),
        ("tabs.csv", b"id\tmin_time\tmax_time\n1\t2\t3\n", "separated by tabs"),
        ("bars.csv", b"id|min_time|max_time\n", "separated by bars"),
        ("one.csv", b"number\n1\n", "it has 'number'"),
        ("strange.txt", b"id\n", "is of unknown format"),
    ],
    ids=lambda value: value if isinstance(value, str) and "." in value else "",
)
def test_unreadable_input(work, name, content, words):
    work.left = work.folder / name
    work.left.write_bytes(content)
    assert words in work.refused(*WINDOW)


def test_missing_input(work):
    work.right = work.folder / "nowhere.parquet"
    assert "right: " in work.refused(*WINDOW)
    assert "does not exist" in work.refused(*WINDOW)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_input_without_permission(work):
    work.left.chmod(0)
    assert "no permission" in work.refused(*WINDOW)


def test_input_without_permission_is_bad_use(capsys):
    from spark_plugin.command_line.problems import report

    assert report(PermissionError(13, "Permission denied", "a.parquet"), debug=False) == 2
    assert capsys.readouterr().err == "coincide: no permission: a.parquet\n"


def test_output_that_exists(work):
    work.output.write_text("mine")
    assert "exists already" in work.refused(*WINDOW)
    assert work.output.read_text() == "mine"


def test_output_over_a_folder_of_other_things(work):
    work.output.mkdir()
    (work.output / "letters.txt").write_text("mine")
    assert "holds letters.txt" in work.refused(*WINDOW, "--overwrite")


@pytest.mark.parametrize(
    "name",
    [".git/config", ".env", "_data/a.txt", "mydata.parquet", "part-1.csv", "deep/part-0.parquet"],
)
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_overwrite_spares_what_no_join_wrote(work, name, engine):
    pq.write_table(events(), work.folder / "part-0.parquet")
    work.output.mkdir()
    for ours in ("part-0.parquet", "_SUCCESS", "._SUCCESS.crc", ".part-0.parquet.crc"):
        (work.output / ours).write_text("ours")
    mine = work.output / name
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    words = work.refused(*WINDOW, "--overwrite", engine=engine)
    assert f"holds {name.split('/')[0]}, which is no output of a join" in words
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_output_that_is_no_file(work, engine):
    os.mkfifo(work.output)
    for more in ([], ["--overwrite"]):
        assert "neither a file nor a folder" in work.refused(*WINDOW, *more, engine=engine)
    assert work.output.is_fifo()


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_output_that_is_a_hard_link_of_an_input(work, engine):
    os.link(work.right, work.output)
    assert "is the right input" in work.refused(*WINDOW, "--overwrite", engine=engine)


@pytest.mark.parametrize("engine", ["local", "spark"])
@pytest.mark.parametrize("name", ["", " "])
def test_output_without_a_name(work, name, engine):
    words = ["join", str(work.left), str(work.right), "-o", name, *WINDOW, "--engine", engine]
    assert run(words) == 2
    assert work._capsys.readouterr().err.startswith("coincide: the output has no name")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="no /proc")
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_output_in_a_folder_that_takes_no_files(work, engine):
    words = ["join", str(work.left), str(work.right), *WINDOW, "--engine", engine]
    assert run([*words, "-o", "/proc/x.parquet"]) == 2
    err = work._capsys.readouterr().err
    assert "write the output /proc/x.parquet" in err
    assert len(err.splitlines()) == 1


def test_columns_that_parquet_cannot_hold(work):
    months = pa.array([(1, 2, 3)] * 4, pa.month_day_nano_interval())
    work.left = work.folder / "left.arrow"
    with pa.ipc.new_file(work.left, (table := events(key=months)).schema) as writer:
        writer.write_table(table)
    words = work.refused(*WINDOW, "--left-columns", "id,key")
    assert "left_key is month_day_nano_interval, which Parquet cannot hold; cast it" in words


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("left.parquet", "is the left input"),
        ("nowhere/out.parquet", "does not exist"),
        ("out.tsv", "end it in .parquet, .csv or .arrow"),
    ],
)
def test_impossible_output(work, output, words):
    work.output = work.folder / output
    if work.output.parent.exists():
        assert words in work.refused(*WINDOW, "--overwrite")
    else:
        code, _, err = work.join(*WINDOW)
        assert code == 2
        assert words in err
        assert not work.output.parent.exists()


def test_output_in_an_input_folder_or_around_it(work):
    inside = work.folder / "inputs" / "deep"
    inside.mkdir(parents=True)
    pq.write_table(events(), inside / "a.parquet")
    work.left = inside.parent
    work.output = inside / "out.parquet"
    assert "lies inside the left input" in work.refused(*WINDOW)
    work.left = inside / "a.parquet"
    work.output = inside.parent
    assert "the left input lies inside the output" in work.refused(*WINDOW, "--overwrite")


def test_output_that_a_glob_would_take_in(work):
    work.left = work.folder / "*.parquet"
    work.output = work.folder / "out.parquet"
    assert "matches the left input" in work.refused(*WINDOW)


def test_a_bug_is_our_failure(work, monkeypatch):
    def broken(*_: object) -> None:
        raise KeyError("some\nthing")

    monkeypatch.setattr("spark_plugin.command_line.join.checked_types", broken)
    code, out, err = work.join(*WINDOW)
    assert (code, out) == (1, "")
    assert err.startswith("coincide: KeyError")
    assert len(err.splitlines()) == 1
    assert list(work.output.parent.iterdir()) == []
    code, _, err = work.join(*WINDOW, "--debug")
    assert code == 1
    assert "Traceback" in err


def test_interrupted_in_the_middle(work, monkeypatch):
    def interrupted(*_: object) -> None:
        assert len(list(work.output.parent.iterdir())) == 1
        raise KeyboardInterrupt

    monkeypatch.setattr("spark_plugin.worker.files.parquet_rows.ParquetRows.write", interrupted)
    code, out, err = work.join(*WINDOW)
    assert (code, out) == (130, "")
    assert len(err.splitlines()) == 1
    assert list(work.output.parent.iterdir()) == []
