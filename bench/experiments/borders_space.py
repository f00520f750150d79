"""Figures 16 to 19 and 9 of the BMQ paper: moving objects, more dimensions, and region transitions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bench.borders import PROCESSINGS, BorderLoad, Ranges, Walks, found, proof, searched
from bench.experiment import Bench, Experiment
from bench.garages import Garages, accesses
from bench.moving import FAST, SIDE, SLOW, squares

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = {"fast": FAST, "slow": SLOW}
PEER = "DiffRMQ, grid"
_CELLS = (8, 16, 32, 64)
_KM = 1000.0
WITHIN = 180.0
"""The paper's three minutes."""


class Measured(NamedTuple):
    """At one point, by contestant and kind: microseconds a reading, efficiency (percent); bytes."""

    micros: dict[str, float]
    efficiency: dict[str, float]
    own_bytes: int
    grid_bytes: int


def run(bench: Bench) -> None:
    """Moving objects by queries and width; dimensions; the cost model."""
    sizes = bench.pick([500, 1000, 2000, 3000, 4000, 5000], [50, 200])
    widths = bench.pick([0.5, 1.0, 2.0, 3.0, 4.0, 5.0], [0.5, 5.0])
    by_size = [_measured(bench, f"{n:,} queries", squares(n, 5 * _KM)) for n in sizes]
    by_width = [_measured(bench, f"{w:g} km wide", squares(sizes[-1], w * _KM)) for w in widths]
    _draw(bench, "16", "queries (5 km wide)", list(map(float, sizes)), by_size)
    _draw(bench, "17", f"width of {sizes[-1]:,} queries (km)", widths, by_width)
    _space_claims(bench, by_size, by_width)
    _dimensions(bench)
    _cost_model(bench)


