"""`coincide sequence` and `coincide coincidence`: files in, the tables of the functions out, a summary."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from coincide import CorrelateOptions, around, coincidence_tables, histograms, sequence_tables
from coincide import corrected_clock as corrected
from coincide.command_line import run

RNG = np.random.default_rng(57)
MS = CorrelateOptions(unit="ms")
NAMES = ["click", "cart", "pay"]


def drawn(rows: int, **more: Any) -> pa.Table:
    """Events in no order, some at one time, of a few users."""
    times = RNG.integers(0, 4000, rows)
    return pa.table({"at": times, "user": RNG.integers(1, 4, rows), **more})


CLICK = drawn(60, id=np.arange(60) + 100, page=RNG.choice(["x", "y"], 60))
CART = drawn(50, id=[f"k{i}" for i in range(50)])
PAY = drawn(40).rename_columns(["paid", "uid"])
TABLES = [CLICK, CART, PAY]
TIME = {"click": "at", "cart": "at", "pay": "paid"}
TIMES = ("--names", "click,cart,pay", "--unit", "ms", "--time", "at", "--time", "pay=paid")
KEY = [("user", "user", "uid")]


@pytest.fixture
def inputs(tmp_path: Path) -> list[str]:
    paths = [tmp_path / name for name in ("click.parquet", "cart.csv", "pay.arrow")]
    pq.write_table(CLICK, paths[0])
    csv.write_csv(CART, paths[1])
    feather.write_feather(PAY, str(paths[2]), compression="uncompressed")
    return list(map(str, paths))


def rows(table: pa.Table) -> list[str]:
    """The rows in one order, since an answer has none."""
    return sorted(map(repr, table.to_pylist()))


def said_in_one_line(capsys: pytest.CaptureFixture[str]) -> str:
    said = capsys.readouterr().err
    assert said.count("\n") == 1, said
    return said


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ((), {}),
        (("--total", "0s", "700ms", "--by", "user=user=uid"),
         {"total": ("0s", "700ms"), "by": KEY}),
        (("--around", "1ms", "--around", "20ms", "--around", "pay=100ms,5ms", "--confidence", "40%",
          "--probability"),
         {"time": {"click": around("at", "20ms"), "cart": around("at", "20ms"),
                   "pay": around("paid", before="100ms", after="5ms")},
          "confidence": 0.4, "probability": True}),
        (("--around", "cart=30ms", "--confidence", "0.9", "--link-probability"),
         {"time": {**TIME, "cart": around("at", "30ms")}, "confidence": 0.9,
          "link_probability": True}),
        (("--columns", "id,user", "--columns", "click=page", "--columns", "click=id", "--columns",
          "pay=uid,paid"),
         {"columns": {"click": ["page", "id"], "cart": ["id", "user"], "pay": ["uid", "paid"]}}),
        (("--emit", "best", "--prefer", "first"), {"emit": "best", "prefer": "first"}),
        (("--where", "click_page = 'x' AND cart_user = pay_uid AND click_at < pay_paid - 20"),
         {"where": "click_page = 'x' AND cart_user = pay_uid AND click_at < pay_paid - 20"}),
        (("--where", "click_user = cart_user AND pay_id < 4", "--how", "anti"),
         {"where": "click_user = cart_user AND pay_id < 4", "how": "anti"}),
        (("--emit", "counts", "--by", '"user"=user=uid'), {"emit": "counts", "by": KEY}),
        (("--how", "anti", "--by", "user=user=uid", "--tick", "us", "--threads", "1"),
         {"how": "anti", "by": KEY, "options": CorrelateOptions(unit="ms", tick="us")}),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
def test_sequences_are_those_of_the_function(
    inputs: list[str], tmp_path: Path, words: tuple[str, ...], asked: dict[str, Any]
) -> None:
    output = tmp_path / "found.parquet"
    windows = ("--within", "-50ms", "300ms", "--within", "400")
    assert run(["sequence", *inputs, "-o", str(output), *TIMES, *windows, *words]) == 0
    given: dict[str, Any] = {"names": NAMES, "time": TIME, "options": MS, **asked}
    wanted = sequence_tables(TABLES, [("-50ms", "300ms"), 400], **given)
    found = pq.read_table(output)
    assert found.schema.equals(wanted.schema)
    assert rows(found) == rows(wanted)
    assert found.num_rows > 3


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ((), {}),
        (("--at-least", "2", "--by", "user=user=uid"), {"at_least": 2, "by": KEY}),
        (("--at-least", "2", "--where", "cart_user = pay_uid OR cart_id IS NULL"),
         {"at_least": 2, "where": "cart_user = pay_uid OR cart_id IS NULL"}),
        (("--resolution", "16ms", "--confidence", "50%", "--at-least", "2", "--probability"),
         {"time": {name: around(time, before=0, after=16) for name, time in TIME.items()},
          "confidence": 0.5, "at_least": 2, "probability": True}),
    ],
)  # fmt: skip
def test_coincidences_are_those_of_the_function(
    inputs: list[str], tmp_path: Path, words: tuple[str, ...], asked: dict[str, Any]
) -> None:
    output = tmp_path / "found.parquet"
    assert run(["coincidence", *inputs, "-o", str(output), *TIMES, "--within", "30ms", *words]) == 0
    given: dict[str, Any] = {"names": NAMES, "time": TIME, "options": MS, **asked}
    wanted = coincidence_tables(TABLES, "30ms", **given)
    found = pq.read_table(output)
    assert found.schema.equals(wanted.schema)
    assert rows(found) == rows(wanted)
    assert found.num_rows > 3


def test_histograms_and_errors_of_clocks(tmp_path: Path) -> None:
    events = pa.table({"seen": [100, 300], "kind": ["p", "q"]})
    shapes = pa.table(
        {"template": ["p", "p", "q"], "lower": [-20, -5, -9], "upper": [-5, 0, 0], "mass": [0.5, 0.5, 1]}
    )  # fmt: skip
    line = pa.table(
        {"status": ["found"], "start": [0], "end": [900], "offset": [7.0], "drift": [0.0]}
    )
    (tmp_path / "e=1").mkdir()
    paths = {
        name: str(tmp_path / name)
        for name in ("a.parquet", "b.parquet", "o.parquet", "e=1/shapes.csv", "e=1/line.parquet")
    }
    pq.write_table(events, paths["a.parquet"])
    pq.write_table(events, paths["b.parquet"])
    csv.write_csv(shapes, paths["e=1/shapes.csv"])
    pq.write_table(line, paths["e=1/line.parquet"])
    words = [
        "--time", "seen", "--template", "a=kind", "--templates", f"a={paths['e=1/shapes.csv']}",
        "--clock", f"b={paths['e=1/line.parquet']}", "--clock-around", "b=2",
    ]  # fmt: skip
    asked = ["--within", "0", "30", "--confidence", "0.5", "--probability"]
    two = [paths["a.parquet"], paths["b.parquet"]]
    assert run(["sequence", *two, "-o", paths["o.parquet"], *words, *asked]) == 0
    times = {
        "a": histograms("seen", template="kind", templates=shapes),
        "b": corrected("seen", line, around=2),
    }
    wanted = sequence_tables(
        [events, events.slice(0)], [(0, 30)], 0.5, time=times, probability=True
    )
    found = pq.read_table(paths["o.parquet"])
    assert rows(found) == rows(wanted)
    assert found.num_rows == 2
    # Without a name it is a file of all, though its folder has = in its name.
    of_all = ["--time", "seen", "--clock", paths["e=1/line.parquet"], "--overwrite", *asked[:-1]]
    assert run(["sequence", *two, "-o", paths["o.parquet"], *of_all]) == 0
    assert pq.read_table(paths["o.parquet"]).to_pydict() == {"a_id": [0, 1], "b_id": [0, 1]}


def test_one_file_three_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No event is in a sequence twice, however its file is called, and whatever is read of it."""
    failed = pa.table(
        {"at": [0, 10, 10, 35, 500], "user": ["u", "u", "u", "u", "v"], "to": ["u"] * 5}
    )
    pq.write_table(failed, tmp_path / "failed.parquet")
    (tmp_path / "link.parquet").symlink_to(tmp_path / "failed.parquet")
    monkeypatch.chdir(tmp_path)
    words = ["--time", "at", "--by", "user=user=to", "--columns", "b=at"]
    three = ["failed.parquet", str(tmp_path / "failed.parquet"), "link.parquet"]
    windows = ["--within", "0", "30", "--within", "0", "30"]
    assert run(["sequence", *three, "-o", "o.parquet", *words, *windows]) == 0
    found = pq.read_table("o.parquet")
    asked = {"time": "at", "by": [("user", "user", "to")]}
    columns = {"a": "id", "b": "at", "c": "id"}
    numbered = failed.append_column("id", pa.array(range(5)))
    wanted = sequence_tables([numbered] * 3, [(0, 30)] * 2, columns=columns, **asked)
    assert rows(found) == rows(wanted)
    # 0, 10, 10 in both orders; each of the two and 35 after 0 and the other; and 10, 10, 35.
    triples = zip(found["a_id"].to_pylist(), found["c_id"].to_pylist(), strict=True)
    assert sorted(triples) == [(0, 1), (0, 2), (0, 3), (0, 3), (1, 3), (2, 3)]


