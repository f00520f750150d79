"""Figures 20 to 25 of the BMQ paper: how local real series are, and what that means for its traversal."""

from __future__ import annotations

import numpy as np

from bench.borders import DOMAIN, PROCESSINGS, BorderLoad, Walks, searched
from bench.experiment import Bench, Experiment
from bench.nab import read_series
from coincide.model.borders.moves import FIRST, MOVE

WALK = "random walk"
SHOWN = {
    "ambient temperature": "realKnownCause/ambient_temperature_system_failure.csv",
    "machine temperature": "realKnownCause/machine_temperature_system_failure.csv",
    "tweets on a share": "realTweets/Twitter_volume_AAPL.csv",
    "price of clicks": "realAdExchange/exchange-2_cpc_results.csv",
}
"""Temperatures, as in the paper, and what comes near its prices of shares."""
INTERVALS = (1, 2, 4, 8, 16, 32, 64)
WIDTHS = (1e-3, 1e-2, 1e-1)
QUERIES = 100_000

Series = dict[str, np.ndarray]
"""Values of each series, from 0 to 1: shares of its range."""


def run(bench: Bench) -> None:
    """Series, fluctuation level by sampling interval, densities of steps; then the searches."""
    real = _nab()
    bench.note(nab_series=len(real) or "not here", queries=QUERIES)
    walk = {WALK: _random_walk(bench.pick(4_000, 400))}
    shown = {name: real[path] for name, path in SHOWN.items() if path in real} | walk
    _series(bench, shown)
    _levels(bench, shown, real)
    _densities(bench, shown)
    if real:
        median = float(np.median([level(values) for values in real.values()]))
        bench.figure("NAB, median of the series' fluctuation levels", 100 * median, "%")
    events = [_searches(bench, *each) for each in (("NAB", real), (WALK, walk)) if each[1]]
    # One check, whether or not the series are here.
    bench.check_equal("events", {way: [each[way] for each in events] for way in PROCESSINGS})


def _nab() -> Series:
    """The series that are not flat; none, where they are not here."""
    try:
        table = read_series()
    except FileNotFoundError:
        return {}
    groups = table.select(["series", "value"]).to_pandas().groupby("series")["value"]
    values = {str(name): each.to_numpy() for name, each in groups}
    return {name: _scaled(each) for name, each in values.items() if np.ptp(each) > 0}


def _scaled(values: np.ndarray) -> np.ndarray:
    return (values - values.min()) / np.ptp(values)


def _random_walk(size: int) -> np.ndarray:
    return _scaled(np.cumsum(np.random.default_rng(8).normal(size=size)))


def level(values: np.ndarray) -> float:
    """The fluctuation level (section 4.4), as a share of the range."""
    return float(np.abs(np.diff(values)).mean())


def _series(bench: Bench, shown: Series) -> None:
    shares = np.linspace(0, 1, bench.pick(200, 20))
    bench.chart(
        "figure20-23", "Some series (Figures 20 and 23)", "share of the series",
        "share of the range", shares.tolist(),
        {
            name: values[(shares * (values.size - 1)).astype(np.int64)].tolist()
            for name, values in shown.items()
        },
        dashed=[WALK],
    )  # fmt: skip


def _levels(bench: Bench, shown: Series, real: Series) -> None:
    """Figures 21 and 24: the level of every k-th reading."""

    def levels(values: np.ndarray) -> list[float]:
        return [100 * level(values[::k]) for k in INTERVALS]

    lines = {name: levels(values) for name, values in shown.items()}
    if real:
        lines["NAB, median"] = np.median([levels(v) for v in real.values()], axis=0).tolist()
    bench.chart(
        "figure21-24", "Fluctuation level by sampling interval (Figures 21 and 24)",
        "sampling interval, times that of the series", "% of the range",
        list(map(float, INTERVALS)), lines, log_x=True, log_y=True, dashed=[WALK],
    )  # fmt: skip
    bench.claim(
        "Figures 21 and 24: the fluctuation level falls as the sampling rate rises",
        "from every 64th reading to each: "
        + ", ".join(f"{name} {each[-1]:.2g} to {each[0]:.2g} %" for name, each in lines.items()),
        all(each[0] < each[-1] for each in lines.values()),
    )
    bench.claim(
        "Section 7.1.1: fluctuation levels are 0.01 to 0.1 % of the domain, of all prices of shares",
        ", ".join(f"{name} {each[0]:.2g} %" for name, each in lines.items())
        + ", of the series' own range",
        None,
    )


