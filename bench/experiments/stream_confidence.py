"""Figures 8 and 9 of Lee & Lee (2010): time and probe regions over the confidence threshold."""

from __future__ import annotations

from functools import partial

from bench.charts import LABELS
from bench.events import LONGEST_US, SHORTEST_US
from bench.experiment import Bench, Experiment
from bench.papers.regions import region_bounds
from bench.streams import BLOCK, StreamLoad, StreamRun, check_streams, mutual_deadline_us
from bench.timing import Timing

DEADLINE_MS = 1000
CONFIDENCES = (1.0, 0.7, 0.4, 0.1)
RATE = 500
"""The rate of seq.dat, which the paper does not give."""


def run(bench: Bench) -> None:
    """Run all algorithms on the ordered streams; then the regions of the thresholds."""
    load = StreamLoad(RATE, bench.pick(60.0, 2.0), ordered=True)
    bench.note(ct=CONFIDENCES, rate=RATE, seconds=load.seconds, d_ms=DEADLINE_MS, block=BLOCK)
    found = [_timed(bench, load, confidence) for confidence in CONFIDENCES]
    axis, x = "confidence threshold", list(CONFIDENCES)
    bench.chart(
        "figure8", "Execution time by confidence threshold, ordered streams (Figure 8)", axis,
        "execution time (s)", x,
        {label: [t[name].median for t in found] for name, label in LABELS.items()}, log_y=True,
    )  # fmt: skip
    _claim_times(bench, found)
    _probe_regions(bench)


def _timed(bench: Bench, load: StreamLoad, confidence: float) -> dict[str, Timing]:
    work = StreamRun(load, mutual_deadline_us(DEADLINE_MS, confidence), emit="pairs")
    label = f"ct {confidence}"
    check_streams(bench, label, work, LABELS)
    works = {name: partial(work, name) for name in LABELS}
    return bench.alternate(label, works, rounds=5, warmups=0)


def _claim_times(bench: Bench, found: list[dict[str, Timing]]) -> None:
    gains = [t["lazy"].median / t["lookup"].median for t in found]
    bench.claim(
        "Figure 8: the lazy correlation with a look-up table performs best of the five in all cases.",
        "fastest of the five, and the speed of look-up in parts of its: "
        + "; ".join(
            f"ct {ct} {LABELS[_fastest(t)]}, {t[_fastest(t)].median / t['lookup'].median:.2f}"
            for ct, t in zip(CONFIDENCES, found, strict=True)
        ),
        all(_fastest(timings) == "lookup" for timings in found),
    )
    bench.claim(
        "Figure 8: the difference between Lazy with and without look-up becomes smaller as ct falls.",
        ", ".join(f"ct {ct}: {gain:.2f} x" for ct, gain in zip(CONFIDENCES, gains, strict=True)),
        gains[0] > 1.02 and gains == sorted(gains, reverse=True),
    )
    probed = [t["lazy"].answer.probed / sum(t["lazy"].answer.arrived) for t in found]
    bench.claim(
        "Section 5.1: fewer tuples are probed as ct falls.",
        ", ".join(f"ct {ct}: {n:.1f} an event" for ct, n in zip(CONFIDENCES, probed, strict=True)),
        probed == sorted(probed, reverse=True),
    )


def _fastest(timings: dict[str, Timing]) -> str:
    return min((name for name in LABELS if name != "classes"), key=lambda n: timings[n].median)


def _probe_regions(bench: Bench) -> None:
    """The widths for a base event of mean length."""
    confidences = [k / 20 for k in range(1, 21)]
    length = (SHORTEST_US + LONGEST_US) // 2
    lefts, rights = [], []
    for confidence in confidences:
        window = mutual_deadline_us(DEADLINE_MS, confidence)
        bounds = region_bounds(-length, 0, SHORTEST_US, LONGEST_US, window)
        lefts.append((bounds.inner_left - bounds.outer_left) / 1000)
        rights.append((bounds.outer_right - bounds.inner_right) / 1000)
    both = [left + right for left, right in zip(lefts, rights, strict=True)]
    bench.chart(
        "figure9", "Probe regions by confidence threshold (Figure 9)", "confidence threshold",
        "width of the probe region (ms)", confidences,
        {"left": lefts, "right": rights, "both": both},
    )  # fmt: skip
    bench.claim(
        "Figure 9: the higher ct, the larger the left probe region; the lower, the larger the right.",
        f"left {lefts[0]:.0f} ms at ct {confidences[0]}, {lefts[-1]:.0f} ms at 1;"
        f" right {rights[0]:.0f} ms and {rights[-1]:.0f} ms",
        lefts == sorted(lefts) and rights == sorted(rights, reverse=True),
    )
    bench.claim(
        "Section 5.1: at ct 1 there is no right probe region, and the left one is at most d - rho, 980 ms.",
        f"at ct 1 right {rights[-1]:.0f} ms, left {lefts[-1]:.0f} ms, which is pi - rho:"
        " lengths within 20 to 200 ms move the bound no further",
        rights[-1] < 0.01 and lefts[-1] <= DEADLINE_MS - SHORTEST_US / 1000,
    )
    bench.claim(
        "Section 5.1: the left probe region is likely to be larger than the right one.",
        f"left {lefts[-1]:.0f} ms at most, right {rights[0]:.0f} ms at most;"
        f" both together {min(both):.0f} to {max(both):.0f} ms",
        max(lefts) > max(rights),
    )


ABOUT = """\
Lee & Lee (2010), Figures 8 and 9: ordered streams (seq, here 500 events a second), d = 1,000 ms.
"""

EXPERIMENT = Experiment(
    summary="stream correlators and probe regions by confidence threshold (figures 8, 9)",
    run=run,
    title="Streams: confidence threshold",
    about=ABOUT,
)
