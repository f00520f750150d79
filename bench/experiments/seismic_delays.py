"""Delays between two pickers of a seismic day: template histograms against every fixed width."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.experiment import Bench, Experiment

WIDTHS_MS = (50, 100, 150, 200, 250, 300, 400, 500, 600)
CONFIDENCES = (0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1)
SLACK = "20ms"
SHIFTS_S = [sign * 3 * k for k in range(1, 11) for sign in (-1, 1)]
NEAREST_S = 1.0


@dataclass(frozen=True)
class Day:
    """The second half of the day, and what the first half says of delays."""

    picks: pa.Table  # all of STA/LTA: id, station, phase, t (microseconds)
    others: pa.Table  # all of PhaseNet
    # The pairs that belong to an arrival of the catalogue, with its event.
    links: dict[tuple[int, int], int]
    delays: pa.Table  # the first half's: delay (seconds) and phase


def run(bench: Bench) -> None:
    """Recall against the catalogue and expected accidents, by width and by confidence."""
    day = _day(bench)
    if day is None:
        bench.note(seismic_picks="not here")
        return
    bench.note(links=len(day.links), picks=day.picks.num_rows, delays=day.delays.num_rows)
    shifts = bench.pick(SHIFTS_S, SHIFTS_S[:2])
    fixed = [_by_width(bench, day, width, shifts) for width in bench.pick(WIDTHS_MS, (100, 300))]
    fitted = [_by_templates(bench, day, ct, shifts) for ct in bench.pick(CONFIDENCES, (0.01,))]
    _compare(bench, fixed, fitted)


@dataclass(frozen=True)
class Point:
    """One choice: recall and precision, each with its 95 % interval."""

    recall: float
    recall_spread: tuple[float, float]
    precision: float
    precision_spread: tuple[float, float]


def _by_width(bench: Bench, day: Day, width: int, shifts: list[int]) -> Point:
    from coincide import TimingCondition, within

    condition = TimingCondition(within(f"-{width}ms", f"{width}ms"), 1.0)
    point = _point(day, condition, "t", shifts)
    _note(bench, f"within ±{width} ms", point)
    return point


def _by_templates(bench: Bench, day: Day, confidence: float, shifts: list[int]) -> Point:
    from coincide import TimingCondition, histograms, templates_from_delays, within

    fit = templates_from_delays(
        day.delays, delay="delay", by="phase", unit="s", buckets=40, method="width"
    )
    condition = TimingCondition(within(f"-{SLACK}", SLACK), confidence)
    point = _point(day, condition, histograms("t", template="phase", templates=fit), shifts)
    _note(bench, f"templates, ct {confidence}", point)
    return point


def _note(bench: Bench, name: str, point: Point) -> None:
    bench.figure(f"{name}: recall", 100 * point.recall, "%", spread=_percent(point.recall_spread))
    bench.figure(
        f"{name}: precision", 100 * point.precision, "%", spread=_percent(point.precision_spread)
    )


def _percent(spread: tuple[float, float]) -> tuple[float, float]:
    return 100 * spread[0], 100 * spread[1]


def _point(day: Day, condition: Any, left_time: Any, shifts: list[int]) -> Point:
    from coincide import CorrelateOptions, correlate_tables

    def pairs(others: pa.Table) -> pa.Table:
        return correlate_tables(
            day.picks, others, condition, left_time=left_time, right_time="t",
            by=["station", "phase"], options=CorrelateOptions(unit="us"),
        )  # fmt: skip

    found = pairs(day.others)
    ids = set(zip(found["left_id"].to_pylist(), found["right_id"].to_pylist(), strict=True))
    times = day.others["t"]
    place = day.others.schema.get_field_index("t")
    accidents = [
        pairs(day.others.set_column(place, "t", pc.add(times, shift * 1_000_000))).num_rows
        for shift in shifts
    ]
    mean = float(np.mean(accidents))
    error = 1.96 * float(np.std(accidents, ddof=1)) / len(accidents) ** 0.5
    recall, spread = _recall(day, ids)
    count = max(found.num_rows, 1)
    return Point(
        recall,
        spread,
        1 - mean / count,
        (1 - (mean + error) / count, 1 - (mean - error) / count),
    )


def _recall(day: Day, ids: set[tuple[int, int]]) -> tuple[float, tuple[float, float]]:
    """The share of links that were found; its 95 % interval by resampling the catalogue's events."""
    events = np.unique(list(day.links.values()), return_inverse=True)[1]
    hit = np.array([pair in ids for pair in day.links])
    hits, links = (np.bincount(events, weights) for weights in (hit, np.ones(hit.size)))
    drawn = np.random.default_rng(1).integers(0, hits.size, (1000, hits.size))
    shares = hits[drawn].sum(axis=1) / links[drawn].sum(axis=1)
    low, high = np.quantile(shares, [0.025, 0.975])
    return float(hit.mean()), (float(low), float(high))


