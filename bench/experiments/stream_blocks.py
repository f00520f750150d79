"""Figures 6 and 7 of Lee & Lee (2010): time and hit ratio over the size of the block."""

from __future__ import annotations

from functools import partial

from bench.charts import LABELS
from bench.experiment import Bench, Experiment
from bench.streams import StreamLoad, StreamRun, check_streams, mutual_deadline_us
from bench.timing import Timing

RATE, DEADLINE_MS = 500, 500
CONFIDENCES = (0.8, 0.5)
BLOCKS = (100, 200, 400, 600, 800, 1000, 1200, 1400, 1600)
QUICK_BLOCKS = (20, 100)
LAZY_FAMILY = ("lazy", "lookup", "classes")


def run(bench: Bench) -> None:
    """Run the lazy algorithms at all block sizes and both thresholds."""
    blocks = bench.pick(BLOCKS, QUICK_BLOCKS)
    load = StreamLoad(RATE, bench.pick(60.0, 2.0))
    bench.note(blocks=blocks, rate=RATE, seconds=load.seconds, d_ms=DEADLINE_MS, ct=CONFIDENCES)
    seconds: dict[str, list[float]] = {}
    ratios: dict[str, list[float]] = {}
    for confidence in CONFIDENCES:
        for block in blocks:
            timings = _timed(bench, load, confidence, block)
            for name, timing in timings.items():
                line = f"{LABELS[name]}, ct {confidence}"
                seconds.setdefault(line, []).append(timing.median)
            ratio = timings["lookup"].answer.hit_ratio
            ratios.setdefault(f"ct {confidence}", []).append(ratio)
    _draw(bench, blocks, seconds, ratios)
    _claims(bench, blocks, seconds, ratios)


def _timed(bench: Bench, load: StreamLoad, confidence: float, block: int) -> dict[str, Timing]:
    work = StreamRun(load, mutual_deadline_us(DEADLINE_MS, confidence), block, emit="pairs")
    label = f"ct {confidence}, block {block}"
    check_streams(bench, label, work, LAZY_FAMILY)
    works = {name: partial(work, name) for name in LAZY_FAMILY}
    return bench.alternate(label, works, rounds=5, warmups=0)


def _draw(
    bench: Bench,
    blocks: tuple[int, ...],
    seconds: dict[str, list[float]],
    ratios: dict[str, list[float]],
) -> None:
    x, axis = list(map(float, blocks)), "block size (events)"
    dashed = [line for line in seconds if line.endswith(str(CONFIDENCES[1]))]
    bench.chart(
        "figure6", "Execution time by block size (Figure 6)", axis, "execution time (s)", x,
        seconds, dashed=dashed,
    )  # fmt: skip
    bench.chart(
        "figure7", "Hit ratio of the look-up table (Figure 7)", axis, "hit ratio", x, ratios
    )


def _claims(
    bench: Bench,
    blocks: tuple[int, ...],
    seconds: dict[str, list[float]],
    ratios: dict[str, list[float]],
) -> None:
    lazy = [times for line, times in seconds.items() if not line.startswith(LABELS["classes"])]
    bench.claim(
        "Figure 6: the larger the block, the shorter the time, by less and less.",
        "; ".join(
            f"{line}: {times[0]:.3f} s at {blocks[0]}, {times[len(times) // 2]:.3f} s at"
            f" {blocks[len(times) // 2]}, {times[-1]:.3f} s at {blocks[-1]}"
            for line, times in seconds.items()
        ),
        all(
            times[0] > times[-1] and times[0] - times[len(times) // 2] > times[len(times) // 2] - times[-1]
            for times in lazy
        ),
    )  # fmt: skip
    bench.claim(
        "Figure 7: the hit ratio rises with the block size and settles, at about 1,200.",
        "; ".join(
            f"{line}: {values[0]:.3f} at {blocks[0]}, {values[len(values) // 2]:.3f} at"
            f" {blocks[len(values) // 2]}, {values[-1]:.3f} at {blocks[-1]}"
            for line, values in ratios.items()
        ),
        all(values[0] < values[-1] for values in ratios.values())
        and all(abs(values[-1] - values[-2]) < 0.02 for values in ratios.values()),
    )


ABOUT = """\
Lee & Lee (2010), Figures 6 and 7: r500, d = 500 ms, ct 0.8 and 0.5.
"""

EXPERIMENT = Experiment(
    summary="lazy stream correlators by block size: time and hit ratio (figures 6, 7)",
    run=run,
    title="Streams: block size",
    about=ABOUT,
)
