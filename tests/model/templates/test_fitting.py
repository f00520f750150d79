"""Templates from densities and from measured delays: how near they are, and what is refused."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coincide
from coincide import ConditionError, DataError, SchemaError, Tick


class Erlang:
    """A gamma distribution of shape 2, with a distribution function of arrays."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def cdf(self, x: Any) -> Any:
        t = np.maximum(np.asarray(x, np.float64), 0.0) / self.scale
        return 1.0 - np.exp(-t) * (1.0 + t)

    def ppf(self, q: float) -> float:
        low, high = 0.0, 100.0 * self.scale
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if self.cdf(middle) < q else (low, middle)
        return high


class Mixture:
    """Two Gaussians, far from each other."""

    parts = NormalDist(10, 1), NormalDist(60, 4)

    def cdf(self, x: float) -> float:
        return sum(0.5 * part.cdf(x) for part in self.parts)

    def inv_cdf(self, q: float) -> float:
        low, high = -100.0, 200.0
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if self.cdf(middle) < q else (low, middle)
        return high


def histogram_cdf(edges: tuple, masses: tuple, points: np.ndarray) -> np.ndarray:
    return np.interp(points, edges, np.concatenate([[0.0], np.cumsum(masses)]))


@pytest.mark.parametrize("error", [0.2, 0.02, 0.004])
@pytest.mark.parametrize("density", [NormalDist(40, 10), Erlang(7.0), Mixture()])
def test_a_density_is_met_to_the_stated_error(density: Any, error: float) -> None:
    fit = coincide.templates_from_densities({"a": density}, unit="ms", error=error)
    assert fit.error["a"] <= error
    template = fit.templates.given["a"]
    assert template.delays
    points = np.linspace(template.edges[0] - 5_000, template.edges[-1] + 5_000, 5_003)
    true = np.array([float(density.cdf(point / 1_000)) for point in points])
    found = histogram_cdf(template.edges, template.masses, points)
    assert np.abs(true - found).max() <= fit.distance["a"] + 1e-12
    # Not much better than asked for, either: buckets cost time.
    assert fit.error["a"] > error / 20


def test_gaussian_timestamps_have_the_probability_of_gaussians() -> None:
    error = 0.005
    densities = {"a": NormalDist(40, 10), "b": NormalDist(25, 5)}
    fit = coincide.templates_from_densities(densities, unit="ms", error=error)
    table = fit.templates.table(Tick("us"))
    a, b = table.numbered(["a", "b"])
    from coincide.model.templates.tails import window_tails

    # Seen at the same time: Delta is what the delays differ by, N(15, 125) ms.
    shift = int(table.offsets[b] - table.offsets[a])
    outside = window_tails(table.buckets, a, table.buckets, b, -10_000 - shift, 20_000 - shift)
    delta = NormalDist(15, math.sqrt(125))
    assert abs((1.0 - outside) - (delta.cdf(20) - delta.cdf(-10))) <= 2 * error


@given(
    st.lists(st.integers(0, 60) | st.just(7), min_size=30, max_size=200),
    st.integers(1, 20),
    st.sampled_from(["quantile", "width"]),
)
@settings(max_examples=150, deadline=None)
def test_templates_of_delays_say_how_near_they_are(
    delays: list[int], buckets: int, method: Any
) -> None:
    fit = coincide.templates_from_delays(
        pa.table({"d": delays}), delay="d", buckets=buckets, method=method
    )
    template = fit.templates.given["all"]
    assert fit.samples == {"all": len(delays)}
    assert abs(sum(template.masses) - 1.0) < 1e-9
    assert template.edges[0] == min(delays)
    assert template.edges[-1] == max(delays)
    # As often as not a value is at an edge: looked at from both sides of it.
    after = {edge: 0.0 for edge in template.edges}
    for k, mass in enumerate(template.masses):
        for edge in after:
            after[edge] += mass if edge >= template.edges[k + 1] else 0.0
    for edge, mass in after.items():
        share = sum(delay <= edge for delay in delays) / len(delays)
        assert abs(share - mass) <= fit.distance["all"] + 1e-9
    assert fit.error["all"] >= min(1.0, 2 * fit.distance["all"])


def test_a_delay_that_repeats_is_a_bucket_of_length_0() -> None:
    delays = [0] * 500 + list(range(1, 501))
    fit = coincide.templates_from_delays(pa.table({"d": delays}), delay="d", buckets=8)
    template = fit.templates.given["all"]
    assert template.edges[:2] == (0, 0)
    assert template.masses[0] == 0.5
    assert fit.distance["all"] < 0.01
    equal = coincide.templates_from_delays(pa.table({"d": [5] * 40}), delay="d")
    assert equal.templates.given["all"].edges == (5, 5)
    assert equal.distance["all"] == 0.0


def test_delays_by_template_and_in_any_unit() -> None:
    rows = {"d": [0.001 * k for k in range(80)], "device": ["a", "b"] * 40}
    fit = coincide.templates_from_delays(pa.table(rows), delay="d", by="device", unit="s")
    assert set(fit.templates.given) == {"a", "b"}
    assert fit.templates.given["b"].edges[-1] == 79_000
    durations = pa.array([k * 1_000_000 for k in range(80)], pa.duration("ns"))
    again = coincide.templates_from_delays(
        pa.table({"d": durations, "device": rows["device"]}), delay="d", by="device"
    )
    assert again.templates == fit.templates