def test_keys_of_csv_are_what_the_others_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Numbers of CSV are texts where one of several inputs has texts, in a file of two inputs, too."""
    (tmp_path / "a.csv").write_text("t,k,l\n0,7,7\n1,8,7\n")
    pq.write_table(pa.table({"t": [2, 3], "k": ["7", "007"]}), tmp_path / "b.parquet")
    (tmp_path / "nothing.csv").write_text("t,k\n")
    paths = [str(tmp_path / name) for name in ("a.csv", "b.parquet", "a.csv")]
    words = ["--time", "t", "--by", "k=k=l", "--within", "0", "5", "--within", "-5", "5"]
    assert run(["sequence", *paths, "-o", "-", *words]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines() == ["k,a_id,b_id,c_id", "7,0,0,1"]
    assert "the key 'k' holds numbers in a and text in b, such as '007'" in told.err
    assert "the key 'l' holds numbers in c and text in b" in told.err
    paths[2] = str(tmp_path / "nothing.csv")
    assert run(["sequence", *paths, "-o", "-", *words[:2], "--by", "k", *words[4:]]) == 0
    assert capsys.readouterr().out.splitlines() == ["k,a_id,b_id,c_id"]


def test_a_condition_is_on_texts_of_csv_that_begin_like_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = "".join(f"{i * 100},7\n" for i in range(200_000))
    (tmp_path / "a.csv").write_text(f"t,shop\n{lines}30000000,x7\n")
    (tmp_path / "b.csv").write_text("t,shop\n30000001,x7\n30000002,8\n")
    paths = [str(tmp_path / name) for name in ("a.csv", "b.csv")]
    words = ["--time", "t", "--within", "0", "5", "--where", "a_shop = b_shop"]
    assert run(["sequence", *paths, "-o", "-", *words]) == 0
    assert capsys.readouterr().out.splitlines() == ["a_id,b_id", "200000,0"]


def test_options_of_csv_are_those_of_all_inputs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").write_text("t;k\n01.05.2024 10:00:00;a\n01.05.2024 10:00:09;b\nnever;b\n")
    text = b"t;k\n01.05.2024 10:00:01;a\n01.05.2024 10:00:05;a\n"
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text), isatty=lambda: False))
    words = [
        "--csv-delimiter", ";", "--time-format", "%d.%m.%Y %H:%M:%S", "--time", "t", "--names",
        "ask,answer", "--columns", "t", "--by", "k", "--invalid", "drop", "--within", "0s", "3s",
    ]  # fmt: skip
    output = tmp_path / "o.csv"
    assert run(["sequence", str(tmp_path / "a.csv"), "-", "-o", str(output), *words]) == 0
    assert csv.read_csv(output)["k"].to_pylist() == ["a"]
    told = capsys.readouterr().out
    assert "ask lines      1 skipped" in told
    assert "ask to answer  1 links" in told


def test_the_summary_says_what_was_found(
    inputs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "found.csv")
    words = [*inputs, "-o", output, *TIMES, "--within", "0s", "300ms"]
    windows = ["--within", "0s", "200ms"]
    found = sequence_tables(
        TABLES, [("0s", "300ms"), ("0s", "200ms")], names=NAMES, time=TIME, options=MS
    ).num_rows
    assert run(["sequence", *words, *windows]) == 0
    told = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    told = {name.strip(): text.strip() for name, text in told.items()}
    assert told["click"] == "60 rows"
    assert told["click to cart"].endswith(" links")
    assert (told["tried"], told["found"]) == (f"{found:,}", f"{found:,}")
    assert "rows" not in told
    best = ["--emit", "best", "--overwrite", "--json"]
    assert run(["sequence", *words, *windows, *best]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["streams"]["pay"]["rows"] == 40
    assert (told["found"], told["tick"], told["output"]) == (found, "ms", output)
    assert told["rows"] == csv.read_csv(output).num_rows < found
    assert told["links"].keys() == {"click to cart", "cart to pay"}
    assert run(["sequence", *words, "--within", "1h", "2h", "--overwrite"]) == 0
    why = "no two events from cart to pay meet the window of that step. Join these two by coincide join"
    assert f"none found:    {why} to see why" in capsys.readouterr().out
    words[-2:] = ["30ms"]
    assert run(["coincidence", *words, "--overwrite", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["links"].keys() == {"click to cart", "click to pay", "cart to pay"}
    assert told["rows"] == told["found"] == csv.read_csv(output).num_rows


def check_refused(
    command: str, words: list[str], folder: Path, capsys: pytest.CaptureFixture[str], said: str
) -> None:
    """That a command ends with 2 and some words, and writes nothing."""
    output = folder / "o.csv"
    assert run([command, *words, "-o", str(output), *TIMES]) == 2
    assert said in said_in_one_line(capsys)
    assert not output.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--within", "0s", "1s"], "--within needs one window for each step, which are 2"),
        (["--within", "0s", "1s", "--within", "0s", "none"],
         "--within from cart to pay needs both ends"),
        (["--within", "5s", "1s", "--within", "1s"], "--within: the window is empty"),
        (["--within", "1s", "--within", "soon"], "--within: cannot read the duration 'soon'"),
        (["--within", "1s", "--within", "1s", "--total", "1h"], "--total takes two values, LO HI"),
        (["--within", "1s", "--within", "1s", "--total", "1h", "2h"],
         "--total excludes all sequences"),
        (["--within", "1s", "--within", "1s", "--around", "5ms"], "Give it, such as --confidence 0.9"),
        (["--within", "1s", "--within", "1s", "--around", "shop=5ms"],
         "--around takes a value for all inputs, or NAME=VALUE for one of click, cart, pay"),
        (["--within", "1s", "--within", "1s", "--time", "cart=then"], "cart has no column 'then'"),
        (["--within", "1s", "--within", "1s", "--by", "user=uid"],
         "Write --by user, or --by user=uid=user."),
        (["--within", "1s", "--within", "1s", "--by", "user==uid"], "--by takes names"),
        (["--within", "1s", "--within", "1s", "--columns", "*"],
         "such as --columns click=id,page"),
        (["--within", "1s", "--within", "1s", "--names", "a,b"], "Write --names click,cart,pay"),
        (["--within", "1s", "--within", "1s", "--how", "anti", "--probability"],
         "--how anti gives no sequence, so there is no probability. Remove --probability."),
        (["--within", "1s", "--within", "1s", "--max-pairs", "3"],
         "more sequences than --max-pairs 3 allows"),
        (["--within", "1s", "--within", "1s", "--by", "page=id=uid"],
         "the key 'id' is string in cart and int64 in pay"),
        (["--within", "1s", "--within", "1s", "--where", "click_x = 1"],
         "--where: a sequence has no column 'click_x'"),
        (["--within", "1s", "--within", "1s", "--where", "pay_uid"],
         "--where must be true or false for a sequence (found int64). Compare it with something."),
        (["--within", "1s", "--within", "1s", "--where", "shop_x = 1"],
         "Write click_shop_x or cart_shop_x or pay_shop_x"),
        ([], "Missing option '--within'. Say how long may pass"),
    ],
)  # fmt: skip
def test_wrong_words_of_sequences_leave_nothing_behind(
    inputs: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
) -> None:
    check_refused("sequence", [*inputs, *words], tmp_path, capsys, said)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--within", "-1s"], "--within: a mutual deadline must not be negative"),
        (["--within", "1s", "--at-least", "4"], "--at-least is a number of streams from 2 to 3"),
        (["--within", "1s", "--at-least", "many"], "'--at-least'"),
        (["--within", "1s", "--emit", "best"], "No such option: --emit"),
        (["--within", "1s", "--max-pairs", "3"],
         "Narrow the width, raise the confidence, or name more keys, or allow more."),
    ],
)  # fmt: skip
def test_wrong_words_of_coincidences_leave_nothing_behind(
    inputs: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
) -> None:
    check_refused("coincidence", [*inputs, *words], tmp_path, capsys, said)


def test_wrong_inputs(
    inputs: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output, words = tmp_path / "o.csv", ["--time", "at", "--unit", "ms"]
    monkeypatch.chdir(tmp_path)
    sequence, coincidence = ["--within", "1s"], ["--within", "1s"]
    gone = str(tmp_path / "gone.csv")
    # `a.parquet` is no number, and so no second end of the window.
    for command, paths, asked, said in (
        ("sequence", [], sequence, "Missing argument 'INPUTS"),
        ("sequence", inputs[:1], sequence, "INPUTS needs two streams or more (found 1)"),
        ("sequence", [inputs[0], gone], sequence, "b: "),
        ("sequence", ["-", "-"], sequence, "standard input can be one input only"),
        ("coincidence", [inputs[0]] * 2, coincidence, "coincide join of one table finds pairs"),
        ("coincidence", [inputs[0], "click.parquet"], coincidence, "found one table as a and as b"),
    ):
        assert run([command, *asked, *paths, "-o", str(output), *words]) == 2
        assert said in said_in_one_line(capsys)
        assert not output.exists()


def test_ticks_that_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kinds = pa.int64(), pa.int64(), pa.float64()
    paths = [tmp_path / f"{i}.parquet" for i in range(3)]
    for path, kind in zip(paths, kinds, strict=True):
        pq.write_table(pa.table({"t": pa.array([1, 2], kind)}), path)
    words = ["--time", "t", "--unit", "ms", "--within", "0s", "1s", "--within", "0s", "1s"]
    assert run(["sequence", *map(str, paths), "-o", "-", *words]) == 2
    said = said_in_one_line(capsys)
    assert "all streams must count time in one tick (found ms and ns). Give --tick us." in said
    assert run(["sequence", *map(str, paths), "-o", "-", *words, "--tick", "us"]) == 0
    assert "0,0,0\n0,0,1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            "sequence",
            ["INPUTS", "--total", "--where", "user=uid=user", "--emit best", "pay=paid_at"],
        ),
        ("coincidence", ["INPUTS", "--at-least", "streams says how many", "pump=200ms"]),
    ],
)
def test_help_teaches(command: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    for word in (*words, "NAME=… for one", "Examples", "Exit codes"):
        assert word in told
    assert "--relation" not in told