def _densities(bench: Bench, shown: Series) -> None:
    """Figures 22 and 25: the density of differences of readings that follow each other."""
    edges = np.linspace(-5.25, 5.25, 22)
    middles = (edges[1:] + edges[:-1]) / 2
    steps = {name: 100 * np.diff(values) for name, values in shown.items()}
    lines = {
        name: (np.histogram(each, edges)[0] / each.size / np.diff(edges)).tolist()
        for name, each in steps.items()
    }
    bench.chart(
        "figure22-25", "Differences of readings that follow each other (Figures 22 and 25)",
        "difference (% of the range)", "density (per %)", middles.tolist(), lines, dashed=[WALK],
    )  # fmt: skip
    bench.claim(
        "Figures 22 and 25: differences gather around zero, and readings are often equal",
        "within 0.25 %, and equal: "
        + ", ".join(
            f"{name} {100 * (np.abs(each) <= 0.25).mean():.0f} %, {100 * (each == 0).mean():.0f} %"
            for name, each in steps.items()
        ),
        all(np.argmax(line) == middles.size // 2 for line in lines.values()),
    )


def _searches(bench: Bench, name: str, series: Series) -> dict[str, list[int]]:
    """What traversal takes out of the index, and what of it comes out; events by processing and width."""
    walks = _walks(series)
    events: dict[str, list[int]] = {way: [] for way in PROCESSINGS}
    for width in WIDTHS:
        index = BorderLoad(queries=bench.pick(QUERIES, 100), width=width).ranges().index()
        label = f"{name}, W {100 * width:g} %"
        times = searched(bench, label, index, walks)
        answers = {way: timing.answer for way, timing in times.items()}
        for way, answer in answers.items():
            events[way].append(answer.events)
        cancelled = 100 - answers["traversal"].efficiency
        bench.figure(f"{label}: retrieved by traversal, not told", cancelled, "%")
        bench.figure(f"{label}: efficiency of three-sided", answers["three-sided"].efficiency, "%")
        bench.ratio(f"{label}: traversal / auto", times["traversal"], times["auto"])
        if width == WIDTHS[0] and name != WALK:
            bench.claim(
                "Section 7.1.2: what traversal retrieves is almost all told, as W is in practice larger"
                " than FL",
                f"{label}: {cancelled:.0f} % of what it retrieves is cancelled, and it takes"
                f" {times['traversal'].median / times['auto'].median:.1f} times as long as auto",
                cancelled < 10,
            )
    return events


def _walks(series: Series) -> Walks:
    values = np.concatenate([np.floor(each * (DOMAIN - 1)) for each in series.values()])
    kinds = np.full(values.size, MOVE, np.int8)
    sizes = [each.size for each in series.values()]
    kinds[np.cumsum([0, *sizes[:-1]])] = FIRST
    return Walks(values[:, np.newaxis], kinds)


ABOUT = """\
Appendix A of the BMQ paper examines share prices and temperatures. Here are series of the Numenta Anomaly
Benchmark, where they lie next to the repository, and a random walk. The difference of successive readings
is a share of the series' range. Below, 100,000 queries watch all series on one core; each series is spread
over the same domain.
"""

EXPERIMENT = Experiment(
    summary="border crossings: how local real series are (figures 20 to 25 of the BMQ paper)",
    run=run,
    title="Border crossings: locality",
    about=ABOUT,
)
