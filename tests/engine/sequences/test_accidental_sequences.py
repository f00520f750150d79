"""Accidental sequences of tables: what the oracle counts where streams are moved apart, and refusals."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coincide import (
    AccidentalPairs,
    ConditionError,
    CorrelateOptions,
    ShortShiftsWarning,
    accidental_pair_tables,
    accidental_sequence_tables,
    sequence_tables,
)
from cpu_fallback.reference.sequences import Row, sequences, steps
from tests.helpers.sequence_cases import drawn_case
from tests.helpers.tuple_conditions import drawn_condition, with_values


def moved(rows: list[Row], ticks: int) -> list[Row]:
    """Rows of the oracle, some ticks later."""
    return [
        row
        if row["law"] is None
        else {**row, "law": [(low + ticks, high + ticks, mass) for low, high, mass in row["law"]]}
        for row in rows
    ]


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@pytest.mark.parametrize("seed", range(100))
def test_counts_are_those_of_streams_that_are_moved(seed: int) -> None:
    rng = random.Random(seed)
    case = with_values(drawn_case(rng, 8, n=rng.choice([2, 3, 3, 4]), is_apart=True, until=24), rng)
    widest = max(hi - lo for lo, hi in case.windows)
    shifts = rng.sample([*range(-widest - 6, -widest), *range(widest + 1, widest + 7)], 3)
    confidence = rng.choice([0.1, 0.5, 1.0])
    asked: dict[str, Any] = {"names": case.names, "time": case.times, "by": case.by}
    total, admits = None, lambda *rows: True
    are_exact = all(time == "stamp" for time in case.times.values())
    if len(case.windows) == 2 or (len(case.windows) > 2 and are_exact):
        least, most = (sum(each) for each in zip(*case.windows, strict=True))
        lo = rng.randint(least, most)
        total = asked["total"] = lo, rng.randint(lo, most + 2)
    if rng.random() < 0.3:
        where = drawn_condition(rng, case.names)
        asked["where"], admits = where.sql, where.admits
    found = accidental_sequence_tables(
        case.tables, case.windows, confidence, shifts=shifts, **asked,
        options=CorrelateOptions(batch_pairs=rng.choice([1, 3, None])),
    )  # fmt: skip

    def count(shift: int) -> int:
        streams = [moved(rows, k * shift) for k, rows in enumerate(case.rows)]
        windows = steps(case.windows, total)
        return len(sequences(streams, windows, confidence, case.by, admits=admits))

    assert found.counts == tuple(map(count, shifts))
    assert found.found == count(0)
    assert found.shifts == tuple(shifts)
    assert found.expected == pytest.approx(sum(found.counts) / 3)


def test_two_streams_have_the_accidental_pairs_of_a_join() -> None:
    rng = np.random.default_rng(3)
    streams = [{"t": rng.integers(0, 5_000, 300), "u": rng.integers(0, 3, 300)} for _ in range(2)]
    shifts = [40, -40, 55]
    found = accidental_sequence_tables(streams, [(-5, 9)], time="t", by="u", shifts=shifts)
    pairs = accidental_pair_tables(
        *streams, within=(-5, 9), left_time="t", right_time="t", by="u", shifts=shifts
    )
    assert isinstance(found, AccidentalPairs)
    assert (found.counts, found.spread) == (pairs.counts, pairs.spread)
    assert min(found.counts) > 50


def test_true_sequences_do_not_count_and_arguments_of_rows_are_taken(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    true = rng.integers(0, 10**6, 200)
    times = [np.concatenate([true, rng.integers(0, 10**6, 3_000)]) for _ in range(3)]
    paths = []
    for k, own in enumerate(times):
        paths.append(tmp_path / f"{k}.parquet")
        pq.write_table(pa.table({"t": own}), paths[-1])
    asked: dict[str, Any] = {"time": "t", "options": CorrelateOptions(unit="ms", max_pairs=10**6)}
    windows = [("-50ms", "50ms")] * 2
    chance = accidental_sequence_tables(
        paths, windows, shifts=("300ms", "-300ms", "470ms"), columns="t", emit="best", **asked
    )
    assert chance.shifts == ("300ms", "-300ms", "470ms")
    rows = sequence_tables(paths, windows, **asked).num_rows
    assert chance.found == rows
    assert rows - chance.expected == pytest.approx(200 + 2 * 200 * 3 * 100 * 3_000 / 10**6, rel=0.5)
    assert str(chance).startswith(f"found       {rows:,}")
    told = chance.as_dict()
    assert told["sequences"] == rows
    assert told["accidental_sequences"] == round(chance.expected, 3)
    assert "accidental_pairs" not in told


STREAMS: list[dict[str, Any]] = [{"t": [0, 50]}, {"t": [5]}, {"t": [9]}]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"shifts": [10]}, r"the shift 10 is not longer than the window, 10 ticks"),
        ({"shifts": [0]}, "moves nothing"),
        ({"shifts": []}, "shifts is empty"),
        ({"shifts": 30}, "must be a sequence of durations"),
        ({"shifts": [30, 30]}, "has 30 twice"),
        ({"shifts": [2**60]}, "moves the last stream beyond 2.60 ticks"),
        ({"windows": [(0, 10), (0, 40)]}, r"the shift 30 is not longer than the window, 40 ticks"),
        ({"tables": [STREAMS[0], STREAMS[1], STREAMS[0]]}, "found it as a and as c"),
        ({"report": None}, "Remove report"),
        ({"having": 3}, "there is no argument 'having'. Use one of sequence_tables's: windows"),
        ({"how": "outer"}, "how"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any], words: str) -> None:
    asked: dict[str, Any] = {
        "tables": STREAMS, "windows": [(0, 10), (0, 10)], "time": "t", "shifts": [30], **change,
    }  # fmt: skip
    with pytest.raises(ConditionError, match=words):
        accidental_sequence_tables(**asked)


def test_shifts_that_uncertain_times_may_bridge_are_warned_of() -> None:
    streams = [{"low": [0], "high": [8]} for _ in range(3)]
    asked: dict[str, Any] = {"time": ("low", "high"), "shifts": [25]}
    with pytest.warns(ShortShiftsWarning, match="not longer than the window"):
        accidental_sequence_tables(streams, [(-10, 10), (-10, 10)], 0.1, **asked)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        accidental_sequence_tables(streams, [(-10, 10), (-10, 10)], 0.6, **asked)
