"""Causality joins against DuckDB, in the plane and on the sphere; clusters of lightning; a seismic day."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.experiment import Bench, Experiment
from bench.fingerprints import fingerprint_of_table
from bench.gpu.picks import FOLDER
from bench.lightning import sources
from coincide import (
    CausalityCondition,
    CorrelateOptions,
    Ellipsoidal,
    JoinReport,
    Plane,
    Spatial,
    SpeedRange,
    Sphere,
    Temporal,
    causality_tables,
    clusters,
)

EXTENT = 1000.0
DEGREES = (36.0, 47.0), (6.0, 19.0)
TICKS_APART = 1000
"""Between one event and the next, on average."""


@dataclass(frozen=True)
class Scene:
    """A join of two sides of random events."""

    name: str
    events: int  # each side's
    by_time: int  # effects in a cause's window of time
    radius: float  # with an extent of 1,000, or kilometres in a box of 11 by 13 degrees
    sphere: bool = False
    bar: float | None = None  # on the time that DuckDB takes
    tested_bar: float | None = None  # on the candidates tested for each pair


SCENES = (
    Scene("plane, 50 by time, few near", 1_000_000, 50, 100.0, bar=10.0),
    Scene("plane, 50 by time, many near", 1_000_000, 50, 400.0, bar=10.0, tested_bar=3.0),
    Scene("sphere, 50 by time, few near", 1_000_000, 50, 100.0, sphere=True, bar=20.0),
    Scene(
        "sphere, 50 by time, many near", 1_000_000, 50, 500.0, sphere=True, bar=20.0, tested_bar=3.0
    ),
    Scene("plane, 5,000 by time, few near", 200_000, 5_000, 40.0, bar=10.0, tested_bar=3.0),
)


def run(bench: Bench) -> None:
    """Time every scene against DuckDB's best plan, then clusters, then the seismic day."""
    for scene in SCENES:
        _scene(bench, scene)
    _clusters(bench)
    _seismic(bench)


def _scene(bench: Bench, scene: Scene) -> None:
    from bench.peers.duckdb_causality import DuckDBCausality

    n = bench.pick(scene.events, 3_000)
    causes, effects = (random_events(n, scene.sphere, seed) for seed in (1, 2))
    window = min(scene.by_time, n) * TICKS_APART
    duck = DuckDBCausality(causes, effects, window, scene.radius, bench.cores)
    plan = bench.fastest(
        f"{scene.name}, DuckDB",
        {name: partial(duck.pairs, name) for name in duck.variants},
        rounds=1,
    )
    report = JoinReport()
    ours = partial(_join, bench, scene, causes, effects, window, report)
    times = bench.alternate(
        scene.name, {"Coincide": lambda: ours().num_rows, f"DuckDB, {plan}": lambda: duck.pairs(plan)},
        rounds=3,
    )  # fmt: skip
    mine, theirs = times.values()
    bench.check_equal(
        f"{scene.name}: pairs",
        {"Coincide": fingerprint_of_table(ours()), "DuckDB": duck.fingerprint()},
    )
    bench.ratio(f"{scene.name}: DuckDB", theirs, mine, scene.bar)
    counters = report.summary().counters
    assert counters is not None
    bench.figure(
        f"{scene.name}: candidates tested for each pair", counters.probed / max(1, counters.pairs),
        "x", scene.tested_bar, at_least=False,
    )  # fmt: skip


def random_events(n: int, sphere: bool, seed: int) -> pa.Table:
    """Events of one side, in order of time: anywhere in the plane or on a part of the sphere."""
    random = np.random.default_rng(seed)
    time = np.sort(random.integers(0, n * TICKS_APART, n))
    names, ends = (("lat", "lon"), DEGREES) if sphere else (("x", "y"), ((0.0, EXTENT),) * 2)
    places = {name: random.uniform(*end, n) for name, end in zip(names, ends, strict=True)}
    return pa.table({"id": np.arange(n), "time": time, **places})


