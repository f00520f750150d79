"""`coincide histogram`: files in, the table of `delay_histogram` out, a summary, and a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from coincide import CorrelateOptions, around, delay_histogram
from coincide.command_line import run

RNG = np.random.default_rng(7)
LEFT = pa.table({"t": RNG.integers(0, 5000, 200), "key": RNG.choice(["a", "b"], 200)})
RIGHT = pa.table({"t": RNG.integers(0, 5000, 300), "sta": RNG.choice(["b", "a", "c"], 300)})
TIMES = ("--left-time", "t", "--right-time", "t", "--unit", "ms")
MS = CorrelateOptions(unit="ms")


@pytest.fixture
def inputs(tmp_path: Path) -> list[str]:
    paths = [tmp_path / "left.parquet", tmp_path / "right.csv"]
    pq.write_table(LEFT, paths[0])
    csv.write_csv(RIGHT, paths[1])
    return list(map(str, paths))


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (("--within", "-50ms", "70ms", "--bins", "12"), {"within": ("-50ms", "70ms"), "bins": 12}),
        (("--within", "5", "--bins", "2"), {"within": 5, "bins": 2}),
        (("--edges", "-50ms,0,1", "--edges", "9ms", "--by", "key=sta"),
         {"edges": ("-50ms", 0, 1, "9ms"), "by": [("key", "sta")]}),
        (("--edges", "-5,5", "--chance", "rates"), {"edges": (-5, 5), "chance": "rates"}),
        (("--edges", "-5,5", "--chance", "1s,-1s", "--left-around", "3ms"),
         {"edges": (-5, 5), "chance": ("1s", "-1s"), "left_time": around("t", "3ms")}),
    ],
)  # fmt: skip
def test_the_table_is_that_of_delay_histogram(
    inputs: list[str], tmp_path: Path, words: tuple[str, ...], asked: dict[str, Any]
) -> None:
    output = tmp_path / "delays.parquet"
    assert run(["histogram", *inputs, "-o", str(output), *TIMES, *words]) == 0
    wanted = delay_histogram(
        LEFT, RIGHT, **{"left_time": "t", "right_time": "t", "options": MS, **asked}
    )
    assert pq.read_table(output).equals(wanted)


def test_the_summary_shows_the_histogram(
    inputs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["histogram", inputs[0], "-o", str(tmp_path / "o.csv"), *TIMES[:2], *TIMES[4:]]
    assert run([*asked, "--within", "-40ms", "40ms", "--bins", "80"]) == 0
    said = capsys.readouterr().out
    own = delay_histogram(LEFT, within=(-40, 40), bins=20, left_time="t", options=MS)
    counts = own["pairs"].to_pylist()
    shown = [line for line in said.splitlines() if " to " in line]
    assert [int(line.split("ms")[-1].split()[0].replace(",", "")) for line in shown] == counts
    longest = max(shown, key=len)
    assert longest.count("█") == 40
    assert str(max(counts)) in longest
    assert run([*asked, "--within", "40ms", "--overwrite", "--json", "--bins", "80"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["pairs"], told["buckets"], told["tick"]) == (sum(counts), 80, "ms")
    assert told["events"]["rows"] == 200


def test_the_page_has_a_chart_for_each_key(inputs: list[str], tmp_path: Path) -> None:
    page = tmp_path / "delays.html"
    asked = ["--by", "key=sta", "--chance", "rates", "--page", str(page), "--left-around", "2ms"]
    output = str(tmp_path / "o.csv")
    words = ["histogram", *inputs, "-o", output, *TIMES, "--within", "50ms", *asked]
    assert run(words) == 0
    text = page.read_text("utf-8")
    assert text.count('<div class="chart"') == 2
    for words_of_page in ("key a", "key b", "by chance", "expected", "coincide histogram"):
        assert words_of_page in text
    for wrong, said in ((str(page), 2), (output, 2), ("page.png", 2)):
        assert run([*words[:-4], "--page", wrong]) == said


def test_wrong_words_leave_nothing_behind(
    inputs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "o.csv"
    for words, said in (
        ([], "--edges"),
        (["--edges", "0,1", "--within", "5"], "found both"),
        (["--edges", "5,1"], "--edges: edges must ascend"),
        (["--within", "5", "--chance", "luck"], "--chance"),
        (["--within", "5", "--bins", "99"], "--within is 10 ms wide"),
    ):
        assert run(["histogram", *inputs, "-o", str(output), *TIMES, *words]) == 2
        assert said in capsys.readouterr().err
        assert not output.exists()
