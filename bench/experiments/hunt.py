"""Differential fuzzing in this process: every way without a JVM against exact arithmetic."""

from __future__ import annotations

from bench.experiment import Bench, Experiment
from bench.hunt.options import OPTIONS


def run(bench: Bench) -> None:
    """Hunt through tables, files, the command line and streams."""
    from bench.hunt.hunting import hunt
    from bench.hunt.times import Profile
    from bench.hunt.ways import (
        asked,
        causes,
        changing,
        command,
        files,
        questions,
        streams,
        tables,
    )  # fmt: skip

    ways = [
        *tables.WAYS, *files.WAYS, *command.WAYS, *streams.WAYS, *changing.WAYS, *asked.WAYS,
        *causes.WAYS, *questions.WAYS,
    ]  # fmt: skip
    hunt(bench, ways, lambda number: Profile(), cases=bench.pick(100_000, 100))


ABOUT = """\
Differential fuzzing of every way in one process. Each case is drawn at random: column types, timestamps,
keys, files, options, faults, conditions on pairs, choices of matches, one stream, time shifts. One way
joins it, and the exact arithmetic of `cpu_fallback.reference` judges the answer. Probabilities must agree
to 3·10⁻¹⁶, those of histograms to the bound of their sums, counts of bad rows exactly. Each error must be
the one that is due. Questions of other kinds draw data of their own: float times in `where`, counters that
wrap, nested columns, spans that go on, streams with fast clocks, names, corrections and errors of clocks.
Others draw events in arrays, also those of a GPU where there is one. Any case can run again alone:
`run hunt --seed S --case K`.
"""

EXPERIMENT = Experiment(
    summary="random cases by every way in process, judged by the reference (--cases, --seconds)",
    run=run,
    title="Hunt: one process",
    about=ABOUT,
    options=OPTIONS,
)