def _join(
    bench: Bench, scene: Scene, causes: pa.Table, effects: pa.Table, window: int, report: JoinReport
) -> pa.Table:
    space: Plane | Sphere = Sphere() if scene.sphere else Plane()
    condition = CausalityCondition([Temporal(0, window), Spatial(scene.radius)], space)
    place = ("lat", "lon") if scene.sphere else ("x", "y")
    return causality_tables(
        causes, effects, condition, cause_place=place, effect_place=place,
        options=CorrelateOptions(threads=bench.cores), report=report,
    )  # fmt: skip


FLASH = CausalityCondition(Ellipsoidal(3.0, 150_000))


def _clusters(bench: Bench) -> None:
    events = sources(bench.pick(3_000_000, 3_000), 1)
    work: Callable[[pa.Table], pa.Table] = partial(
        clusters,
        condition=FLASH,
        place=("x", "y", "z"),
        options=CorrelateOptions(threads=bench.cores),
    )
    times = bench.alternate(
        "clusters",
        {"Coincide": lambda: pc.count_distinct(work(events)["cluster"]).as_py()},
        rounds=3,
    )
    (ours,) = times.values()
    bench.note(sources=events.num_rows, flashes=ours.answer)
    bench.seconds("clusters", ours, 30.0)
    few = sources(bench.pick(10_000, 1_000), 2)
    found = work(few)["cluster"].to_numpy()
    bench.check_equal(
        "labels of some sources",
        {"Coincide": found.tolist(), "by brute force": brute_labels(few, 3.0, 150_000).tolist()},
    )


def brute_labels(events: pa.Table, radius: float, duration: int) -> np.ndarray:
    """Labels by a search from each source, over the distances to all others."""
    places = np.column_stack([events[name].to_numpy() for name in "xyz"])
    times, n = events["time"].to_numpy(), events.num_rows
    labels = np.full(n, -1)
    for start in range(n):
        waiting = [start] if labels[start] < 0 else []
        labels[waiting] = start
        while waiting:
            i = waiting.pop()
            apart = ((places - places[i]) ** 2).sum(axis=1) / radius**2
            inside = apart + ((times - times[i]) / duration) ** 2 <= 1
            near = np.flatnonzero(inside & (labels < 0))
            labels[near] = start
            waiting += near.tolist()
    return labels


KM_PER_DEGREE = 111.19
SEISMIC = (("P", 4.5, 7.0), ("P", 5.0, 6.5), ("S", 2.5, 3.6), ("S", 2.7, 3.5))


def _seismic(bench: Bench) -> None:
    try:
        origins, picks = (
            pq.read_table(FOLDER / f"{n}.parquet") for n in ("events_real", "stalta_picks")
        )
    except FileNotFoundError:
        bench.note(seismic_day="not here")
        return
    rows = bench.pick(origins.num_rows, 5)
    space = Plane((KM_PER_DEGREE, KM_PER_DEGREE * float(np.cos(np.radians(42.8))), 1.0))
    for phase, slowest, fastest in SEISMIC:
        condition = CausalityCondition([Spatial(80), SpeedRange(slowest, fastest, "500ms")], space)
        name = f"seismic day, {phase} at {slowest} to {fastest} km/s"
        some: Any = picks.filter(pc.equal(picks["phase"], phase))
        arguments: Any = {
            "cause_place": ("lat", "lon", "depth_km"),
            "effect_place": ("lat", "lon", 0.0),
            "options": CorrelateOptions(threads=bench.cores),
        }
        work = partial(causality_tables, origins[:rows], some, condition, **arguments)
        times = bench.alternate(name, {"Coincide": lambda work=work: work().num_rows})  # type: ignore[misc]
        (ours,) = times.values()
        bench.note(**{f"pairs: {name}": ours.answer})
        bench.seconds(name, ours, 50.0, "ms")


ABOUT = """\
Random events, a thousand ticks apart on average, are joined within a window of time and a radius. Each pair
has its delta and distance, Arrow in and Arrow out. DuckDB creates the same table by its best plan. Clusters
join sources shaped like lightning, within 3 km and 150 ms. The seismic day joins earthquakes and picks by
speed of travel.
"""

EXPERIMENT = Experiment(
    summary="causality joins against DuckDB, clusters, and a seismic day",
    run=run,
    title="Causes and effects",
    about=ABOUT,
    needs="duckdb",
)
