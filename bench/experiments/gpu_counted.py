"""The kernels of a join, counted where there is no GPU."""

from __future__ import annotations

from bench.experiment import Bench, Experiment
from bench.gpu.counted import Counters, count_joins, count_kernels, count_sequences
from bench.gpu.works import Work


def run(bench: Bench) -> None:
    """A dense join, and one with few matches: single kernels, then whole joins; then sequences."""
    Counters()  # Says at once where counters are missing
    for name, work in (
        ("dense", Work(bench.pick(8000, 300))),
        ("few matches", Work(bench.pick(40_000, 2000), rate=4.0)),
    ):
        count_kernels(bench, name, work)
        count_joins(bench, name, work)
    count_sequences(bench)


ABOUT = """\
The kernels of a join on the virtual GPU of the tests, which runs the PTX that Numba-CUDA links for a real
one. It counts instructions of that PTX and bytes of global memory: for an entry (`place`), a candidate
(`probe`, `scatter`; of best matches `most_probable`, `nearest`, `foremost`) or a pair (`copy`). One join
has about 91 pairs an event, the other 3.6. A whole join, from Arrow to Arrow, adds what the host waits
for, and what it sends and fetches: for an event of either side. Sequences of three streams of intervals
have no bound on the whole (chains), or one (triangles); gatherings are sets of their events. Counts are for
each tuple that links make, whose probability is asked for. They are the same on every machine, and a test
holds the code to them. A real GPU runs more instructions than PTX has, above all for numbers of 64 bits.
"""

EXPERIMENT = Experiment(
    summary="GPU kernels without a GPU: instructions and bytes of their PTX, waits of the host",
    run=run,
    title="GPU kernels, counted",
    about=ABOUT,
    needs="the virtual GPU of the tests, gcc",
)
