"""A day of seismic picks by two pickers: real times, keys and lengths."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.experiment import Bench
from bench.gpu.equality import check_tables
from coincide.model.condition import TimingCondition, within

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "seismic_italy"
"""Next to the repository, which does not hold the picks."""

PICKERS = ("stalta", "phasenet")
_KEYS = ("station", "phase")
_WINDOWS = (("-250ms", "250ms"), ("-300ms", "100ms"))


def read_picks() -> tuple[pa.Table, ...]:
    """The picks of both pickers, with interval timestamps; a FileNotFoundError if they are not here."""
    return tuple(pq.read_table(FOLDER / f"{picker}_picks.parquet") for picker in PICKERS)


def check_picks(bench: Bench) -> None:
    """Both backends on windows and confidence thresholds that many pairs just reach."""
    try:
        left, right = read_picks()
    except FileNotFoundError:
        bench.note(seismic_picks="not here")
        return
    rows = bench.pick(max(left.num_rows, right.num_rows), 30)
    left, right = left[:rows], right[:rows]
    for low, high in _WINDOWS:
        for confidence in bench.pick((0.1, 0.5, 0.75, 0.9, 1.0), (0.5,)):
            condition = TimingCondition(within(low, high), confidence)
            name = f"seismic picks, {low} to {high}, confidence {confidence}"
            check_tables(bench, name, left, right, condition, by=_KEYS, probability=True)
