"""Delta of causes and effects, between stamps or midpoints, its name, and the probability of a pair."""

from __future__ import annotations

import datetime as dt
import warnings
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide import (
    CausalityCondition,
    ConditionError,
    CorrelateOptions,
    DistanceUnitWarning,
    Plane,
    Spatial,
    SpeedRange,
    Sphere,
    Temporal,
    WindowedCausality,
    accidental_pair_tables,
    around,
    causality_tables,
    clusters,
    resolution,
)
from cpu_fallback.reference.decision import satisfaction_probability
from tests.helpers.histogram_tables import by_device, one_bucket

LIKELY = CausalityCondition(Temporal(0, 30), confidence=0.1)


def seconds(*given: float) -> list[dt.datetime]:
    return [dt.datetime(2024, 5, 1) + dt.timedelta(seconds=each) for each in given]


def deltas(causes: dict[str, Any], effects: dict[str, Any], **asked: Any) -> list[Any]:
    tables = [pa.table({"id": range(len(next(iter(s.values()))))} | s) for s in (causes, effects)]
    return causality_tables(*tables, LIKELY, **asked)["delta"].to_pylist()


def test_delta_is_between_stamps_whatever_their_errors() -> None:
    own, others = (pa.table({"id": [1], "time": seconds(at)}) for at in (0, 8.06))
    condition = CausalityCondition(Temporal("0s", "20s"), confidence=0.5)
    times: Any = {"cause_time": around("time", "1s"), "effect_time": around("time", "2s")}
    found = causality_tables(own, others, condition, **times)
    assert found.to_pylist() == [{"cause_id": 1, "effect_id": 1, "delta_us": 8_060_000}]


@pytest.mark.parametrize(
    ("cause", "effect", "delta"),
    [
        ("t", "u", 10),
        (around("t", 3), "u", 10),
        ("t", around("u", before=2, after=9), 10),
        (around("t", before=4, after=-1), resolution("u", 5), 10),
        (around("t", column="w"), around("u", column="w"), 10),
        (resolution("t", 5), around("u", column=("w", "w")), 10),
        # [10, 12] and [20, 25] have their middles at 11 and 22.5
        (("t", "t2"), ("u", "u2"), 11),
        (("t", "t2"), around("u", 1), 9),
        (around("t", 1), ("u", "u2"), 12),
    ],
)
def test_delta_is_between_stamps_and_midpoints(cause: Any, effect: Any, delta: int) -> None:
    own, others = {"t": [10], "t2": [12], "w": [2]}, {"u": [20], "u2": [25], "w": [1]}
    for asked in (
        {},
        {"emit": "best"},
        {"emit": "best", "k": 2},
        {"emit": "best", "prefer": "first"},
    ):
        given: Any = {"cause_time": cause, "effect_time": effect, **asked}
        assert deltas(own, others, **given) == [delta]
    listed: Any = {"cause_time": cause, "effect_time": effect, "emit": "lists"}
    assert deltas(own, others, **listed) == [[delta]]
    for where, kept in ((f"delta = {delta}", [delta]), (f"delta > {delta}", [])):
        assert deltas(own, others, cause_time=cause, effect_time=effect, where=where) == kept


def test_half_a_tick_is_left_off_on_either_side_of_zero() -> None:
    own = pa.table({"id": [1], "low": [0], "high": [1]})
    others = pa.table({"id": [1, 2], "low": [-3, 3], "high": [-3, 3]})
    condition = CausalityCondition(Temporal(-9, 9))
    times: Any = {"cause_time": ("low", "high"), "effect_time": ("low", "high")}
    found = causality_tables(own, others, condition, **times)
    assert sorted(found["delta"].to_pylist()) == [-3, 2]


def test_stamps_of_histograms() -> None:
    table = pa.table({"id": [1], "seen_at": [100], "device": ["d3"]})
    later = pa.table({"id": [2], "time": [107]})
    times: Any = {"cause_time": by_device(one_bucket()), "effect_time": "time"}
    condition = CausalityCondition(Temporal(0, 900), confidence=0.5)
    found = causality_tables(table, later, condition, **times)
    assert found["delta"].to_pylist() == [7]


