"""Border crossings: the BMQ paper's setting against its bars, DiffRMQ and DuckDB; growth; memory."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from bench.border_memory import measured, new_monitor
from bench.borders import (
    PROCESSINGS,
    Answer,
    BorderLoad,
    Ranges,
    Walks,
    counted,
    fluctuation,
    found,
    kinds_of,
    proof,
    searched,
)
from bench.experiment import Bench, Experiment
from bench.timing import Timing

PAPER = BorderLoad()
QUICK = BorderLoad(queries=500, streams=20, readings=50)
RATIOS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""FL over W."""


def run(bench: Bench) -> None:
    """The paper's setting; peers on a tenth of it; readings that cross nothing; growth; memory."""
    load = bench.pick(PAPER, QUICK)
    bench.note(
        queries=load.queries, width=load.width, streams=load.streams, readings=load.readings,
        fluctuation=fluctuation(load.walks()),
    )  # fmt: skip
    _setting(bench, load)
    _peers(bench, replace(load, streams=load.streams // 10))
    _silence(bench)
    _growth(bench, replace(load, streams=load.streams // 10))
    _memory(bench)


def _setting(bench: Bench, load: BorderLoad) -> None:
    index, walks = load.ranges().index(), load.walks()
    label = f"{load.size / 1e6:g} M readings"
    times = searched(bench, label, index, walks, threads=bench.cores, rounds=5)
    answers: dict[str, Answer] = {name: timing.answer for name, timing in times.items()}
    for name, timing in times.items():
        bench.figure(
            f"{answers[name].events / 1e6:.1f} M events, {name}", timing.median, "s",
            2.0 if name == "auto" else None, at_least=False, spread=timing.seconds,
        )  # fmt: skip
    for name, answer in answers.items():
        bar = 100.0 if name == "three-sided" else None
        bench.figure(f"processing efficiency, {name}", answer.efficiency, "%", bar)
    bench.claim(
        "Section 7.1.2: the processing efficiency of traversal is almost 100 % where FL is a tenth of W",
        f"{answers['traversal'].efficiency:.2f} %",
        answers["traversal"].efficiency > 99,
    )


def _peers(bench: Bench, load: BorderLoad) -> None:
    from bench.peers.diff_rmq import OwnIndex, SuperIntervals, differences
    from bench.peers.duckdb_borders import PLANS, DuckDBBorders

    ranges, walks = load.ranges(), load.walks()
    index = ranges.index()
    duck = DuckDBBorders(ranges, walks, bench.cores)
    intervals, own = SuperIntervals(ranges), OwnIndex(index, bench.cores)
    sets = intervals.sets(walks)
    proofs = {
        "Coincide": proof(found(index, walks)),
        "DiffRMQ, superintervals": proof(differences(sets, walks)),
        "DiffRMQ, own index": proof(differences(own.sets(walks), walks)),
        **{f"DuckDB, {plan}": duck.proof(plan) for plan in PLANS},
    }
    bench.check_equal("events of a tenth of the streams", proofs)
    plan = bench.fastest("DuckDB", {name: partial(duck.count, name) for name in PLANS}, rounds=1)
    times = bench.alternate(
        "a tenth of the streams",
        {
            "Coincide": partial(counted, index, walks, "auto", bench.cores),
            "Coincide, one core": partial(counted, index, walks, "auto", 1),
            f"DuckDB, {plan}": partial(duck.count, plan),
            "superintervals, stabs": partial(intervals.stab, walks),
            "superintervals, counts only": partial(intervals.count, walks),
            "own index, stabs": partial(own.stab, walks),
            "difference of sets": partial(_differenced, sets, walks, bench.cores),
            "difference of sets, one core": partial(_differenced, sets, walks, 1),
        },
        rounds=3,
    )
    ours, ours_alone, database, stabs, counts, own_stabs, difference, alone = times.values()
    bench.ratio(f"DuckDB, {plan}", database, ours, 10.0)
    bench.ratio("DiffRMQ, superintervals, stabs and difference", _sum(stabs, difference), ours, 6.8)
    bench.ratio("superintervals, the stabs alone", stabs, ours)
    bench.ratio(
        "DiffRMQ, superintervals, one core against one", _sum(stabs, alone), ours_alone, 6.8
    )
    bench.ratio("DiffRMQ, stabs of our own index", _sum(own_stabs, difference), ours)
    bench.ratio(
        "DiffRMQ, one core against one, if stabs wrote nothing", _sum(counts, alone), ours_alone
    )
    ratio = (stabs.median + difference.median) / ours.median
    bench.claim(
        "Section 7.1.4: DiffRMQ takes 6.8 times as long",
        f"{ratio:.1f} times on a well-kept interval index, whose stabs come as lists of Python's;"
        f" {(own_stabs.median + difference.median) / ours.median:.1f} times with stabs of our own"
        " index, written to arrays",
        ratio >= 6.8,
    )


def _differenced(sets, walks: Walks, cores: int) -> int:
    from bench.peers.diff_rmq import differences

    return sum(chunk.points.size for chunk in differences(sets, walks, cores))


def _sum(one: Timing, other: Timing) -> Timing:
    """Times of two parts that the same rounds measured."""
    return Timing(tuple(a + b for a, b in zip(one.seconds, other.seconds, strict=True)))


def _silence(bench: Bench) -> None:
    """10^6 queries, and readings that stay between two borders."""
    load = replace(PAPER, queries=bench.pick(1_000_000, 1_000), streams=bench.pick(2_000, 20))
    ranges = load.ranges()
    index = ranges.index()
    walks = _jittered(ranges, load)
    streams = np.repeat(np.arange(load.streams), load.readings)
    times = np.tile(np.arange(load.readings), load.streams)

    def pushed() -> int:
        monitor = new_monitor(Ranges(*(each[:0] for each in ranges)), load.streams)
        monitor.ranges.levels = [index]
        return sum(each.rows.size for each in monitor.push(streams, times, walks.values))

    measured_times = bench.alternate(
        "nothing crosses",
        {"search": lambda: counted(index, walks).events, "with the stream table": pushed},
    )
    bench.check_equal(
        "crossings of nothing", {n: t.answer for n, t in measured_times.items()} | {"none": 0}
    )
    for name, timing in measured_times.items():
        told = f"{load.queries:,} queries, nothing crosses, one core: {name}"
        bench.rate(told, load.size / 1e6, timing, "M readings/s", 5.0)


def _jittered(ranges: Ranges, load: BorderLoad) -> Walks:
    """Streams that move to and fro in wide gaps between borders."""
    borders = np.unique(np.concatenate(ranges))
    gaps = np.diff(borders)
    wide = np.flatnonzero(gaps > np.median(gaps))
    chosen = np.random.default_rng(3).choice(wide, load.streams)
    within = np.random.default_rng(4).random((load.streams, load.readings))
    values = np.floor(borders[chosen, np.newaxis] + within * gaps[chosen, np.newaxis])
    return Walks(values.reshape(-1, 1), kinds_of(load.streams, load.readings))


def _growth(bench: Bench, load: BorderLoad) -> None:
    """Whether time by FL / W is proportional to readings and events."""
    index = load.ranges().index()
    ratios = bench.pick(RATIOS, (0.1, 1.0, 10.0))
    seconds: dict[str, list[float]] = {name: [] for name in PROCESSINGS}
    events = []
    for ratio in ratios:
        walks = replace(load, fluctuation=ratio * load.width).walks()
        times = searched(bench, f"FL / W {ratio:g}", index, walks)
        events.append(times["auto"].answer.events)
        for name, timing in times.items():
            seconds[name].append(timing.low)
    bench.note(events_by_fluctuation=dict(zip(map(str, ratios), events, strict=True)))
    for name in PROCESSINGS:
        each, beside, departure = departures(load.size, events, seconds[name])
        bench.note(**{f"ns a reading and an event, {name}": (1e9 * each, 1e9 * beside)})
        bench.figure(
            f"FL / W 0.1 to 100, departure from readings + events, {name}", 100 * departure, "%",
            None if name == "traversal" else 30.0, at_least=False,
        )  # fmt: skip
    bench.chart(
        "growth", f"Time of {load.size:,} readings by FL / W, one core", "FL / W",
        "seconds", list(ratios), seconds, log_x=True, log_y=True,
    )  # fmt: skip


def departures(
    readings: int, events: list[int], seconds: list[float]
) -> tuple[float, float, float]:
    """The a and b for which seconds = a * readings + b * events departs least, and by what share."""
    parts = np.array([[readings, found] for found in events]) / np.array(seconds)[:, np.newaxis]
    weights = np.ones(len(events))
    best = 0.0, 0.0, np.inf
    # Lawson's algorithm: least squares, weighted by the errors before, tend to the least largest error.
    for _ in range(100):
        root = np.sqrt(weights)
        (a, b), *_ = np.linalg.lstsq(parts * root[:, np.newaxis], root, rcond=None)
        errors = np.abs(parts @ (a, b) - 1)
        best = min(best, (float(a), float(b), float(errors.max())), key=lambda fit: fit[2])
        if best[2] < 1e-9:
            break
        weights *= errors
        weights /= weights.sum()
    return best


def _memory(bench: Bench) -> None:
    queries, streams = bench.pick((1_000_000, 128_000), (20_000, 20_000))
    bench.say("memory")
    stated, seen = measured(queries, streams)
    for what, count, said, taken in (
        ("query", queries, stated.queries, seen.queries),
        ("stream", streams, stated.streams, seen.streams),
    ):
        bench.note(**{f"bytes of a {what}, measured": taken / count})
        bench.figure(f"memory of a {what}, stated", said / count, "bytes")
        bench.figure(
            f"memory of a {what}, departure of what is measured", 100 * abs(taken / said - 1), "%",
            10.0, at_least=False,
        )  # fmt: skip


ABOUT = """\
The BMQ paper's setting (2008), section 7.1: 100,000 queries, each a thousandth of the domain wide. 2,000
streams have 1,000 readings each, which move by a ten-thousandth of the domain on average. That makes some
40 million events, which are counted and dropped. Processing efficiency is the number of events over the
number of queries taken out of the index.

The other engines see a tenth of the streams. DuckDB has the moves in a table and counts events by the best
of three plans. DiffRMQ asks the package superintervals which queries hold each reading, and keeps the
previous set. Its difference is compiled. The package spends most of its time filling Python lists, on one
core. So DiffRMQ also runs with stabs of our own index, on all cores.

Memory is the growth of the process's resident set: first 10^6 queries, then 128,000 streams.
"""

EXPERIMENT = Experiment(
    summary="border crossings in the BMQ paper's setting: bars, DuckDB, DiffRMQ, growth, memory",
    run=run,
    title="Border crossings",
    about=ABOUT,
    needs="duckdb, superintervals",
)
