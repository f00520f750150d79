"""The stream correlators' block step, GPU and CPU: the same pairs and counters, then how fast."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from bench.experiment import Bench
from bench.papers.streams.live_blocks import LiveBlocks
from bench.streams import StreamLoad, StreamRun, mutual_deadline_us
from coincide.model.condition import Window

ALGORITHMS = ("lazy", "classes")
_RATE = 25.0
_FEWEST = 1 << 18
"""Events of a side, so that also small blocks take some time."""
_PUSHED_TOGETHER = 1 << 14


def makers() -> dict[str, Callable[[Any], Any]]:
    """What keeps the live events, by backend. Without a way out: where memory fails, so does the run."""
    from bench.papers.streams.gpu import live_blocks

    return {"GPU": live_blocks.LiveBlocks, "CPU": LiveBlocks}


def check_streams(bench: Bench) -> None:
    """Pairs, response times and counters of both backends."""
    load = StreamLoad(100.0, bench.pick(200.0, 0.3))
    deadline = mutual_deadline_us(500, 0.8)
    works = {
        "deadline": StreamRun(load, deadline, 300),
        "narrow window": StreamRun(load, Window(-3_000, 4_000, 0.02), 1000),
        "certainty, one block": StreamRun(load, replace(deadline, confidence=1.0), 1 << 20),
        "tiny blocks": StreamRun(StreamLoad(100.0, bench.pick(20.0, 0.1)), deadline, 4),
    }
    for name, work in works.items():
        for algorithm in ALGORITHMS:
            label = f"stream, {name}, {algorithm}"
            bench.say(f"equal on {label}")
            answers = {}
            for who, maker in makers().items():
                run = replace(work, emit="pairs", response=True, live_blocks=maker)
                answers[who] = repr(run.proof(algorithm))
            bench.check_equal(label, answers)


def sweep_blocks(bench: Bench) -> None:
    """Counts of the lazy algorithms by the size of the block: events a second, from host to host."""
    sizes = bench.pick([2**k for k in range(10, 21, 2)], [8])
    rates: dict[str, list[float]] = {}
    for block in sizes:
        events = bench.pick(max(_FEWEST, 2 * block), 20)
        load = StreamLoad(_RATE, events / _RATE)
        load.arrivals()  # made, and kept, before the clock runs
        for algorithm in ALGORITHMS:
            runs = {
                who: partial(_run, load, block, maker, algorithm) for who, maker in makers().items()
            }
            timings = bench.compared(f"stream block {block:,}, {algorithm}", runs, rounds=2)
            for who, timing in timings.items():
                rate = 2 * events / timing.median / 1e6
                rates.setdefault(f"{algorithm}, {who}", []).append(rate)
    bench.chart(
        "stream-blocks", "Counting a stream's pairs by size of the block", "events of a block",
        "million events/s", list(map(float, sizes)), rates, log_x=True, log_y=True,
        dashed=[line for line in rates if line.endswith("CPU")],
    )  # fmt: skip


def _run(load: StreamLoad, block: int, maker: Callable[[Any], Any], algorithm: str) -> int:
    work = StreamRun(
        load, mutual_deadline_us(500, 0.8), block, live_blocks=maker, together=_PUSHED_TOGETHER
    )
    return work(algorithm).pairs
