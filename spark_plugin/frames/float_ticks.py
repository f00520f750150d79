"""Times in ticks as further columns of a DataFrame: of floats what `coincide.model.units` gives.

What floats need is selected step by step. In one expression Spark would compute each step anew wherever it
is used, in methods too long for the JIT compiler.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from coincide.engine.events.time_columns import TimeScale
from coincide.model.decimal_ticks import EXACT, EXACT_SINGLE, MOST_PLACES
from spark_plugin.frames.columns import literal, quoted, ticks

_TRIED = (1.0, 10.0, 100.0)
"""Decimals are looked for at the most places of which one at most reads as a float, and at two more: there
one does."""


def with_ticks(frame: DataFrame, scales: Mapping[str, TimeScale]) -> DataFrame:
    """With time columns in ticks, as `ticks` has them, under names that are free, as longer ones are."""
    steps = {
        name: _Steps(name, scale)
        for name, scale in scales.items()
        if reads_decimals(scale) and not scale.column.is_decimal
    }
    if not steps:
        return frame.selectExpr(
            "*", *(f"{ticks(s, _exact(s))} AS {name}" for name, s in scales.items())
        )
    first = [text for each in steps.values() for text in each.first()]
    second = [text for each in steps.values() for text in each.second()]
    found = [
        f"{ticks(scale, steps[name].ticks() if name in steps else _exact(scale))} AS {name}"
        for name, scale in scales.items()
    ]
    made = frame.selectExpr("*", *first).selectExpr("*", *second).selectExpr("*", *found)
    return made.drop(*(name for each in steps.values() for name in each.names))


def reads_decimals(scale: TimeScale) -> bool:
    """Whether it matters which decimal a float is: coarse ticks do not tell them apart."""
    return scale.column.is_decimal or (
        scale.column.family == "float" and scale.factor.numerator > 1
    )


def _exact(scale: TimeScale) -> str | None:
    """A decimal of less than 2^62 ticks, rounded: bigint; None for all other decimals."""
    if not scale.column.is_decimal:
        return None
    value = quoted(scale.column.name)
    whole, part = f"CAST({value} AS BIGINT)", f"({value} % 1)"
    up, down = scale.factor.numerator, scale.factor.denominator
    if up > 1:
        return f"({whole} * {literal(up)} + CAST(bround({part} * CAST({up} AS DECIMAL(15, 0))) AS BIGINT))"
    if down == 1:
        return f"CAST(bround({value}) AS BIGINT)"
    found, rest = f"({whole} div {literal(down)})", f"(2L * abs({whole} % {literal(down)}))"
    is_up = f"{rest} > {down} OR ({rest} = {down} AND ({part} <> 0 OR {found} % 2 <> 0))"
    return f"({found} + IF({is_up}, CAST(signum({value}) AS BIGINT), 0L))"


class _Steps:
    """How a column of floats becomes ticks."""

    def __init__(self, name: str, scale: TimeScale) -> None:
        self._number = f"CAST({quoted(scale.column.name)} AS DOUBLE)"
        self._scale = scale
        self._power, self._whole = f"{name}_power", f"{name}_whole"
        self._units = [f"{name}_units{k}" for k in range(len(_TRIED))]
        self.names = [self._power, self._whole, *self._units]

    def first(self) -> list[str]:
        """Units of the last place in one, for decimals of as many places; the nearest whole number."""
        exact = EXACT_SINGLE if self._scale.column.is_single else EXACT
        sizes = " ".join(
            f"WHEN abs({self._number}) < {exact / 10.0**places!r}D THEN {10.0**places!r}D"
            for places in range(MOST_PLACES, 0, -1)
        )
        power = f"CASE {sizes} ELSE 1D END"
        return [f"{power} AS {self._power}", f"rint({self._number}) AS {self._whole}"]

    def second(self) -> list[str]:
        """Units of the last place beyond the whole number, with this many places, one and two more."""
        part = f"({self._number} - {self._whole})"
        powers = (f"({self._power} * {more!r}D)" for more in _TRIED)
        return [
            f"rint({part} * {power}) AS {units}"
            for power, units in zip(powers, self._units, strict=True)
        ]

    def ticks(self) -> str:
        """The first decimal that reads as the number, in ticks; else the number itself: bigint."""
        whole, size = self._whole, self._scale.factor.numerator
        cases = []
        for more, units in zip(_TRIED, self._units, strict=True):
            power = f"({self._power} * {more!r}D)"
            read = f"({whole} * {power} + {units}) / {power}"
            if self._scale.column.is_single:
                read = f"CAST(CAST({read} AS FLOAT) AS DOUBLE)"
            elif more > 1:
                read = f"{whole} + {units} / {power}"
            has_places = f"{power} <= {10.0**MOST_PLACES!r}D AND " if more > 1 else ""
            cases.append(
                f"WHEN {has_places}{read} = {self._number} THEN {_in_ticks(units, power, size)}"
            )
        beyond = f"rint(({self._number} - {whole}) * {float(size)!r}D)"
        found = f"CASE {' '.join(cases)} ELSE {beyond} END"
        return f"CAST({whole} AS BIGINT) * {literal(size)} + CAST({found} AS BIGINT)"


def _in_ticks(units: str, power: str, size: int) -> str:
    """Units of the last place in ticks, given the ticks of one, rounded: all but the last step is exact."""
    rest, tens = size, 1
    while rest % 10 == 0 and tens < 10**MOST_PLACES:
        rest, tens = rest // 10, tens * 10
    if tens < 10**MOST_PLACES:
        return f"rint({units} * {float(size)!r}D / {power})"
    return f"{units} * {float(rest)!r}D * ({float(tens)!r}D / {power})"
