"""What the planner's choice costs: each way that can be asked for, and the one that is taken."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from bench.events import Condition, Load
from bench.experiment import Bench, Experiment
from bench.joins import spark_join
from bench.sessions import any_frame, consume, parquet_frames, rows_and_pairs, spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from coincide.model.options import Way

WAYS: tuple[Way, ...] = ("exchange", "broadcast-left", "broadcast-right", "broadcast-both")
"""The ways of DataFrames that are more than reads of files."""
REGRET = 1.15
"""The choice may take this many times as long as the fastest way."""
_COLLECTED = 1_000_000
"""With more events a side no user asks for a collection."""


@dataclass(frozen=True)
class Point:
    """A piece of work: events of each side, their density, the window; one of this many passes a filter."""

    events: int
    rate: float
    deadline_ms: int
    right_events: int | None = None
    one_of: int = 1

    @property
    def label(self) -> str:
        """In words."""
        other = "" if self.right_events is None else f" next to {self.right_events:,}"
        kept = f" of which a filter leaves {self.kept:,}" if self.one_of > 1 else ""
        window = f"±{self.deadline_ms} ms"
        return f"{self.events:,} events{kept}{other}, {self.rate:g} a second, {window}"

    @property
    def kept(self) -> int:
        """Events of each side that a filter leaves."""
        return self.events // self.one_of

    @property
    def bar(self) -> float | None:
        """On the fastest way's time to that of the choice; none where it is not known how many pass."""
        return 1 / REGRET if self.one_of == 1 else None

    @property
    def rounds(self) -> int:
        """Rounds to time."""
        return 15 if self.events <= _SMALL else 5

    @property
    def load(self) -> Load:
        """The streams."""
        return Load(self.events, self.rate, self.right_events)

    @property
    def ways(self) -> tuple[Way, ...]:
        """The ways to compare."""
        return WAYS if self.kept <= _COLLECTED else WAYS[:-1]


POINTS = (
    *(
        Point(events, rate, deadline_ms)
        for events in (10_000, 50_000, 200_000, 1_000_000)
        for rate in (4.0, 100.0)
        for deadline_ms in (100, 500)
    ),
    Point(1_000_000, 4.0, 500, 10_000),
    Point(1_000_000, 100.0, 500, 10_000),
    Point(1_000_000, 4.0, 500, 200_000),
    Point(4_000_000, 100.0, 500, one_of=80),
    Point(4_000_000, 100.0, 500, one_of=8),
)
_QUICK = (Point(2_000, 25.0, 500),)
_SMALL = 50_000
"""Joins of this many events take a few tenths of a second, and each round strays by a tenth."""


def run(bench: Bench) -> None:
    """Time every way at every point; all must find the same rows and pairs."""
    regrets = []
    with spark_session(bench) as spark:
        for point in bench.pick(POINTS, _QUICK):
            with parquet_frames(bench, spark, point.load) as frames:
                works = {way: partial(_joined, frames, point, way) for way in ("auto", *point.ways)}
                bench.check_equal(
                    f"{point.label}: rows and pairs",
                    {way: rows_and_pairs(work(), "pairs") for way, work in works.items()},
                )
                timings = bench.alternate(
                    point.label,
                    {way: lambda work=work: consume(work()) for way, work in works.items()},  # type: ignore[misc]
                    rounds=point.rounds,
                )
            chosen = timings.pop("auto")
            fastest = min(timings.values(), key=lambda timing: timing.median)
            regrets.append(chosen.median / fastest.median)
            bench.ratio(f"{point.label}: fastest way / chosen", fastest, chosen, point.bar)
    told = "worst regret: time of the choice / of the fastest way"
    bench.figure(told, max(regrets), "x", spread=regrets)


def _joined(frames: tuple[DataFrame, DataFrame], point: Point, way: Way) -> DataFrame:
    """The pairs of DataFrames made anew: of one that was computed before Spark has kept the plan."""
    left, right = map(any_frame, frames)
    if point.one_of > 1:
        left, right = (side.where(f"id % {point.one_of} = 0") for side in (left, right))
    return spark_join(left, right, "pairs", Condition(1000 * point.deadline_ms), way=way)


ABOUT = """\
`local[2]`, one session, pairs of DataFrames of Parquet files in time order, to the noop sink, planning
included. Each way that `way=` can name runs, and the planner's own choice, which also pays for its planning
job. A ratio below one says how much longer the choice takes than the fastest way. Noise alone makes one of
several equal ways the fastest. Ratios far above one belong to choices that need no planning job, which
`way=` cannot name.
"""

EXPERIMENT = Experiment(
    summary="the planner's choice against each way that can be asked for",
    run=run,
    title="Planner",
    about=ABOUT,
    needs="Java",
)