def _compare(bench: Bench, fixed: list[Point], fitted: list[Point]) -> None:
    """Recall of templates against that of the fixed width with the same precision."""
    by_precision = sorted(fixed, key=lambda point: point.precision)
    known = [point.precision for point in by_precision]
    recalls = [point.recall for point in by_precision]
    gains = [
        100 * (point.recall - float(np.interp(point.precision, known, recalls)))
        for point in fitted
        if known[0] <= point.precision <= known[-1]
    ]
    if gains:
        bench.figure(
            "templates: recall above a width of equal precision, best", max(gains), "points"
        )
        bench.figure(
            "templates: recall above a width of equal precision, worst", min(gains), "points"
        )
    accidents = [100 * (1 - point.precision) for point in fixed]
    bench.chart(
        "recall",
        "STA/LTA against PhaseNet, second half of the day",
        "accidental pairs (%)",
        "links of the catalogue found (%)",
        accidents,
        {
            "fixed width": [100 * point.recall for point in fixed],
            "templates, interpolated": [
                100 * float(np.interp(share, *_curve(fitted))) for share in accidents
            ],
        },
    )


def _curve(points: list[Point]) -> tuple[list[float], list[float]]:
    ordered = sorted(points, key=lambda point: -point.precision)
    return [100 * (1 - p.precision) for p in ordered], [p.recall for p in ordered]


def _day(bench: Bench) -> Day | None:
    """Links: catalogued STA/LTA picks and the nearest PhaseNet pick of their station and phase."""
    import pandas as pd

    from bench.gpu.picks import FOLDER, read_picks

    try:
        picks, others = (table.to_pandas() for table in read_picks())
        arrivals = pd.read_parquet(FOLDER / "phases_real.parquet")
    except FileNotFoundError:
        return None
    keys = ["station", "phase", "hundredths"]
    for frame in (picks, arrivals):
        frame["hundredths"] = (frame["t"] * 100).round().astype("int64")
    linked = arrivals.merge(picks, on=keys, suffixes=("_arrival", "")).drop_duplicates("id")
    others["seen"] = others["t"]
    near = pd.merge_asof(
        linked.sort_values("t"),
        others.sort_values("t")[["id", "station", "phase", "t", "seen"]],
        on="t", by=["station", "phase"], direction="nearest", tolerance=NEAREST_S, suffixes=("", "_other"),
    ).dropna(subset=["id_other"])  # fmt: skip
    half = float(near["t"].median())
    first, second = near[near["t"] < half], near[near["t"] >= half]
    links = zip(second["id"], second["id_other"].astype(int), strict=True)
    return Day(
        _table(picks[picks["t"] >= half]),
        _table(others[others["t"] >= half - 60]),
        dict(zip(links, second["event_id"], strict=True)),
        pa.table(
            {"delay": (first["t"] - first["seen"]).to_numpy(), "phase": first["phase"].to_numpy()}
        ),
    )


def _table(frame: Any) -> pa.Table:
    times = (frame["t"] * 1e6).round().astype("int64")
    return pa.table(
        {"id": frame["id"], "station": frame["station"], "phase": frame["phase"], "t": times}
    )


ABOUT = """\
STA/LTA picks of a seismic day, whose delays are skewed and differ by phase, joined with PhaseNet picks by
station and phase. Links are the catalogue's picks with the nearest PhaseNet pick within a second. Template
histograms of the delay, by phase with 40 buckets, are fitted on the first half of the day. The second half
gives recall of the links (95 % interval by resampling events). Precision is the share of pairs that are not
accidental, by 20 shifts of 3 to 30 s.
"""

EXPERIMENT = Experiment(
    summary="a seismic day: templates of measured delays against every fixed width",
    run=run,
    title="Delays of a seismic day",
    about=ABOUT,
    needs="the seismic picks",
)
