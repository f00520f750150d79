"""`coincide causality` with what `coincide join` takes: keys of other names, --where, all columns, --k."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from coincide import CausalityCondition, Temporal, around, causality_tables, histograms
from coincide.command_line import run
from tests.helpers.rows import in_order

DELAYS = pa.table(
    {"template": ["fast", "slow"], "delay_lower": [0, 0], "delay_upper": [3, 9], "mass": [1.0, 1.0]}
)


def side(seed: int, size: int, key: str) -> pa.Table:
    random = np.random.default_rng(seed)
    letters = random.choice(["a", "B", "b", "c"], size)
    return pa.table(
        {
            "id": np.arange(size), "time": random.integers(0, 400, size), key: letters,
            "off": random.integers(0, 5, size), "size": random.integers(0, 9, size),
            "device": random.choice(["fast", "slow"], size), "x": random.integers(0, 9, size) / 2,
        }
    )  # fmt: skip


CAUSES, EFFECTS = side(1, 90, "station"), side(2, 120, "sta")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    pq.write_table(CAUSES, tmp_path / "causes.parquet")
    csv.write_csv(EFFECTS, tmp_path / "effects.csv")
    pq.write_table(EFFECTS, tmp_path / "effects.parquet")
    pq.write_table(DELAYS, tmp_path / "delays.parquet")
    return tmp_path


def causality(place: Path, *options: str, engine: str = "local") -> int:
    effects = "effects.parquet" if engine == "spark" else "effects.csv"
    inputs = [str(place / name) for name in ("causes.parquet", effects)]
    output = ["-o", str(place / "out"), "--overwrite", "--engine", engine]
    return run(["causality", *inputs, *output, "--delta", "0", "30", *options])


def result(place: Path) -> list[str]:
    return in_order(ds.dataset(str(place / "out"), format="parquet").to_table())


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_the_pairs_of_tables(place: Path, engine: str) -> None:
    where = "distance <= cause_size / 2 AND cause_off <> effect_off"
    words = ["--by", "station=sta", "--where", where, "--cause-place", "x"]
    words += ["--cause-columns", "*", "--effect-columns", "id,size", "--confidence", "0.25"]
    words += ["--cause-around-column", "off"]
    words += ["--emit", "best", "--prefer", "distance,-size", "--k", "2", "--how", "left"]
    assert causality(place, *words, engine=engine) == 0
    clock: Any = around("time", column="off")
    wanted = causality_tables(
        CAUSES, EFFECTS, CausalityCondition(Temporal(0, 30), confidence=0.25), cause_time=clock,
        effect_time=clock, cause_place="x", effect_place="x", by=[("station", "sta")],
        where=where, cause_columns="*", effect_columns=("id", "size"), emit="best",
        prefer=["distance", "-size"], k=2, how="left",
    )  # fmt: skip
    assert result(place) == in_order(wanted)
    assert wanted.num_rows - wanted["effect_id"].null_count > 30


def test_one_to_one_and_histograms(place: Path) -> None:
    words = ["--cause-template", "device", "--cause-templates", str(place / "delays.parquet")]
    words += ["--effect-time", "time", "--matching", "mutual", "--prefer", "first"]
    assert causality(place, *words, "--confidence", "0.5") == 0
    wanted = causality_tables(
        CAUSES, EFFECTS, CausalityCondition(Temporal(0, 30), confidence=0.5),
        cause_time=histograms("time", template="device", templates=DELAYS), effect_time="time",
        matching="mutual", prefer="first",
    )  # fmt: skip
    assert result(place) == in_order(wanted)
    assert wanted.num_rows > 10


@pytest.mark.parametrize("sides", [1, 2])
def test_a_condition_on_texts_that_begin_as_numbers(place: Path, sides: int) -> None:
    (place / "codes.csv").write_text("id,time,code\n1,0,7\n2,10,007\n3,12,8\n")
    words = ["causality", *[str(place / "codes.csv")] * sides, "-o", str(place / "out")]
    words += ["--delta", "1", "5", "--where", "cause_code = '007'"]
    assert run(words) == 0
    found = ds.dataset(str(place / "out"), format="parquet").to_table()
    assert found.to_pylist() == [{"cause_id": 2, "effect_id": 3, "delta": 2}]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--by", "station="], "--by takes names, or LEFT=RIGHT"),
        (["--where", "left_id = 3"], "'left_id' is not a column of a pair"),
        (["--where", "cause_n = 3"], "--where: a pair has no column 'cause_n'"),
        (["--cause-around-unit", "ms"], "--cause-around-unit needs --cause-around-column"),
        (
            ["--effect-around-column", "off", "--effect-around", "3"],
            "describe the same timestamps in different ways",
        ),
        (["--cause-template", "device"], "Add --cause-templates"),
        (["--k", "2"], "--k 2 chooses among matches, but"),
        (["--prefer", "distance", "--emit", "best"], "--prefer distance needs places"),
    ],
)
def test_bad_use_is_one_line(place: Path, words: list[str], told: str, capsys: Any) -> None:
    assert causality(place, *words) == 2
    found = capsys.readouterr().err
    assert told in found
    assert found.count("\n") == 1
    assert not (place / "out").exists()
