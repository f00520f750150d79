"""`coincide causality`, on either engine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from coincide.command_line.chance import PairRequest, PlannedPairs, counted_before, shifts
from coincide.command_line.event_inputs import prepared, read_tables
from coincide.command_line.progress import Progress
from coincide.command_line.requests import InProcess, checked
from coincide.command_line.summary import Counted, counted_pairs
from coincide.engine.causality.arguments import CAUSE_AND_EFFECT, CausalityArguments
from coincide.engine.causality.join import TableCausality
from coincide.engine.events.places import Coordinate
from coincide.engine.files.source import Source
from coincide.engine.join.pair_arguments import EVENT, PairArguments
from coincide.engine.join.text_options import (
    CLOCKS,
    aggregated,
    check_one_stream,
    duration,
    keys,
    names,
    numbers,
    options_of,
    preference,
    timestamps,
)
from coincide.model.causality.condition import (
    ANY,
    CausalityCondition,
    Ellipsoidal,
    Predicate,
    Propagation,
    Spatial,
    SpeedRange,
    Temporal,
)
from coincide.model.causality.spaces import EARTH_KM, Plane, Space, Sphere
from coincide.model.errors import ConditionError, said_of
from coincide.model.options import check_choice
from coincide.model.units import unit_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from coincide.command_line.requests import OnSession

_WAYS = ("auto", "broadcast", "broadcast-left", "broadcast-right", "exchange")
_ASKED = (
    "how", "emit", "probability", "backend", "where", "k", "matching",
    "largest_group", "weights",
)  # fmt: skip
_KILOMETRES = {"km": 1.0, "m": 0.001, "mi": 1.609344, "nmi": 1.852}
_DISTANCE = re.compile(r"\s*(.*?\d\.?)\s*([a-zA-Z]*)\s*")


@dataclass(frozen=True, kw_only=True)
class CausalityRequest(PairRequest):
    """One `coincide causality`."""

    doing: ClassVar[str] = "looking for effects"
    causes: str
    effects: str | None
    arguments: CausalityArguments

    @property
    def inputs(self) -> dict[str, str]:  # noqa: D102
        if self.effects is None:
            return {EVENT: self.causes}
        return dict(zip(CAUSE_AND_EFFECT, (self.causes, self.effects), strict=True))

    def job(self, arguments: PairArguments, tables: list[pa.Table]) -> TableCausality:  # noqa: D102
        causes, *effects = tables
        assert isinstance(arguments, CausalityArguments)
        return TableCausality(causes, effects[0] if effects else None, arguments)

    def in_process(self, sources: list[Source], progress: Progress) -> InProcess:  # noqa: D102
        asked = prepared(self, sources)
        arguments = asked.request.arguments
        tables = read_tables(asked, progress.show)
        job, moved = self.job(arguments, tables), self.moved(arguments, tables)

        def counted() -> Counted:
            assert job.summary is not None
            return counted_pairs(
                replace(job.summary, way=""), None if moved is None else moved.pairs
            )

        return InProcess(counted_before(moved, job.batches()), job.schema, counted, job.limit)

    def on_spark(self, sources: list[Source]) -> OnSession:  # noqa: D102
        from coincide.command_line.spark import spark_frame
        from spark_plugin.ways.causality import plan_causality

        asked = prepared(self, sources)
        arguments = asked.request.arguments

        def plan(spark: SparkSession) -> PlannedPairs:
            causes, *effects = frames = [spark_frame(spark, *one) for one in asked.needed()]
            accidental = self.on_frames(frames, arguments)
            second = effects[0] if effects else None
            return PlannedPairs(plan_causality(causes, second, arguments, observe=True), accidental)

        def counted(plan: PlannedPairs) -> Counted:
            summary = plan.join.summary()
            return counted_pairs(replace(summary, why=self.hide(summary.why)), plan.accidental)

        return self.planned(plan, counted)


def request(**words: Any) -> CausalityRequest:
    """Check what was typed and make a request of it. Keywords are the options of `coincide causality`."""
    check_choice("way", words["way"], _WAYS)
    is_one_stream = words["effects"] is None
    own = {name: words[name] for name in _ASKED}
    own["prefer"] = preference(words["prefer"])
    own |= aggregated(words)
    if is_one_stream:
        check_one_stream(words, CAUSE_AND_EFFECT, "EFFECTS", ("unit", "longest"))
    words = _with_effect_times(words)
    for side in CAUSE_AND_EFFECT:
        own[f"{side}_time"] = timestamps(f"{side}_", words)
        if (place := words[f"{side}_place"]) is not None:
            own[f"{side}_place"] = coordinates_of(f"--{side}-place", place)
        columns = words[f"{side}_columns"]
        own[f"{side}_columns"] = names(f"--{side}-columns", columns or ["id"])
    condition = condition_of(words)
    arguments = CausalityArguments(
        condition, by=keys(words["by"]), options=options_of(words, CAUSE_AND_EFFECT),
        is_one_stream=is_one_stream, **own,
    )  # fmt: skip
    spark_only = {"--slices": words["slices"], "--way": words["way"] != "auto"}
    return CausalityRequest(
        causes=words["causes"],
        effects=words["effects"],
        arguments=arguments,
        shifts=shifts(words["shifts"]),
        **checked(words, spark_only),
    )


def _with_effect_times(words: dict[str, Any]) -> dict[str, Any]:
    """Where nothing is said of the times of effects, they are as those of causes."""
    said = [f"effect_{name}" for name in ("time", *CLOCKS)]
    if all(words.get(name) is None for name in said):
        return {**words, **{name: words.get(name.replace("effect", "cause")) for name in said}}
    if words["effect_time"] is None:
        return {**words, "effect_time": words["cause_time"]}
    return words


def condition_of(words: dict[str, Any]) -> CausalityCondition:
    """The question about a pair."""
    return CausalityCondition(_predicates(words), _space(words), words["confidence"])


def _predicates(words: dict[str, Any]) -> tuple[Predicate, ...]:
    found: list[Predicate] = []
    strict = words["strict"]
    if words["delta"] is not None:
        lo, hi = (None if end == ANY else duration("--delta", end) for end in words["delta"])
        found.append(Temporal(lo, hi, strict))
    if words["radius"] is not None:
        found.append(Spatial(_distance("--radius", words["radius"], words), strict=strict))
    if words["speed"] is not None:
        slowest, fastest = map(_speed, words["speed"])
        slack = duration("--slack", words["slack"])
        found.append(SpeedRange(slowest, fastest, slack, _per(words), strict))
    elif words["slack"] != "0":
        raise ConditionError("--slack belongs to travel times. Use --speed MIN MAX, or remove it.")
    found += _propagation(words)
    if words["per"] != "s" and words["speed"] is None and words["propagation_speed"] is None:
        raise ConditionError(
            "--per belongs to speeds. Use --speed MIN MAX or --propagation-speed V, or remove it."
        )
    if words["ellipsoid"] is not None:
        radius, time = words["ellipsoid"]
        size = _distance("--ellipsoid", radius, words)
        found.append(Ellipsoidal(size, duration("--ellipsoid", time), strict))
    if not found:
        raise ConditionError(
            "the condition is missing: when can an event have caused another? Use --delta LO HI,"
            " --radius R, --speed MIN MAX, --propagation-time D, --propagation-speed V or"
            " --ellipsoid R D."
        )
    return tuple(found)


def _propagation(words: dict[str, Any]) -> list[Predicate]:
    """A constant time, or a constant speed."""
    time, speed, tolerance = (
        words[name] for name in ("propagation_time", "propagation_speed", "tolerance")
    )
    if time is not None and speed is not None:
        raise ConditionError(
            "--propagation-time and --propagation-speed exclude each other. Remove one."
        )
    if time is None and speed is None:
        if tolerance is not None:
            raise ConditionError(
                "--tolerance belongs to a propagation. Use --propagation-time D or"
                " --propagation-speed V, or remove it."
            )
        return []
    if tolerance is None:
        raise ConditionError(
            "--tolerance is missing, which says how much later than the propagation an effect may"
            " come. Give --tolerance D."
        )
    constant = None if time is None else duration("--propagation-time", time)
    later = duration("--tolerance", tolerance)
    return [Propagation(later, constant, speed, _per(words), words["strict"])]


def _speed(text: str) -> float | None:
    """A number, or ANY for no bound."""
    try:
        return None if text == ANY else float(text)
    except ValueError:
        raise ConditionError(
            f"--speed takes two numbers, MIN MAX, or any for no bound (found {text!r}). Write"
            " --speed any 200, and the unit of time with --per."
        ) from None


def _distance(option: str, text: str, words: dict[str, Any]) -> float:
    """A number in the unit of distances; or of kilometres in any unit, where they are the Earth's."""
    match = _DISTANCE.fullmatch(text)
    try:
        number, unit = float(match[1] if match else text), match[2] if match else ""
    except ValueError:
        raise ConditionError(
            f"{option} takes a distance (found {text!r}). Write a number, such as 80."
        ) from None
    if not unit:
        return number
    if not words["lat_lon"] or words["sphere_radius"] is not None:
        raise ConditionError(
            f"{option} takes a number in the unit of the places (found {text!r}). Remove"
            f" {unit!r}. If places are in degrees, use --lat-lon, whose distances are in km."
        )
    if unit not in _KILOMETRES:
        known = ", ".join(_KILOMETRES)
        raise ConditionError(
            f"{option} takes a distance in {known} (found {text!r}). Write it in one of these."
        )
    return float(Decimal(str(number)) * Decimal(str(_KILOMETRES[unit])))


def _per(words: dict[str, Any]) -> str | None:
    if words["per"] == "tick":
        return None
    with said_of("--per"):
        return unit_name(words["per"])


def _space(words: dict[str, Any]) -> Space:
    radius, scale, height = (words[name] for name in ("sphere_radius", "scale", "height_scale"))
    if not words["lat_lon"]:
        for name, given in (("--sphere-radius", radius), ("--height-scale", height)):
            if given is not None:
                raise ConditionError(f"{name} applies to a sphere. Use --lat-lon, or remove it.")
        return Plane() if scale is None else Plane(tuple(numbers("--scale", scale)))
    if scale is not None:
        raise ConditionError(
            "--scale applies to a plane, and --lat-lon to a sphere. Remove one of them."
        )
    return Sphere(EARTH_KM if radius is None else radius, 1.0 if height is None else height)


def coordinates_of(option: str, words: Sequence[str] | None) -> list[Coordinate]:
    """Columns, and numbers that hold for all."""
    found: list[Coordinate] = []
    for name in names(option, words):
        is_number = re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", name)
        found.append(float(name) if is_number else name)
    return found
