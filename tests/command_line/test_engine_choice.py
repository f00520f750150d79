"""Which engine a command takes by itself, and what it says of it."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coincide.command_line import engines, run
from tests.helpers.rows import in_order
from tests.helpers.workplace import WINDOW, Workplace, events


@pytest.fixture
def work(tmp_path, capsys):
    return Workplace(tmp_path, capsys)


def chosen(work, monkeypatch, free: int, **files):
    """The engine that a join takes with so much free memory, and why."""
    monkeypatch.setattr(engines, "free_memory", lambda: free)
    seen = []

    def stop(request, *_):
        seen.append(request)
        raise KeyboardInterrupt

    for name in ("_in_process", "_on_spark"):
        monkeypatch.setattr(f"coincide.command_line.engines.{name}", stop)
    left, right = (files.get(side, str(getattr(work, side))) for side in ("left", "right"))
    words = ["join", str(left), str(right), "-o", files.get("output", str(work.output))]
    assert run([*words, *WINDOW, *files.get("more", ())]) in (0, 130)
    return seen[0].engine, seen[0].engine_why


def test_small_inputs_stay_in_this_process(work, monkeypatch):
    engine, why = chosen(work, monkeypatch, 1 << 30)
    assert engine == "local"
    assert why.endswith(" kB of input")


def test_parquet_that_does_not_fit_goes_to_spark(work, monkeypatch):
    many = events(**{name: [0] * 5000 for name in ("id", "min_time", "max_time", "key")})
    work.write("left.parquet", many)
    engine, why = chosen(work, monkeypatch, 1 << 20)
    assert engine == "spark"
    assert "would need about 1.0 MB of memory in one process, and 524.3 kB" in why
    assert chosen(work, monkeypatch, 1 << 22)[0] == "local"


def test_only_columns_that_are_read_count(work, monkeypatch):
    text = pa.array([f"{i:01000}" for i in range(2000)])
    table = events(**{name: list(range(2000)) for name in ("id", "min_time", "max_time", "key")})
    pq.write_table(table.append_column("text", text), work.left, use_dictionary=False)
    assert chosen(work, monkeypatch, 1 << 20)[0] == "local"
    more = ["--left-columns", "text"]
    assert chosen(work, monkeypatch, 1 << 20, more=more)[0] == "spark"


def test_csv_is_read_into_this_process_anyway(work, monkeypatch):
    path = work.folder / "a.csv"
    path.write_text("id,min_time,max_time\n" + "1,2,3\n" * 100)
    assert chosen(work, monkeypatch, 100, left=path, right=path) == (
        "local",
        "1.2 kB of input",
    )
    engine, why = chosen(work, monkeypatch, 100, left=path)
    assert (engine, "in one process" in why) == ("spark", True)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--master", "local[1]"], "for --master"),
        (["--conf", "a=b", "--slices", "3"], "for --conf and --slices"),
        (["--way", "broadcast"], "for --way broadcast"),
    ],
)
def test_options_of_spark_take_spark(work, monkeypatch, more, why):
    assert chosen(work, monkeypatch, 1 << 40, more=more) == ("spark", why)


@pytest.mark.parametrize("place", ["left", "output"])
def test_what_pyarrow_does_not_open_is_for_spark(work, monkeypatch, place):
    uri = "foo://user:secret@bucket/a.parquet"
    engine, why = chosen(work, monkeypatch, 1 << 40, **{place: uri})
    assert engine == "spark"
    assert why.startswith("PyArrow cannot open foo://")
    assert "secret" not in why


def test_who_asks_gets_what_they_ask_for(work, monkeypatch):
    for engine in ("local", "spark"):
        assert chosen(work, monkeypatch, 100, more=["--engine", engine]) == (engine, "")


def test_the_summary_says_so(work, capsys):
    words = ["join", str(work.left), str(work.right), "-o", str(work.output), *WINDOW]
    assert run(words) == 0
    lines = capsys.readouterr().out.splitlines()
    (line,) = (line for line in lines if line.startswith("engine"))
    assert line.split(maxsplit=1)[1].startswith("local: ")
    assert in_order(work.result()) == in_order(work.expected())
    assert run([*words, "--overwrite", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["engine"] == "local"
    assert told["engine_why"].endswith("of input")