@pytest.mark.parametrize(
    ("time", "options", "name", "delta"),
    [
        (seconds(0, 2), {}, "delta_us", 2_000_000),
        (seconds(0, 2), {"unit": "ns"}, "delta_ns", 2 * 10**9),
        ([0.0, 2.0], {"unit": "s", "tick": "ns"}, "delta_ns", 2 * 10**9),
        ([0.0, 2.0], {"unit": "s", "tick": "ms"}, "delta_ms", 2000),
        ([0, 2], {"unit": "min"}, "delta_min", 2),
        ([0, 2], {}, "delta", 2),
    ],
)
def test_the_name_of_delta_says_what_it_counts(
    time: Any, options: Any, name: str, delta: int
) -> None:
    table = pa.table({"id": [1, 2], "time": time, "x": [0.0, 3.0]})
    least = "1us" if isinstance(time[0], dt.datetime) else 1
    condition = CausalityCondition([Temporal(least, None), Spatial(9)])
    asked: Any = {"cause_place": "x", "options": CorrelateOptions(**options)}
    found = causality_tables(table, table, condition, where=f"{name} = {delta}", **asked)
    assert found.column_names == ["cause_id", "effect_id", name, "distance"]
    assert found[name].to_pylist() == [delta]
    told = clusters(
        table, condition, place="x", where=f"{name} > {delta}", options=asked["options"]
    )
    assert told["cluster"].to_pylist() == [0, 1]
    wrong = "delta" if name != "delta" else "delta_us"
    with pytest.raises(ConditionError, match=f"no column '{wrong}'|{wrong}"):
        causality_tables(table, table, condition, where=f"{wrong} > 3", **asked)


def test_the_name_of_delta_of_windows() -> None:
    table = pa.table({"id": [1, 2], "time": seconds(0, 2)})
    found = WindowedCausality(CausalityCondition(Temporal("1s", "3s"))).push(table)
    assert found.to_pylist() == [{"cause_id": 1, "effect_id": 2, "delta_us": 2_000_000}]


def test_effects_have_the_coordinates_of_causes_unless_others_are_named() -> None:
    table = pa.table({"id": [1, 2], "time": [0, 2], "x": [0.0, 0.0], "y": [0.0, 4.0]})
    condition = CausalityCondition([Temporal(1, 3), Spatial(9)])
    found = causality_tables(table, table, condition, cause_place=("x", "y"))
    assert found["distance"].to_pylist() == [4.0]
    with pytest.raises(ConditionError, match="cause_place has 2 coordinates and effect_place 0"):
        causality_tables(table, table, condition, cause_place=("x", "y"), effect_place=())


