"""How `coincide join` refuses outputs that cannot be, or that would cost what is there."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coincide.command_line import run
from tests.helpers.workplace import WINDOW, events


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
    assert f"is a folder that holds {name.split('/')[0]}, which no" in words
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
    assert "the output column left_key has the type month_day_nano_interval" in words


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("left.parquet", "is the left input"),
        ("nowhere/out.parquet", "does not exist"),
        ("out.tsv", "cannot be written"),
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
