"""Figures 10 to 15 of the BMQ paper: time, processing efficiency and storage in one dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bench.border_memory import new_monitor
from bench.borders import PROCESSINGS, BorderLoad, counted, searched
from bench.experiment import Bench, Experiment
from bench.timing import timed
from coincide.model.borders.index import BorderIndex

BASE = BorderLoad(streams=100)
QUICK = BorderLoad(queries=500, streams=5, readings=40)
PEERS = ("DiffRMQ, superintervals", "DiffRMQ, own index")
_BYTES_OF_AN_INTERVAL = 24
"""Bytes of superintervals: two ends of 4 bytes, a branch and a pointer of 8."""


class Measured(NamedTuple):
    """At a point of a figure, by contestant: microseconds a reading, processing efficiency (percent)."""

    micros: dict[str, float]
    efficiency: dict[str, float]


def run(bench: Bench) -> None:
    """Sweep queries, width and fluctuation; then distributions, storage, and streams."""
    base = bench.pick(BASE, QUICK)
    bench.note(streams=base.streams, readings=base.readings, queries=base.queries)
    tenths = bench.pick([0.1, 0.2, 0.4, 0.6, 0.8, 1.0], [0.2, 1.0])
    counts = [round(t * base.queries) for t in tenths]
    shares = [t * 1e-3 for t in tenths]
    _figure(
        bench, "figure10", "queries", list(map(float, counts)),
        [replace(base, queries=n) for n in counts],
    )  # fmt: skip
    by_width = _figure(
        bench, "figure11", "width of queries (% of the domain)", [100 * s for s in shares],
        [replace(base, width=s) for s in shares],
    )  # fmt: skip
    by_step = _figure(
        bench, "figure12", "fluctuation level (% of the domain)", [100 * s for s in shares],
        [replace(base, fluctuation=s) for s in shares],
    )  # fmt: skip
    _claims(bench, by_width, by_step)
    _distributions(bench, base)
    _storage(bench, base, counts, shares)
    _streams(bench, base)


def _figure(
    bench: Bench, name: str, axis: str, x: list[float], loads: Sequence[BorderLoad]
) -> list[Measured]:
    points = [_measured(bench, f"{name}, {at:g}", load) for at, load in zip(x, loads, strict=True)]
    number = name.removeprefix("figure")
    contestants = (*PROCESSINGS, *PEERS)
    bench.chart(
        f"{name}-time", f"Time by {axis.partition(' (')[0]} (Figure {number}b)", axis,
        "microseconds a reading", x,
        {who: [point.micros[who] for point in points] for who in contestants},
        log_y=True, dashed=list(PEERS),
    )  # fmt: skip
    bench.chart(
        f"{name}-efficiency",
        f"Processing efficiency by {axis.partition(' (')[0]} (Figure {number}a)", axis, "%", x,
        {who: [point.efficiency[who] for point in points] for who in contestants},
        dashed=list(PEERS),
    )  # fmt: skip
    return points


def _measured(bench: Bench, label: str, load: BorderLoad) -> Measured:
    """All contestants on one core."""
    from bench.peers.diff_rmq import OwnIndex, SuperIntervals, timed_parts

    ranges, walks = load.ranges(), load.walks()
    index = ranges.index()
    times = searched(bench, label, index, walks)
    answers = {name: timing.answer for name, timing in times.items()}
    micros = {name: 1e6 * timing.median / load.size for name, timing in times.items()}
    efficiency = {name: answer.efficiency for name, answer in answers.items()}
    events = {name: answer.events for name, answer in answers.items()}
    for name, peer in zip(PEERS, (SuperIntervals(ranges), OwnIndex(index, 1)), strict=True):
        bench.say(f"{label}, {name}")
        sets = peer.sets(walks)
        timed_parts(peer, walks, sets, 1)
        parts = timed_parts(peer, walks, sets, 1)
        events[name] = parts.events
        micros[name] = 1e6 * parts.seconds / load.size
        efficiency[name] = 100 * parts.events / max(parts.retrieved, 1)
    bench.check_equal(f"{label}: events", events)
    return Measured(micros, efficiency)


def _claims(bench: Bench, by_width: list[Measured], by_step: list[Measured]) -> None:
    peer = PEERS[0]
    narrow, wide = by_width[0], by_width[-1]
    bench.claim(
        "Figure 11: with the width of queries the time of DiffRMQ grows, and that of BMQ-Processor stays",
        f"W × {10}: traversal × {wide.micros['traversal'] / narrow.micros['traversal']:.1f},"
        f" {peer} × {wide.micros[peer] / narrow.micros[peer]:.1f}",
        wide.micros["traversal"] / narrow.micros["traversal"]
        < wide.micros[peer] / narrow.micros[peer],
    )
    short, long = by_step[0], by_step[-1]
    bench.claim(
        "Figure 12: with the fluctuation level the efficiency of BMQ-Processor falls slowly, that of"
        " DiffRMQ rises fast",
        ", ".join(
            f"{who} {short.efficiency[who]:.0f} % to {long.efficiency[who]:.0f} %"
            for who in ("traversal", "three-sided", peer)
        ),
        long.efficiency["traversal"] < short.efficiency["traversal"]
        and long.efficiency[peer] > short.efficiency[peer],
    )
    bench.claim(
        "Section 7.1.2: as FL reaches W, BMQ-Processor becomes slightly slower than DiffRMQ",
        f"FL = W: traversal {long.micros['traversal']:.2f} µs a reading, three-sided"
        f" {long.micros['three-sided']:.2f} µs, "
        + ", ".join(f"{who} {long.micros[who]:.2f} µs" for who in PEERS),
        long.micros["traversal"] > long.micros[peer],
    )


def _distributions(bench: Bench, base: BorderLoad) -> None:
    """Figure 13: data and queries, each uniform or normal."""
    words = {False: "uniform", True: "normal"}
    points = {
        f"data {words[data]}, queries {words[queries]}": _measured(
            bench, f"figure13, {words[data]} data, {words[queries]} queries",
            replace(base, skewed_data=data, skewed_queries=queries),
        )
        for data in words
        for queries in words
    }  # fmt: skip
    for name, point in points.items():
        for who in ("traversal", "three-sided", *PEERS):
            bench.figure(f"{name}: {who}", point.micros[who], "µs a reading")
        for who in ("traversal", PEERS[0]):
            bench.figure(f"{name}: efficiency of {who}", point.efficiency[who], "%")
    plain, *one, both = (point.micros["traversal"] for point in points.values())
    bench.claim(
        "Figure 13: time changes little where data or queries are skewed, and grows where both are",
        f"traversal, of that with both uniform: {', '.join(f'× {t / plain:.2f}' for t in one)} and"
        f" × {both / plain:.2f}",
        max(one) < 1.25 * plain < both,
    )


def _storage(bench: Bench, base: BorderLoad, counts: list[int], shares: list[float]) -> None:
    """Figure 14: bytes of the index by queries and by width, and what DiffRMQ keeps."""
    for name, axis, x, loads in (
        ("figure14a", "queries", list(map(float, counts)), [replace(base, queries=n) for n in counts]),
        ("figure14b", "width of queries (% of the domain)", [100 * s for s in shares],
         [replace(base, width=s) for s in shares]),
    ):  # fmt: skip
        own = [load.ranges().index().nbytes / 1e6 for load in loads]
        theirs = [_diff_rmq_bytes(load, 2000) / 1e6 for load in loads]
        bench.chart(
            name, f"Storage, 2,000 streams (Figure {name.removeprefix('figure')})", axis, "MB", x,
            {"Coincide": own, "DiffRMQ, superintervals and the sets before": theirs},
        )  # fmt: skip
    bench.claim(
        "Figure 14: BMQ-Processor takes less memory than DiffRMQ, and as much whatever the width",
        f"{own[0]:.1f} to {own[-1]:.1f} MB by width, against {theirs[0]:.1f} to {theirs[-1]:.1f} MB with"
        " an index that holds each interval once",
        own[-1] <= theirs[-1] and own[0] == own[-1],
    )


def _diff_rmq_bytes(load: BorderLoad, streams: int) -> float:
    """Each interval once, and of each stream the set before: N W of 4 bytes."""
    held = load.queries * load.width
    return _BYTES_OF_AN_INTERVAL * load.queries + 4 * held * streams


def _streams(bench: Bench, base: BorderLoad) -> None:
    """Figure 15: one reading of each of many streams, pushed."""
    sizes = bench.pick([2**k * 1000 for k in range(8)], [50, 200])
    index = base.ranges().index()
    lines: dict[str, list[float]] = {"Coincide": []}
    bytes_of: dict[str, list[float]] = {"Coincide": [], PEERS[0]: []}
    for size in sizes:
        load = replace(base, streams=size, readings=1 + bench.rounds(5))
        seconds, nbytes, events = _pushes(bench, load, index)
        lines["Coincide"].append(float(np.median(seconds)))
        bytes_of["Coincide"].append(nbytes / 1e6)
        bytes_of[PEERS[0]].append(_diff_rmq_bytes(load, size) / 1e6)
        for name, time in _stabs(load, index, events, bench).items():
            lines.setdefault(name, []).append(time)
    x = list(map(float, sizes))
    bench.chart(
        "figure15a", "A reading of each stream, one core (Figure 15a)", "streams", "seconds", x,
        lines, log_x=True, log_y=True, dashed=list(PEERS),
    )  # fmt: skip
    bench.chart(
        "figure15b", "Storage by streams (Figure 15b)", "streams", "MB", x, bytes_of, log_x=True,
        dashed=list(PEERS),
    )  # fmt: skip
    slope = float(np.polyfit(np.log(x), np.log(lines["Coincide"]), 1)[0])
    leads = [lines[name][-1] / lines["Coincide"][-1] for name in PEERS]
    bench.claim(
        "Figure 15: time is linear in the streams, 6.8 times below DiffRMQ's; storage hardly grows",
        f"exponent {slope:.2f}; {leads[0]:.1f} times below superintervals, {leads[1]:.1f} times below"
        f" stabs of our own index; {bytes_of['Coincide'][0]:.1f} to {bytes_of['Coincide'][-1]:.1f} MB",
        slope < 1.15 and leads[0] >= 6.8,
    )


def _pushes(bench: Bench, load: BorderLoad, index: BorderIndex) -> tuple[list[float], int, int]:
    """Seconds of each push but the first, bytes in the end, events of all."""
    values = load.walks().values.reshape(load.streams, load.readings, 1)
    monitor = new_monitor(replace(load, queries=1).ranges(), load.streams)
    monitor.ranges.levels = [index]
    streams, seconds, events = np.arange(load.streams), [], 0
    for k in range(load.readings):
        bench.say(f"figure15, {load.streams:,} streams, push {k}")
        push = _push(monitor.push, streams, np.full(load.streams, k), values[:, k])
        elapsed, found = timed(push)
        events += found
        seconds.append(elapsed)
    return seconds[1:], monitor.nbytes, events


def _push(push: Callable[..., object], *batch: np.ndarray) -> Callable[[], int]:
    return lambda: sum(each.rows.size for each in push(*batch))  # type: ignore[attr-defined]


def _stabs(load: BorderLoad, index: BorderIndex, events: int, bench: Bench) -> dict[str, float]:
    """Seconds of DiffRMQ for one reading of each stream, which has kept the set before."""
    from bench.peers.diff_rmq import OwnIndex, SuperIntervals, timed_parts

    two = replace(load, readings=2)
    walks = two.walks()
    seconds = {}
    found = {}
    for name, peer in zip(PEERS, (SuperIntervals(load.ranges()), OwnIndex(index, 1)), strict=True):
        bench.say(f"figure15, {load.streams:,} streams, {name}")
        parts = timed_parts(peer, walks, peer.sets(walks), 1)
        # Both sets were found; only the later one need be.
        seconds[name] = parts.stabs / 2 + parts.difference
        found[name] = parts.events
    found["Coincide"] = counted(index, walks).events
    bench.check_equal(f"figure15, {load.streams:,} streams: events", found)
    bench.note(**{f"events of {load.readings} pushes, {load.streams:,} streams": events})
    return seconds


ABOUT = """\
The BMQ paper, section 7.1: 100,000 queries, width 0.1 %, fluctuation level 0.01 %, with one of these
changed at a time. 100 streams have 1,000 readings each, on one core. Our traversal and three-sided search
run against DiffRMQ with superintervals and with stabs of our own index. Answers are compared at every
point. In Figure 13 data and queries are uniform, or normal around the middle of the domain. In Figure 14
DiffRMQ's index takes 24 bytes an interval, and its sets for 2,000 streams are added. Figure 15 pushes one
reading of each of 1,000 to 128,000 streams.
"""

EXPERIMENT = Experiment(
    summary="border crossings: figures 10 to 15 of the BMQ paper, one dimension",
    run=run,
    title="Border crossings: the paper's figures",
    about=ABOUT,
    needs="superintervals",
)