@settings(max_examples=40, deadline=None)
@given(st.data(), st.sampled_from([{}, {"emit": "best"}, {"emit": "lists"}, {"k": 2}]))
def test_probabilities_are_the_reference_s(data: Any, asked: Any) -> None:
    def side(count: int) -> pa.Table:
        low = data.draw(st.lists(st.integers(0, 30), min_size=count, max_size=count))
        high = [each + data.draw(st.integers(0, 12)) for each in low]
        x = [float(data.draw(st.integers(0, 6))) for _ in low]
        return pa.table({"id": range(count), "low": low, "high": high, "x": x})

    causes, effects = side(4), side(5)
    condition = CausalityCondition([SpeedRange(1, 2, 4, per=None), Spatial(5)], confidence=0.3)
    asked = {"emit": "best", **asked} if "k" in asked else asked
    times: Any = {"cause_time": ("low", "high"), "effect_time": ("low", "high")}
    found = causality_tables(
        causes, effects, condition, cause_place="x", probability=True, **times, **asked
    )
    names = ["cause_id", "effect_id", "delta", "distance", "probability"]
    assert found.column_names == [*names, *(["rank"] if "k" in asked else [])]
    for row in found.to_pylist():
        i = row["cause_id"]
        several = [row[name] for name in names[1:]]
        told = zip(*several, strict=True) if asked.get("emit") == "lists" else [several]
        for j, _, distance, probability in told:
            # d / 2 - 4 to d + 4, in whole ticks
            window = -int((4 - distance / 2) // 1), int(distance + 4)
            ends = [
                side[n][k].as_py()
                for side, k in ((causes, i), (effects, j))
                for n in ("low", "high")
            ]
            exact = satisfaction_probability(*ends, *window)
            assert probability == pytest.approx(float(exact), abs=2.0**-39)
            assert probability >= 0.3 - 1e-9


def test_the_probability_of_exact_times_is_1_and_of_counts_there_is_none() -> None:
    table = pa.table({"id": [1, 2], "time": [0, 2]})
    condition = CausalityCondition(Temporal(1, 3))
    found = causality_tables(table, table, condition, probability=True)
    assert found.to_pylist() == [{"cause_id": 1, "effect_id": 2, "delta": 2, "probability": 1.0}]
    with pytest.raises(ConditionError, match="Remove probability=True"):
        causality_tables(table, table, condition, probability=True, emit="counts")


def places(**columns: Any) -> pa.Table:
    return pa.table({"id": [1, 2, 3], "time": [0, 1, 2]} | columns)


DEGREES: dict[str, list[float]] = {"lat": [45.0, 45.1, 45.2], "lon": [7.0, 7.1, 7.2]}


@pytest.mark.parametrize(
    ("space", "place", "words"),
    [
        (
            Plane(),
            ("lat", "lon"),
            r"distances are measured in degrees \(found the places 'lat' and 'lon'",
        ),
        (Sphere(), ("lon", "lat"), "takes the latitude first"),
        (Sphere(), ("x", "y"), r"'x' and 'y'\). If they are lengths, remove Sphere\(\)"),
    ],
)
@pytest.mark.parametrize("operator", ["pairs", "clusters", "windows"])
def test_places_of_another_space_are_told(
    space: Any, place: Any, words: str, operator: str
) -> None:
    table = places(**DEGREES, x=[1.0, 2.0, 3.0], y=[1.0, 2.0, 3.0])
    condition = CausalityCondition([Temporal(0, 3), Spatial(20)], space)
    window = WindowedCausality(condition, place=place)

    def twice() -> None:
        for _ in range(2):
            window.push(table)

    ask: dict[str, Any] = {
        "pairs": lambda: causality_tables(table, table, condition, cause_place=place),
        "clusters": lambda: clusters(table, condition, place=place),
        "windows": twice,
    }
    with pytest.warns(DistanceUnitWarning, match=words) as told:
        ask[operator]()
    assert len(told) == 1


@pytest.mark.parametrize(
    ("radius", "is_told"), [(5, False), (25, False), (60, True), (500, True), (20_000, True)]
)
def test_a_radius_in_metres_that_leaves_out_nothing_is_told(radius: float, is_told: bool) -> None:
    # The places are 27 km apart at most.
    table = places(**DEGREES)
    condition = CausalityCondition([Temporal(0, 3), Spatial(radius)], Sphere())
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        causality_tables(table, table, condition, cause_place=("lat", "lon"))
        clusters(table, condition, place=("lat", "lon"))
    assert [each.category for each in told] == [DistanceUnitWarning] * 2 * is_told
    if is_told:
        assert f"reaches {radius} km, and no two events are more than 27." in str(told[0].message)


HEIGHTS: dict[str, tuple[str, list[float], Sphere, float, bool]] = {
    "metres": ("alt", [400.0, 455.0], Sphere(), 0.1, True),
    "below the sea": ("alt", [-400.0, 10.0], Sphere(), 0.1, True),
    "scaled": ("alt", [400.0, 455.0], Sphere(height_scale=0.001), 0.1, False),
    "another unit": ("alt", [400.0, 455.0], Sphere(6_371_000.0), 0.1, False),
    "kilometres": ("alt", [0.4, 0.455], Sphere(), 0.01, False),
    "within reach": ("alt", [400.0, 455.0], Sphere(), 60.0, False),
    "depths": ("depth", [400.0, 455.0], Sphere(), 0.1, False),
    "depths in metres": ("depth_m", [1.0, 2.0], Sphere(), 10.0, True),
    "metres twice": ("alt_m", [400.0, 455.0], Sphere(), 0.1, True),
    "depths of no Earth": ("depth", [4000.0, 4550.0], Sphere(), 10.0, True),
}


@pytest.mark.parametrize("case", HEIGHTS)
@pytest.mark.parametrize("operator", ["pairs", "clusters"])
def test_heights_in_metres_are_told(case: str, operator: str) -> None:
    name, heights, space, radius, is_told = HEIGHTS[case]
    table = places(lat=[47.0] * 3, lon=[8.0] * 3, **{name: [*heights, heights[0]]})
    condition = CausalityCondition([Temporal(0, 3), Spatial(radius)], space)
    place = ("lat", "lon", name)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if operator == "pairs":
            causality_tables(table, table, condition, cause_place=place)
        else:
            clusters(table, condition, place=place)
    found = [str(each.message) for each in told if each.category is DistanceUnitWarning]
    assert len(found) == is_told
    assert all("height_scale=0.001" in text for text in found)


def test_of_other_spheres_planes_and_names_nothing_is_told() -> None:
    table = places(**DEGREES, x=[1.0, 2.0, 3.0], y=[1.0, 2.0, 3.0])
    scaled: list[tuple[Any, Any]] = [
        (Plane((111.0, 80.0)), ("lat", "lon")), (Sphere(6_371_000), ("lat", "lon")), (Plane(), ("x", "y")),
    ]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for space, place in scaled:
            condition = CausalityCondition([Temporal(0, 3), Spatial(90_000)], space)
            assert causality_tables(table, table, condition, cause_place=place).num_rows == 6
        causality_tables(
            table, table, CausalityCondition(Temporal(0, 3)), cause_place=("lat", "lon")
        )
        empty = table.slice(0, 0)
        condition = CausalityCondition([Temporal(0, 3), Spatial(90_000)], Sphere())
        causality_tables(empty, empty, condition, cause_place=("lat", "lon"))


def test_a_shift_may_be_a_tick_longer_than_the_window() -> None:
    """The window is from -500 to 80 / 4 + 500."""
    table = places(x=[0.0, 80.0, 4.0])
    condition = CausalityCondition([Spatial(80), SpeedRange(4, 8, 500, per=None)])
    accidental_pair_tables(table, table, condition, shifts=(1021,), cause_place="x")
    with pytest.raises(ConditionError, match="not longer than the window, 1,020 ticks"):
        accidental_pair_tables(table, table, condition, shifts=(1020,), cause_place="x")
