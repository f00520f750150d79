"""Figures 3, 4 and 5 of Lee & Lee (2010): time, response and buffers over the arrival rate."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from bench.charts import LABELS
from bench.experiment import Bench, Experiment
from bench.papers.streams.results import StreamStats
from bench.streams import (
    BLOCK,
    RATES,
    StreamLoad,
    StreamRun,
    check_streams,
    mutual_deadline_us,
)
from bench.timing import Timing

DEADLINE_MS, CONFIDENCE = 1000, 0.8
QUICK_RATES = (12, 24)


def run(bench: Bench) -> None:
    """Run all algorithms at all rates; then the bars at the highest rate."""
    rates = bench.pick(RATES, QUICK_RATES)
    seconds = bench.pick(60.0, 5.0)
    bench.note(rates=rates, seconds=seconds, d_ms=DEADLINE_MS, ct=CONFIDENCE, block=BLOCK)
    window = mutual_deadline_us(DEADLINE_MS, CONFIDENCE)
    by_rate = []
    for rate in rates:
        work = StreamRun(StreamLoad(rate, seconds), window, emit="pairs")
        by_rate.append(_measured(bench, f"r{rate}, pairs", work, rounds=3))
    _draw(bench, rates, by_rate)
    _claims(bench, rates, by_rate)
    work = StreamRun(StreamLoad(rates[-1], seconds), window, emit="counts")
    counts = _measured(bench, f"r{rates[-1]}, counts", work, rounds=5)
    _bars(bench, seconds, {"counts": counts, "pairs": by_rate[-1]})


class Measured(NamedTuple):
    """An algorithm at one rate: its times, and what it reported in a run of its own."""

    timing: Timing
    stats: StreamStats

    @property
    def response_ms(self) -> float:
        """Mean response time."""
        assert self.stats.response_mean is not None
        return self.stats.response_mean / 1000

    @property
    def buffer(self) -> float:
        """Mean length of one side's buffer."""
        return sum(self.stats.buffer_mean) / 2


ByAlgorithm = dict[str, Measured]


def _measured(bench: Bench, label: str, work: StreamRun, rounds: int) -> ByAlgorithm:
    contestants: dict[str, Callable[[], StreamStats]] = {
        name: partial(work, name) for name in LABELS
    }
    # Response times are taken apart from the execution times, to which they would add.
    stats = check_streams(bench, label, work, LABELS)
    timings = bench.alternate(label, contestants, rounds=rounds, warmups=0)
    return {name: Measured(timings[name], stats[name]) for name in LABELS}


def _draw(bench: Bench, rates: tuple[int, ...], by_rate: list[ByAlgorithm]) -> None:
    def lines(value: Callable[[Measured], float]) -> dict[str, list[float]]:
        return {
            label: [value(measured[name]) for measured in by_rate] for name, label in LABELS.items()
        }

    x = list(map(float, rates))
    axis = "arrival rate of each stream (events/s)"
    bench.chart(
        "figure3", "Execution time by arrival rate (Figure 3)", axis, "execution time (s)", x,
        lines(lambda measured: measured.timing.median), log_x=True, log_y=True,
    )  # fmt: skip
    bench.chart(
        "figure4", "Mean response time by arrival rate (Figure 4)", axis,
        "mean response time, of the stream's clock (ms)", x,
        lines(lambda measured: measured.response_ms), log_x=True, log_y=True,
    )  # fmt: skip
    bench.chart(
        "figure5", "Mean length of a stream's buffer (Figure 5)", axis, "events", x,
        lines(lambda measured: measured.buffer), log_x=True, log_y=True,
    )  # fmt: skip