def _measured(bench: Bench, label: str, ranges: Ranges) -> Measured:
    """Both kinds of objects; the peer sees a tenth of them."""
    from bench.peers.diff_rmq import differences, timed_parts
    from bench.peers.grid import Grid

    index = ranges.index()
    micros, efficiency = {}, {}
    grids = {f"{n} cells a side": Grid(ranges, SIDE, n) for n in _CELLS}
    for kind, objects in KINDS.items():
        objects = bench.pick(objects, replace(objects, objects=50, readings=20))
        walks = objects.walks()
        some = replace(objects, objects=objects.objects // 10)
        part = Walks(*(each[: some.objects * some.readings] for each in walks))
        times = searched(bench, f"{label}, {kind}", index, walks)
        for name, timing in times.items():
            micros[f"{name}, {kind}"] = 1e6 * timing.median / walks.kinds.size
            efficiency[f"{name}, {kind}"] = timing.answer.efficiency
        best = bench.fastest(
            f"{label}, {kind}: grid",
            {name: partial(grid.stab, part) for name, grid in grids.items()}, rounds=1,
        )  # fmt: skip
        sets = grids[best].sets(part)
        bench.check_equal(
            f"{label}, {kind}: crossings of a tenth",
            {"Coincide": proof(found(index, part)), PEER: proof(differences(sets, part))},
        )
        parts = timed_parts(grids[best], part, sets, 1)
        micros[f"{PEER}, {kind}"] = 1e6 * parts.seconds / part.kinds.size
        efficiency[f"{PEER}, {kind}"] = 100 * parts.events / max(parts.retrieved, 1)
    # The set before of each of 1,000 objects.
    kept = 4 * sets.rows.size // part.kinds.size * 1000
    return Measured(micros, efficiency, index.nbytes, grids[best].nbytes + kept)


def _draw(bench: Bench, figure: str, axis: str, x: list[float], points: Sequence[Measured]) -> None:
    shown = [f"{who}, {kind}" for kind in KINDS for who in ("auto", "traversal", PEER)]
    dashed = [who for who in shown if who.endswith("slow")]
    subject = axis.partition(" ")[0]
    bench.chart(
        f"figure{figure}-time", f"Moving objects: time by {subject} (Figure {figure}b)", axis,
        "microseconds a reading", x,
        {who: [point.micros[who] for point in points] for who in shown},
        log_y=True, dashed=dashed,
    )  # fmt: skip
    bench.chart(
        f"figure{figure}-efficiency",
        f"Moving objects: processing efficiency by {subject} (Figure {figure}a)", axis, "%", x,
        {who: [point.efficiency[who] for point in points] for who in shown}, dashed=dashed,
    )  # fmt: skip
    part = "a" if figure == "16" else "b"
    bench.chart(
        f"figure18{part}", f"Moving objects: storage by {subject} (Figure 18{part})", axis, "MB",
        x,
        {
            "Coincide": [point.own_bytes / 1e6 for point in points],
            f"{PEER} and the sets before": [point.grid_bytes / 1e6 for point in points],
        },
        log_y=True,
    )  # fmt: skip


def _space_claims(bench: Bench, by_size: list[Measured], by_width: list[Measured]) -> None:
    top = by_size[-1]
    bench.claim(
        "Figure 16: BMQ-Processor is more efficient and faster than DiffRMQ, and fast objects take longer"
        " than slow ones",
        "; ".join(
            f"{kind}: efficiency {top.efficiency[f'traversal, {kind}']:.0f} % against"
            f" {top.efficiency[f'{PEER}, {kind}']:.0f} %, {top.micros[f'auto, {kind}']:.2f} µs a reading"
            f" against {top.micros[f'{PEER}, {kind}']:.2f} µs"
            for kind in KINDS
        ),
        all(top.micros[f"auto, {kind}"] < top.micros[f"{PEER}, {kind}"] for kind in KINDS)
        and top.micros["auto, fast"] > top.micros["auto, slow"],
    )
    growth = {
        who: by_width[-1].micros[f"{who}, fast"] / by_width[0].micros[f"{who}, fast"]
        for who in ("auto", "traversal", PEER)
    }
    bench.claim(
        "Figure 17: the time of BMQ-Processor hardly depends on the width, that of DiffRMQ grows with it",
        "from 0.5 to 5 km: " + ", ".join(f"{who} × {by:.1f}" for who, by in growth.items()),
        growth["traversal"] < growth[PEER],
    )
    bench.claim(
        "Figure 18: it takes less than 1 MB, and DiffRMQ up to a hundred times as much",
        f"{top.own_bytes / 1e6:.2f} MB against {top.grid_bytes / 1e6:.2f} MB",
        top.own_bytes < 1e6 < top.grid_bytes,
    )


def _dimensions(bench: Bench) -> None:
    """Figure 19: W and FL of 0.1 % in each of one to nine dimensions."""
    base = bench.pick(
        BorderLoad(queries=10_000, fluctuation=1e-3, streams=200),
        BorderLoad(queries=200, fluctuation=1e-2, width=0.3, streams=5, readings=20),
    )
    dimensions = bench.pick(list(range(1, 10)), [1, 2, 9])
    lines: dict[str, list[float]] = {name: [] for name in PROCESSINGS}
    storage = []
    for d in dimensions:
        load = replace(base, dimensions=d)
        index, walks = load.ranges().index(), load.walks()
        times = searched(bench, f"{d} dimensions", index, walks)
        for name, timing in times.items():
            lines[name].append(1e6 * timing.median / load.size)
        storage.append(index.nbytes / 1e6)
    x = list(map(float, dimensions))
    estimate = [lines["traversal"][0] * max((d - 1) * math.sqrt(d), 1) for d in dimensions]
    bench.chart(
        "figure19a", "Time by dimensions (Figure 19a)", "dimensions", "microseconds a reading", x,
        {**lines, "(d - 1) √d times one dimension": estimate},
        dashed=["(d - 1) √d times one dimension"],
    )  # fmt: skip
    bench.chart(
        "figure19b",
        "Storage by dimensions (Figure 19b)",
        "dimensions",
        "MB",
        x,
        {"index": storage},
    )
    bench.claim(
        "Figure 19: time grows more slowly than (d - 1) √d with the dimensions; nine take less than 7 MB",
        f"nine dimensions: auto {lines['auto'][-1]:.2f} µs a reading, traversal"
        f" {lines['traversal'][-1]:.2f} µs, estimate {estimate[-1]:.2f} µs; {storage[-1]:.1f} MB",
        lines["traversal"][-1] < estimate[-1] and storage[-1] < 7,
    )


def _cost_model(bench: Bench) -> None:
    """Figure 9: rates in the parking-garage scenario, accesses by the formula, and what it takes."""
    import pyarrow.compute as pc

    from coincide import border_crossing_tables, transition_tables

    city = bench.pick(Garages(), Garages(cars=100, garages=5, readings=120))
    readings, queries = city.tables()
    bench.note(cars=city.cars, garages=city.garages, within_s=WITHIN)
    events = border_crossing_tables(readings, queries, values=("x", "y"))
    times = bench.alternate(
        "garages",
        {
            "crossings": lambda: border_crossing_tables(readings, queries, values=("x", "y")),
            "transitions": lambda: transition_tables(
                events, within=int(1000 * WITHIN), confidence=0.5
            ),
        },
        rounds=3,
    )
    crossing, spent = (timing.median for timing in times.values())
    told = times["transitions"].answer
    kinds = told["transition"]
    transitions = {way: pc.sum(pc.equal(kinds, way)).as_py() or 0 for way in ("I>O", "O>I")}
    bench.check_equal("transitions", {"Coincide": transitions, "midpoints": _by_midpoints(events)})
    rate = events.num_rows / city.seconds
    selectivity = sum(transitions.values()) / max(events.num_rows, 1)
    found_accesses = accesses(rate, WITHIN, max(WITHIN * rate / 2, 1), selectivity)
    bench.figure("garages: readings", readings.num_rows / city.seconds, "/s")
    bench.figure("garages: I and O events", rate, "/s")
    bench.figure("garages: σw, events that end a transition", selectivity, "")
    bench.figure("garages: accesses of Tran-Seq by Figure 9", found_accesses, "/s")
    bench.figure("garages: crossings, of a second's readings", 1e3 * crossing / city.seconds, "ms")
    bench.figure("garages: transitions, of a second's events", 1e3 * spent / city.seconds, "ms")
    paper = accesses(21, WITHIN, 1890, 0.5)
    bench.claim(
        "Section 6.4: what transitions cost is negligible beside reading the data: 126 accesses a second"
        " against 33,300",
        f"its rates give {paper:.0f}; here {found_accesses:.0f} against"
        f" {readings.num_rows / city.seconds:,.0f}, and {100 * spent / (crossing + spent):.1f} % of the"
        " time",
        spent < 0.1 * crossing,
    )


def _by_midpoints(events: pa.Table) -> dict[str, int]:
    """Transitions at confidence 0.5: a dwell time is as likely above the midpoints' as below."""
    columns = {name: events[name].to_numpy() for name in ("query_id", "stream_id", "event")}
    middle = events["min_time"].to_numpy() + events["max_time"].to_numpy()  # twice
    order = np.lexsort((middle, columns["stream_id"], columns["query_id"]))
    query, stream, event = (columns[name][order] for name in ("query_id", "stream_id", "event"))
    middle = middle[order]
    ends = (query[1:] == query[:-1]) & (stream[1:] == stream[:-1])
    ends &= np.diff(middle) <= 2 * int(1000 * WITHIN)
    first = event[:-1][ends]
    return {"I>O": int((first == "I").sum()), "O>I": int((first == "O").sum())}


ABOUT = """\
The BMQ paper, section 7.2, moves 1,000 objects on the roads of a city of 15 x 15 km, with 100 readings
each, every 30 seconds. The roads and their generator are not public. So objects here go straight from one
random place to the next, at the paper's speeds. Fast ones average 20 km/h (60 at most), slow ones 4.3 (12
at most). Queries are squares, normal around the middle. DiffRMQ stabs a compiled grid, the fastest of four,
for a tenth of the objects, on one core.

Section 7.3 has 10,000 queries, with W and FL 0.1 % in each dimension. In section 6.4, 20,000 cars drive
between 200 garages for two hours and park for five minutes on average. Transitions are within three minutes
at confidence 0.5.
"""

EXPERIMENT = Experiment(
    summary="border crossings: figures 9 and 16 to 19 of the BMQ paper, two and more dimensions",
    run=run,
    title="Border crossings: moving objects, dimensions, transitions",
    about=ABOUT,
)
