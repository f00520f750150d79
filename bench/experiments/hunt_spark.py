"""Differential fuzzing on Spark: every way of DataFrames and files against exact arithmetic."""

from __future__ import annotations

from bench.experiment import Bench, Experiment
from bench.hunt.options import OPTIONS

WORLDS = 8
"""Sets of rows that one join takes, told apart by a key: planning takes longer than joining them."""


def run(bench: Bench) -> None:
    """Hunt through the ways of one session."""
    from bench.hunt.cases import CASES_PER_DATA_SET
    from bench.hunt.hunting import hunt
    from bench.hunt.sessions import SETTINGS, hunting_sessions
    from bench.hunt.times import Profile
    from bench.hunt.ways.questions import spark_ways
    from bench.hunt.ways.spark_files import file_ways
    from bench.hunt.ways.spark_frames import frame_ways

    def profile(number: int) -> Profile:
        """Every third data set has types that only files have."""
        return Profile(dataframes=number // CASES_PER_DATA_SET % 3 != 0, worlds=WORLDS)

    bench.say("starting Spark")
    bench.note(master=f"local[{bench.cores}]", spark=SETTINGS, sets_of_rows_a_join=WORLDS)
    with hunting_sessions(bench.cores) as sessions:
        ways = [*frame_ways(sessions), *file_ways(sessions), *spark_ways(sessions)]
        cases = bench.pick(10_000, 24)
        hunt(bench, ways, profile, cases=cases, workers=bench.cores + 1, shrink_seconds=30.0)


ABOUT = """\
The same on Spark. A case is one join of eight sets of rows, which a key separates, since planning takes
longer than joining. Arithmetic is checked, batches have seven rows, and several joins run at once. Some
DataFrames change between plan and action, or give other rows each time. Their answer must be a possible
one, or an error.
"""

EXPERIMENT = Experiment(
    summary="random cases by every way on Spark, judged by the reference (--cases, --seconds)",
    run=run,
    title="Hunt: Spark",
    about=ABOUT,
    options=OPTIONS,
)
