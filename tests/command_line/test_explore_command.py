"""`coincide explore`: the inputs of a join, a page, one line for what is wrong."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from coincide import explore_tables
from coincide.command_line import run
from tests.helpers.workplace import Workplace, events


class Explorer:
    """A workplace of which the output is a page."""

    def __init__(self, work: Workplace, capsys: pytest.CaptureFixture[str]) -> None:
        self.work, self._capsys = work, capsys
        self.page = work.output.with_name("page.html")

    def run(self, *options: str, within: tuple[str, ...] = ("--within", "-3", "5")) -> tuple:
        words = ["explore", str(self.work.left), str(self.work.right), "-o", str(self.page)]
        code = run([*words, *within, *options])
        return code, *self._capsys.readouterr()

    def refused(self, *options: str, **more: tuple[str, ...]) -> str:
        before = sorted(self.page.parent.iterdir())
        code, out, err = self.run(*options, **more)
        assert (code, out) == (2, ""), err
        assert err.startswith("coincide: ")
        assert err.count("\n") == 1
        assert sorted(self.page.parent.iterdir()) == before
        return err


@pytest.fixture
def explorer(work: Workplace, capsys: pytest.CaptureFixture[str]) -> Explorer:
    return Explorer(work, capsys)


def test_page_and_summary(explorer: Explorer) -> None:
    code, out, err = explorer.run("--by", "key", "--confidences", "0.2,0.7")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines() if line[0] != " "] == [
        *("window", "left", "right", "keys", "candidates", "pairs", "seconds", "output"),
    ]
    page = explorer.page.read_text(encoding="utf-8")
    assert 'id="delays"' in page
    assert f"-o {explorer.page} --within -3 5 --by key --confidences 0.2,0.7" in page


def test_confidences_may_be_percentages(explorer: Explorer) -> None:
    pages = []
    for confidence, several in (("70%", "20%,0.7"), ("0.7", "0.2,0.7")):
        assert explorer.run("--confidence", confidence, "--confidences", several)[0] == 0
        pages.append(explorer.page.read_text(encoding="utf-8"))
        explorer.page.unlink()
    assert pages[0] == pages[1]
    found = explore_tables(events(), within=(-3, 5), confidences=["20%", 0.7], confidence="70%")
    assert (found.confidence, found.confidences) == (0.7, (0.2, 0.7))
    assert found.pairs_at("70%") == found.pairs_at(0.7)


def test_json_has_the_numbers_of_the_function(explorer: Explorer) -> None:
    code, out, _ = explorer.run("--json", "--shifts", "100,-100", "--most-pairs", "1000")
    told = json.loads(out)
    right = events(min_time=[1, 11, 21, 90], max_time=[5, 15, 25, 94])
    found = explore_tables(events(), right, within=(-3, 5), shifts=[100, -100])
    assert code == 0
    assert told["curve"] == found.curve.to_pylist()
    assert (told["candidates"], "sample" in told) == (found.candidates, False)
    assert told["output"] == str(explorer.page)


def test_one_stream_with_a_condition(explorer: Explorer) -> None:
    words = ["explore", str(explorer.work.left), "-o", str(explorer.page), "--within", "-3", "50"]
    code = run([*words, "--where", "left_key = right_key", "--json"])
    told = json.loads(explorer._capsys.readouterr().out)
    found = explore_tables(events(), within=(-3, 50), where="left_key = right_key")
    assert (code, "right" in told) == (0, False)
    assert told["curve"] == found.curve.to_pylist()
    assert f"coincide explore {explorer.work.left} -o" in explorer.page.read_text(encoding="utf-8")


def test_csv_around_stamps_without_ids(explorer: Explorer) -> None:
    for side in ("left", "right"):
        path = explorer.work.folder / f"{side}.csv"
        path.write_text(
            "seen;k\n2024-05-01T08:00:00Z;7\n2024-05-01T09:00:00Z;8\n".replace(";", ",")
        )
        setattr(explorer.work, side, path)
    clocks = [f"--{side}-{what}" for side in ("left", "right") for what in ("time", "around")]
    words = [word for pair in zip(clocks, ("seen", "10ms") * 2, strict=True) for word in pair]
    code, out, err = explorer.run(*words, "--by", "k", within=("--mutual-deadline", "20ms"))
    assert (code, err) == (0, "")
    assert "2 at 1" in out


def test_nothing_to_find_is_told(explorer: Explorer) -> None:
    late = explorer.work.write("late.parquet", events(min_time=[900] * 4, max_time=[901] * 4))
    explorer.work.right = late
    code, out, _ = explorer.run()
    assert code == 0
    assert "too late for the window" in out
    assert "no candidates" in explorer.page.read_text(encoding="utf-8")


def test_what_is_there_is_replaced_on_request_only(explorer: Explorer) -> None:
    assert explorer.run()[0] == 0
    assert "pass --overwrite" in explorer.refused()
    assert explorer.run("--overwrite")[0] == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-o", "page.parquet"), "the output is a page, so its name must end in .html"),
        (("-o", " "), "the output has no name"),
        (("-o", "page.png"), "Rename it, or use Exploration.save in Python"),
        (("--png", "charts"), "coincide explore writes a page"),
        (("--confidence", "2"), "must lie in (0, 1]"),
        (("--confidences", "0.1;0.5"), "takes numbers, separated by commas"),
        (("--most-pairs", "0"), "most-pairs"),
        (("--by", "nobody"), "nobody"),
        (("--left-time", "tmin,max_time"), "tmin"),
        (("--shifts", "4"), "not longer than the window"),
        (("--engine", "spark"), "coincide explore runs in one process, and takes a sample"),
        (("--mutual-deadline", "4"), "found both"),
    ],
)
def test_bad_usage_is_one_line(explorer: Explorer, options: tuple[str, ...], words: str) -> None:
    assert words in explorer.refused(*options)


def test_an_input_is_not_written_over(explorer: Explorer) -> None:
    explorer.work.left = explorer.work.left.rename(explorer.page)
    said = explorer.refused("--format", "parquet", "--overwrite")
    assert "is the left input" in said


def test_bad_rows_are_bad_data(explorer: Explorer) -> None:
    explorer.work.left = explorer.work.write("bad.parquet", events(min_time=[9, 10, 20, 30]))
    assert "min above max" in explorer.refused()
    code, out, _ = explorer.run("--invalid", "drop")
    assert (code, "1 whose min is above max" in out) == (0, True)


def test_short_shifts_are_told_of_in_one_line(explorer: Explorer) -> None:
    code, _, err = explorer.run("--shifts", "10,-90")
    assert code == 0
    assert err.startswith("coincide: --shifts 10 are not longer than the window and")
    assert err.count("\n") == 1


def test_help_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    assert "explore" in capsys.readouterr().out


def test_empty_files(explorer: Explorer) -> None:
    empty = events().schema.empty_table()
    explorer.work.left = explorer.work.write("none.parquet", empty)
    assert isinstance(empty, pa.Table)
    code, out, _ = explorer.run()
    assert (code, "no row that can match" in out) == (0, True)


def test_a_condition_on_texts_that_begin_as_numbers(explorer: Explorer) -> None:
    work = explorer.work
    work.left, work.right = work.folder / "left.csv", work.folder / "right.csv"
    for place in (work.left, work.right):
        place.write_text("id,t,code\n1,0,7\n2,10,007\n3,12,8\n")
    words = ("--left-time", "t", "--right-time", "t", "--where", "left_code = '007'", "--json")
    code, out, err = explorer.run(*words, within=("--within", "1", "5"))
    assert (code, err) == (0, "")
    assert json.loads(out)["candidates"] == 1
