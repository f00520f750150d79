"""A day of seismic picks by two pickers: counts known from exact rational arithmetic."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from coincide import CorrelateOptions, TimingCondition, correlate_tables, explore_tables, within
from tests.conftest import SeismicPicks
from tests.helpers.places import ROOT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.seismic

KEYS = ["station", "phase"]

COUNTS = [
    *(("-250ms", "250ms", ct, n) for ct, n in ((0.1, 42_269), (0.5, 40_518), (0.75, 37_616))),
    *(("-250ms", "250ms", ct, n) for ct, n in ((0.9, 14_403), (1.0, 12_638))),
    *(("-300ms", "100ms", ct, n) for ct, n in ((0.1, 41_612), (0.5, 38_246), (0.75, 14_290))),
    *(("-300ms", "100ms", ct, n) for ct, n in ((0.9, 4_583), (1.0, 100))),
]


def pair_keys(left: pa.ChunkedArray, right: pa.ChunkedArray) -> np.ndarray:
    """One sorted number per pair of ids."""
    keys = left.to_numpy() * 2**32 + right.to_numpy()
    keys.sort()
    return keys


@pytest.mark.parametrize(("lo", "hi", "confidence", "pairs"), COUNTS)
def test_counts(seismic: SeismicPicks, lo: str, hi: str, confidence: float, pairs: int) -> None:
    condition = TimingCondition(within(lo, hi), confidence)
    found = correlate_tables(*seismic, condition, by=KEYS)
    assert found.num_rows == pairs
    counted = correlate_tables(*seismic, condition, by=KEYS, emit="counts", how="left")
    assert counted.num_rows == seismic.stalta.num_rows
    assert pc.sum(counted["matches"]).as_py() == pairs
    back = correlate_tables(seismic.phasenet, seismic.stalta, condition.mirrored(), by=KEYS)
    ids = pair_keys(found["left_id"], found["right_id"])
    assert np.array_equal(ids, pair_keys(back["right_id"], back["left_id"]))


def test_exact_ties(seismic: SeismicPicks) -> None:
    condition = TimingCondition(within("-250ms", "250ms"), 0.5)
    found = correlate_tables(*seismic, condition, by=KEYS, probability=True)
    near = np.abs(found["probability"].to_numpy() - 0.5)
    assert int((near < 1e-15).sum()) == 116
    assert int((near < 1e-9).sum()) == 116


@pytest.mark.parametrize("classes", [1, 3])
def test_classes_and_batches_do_not_matter(seismic: SeismicPicks, classes: int) -> None:
    condition = TimingCondition(within("-300ms", "100ms"), 0.75)
    options = CorrelateOptions(classes=classes, batch_pairs=999, threads=2)
    found = correlate_tables(*seismic, condition, by=KEYS, options=options)
    plain = correlate_tables(*seismic, condition, by=KEYS)
    ids = pair_keys(found["left_id"], found["right_id"])
    assert np.array_equal(ids, pair_keys(plain["left_id"], plain["right_id"]))


def test_the_page_about_exploring_shows_what_the_command_prints(
    seismic: SeismicPicks, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:  # fmt: skip
    from bench.gpu.picks import FOLDER
    from coincide.command_line import run

    page = (ROOT / "docs" / "explore.md").read_text(encoding="utf-8")
    shown = re.search(r"```console\n\$ coincide (.*?)\n(window.*?)```", page, re.DOTALL)
    assert shown
    monkeypatch.chdir(tmp_path)
    for picker in seismic._fields:
        (tmp_path / f"{picker}_picks.parquet").symlink_to(FOLDER / f"{picker}_picks.parquet")
    assert run(shlex.split(shown[1].replace("\\\n", " "))) == 0
    assert capsys.readouterr().out.startswith(shown[2])
    assert (tmp_path / "explore.html").is_file()
    found = explore_tables(*seismic, within=("-250ms", "250ms"), by=KEYS)
    found.save("charts")
    pictures = (ROOT / "docs/images/explore", tmp_path / "charts")
    shown_names, made_names = ({path.name for path in folder.iterdir()} for folder in pictures)
    assert shown_names == made_names
    wanted = [(ct, n) for lo, _, ct, n in COUNTS if lo == "-250ms"]
    assert [(ct, found.pairs_at(ct)) for ct, _ in wanted] == wanted


# On Spark


@pytest.mark.spark
@pytest.mark.parametrize(
    ("lo", "hi", "slices", "ties"), [("-250ms", "250ms", 5, 116), ("-300ms", "100ms", None, 372)]
)
def test_pairs_on_spark(
    seismic: SeismicPicks, compiled_spark: SparkSession, seismic_frames: tuple[DataFrame, DataFrame],
    lo: str, hi: str, slices: int | None, ties: int,
) -> None:  # fmt: skip
    from coincide import correlate

    compiled_spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100000")
    condition, options = TimingCondition(within(lo, hi), 0.5), CorrelateOptions(slices=slices)
    found = correlate(*seismic_frames, condition, by=KEYS, probability=True, options=options)
    found = found.toArrow()
    plain = correlate_tables(*seismic, condition, by=KEYS)
    ids = pair_keys(found["left_id"], found["right_id"])
    assert np.array_equal(ids, pair_keys(plain["left_id"], plain["right_id"]))
    assert int((np.abs(found["probability"].to_numpy() - 0.5) < 1e-15).sum()) == ties


S_AFTER_P = TimingCondition(within("0s", "30s"), 0.5)


def test_the_first_s_after_each_p(seismic: SeismicPicks) -> None:
    """With exact instants it is an as-of join, which pandas knows as well."""
    p, s = (
        seismic.phasenet.filter(pc.equal(seismic.phasenet["phase"], phase)) for phase in ("P", "S")
    )
    asked = {"left_time": "time", "right_time": "time", "by": "station", "emit": "best"}
    found = correlate_tables(p, s, S_AFTER_P, prefer="first", **asked)
    expected = pd.merge_asof(
        *(table.select(["time", "station", "id"]).to_pandas().sort_values("time") for table in (p, s)),
        on="time", by="station", direction="forward", tolerance=pd.Timedelta("30s"),
        suffixes=("_left", "_right"),
    ).dropna()  # fmt: skip
    ids = pair_keys(found["left_id"], found["right_id"])
    lefts, rights = (expected[f"id_{side}"].to_numpy(np.int64) for side in ("left", "right"))
    assert np.array_equal(ids, np.sort(lefts * 2**32 + rights))
    # By the probability, 1 for all, the S pick nearest to 15 s after is taken: another one for a third.
    middle = correlate_tables(p, s, S_AFTER_P, **asked)
    same = np.isin(pair_keys(middle["left_id"], middle["right_id"]), ids).mean()
    assert 0.65 < same < 0.72


def test_mutual_and_optimal_pairs_are_one_to_one(seismic: SeismicPicks) -> None:
    condition = TimingCondition(within("-250ms", "250ms"), 0.5)
    asked = {"by": KEYS, "prefer": "nearest"}
    mutual, optimal = (
        correlate_tables(*seismic, condition, matching=matching, **asked)
        for matching in ("mutual", "optimal")
    )
    for found in (mutual, optimal):
        for side in ("left_id", "right_id"):
            assert pc.count_distinct(found[side]).as_py() == found.num_rows
    assert 40_000 < mutual.num_rows <= optimal.num_rows <= 40_518
