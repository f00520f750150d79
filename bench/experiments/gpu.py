"""The GPU against the CPU: the same matches to the bit, then how fast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.experiment import Bench, Experiment
from bench.gpu.backends import GPU, backends, note_device
from bench.gpu.bandwidth import copy_bandwidth, time_shares
from bench.gpu.borders import check_borders, time_borders
from bench.gpu.causality import check_causality, time_causality
from bench.gpu.equality import check_arrow, check_join, check_pairs
from bench.gpu.large import time_large
from bench.gpu.launches import time_launches
from bench.gpu.picks import check_picks
from bench.gpu.rates import time_copies, time_dense, time_end_to_end
from bench.gpu.streams import check_streams, sweep_blocks
from bench.gpu.sweeps import sweep_counts
from bench.gpu.works import Work, adversarial


def run(bench: Bench) -> None:
    """Equality first; then throughput, sweeps and the bars."""
    both = backends()
    note_device(bench)
    _compare(bench, both)
    _time(bench, both)


def _compare(bench: Bench, both: dict[str, Any]) -> None:
    for name, case in adversarial(bench.pick(20_000, 20)):
        check_join(bench, both, name, case)
    check_arrow(bench)
    check_picks(bench)
    check_streams(bench)
    check_borders(bench, both)
    check_causality(bench, both)
    bench.keep()


def _time(bench: Bench, both: dict[str, Any]) -> None:
    dense = Work(bench.pick(1_100_000, 20))
    pairs = check_pairs(bench, both, dense)
    bandwidth = copy_bandwidth(bench)
    parts: tuple[Callable[[], None], ...] = (
        lambda: time_launches(bench),
        lambda: time_shares(bench, dense, pairs, bandwidth),
        lambda: time_large(bench, Work(bench.pick(10_000_000, 40), rate=4.0)),
        lambda: time_end_to_end(bench),
        lambda: time_dense(bench, both, dense),
        lambda: time_copies(bench, both[GPU], dense),
        lambda: time_borders(bench, both),
        lambda: time_causality(bench, both),
        lambda: sweep_counts(bench, both),
        lambda: sweep_blocks(bench),
    )
    for part in parts:
        part()
        bench.keep()


ABOUT = """\
The GPU's kernels run against the CPU's of two cores, in one process without Spark. First both must give
the same bits: random and adversarial joins, 10^8 pairs, Arrow to Arrow, seismic picks where they are at
hand, streams, border crossings, causes and effects. Then come times. The share of the copy bandwidth is the
bytes that a kernel must move, over its time, against a copy on the device in the same run. A dense case
serves for it, up to sixteen times as large if the device can hold its pairs.
"""

EXPERIMENT = Experiment(
    summary="GPU kernels: equal to the CPU, and how fast",
    run=run,
    title="GPU",
    about=ABOUT,
    needs="an NVIDIA GPU, cupy, numba-cuda",
)