def test_too_few_delays() -> None:
    rows = pa.table({"d": [1, 2, 3, *range(50)], "k": ["few"] * 3 + ["many"] * 50})
    with pytest.raises(DataError, match=r"'few' has 3 delays, fewer than 30. Measure more"):
        coincide.templates_from_delays(rows, delay="d", by="k")
    both = pa.concat_tables([rows, pa.table({"d": [4], "k": ["fewer"]})])
    with pytest.raises(DataError, match=r"'few' has 3 delays, fewer than 30 \(and 1 more such\)"):
        coincide.templates_from_delays(both, delay="d", by="k")
    fit = coincide.templates_from_delays(rows, delay="d", by="k", pool=True)
    assert fit.templates.given["few"] != fit.templates.given["many"]
    assert fit.samples == {"few": 3, "many": 50}
    # How near the histogram of all is to three delays at its lower end: not at all.
    assert fit.distance["few"] > 0.8 > 0.1 > fit.distance["many"]
    assert fit.error["few"] == 1.0
    with pytest.raises(DataError, match="0 delays"):
        coincide.templates_from_delays(rows.slice(0, 0), delay="d")


def test_what_is_refused() -> None:
    with pytest.raises(DataError, match="null"):
        coincide.templates_from_delays(pa.table({"d": [1, None]}), delay="d")
    with pytest.raises(ConditionError, match="unit='s'"):
        coincide.templates_from_delays(pa.table({"d": [1.5] * 40}), delay="d")
    with pytest.raises(DataError, match="must be finite"):
        coincide.templates_from_delays(pa.table({"d": [1.5, math.nan]}), delay="d", unit="s")
    with pytest.raises(SchemaError, match="no column 'x'"):
        coincide.templates_from_delays(pa.table({"d": [1]}), delay="x")
    with pytest.raises(ConditionError, match="more than 1e-06"):
        coincide.templates_from_densities({"a": NormalDist()}, unit="s", error=1e-6)
    with pytest.raises(ConditionError, match="must have cdf and ppf"):
        coincide.templates_from_densities({"a": 3}, unit="s")


@pytest.mark.parametrize(
    ("values", "unit"),
    [
        (np.full(50, 1e300), "s"),
        (np.full(50, 2**62), None),
        (pa.array([2**63 + 5] * 50, pa.uint64()), None),
        (np.full(50, 2**62), "s"),
        (pa.array([10**13] * 50, pa.duration("s")), None),
    ],
)
def test_delays_beyond_all_ticks_are_refused(values: Any, unit: str | None) -> None:
    with pytest.raises(DataError, match=r"d: the delay .* reaches 2\^60 ticks"):
        coincide.templates_from_delays(pa.table({"d": values}), delay="d", unit=unit)


def test_delays_that_are_no_table_of_theirs() -> None:
    with pytest.raises(
        SchemaError, match="delays must be a table that offers Arrow's C stream, such"
    ):
        coincide.templates_from_delays([1, 2], delay="d")
    twice = pa.table([[1, 2], [3, 4]], ["d", "d"])
    with pytest.raises(SchemaError, match="2 columns called 'd'"):
        coincide.templates_from_delays(twice, delay="d")
    for ids in ([True, False], [b"\xff", b"a"]):
        table = pa.table({"d": [1, 2], "device": ids})
        with pytest.raises(SchemaError, match=r"ids of templates must be text or integers \(found"):
            coincide.templates_from_delays(table, delay="d", by="device")


def test_ids_of_delays_stay_apart() -> None:
    table = pa.table({"d": np.arange(100), "device": ["a", "a\0"] * 50})
    fit = coincide.templates_from_delays(table, delay="d", by="device")
    assert fit.samples == {"a": 50, "a\0": 50}


def test_densities_that_make_no_template() -> None:
    class Undefined:
        def cdf(self, points: np.ndarray) -> np.ndarray:
            return np.full_like(points, math.nan)

        def ppf(self, share: float) -> float:
            return 10 * share

    def made(densities: dict) -> Any:
        return coincide.templates_from_densities(densities, unit="ms")

    with pytest.raises(ConditionError, match="density 'a' has a cdf that is NaN at"):
        made({"a": Undefined()})
    for mean in (1e30, math.inf):
        with pytest.raises(ConditionError, match=r"must have finite ends below 2\^60 us"):
            made({"a": NormalDist(mean, 1)})
    assert list(made({7: NormalDist(40, 10)}).templates.given) == ["7"]
    with pytest.raises(DataError, match="the template '7' is given twice"):
        made({7: NormalDist(40, 10), "7": NormalDist(40, 10)})


class _Raising:
    def cdf(self, value: object) -> float:
        raise ValueError("no such value")

    def ppf(self, share: float) -> float:
        return share


@pytest.mark.parametrize(
    ("densities", "arguments", "words"),
    [
        (3, {}, "mapping from ids"),
        ({"a": NormalDist(40, 0)}, {}, "no quantiles"),
        ({"a": _Raising()}, {}, "its cdf fails"),
        ({"a": NormalDist(40, 5)}, {"error": "a"}, "error must lie"),
        ({"a": NormalDist(40, 5)}, {"most": "x"}, "most must be an int"),
        ({"a": NormalDist(40, 5)}, {"unit": ["ms"]}, "is unknown. Use one of"),
    ],
)
def test_odd_arguments_of_densities(densities: Any, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ConditionError, match=words):
        coincide.templates_from_densities(densities, **{"unit": "ms", **arguments})


@pytest.mark.parametrize(
    "arguments",
    [{"buckets": "a"}, {"buckets": 2.5}, {"fewest": "x"}, {"pool": "x"}, {"tick": ["s"]}],
)
def test_odd_arguments_of_delays(arguments: dict[str, Any]) -> None:
    table = pa.table({"delay": [float(k % 7) for k in range(100)]})
    with pytest.raises(ConditionError, match=next(iter(arguments)) + "|unit"):
        coincide.templates_from_delays(table, delay="delay", **{"unit": "s", **arguments})