def _claims(bench: Bench, rates: tuple[int, ...], by_rate: list[ByAlgorithm]) -> None:
    top = by_rate[-1]
    seconds = {name: measured.timing.median for name, measured in top.items()}
    at = f"at {rates[-1]} events/s"

    def growth(name: str) -> float:
        middle = by_rate[len(by_rate) // 2]
        return top[name].timing.median / middle[name].timing.median

    bench.claim(
        "Figure 3: the time of Eager and the lazy family grows much slower with the rate than that of"
        " Simple and Simple-Sort.",
        f"from {rates[len(rates) // 2]} to {rates[-1]} events/s: "
        + ", ".join(f"{LABELS[n]} × {growth(n):.0f}" for n in LABELS),
        max(map(growth, ("eager", "lazy", "lookup"))) < min(map(growth, ("simple", "simple-sort"))),
    )
    bench.claim(
        "Figure 3: Simple-Sort is faster than Simple.",
        f"{at}: {seconds['simple'] / seconds['simple-sort']:.2f} × as fast",
        seconds["simple-sort"] < seconds["simple"],
    )
    bench.claim(
        "Figure 3: the lazy family is faster than Eager.",
        f"{at}, times as fast as Eager: Lazy {seconds['eager'] / seconds['lazy']:.2f},"
        f" with look-up {seconds['eager'] / seconds['lookup']:.2f}",
        max(seconds["lazy"], seconds["lookup"]) < seconds["eager"],
    )
    slow, fast = (
        {name: measured.response_ms for name, measured in each.items()}
        for each in (by_rate[0], top)
    )
    bench.claim(
        "Figure 4: Eager responds sooner than the lazy family.",
        f"Eager against Lazy: {slow['eager']:.0f} ms, {slow['lazy']:.0f} ms at {rates[0]} events/s;"
        f" {fast['eager']:.0f} ms, {fast['lazy']:.0f} ms {at}",
        all(found["eager"] < found["lazy"] for found in (slow, fast)),
    )
    bench.claim(
        "Figure 4: Simple and Simple-Sort respond sooner than the lazy family up to 400 events/s, and"
        " fall behind beyond, where they cannot keep up with the stream.",
        f"sooner at every rate ({fast['simple']:.0f} ms {at}): all keep up with the streams here, and"
        " response is of the stream's clock, in which falling behind would not show",
        None,
    )
    buffers = {name: measured.buffer for name, measured in top.items()}
    bench.claim(
        "Figure 5: the buffers of Eager are the shortest; those of Simple-Sort are shorter than those"
        " of Simple.",
        f"{at}: "
        + ", ".join(f"{LABELS[n]} {buffers[n]:,.0f}" for n in LABELS)
        + ". Simple and Simple-Sort let go of the same events here, Simple at the cost of a scan",
        buffers["eager"] == min(buffers.values()) and buffers["simple-sort"] < buffers["simple"],
    )
    bench.claim(
        "Figure 5: the buffers of Lazy are longer than those of Eager by about a thousand, the block size.",
        f"{at}: longer by {buffers['lazy'] - buffers['eager']:,.0f} on average over time",
        0.3 * BLOCK <= buffers["lazy"] - buffers["eager"] <= 1.5 * BLOCK,
    )


def _bars(bench: Bench, seconds: float, by_emit: dict[str, ByAlgorithm]) -> None:
    for emit, real_time, simple in (("counts", 1000.0, 20.0), ("pairs", 100.0, 5.0)):
        timings = {name: measured.timing for name, measured in by_emit[emit].items()}
        ours = timings["classes"]
        bench.rate(f"{emit}: classes, times real time", seconds, ours, "x", real_time)
        bench.ratio(f"{emit}: Simple / classes", timings["simple"], ours, simple)
        bench.ratio(f"{emit}: Lazy / look-up", timings["lazy"], timings["lookup"], 1 / 1.1)
        for name in ("simple-sort", "eager", "lazy"):
            bench.ratio(f"{emit}: {LABELS[name]} / classes", timings[name], ours)


ABOUT = """\
Lee & Lee (2010), Figures 3, 4 and 5: r12 ... r1600, d = 1,000 ms, ct 0.8, blocks of 1,000, one core. The
paper does not say how long its streams are and how tuples lie in them. Here a stream lasts a minute and is
a Poisson process. Lengths are uniform in 20 to 200 ms, and arrival is up to 50 ms after the max_time.
Response times follow the stream's clock, without the time that an algorithm takes.
"""

EXPERIMENT = Experiment(
    summary="stream correlators by arrival rate: time, response, buffers (figures 3, 4, 5)",
    run=run,
    title="Streams: arrival rate",
    about=ABOUT,
)
